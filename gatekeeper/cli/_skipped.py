"""What `--skip-bad` left out, said in a line each once all of the file was read."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager

from gatekeeper.errors import BadInputError

__all__ = ["Skipped", "skipped"]

MOST_SAID = 1000


class Skipped:
    """Counts bad lines, and keeps the first of them: a file may hold nothing else."""

    def __init__(self) -> None:
        self._first: list[BadInputError] = []
        self._count = 0

    def append(self, error: BadInputError) -> None:
        self._count += 1
        if len(self._first) < MOST_SAID:
            self._first.append(error)

    def __len__(self) -> int:
        return self._count

    def said(self) -> Iterator[str]:
        for error in self._first:
            yield f"skipped {error}"
        if self._count > MOST_SAID:
            yield f"skipped {self._count - MOST_SAID} more bad lines"


@contextmanager
def skipped() -> Iterator[Skipped]:
    """Gives what a reader's `on_bad` appends to; what it holds at the end is printed."""
    bad = Skipped()
    yield bad
    for line in bad.said():
        print(f"gatekeeper: {line}", file=sys.stderr)
