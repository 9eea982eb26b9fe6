"""Oracle: the best any policy could do with the same budget. Replay only."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar

from gatekeeper.arguments import check_beta
from gatekeeper.policies.descriptor import Learns, Need
from gatekeeper.types import Candidate, Decision, Outcome, Reason, Record

__all__ = ["Oracle"]


class Oracle:
    """Verifies wrong outputs first, then spends the rest of B = β Σ c on right ones.

    Both in stream order; an output whose cost does not fit is skipped.

    Parameters
    ----------
    beta
        Share of the full cost to spend, in (0, 1).
    records
        The evaluated ones, with their labels; all other candidates count as warm-up.
    seed
        Ignored: there are no random draws.
    """

    name = "oracle"
    label = "Best possible"
    description = "knows all labels"
    learns: ClassVar[Learns] = "nothing"
    needs: ClassVar[tuple[Need, ...]] = ("records",)

    def __init__(self, beta: float, *, records: Sequence[Record], seed: int = 0) -> None:
        self.beta = check_beta(beta)
        budget = beta * sum(record.cost for record in records)
        spent = 0.0
        self._chosen = {record.id: False for record in records}
        for label in (1, 0):
            for record in records:
                if record.error == label and spent + record.cost <= budget:
                    spent += record.cost
                    self._chosen[record.id] = True

    @property
    def phase(self) -> str:
        return "steady"

    def decide(self, candidate: Candidate) -> Decision:
        chosen = self._chosen.get(candidate.id)
        if chosen is None:
            return Decision(True, Reason.WARMUP)
        return Decision(chosen, Reason.POLICY, propensity=1.0 if chosen else 0.0)

    def update(self, candidate: Candidate, decision: Decision, outcome: Outcome) -> None:
        """Does nothing: all labels are known."""

    def state(self) -> dict[str, Any]:
        return {"chosen": dict(self._chosen)}

    def restore(self, state: dict[str, Any]) -> None:
        self._chosen = dict(state["chosen"])
