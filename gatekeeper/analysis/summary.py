"""Counts of a run, compared with a random and with the best possible selection."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from math import sqrt

import numpy as np

from gatekeeper.types import BoolArray, GateResult, Reason, SignalState

__all__ = ["Summary", "summarise", "summary_of"]


@dataclass(frozen=True, slots=True)
class Summary:
    """Counts of outputs. "Evaluated" are those after the warm-up, which verifies everything.

    `random_found` is the expected number of errors among as many evaluated outputs drawn uniformly;
    `best_found` is that of a selection by the true labels. If `all_checked` is False, not every
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
    def warmup(self) -> int:
        """How many outputs were the warm-up; of some there may be no verdict."""
        return self.outputs - self.evaluated

    @property
    def hit_rate(self) -> float:
        """Errors found ÷ verified, in [0, 1]; NaN if nothing was verified."""
        return self.errors_found / self.verified if self.verified else float("nan")

    @property
    def all_errors(self) -> int | None:
        """Errors among all outputs; None if a label is unknown."""
        after = self.errors if self.evaluated else 0
        if after is None or self.warmup_verified < self.warmup:
            return None
        return self.warmup_errors + after

    @property
    def above_random(self) -> float:
        """`errors_found` minus `random_found`, in standard deviations under a uniform draw.

        With every label known the draw is hypergeometric. Otherwise the warm-up, from which
        `random_found` is estimated, varies too: that is the test of two equal rates. NaN without a
        labelled warm-up, and if the variance is 0.
        """
        n, k, m, first = self.evaluated, self.errors, self.verified, self.warmup_verified
        if self.random_found is None or n < 2 or not m:
            return float("nan")
        if k is not None:
            variance = m * (k / n) * (1 - k / n) * (n - m) / (n - 1)
        else:
            rate = (self.errors_found + self.warmup_errors) / (m + first)
            variance = m * rate * (1 - rate) * (1 + m / first)
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
    return summary_of(
        warmup=_mask(r.decision.reason is Reason.WARMUP for r in results),
        selected=_mask(r.decision.verify for r in results),
        labelled=_mask(r.verified for r in results),
        wrong=_mask(r.outcome is not None and r.outcome.error == 1 for r in results),
        budget_exhausted=sum(r.decision.reason is Reason.BUDGET_EXHAUSTED for r in results),
        missing_signal=sum(r.signals.state is SignalState.MISSING for r in results),
    )


def summary_of(
    *, warmup: BoolArray, selected: BoolArray, labelled: BoolArray, wrong: BoolArray,
    budget_exhausted: int, missing_signal: int,
) -> Summary:  # fmt: skip
    """The summary of a run, from columns.

    Parameters
    ----------
    warmup, selected, labelled, wrong
        (N,): decided on in the warm-up, to be verified, with a verdict on right or wrong from
        anywhere, and with that of wrong.
    budget_exhausted, missing_signal
        Counts of outputs.
    """
    evaluated, labelled_warmup = ~warmup, warmup & labelled
    chosen = evaluated & selected & labelled
    n, checks = int(evaluated.sum()), int(chosen.sum())
    in_warmup, wrong_in_warmup = int(labelled_warmup.sum()), int((labelled_warmup & wrong).sum())
    all_checked = n > 0 and bool(labelled[evaluated].all())
    errors = int((evaluated & wrong).sum()) if all_checked else None
    if errors is not None:
        random_found: float | None = checks * errors / n
    elif in_warmup:
        random_found = checks * wrong_in_warmup / in_warmup
    else:
        random_found = None
    return Summary(
        outputs=warmup.size,
        warmup_verified=in_warmup,
        warmup_errors=wrong_in_warmup,
        evaluated=n,
        verified=checks,
        errors_found=int((chosen & wrong).sum()),
        errors=errors,
        random_found=random_found,
        best_found=None if errors is None else min(checks, errors),
        all_checked=all_checked,
        could_not_tell=int((selected & ~labelled).sum()),
        budget_exhausted=budget_exhausted,
        missing_signal=missing_signal,
    )


def _mask(values: Iterable[bool]) -> BoolArray:
    return np.fromiter(values, dtype=np.bool_)
