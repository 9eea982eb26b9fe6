"""What `--skip-bad` left out, said in a line each once all of the file was read."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager

from gatekeeper.errors import BadInputError

__all__ = ["skipped"]


@contextmanager
def skipped() -> Iterator[list[BadInputError]]:
    """Gives a list for a reader's `on_bad` to append to; what it holds at the end is printed."""
    bad: list[BadInputError] = []
    yield bad
    for error in bad:
        print(f"gatekeeper: skipped {error}", file=sys.stderr)
