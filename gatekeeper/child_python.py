"""A Python process that imports from the same places as this one."""

from __future__ import annotations

import os
import sys
from pathlib import Path

__all__ = ["child_command", "import_path"]

_ROOT = str(Path(__file__).resolve().parents[1])


def import_path() -> list[str]:
    """`sys.path` for such a process: absolute, this package first, without the current folder."""
    return [_ROOT, *(os.path.abspath(entry) for entry in sys.path if entry)]


def child_command(program: str, argument: str) -> list[str]:
    """The command that runs a program of Python with one argument.

    Nothing in the current folder is imported before the program has set `sys.path`.
    """
    return [sys.executable, "-s", "-P", "-c", program, argument]
