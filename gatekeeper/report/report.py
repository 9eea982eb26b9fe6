"""The report: one self-contained HTML page about a record file or a gate's log.

The page loads nothing from the network and has no script. Everything that comes from the file is
escaped. The same file gives the same page, but for the date. Needs the extra `plots`.
"""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime
from pathlib import Path

from gatekeeper.errors import BadInputError
from gatekeeper.log.place import PostgresRun
from gatekeeper.report.data import read_data
from gatekeeper.report.figures import check_installed
from gatekeeper.report.html import contents, element, page
from gatekeeper.report.sections import SECTIONS
from gatekeeper.report.sections.foot import foot
from gatekeeper.report.sections.in_short import in_short

__all__ = ["report"]


def report(
    path: str | Path | PostgresRun,
    *,
    beta: float | None = None,
    skip_bad: bool = False,
    on_bad: Callable[[BadInputError], None] = lambda error: None,
    made: datetime | None = None,
    command: str = "",
) -> str:
    """Make the page about a file, which is read once.

    Parameters
    ----------
    path
        Records (JSON Lines, gzip by suffix) or a gate's log (SQLite, or a run in
        PostgreSQL), also while a gate writes it.
    beta
        Budget for thresholds and comparisons, a share of the full cost in (0, 1). Default: that
        of the log; 0.2 for records.
    skip_bad, on_bad
        As in `gatekeeper.io.records.load_records`.
    made
        The date to print at the foot; None: none, so that the same file gives the same page.
    command
        The command to print at the foot, which makes the page again; default: this call.

    Returns
    -------
    str
        HTML.

    Raises
    ------
    BadInputError, LogError
        For a file that is neither records nor a log, or that is empty; for another `beta`.
    MissingDependencyError
        Without matplotlib (extra `plots`).
    """
    check_installed()
    data = read_data(path, beta=beta, skip_bad=skip_bad, on_bad=on_bad, command=command)
    sections = [shown for section in SECTIONS if (shown := section(data)) is not None]
    return page(
        f"gatekeeper: {data.name}",
        element("h1", "gatekeeper report"),
        element("p", data.name, class_="subtitle"),
        in_short(data),
        contents(sections),
        *sections,
        foot(data.origin, made),
    )
