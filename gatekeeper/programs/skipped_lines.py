"""The lines that `--skip-bad` skips, printed after the whole file was read."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager

from gatekeeper.errors import BadInputError
from gatekeeper.wording import counted

__all__ = ["SkippedLines", "skipped_lines"]

MOST_PRINTED = 1000


class SkippedLines:
    """Counts bad lines and keeps the first ones: a file may have nothing else."""

    def __init__(self) -> None:
        self._first: list[BadInputError] = []
        self._count = 0

    def append(self, error: BadInputError) -> None:
        """Count a bad line."""
        self._count += 1
        if len(self._first) < MOST_PRINTED:
            self._first.append(error)

    def __len__(self) -> int:
        return self._count

    def messages(self) -> Iterator[str]:
        """One line for each that was kept, and one for the rest."""
        for error in self._first:
            yield f"skipped {error}"
        if self._count > MOST_PRINTED:
            yield f"skipped {counted(self._count - MOST_PRINTED, 'more bad line')}"


@contextmanager
def skipped_lines() -> Iterator[SkippedLines]:
    """Yields the list for a reader's `on_bad`, and prints it at the end."""
    bad = SkippedLines()
    yield bad
    for message in bad.messages():
        print(f"gatekeeper: {message}", file=sys.stderr)
