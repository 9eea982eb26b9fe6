"""One budget in eight processes: kills, pauses, returns, a table that cannot be reached."""

from __future__ import annotations

import random
from collections.abc import Mapping
from fractions import Fraction
from functools import partial
from typing import TYPE_CHECKING

import pytest
from lease_table import LeaseTable
from shared_runs import FULL, asked

from gatekeeper.budget import leases
from gatekeeper.budget.lease_store import (
    Claim,
    FencedError,
    Grant,
    LeaseStore,
    Member,
    UnavailableError,
)
from gatekeeper.budget.leases import AHEAD, Leases
from gatekeeper.budget.silence import LOOKS

if TYPE_CHECKING:
    from postgres import Server

    from gatekeeper.log import PostgresRun
    from gatekeeper.log.postgres_leases import PostgresLeases

PROCESSES, STEPS = 8, 300
SEEDS = range(1000 if FULL else 200)


class Unreliable:
    """A store that fails for a while, before or after it has stored a request."""

    def __init__(self, store: LeaseStore, rng: random.Random, lost: float = 0.03) -> None:
        self._store, self._rng, self._lost = store, rng, lost
        self.gone = False

    def join(self) -> Member:
        return self._store.join()

    def exchange(
        self, member: Member, claims: Mapping[str, Claim], *, trim: bool = False
    ) -> dict[str, Grant]:
        if self.gone:
            raise UnavailableError("gone")
        answer = self._store.exchange(member, claims, trim=trim)
        if self._rng.random() < self._lost:
            raise UnavailableError("the answer was lost")
        return answer

    def open(self, member: Member, caps: Mapping[str, int]) -> None:
        if self.gone:
            raise UnavailableError("gone")
        self._store.open(member, caps)
        if self._rng.random() < self._lost:
            raise UnavailableError("the answer was lost")

    def leave(self, member: Member, used: Mapping[str, int]) -> None:
        if self.gone:
            raise UnavailableError("gone")
        self._store.leave(member, used)

    def beats(self) -> dict[int, int]:
        if self.gone:
            raise UnavailableError("gone")
        return self._store.beats()

    def free(self) -> dict[str, int]:
        return self._store.free()

    def reclaim(self, writer: int, beat: int) -> None:
        if self.gone:
            raise UnavailableError("gone")
        self._store.reclaim(writer, beat)


class Process:
    """What a process has done, as an observer of all processes knows it."""

    def __init__(self, world: World) -> None:
        self.leases = Leases(world.store, world.price, world.accounts)
        self.writer = self.leases.member.writer
        self.open: list[tuple[tuple[str, ...], int]] = []  # accounts and accrual of reservations
        self.state = "runs"  # or "paused", "fenced", "killed", "left"
        self.base = 0  # that the log has

    def committed(self, account: str) -> int:
        if account not in self.leases.accounts:  # of a group that it has not seen
            return 0
        lease = self.leases.accounts[account]
        return lease.spent + lease.held


