"""One policy on one stream of records: what it decided, and its metrics."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from gatekeeper.analysis.vectorised import Decisions
from gatekeeper.types import FloatArray, IntArray

__all__ = ["METRICS", "Contender", "PolicyRun"]

METRICS = ("hit_rate", "audit_rate", "utilisation", "recall", "yield", "value")


@dataclass(frozen=True, slots=True)
class Contender:
    """A policy by name, with options of its own: `Contender("cst", {"strata": 6})`."""

    name: str
    options: Mapping[str, Any] = field(default_factory=dict)

    @classmethod
    def of(cls, policy: Contender | str) -> Contender:
        """A name alone has the defaults."""
        return policy if isinstance(policy, Contender) else cls(policy)

    def __str__(self) -> str:
        options = ", ".join(f"{key}={value}" for key, value in self.options.items())
        return f"{self.name}({options})" if options else self.name


@dataclass(frozen=True, slots=True, eq=False)
class PolicyRun:
    """One policy on one seed's stream under one budget."""

    contender: Contender
    beta: float
    seed: int
    rows: IntArray  # of the table, the evaluated ones in stream order
    decisions: Decisions
    error: FloatArray  # clean labels of `rows`
    cost: FloatArray

    def metrics(self) -> list[float]:
        """The metrics in the order of METRICS; NaN for 0/0."""
        verified = self.decisions.verified
        found = float(self.error[verified].sum())
        spent = float(self.cost[verified].sum())
        n = int(verified.sum())
        return [
            _ratio(found, n),
            n / verified.size,
            _ratio(spent, self.decisions.budget),
            _ratio(found, float(self.error.sum())),
            _ratio(found, spent),
            found / verified.size,
        ]


def _ratio(part: float, whole: float) -> float:
    return part / whole if whole else float("nan")
