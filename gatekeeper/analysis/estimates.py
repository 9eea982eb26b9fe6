"""The error rate of all outputs of a run, from those that were verified.

Every decision carries the probability with which it was to verify, so each verdict can stand for
the outputs like it that were left out: it weighs one over that probability (Hájek 1971). Fitted to
the verdicts, the signals predict which of the others are wrong, and that makes it narrower
(Lehtonen & Veijanen 1998; "prediction-powered", Angelopoulos et al. 2023).

What is estimated is the rate of this run's outputs, not of all that the model might ever answer.
Outputs that were certain to be verified are known and add no uncertainty. The others fall into
parts, within which propensities differ by a factor of two at most. In a part of N outputs with
propensities p_i, of which v_i = 1 were drawn and y_i = 1 are wrong,

    rate = Σ m_i / N + Σ v_i/p_i (y_i - m_i) / Σ v_i/p_i

where log odds m_i are those predicted, shifted by the one number that makes the second term 0; for
the weighted estimate they are the same for all, and this is Hájek's Σ v y/p / Σ v/p. Predictions
are cross-fitted: no output's own verdict is in its m_i. The interval is that of the effective
number of independent labels (`stats.mid_p`), and intervals of parts add up by their squares, each
side separately (Zou & Donner 2008). `benchmarks/estimates.py` checks how often it covers.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass, replace
from math import hypot, inf, isnan, log, log1p, nan
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from gatekeeper.errors import BadInputError
from gatekeeper.notebook import as_html
from gatekeeper.stats.error_model import ErrorModel, Known, Raw
from gatekeeper.stats.interval import Interval
from gatekeeper.stats.mid_p import midp_interval
from gatekeeper.types import FloatArray, GateResult, Record, Signals

__all__ = [
    "Estimates",
    "as_json",
    "by_propensity",
    "estimate",
    "interval",
    "log_odds_of",
    "rate_of_all",
    "rates",
    "show",
]

FOLDS = 5  # predictions for a fifth of the outputs come from the verdicts on the other four
REFERENCE = 500  # outputs, at most, whose signals set the scale of predictions
WITHIN = 2.0  # factor by which propensities may differ in one part
CAUTION = 4.0  # labels of prior weight that the prediction explains nothing: it may by luck
SURE = 1e-6  # no prediction is closer to 0 or 1


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
            f"error rate of {self.covered:,} of {self.outputs:,} outputs",
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
    rows = [_row(output) for output in outputs]
    if not rows:
        return Estimates(None, None, None, 0, 0, "There are no outputs.")
    label = np.array([row.label for row in rows])
    drawn = np.array([row.drawn for row in rows]) & np.isfinite(label)
    p = np.array([row.propensity for row in rows])
    naive = _naive(label[drawn])
    if np.isfinite(label).all():
        rate = float(label.mean())
        known = Interval(rate, rate, rate, label.size)
        why = "Every output has a verdict: the rate is known, not estimated."
        naive = known if drawn.all() else naive
        return Estimates(naive, known, known, label.size, label.size, why)
    covered = p > 0.0
    by_chance = covered & (p < 1.0)
    missing = sum(row.selected for row in rows) - int(drawn.sum())
    refusal = _refusal(p, drawn, by_chance)
    if refusal:
        return Estimates(naive, None, None, label.size, int(covered.sum()), refusal)
    raw = [row.raw for row, c in zip(rows, covered, strict=True) if c]
    p, label, drawn = p[covered], label[covered], drawn[covered]
    flat = np.zeros(p.size)
    return Estimates(
        naive,
        rate_of_all(p, drawn, label, flat),
        rate_of_all(p, drawn, label, _cross_fitted(raw, drawn, label)),
        len(rows),
        p.size,
        _why(p),
        tuple(_notes(len(rows), p.size, missing)),
    )


def show(estimates: Estimates) -> list[str]:
    """Lines of text: the rates in percent, then what they assume."""
    about = "all" if estimates.covered == estimates.outputs else f"{estimates.covered:,} of"
    lines = [f"Error rate of {about} {estimates.outputs:,} outputs, with 95 % intervals:"]
    for name, found in rates(estimates):
        if found is not None:
            lines.append(f"  {name:<38} {found.value:7.1%}   {interval(found)}")
    return [*lines, estimates.why, *estimates.notes]


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


# -- what is known of each output ---------------------------------------------------------------


class _Row(NamedTuple):
    raw: Raw  # what predictions are made from
    propensity: float  # NaN unknown
    selected: bool  # as far as that is known
    drawn: bool  # the label, if there is one, is the gate's own
    label: float  # NaN unknown


def _row(output: Record | GateResult) -> _Row:
    if isinstance(output, Record):
        row = _row_of_record(output)
    elif isinstance(output, GateResult):
        row = _row_of_result(output)
    else:
        raise BadInputError(
            f"output={output!r:.80}: give a run's GateResults, or the records of its log"
        )
    if not (isnan(row.propensity) or 0.0 <= row.propensity <= 1.0):
        raise BadInputError(
            f"id={output.id!r:.80}: propensity={row.propensity!r} must lie in [0, 1]"
        )
    return row


def _row_of_record(record: Record) -> _Row:
    if not record.cost_estimate > 0.0:
        raise BadInputError(
            f"id={record.id!r:.80}: cost_estimate={record.cost_estimate!r} must be above 0"
        )
    p = nan if record.propensity is None else record.propensity
    drawn = record.error is not None and record.verified is not False
    # A log's records do not state for which selected outputs no verdict came, except where the
    # propensity is 1: those were selected.
    selected = drawn or p == 1.0
    label = nan if record.error is None else float(record.error)
    raw = _raw(record.signals, log(record.cost_estimate))._replace(features=record.features)
    return _Row(raw, p, selected, drawn, label)


def _row_of_result(result: GateResult) -> _Row:
    decision = result.decision
    label = None if result.outcome is None else result.outcome.error
    return _Row(
        _raw(result.signals, 0.0),
        decision.propensity,
        decision.verify,
        decision.verify,
        nan if label is None else float(label),
    )


def _raw(h: Signals, log_cost: float) -> Raw:
    return Raw(h.h1, h.h2, h.h3, log_cost, log1p(h.n_tokens))


# -- estimates ----------------------------------------------------------------------------------


def _naive(label: FloatArray) -> Interval | None:
    if not label.size:
        return None
    rate = float(label.mean())
    return replace(midp_interval(rate, label.size), n=label.size)


class Part(NamedTuple):
    """Outputs whose rate of errors is estimated by itself."""

    size: int
    rate: float  # in [low, high]; any where labels is 0
    labels: float  # their effective number; 0 without a verdict, inf where the rate is known


def rate_of_all(
    p: FloatArray, drawn: NDArray[np.bool_], label: FloatArray, log_odds: FloatArray
) -> Interval:
    """All outputs from their parts. `p` > 0, `drawn` means with a label; arrays of shape (N,)."""
    value = below = above = 0.0
    for part in _parts_of(p, drawn, label, log_odds):
        found = _interval(part)
        share = part.size / p.size
        value += share * part.rate
        below = hypot(below, share * (part.rate - found.low))
        above = hypot(above, share * (found.high - part.rate))
    wrong = int(label[drawn].sum())
    right = int(drawn.sum()) - wrong
    return Interval(
        value,
        max(value - below, wrong / p.size),
        min(value + above, 1.0 - right / p.size),
        wrong + right,
    )


def _parts_of(
    p: FloatArray, drawn: NDArray[np.bool_], label: FloatArray, log_odds: FloatArray
) -> list[Part]:
    """Of the same arrays; at least one is drawn. A part without a verdict has the rate of all."""
    which = by_propensity(p)
    masks = [which == k for k in np.unique(which).tolist()]
    weight = np.zeros(p.size)
    for mask in masks:
        n, of_n = int(mask.sum()), int((mask & drawn).sum())
        if not of_n:
            continue
        # Who was certain to be verified and has no verdict is missing at random among those.
        weight[mask] = n / of_n if p[mask][0] == 1.0 else 1.0 / p[mask]
    crude = float((weight * np.where(drawn, label, 0.0)).sum() / weight[drawn].sum())
    found = []
    for mask in masks:
        mine, n = mask & drawn, int(mask.sum())
        wrong = int(label[mine].sum())
        right = int(mine.sum()) - wrong
        low, high = wrong / n, (n - right) / n
        rate, labels = crude, 0.0
        if mine.any():
            rate, labels = _part(weight[mine], label[mine], log_odds[mine], log_odds[mask])
        found.append(Part(n, min(max(rate, low), high), labels))
    return found


def by_propensity(p: FloatArray) -> NDArray[np.intp]:
    """The part of each output (N,): those certain to be verified, and the others by propensity."""
    edges: list[float] = []
    values = np.unique(p[p < 1.0]).tolist()
    start = values[0] if values else 1.0
    for value in values:
        if value > WITHIN * start:
            edges.append(value)
            start = value
    return np.searchsorted([*edges, 1.0], p, side="right")


def _part(
    weight: FloatArray, label: FloatArray, log_odds: FloatArray, of_all: FloatArray
) -> tuple[float, float]:
    """Rate of one part from its drawn outputs (n,), and their effective number of labels;
    `of_all` (N,) are predictions."""
    from scipy.optimize import brentq
    from scipy.special import expit

    total = float(weight.sum())
    # Where all agree exactly that: a rate an ulp below 1 has no finite log odds.
    rate = float(label[0]) if np.ptp(label) == 0.0 else float(weight @ label) / total
    # The variance of Σ v/p (y - m) is Σ (1-p)/p (y - m)²: of the drawn, each 1/p times.
    spread = weight * (weight - 1.0)
    if not spread.any():
        return rate, inf
    labels = total**2 / float(spread.sum())
    if 0.0 < label.sum() < label.size:

        def misfit(shift: float) -> float:
            return float(weight @ (label - expit(log_odds + shift)))

        shift = brentq(misfit, -50.0, 50.0)
        rate = float(expit(of_all + shift).mean())
        left = float(spread @ (label - expit(log_odds + shift)) ** 2)
        left /= float(spread.sum()) * rate * (1.0 - rate)  # of the variance without prediction
        n = total**2 / float(weight @ weight)
        labels *= (n + CAUTION) / (n * left + CAUTION)
    return rate, labels


def _interval(part: Part) -> Interval:
    if part.labels == 0.0:
        return Interval(part.rate, 0.0, 1.0)
    if part.labels == inf:
        return Interval(part.rate, part.rate, part.rate)
    return midp_interval(part.rate, part.labels)


def log_odds_of(raw: Sequence[Raw], drawn: NDArray[np.bool_], label: FloatArray) -> FloatArray:
    """Predicted log odds of an error (N,), from the verdicts on the outputs drawn."""
    everything = np.ones(len(raw), dtype=bool)
    return _log_odds(raw, drawn, label, everything)


def _cross_fitted(raw: Sequence[Raw], drawn: NDArray[np.bool_], label: FloatArray) -> FloatArray:
    """The same, each from the verdicts on outputs of other folds."""
    found = np.empty(len(raw))
    fold = np.arange(len(raw)) % FOLDS
    for k in range(FOLDS):
        found[fold == k] = _log_odds(raw, drawn & (fold != k), label, fold == k)
    return found


def _log_odds(
    raw: Sequence[Raw], drawn: NDArray[np.bool_], label: FloatArray, of: NDArray[np.bool_]
) -> FloatArray:
    known = [Known(raw[i], int(label[i]), nan) for i in np.flatnonzero(drawn).tolist()]
    model = ErrorModel.fit(raw[:: -(-len(raw) // REFERENCE)], known)
    asked = [raw[i] for i in np.flatnonzero(of).tolist()]
    p = model.of_rows(asked)[0].clip(SURE, 1.0 - SURE)
    return np.asarray(np.log(p) - np.log1p(-p))


# -- sentences about the estimates --------------------------------------------------------------


def _refusal(p: FloatArray, drawn: NDArray[np.bool_], by_chance: NDArray[np.bool_]) -> str | None:
    if np.isnan(p).any():
        return (
            f"The propensity of {np.isnan(p).sum():,} of {p.size:,} outputs is not known, and "
            "without it verdicts on some carry no information on the others."
        )
    without = int((p == 0.0).sum())
    if without and not by_chance.any():
        return (
            f"{without:,} of {p.size:,} outputs had no chance to be verified, so that their "
            "error rate cannot be estimated: explore above 0, and a budget with a fraction or a "
            "horizon, would have left each a chance."
        )
    least = by_chance if by_chance.any() else p > 0.0
    if not drawn[least].any():
        which = "left to chance" if by_chance.any() else "selected"
        return (
            f"None of the {least.sum():,} outputs {which} has a verdict yet, so that their error "
            "rate cannot be estimated."
        )
    return None


def _why(p: FloatArray) -> str:
    if p.min() == p.max():
        return (
            "All outputs were equally likely to be verified, so that the naive rate is an "
            "estimate for all."
        )
    return (
        f"The naive rate is biased: outputs were verified with propensities from {p.min():.2g} to "
        f"{p.max():.2g}, so the verified ones are no random sample of all; the other estimates "
        "weigh every verdict by one over its propensity."
    )


def _notes(outputs: int, covered: int, missing: int) -> Iterable[str]:
    if covered < outputs:
        yield (
            f"The estimates are for the {covered:,} outputs that had a chance; the other "
            f"{outputs - covered:,} had none, as after the budget was used up."
        )
    if missing:
        yield (
            f"{missing:,} selected outputs have no verdict; they are assumed to be wrong as often "
            "as others that were as likely to be verified."
        )
