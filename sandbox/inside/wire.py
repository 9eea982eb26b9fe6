"""The protocol of a stream: limits, frames, and the two errors by which data is refused.

A frame is a kind byte, 4 bytes of length (little endian), and the payload (`codec.py`).
"""

from __future__ import annotations

import _socket
from collections.abc import Sequence
from typing import Any

__all__ = [
    "DESCRIPTION",
    "MAX_BYTES",
    "MAX_COMPARED",
    "MAX_DEPTH",
    "MAX_FIELDS",
    "MAX_HASHED",
    "MAX_ITEMS",
    "MAX_NAME",
    "MAX_PATH",
    "MAX_RATIO_BITS",
    "ZONE",
    "MalformedError",
    "Parts",
    "TooLargeError",
    "frame",
    "head",
    "opened",
]

DESCRIPTION = 64  # the depth of the description of an object: of its class, and what that extends
MAX_DEPTH = 256  # no literal in a test can be as deep: Python's parser does not allow it
MAX_BYTES = 4 << 20  # of all values together
MAX_HASHED = 4096  # entries of a value's sets and dicts: colliding keys cost quadratic time
# Keys that share a hash are compared with each other whenever one of them is looked up. So the
# bytes of such a set or dict, with those of its items, count once more for each such key beyond the
# first. Honest values have a few: -1 and -2 share a hash, and so do tuples of them.
MAX_COMPARED = 1 << 23  # bytes, of a value
MAX_PATH = 4096  # Linux's
MAX_ITEMS = 1 << 18  # of a value: reading many small ones takes the host time
MAX_RATIO_BITS = 1 << 14  # reducing a fraction takes quadratic time
MAX_NAME = 200
MAX_FIELDS = 255  # of a named tuple: its class is made here, in a time that grows with them
ZONE = r"[A-Za-z0-9_+-]{1,30}(/[A-Za-z0-9_+-]{1,30}){0,3}"  # a pattern: names of time zones

Parts = tuple[bytes, Sequence[Any]]
"""How an item is written: a tag with its payload, then the items that it contains."""


class TooLargeError(Exception):
    """A value is too large to send."""


class MalformedError(ValueError):
    """The bytes are not from `encode`: the candidate wrote them itself."""


def head(tag: bytes, n: int) -> bytes:
    return tag + n.to_bytes(4, "little")


def frame(kind: bytes, payload: bytes) -> bytes:
    return head(kind, len(payload)) + payload


def opened(descriptor: int) -> Any:
    """The stream of a descriptor: no `socket.socket`, of which the tests may replace methods."""
    return _socket.socket(_socket.AF_UNIX, _socket.SOCK_STREAM, 0, descriptor)  # else it asks
