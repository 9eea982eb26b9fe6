"""The mean score of all outputs of a run, from those that were verified.

The score is the mean of any bounded metric: 1 for a right and 0 for a wrong output, or the metric's
own value (`Outcome.value`). The values of the outputs that were not verified are unknown, and there
are two kinds of uncertainty, each reported alone and together:

- unchecked: from the choice of the verified outputs. It concerns the score of this run's outputs,
  and is 0 if all were verified;
- questions: from the choice of the run's questions among all possible ones. Repeated outputs of one
  question are not independent.

If no estimate can be given, `bounds` has the possible range: all unknown values at the lowest, and
at the highest, value. `analysis.mean_of_all` has the estimator, and `benchmarks/scores.py` checks
its error and how often its interval covers.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from itertools import compress
from math import inf, isfinite, nan
from typing import Any

import numpy as np

from gatekeeper.analysis.mean_of_all import (
    Drawn,
    Mean,
    interval_of,
    mean_of_all,
    possible_mean,
    unchecked_interval,
)
from gatekeeper.analysis.outputs import OutputTable
from gatekeeper.analysis.questions import spread_of_questions
from gatekeeper.arguments import is_number
from gatekeeper.errors import BadInputError
from gatekeeper.notebook import as_html
from gatekeeper.stats.interval import Interval
from gatekeeper.stats.value_model import Design
from gatekeeper.types import FloatArray, GateResult, Record
from gatekeeper.types.values import as_floats
from gatekeeper.wording import all_of, counted, minus

__all__ = [
    "ScoreEstimate",
    "estimate_score",
    "estimate_score_of_run",
    "range_of",
    "score_as_json",
    "score_rows",
    "show_score",
]


@dataclass(frozen=True, slots=True)
class ScoreEstimate:
    """The mean score of all outputs, in the metric's unit.

    Attributes
    ----------
    bounds
        The lowest and the highest possible value, given the verdicts; always present. Its `value`
        is NaN, unless both are equal.
    unchecked
        The estimate and its 95 % interval for the score of this run's outputs: the uncertainty is
        that of the outputs without a verdict. If some outputs had no chance to be verified, the
        ends hold for any values of those. None: only `bounds` are known.
    questions
        The same estimate with the uncertainty of the sampling of questions alone.
    both
        The same estimate with the sum of both uncertainties.
    checks
        How many outputs have a verdict that counts.
    outputs
        How many there are.
    explained
        Share of the variance of the estimate that predictions remove: (0, 1); 0 where there is
        none to remove, below 0 where they add some.
    why
        A sentence: the basis of the estimate, or why there is none.
    notes
        What else it assumes.
    """

    bounds: Interval
    unchecked: Interval | None
    questions: Interval | None
    both: Interval | None
    checks: int
    outputs: int
    explained: float
    why: str
    notes: tuple[str, ...] = ()

    @property
    def point(self) -> float | None:
        """The estimate; None where only bounds are known."""
        return None if self.unchecked is None else self.unchecked.value

    @property
    def low(self) -> float:
        """The lower end for this run's outputs: of the interval, else of the bounds."""
        return (self.unchecked or self.bounds).low

    @property
    def high(self) -> float:
        """The upper end for this run's outputs: of the interval, else of the bounds."""
        return (self.unchecked or self.bounds).high

    def _repr_html_(self) -> str:
        return as_html(
            f"score of {counted(self.outputs, 'output')}, {self.checks:,} of them checked",
            score_rows(self),
            heads=("", "estimate", "from – to"),
            notes=(self.why, *self.notes),
        )


def estimate_score(
    outputs: Iterable[Record | GateResult],
    *,
    values: Mapping[str, float] | None = None,
    bounds: tuple[float, float] = (0.0, 1.0),
    weights: Mapping[str, float] | None = None,
    questions: Mapping[str, str] | None = None,
) -> ScoreEstimate:
    """The mean score of all these outputs, from the verdicts of the gate that chose among them.

    Parameters
    ----------
    outputs
        All of a run, those not verified included: `GateResult`s, or records of its log, which have
        ĉ and features as well and so predict better. Or all of one task, of a run over several.
    values
        A metric's value by id, for outputs that were verified; an id that is absent has none. By
        default the value of the verdict: `Outcome.value`, else 1 for right and 0 for wrong.
    bounds
        The least and the largest value that the metric can have.
    weights
        How much an output counts, above 0, by id; 1 for those that are absent.
    questions
        The question that an output answers, by id: outputs of one question are repeats. By default
        each has its own.

    Returns
    -------
    ScoreEstimate
        Exact where every output has a verdict.

    Raises
    ------
    BadInputError
        There are no outputs, or a value, a weight, a propensity or the bounds cannot be used.
    """
    return _estimated(OutputTable.of(outputs), values, bounds, weights, questions)


