"""One self-contained HTML page about a record file or a gate's log, for a reader new to all this.

It loads nothing from anywhere and has no script. Everything that comes from the file is escaped.
The same file gives the same page. Needs the extra `plots`.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from gatekeeper.errors import BadInputError
from gatekeeper.report.data import read_data
from gatekeeper.report.html import element, page
from gatekeeper.report.sections import SECTIONS

__all__ = ["report"]


def report(
    path: str | Path,
    *,
    beta: float | None = None,
    skip_bad: bool = False,
    on_bad: Callable[[BadInputError], None] = lambda error: None,
) -> str:
    """The page about this file.

    path   records (JSONL, gzip by suffix) or a gate's log (SQLite)
    beta   budget for thresholds and comparisons, in (0, 1). Default: the log's own, 0.2 for records

    `skip_bad` and `on_bad` as in `load_records`. Raises BadInputError and LogError for a file that
    is neither or holds nothing.
    """
    data = read_data(path, beta=beta, skip_bad=skip_bad, on_bad=on_bad)
    sections = (section(data) for section in SECTIONS)
    return page(
        f"gatekeeper: {data.name}",
        element("h1", "gatekeeper report"),
        element("p", data.name, class_="subtitle"),
        *(section for section in sections if section is not None),
    )
