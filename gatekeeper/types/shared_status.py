"""The processes that share a run, from the view of one of them."""

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
        Its lease: the part of each account that no other process can use, in the budget's unit.
        Below 0 if its candidates have added more than it has used.
    behind
        Events of it that this process has not applied yet.
    """

    number: int
    name: str
    leased: Mapping[str, float] = field(hash=False)
    behind: int


@dataclass(frozen=True, slots=True)
class SharedStatus:
    """The processes that share a gate's run, at most two seconds old.

    Attributes
    ----------
    number
        Number of this process.
    processes
        The live ones, this one included.
    free
        The part of each account that no process holds, in the budget's unit.
    waiting
        Events of this process that are not in the database yet.
    reachable
        Whether the database could be reached the last time.
    """

    number: int
    processes: tuple[SharedProcess, ...]
    free: Mapping[str, float] = field(hash=False)
    waiting: int
    reachable: bool