def estimate_score_of_run(outputs: Iterable[Record | GateResult]) -> ScoreEstimate:
    """`estimate_score` of the values of the verdicts, by a metric whose bounds are not given: they
    are `range_of` the values, as a note states.
    """
    table = OutputTable.of(outputs)
    bounds = range_of(table.value[np.isfinite(table.label) & np.isfinite(table.value)].tolist())
    found = _estimated(table, bounds=bounds)
    if bounds == (0.0, 1.0):
        return found
    low, high = (minus(f"{end:g}") for end in bounds)
    return replace(found, notes=(*found.notes, f"Values are taken to be from {low} to {high}."))


def range_of(values: Sequence[float]) -> tuple[float, float]:
    """The range that a metric has, by these values: [0, 1], [0, 100], or what was observed.

    Beyond [0, 100] the bounds of the score hold only if no other value is outside of what was
    observed.
    """
    low, high = min(values, default=0.0), max(values, default=1.0)
    for top in (1.0, 100.0):
        if low >= 0.0 and high <= top:
            return 0.0, top
    return low, max(high, low + 1.0)


def _estimated(
    table: OutputTable,
    values: Mapping[str, float] | None = None,
    bounds: tuple[float, float] = (0.0, 1.0),
    weights: Mapping[str, float] | None = None,
    questions: Mapping[str, str] | None = None,
) -> ScoreEstimate:
    if not table.ids:
        raise BadInputError("outputs=[]: give all outputs of a run, also those not verified")
    ends = as_floats("bounds", bounds).tolist()
    low, high = ends if isinstance(ends, list) and len(ends) == 2 else (nan, nan)
    if not (isfinite(high - low) and low < high):
        raise BadInputError(
            f"bounds={bounds!r}: give two numbers, the lower one first, with a finite difference"
        )
    value = _values(table, values, bounds)
    weight = np.array([_weight(id_, weights) for id_ in table.ids])
    weight = np.ldexp(weight, -np.frexp(weight.max())[1])  # at most 1: squares of weights add up
    y = (value - low) / (high - low)
    found = _Sample(table, y, weight)
    mean, why = found.mean()
    notes = () if mean is None else found.notes()
    possible = found.possible()
    scale = _Scale(low, high - low, value, weight)
    unchecked = asked = both = None
    if mean is not None:
        named = [_question(id_, questions) for id_ in found.with_chance]
        more = spread_of_questions(mean, found.drawn, named)
        unchecked, asked, both = (
            scale.of(found.with_no_chance(interval))
            for interval in (
                unchecked_interval(mean),
                interval_of(mean, more),
                interval_of(mean, mean.spread + more),
            )
        )
    return ScoreEstimate(
        bounds=scale.of(possible),
        unchecked=unchecked,
        questions=asked,
        both=both,
        checks=found.checks,
        outputs=len(table.ids),
        explained=0.0 if mean is None else mean.explained,
        why=why,
        notes=notes,
    )


def show_score(found: ScoreEstimate, name: str = "Score") -> list[str]:
    """Lines of text: the estimate with both uncertainties, then its basis."""
    lines = [f"{name} of {all_of(found.outputs, 'output')}, {found.checks:,} of them checked:"]
    for what, value, ends in score_rows(found):
        lines.append(f"  {what:<44} {value:>8}   {ends}")
    return [*lines, found.why, *found.notes]


def score_as_json(found: ScoreEstimate) -> dict[str, Any]:
    """The same as JSON values; null for what cannot be estimated."""
    values = asdict(found)
    values["bounds"] = {"low": found.bounds.low, "high": found.bounds.high}
    return {"point": found.point, "low": found.low, "high": found.high, **values}


def score_rows(found: ScoreEstimate) -> list[tuple[str, str, str]]:
    """What is known, for tables: its name, the estimate, and the ends."""
    return [(name, _number(row.value), _ends(row)) for name, row in _rows(found)]


def _rows(found: ScoreEstimate) -> list[tuple[str, Interval]]:
    """What is known, with a name each, for tables."""
    if found.unchecked is None:
        return [("what is possible", found.bounds)]
    named = [
        ("of these outputs", found.unchecked),
        ("with the sampling of questions", found.both),
    ]
    return [(name, interval) for name, interval in named if interval is not None]


def _number(value: float) -> str:
    if value != value:
        return ""
    return minus(f"{value:z.4f}" if abs(value) < 1e9 else f"{value:.4g}")


def _ends(found: Interval) -> str:
    if found.low == found.high:
        return "known"
    return f"{_number(found.low)} – {_number(found.high)}"


# -- what is known of each output ---------------------------------------------------------------


def _values(
    table: OutputTable, values: Mapping[str, float] | None, bounds: tuple[float, float]
) -> FloatArray:
    """Of the outputs with a verdict (N,): without one, a value of the metric is unchecked."""
    found = table.value
    if values is not None:
        found = as_floats("values", [values.get(id_, nan) for id_ in table.ids])
    found = np.where(np.isnan(table.label), nan, found)
    if (bad := np.flatnonzero((found < bounds[0]) | (found > bounds[1]))).size:
        raise BadInputError(
            f"id={table.ids[bad[0]]!r:.80}: value={found[bad[0]].item()!r} lies outside "
            f"bounds={bounds!r}: give the least and the largest value that the metric can have"
        )
    return found


