"""The origin of a page: file and hash, or the run, and the command that makes the page again."""

from __future__ import annotations

from dataclasses import dataclass
from hashlib import file_digest
from importlib.metadata import version
from pathlib import Path

from gatekeeper.log.place import PostgresRun
from gatekeeper.log.sqlite_file import is_open_here

__all__ = ["Origin", "call_of", "name_of", "origin_of"]


@dataclass(frozen=True, slots=True)
class Origin:
    """The input and the command of one page."""

    file: str
    sha256: str  # of the file; "" while a gate writes it, as what is read is not all in that file,
    # and for a run in PostgreSQL
    version: str
    made_with: str  # a command, or a call in Python


def name_of(path: str | Path | PostgresRun) -> str:
    """The name of the file or of the run; where they are is not on the page."""
    return path.name if isinstance(path, PostgresRun) else Path(path).name


def origin_of(path: str | Path | PostgresRun, made_with: str) -> Origin:
    """Called after the file was read."""
    if isinstance(path, PostgresRun):
        return Origin(path.name, "", version("llm-gatekeeper"), made_with)
    path = Path(path)
    beside = path.with_name(f"{path.name}-wal")
    digest = ""
    if not (beside.exists() and beside.stat().st_size) and not is_open_here(path):
        with path.open("rb") as file:
            digest = file_digest(file, "sha256").hexdigest()
    return Origin(path.name, digest, version("llm-gatekeeper"), made_with)


def call_of(path: str | Path | PostgresRun, *, beta: float | None, skip_bad: bool) -> str:
    """The call that makes this page in Python."""
    name = repr(name_of(path))
    given = [f"PostgresRun('postgresql://...', {name})" if isinstance(path, PostgresRun) else name]
    given += [] if beta is None else [f"beta={beta:g}"]
    given += ["skip_bad=True"] if skip_bad else []
    return f"gatekeeper.report.report.report({', '.join(given)})"
