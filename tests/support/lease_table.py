"""The table of leases in memory: the same rules as `PostgresLeases` has in SQL."""

from __future__ import annotations

from collections.abc import Mapping

from gatekeeper.budget.lease_store import FENCED, Claim, FencedError, Grant, Member
from gatekeeper.budget.leases import bound_of, exchanged

__all__ = ["LeaseTable"]


class LeaseTable:
    """A `LeaseStore` in memory.

    Parameters
    ----------
    caps
        Caps of the accounts, by name, in ticks.
    price
        Price of one reservation, in ticks, above 0.
    """

    def __init__(self, caps: Mapping[str, int], price: int) -> None:
        self.caps, self.price = dict(caps), price
        self.epochs: dict[int, int] = {}
        self.live: dict[int, int] = {}  # writes of each
        self.leases: dict[tuple[int, str], Grant] = {}
        self.granted = dict.fromkeys(caps, 0)  # Σ of the leases

    def join(self) -> Member:
        writer = len(self.epochs) + 1
        self.epochs[writer] = 1
        self.live[writer] = 0
        for account in self.caps:
            self.leases[writer, account] = Grant(0, 0)
        return Member(writer, 1)

    def open(self, member: Member, caps: Mapping[str, int]) -> None:
        self._check(member)
        for account, cap in caps.items():
            self.caps.setdefault(account, cap)
            self.granted.setdefault(account, 0)
            self.leases.setdefault((member.writer, account), Grant(0, 0))

    def exchange(
        self, member: Member, claims: Mapping[str, Claim], *, trim: bool = False
    ) -> dict[str, Grant]:
        self._check(member)
        found = {}
        for account, claim in claims.items():
            granted = self.leases[member.writer, account].granted
            free = self.caps[account] - self.granted[account]
            found[account] = exchanged(granted, free, claim, len(self.live), self.price, trim=trim)
        if any(found[name] - claim.used < claim.need for name, claim in claims.items()):
            found = {name: self.leases[member.writer, name].granted for name in claims}
            claims = {name: Claim(claim.used) for name, claim in claims.items()}
        for account, granted in found.items():
            claim = claims[account]
            self._set(member.writer, account, Grant(granted, bound_of(granted, claim, self.price)))
        return {name: self.leases[member.writer, name] for name in claims}

    def leave(self, member: Member, used: Mapping[str, int]) -> None:
        self._check(member)
        for account, amount in used.items():
            self._set(member.writer, account, Grant(amount, amount))
        del self.live[member.writer]
        self.epochs[member.writer] += 1

    def beats(self) -> dict[int, int]:
        return dict(self.live)

    def free(self) -> dict[str, int]:
        return {name: cap - self.granted[name] for name, cap in self.caps.items()}

    def reclaim(self, writer: int, beat: int) -> None:
        if self.live.get(writer) != beat:
            return
        del self.live[writer]
        self.epochs[writer] += 1
        for of, account in list(self.leases):
            if of == writer:
                bound = self.leases[writer, account].bound
                self._set(writer, account, Grant(bound, bound))

    def _check(self, member: Member) -> None:
        if self.epochs[member.writer] != member.epoch:
            raise FencedError(FENCED)
        self.live[member.writer] += 1

    def _set(self, writer: int, account: str, grant: Grant) -> None:
        self.granted[account] += grant.granted - self.leases[writer, account].granted
        self.leases[writer, account] = grant
