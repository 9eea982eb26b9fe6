"""Standard output for the result of a program alone, whatever its libraries print."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager, redirect_stdout, suppress

__all__ = ["result_alone"]


@contextmanager
def result_alone() -> Iterator[None]:
    """What is printed within goes to standard error: the result is printed afterwards.

    That holds for the processes that are started within, too: vLLM's engine prints its log to
    standard output, Ray the events of its cluster, and a reader of `--json` needs neither.
    """
    with redirect_stdout(sys.stderr):
        try:
            result, messages = sys.__stdout__.fileno(), sys.stderr.fileno()  # type: ignore[union-attr]
            kept = os.dup(result)
        except (AttributeError, OSError, ValueError):  # closed, or not a file, as in a notebook
            yield
            return
        _point(result, messages)
        try:
            yield
        finally:
            _point(result, kept)
            os.close(kept)


def _point(descriptor: int, file: int) -> None:
    """Let the descriptor of standard output lead to a file; what was printed before is written."""
    if sys.__stdout__ is not None:
        with suppress(BrokenPipeError, ValueError):
            sys.__stdout__.flush()
    os.dup2(file, descriptor)
