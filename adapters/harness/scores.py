"""The score of all outputs of a harness run: the mean of a metric, by `analysis.score`."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from gatekeeper.analysis.score import ScoreEstimate, estimate_score, range_of
from gatekeeper.types import GateResult, Outcome, Verdict

__all__ = ["score_of", "sentence"]


def score_of(
    results: Sequence[GateResult],
    values: Sequence[float | None],
    *,
    weights: Sequence[float] | None = None,
    questions: Sequence[str] | None = None,
) -> ScoreEstimate:
    """The mean of a metric over all outputs.

    Parameters
    ----------
    results : sequence of GateResult
        Results of all N outputs, in the order of the other arguments.
    values : sequence of float or None
        The metric, in any unit; None where there is no value. Of outputs that were selected: a
        value counts also where what decides on right and wrong had none.
    weights : sequence of float or None
        How much each output counts, above 0; None: equal.
    questions : sequence of str or None
        The question of each output, where several answer one; None: one each.

    Returns
    -------
    ScoreEstimate
        In the metric's unit.
    """
    ids = [result.id for result in results]
    known = {id_: value for id_, value in zip(ids, values, strict=True) if value is not None}
    return estimate_score(
        [
            result if value is None else _with_verdict(result)
            for result, value in zip(results, values, strict=True)
        ],
        values=known,
        bounds=range_of(list(known.values())),
        weights=None if weights is None else dict(zip(ids, weights, strict=True)),
        questions=None if questions is None else dict(zip(ids, questions, strict=True)),
    )


def _with_verdict(result: GateResult) -> GateResult:
    if result.outcome is None or result.outcome.error is not None:
        return result
    return replace(result, outcome=Outcome(Verdict.PASSED))


def sentence(name: str, score: ScoreEstimate) -> str:
    """One line of a report: the score with both uncertainties, or what is possible."""
    if score.point is None:
        return f"{name}: between {score.low:.4f} and {score.high:.4f}, no estimate. {score.why}"
    if score.low == score.high:
        text = f"{name}: {score.point:.4f}, known"
    else:
        text = f"{name}: {score.point:.4f}, 95 % interval {score.low:.4f} to {score.high:.4f}"
    text += f", from {score.checks} of {score.outputs}"
    if score.both is not None:
        text += f"; with the sampling of questions {score.both.low:.4f} to {score.both.high:.4f}"
    return text
