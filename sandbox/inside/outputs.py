"""Standard output and error that the candidate replaces while code of the tests runs.

In one process a context manager of the candidate's, or a function that calls one of the tests, may
catch what these print. So here its streams take the place of the tests' own for as long.
"""

from __future__ import annotations

import contextlib
import io
import re
import sys
import weakref
from collections.abc import Callable, Iterator, Mapping
from typing import Any

__all__ = ["OUTPUTS", "Entered", "instead", "own", "replaced", "taken", "written"]

OUTPUTS = ("stdout", "stderr")
_PRINTS = re.compile(r"\bprint\b|\bstd(?:out|err)\b")

# The candidate's side


class _Text(io.StringIO):
    """What stands for a stream of the tests', and how much of it was taken."""

    start = 0


_texts: dict[str, Any] = {name: weakref.WeakSet() for name in OUTPUTS}  # it may keep some
_ended: list[_Text] = []  # not taken since they ended
_active: dict[str, list[tuple[_Text, Any]]] = {name: [] for name in OUTPUTS}  # and what was there


def replaced(*, asked: bool = False) -> dict[str, Any]:
    """Streams of the candidate's own, by name; `asked`: as they were before this question."""
    found = {name: getattr(sys, name) for name in OUTPUTS}
    if asked:
        found |= {name: active[-1][1] for name, active in _active.items() if active}
    return {name: stream for name, stream in found.items() if _is_own(name, stream)}


def _is_own(name: str, stream: object) -> bool:
    return type(stream) is not _Text and stream is not getattr(sys, f"__{name}__")


@contextlib.contextmanager
def written(name: str) -> Iterator[None]:
    """What is written to the stream of that name is kept, until it is `taken`."""
    before, text = getattr(sys, name), _Text()
    _texts[name].add(text)
    setattr(sys, name, text)
    _active[name].append((text, before))
    try:
        yield
    finally:
        _active[name].remove((text, before))
        _ended.append(text)
        now = getattr(sys, name)
        if now is text:
            setattr(sys, name, before)
        elif not _is_own(name, now):  # the candidate has put back what it found
            usual = getattr(sys, f"__{name}__")
            setattr(sys, name, _active[name][-1][0] if _active[name] else usual)


def taken(name: str) -> list[tuple[str, str]]:
    """What was written for the tests' stream of that name, since it was asked before."""
    found = []
    for text in [*_texts[name]]:  # not emptied, as a thread may write at this moment
        found.append(text.getvalue()[text.start :])
        text.start += len(found[-1])
    _ended[:] = [text for text in _ended if text not in _texts[name]]
    return [(name, part) for part in found if part]


# The tests' side

_instead: list[tuple[Any, Any]] = []  # a stream of the candidate's, and what was there


def own(name: str) -> Any:
    """The tests' own stream of that name, in whose place there may be one of the candidate's."""
    stream = getattr(sys, name)
    for theirs, before in reversed(_instead):
        if stream is theirs:
            stream = before
    return stream


@contextlib.contextmanager
def instead(
    streams: Mapping[str, Any], left: Callable[[], Mapping[str, Any]] = dict
) -> Iterator[list[Any]]:
    """The candidate's streams in the place of the tests' own; `left` gives those that stay."""
    places = {name: (streams[name], getattr(sys, name)) for name in OUTPUTS if name in streams}
    for name, place in places.items():
        setattr(sys, name, place[0])
        _instead.append(place)
    try:
        yield []
    finally:
        stay = left()
        for name, place in places.items():
            if stay.get(name) is not place[0]:
                _instead[:] = [one for one in _instead if one is not place]  # by no `==` of theirs
                if getattr(sys, name) is place[0]:
                    setattr(sys, name, place[1])


class Entered:
    """Context managers of the candidate's that the tests have entered, and their streams.

    Parameters
    ----------
    source
        The tests. Where they print nothing, no stream matters.
    """

    def __init__(self, source: str) -> None:
        self._prints = _PRINTS.search(source) is not None
        self._left: dict[int, list[contextlib.ExitStack]] = {}

    def enter(self, number: int, ask: Callable[[], Any]) -> None:
        """The manager of that number is entered; `ask` gives the streams that are replaced."""
        if self._prints and isinstance(streams := ask(), dict) and streams:
            stack = contextlib.ExitStack()
            stack.enter_context(instead(streams, ask))
            self._left.setdefault(number, []).append(stack)

    def leave(self, number: int) -> None:
        """It is left."""
        if left := self._left.get(number):
            left.pop().close()
