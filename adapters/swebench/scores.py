"""The share of all predictions that resolve their instance, from those that were evaluated.

An empty patch resolves nothing: it is known without an evaluation, and adds no uncertainty.
"""

from __future__ import annotations

from collections.abc import Sequence

from gatekeeper.adapters.swebench.predictions import Prediction
from gatekeeper.adapters.swebench.reports import EMPTY
from gatekeeper.analysis.score import ScoreEstimate, estimate_score
from gatekeeper.signals import signals_of
from gatekeeper.types import Decision, GateResult, Reason, Record

__all__ = ["resolve_rate"]


def resolve_rate(predictions: Sequence[Prediction], results: Sequence[GateResult]) -> ScoreEstimate:
    """The resolve rate of all predictions, with signals and features as predictors.

    Parameters
    ----------
    predictions : sequence of Prediction
        All N.
    results : sequence of GateResult
        Results of the predictions with a patch, in any order.
    """
    certain = [result.verified for result in results if result.decision.propensity == 1.0]
    # Those without a verdict are like others with a patch, not like empty ones.
    share = sum(certain) / len(certain) if certain else 1.0
    by_id = {result.id: result for result in results}
    return estimate_score(
        _record(p, by_id[p.instance], share) if p.patch else _record(p, _empty(p), 1.0)
        for p in predictions
    )


def _record(prediction: Prediction, result: GateResult, share: float) -> Record:
    propensity = result.decision.propensity
    return Record(
        result.id,
        result.signals,
        cost_estimate=1.0,
        cost=1.0,
        error=None if result.outcome is None else result.outcome.error,
        propensity=share if propensity == 1.0 else propensity,
        verified=result.verified,
        features=prediction.generation.features,
    )


def _empty(prediction: Prediction) -> GateResult:
    signals = signals_of(prediction.generation)
    return GateResult(prediction.instance, signals, Decision(True, Reason.FORCED), EMPTY)
