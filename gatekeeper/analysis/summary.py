"""What a run has to show for its budget, beside what random and perfect choices would have."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from math import sqrt

from gatekeeper.types import GateResult, Reason, SignalState

__all__ = ["Summary", "summarise"]


@dataclass(frozen=True, slots=True)
class Summary:
    """Counts of outputs. "Evaluated" are those after the warm-up, which verifies everything.

    `random_found` is what verifying as many evaluated outputs, drawn uniformly, finds on average;
    `best_found` is what a choice that knew all labels would have found. Where `all_checked` is
    False not every label is known: then the first is estimated from the warm-up's error rate and
    the second is None. With neither a full check nor a labelled warm-up both are None.
    """

    outputs: int
    warmup_verified: int
    warmup_errors: int
    evaluated: int
    verified: int
    errors_found: int
    errors: int | None  # among the evaluated, where all are known
    random_found: float | None
    best_found: int | None
    all_checked: bool
    could_not_tell: int  # selected, and the verifier had no answer
    budget_exhausted: int  # the policy wanted to verify them
    missing_signal: int

    @property
    def hit_rate(self) -> float:
        """Errors found ÷ verified, in [0, 1]; NaN where nothing was verified."""
        return self.errors_found / self.verified if self.verified else float("nan")

    @property
    def above_random(self) -> float:
        """`errors_found` above `random_found`, in standard deviations of a uniform draw.

        That of the hypergeometric distribution; NaN where not every label is known, or no draw
        could have come out differently.
        """
        n, k, m = self.evaluated, self.errors, self.verified
        if k is None or self.random_found is None or n < 2:
            return float("nan")
        variance = m * (k / n) * (1 - k / n) * (n - m) / (n - 1)
        return (
            (self.errors_found - self.random_found) / sqrt(variance) if variance else float("nan")
        )


def summarise(results: Iterable[GateResult]) -> Summary:
    """Count a run's results; audits from outside count as known labels, not as verified."""
    results = list(results)
    warmup = [r for r in results if r.decision.reason is Reason.WARMUP]
    evaluated = [r for r in results if r.decision.reason is not Reason.WARMUP]
    mine = [r for r in evaluated if r.decision.verify and r.verified]
    found = sum(_wrong(r) for r in mine)
    labelled_warmup = [r for r in warmup if r.verified]
    all_checked = bool(evaluated) and all(r.verified for r in evaluated)
    errors = sum(map(_wrong, evaluated)) if all_checked else None
    if errors is not None:
        random_found: float | None = len(mine) * errors / len(evaluated)
    elif labelled_warmup:
        random_found = len(mine) * sum(map(_wrong, labelled_warmup)) / len(labelled_warmup)
    else:
        random_found = None
    return Summary(
        outputs=len(results),
        warmup_verified=len(labelled_warmup),
        warmup_errors=sum(map(_wrong, labelled_warmup)),
        evaluated=len(evaluated),
        verified=len(mine),
        errors_found=found,
        errors=errors,
        random_found=random_found,
        best_found=None if errors is None else min(len(mine), errors),
        all_checked=all_checked,
        could_not_tell=sum(r.decision.verify and not r.verified for r in results),
        budget_exhausted=sum(r.decision.reason is Reason.BUDGET_EXHAUSTED for r in results),
        missing_signal=sum(r.signals.state is SignalState.MISSING for r in results),
    )


def _wrong(result: GateResult) -> bool:
    return result.outcome is not None and result.outcome.error == 1
