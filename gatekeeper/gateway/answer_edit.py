"""Edits of answers, which are large: msgspec reads them in half the time of the standard library.

It also finds the positions of the values to edit, and makes no objects of the rest.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import msgspec
import numpy as np

from gatekeeper.gateway.json_edit import EACH, Paths, edited

__all__ = ["NO_EDITS", "Edits"]

_decode = msgspec.json.Decoder().decode
_NONE = msgspec.Raw()  # stands for a member that is missing: every value has bytes


class Edits:
    """Edits that are made in many answers.

    Parameters
    ----------
    paths : Paths
        Which values, and how.
    """

    def __init__(self, paths: Paths) -> None:
        self.paths = paths
        self._find = msgspec.json.Decoder(_type_of(paths)).decode

    def __bool__(self) -> bool:
        return bool(self.paths)

    def apply(self, body: bytes) -> tuple[Any, bytes]:
        """The value of a JSON text as it is written, and the text after the edits.

        Raises
        ------
        ValueError
            If the text is not JSON.
        """
        try:
            value = _decode(body)
            if not self.paths:
                return value, body
            found = self._find(body)
        except (msgspec.DecodeError, RecursionError):
            # No JSON, JSON with NaN, or another type than these APIs have at a path.
            value, text = edited(body.decode(), self.paths)
            return value, text.encode()
        start = _address(body)
        pieces, done = [], 0
        for at, end, new in sorted(_changes(found, self.paths)):
            pieces += [body[done : at - start], new.encode()]
            done = end - start
        return value, b"".join([*pieces, body[done:]]) if pieces else body


def _type_of(paths: Any) -> Any:
    """A type for msgspec with the values to edit as `Raw`."""
    if callable(paths) or not paths:
        return msgspec.Raw
    if EACH in paths:
        return list[_type_of(paths[EACH])] | None  # type: ignore[misc]
    names = {f"member_{i}": name for i, name in enumerate(paths)}
    members: list[tuple[str, Any, Any]] = []
    for field, name in names.items():
        inner = _type_of(paths[name])
        members.append((field, inner, _NONE if inner is msgspec.Raw else None))
    return msgspec.defstruct("Found", members, rename=names) | None


def _changes(found: Any, paths: Any) -> Iterator[tuple[int, int, str]]:
    """The addresses at which an edited value begins and ends, and what replaces it."""
    if found is None or found is _NONE:
        return
    if callable(paths):
        new = paths(str(found, "utf-8"))
        if new is not None:
            yield _address(found), _address(found) + len(memoryview(found)), new
    elif EACH in paths:
        for item in found:
            yield from _changes(item, paths[EACH])
    else:
        for inner, value in zip(paths.values(), msgspec.structs.astuple(found), strict=True):
            if inner:
                yield from _changes(value, inner)


def _address(buffer: Any) -> int:
    """In memory. A `Raw` is a view of the message's own bytes, so addresses give positions."""
    address: int = np.frombuffer(buffer, np.uint8).__array_interface__["data"][0]
    return address


NO_EDITS = Edits({})
