"""Standard output for the result of a program alone, whatever its libraries print, or closed."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager, redirect_stdout, suppress

__all__ = ["open_closed_streams", "result_alone"]


def open_closed_streams() -> None:
    """Let a standard stream that is closed, as by `>&-`, lead to the null device.

    Python has None for it, to which a message to standard error is one to standard output, and a
    file that the program opens would get its descriptor, with all that other processes print.
    `sys.__stdin__` stays None: an import may have opened a file that has descriptor 0 by now.
    """
    for name, mode in (("stdin", "r"), ("stdout", "w"), ("stderr", "w")):  # the lowest free first
        if getattr(sys, name) is None:
            descriptor = os.open(os.devnull, os.O_RDWR)
            os.set_inheritable(descriptor, True)
            stream = open(descriptor, mode, encoding="utf-8", closefd=False)  # noqa: SIM115
            setattr(sys, name, stream)
            if name != "stdin":
                setattr(sys, f"__{name}__", stream)


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
