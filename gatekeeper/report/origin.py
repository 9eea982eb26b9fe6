"""Where a page comes from: file and hash, or the run, and the command that makes it again."""

from __future__ import annotations

import shlex
from dataclasses import dataclass
from hashlib import file_digest
from importlib.metadata import version
from pathlib import Path

from gatekeeper.log.place import PostgresRun

__all__ = ["Origin", "command_of", "name_of", "origin_of"]


@dataclass(frozen=True, slots=True)
class Origin:
    """Of one page."""

    file: str
    sha256: str  # of the file; "" while a gate writes it, as what is read is not all in that file,
    # and for a run in PostgreSQL
    version: str
    command: str


def name_of(path: str | Path | PostgresRun) -> str:
    """The name of the file or of the run; where they are is not on the page."""
    return path.name if isinstance(path, PostgresRun) else Path(path).name


def origin_of(path: str | Path | PostgresRun, command: str) -> Origin:
    """Called after the file was read."""
    if isinstance(path, PostgresRun):
        return Origin(path.name, "", version("llm-gatekeeper"), command)
    path = Path(path)
    beside = path.with_name(f"{path.name}-wal")
    digest = ""
    if not (beside.exists() and beside.stat().st_size):
        with path.open("rb") as file:
            digest = file_digest(file, "sha256").hexdigest()
    return Origin(path.name, digest, version("llm-gatekeeper"), command)


def command_of(path: str | Path | PostgresRun, *, beta: float | None, skip_bad: bool) -> str:
    """What makes this page on a command line."""
    name = name_of(path)
    if isinstance(path, PostgresRun):
        words = ["gatekeeper", "report", "postgresql://...", f"--run={name}"]
    else:
        words = ["gatekeeper", "report", name if not name.startswith("-") else f"./{name}"]
    words += ["-o", "report.html"]
    words += [] if beta is None else ["--beta", f"{beta:g}"]
    return shlex.join([*words, "--skip-bad"] if skip_bad else words)