def _weight(id_: str, weights: Mapping[str, float] | None) -> float:
    weight = 1.0 if weights is None else weights.get(id_, 1.0)
    if not (is_number(weight) and 0.0 < weight < inf):
        raise BadInputError(f"id={id_!r:.80}: weight={weight!r} must be a number above 0")
    return float(weight)


def _question(id_: str, questions: Mapping[str, str] | None) -> str:
    return id_ if questions is None else questions.get(id_, id_)


class _Scale:
    """From [0, 1] to the metric's unit; exact where everything is known."""

    def __init__(self, low: float, width: float, value: FloatArray, weight: FloatArray) -> None:
        self._low, self._width = low, width
        self._exact: float | None = None
        if np.isfinite(value).all():
            same = np.ptp(weight) == 0.0
            self._exact = float(value.mean() if same else weight @ value / weight.sum())

    def of(self, found: Interval) -> Interval:
        if self._exact is not None and found.low == found.high:
            return Interval(self._exact, self._exact, self._exact, found.n)
        value, low, high = (
            self._low + self._width * end for end in (found.value, found.low, found.high)
        )
        return Interval(value, low, high, found.n)


class _Sample:
    """The outputs of a run as a sample: what is known, and what follows for the others."""

    def __init__(self, table: OutputTable, y: FloatArray, weight: FloatArray) -> None:
        self._table, self._y, self._weight = table, y, weight
        self._p = table.propensity
        # A verdict from outside is not a random sample: it counts only if all outputs then have
        # verdicts. Otherwise it only limits what is possible.
        self._complete = bool(np.isfinite(y).all())
        self._known = np.isfinite(y) & (table.drawn | self._complete)
        self.checks = int(self._known.sum())
        if self._complete:
            self._p = np.ones(y.size)
        chance = self._chance = self._p != 0.0  # or not known
        self.without = int((~chance).sum())
        self._share = float(weight[chance].sum() / weight.sum())
        self.drawn = Drawn(self._p[chance], self._known[chance], y[chance], weight[chance])
        self.with_chance = list(compress(table.ids, chance.tolist()))

    def possible(self) -> Interval:
        """The least and the most that is possible: every verdict counts, also one from outside."""
        low, high = possible_mean(self._y, self._weight)
        return Interval(low if low == high else nan, low, high, int(np.isfinite(self._y).sum()))

    def mean(self) -> tuple[Mean | None, str]:
        """The mean of all with a sentence on it, or None and why there is none."""
        unknown, n = int(np.isnan(self._p).sum()), self._p.size
        if unknown:
            return None, (
                f"The propensity of {unknown:,} of {counted(n, 'output')} is not known: the bounds "
                "hold for any values of the outputs without a verdict."
            )
        by_chance = (self.drawn.p < 1.0) & self.drawn.known
        if self.without and not by_chance.any():  # those certain are not like the others
            return None, (
                f"{self.without:,} of {counted(n, 'output')} had no chance to be verified: the "
                "bounds hold for any values of theirs. With the goal “score” every output has a "
                "chance, unless a group is full."
            )
        table = self._table.raw(self._chance)
        columns = None if self._complete else Design.of(table).of_rows(table)
        found = mean_of_all(self.drawn, columns)
        if found is not None and self.without:
            return found, (
                f"{self.without:,} of {counted(n, 'output')} had no chance to be verified: the "
                "estimate assumes that they are like the others, low and high do not. With the "
                "goal “score” and a budget in verifications every output up to the horizon has "
                "one; in another unit give it startup= for all verifications that run at once."
            )
        if found is None:
            return None, (
                "No output with a propensity below 1 has a verdict yet: the bounds hold for any "
                "values of theirs."
            )
        if self._complete:
            return found, "Every output has a verdict: the score is known, not estimated."
        return found, (
            f"Each output was drawn with a known probability, {_range(self._p)}; predictions from "
            f"signals and features remove {max(found.explained, 0.0):.0%} of the variance."
        )

    def with_no_chance(self, found: Interval) -> Interval:
        """The interval for all outputs, from that for those with a chance to be verified."""
        if not self.without:
            return found
        least, most = possible_mean(self._y[~self._chance], self._weight[~self._chance])
        low = self._share * found.low + (1.0 - self._share) * least
        high = self._share * found.high + (1.0 - self._share) * most
        return Interval(min(max(found.value, low), high), low, high, found.n)

    def notes(self) -> tuple[str, ...]:
        """What the estimate assumes."""
        missing = int((self._table.selected & ~self._known).sum())
        if not missing:
            return ()
        return (
            f"Without a value: {counted(missing, 'selected output')}, assumed to be like others "
            "that were as likely to be verified.",
        )


def _range(p: FloatArray) -> str:
    least, most = float(p.min()), float(p.max())
    return f"{least:.2g}" if most - least < 1e-9 else f"from {least:.2g} to {most:.2g}"
