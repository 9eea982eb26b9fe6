"""A snapshot of a gate's state, as bytes that a log can keep beside its events.

JSON, and beside it the long lists of floats (a policy's history of values has one per output) as
float64: a tenth of the time of JSON, and a third of the space. A digest at the front detects
damage.
"""

from __future__ import annotations

import json
import sys
from array import array
from hashlib import sha256
from typing import Any, NamedTuple

__all__ = ["Snapshot", "packed", "unpacked"]

LONG = 32  # length from which a list of floats is kept outside the JSON
FLOATS = "\0floats"  # the key of the object in its place: its first index, and its length
DIGEST = sha256().digest_size


class Snapshot(NamedTuple):
    """The state of a gate after the first `seq` events of its log."""

    seq: int
    state: dict[str, Any]  # JSON values


def packed(key: str, snapshot: Snapshot) -> bytes:
    """The snapshot as bytes.

    Parameters
    ----------
    key
        Identifies the gate: only a gate with the same key reads it.
    """
    floats = array("d")
    text = json.dumps([key, snapshot.seq, _without(snapshot.state, floats)]).encode()
    if sys.byteorder == "big":
        floats.byteswap()
    body = b"".join((len(text).to_bytes(8, "little"), text, floats.tobytes()))
    return sha256(body).digest() + body


def unpacked(key: str, data: bytes) -> Snapshot | None:
    """The snapshot of these bytes; None where they are damaged, or for another key."""
    body = memoryview(data)[DIGEST:]
    if sha256(body).digest() != data[:DIGEST]:
        return None
    end = 8 + int.from_bytes(body[:8], "little")
    of, seq, state = json.loads(bytes(body[8:end]))
    if of != key:
        return None
    floats = array("d")
    floats.frombytes(body[end:])
    if sys.byteorder == "big":
        floats.byteswap()
    return Snapshot(seq, _with(state, floats))


def _without(value: Any, floats: array[float]) -> Any:
    """The value, its long lists of floats moved to the array."""
    if isinstance(value, dict):
        return {name: _without(part, floats) for name, part in value.items()}
    if not isinstance(value, list | tuple):
        return value
    if len(value) < LONG or set(map(type, value)) != {float}:
        return [_without(part, floats) for part in value]
    start = len(floats)
    floats.extend(value)
    return {FLOATS: [start, len(value)]}


def _with(value: Any, floats: array[float]) -> Any:
    if isinstance(value, list):
        return [_with(part, floats) for part in value]
    if not isinstance(value, dict):
        return value
    if FLOATS in value:
        start, n = value[FLOATS]
        return floats[start : start + n].tolist()
    return {name: _with(part, floats) for name, part in value.items()}
