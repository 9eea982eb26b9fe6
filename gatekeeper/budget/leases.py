"""One budget in many processes: leases of rights to spend, and what makes overshoot impossible.

An account is a cap in ticks. A process holds a lease on it and spends from that alone; it queries
the table, which all processes share, only when its lease is used up. For each account and process

    used <= bound <= granted,        and        Σ granted <= cap,

where `used` is what the process has spent and holds, which it alone knows at any moment; `bound` is
the most that it may have used by what it has written so far; `granted` is its lease. So at every
moment Σ used <= cap, whichever process is killed or stopped:

- A process raises `bound` in the table *before* it uses more than that.
- One that is taken for dead is fenced: its epoch is raised, and the table refuses what it writes
  later. Then its bound is charged, and the rest of its lease returns. If it is still alive, it can
  use no more than its bound, which is charged. So safety does not depend on when a process is taken
  for dead; no amount expires by a clock.
- `bound` is up to `AHEAD` prices more than `used`: a process can use that much while the table
  cannot be reached.

So an amount that covers a reservation is on disk before its verifier runs, as in a gate that is
alone. `AHEAD` is small, since it is also what a process that is killed may leave charged and
unspent. The rate does not need it: reservations that come together are written together (`count` of
`reserve`), and a process writes what it uses into a row of its own, for which it waits for no other
process.

A process is taken for dead when others have found no write of it for a while, which `Silence`
defines. Safety does not depend on that.

A budget that is a fraction β of what comes splits by itself: a process that has seen candidates of
base b has ⌊β b⌋ more to use, since Σ ⌊β bᵢ⌋ <= ⌊β Σ bᵢ⌋. Its `used` is what it has spent and holds
less that, may be negative, and only what is left of others' rights is leased. Candidates count once
the log has them, as others cannot know of them before. Then they make `used` less, and need not be
written to the table; but only as much as is needed counts, so that `bound` stays close above it.

A group of outputs that has a cap has an account of its own, which is opened when the first of them
comes. A reservation is held in all its accounts or in none, as the needs of an exchange are met
together or not at all; so a full group takes nothing from the others.

References
----------
P. O'Neil (1986): The escrow transactional method. ACM TODS 11(4).
V. Balegas et al. (2015): Extending eventually consistent cloud databases for enforcing numeric
invariants (bounded counters). SRDS.
"""

from __future__ import annotations

from collections.abc import Mapping
from threading import RLock
from time import monotonic

from gatekeeper.budget.lease_store import Claim, Grant, LeaseStore, UnavailableError
from gatekeeper.budget.silence import Silence
from gatekeeper.errors import LogError

__all__ = ["Lease", "Leases", "bound_of", "exchanged", "lease_size"]

LARGEST = 256  # prices of a lease
SHARE = 4  # a lease is at most 1/4 of a process's even part of what is left
AHEAD = 4  # prices by which `bound` is above what is used; what a process that dies may lose
FRESH = 0.05  # seconds for which the free part is not queried again


