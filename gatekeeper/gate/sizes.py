"""What a gate keeps of an output and of an outcome fits in one event of a log.

Checked before anything changes: an event that a log refuses would stop the gate.
"""

from __future__ import annotations

import json
from dataclasses import replace
from json.encoder import encode_basestring_ascii as _quoted

from gatekeeper.budget import is_chargeable
from gatekeeper.errors import BadInputError
from gatekeeper.limits import MAX_LINE
from gatekeeper.types import Generation, Outcome

__all__ = ["charged", "check_size", "uncharged"]

ROOM = 1 << 20  # bytes of an event for everything but its long texts
LONGEST = 12  # bytes of a character in JSON
KEPT = 10_000  # characters of a detail that is too long


def check_size(generation: Generation) -> None:
    """Raises BadInputError for an output that no log could store."""
    text, model, reason = generation.text, generation.model or "", generation.finish_reason or ""
    if LONGEST * (len(text) + len(model) + len(reason)) > MAX_LINE - ROOM:  # of few outputs
        size = sum(len(_quoted(part)) for part in (text, model, reason))
        if size > MAX_LINE - ROOM:
            raise BadInputError(
                f"id={generation.id!r}: its text has {size / (1 << 20):.1f} MiB as JSON, and "
                f"{(MAX_LINE - ROOM) >> 20} MiB is the limit: pass a shorter one"
            )


def charged(outcome: Outcome, charge: float) -> Outcome:
    """The outcome with what is charged for it, as it is kept."""
    return _kept(replace(outcome, cost=charge))


def uncharged(outcome: Outcome) -> Outcome:
    """The outcome, as it is kept, without a cost that is invalid: nothing is charged for it."""
    valid = outcome.cost is None or is_chargeable(outcome.cost)
    return _kept(outcome if valid else replace(outcome, cost=None))


def _kept(outcome: Outcome) -> Outcome:
    """The outcome; with the start of its detail only, where a log could not store the whole."""
    if LONGEST * len(outcome.detail) <= ROOM and not outcome.meta:  # nearly all
        return outcome
    copies = 2 if outcome.error is None else 1  # of the detail, in an event without a verdict
    size = copies * len(_quoted(outcome.detail)) + len(json.dumps(dict(outcome.meta)))
    if size <= MAX_LINE - ROOM:
        return outcome
    note = f" [shortened by gatekeeper: {size >> 20} MiB of detail and meta are too much to keep]"
    return replace(outcome, detail=outcome.detail[:KEPT] + note, meta={})
