"""The processes that share a run, as one of them sees them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

__all__ = ["SharedProcess", "SharedStatus"]


@dataclass(frozen=True, slots=True)
class SharedProcess:
    """A process on a shared run that is not taken for dead.

    Attributes
    ----------
    number
        Number of the process in the run.
    name
        Its host and process id.
    leased
        What it holds of each account beyond what others can use, in the budget's unit: its lease.
        Below 0 where its candidates have added more than it has used.
    behind
        Events of it that this process has not applied yet.
    """

    number: int
    name: str
    leased: Mapping[str, float] = field(hash=False)
    behind: int


@dataclass(frozen=True, slots=True)
class SharedStatus:
    """What a gate knows of the processes that share its run, two seconds ago at most.

    Attributes
    ----------
    number
        Number of this process.
    processes
        Those that live, this one included.
    free
        What no process holds of each account, in the budget's unit.
    waiting
        Events of this process that are not in the database yet.
    reachable
        Whether the database could be asked the last time.
    """

    number: int
    processes: tuple[SharedProcess, ...]
    free: Mapping[str, float] = field(hash=False)
    waiting: int
    reachable: bool
