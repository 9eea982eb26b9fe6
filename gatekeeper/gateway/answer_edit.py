"""Edits of answers, which are large: msgspec reads them in half the time of the standard library.

It also finds the positions of the values to edit, and creates no objects for the rest.
Log-probabilities, which are most of an answer, are cut out and read by themselves.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Sequence
from operator import attrgetter
from typing import Any

import msgspec
import numpy as np

from gatekeeper.gateway.json_edit import EACH, Edit, Paths, edited

__all__ = ["NO_EDITS", "Edits", "object_of"]

_decode = msgspec.json.Decoder().decode
SMALL = 4096  # bytes
_NONE = msgspec.Raw()  # stands for a member that is missing: every value has bytes
_HOLE = os.urandom(16).hex()  # a text that no answer has

Leaf = tuple[msgspec.Raw, Edit]


class Edits:
    """Edits for many answers.

    Parameters
    ----------
    paths : Paths
        Which values, and how.
    read : callable or None
        Parses the JSON text at a path, in place of msgspec, like `entries.read_logprobs`.
    guess : callable or None
        Where the text of the only value to edit probably begins and ends, like
        `entries.likely_span`; for paths with one edit and `read`.
    """

    def __init__(
        self,
        paths: Paths,
        *,
        read: Callable[[msgspec.Raw | memoryview], Any] | None = None,
        guess: Callable[[bytes], tuple[int, int] | None] | None = None,
    ) -> None:
        self.paths = paths
        self._read, self._guess = read, guess
        self._find = msgspec.json.Decoder(_type_of(paths)).decode
        self._collect = _collector_of(paths)

    def apply(self, body: bytes, *, once: bool = False) -> tuple[Any, bytes]:
        """The value of a JSON text as it is written, and the text after the edits.

        Parameters
        ----------
        body
            The text.
        once
            Whether one value at most is to be edited. It is then looked for where it probably is.

        Raises
        ------
        ValueError
            If the text is not JSON.
        """
        try:
            if not self.paths:
                return _decode(body), body
            if once and self._guess is not None and (cut := self._cut(body, self._guess(body))):
                return cut
            found = self._find(body)
            leaves: list[Leaf] = []
            self._collect((found,), leaves)
            if self._read is None:
                value = _decode(body)
            else:
                value = _decode(_replaced(body, [(raw, "null") for raw, _ in leaves]))
                self._fill(value, found, self.paths)
        except (msgspec.DecodeError, RecursionError):
            # No JSON, JSON with NaN, or another type than these APIs have at a path.
            value, text = edited(body.decode(), self.paths)
            return value, text.encode()
        return value, _replaced(body, _changes(leaves))

    def text(self, body: bytes) -> bytes:
        """The text after the edits, without the value: in a stream it is sent before it is read.

        Raises
        ------
        ValueError
            If the text is not JSON.
        """
        if not self.paths:
            return body
        leaves: list[Leaf] = []
        try:
            self._collect((self._find(body),), leaves)
        except (msgspec.DecodeError, RecursionError):
            return edited(body.decode(), self.paths)[1].encode()
        return _replaced(body, _changes(leaves))

    def _cut(self, body: bytes, span: tuple[int, int] | None) -> tuple[Any, bytes] | None:
        """As `apply`, where the value to edit is where it is guessed to be; None where it is not.

        It is then read once, and not searched for its end before. The guess is right if that text
        is JSON, and if the rest is JSON that has a hole in its place, at the path.
        """
        if span is None or self._read is None:
            return None
        start, end = span
        head, text, tail = body[:start], memoryview(body)[start:end], body[end:]
        try:
            value = holder = _decode(b'%s"%s"%s' % (head, _HOLE.encode(), tail))
            paths: Any = self.paths
            while True:
                ((name, paths),) = paths.items()
                key = 0 if name == EACH else name
                if callable(paths):
                    break
                holder = holder[key]
            if holder[key] != _HOLE:
                return None
            holder[key] = self._read(text)
        except (msgspec.DecodeError, LookupError, TypeError):
            return None
        new = paths(str(text, "utf-8"))
        return value, body if new is None else b"".join([head, new.encode(), tail])

    def _fill(self, value: Any, found: Any, paths: Any) -> None:
        if found is None:
            return
        if EACH in paths:
            for item, part in zip(value, found, strict=True):
                self._fill(item, part, paths[EACH])
            return
        parts = msgspec.structs.astuple(found)
        for (name, inner), part in zip(paths.items(), parts, strict=True):
            if not callable(inner):
                self._fill(value.get(name), part, inner)
            elif part is not _NONE:
                assert self._read is not None
                value[name] = self._read(part)


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


def _collector_of(paths: Paths) -> Callable[[Iterable[Any], list[Leaf]], None]:
    """What adds the values to edit inside of objects, as they are written, with their edits.

    Made once from the paths, and with one call for each member, because a stream's frame waits for
    reading (benchmarks/gateway.py).
    """
    edits: list[tuple[attrgetter[Any], Edit]] = []
    arrays, objects = [], []
    for i, inner in enumerate(paths.values()):
        member = attrgetter(f"member_{i}")
        if callable(inner):
            edits.append((member, inner))
        elif EACH in inner:
            arrays.append((member, _collector_of(inner[EACH])))
        elif inner:
            objects.append((member, _collector_of(inner)))

    def collect(several: Iterable[Any], leaves: list[Leaf]) -> None:
        for found in several:
            if found is None:
                continue
            for member, edit in edits:
                if (raw := member(found)) is not _NONE:
                    leaves.append((raw, edit))
            for member, inside in arrays:
                inside(member(found) or (), leaves)
            for member, inside in objects:
                inside((member(found),), leaves)

    return collect


def _changes(leaves: Iterable[Leaf]) -> list[tuple[msgspec.Raw, str]]:
    return [(raw, new) for raw, edit in leaves if (new := edit(str(raw, "utf-8"))) is not None]


def _replaced(body: bytes, changes: Sequence[tuple[msgspec.Raw, str]]) -> bytes:
    """The text with other texts in place of some of its values."""
    if not changes:
        return body
    if len(changes) == 1 and len(body) < SMALL:  # of a stream's frame, which waits for this
        ((raw, new),) = changes
        at = body.find(raw)
        if body.find(raw, at + 1) < 0:
            return body[:at] + new.encode() + body[at + len(memoryview(raw)) :]
    start = _address(body)
    pieces, done = [], 0
    for at, raw, new in sorted((_address(raw) - start, raw, new) for raw, new in changes):
        pieces += [body[done:at], new.encode()]
        done = at + len(memoryview(raw))
    return b"".join([*pieces, body[done:]])


def _address(buffer: Any) -> int:
    """In memory. A `Raw` is a view of the message's own bytes, so addresses give positions."""
    address: int = np.frombuffer(buffer, np.uint8).__array_interface__["data"][0]
    return address


NO_EDITS = Edits({})


def object_of(text: bytes) -> dict[str, Any] | None:
    """The value of a JSON object; None for anything else."""
    try:
        value, _ = NO_EDITS.apply(text)
    except ValueError:
        return None
    return value if isinstance(value, dict) else None
