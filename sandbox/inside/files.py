"""Removes files that a candidate left on a disk."""

from __future__ import annotations

import contextlib
import itertools
import math
import os
import time

__all__ = ["remove"]

BATCH = 1000  # entries read at a time: a directory may have millions


def remove(directory: str, seconds: float = math.inf) -> bool:
    """Remove a directory. Returns whether it is gone; False if that takes longer than `seconds`.

    Inner directories are moved to the top, because a chain of them may be deeper than any stack.
    """
    patience = time.monotonic() + seconds
    with contextlib.suppress(OSError):
        while _thin_out(directory, patience):
            if time.monotonic() > patience:
                return False
        os.rmdir(directory)
    return not os.path.lexists(directory)


def _thin_out(directory: str, patience: float) -> bool:
    """Remove some entries, and levels of inner directories. Returns whether there were any."""
    for entry in (found := _some(directory)):
        if time.monotonic() > patience:
            break
        if not entry.is_dir(follow_symlinks=False):
            os.unlink(entry.path)
            continue
        os.chmod(entry.path, 0o700)
        for inner in (inside := _some(entry.path)):
            if inner.is_dir(follow_symlinks=False):
                os.chmod(inner.path, 0o700)
                os.rename(inner.path, f"{directory}/{os.urandom(12).hex()}")
            else:
                os.unlink(inner.path)
        if len(inside) < BATCH:
            os.rmdir(entry.path)
    return bool(found)


def _some(directory: str) -> list[os.DirEntry[str]]:
    with os.scandir(directory) as entries:
        return list(itertools.islice(entries, BATCH))
