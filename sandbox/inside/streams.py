"""Standard output and error as programs know them: streams into a pipe."""

from __future__ import annotations

import os
import sys

__all__ = ["stream_into_pipes"]


def stream_into_pipes() -> None:
    """Make standard output and error anew, as streams into a pipe, which cannot seek.

    A stream finds that out when it is made, and children, whose streams are pipes, inherit it. Else
    `io.TextIOWrapper(sys.stdout.buffer, encoding="utf-8")` would fail in a program.
    """
    reading, writing = os.pipe()
    for number, name, buffering in ((1, "stdout", -1), (2, "stderr", 1)):
        before = os.dup(number)
        os.dup2(writing, number)
        errors = getattr(sys, name).errors
        made = open(number, "w", buffering, encoding="utf-8", errors=errors, closefd=False)  # noqa: SIM115
        setattr(sys, name, made)
        setattr(sys, f"__{name}__", made)
        os.dup2(before, number)
        os.close(before)
    os.close(reading)
    os.close(writing)
