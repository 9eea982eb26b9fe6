"""Removes what a candidate left on a disk."""

from __future__ import annotations

import contextlib
import os

__all__ = ["remove"]


def remove(directory: str) -> None:
    """Remove a directory, bringing inner ones to the top: a chain may be deeper than any stack."""
    with contextlib.suppress(OSError):
        counter = 0
        while found := list(os.scandir(directory)):
            for entry in found:
                if not entry.is_dir(follow_symlinks=False):
                    os.unlink(entry.path)
                    continue
                os.chmod(entry.path, 0o700)
                for inner in list(os.scandir(entry.path)):
                    if inner.is_dir(follow_symlinks=False):
                        os.chmod(inner.path, 0o700)
                        counter += 1
                        os.rename(inner.path, f"{directory}/{os.urandom(8).hex()}-{counter}")
                    else:
                        os.unlink(inner.path)
                os.rmdir(entry.path)
        os.rmdir(directory)