class World:
    """One history. `check` holds at every moment.

    Accounts: "total" caps everything, "rate" what comes after the warm-up; either may be absent.
    Those of tenants and of a day are opened when their first candidate comes.
    """

    def __init__(self, seed: int, store: LeaseStore | None = None) -> None:
        self.rng = rng = random.Random(f"history {seed}")
        self.price = rng.choice((1, 10, 10**9))
        kind = rng.choice(("total", "rate", "both", "horizon"))
        self.beta = (
            None if kind in ("total", "horizon") else rng.choice((0.1, 0.2, 1 / 3, 0.9, 1.0))
        )
        self.ratio = Fraction(self.beta or 0).as_integer_ratio()
        caps, self.accounts = {}, {}
        if kind in ("total", "both"):
            caps["total"] = rng.randint(1, 400) * self.price
            self.accounts["total"] = None
        if kind != "total":
            caps["rate"] = rng.choice((0, 1, 30 if self.beta is None else 3)) * self.price
            self.accounts["rate"] = self.beta
        self.table = LeaseTable(caps, self.price)
        self.groups = {
            f"{name}={group}": rng.randint(0, most) * self.price
            for name, group, most in (("tenant", "a", 5), ("tenant", "b", 60), ("day", "mo", 200))
        }
        self.caps = caps | self.groups
        self.store = Unreliable(self.table if store is None else store, rng)
        self.processes: list[Process] = []
        self.past: list[Process] = []  # that others followed
        self.kills = self.refused = self.reserved = 0

    def play(self, steps: int) -> None:
        rng = self.rng
        self.processes = [Process(self) for _ in range(PROCESSES)]
        for _ in range(steps):
            process = rng.choice(self.processes)
            draw = rng.random()
            if process.state == "runs":
                self.act(process, draw)
            elif process.state in ("killed", "paused") and draw < 0.2:
                self.reclaim(process)
            elif process.state == "paused" and draw < 0.4:
                process.state = "runs"
            elif (
                process.state in ("killed", "left", "fenced") and draw < 0.3 and not self.store.gone
            ):
                self.processes.append(Process(self))
                self.processes.remove(process)
                self.ended(process)
            if rng.random() < 0.02:
                self.store.gone = not self.store.gone
            self.check()

    def reclaim(self, process: Process) -> None:
        """The others take this process for dead, which it may not be."""
        if not self.store.gone:
            self.store.reclaim(process.writer, self.store.beats().get(process.writer, 0))

    def ended(self, process: Process) -> None:
        """Another process takes its place; what this one did still counts."""
        if process.state == "killed":
            self.reclaim(process)
        self.past.append(process)

    def act(self, process: Process, draw: float) -> None:
        rng = self.rng
        try:
            if draw < 0.75:
                self.candidate(process)
            elif draw < 0.9 and process.open:
                self.end_one(process)
            elif draw < 0.95:
                process.leases.write(trim=True)
            elif draw < 0.97:
                process.state, self.kills = "killed", self.kills + 1
            elif draw < 0.985:
                process.state = "paused"
            elif draw < 0.99 and rng.random() < 0.5:
                process.leases.leave()
                process.state = "left"
        except FencedError:
            process.state = "fenced"
        except UnavailableError:
            pass

    def candidate(self, process: Process, *, warmup: bool | None = None) -> bool:
        """A candidate is decided on; whether it was reserved."""
        rng, price = self.rng, self.price
        warmup = rng.random() < 0.2 if warmup is None else warmup
        names = tuple(n for n in self.accounts if n == "total" or not warmup)
        accrual = 0
        if not warmup:
            accrual = price if self.beta == 1.0 else rng.randint(0, price)
            process.base += accrual
            if "rate" in self.accounts:
                process.leases.accounts["rate"].grow(accrual)
        tenant = rng.choice(("tenant=a", "tenant=b", "tenant=c"))
        groups = [n for n in (tenant, "day=mo") if n in self.groups and rng.random() < 0.7]
        names += self.opened(process, groups)
        if not names:
            return False
        reserved = self.reserve(process, names, rng.choice((1, 1, 2, 7)))
        for _ in range(reserved):
            process.open.append((names, accrual))
            accrual = 0  # of the first alone
        return reserved > 0

    def opened(self, process: Process, groups: list[str]) -> tuple[str, ...]:
        if new := {n: self.groups[n] for n in groups if n not in process.leases.accounts}:
            process.leases.open(new)
        return tuple(groups)

    def reserve(self, process: Process, names: tuple[str, ...], count: int = 1) -> int:
        reserved = process.leases.reserve(names, count)
        self.reserved += reserved
        self.refused += count - reserved
        if reserved < count:
            assert any(self.room(process, n) < self.price for n in names), "room was left"
        return reserved

    def room(self, process: Process, account: str) -> int:
        """What is left for this process: in its lease, and not in any lease."""
        lease = self.table.leases[process.writer, account]
        used = process.leases.accounts[account].claim().used
        return self.caps[account] - self.table.granted[account] + lease.granted - used

    def end_one(self, process: Process) -> None:
        names, accrual = process.open.pop(self.rng.randrange(len(process.open)))
        if self.rng.random() < 0.2:
            process.leases.release(names)
            return
        cost = self.rng.randint(0, self.price)
        process.leases.settle(names, cost)
        if "rate" in names:
            process.base += cost - accrual
            process.leases.accounts["rate"].grow(cost - accrual)

    def check(self) -> None:
        everyone = [*self.processes, *self.past]
        for account, cap in self.caps.items():
            committed = sum(p.committed(account) for p in everyone)
            earned = sum(self.earned(p, account) for p in everyone)
            assert committed <= cap + earned, "overshoot"
            grants = [self.table.leases.get((p.writer, account), Grant(0, 0)) for p in everyone]
            assert sum(g.granted for g in grants) == self.table.granted.get(account, 0) <= cap
            for process, grant in zip(everyone, grants, strict=True):
                used = process.committed(account) - self.earned(process, account)
                assert used <= grant.bound <= grant.granted
                if process.writer not in self.table.live:  # charged and returned, once
                    assert grant.bound == grant.granted

    def earned(self, process: Process, account: str) -> int:
        """The amount that its candidates allow."""
        if account != "rate" or self.beta is None:
            return 0
        numerator, denominator = self.ratio
        return numerator * process.base // denominator

    def finish(self) -> None:
        """All live processes ask until there is no room; then nearly nothing may be left."""
        self.store.gone = False
        for process in self.processes:
            if process.state in ("killed", "paused"):
                self.reclaim(process)
        live = [p for p in self.processes if p.state == "runs" and p.writer in self.table.live]
        for _ in range(12):
            for process in live[:1]:  # the others are idle, and return what they do not need
                while True:
                    try:
                        if not self.reserve(process, tuple(self.accounts)):
                            break
                    except UnavailableError:
                        continue
                self.check()
            for process in live:
                for _ in range(20):
                    try:
                        process.leases.write(trim=True)
                        break
                    except UnavailableError:
                        continue
                self.check()
        assert not live or min(map(partial(self.unused, live), self.accounts)) <= self.few(live)
        for group in self.groups if live else ():  # whatever became of the others
            self.use_up(live, group)
            assert self.unused(live, group) <= self.few(live)

    def few(self, live: list[Process]) -> int:
        """One price for each process."""
        return len(live) * self.price

    def unused(self, live: list[Process], account: str) -> int:
        unused = self.caps[account] - self.table.granted.get(account, 0)
        for process in live:
            if account in process.leases.accounts:
                granted = self.table.leases[process.writer, account].granted
                unused += granted - process.leases.accounts[account].claim().used
        return unused

    def use_up(self, live: list[Process], group: str) -> None:
        """One asks for this alone until it is full, and the others return what they have."""
        for _ in range(4):
            for process in live:
                for _ in range(20):
                    try:
                        process.leases.write(trim=True)
                        break
                    except UnavailableError:
                        continue
            while True:
                try:
                    if not self.reserve(live[0], self.opened(live[0], [group])):
                        break
                except UnavailableError:
                    continue
            self.check()


