"""Counts of a run, compared with a random and with the best possible selection."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from math import sqrt

from gatekeeper.types import GateResult, Reason, SignalState

__all__ = ["Summary", "summarise"]


@dataclass(frozen=True, slots=True)
class Summary:
    """Counts of outputs. "Evaluated" are those after the warm-up, which verifies everything.

    `random_found` is the expected number of errors among as many evaluated outputs drawn uniformly;
    `best_found` is that of a selection that knows all labels. If `all_checked` is False, not every
    label is known: then the first is estimated from the error rate of the warm-up, and the second
    is None. Without a labelled warm-up, both are None.
    """

    outputs: int
    warmup_verified: int
    warmup_errors: int
    evaluated: int
    verified: int
    errors_found: int
    errors: int | None  # among the evaluated, if all labels are known
    random_found: float | None
    best_found: int | None
    all_checked: bool
    could_not_tell: int  # selected, but without a verdict
    budget_exhausted: int  # selected by the policy, but the budget had no room
    missing_signal: int

    @property
    def hit_rate(self) -> float:
        """Errors found ÷ verified, in [0, 1]; NaN if nothing was verified."""
        return self.errors_found / self.verified if self.verified else float("nan")

    @property
    def above_random(self) -> float:
        """`errors_found` minus `random_found`, in standard deviations of a uniform draw.

        The draw is hypergeometric. NaN if not every label is known or the variance is 0.
        """
        n, k, m = self.evaluated, self.errors, self.verified
        if k is None or self.random_found is None or n < 2:
            return float("nan")
        variance = m * (k / n) * (1 - k / n) * (n - m) / (n - 1)
        return (
            (self.errors_found - self.random_found) / sqrt(variance) if variance else float("nan")
        )


def summarise(results: Iterable[GateResult]) -> Summary:
    """Count the results of a run.

    Parameters
    ----------
    results
        All results, in any order. External verdicts count as known labels, not as verified.
    """
    results = list(results)
    warmup = [r for r in results if r.decision.reason is Reason.WARMUP]
    evaluated = [r for r in results if r.decision.reason is not Reason.WARMUP]
    verified = [r for r in evaluated if r.decision.verify and r.verified]
    found = sum(_wrong(r) for r in verified)
    labelled_warmup = [r for r in warmup if r.verified]
    all_checked = bool(evaluated) and all(r.verified for r in evaluated)
    errors = sum(map(_wrong, evaluated)) if all_checked else None
    if errors is not None:
        random_found: float | None = len(verified) * errors / len(evaluated)
    elif labelled_warmup:
        random_found = len(verified) * sum(map(_wrong, labelled_warmup)) / len(labelled_warmup)
    else:
        random_found = None
    return Summary(
        outputs=len(results),
        warmup_verified=len(labelled_warmup),
        warmup_errors=sum(map(_wrong, labelled_warmup)),
        evaluated=len(evaluated),
        verified=len(verified),
        errors_found=found,
        errors=errors,
        random_found=random_found,
        best_found=None if errors is None else min(len(verified), errors),
        all_checked=all_checked,
        could_not_tell=sum(r.decision.verify and not r.verified for r in results),
        budget_exhausted=sum(r.decision.reason is Reason.BUDGET_EXHAUSTED for r in results),
        missing_signal=sum(r.signals.state is SignalState.MISSING for r in results),
    )


def _wrong(result: GateResult) -> bool:
    return result.outcome is not None and result.outcome.error == 1
