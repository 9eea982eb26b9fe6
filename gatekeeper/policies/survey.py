"""Survey: outputs drawn for an estimate of the mean score of all, not to find errors."""

from __future__ import annotations

from math import floor
from typing import Any, ClassVar

from gatekeeper.arguments import check_beta, check_count
from gatekeeper.policies.descriptor import Goal, Learns, Need
from gatekeeper.stats.sequential_draws import SequentialDraws
from gatekeeper.types import Candidate, Decision, Outcome, Reason

__all__ = ["Survey"]


class Survey:
    """Draw every output with a known probability, so that the draws say something about all.

    There is no warm-up: the first outputs are drawn like the others. The draws are spread over
    the stream, one from each unit of accumulated probability (`stats.sequential_draws`), so a
    known horizon gets exactly its β.

    Parameters
    ----------
    beta
        Share of the outputs to verify, in (0, 1).
    horizon
        Number of outputs to come, where it is known.
    seed
        Of the draws, at least 0.
    """

    name = "survey"
    label = "Survey"
    description = "draws for an estimate of the score"
    learns: ClassVar[Learns] = "labels"
    needs: ClassVar[tuple[Need, ...]] = ("horizon",)
    goal: ClassVar[Goal] = "score"

    def __init__(self, beta: float, *, horizon: int | None = None, seed: int = 0) -> None:
        self.beta = check_beta(beta)
        self.horizon = None if horizon is None else check_count("horizon", horizon)
        self.seed = check_count("seed", seed, least=0)
        self._draws = SequentialDraws((seed, 4))  # other draws than a gate's of the same seed
        self._seen = self._labels = 0
        self._mass = 0.0  # Σ of the propensities so far

    @property
    def phase(self) -> str:
        return "steady"

    def decide(self, candidate: Candidate) -> Decision:
        p = self._propensity()
        self._seen += 1
        self._mass += p
        return Decision(self._draws(p), Reason.POLICY, propensity=p, version=self._labels)

    def update(self, candidate: Candidate, decision: Decision, outcome: Outcome) -> None:
        self._labels += outcome.error is not None

    def _propensity(self) -> float:
        if self.horizon is None or self._seen >= self.horizon:
            return self.beta
        left = floor(self.beta * self.horizon + 0.5) - self._mass
        p = left / (self.horizon - self._seen)
        return round(min(max(p, 0.0), 1.0), 12)

    def state(self) -> dict[str, Any]:
        return {
            "seen": self._seen,
            "labels": self._labels,
            "mass": self._mass,
            "draws": self._draws.state(),
        }

    def restore(self, state: dict[str, Any]) -> None:
        self._seen, self._labels, self._mass = state["seen"], state["labels"], state["mass"]
        self._draws.restore(state["draws"])
