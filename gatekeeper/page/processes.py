"""The section on the processes that share a run, and their leases."""

from __future__ import annotations

from collections.abc import Iterable

from gatekeeper.report.html import Markup, element, table
from gatekeeper.types import SharedStatus
from gatekeeper.wording import counted, plural

__all__ = ["processes"]

ACCOUNTS = {"total": "of the total", "rate": "of the share"}
NOBODY = "held by no process"


def processes(shared: SharedStatus, unit: str) -> Iterable[Markup]:
    """The content of the section.

    Parameters
    ----------
    shared
        State of the processes, from the page's gate.
    unit
        Unit of the budget.
    """
    if not shared.reachable:
        yield element(
            "p",
            f"The database cannot be reached: {counted(shared.waiting, 'event')} of this process "
            f"{plural(shared.waiting, 'waits', 'wait')} for it. The gate continues with its "
            "lease, and the rows below are older.",
            class_="caution",
        )
    accounts = [name for name in ACCOUNTS if name in shared.free]
    rows = [
        (
            f"{process.number}: {process.name}{', this one' * (process.number == shared.number)}",
            *(f"{process.leased.get(name, 0.0):.4g}" for name in accounts),
            "" if process.number == shared.number else f"{process.behind:,}",
        )
        for process in shared.processes
    ]
    if accounts and rows:
        rows.append((NOBODY, *(f"{shared.free[name]:.4g}" for name in accounts), ""))
    heads = [f"lease {ACCOUNTS[name]}, {unit}" for name in accounts]
    yield table(
        ("process", *heads, "events behind"),
        rows,
        caption="A lease is the part of the budget that one process has used or may still use; no "
        "other process can use it. It is below 0 where the process's outputs have added more to "
        "the budget than it has used. Events behind: of that process, not yet applied by this one. "
        "At most two seconds old.",
    )
