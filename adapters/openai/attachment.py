"""The gate's results, attached to the object that the caller gets."""

from __future__ import annotations

from dataclasses import dataclass

from gatekeeper.errors import BadInputError
from gatekeeper.types import GateResult, Undecided, UndecidedState

__all__ = ["Attachment", "Result", "attach", "results_of"]

Result = GateResult | Undecided


@dataclass(slots=True)
class Attachment:
    """The results of one call. Plain data: copies and pickles of the response keep it."""

    results: tuple[Result, ...] = (Undecided("", UndecidedState.UNFINISHED),)


def attach(thing: object, attachment: Attachment) -> None:
    """Attach without pydantic's `__setattr__`, so that no dump of a response has it."""
    try:
        object.__setattr__(thing, "_gatekeeper", attachment)
    except (AttributeError, TypeError):  # a bare string, from a server that sent no JSON
        return


def results_of(response: object) -> list[Result]:
    """The results of a response, a raw response, a stream or a parsing error.

    Raises
    ------
    BadInputError
        If `response` did not pass through a gate.
    """
    for thing in (response, getattr(response, "_raw_stream", None)):  # of the package's `.stream()`
        attachment = getattr(thing, "_gatekeeper", None)
        if isinstance(attachment, Attachment):
            return list(attachment.results)
    raise BadInputError(
        f"response of type {type(response).__name__!r} did not pass through this gate: pass what "
        "a wrapped client or observe_stream returned; for a stream that is the stream itself"
    )
