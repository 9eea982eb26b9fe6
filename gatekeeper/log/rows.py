"""The outputs of a log as flat rows, for tables, files and other programs."""

from __future__ import annotations

import json
from math import isfinite
from typing import Any

from gatekeeper.log.fold import Output
from gatekeeper.types import Generation

__all__ = ["COLUMNS", "as_json", "encodable", "row_of"]

COLUMNS: dict[str, type] = {
    "id": str,
    "text": str,
    "verdict": str,  # null: not verified
    "error": int,  # 1 wrong, 0 right; null: not known
    "value": float,  # of a metric; null: none was given, or not verified
    "detail": str,
    "external": bool,  # the verdict is from outside
    "verify": bool,
    "reason": str,
    "phase": str,
    "propensity": float,
    "score": float,
    "threshold": float,
    "stratum": int,
    "signal": str,
    "h1": float,
    "h2": float,
    "h3": float,
    "features": str,  # JSON, by name
    "n_tokens": int,
    "cost_estimate": float,
    "cost": float,  # the charge, in the budget's unit; null: none
    "seconds": float,
    "model": str,
    "finish_reason": str,
    "meta": str,  # JSON, from the verifier
}
"""Names and types of a row's values; any may be None."""


def row_of(output: Output, generation: Generation) -> dict[str, Any]:
    """One output, with the names of `COLUMNS` in that order; unknown values are None.

    Parameters
    ----------
    output, generation
        From `Run.outputs` and `Run.generations`.
    """
    candidate, decision = output.candidate, output.decision
    outcome = output.outcome or output.unavailable
    charged = None if output.external else output.outcome
    h = candidate.signals
    values = {
        "id": candidate.id,
        "text": generation.text,
        "verdict": outcome and str(outcome.verdict),
        "error": outcome and outcome.error,
        "value": outcome and outcome.value,
        "detail": outcome and outcome.detail,
        "external": output.external,
        "verify": decision.verify,
        "reason": str(decision.reason),
        "phase": output.phase,
        "propensity": decision.propensity,
        "score": decision.score,
        "threshold": decision.threshold,
        "stratum": decision.stratum,
        "signal": str(h.state),
        "h1": h.h1,
        "h2": h.h2,
        "h3": h.h3,
        "features": json.dumps(dict(candidate.features)),
        "n_tokens": h.n_tokens,
        "cost_estimate": candidate.cost_estimate,
        "cost": charged and charged.cost,
        "seconds": outcome and outcome.seconds,
        "model": generation.model,
        "finish_reason": generation.finish_reason,
        "meta": outcome and json.dumps(dict(outcome.meta)),
    }
    return {
        name: None if isinstance(value, float) and not isfinite(value) else value
        for name, value in values.items()
    }


def encodable(row: dict[str, Any]) -> dict[str, Any]:
    """The row with half surrogate pairs as escapes, which Arrow and UTF-8 cannot represent."""
    return {
        name: value.encode("utf-8", "backslashreplace").decode()
        if isinstance(value, str)
        else value
        for name, value in row.items()
    }


def as_json(row: dict[str, Any]) -> dict[str, Any]:
    """The row with objects in place of their JSON."""
    return row | {name: json.loads(row[name] or "{}") for name in ("features", "meta")}
