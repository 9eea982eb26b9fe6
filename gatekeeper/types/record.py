"""One output of a log or a record file, with its label and cost if known."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from gatekeeper.errors import BadInputError
from gatekeeper.types.candidate import Signals
from gatekeeper.types.states import Label

__all__ = ["Record", "check_record"]


@dataclass(frozen=True, slots=True)
class Record:
    """One candidate of a log or a record file, with its label and cost if known."""

    id: str
    signals: Signals
    cost_estimate: float  # ĉ > 0
    cost: float  # c > 0
    error: Label | None  # y; None if it was not verified
    stratum: int | None = None
    group: str | None = None
    benefit: Label | None = None  # routing: 1 where the costlier model is right, this one wrong
    propensity: float | None = None  # probability in [0, 1] with which it was to be verified
    verified: bool | None = None
    meta: Mapping[str, Any] = field(default_factory=dict)  # all other fields of the file
    features: Mapping[str, float] = field(default_factory=dict)  # finite numbers by name
    value: float | None = None  # of a metric; None: 1 for a right output, 0 for a wrong one


def check_record(value: object) -> Record:
    """Return a record, with signals and further fields of the types that they should have.

    Where a function takes records: their construction checks nothing, since tables of millions of
    them are iterated over.

    Raises
    ------
    BadInputError
        It is something else.
    """
    if not isinstance(value, Record):
        raise BadInputError(f"records has {value!r:.80}: give objects of type gatekeeper.Record")
    for name, kind in (("signals", Signals), ("meta", Mapping)):
        if not isinstance(found := getattr(value, name), kind):
            raise BadInputError(f"id={value.id!r:.80}: {name}={found!r:.80}: give {_GIVE[name]}")
    return value


_GIVE = {"signals": "Signals, such as Signals(0.1, -2.0, 0.2)", "meta": "a dict of JSON values"}
