"""What both ends of a stream agree on: limits, frames, and the two ways in which data is refused.

A frame is a kind byte, 4 bytes of length (little endian), and the payload (`codec.py`).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

__all__ = [
    "MAX_BYTES",
    "MAX_COMPARED",
    "MAX_DEPTH",
    "MAX_FIELDS",
    "MAX_HASHED",
    "MAX_ITEMS",
    "MAX_NAME",
    "MAX_PATH",
    "MAX_RATIO_BITS",
    "MalformedError",
    "Parts",
    "TooLargeError",
    "frame",
    "head",
]

MAX_DEPTH = 256  # Python's parser allows no literal as deep as that: nothing could equal it
MAX_BYTES = 4 << 20  # of all values together
MAX_HASHED = 4096  # entries of a value's sets and dicts: keys chosen to collide cost time squared
# Keys that share a hash are compared with one another, whenever one of them is looked for: such a
# set or dict counts its bytes, those of what it holds included, once more for each such key beyond
# the first. Honest ones have a few: -1 and -2 share one, and so do tuples of them.
MAX_COMPARED = 1 << 23  # bytes, of a value
MAX_PATH = 4096  # Linux's
MAX_ITEMS = 1 << 18  # of a value: reading many small ones takes the host time
MAX_RATIO_BITS = 1 << 14  # reducing takes time squared
MAX_NAME = 200
MAX_FIELDS = 255  # of a named tuple: its class is made here, in a time that grows with them

Parts = tuple[bytes, Sequence[Any]]
"""What an item is written as: a tag with its payload, then the items it is made of."""


class TooLargeError(Exception):
    """A value would take more than the limit to send."""


class MalformedError(ValueError):
    """The bytes are not what `encode` writes: the candidate wrote them itself."""


def head(tag: bytes, n: int) -> bytes:
    return tag + n.to_bytes(4, "little")


def frame(kind: bytes, payload: bytes) -> bytes:
    return head(kind, len(payload)) + payload
