"""The interface of the table of leases that all processes on a budget share.

`gatekeeper.budget.leases` has the rules that prevent overshoot.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple, Protocol

from gatekeeper.errors import LogError

__all__ = [
    "FENCED",
    "Claim",
    "FencedError",
    "Grant",
    "LeaseStore",
    "Member",
    "UnavailableError",
]

FENCED = "this process was taken for dead, and others spend its budget: make a new gate"


class FencedError(LogError):
    """This process was taken for dead, and its lease was reclaimed: it can spend no more."""


class UnavailableError(LogError):
    """The table cannot be reached at the moment. Nothing has changed."""


class Member(NamedTuple):
    """A process's place in the table."""

    writer: int
    epoch: int  # writes with another epoch are refused


class Claim(NamedTuple):
    """A process's claim on one account, in ticks."""

    used: int
    need: int = 0  # needed next, beyond that


class Grant(NamedTuple):
    """The table's answer, in ticks."""

    granted: int
    bound: int


class LeaseStore(Protocol):
    """The table that all processes share. Each method is one transaction.

    `open`, `exchange` and `leave` raise FencedError for an epoch that has passed; all raise
    UnavailableError where the table cannot be reached.
    """

    def join(self) -> Member:
        """Register a process on this budget, without a lease."""
        ...

    def open(self, member: Member, caps: Mapping[str, int]) -> None:
        """Add these accounts, without a lease; existing ones keep their caps."""
        ...

    def exchange(
        self, member: Member, claims: Mapping[str, Claim], *, trim: bool = False
    ) -> dict[str, Grant]:
        """Write what is used; take what is needed beside it; with `trim`, return what is too much.

        All needs are met, or none: then the bounds of no account leave room for the need.
        """
        ...

    def leave(self, member: Member, used: Mapping[str, int]) -> None:
        """Return all leases, except for what was used."""
        ...

    def beats(self) -> dict[int, int]:
        """Writes of each live process so far, by its number."""
        ...

    def free(self) -> dict[str, int]:
        """The free part of each account, at about this moment."""
        ...

    def reclaim(self, writer: int, beat: int) -> None:
        """Fence a process, charge its bounds, and return the rest of its leases. Does nothing for
        one that has ended, or has written since it had `beat` writes."""
        ...
