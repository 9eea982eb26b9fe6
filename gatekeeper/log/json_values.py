"""Numbers and outcomes as the JSON values that a log stores."""

from __future__ import annotations

from math import isfinite, nan
from typing import Any

from gatekeeper.log.stored import StoredOutcome
from gatekeeper.types import Outcome

__all__ = ["json_number", "number_of", "outcome_data", "outcome_of"]


def json_number(value: float) -> float | str | None:
    """A number as a JSON value: NaN as null, infinities as strings."""
    if isfinite(value):
        return value
    return None if value != value else str(value)


def number_of(value: float | str | None) -> float:
    """The number that was stored as this JSON value."""
    if type(value) is float:  # nearly all
        return value
    return nan if value is None else float(value)


def outcome_data(outcome: Outcome) -> dict[str, Any]:
    """An outcome as JSON values."""
    value = {} if outcome.value is None else {"value": outcome.value}
    return value | {
        "verdict": outcome.verdict,
        "error": outcome.error,
        "cost": outcome.cost,
        "seconds": outcome.seconds,
        "detail": outcome.detail,
        "meta": dict(outcome.meta),
    }


def outcome_of(data: StoredOutcome) -> Outcome:
    """The outcome that was stored as this data."""
    return Outcome(data.verdict, data.cost, data.seconds, data.detail, data.meta, data.value)
