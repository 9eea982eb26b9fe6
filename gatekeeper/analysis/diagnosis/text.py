"""The sentences of a diagnosis' conclusion."""

from __future__ import annotations

from collections.abc import Sequence
from math import ceil

from gatekeeper.analysis.diagnosis.data import Odds, PartitionResult
from gatekeeper.analysis.odds import odds_text
from gatekeeper.stats.interval import Interval
from gatekeeper.wording import counted, minus, p_text, plural, signed

__all__ = [
    "BUDGET_TOO_SMALL",
    "CHOSEN",
    "NOT_COMPARABLE",
    "NO_EVIDENCE",
    "NO_REPLAY",
    "ONE_STRATUM",
    "SIGNAL_OPEN",
    "SIGNAL_USELESS",
    "better",
    "equal",
    "no_evidence_yet",
    "odds",
    "too_few_labels",
    "undecided",
    "unequal_correlations",
    "unequal_error_rates",
    "worse",
]

CHOSEN = (
    "Cannot tell: labels that a policy chose do not show how strata compare. Verify a random "
    "sample (explore), or everything."
)
ONE_STRATUM = "All outputs fall into one cost stratum, so no strata can be compared."
NO_REPLAY = "Only a replay can show whether cst then does better than threshold."
BUDGET_TOO_SMALL = "The budget is too small to verify anything: raise beta."
NOT_COMPARABLE = (
    "Neither correlations nor error rates differ measurably between strata, but score ÷ cost is "
    "not comparable across them. "
)
NO_EVIDENCE = "No evidence that strata differ: one threshold serves them all."
SIGNAL_OPEN = (
    " There are too few labels to show whether either policy hits more than a random draw."
)
SIGNAL_USELESS = (
    " The signal is no better than random here: neither policy hits more than a random draw."
)


def too_few_labels(labelled: int, more: float) -> str:
    """Fewer than two labels are of one kind; about `more` further ones are needed, if above 0."""
    also = f" About {_about(more)} more are needed." if more > 0 else ""
    return (
        f"Cannot tell: of the {counted(labelled, 'label')} after the warm-up fewer than two are of "
        f"one kind.{also}"
    )


def unequal_correlations(rho: Sequence[float], p: float) -> str:
    """The range of the strata's correlations ρ_k, with the p-value of their equality."""
    return (
        "the score's correlation with errors lies between "
        f"{minus(f'{min(rho):.2f}')} and {minus(f'{max(rho):.2f}')} ({p_text(p)})"
    )


def unequal_error_rates(rates: Sequence[float], p: float) -> str:
    """The range of the strata's error rates, with the p-value of their equality."""
    return f"the error rate lies between {min(rates):.0%} and {max(rates):.0%} ({p_text(p)})"


def better(threshold: PartitionResult, cst: PartitionResult) -> str:
    """CST does better in replay."""
    return f"CST does better than Threshold {_by(threshold, cst)}."


def odds(found: Odds) -> str:
    """The odds of the next run, as a clause."""
    return odds_text("cst", "threshold", found.gain, found.cst, found.threshold)


def worse(threshold: PartitionResult, cst: PartitionResult) -> str:
    """CST does worse in replay."""
    return f"CST does worse than Threshold {_by(threshold, cst)}."


def equal(gain: Interval) -> str:
    """Both policies do equally well in replay, within a narrow interval."""
    return f"CST and Threshold still do equally well ({_gain(gain)})."


def undecided(gain: Interval, more: float) -> str:
    """The replay does not decide; about `more` further labels would."""
    return (
        f"Too few labels to decide whether CST then does better ({_gain(gain)}): about "
        f"{_about(more)} more are needed."
    )


def no_evidence_yet(labelled: int, labels: float, more: float) -> str:
    """Strata may still differ; about `more` further labels would show it. Those that there are
    carry as much information as `labels` drawn at random."""
    there = counted(labelled, "label")
    if round(labels) != labelled:
        there += f", as informative as {labels:,.0f} drawn at random,"
    return (
        f"No evidence that strata differ, but {there} {plural(labelled, 'is', 'are')} too few to "
        f"decide: about {_about(more)} more are needed."
    )


def _by(threshold: PartitionResult, cst: PartitionResult) -> str:
    gain = cst.above_threshold
    by = f"by {abs(gain.value):.3f} ± {gain.margin:.3f} in hit rate"
    if (cst.recall - threshold.recall) * gain.value < 0:  # a rule that spends less may hit more
        by += f" (recall is {cst.recall:.3f}, Threshold's {threshold.recall:.3f})"
    return by


def _gain(gain: Interval) -> str:
    return f"{signed(gain.value, 3)} ± {gain.margin:.3f} in hit rate"


def _about(n: float) -> str:
    """Two significant digits, rounded up."""
    step = 10 ** max(len(str(ceil(n))) - 2, 0)
    return f"{ceil(n / step) * step:,}"
