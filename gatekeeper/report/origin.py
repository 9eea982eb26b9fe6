"""Where a page comes from: the file, its hash, and the command that makes the page again."""

from __future__ import annotations

import shlex
from dataclasses import dataclass
from hashlib import file_digest
from importlib.metadata import version
from pathlib import Path

__all__ = ["Origin", "command_of", "origin_of"]


@dataclass(frozen=True, slots=True)
class Origin:
    """Of one page."""

    file: str
    sha256: str  # of the file; "" while a gate writes it, as what is read is not all in that file
    version: str
    command: str


def origin_of(path: str | Path, command: str) -> Origin:
    """Called after the file was read."""
    path = Path(path)
    beside = path.with_name(f"{path.name}-wal")
    digest = ""
    if not (beside.exists() and beside.stat().st_size):
        with path.open("rb") as file:
            digest = file_digest(file, "sha256").hexdigest()
    return Origin(path.name, digest, version("llm-gatekeeper"), command)


def command_of(path: str | Path, *, beta: float | None, skip_bad: bool) -> str:
    """What makes this page on a command line."""
    name = Path(path).name
    words = ["gatekeeper", "report", name if not name.startswith("-") else f"./{name}"]
    words += ["-o", "report.html"]
    words += [] if beta is None else ["--beta", f"{beta:g}"]
    return shlex.join([*words, "--skip-bad"] if skip_bad else words)