@pytest.mark.parametrize("ahead", [2, AHEAD])
def test_no_history_overshoots(ahead: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Eight processes: overshoot 0 at every moment, no refusal while there is room, all leases
    returned or charged once, at most one price for each process left unused. `make test-scale`
    plays 1,000 histories."""
    monkeypatch.setattr(leases, "AHEAD", ahead)
    kills = refused = reserved = fenced = 0
    seeds = SEEDS if ahead == AHEAD else SEEDS[: len(SEEDS) // 3]
    for seed in seeds:
        world = World(seed)
        world.play(STEPS)
        world.finish()
        kills, refused = kills + world.kills, refused + world.refused
        reserved += world.reserved
        fenced += sum(p.state == "fenced" for p in [*world.processes, *world.past])
    assert min(kills, refused, reserved, fenced) > len(seeds) / 2


class Both:
    """The table in memory and the one in PostgreSQL, which must answer alike."""

    def __init__(self, table: LeaseTable, other: LeaseStore) -> None:
        self.table, self.other = table, other

    def join(self) -> Member:
        member = self.table.join()
        assert self.other.join() == member
        return member

    def exchange(
        self, member: Member, claims: Mapping[str, Claim], *, trim: bool = False
    ) -> dict[str, Grant]:
        def ask(store: LeaseStore) -> object:
            try:
                return store.exchange(member, claims, trim=trim)
            except FencedError as error:
                return str(error)

        answer, other = ask(self.table), ask(self.other)
        assert answer == other
        if isinstance(answer, str):
            raise FencedError(answer)
        return answer

    def open(self, member: Member, caps: Mapping[str, int]) -> None:
        for store in (self.table, self.other):
            store.open(member, caps)

    def leave(self, member: Member, used: Mapping[str, int]) -> None:
        self.table.leave(member, used)
        self.other.leave(member, used)

    def beats(self) -> dict[int, int]:
        beats = self.table.beats()
        assert self.other.beats() == beats
        return beats

    def free(self) -> dict[str, int]:
        free = self.table.free()
        assert self.other.free() == free
        return free

    def reclaim(self, writer: int, beat: int) -> None:
        self.table.reclaim(writer, beat)
        self.other.reclaim(writer, beat)


def both(place: PostgresRun, table: LeaseTable) -> tuple[Both, PostgresLeases]:
    from gatekeeper.log import open_log
    from gatekeeper.log.postgres_leases import PostgresLeases

    open_log(place).close()
    store = PostgresLeases(place, table.caps, table.price)
    return Both(table, store), store


def test_room_that_candidates_add_is_shared() -> None:
    table, names = LeaseTable({"rate": 0}, 10), ("rate",)
    one, two = (Leases(table, 10, {"rate": 0.5}) for _ in range(2))
    one.grow(100)  # five reservations
    assert not two.reserve(names)
    one.share()
    assert two.reserve(names, 5) == 4
    before = table.beats()
    one.share()  # nothing more
    assert table.beats() == before


def test_a_silent_process_is_taken_for_dead(postgres: Server) -> None:
    """After `LOOKS` looks of a live process; not if it writes, or if the table was unreachable."""
    table = LeaseTable({"total": 100}, 1)
    alike, sql = both(postgres.new_run(), table)
    store = Unreliable(alike, random.Random(0), lost=0.0)
    alive, idle, dead = (Leases(store, 1, {"total": None}) for _ in range(3))
    assert dead.reserve(("total",), 3) == 3
    for _ in range(LOOKS):
        alive.beat()
        idle.beat()
    store.gone = True
    for process in (alive, idle) * (LOOKS + 1):  # what is not seen does not count
        with pytest.raises(UnavailableError):
            process.beat()
    store.gone = False
    for _ in range(LOOKS):
        alive.beat()
        idle.beat()
    assert len(table.live) == 3
    alive.beat()
    assert set(table.live) == {alive.member.writer, idle.member.writer}
    charged = table.leases[dead.member.writer, "total"]
    assert charged.granted == charged.bound <= 3 + AHEAD
    with pytest.raises(FencedError):
        dead.beat()
    assert alive.reserve(("total",), 100) == 100 - charged.bound
    sql.close()


@pytest.mark.parametrize("seed", range(6))
def test_sql_answers_as_the_model_does(seed: int, postgres: Server) -> None:
    """The same histories, in both: the same grants, refusals and fences, and the same rows."""
    place, world = postgres.new_run(), World(seed)
    alike, store = both(place, world.table)
    world.store = Unreliable(alike, world.rng)
    world.play(200)
    world.finish()
    found = asked(
        place,
        "SELECT writer, account, l.granted, bound FROM gatekeeper.leases l"
        " JOIN gatekeeper.runs USING (run) WHERE name = %s",
    )
    assert {(w, a): Grant(g, b) for w, a, g, b in found} == world.table.leases
    store.close()
