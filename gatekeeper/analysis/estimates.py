"""The error rate of all outputs of a run, from those that were verified.

Every decision has the probability with which it was to verify, so each verdict can represent
similar outputs that were left out, with the inverse of that probability as weight (Hájek 1971).
Predictions of the other labels from signals, fitted to the verdicts, make the interval narrower
(Lehtonen & Veijanen 1998; "prediction-powered", Angelopoulos et al. 2023).

The estimate is for this run's outputs, not for all possible outputs of the model;
`analysis.rate_of_all` has the estimator, and `benchmarks/estimates.py` checks how often its
interval covers.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import asdict, dataclass, replace
from typing import Any

import numpy as np

from gatekeeper.analysis.outputs import OutputTable
from gatekeeper.analysis.predictions import cross_fitted
from gatekeeper.analysis.rate_of_all import rate_of_all
from gatekeeper.notebook import as_html
from gatekeeper.stats.interval import Interval
from gatekeeper.stats.mid_p import midp_interval
from gatekeeper.types import BoolArray, FloatArray, GateResult, Record
from gatekeeper.wording import all_of, counted, plural

__all__ = [
    "Estimates",
    "as_json",
    "estimate",
    "estimate_weighted",
    "interval",
    "rates",
    "show",
]


@dataclass(frozen=True, slots=True)
class Estimates:
    """Error rates: of the verified outputs (`naive`), and of all, estimated twice.

    None where it cannot be estimated. `why` states in a sentence why the naive rate is not that of
    all outputs, or why an estimate is missing; `notes` state what else the estimates assume.
    """

    naive: Interval | None
    weighted: Interval | None  # Hájek
    assisted: Interval | None  # by prediction
    outputs: int
    covered: int  # outputs that had a chance to be verified: the estimates are about these
    why: str
    notes: tuple[str, ...] = ()

    def _repr_html_(self) -> str:
        found = [(name, rate) for name, rate in rates(self) if rate is not None]
        return as_html(
            f"error rate of {self.covered:,} of {counted(self.outputs, 'output')}",
            [(name, f"{rate.value:.1%}", interval(rate)) for name, rate in found],
            heads=("", "estimate", "95 % interval"),
            notes=(self.why, *self.notes),
        )


def estimate(outputs: Iterable[Record | GateResult]) -> Estimates:
    """The error rate of all these outputs, from the verdicts of the gate that chose among them.

    An external verdict (`report_outcome` on an output not selected, `Record.verified` False) is no
    random sample, because it is not known why it was picked: it counts only where every output has
    a verdict, and then the rate is known. With `Record.verified` None a labelled record counts as
    verified by the gate.

    Parameters
    ----------
    outputs
        All of a run, the warm-up and those not verified included: `GateResult`s, or records of its
        log, which have ĉ as well and so predict better.

    Raises
    ------
    BadInputError
        An output is neither, or has a propensity outside [0, 1] or an ĉ that is not above 0.
    """
    table = OutputTable.of(outputs)
    p, label = table.propensity, table.label
    if not label.size:
        return Estimates(None, None, None, 0, 0, "There are no outputs.")
    drawn = table.drawn & np.isfinite(label)
    found = estimate_weighted(p, drawn, label, selected=int(table.selected.sum()))
    if found.weighted is None or np.isfinite(label).all():
        return found
    covered = p > 0.0
    at = np.flatnonzero(covered)
    p, label, drawn = p[covered], label[covered], drawn[covered]
    log_odds = cross_fitted(lambda some: table.raw(at[some]), drawn, label)
    return replace(found, assisted=rate_of_all(p, drawn, label, log_odds))


def estimate_weighted(
    p: FloatArray, drawn: BoolArray, label: FloatArray, *, selected: int
) -> Estimates:
    """`estimate` without predictions, from columns: no estimate is `assisted`, but a known rate.

    Parameters
    ----------
    p
        Propensities, shape (N,), N at least 1; NaN unknown.
    drawn
        Which outputs have a verdict of the gate's own, shape (N,).
    label
        1 wrong, 0 right, from any source, shape (N,); NaN unknown.
    selected
        How many were to be verified, as far as that is known.
    """
    naive = _naive(label[drawn])
    if np.isfinite(label).all():
        rate = float(label.mean())
        known = Interval(rate, rate, rate, label.size)
        why = "Every output has a verdict: the rate is known, not estimated."
        naive = known if drawn.all() else naive
        return Estimates(naive, known, known, label.size, label.size, why)
    covered = p > 0.0
    by_chance = covered & (p < 1.0)
    missing = selected - int(drawn.sum())
    refusal = _refusal(p, drawn, by_chance)
    if refusal:
        return Estimates(naive, None, None, label.size, int(covered.sum()), refusal)
    outputs = p.size
    p, label, drawn = p[covered], label[covered], drawn[covered]
    return Estimates(
        naive,
        rate_of_all(p, drawn, label, np.zeros(p.size)),
        None,
        outputs,
        p.size,
        _why(p),
        tuple(_notes(outputs, p.size, missing)),
    )


def show(estimates: Estimates) -> list[str]:
    """Lines of text: the rates in percent, then what they assume."""
    about = all_of(estimates.outputs, "output")
    if estimates.covered < estimates.outputs:
        about = f"{estimates.covered:,} of {counted(estimates.outputs, 'output')}"
    lines = [
        f"  {name:<38} {found.value:7.1%}   {interval(found)}"
        for name, found in rates(estimates)
        if found is not None
    ]
    shown = ", with 95 % intervals" if lines else ""
    return [f"Error rate of {about}{shown}:", *lines, estimates.why, *estimates.notes]


def rates(estimates: Estimates) -> list[tuple[str, Interval | None]]:
    """The three with a name each, for tables."""
    n = "verified" if estimates.naive is None else f"the {estimates.naive.n:,} verified"
    return [
        (f"naive: among {n} only", estimates.naive),
        ("weighted by propensity", estimates.weighted),
        ("the same, assisted by prediction", estimates.assisted),
    ]


def interval(found: Interval) -> str:
    """In percent; "known" where there is nothing to estimate."""
    if found.low == found.high:
        return "known"
    return f"{100 * found.low:.1f} – {100 * found.high:.1f}%"


def as_json(estimates: Estimates) -> dict[str, Any]:
    """The same as JSON values; null for what cannot be estimated."""
    return asdict(estimates)


# -- estimates ----------------------------------------------------------------------------------


def _naive(label: FloatArray) -> Interval | None:
    if not label.size:
        return None
    rate = float(label.mean())
    return replace(midp_interval(rate, label.size), n=label.size)


# -- sentences about the estimates --------------------------------------------------------------


def _refusal(p: FloatArray, drawn: BoolArray, by_chance: BoolArray) -> str | None:
    if np.isnan(p).any():
        return (
            f"The propensity of {np.isnan(p).sum():,} of {counted(p.size, 'output')} is not known, "
            "which an estimate for outputs without a verdict needs."
        )
    without = int((p == 0.0).sum())
    if without and not by_chance.any():
        return (
            f"{without:,} of {counted(p.size, 'output')} {plural(without, 'has', 'have')} "
            "propensity 0, so their error rate cannot be estimated. With explore above 0, a "
            "budget with a fraction or a horizon, and room in every group, every output has a "
            "chance."
        )
    least = by_chance if by_chance.any() else p > 0.0
    if not drawn[least].any():
        which = "with a propensity between 0 and 1" if by_chance.any() else "selected"
        outputs = counted(least.sum(), "output")
        if least.sum() == 1:
            return (
                f"The {outputs} {which} has no verdict yet, so its error rate cannot be estimated."
            )
        return (
            f"None of the {outputs} {which} has a verdict yet, so their error rate cannot be "
            "estimated."
        )
    return None


def _why(p: FloatArray) -> str:
    if p.min() == p.max():
        return (
            "All outputs were equally likely to be verified, so the naive rate is an "
            "estimate for all."
        )
    return (
        f"The naive rate is biased: outputs were verified with propensities from {p.min():.2g} to "
        f"{p.max():.2g}, so the verified ones are not a random sample of all; the other "
        "estimates weight every verdict by 1 / propensity."
    )


def _notes(outputs: int, covered: int, missing: int) -> Iterable[str]:
    if covered < outputs:
        yield (
            f"The estimates are for the {counted(covered, 'output')} that had a chance; the other "
            f"{outputs - covered:,} had none, for example after the budget was used up."
        )
    if missing:
        yield (
            f"Without a verdict: {counted(missing, 'selected output')}, assumed to be wrong as "
            "often as others that were as likely to be verified."
        )
