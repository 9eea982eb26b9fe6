"""The gates' results, attached to the object that the caller gets."""

from __future__ import annotations

from dataclasses import dataclass
from uuid import uuid4
from weakref import WeakKeyDictionary

from gatekeeper.errors import BadInputError
from gatekeeper.types import GateResult, Undecided, UndecidedState

__all__ = ["Attachment", "Result", "attach", "attached", "holders", "results_of"]

Result = GateResult | Undecided

_keys: WeakKeyDictionary[object, str] = WeakKeyDictionary()


def _key_of(gate: object) -> str:
    """A name for the gate: a copy or a pickle of a response cannot hold the gate itself."""
    return _keys.get(gate) or _keys.setdefault(gate, uuid4().hex)


@dataclass(slots=True)
class Attachment:
    """The results of one call. Plain data: copies and pickles of the response keep it."""

    results: tuple[Result, ...] = (Undecided("", UndecidedState.UNFINISHED),)


def attach(thing: object, gate: object, attachment: Attachment) -> None:
    """Attach, beside those of other gates, what `gate` gave in a call.

    Without pydantic's `__setattr__`, so that no dump of a response has it, and without its
    `__getattr__`, which takes microseconds for an attribute that is not there.
    """
    try:
        others = vars(thing).get("_gatekeeper", {})
        object.__setattr__(thing, "_gatekeeper", {**others, _key_of(gate): attachment})
    except (AttributeError, TypeError):  # a bare string, from a server that sent no JSON
        return


def attached(thing: object) -> dict[str, Attachment]:
    """What gates have attached to an object."""
    found = getattr(thing, "_gatekeeper", None)
    return found if isinstance(found, dict) else {}


def holders(thing: object) -> tuple[object, object]:
    """The object, and the stream inside a helper of the package, `.stream()`; None without one."""
    return thing, getattr(thing, "_raw_stream", None)


def results_of(gate: object, response: object) -> list[Result]:
    """The gate's results of a response, a raw response, a stream or a parsing error.

    Raises
    ------
    BadInputError
        If `response` did not pass through this gate.
    """
    others = False
    for thing in holders(response):
        if attachment := attached(thing).get(_key_of(gate)):
            return list(attachment.results)
        others = others or bool(attached(thing))
    kind = type(response).__name__
    if others:
        raise BadInputError(
            f"response of type {kind!r} passed through another gate: ask that one; where it was "
            "of an earlier process, gate.find(id) has what is in the log"
        )
    raise BadInputError(
        f"response of type {kind!r} did not pass through this gate: pass what a wrapped client or "
        "observe_stream returned; for a stream that is the stream itself"
    )
