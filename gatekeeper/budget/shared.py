"""The account of a gate that shares its budget with other processes.

It counts the events of all processes, like any `Ledger`. The leases decide whether there is room,
because other processes hold parts of the budget: `gatekeeper.budget.leases` has the rules.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from math import inf

from gatekeeper.budget.budget import Budget
from gatekeeper.budget.lease_store import UnavailableError
from gatekeeper.budget.leases import Leases
from gatekeeper.budget.ledger import Hold, Ledger
from gatekeeper.errors import BadInputError

__all__ = ["SharedLedger"]

MOST = 1e9  # units of a cap and of a price: sums of ticks fit into 64 bits, as databases count
TOTAL, RATE = "total", "rate"  # accounts: of everything, and of what comes after the warm-up


class SharedLedger(Ledger):
    """Until `share`, it only follows a log: reservations there are held without a check.

    The warm-up has no account of its own: only `Budget.total` caps it, as in one process. A
    `fraction` of 1 caps nothing and has no account either.

    Raises
    ------
    BadInputError
        For a `fraction` with a `horizon`, because each process handles only a part of the stream,
        and for more than `MOST` units.
    """

    def __init__(self, budget: Budget, max_cost: float, *, explore: float = 0.0) -> None:
        super().__init__(budget, max_cost, explore=explore)
        self._leases: Leases | None = None
        self._flush: Callable[[], None] = lambda: None
        self._leased: dict[str, tuple[str, ...]] = {}  # accounts of reservations of this process
        self._grows = budget.fraction is not None and budget.fraction < 1.0
        # The mean cost is of the events that this process has read, not of all those before.
        self.logs_expected_cost = self._grows and not self._is_fixed_price
        if budget.fraction is not None and budget.horizon is not None:
            raise BadInputError(
                f"fraction={budget.fraction!r} with horizon={budget.horizon!r} cannot be shared by "
                "several processes yet: leave the horizon out, or give total=... with it instead"
            )

        for name, amount in _amounts(budget, max_cost):
            if amount > MOST:
                raise BadInputError(
                    f"{name}={amount!r}: several processes can share at most {MOST:g} {budget.unit}"
                )

    @property
    def price(self) -> int:
        """The price of one reservation, in ticks."""
        return self._max_cost

    @property
    def caps(self) -> dict[str, int]:
        """The caps of the accounts, in ticks, before any candidate."""
        caps = {} if self._total is None else {TOTAL: self._total}
        return caps | ({RATE: self._startup} if self._grows else {})

    @property
    def accounts(self) -> Mapping[str, float | None]:
        """The accounts; β of the one that grows with what is seen."""
        return {name: self.budget.fraction if name == RATE else None for name in self.caps}

    def share(self, leases: Leases, flush: Callable[[], None]) -> None:
        """Begin to make reservations in this process.

        Parameters
        ----------
        leases
            Leases of this process.
        flush
            Writes the candidates that the log does not have yet, so that they count. It may leave
            that to others who write at this moment.
        """
        self._leases, self._flush = leases, flush

    @contextmanager
    def following(self) -> Iterator[None]:
        """Inside, events are those of other processes, whose leases are their own."""
        leases, self._leases = self._leases, None
        try:
            yield
        finally:
            self._leases = leases

    def see(
        self,
        cost_estimate: float,
        *,
        warmup: bool,
        groups: Mapping[str, str] | None = None,
        accrued: int | None = None,
    ) -> Hold:
        hold = super().see(cost_estimate, warmup=warmup, groups=groups, accrued=accrued)
        if self._leases is not None:
            self._leases.accrue(hold.accrued)
        return hold

    def room(self, cost_estimate: float, *, warmup: bool) -> float:
        """As in a `Ledger`, but without the candidate's own share of the cap."""
        return self.left(warmup=warmup)

    def left(self, *, warmup: bool) -> float:
        return self._left_in(self._names(warmup=warmup))

    def group_room(self, accounts: Iterable[str]) -> float:
        return self._left_in(tuple(accounts))

    def _left_in(self, names: tuple[str, ...]) -> float:
        """The room in all of these accounts, beside one more verification."""
        if self._leases is None or not names:
            return inf
        self.reachable = True
        try:
            self._open(self._leases, names)
            if not self._leases.has_room(names):
                self._flush()
            return self._leases.room(names) - self.price
        except UnavailableError:
            self.reachable = False
            return -inf

    def has_beside(self, ticks: int) -> bool:
        assert self._leases is not None
        try:
            if not self._leases.knows_free():
                self._flush()
            return self._leases.room_of_all(self._names(warmup=False)) - self.price >= ticks
        except UnavailableError:
            self.reachable = False
            return False

    def reserve(self, id_: str, hold: Hold) -> bool:
        if self._leases is not None:
            names = self._names(warmup=hold.warmup) + hold.groups
            if names and not self._leases.reserve(names):  # `left` has seen to it
                return False
            self._leased[id_] = names
        self.holds[id_] = hold
        self._held[hold.warmup] += hold.amount
        self.groups.hold(hold.groups, hold.amount)
        return True

    def settle(self, id_: str, cost: float) -> float:
        warmup, base = self.holds[id_].warmup, self._base
        before = self._spent[warmup]
        charge = super().settle(id_, cost)
        if self._leases is not None and (names := self._leased.pop(id_, None)) is not None:
            self._leases.settle(names, self._spent[warmup] - before)
            self._leases.accrue(self._base - base)
        return charge

    def release(self, id_: str) -> None:
        super().release(id_)
        if self._leases is not None and (names := self._leased.pop(id_, None)) is not None:
            self._leases.release(names)

    def _open(self, leases: Leases, names: tuple[str, ...]) -> None:
        """Accounts of groups are made when their first output comes."""
        if new := [name for name in names if name not in leases.accounts]:
            leases.open(self.groups.caps(new))

    def _names(self, *, warmup: bool) -> tuple[str, ...]:
        """The accounts that cap a candidate."""
        names = () if self._total is None else (TOTAL,)
        return (*names, RATE) if self._grows and not warmup else names


def _amounts(budget: Budget, max_cost: float) -> Iterator[tuple[str, float]]:
    """Everything that is counted in the table, in units."""
    yield "max_cost", max_cost
    yield "total", budget.total or 0.0
    yield "startup", budget.startup or 0.0
    for name, caps in budget.groups.items():
        if isinstance(caps, Mapping):
            yield from ((f"groups[{name!r}][{group!r}]", cap) for group, cap in caps.items())
        else:
            yield f"groups[{name!r}]", caps
