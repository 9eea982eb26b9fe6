"""Survey: outputs drawn for an estimate of the mean score of all, not to find errors."""

from __future__ import annotations

from collections import deque
from math import floor
from typing import Any, ClassVar, get_args

from gatekeeper.arguments import check_beta, check_choice, check_count
from gatekeeper.budget import Unit
from gatekeeper.policies.budget_pacer import BudgetPacer
from gatekeeper.policies.descriptor import Goal, Learns, Need
from gatekeeper.policies.without_verdict import WithoutVerdict
from gatekeeper.stats.error_model import KNOWN, RECENT, raw_of
from gatekeeper.stats.raw_table import Raw, RawTable
from gatekeeper.stats.sequential_draws import SequentialDraws
from gatekeeper.stats.spread_model import SpreadModel
from gatekeeper.types import Candidate, Decision, Outcome, Reason

__all__ = ["Survey", "draws_within"]

ENOUGH, GROWTH = 40, 1.5  # labels of the first fit; growth of their number between fits
AHEAD = 0.5  # most expected draws beyond what a growing budget pays for
CATCH_UP = 50  # outputs over which unequal draws are brought back to the budget


class Survey:
    """Draw every output with a known probability, so that the draws represent all outputs.

    There is no warm-up: the first outputs are drawn like the others. All have the same probability
    until 40 values are known. From then on it is in proportion to the predicted standard deviation
    of an output's value, as far as the values so far support a prediction (`stats.spread_model`).
    The draws are spread over the stream, one from each unit of accumulated probability
    (`stats.sequential_draws`), so that a known horizon gets exactly its β.

    That holds for a budget in verifications. In another unit the cost of a draw is known
    afterwards, and a refusal would leave an output without a chance. There the probability follows
    what was spent, and spending stays behind the cap (`BudgetPacer`, `spare`).

    `Decision.score` is the predicted standard deviation, relative to that of all.

    Parameters
    ----------
    beta
        Share of the outputs to verify, in (0, 1).
    horizon
        Number of outputs to come, where it is known.
    unit
        The budget's.
    seed
        Seed of the draws, at least 0.

    References
    ----------
    Neyman (1934), the allocation. arXiv 2604.18569: why a constant probability is often best.
    arXiv 2605.10075: allocation by predicted variance.
    """

    name = "survey"
    label = "Survey"
    description = "draws for an estimate of the score"
    learns: ClassVar[Learns] = "labels"
    needs: ClassVar[tuple[Need, ...]] = ("horizon", "unit")
    goal: ClassVar[Goal] = "score"

    def __init__(
        self,
        beta: float,
        *,
        horizon: int | None = None,
        unit: Unit = "verifications",
        seed: int = 0,
    ) -> None:
        self.beta = check_beta(beta)
        self.horizon = None if horizon is None else check_count("horizon", horizon)
        self.seed = check_count("seed", seed, least=0)
        check_choice("unit", unit, get_args(Unit))
        self._draws = SequentialDraws((seed, 4))  # other draws than a gate's of the same seed
        self._recent: deque[Raw] = deque(maxlen=RECENT)
        self._known: deque[tuple[Raw, float]] = deque(maxlen=KNOWN)
        self._model: SpreadModel | None = None
        self._next_fit = ENOUGH
        self._seen = self._labels = 0
        self._mass = 0.0  # Σ of the propensities so far
        self._without = WithoutVerdict()  # draws, for a budget in verifications
        counted = unit == "verifications"
        self._pacer = None if counted else BudgetPacer(self.beta, self.horizon, spare=True)
        self._costs = [0.0, 0.0]  # of verifications settled: Σ ĉ, Σ c

    @property
    def phase(self) -> str:
        return "steady"

    def decide(self, candidate: Candidate) -> Decision:
        raw = raw_of(candidate)
        self._recent.append(raw)
        if self._labels >= self._next_fit:
            self._next_fit = int(self._labels * GROWTH) + 1
            known, values = zip(*self._known, strict=True)
            self._model = SpreadModel.fit(RawTable.of(self._recent), RawTable.of(known), values)
        relative = 1.0 if self._model is None else self._model(raw)
        p = self._propensity(relative) if self._pacer is None else self._paced(candidate, relative)
        self._seen += 1
        self._mass += p
        return Decision(
            self._draws(p), Reason.POLICY, score=relative, propensity=p, version=self._labels
        )

    def observe(self, candidate: Candidate, decision: Decision) -> None:
        """A verification forced by a caller takes one from the budget of the draws."""
        if decision.reason is Reason.FORCED:
            self._mass += 1.0
        if self._pacer is not None and decision.verify:
            self._pacer.charge(candidate.id, self._expected(candidate))
        elif self._pacer is not None and decision.reason is Reason.BUDGET_EXHAUSTED:
            self._pacer.refuse()

    def release(self, candidate: Candidate, decision: Decision) -> None:
        """Note that a verification ended without a verdict. See `WithoutVerdict`."""
        if self._pacer is not None:
            self._pacer.release(candidate.id)
        elif decision.reason is not Reason.EXPLORE:  # a draw beside these is not among them
            self._without.add(candidate.id, 1.0)

    def update(self, candidate: Candidate, decision: Decision, outcome: Outcome) -> None:
        if outcome.grade is None:
            return
        self._without.take(candidate.id)
        self._without.give_back(1.0)
        self._labels += 1
        if decision.reason is not Reason.FORCED:
            self._known.append((raw_of(candidate), outcome.grade))
        if self._pacer is not None and outcome.cost is not None:
            self._costs[0] += candidate.cost_estimate
            self._costs[1] += outcome.cost
            # where all so far cost nothing, the account is 0 in any unit
            self._pacer.mean = self._costs[1] / self._labels or 1.0
            self._pacer.settle(candidate.id, outcome.cost)

    def _propensity(self, relative: float) -> float:
        """The probability of the next output, whose standard deviation is `relative` to the mean.

        Those of all outputs add up to the number of draws that the budget pays for, and never
        exceed it.
        """
        if self.horizon is None or self._seen >= self.horizon:
            left = self.beta * (self._seen + 1) - self._taken
            p = _tilted(self.beta + (left - self.beta) / CATCH_UP, relative)
            most = max(min(left + AHEAD, (1.0 + self.beta) / 2.0), 0.0)
            return round(min(max(p, self.beta / 2.0), most), 12)
        left = draws_within(self.beta, self.horizon) - self._taken
        to_come = self.horizon - self._seen
        equal = min(left / to_come, 1.0)  # above 1 where much was given back near the end
        # Every later output keeps a propensity above 0, and none gets 1 unless all do.
        most = min(left / (1.0 + (to_come - 1) / 4.0), (1.0 + equal) / 2.0)
        return round(max(min(_tilted(equal, relative), most), 0.0), 12)

    @property
    def _taken(self) -> float:
        """The draws that the propensities so far amount to, less those given back."""
        return self._mass - self._without.given_back

    def _paced(self, candidate: Candidate, relative: float) -> float:
        """The probability of the next output where costs vary."""
        assert self._pacer is not None
        self._pacer.price(self._expected(candidate))
        rate = self._pacer.rate
        return round(min(_tilted(rate, relative), (1.0 + rate) / 2.0), 12)

    def _expected(self, candidate: Candidate) -> float:
        """The cost in proportion to ĉ, as the ledger expects it: 0 while none is known."""
        estimate, cost = self._costs
        return candidate.cost_estimate * cost / estimate if estimate else 0.0

    def state(self) -> dict[str, Any]:
        return {
            "seen": self._seen,
            "labels": self._labels,
            "next_fit": self._next_fit,
            "mass": self._mass,
            "without": self._without.state(),
            "costs": list(self._costs),
            "pacer": None if self._pacer is None else self._pacer.state(),
            "draws": self._draws.state(),
            "model": None if self._model is None else self._model.state(),
            "recent": [[*raw[:5], dict(raw.features)] for raw in self._recent],
            "known": [[*raw[:5], dict(raw.features), value] for raw, value in self._known],
        }

    def restore(self, state: dict[str, Any]) -> None:
        self._seen, self._labels, self._mass = state["seen"], state["labels"], state["mass"]
        self._next_fit, self._costs = state["next_fit"], list(state["costs"])
        self._without.restore(state["without"])
        if self._pacer is not None:
            self._pacer.restore(state["pacer"])
        self._draws.restore(state["draws"])
        model = state["model"]
        self._model = None if model is None else SpreadModel.restored(model)
        self._recent = deque((Raw(*row) for row in state["recent"]), maxlen=RECENT)
        self._known = deque(((Raw(*row[:6]), row[6]) for row in state["known"]), maxlen=KNOWN)


def draws_within(beta: float, horizon: int) -> int:
    """Whole draws that a budget pays for: with a fraction of a draw, an output might have no
    chance.
    """
    return floor(beta * horizon + 1e-9)  # 0.3 * 10 is 3, not a little less


def _tilted(p: float, relative: float) -> float:
    """The probability for a relative standard deviation, p being that for 1. Near p = 1, where
    nearly all are drawn anyway, the difference is less, so that the mean stays p."""
    return p * (1.0 + (relative - 1.0) * (1.0 - p * p))