def lease_size(left: int, live: int, price: int) -> int:
    """Ticks that a process should hold beyond what it uses.

    Parameters
    ----------
    left
        Left of the account, including what this process holds unused.
    live
        Processes, at least 1.
    price
        Price of one reservation. The end of a budget is leased one by one, so that little is left
        unused.
    """
    return min(max(left // (SHARE * live), price), LARGEST * price)


def exchanged(
    granted: int, free: int, claim: Claim, live: int, price: int, *, trim: bool = False
) -> int:
    """The lease of a process after an exchange, in ticks; unchanged where its need cannot be met.

    Parameters
    ----------
    granted, free
        Its lease before, and the free part of the account.
    """
    spare = granted - claim.used
    size = max(claim.need, lease_size(free + spare, live, price))
    if spare < claim.need <= spare + free:
        return granted + min(size - spare, free)
    if trim and spare > size:
        return granted - (spare - size)
    return granted


def bound_of(granted: int, claim: Claim, price: int) -> int:
    """The most that a process may use until it writes again."""
    return min(granted, claim.used + max(claim.need, AHEAD * price))


class Lease:
    """One account in one process: what it has spent and holds, within its bound.

    Parameters
    ----------
    fraction
        β in (0, 1], of an account that also grows by what this process sees; None: it does not.
    """

    def __init__(self, fraction: float | None = None) -> None:
        self._fraction = (0, 1) if fraction is None else fraction.as_integer_ratio()
        self.spent = self.held = 0
        self._granted = self._bound = 0
        self._kept = 0  # room that was not too much
        self._base = 0  # Σ cost of the candidates that the log has
        self._minted = 0  # ticks that these add
        self._credited = 0  # ticks of these that are credited: no more than needed

    @property
    def used(self) -> int:
        """Spent and held, less what candidates allow, as far as that is credited."""
        return self.spent + self.held - self._credited

    def has_room(self, amount: int) -> bool:
        """Whether the lease has room for this much more, without a query."""
        missing = self.used + amount - self._bound
        if missing > 0 and missing <= self._minted - self._credited:
            self._credited += missing
            missing = 0
        return missing <= 0

    @property
    def room(self) -> int:
        """The unused amount of the lease, with all that candidates allow."""
        return self._granted - self.claim().used

    def grow(self, amount: int) -> None:
        """Count a candidate, or what its true cost is above (below 0: below) its estimate."""
        self._base += amount
        part, whole = self._fraction
        self._minted = self._base * part // whole
        self._credited = min(self._minted, self._credited)

    def claim(self, need: int = 0) -> Claim:
        """The claim to write, together with all candidates so far."""
        return Claim(self.spent + self.held - self._minted, need)

    def lower(self, room: int) -> None:
        """Limit the room to this much beyond the claim until the table has answered."""
        self._credited = self._minted
        self._bound = min(self._bound, self.used + room)

    def confirm(self, grant: Grant, *, trimmed: bool) -> None:
        """Apply the answer to a claim, before anything else has changed."""
        self._credited, (self._granted, self._bound) = self._minted, grant
        self._kept = self.room if trimmed else min(self._kept, self.room)

    @property
    def gained(self) -> int:
        """The room that may be too much: what was leased or added since the last trim."""
        return self.room - self._kept


class Leases:
    """All accounts of one process. Thread-safe.

    What a candidate adds to an account with a fraction waits (`accrue`) until the log has it
    (`take_accrued`, then `grow`).

    Parameters
    ----------
    store
        The shared table.
    price
        Price of one reservation, in ticks.
    accounts
        The accounts; those with a fraction, with it.
    """

    def __init__(self, store: LeaseStore, price: int, accounts: Mapping[str, float | None]) -> None:
        self._store, self._price = store, price
        self.accounts = {name: Lease(fraction) for name, fraction in accounts.items()}
        self._first = tuple(accounts)
        self.member = store.join()
        self._silence = Silence()
        self._lock = RLock()
        self._accrued = 0
        self._written: dict[str, Claim] = {}  # by the last write, without its needs
        self._free: dict[str, int] = {}
        self._fresh_until = 0.0

    def open(self, caps: Mapping[str, int]) -> None:
        """Have accounts beside the first ones, with these caps in ticks. Raises as `reserve`."""
        with self._lock:
            self._store.open(self.member, caps)
            for name in caps:
                self.accounts.setdefault(name, Lease())

    def reserve(self, names: tuple[str, ...], count: int = 1) -> int:
        """Hold the price of reservations in these accounts.

        Parameters
        ----------
        names
            Accounts, each of which must have room.
        count
            Reservations that are asked for together, at least 1: one write is enough for them.

        Returns
        -------
        int
            Reservations that are held, at most `count`; fewer only where an account has no room
            for more.

        Raises
        ------
        UnavailableError
            Where the bound has no room for all and the table cannot be asked; then none is held.
        FencedError
            Where it has none, and this process was taken for dead; then none is held.
        """
        with self._lock:
            held, step = 0, count
            try:
                while step and held < count:
                    step = min(step, count - held)
                    if self._hold(names, step * self._price):
                        held += step
                    else:
                        step //= 2
            except LogError:
                self._unhold(names, held)
                raise
            return held

    def _hold(self, names: tuple[str, ...], amount: int) -> bool:
        chosen = [self.accounts[name] for name in names]
        if not all(lease.has_room(amount) for lease in chosen):
            self.write(dict.fromkeys(names, amount))
            if not all(lease.has_room(amount) for lease in chosen):
                return False
        for lease in chosen:
            lease.held += amount
        return True

    def has_room(self, names: tuple[str, ...]) -> bool:
        """Whether the leases have room for one more reservation, without a query."""
        with self._lock:
            return all(self.accounts[name].has_room(self._price) for name in names)

    def room(self, names: tuple[str, ...]) -> int:
        """Ticks that the leases have beyond what is used; those for one more reservation are asked
        for where they are missing. Raises as `reserve`."""
        with self._lock:
            if not self.has_room(names):
                self.write(dict.fromkeys(names, self._price))
                if not self.has_room(names):
                    return 0
            return min(self.accounts[name].room for name in names)

    def room_of_all(self, names: tuple[str, ...]) -> int:
        """The same, and what no process holds. Raises as `reserve`."""
        with self._lock:
            free = self.free()
            return min(self.accounts[name].room + free[name] for name in names)

    def free(self) -> dict[str, int]:
        """The amount of each account that no process holds, at most `FRESH` seconds old.

        No reservation depends on it. Raises as `reserve`.
        """
        with self._lock:
            if not self.knows_free():
                self._free, self._fresh_until = self._store.free(), monotonic() + FRESH
            return self._free

    def knows_free(self) -> bool:
        """Whether `free` would not ask the table."""
        return monotonic() < self._fresh_until

    def settle(self, names: tuple[str, ...], cost: int) -> None:
        """Charge a reservation: at most its price."""
        with self._lock:
            for name in names:
                self.accounts[name].held -= self._price
                self.accounts[name].spent += cost

    def release(self, names: tuple[str, ...]) -> None:
        """Give a reservation back."""
        self._unhold(names, 1)

    def _unhold(self, names: tuple[str, ...], count: int) -> None:
        with self._lock:
            for name in names:
                self.accounts[name].held -= count * self._price

    def accrue(self, amount: int) -> None:
        """Add the amount that a candidate allows, or its change by the true cost.

        A negative change counts at once.
        """
        with self._lock:
            if amount < 0:
                self.grow(amount)
            else:
                self._accrued += amount

    def take_accrued(self) -> int:
        """The amount accrued since the last call; pass it to `grow` once the log has it."""
        with self._lock:
            amount, self._accrued = self._accrued, 0
            return amount

    def grow(self, amount: int) -> None:
        """Count candidates that the log has."""
        with self._lock:
            for lease in self.accounts.values():
                lease.grow(amount)

    def write(self, needs: Mapping[str, int] | None = None, *, trim: bool = False) -> None:
        """Write what is used; take what is needed; return what is too much. Raises as `reserve`."""
        with self._lock:
            needs = needs or {}
            claims = {
                name: lease.claim(needs.get(name, 0)) for name, lease in self.accounts.items()
            }
            for lease in self.accounts.values():  # a lost answer may have lowered the bound
                lease.lower(self._price if trim else AHEAD * self._price)
            self._fresh_until = 0.0
            grants = self._store.exchange(self.member, claims, trim=trim)
            for name, grant in grants.items():
                self.accounts[name].confirm(grant, trimmed=trim)
            self._written = {name: claim._replace(need=0) for name, claim in claims.items()}

    def write_ahead(self) -> None:
        """Write, if the bounds leave little and something has changed: before a caller has to wait
        for that, or the table cannot be reached. Raises as `reserve`.

        Accounts that were opened later get bounds, and no lease: one that is full would keep the
        others from getting any.
        """
        with self._lock:
            little = AHEAD // 2 * self._price
            if all(self._is_ahead(name, little) for name in self.accounts):
                return
            if {name: lease.claim() for name, lease in self.accounts.items()} != self._written:
                self.write(dict.fromkeys(self._first, self._price))

    def _is_ahead(self, name: str, little: int) -> bool:
        lease = self.accounts[name]
        return lease.has_room(little) or (name not in self._first and lease.room < little)

    def share(self) -> None:
        """Return what is too much, if the room has grown by a price: other processes may need it.
        Raises as `reserve`.
        """
        with self._lock:
            if any(lease.gained >= self._price for lease in self.accounts.values()):
                self.write(trim=True)

    def beat(self) -> None:
        """Write a sign of life, return what is too much, and reclaim the leases of processes that
        are taken for dead. To be called every `silence.BEAT` seconds. Raises as `reserve`.
        """
        with self._lock:
            try:
                self.write(trim=True)
                beats = self._store.beats()
                beats.pop(self.member.writer, None)
                for writer, beat in self._silence.look(beats):
                    self._store.reclaim(writer, beat)
            except UnavailableError:
                self._silence.forget()
                raise

    def leave(self) -> None:
        """Return all leases. What is still held stays charged."""
        with self._lock:
            self._store.leave(
                self.member, {name: lease.claim().used for name, lease in self.accounts.items()}
            )
