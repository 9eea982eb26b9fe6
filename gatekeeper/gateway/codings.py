"""Content codings: of bodies that the gateway reads although it asks for none.

Reads gzip and deflate. A body, or a piece of one, that becomes longer than `MAX_LINE` is refused,
and so is one with so many parts or codings that other calls would wait for it.
"""

from __future__ import annotations

import zlib
from collections.abc import Callable
from typing import Any

from multidict import CIMultiDictProxy

from gatekeeper.limits import MAX_LINE

__all__ = ["CodingError", "Decoder", "codings_of", "decoded"]

NONE = ("", "identity")
MOST = 5  # codings of a body
PARTS = 1 << 16  # of a body, or of a piece of one
SLICE = 1 << 16  # bytes that are decoded at a time: zlib copies what follows the end of a part


class CodingError(Exception):
    """A body that cannot be decoded."""


def codings_of(headers: CIMultiDictProxy[str]) -> str:
    """The content codings of a body, in one line or in several; "" for most."""
    return ",".join(headers.getall("Content-Encoding")) if "Content-Encoding" in headers else ""


class Decoder:
    """Decodes a body that comes in pieces.

    Parameters
    ----------
    codings : str
        The header `Content-Encoding`, as `codings_of` returns it.

    Raises
    ------
    CodingError
        For a coding that is unknown, and for more than `MOST`.
    """

    def __init__(self, codings: str) -> None:
        names = [name.strip() for name in reversed(codings.lower().split(","))]
        try:
            self._steps = [_Step(_STARTS[name]) for name in names if name not in NONE]
        except KeyError as error:
            raise CodingError(f"content-encoding {error} cannot be read") from None
        if len(self._steps) > MOST:
            raise CodingError(f"it has {len(self._steps)} codings, and {MOST} are read")

    def add(self, piece: bytes) -> bytes:
        """What the next piece of the body adds.

        Raises
        ------
        CodingError
            If it is not as the coding says, or too long.
        """
        for step in self._steps:
            piece = step.add(piece)
        return piece

    def end(self) -> None:
        """Check that the body was complete. Raises CodingError."""
        if any(step.is_open for step in self._steps):
            raise CodingError("the body ends early")


def decoded(body: bytes, codings: str) -> bytes:
    """A whole body. Raises CodingError."""
    decoder = Decoder(codings)
    text = decoder.add(body)
    decoder.end()
    return text


class _Step:
    """One coding. Its body may have several parts, one after the other."""

    def __init__(self, start: Callable[[bytes], Any]) -> None:
        self._start = start
        self._part: Any = None

    @property
    def is_open(self) -> bool:
        return self._part is not None

    def add(self, piece: bytes) -> bytes:
        found, room, parts = [], MAX_LINE, 0
        try:
            for at in range(0, len(piece), SLICE):
                rest = piece[at : at + SLICE]
                while rest:
                    if self._part is None:
                        self._part, parts = self._start(rest), parts + 1
                    found.append(self._part.decompress(rest, room + 1))
                    room -= len(found[-1])
                    if room < 0:
                        why = f"it is longer than {MAX_LINE >> 20} MiB without its coding"
                        raise CodingError(why)
                    if parts > PARTS:
                        raise CodingError(f"it has more than {PARTS:,} parts")
                    if not self._part.eof:
                        break
                    rest, self._part = self._part.unused_data, None
        except zlib.error as error:
            raise CodingError(str(error)) from error
        return b"".join(found)


def _gzip(piece: bytes) -> Any:
    return zlib.decompressobj(zlib.MAX_WBITS | 16)


def _deflate(piece: bytes) -> Any:
    """With zlib's header, or without it, as some servers send it."""
    return zlib.decompressobj(zlib.MAX_WBITS if piece[0] & 15 == 8 else -zlib.MAX_WBITS)


_STARTS: dict[str, Callable[[bytes], Any]] = {  # what makes a decoder, from a body's first piece
    "deflate": _deflate,
    "gzip": _gzip,
    "x-gzip": _gzip,
}
