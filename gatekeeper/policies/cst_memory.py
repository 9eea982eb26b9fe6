"""CST+Memory: CST that counts verified neighbours (paper, "Memory Augmentation Ablation")."""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np

from gatekeeper.arguments import check_count, is_number
from gatekeeper.errors import BadInputError
from gatekeeper.policies.cst import CST
from gatekeeper.policies.descriptor import Learns, Need
from gatekeeper.policies.missing_signal import OnMissing
from gatekeeper.policies.score import T0
from gatekeeper.types import Candidate, Decision, FloatArray, Outcome, Signals

__all__ = ["CSTMemory"]


class CSTMemory(CST):
    """CST on s' = (1 - w) s + w h4.

    h4 is the error rate of the `neighbours` nearest verified candidates of the same stratum:
    Euclidean distance in x, ties in order of arrival, a signal that either lacks counting as
    equal. Fewer than that: the stratum's verified error rate; none: 0.5. A warm-up candidate's h4
    comes from those before it, and a z' stays in the history as it was when decided.

    The score is fitted once; labels of the warm-up that arrive later only join the memory.
    Memory grows with the number of verified candidates, and so does the time of a decision.

    Parameters
    ----------
    beta
        Share of the full cost to spend, in (0, 1).
    weight
        w in [0, 1], the share of h4 in the score.
    neighbours
        How many verified candidates h4 looks up.
    strata
        K, how many cost strata.
    warmup
        How many candidates come first, all verified.
    on_missing
        For a candidate without signals: "uniform" (probability β), "verify" or "skip".
    seed
        Seed of the draws for those, at least 0.
    """

    name = "cst-memory"
    label = "CST with memory"
    description = "CST that also counts similar outputs that were wrong"
    learns: ClassVar[Learns] = "labels"
    needs: ClassVar[tuple[Need, ...]] = ("warmup",)
    options: ClassVar[tuple[str, ...]] = ("weight", "neighbours", "strata", "on_missing")

    def __init__(
        self,
        beta: float,
        *,
        weight: float = 0.2,
        neighbours: int = 5,
        strata: int = 4,
        warmup: int = T0,
        on_missing: OnMissing = "uniform",
        seed: int = 0,
    ) -> None:
        if not (is_number(weight) and 0.0 <= weight <= 1.0):
            raise BadInputError(
                f"weight={weight!r}: the memory's share of the score lies in [0, 1]"
            )
        self.weight = weight
        self.neighbours = check_count("neighbours", neighbours)
        self._memory: list[_Memory] = []
        super().__init__(beta, strata=strata, warmup=warmup, on_missing=on_missing, seed=seed)

    def update(self, candidate: Candidate, decision: Decision, outcome: Outcome) -> None:
        if outcome.error is None:
            return
        self._labels += 1
        if not self._memory:
            self._warmup.learn(candidate.id, outcome.error)
        elif decision.verify:
            x = self._scaled(candidate.signals)
            if any(v == v for v in x):
                self._memory[self._stratum(candidate.cost_estimate)].add(x, outcome.error)

    def _refit(self) -> None:
        """Fit the score, then replay the warm-up as if it were decided now.

        Called once: the warm-up is closed, and no later label makes it stale.
        """
        warmup = self._warmup
        warmup.fit()
        self._prepare()
        self._memory = [_Memory(self.neighbours) for _ in range(self.strata)]
        labels = [warmup.labels.get(id_) for id_ in warmup.ids]
        for seen, (s, cost), label in zip(warmup.seen, warmup.scores(), labels, strict=True):
            if s != s:
                continue
            k, x = self._stratum(cost), warmup.scaled(seen[:3])
            self._remember(self._mix(s, k, x) / cost, k)
            if label is not None:
                self._memory[k].add(x, label)
        warmup.close()

    def _adjusted(self, score: float, stratum: int | None, candidate: Candidate) -> float:
        assert stratum is not None
        return self._mix(score, stratum, self._scaled(candidate.signals))

    def _mix(self, s: float, stratum: int, x: list[float]) -> float:
        return (1.0 - self.weight) * s + self.weight * self._memory[stratum].error_rate(x)

    def _scaled(self, signals: Signals) -> list[float]:
        return self._warmup.scaled((signals.h1, signals.h2, signals.h3))

    def state(self) -> dict[str, Any]:
        return super().state() | {"memory": [memory.state() for memory in self._memory]}

    def restore(self, state: dict[str, Any]) -> None:
        super().restore(state)
        self._memory = []
        for items in state["memory"]:
            self._memory.append(memory := _Memory(self.neighbours))
            for x, label in items:
                memory.add(x, label)


class _Memory:
    """Verified candidates of one stratum: x and label, in order of arrival."""

    def __init__(self, neighbours: int) -> None:
        self._neighbours = neighbours
        self._x: FloatArray = np.empty((3, 64))
        self._y: FloatArray = np.empty(64)
        self._n = 0
        self._wrong = 0
        self._gaps = False  # whether any x lacks a signal

    def add(self, x: list[float], label: int) -> None:
        if self._n == self._y.size:
            self._x = np.concatenate([self._x, np.empty_like(self._x)], axis=1)
            self._y = np.concatenate([self._y, np.empty_like(self._y)])
        self._x[:, self._n] = x
        self._y[self._n] = label
        self._n += 1
        self._wrong += label
        self._gaps = self._gaps or any(v != v for v in x)

    def error_rate(self, x: list[float]) -> float:
        """h4 in [0, 1]."""
        n, m = self._n, self._neighbours
        if n < m:
            return self._wrong / n if n else 0.5
        d = self._x[:, :n] - np.array(x)[:, None]
        d *= d
        if self._gaps or any(v != v for v in x):
            d[np.isnan(d)] = 0.0
        distance = np.sqrt(np.add.reduce(d, axis=0))
        nearest = distance.argpartition(m - 1)[:m]
        farthest = distance[nearest[m - 1]]
        if np.count_nonzero(distance <= farthest) > m:  # a tie: the earliest of the farthest
            nearest = distance.argsort(kind="stable")[:m]
        return float(self._y[nearest].sum()) / m

    def state(self) -> list[Any]:
        x = self._x[:, : self._n].T.tolist()
        return [[row, int(y)] for row, y in zip(x, self._y[: self._n], strict=True)]
