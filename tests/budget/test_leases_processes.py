"""One budget in eight real processes on PostgreSQL: kill -9, SIGSTOP, a database that stops."""

from __future__ import annotations

import multiprocessing
import os
import random
import signal
import time
from multiprocessing.process import BaseProcess
from pathlib import Path
from typing import TYPE_CHECKING, Any

import psycopg
import pytest
from shared_runs import AWAY, FULL, HISTORIES, PATIENCE, reclaim_writer, until

from gatekeeper.budget.lease_store import FencedError, UnavailableError
from gatekeeper.budget.leases import AHEAD, Leases
from gatekeeper.log import PostgresRun, open_log, postgres_link
from gatekeeper.log.postgres_leases import PostgresLeases

if TYPE_CHECKING:
    from postgres import Server

PRICE, PROCESSES = 10, 8
TASKS = 1000 if FULL else 250  # of each process
FORK = multiprocessing.get_context("fork")


def work(
    place: PostgresRun, caps: dict[str, int], tasks: int, book: Path, seed: int, ended: Any
) -> None:
    """Reserve, verify and settle, until the tasks or `ended`; each step appends a line to the file
    when it is done.

    The last line is "left", or "fenced" if this process finds that it was taken for dead.
    """
    rng = random.Random(seed)
    file = os.open(book, os.O_WRONLY | os.O_APPEND)

    def note(text: str) -> None:
        os.write(file, f"{text}\n".encode())

    store = PostgresLeases(place, caps, PRICE)
    leases = Leases(store, PRICE, dict.fromkeys(caps))
    note(f"join {leases.member.writer} {os.getpid()}")
    names = tuple(caps)
    for i in range(tasks):
        if ended.value:
            break
        try:
            if not leases.reserve(names):
                note("refused")
                time.sleep(0.02)
                continue
            note(f"spend {PRICE}")
            cost = rng.randint(0, PRICE)
            note(f"spend {cost - PRICE}")
            leases.settle(names, cost)
            if i % 20 == 0:
                leases.write(trim=True)
        except UnavailableError:
            note("unavailable")
            time.sleep(0.02)
        except FencedError:
            note("fenced")
            return
    while True:
        try:
            leases.leave()
        except UnavailableError:
            time.sleep(0.02)
        except FencedError:
            note("fenced")
            return
        else:
            note("left")
            return


class History:
    """Processes on one run; `check` holds at every moment."""

    def __init__(self, postgres: Server, seed: int, folder: Path) -> None:
        self.rng = random.Random(f"processes {seed}")
        self.place = postgres.new_run()
        open_log(self.place).close()
        self.caps = {"total": self.rng.randint(50, 6 * TASKS) * PRICE, "rate": 4 * TASKS * PRICE}
        self.book = folder / f"book {seed}"
        self.book.touch()
        self.running: list[BaseProcess] = []
        self.started = self.kills = 0
        self.ended = FORK.RawValue("b", 0)  # without a lock, which a killed process would keep

    def start(self, tasks: int = TASKS) -> BaseProcess:
        self.started += 1
        arguments = (self.place, self.caps, tasks, self.book, self.started, self.ended)
        process = FORK.Process(target=work, args=arguments)
        process.start()
        self.running.append(process)
        return process

    def writer_of(self, process: BaseProcess) -> int:
        """0 for one that was killed before it joined."""
        for line in self.lines():
            if line[0] == "join" and int(line[2]) == process.pid:
                return int(line[1])
        return 0

    def lines(self) -> list[list[str]]:
        return [line.split() for line in self.book.read_text().splitlines()]

    def joined(self) -> int:
        return sum(line[0] == "join" for line in self.lines())

    def spent(self) -> int:
        return sum(int(line[1]) for line in self.lines() if line[0] == "spend")

    def check(self) -> None:
        assert self.spent() <= min(self.caps.values()), "overshoot"

    def kill(self, store: PostgresLeases) -> None:
        """kill -9 of any, and its lease is reclaimed."""
        process = self.rng.choice(self.running)
        process.kill()  # unless it has ended
        process.join()
        self.running.remove(process)
        self.kills += 1
        if writer := self.writer_of(process):
            reclaim_writer(store, writer)

    def reclaim_unnamed(self, store: PostgresLeases) -> None:
        """Those that were killed between joining and saying so."""
        known = {int(line[1]) for line in self.lines() if line[0] == "join"}
        for writer in range(1, self.started + 1):
            if writer not in known:
                reclaim_writer(store, writer)

    def account(self) -> tuple[int, int]:
        """Σ of what is granted of the scarcest account, and what of it is left."""
        with psycopg.connect(self.place.dsn) as db:
            found = db.execute(
                "SELECT granted, cap - granted,"
                " (SELECT sum(l.granted) FROM gatekeeper.leases l WHERE l.run = a.run"
                " AND l.account = a.account) FROM gatekeeper.accounts a"
                " JOIN gatekeeper.runs USING (run) WHERE name = %s ORDER BY cap LIMIT 1",
                (self.place.name,),
            ).fetchone()
        assert found is not None
        assert found[0] == found[2]
        return int(found[0]), int(found[1])


def test_a_statement_that_comes_late_lowers_no_bound(
    postgres: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its connection was lost, and another one has written since."""
    place = postgres.new_run()
    open_log(place).close()
    store = PostgresLeases(place, {"total": 1000}, 1)
    process = Leases(store, 1, {"total": None})
    assert process.reserve(("total",), AHEAD) == AHEAD
    execute, sent = psycopg.Connection.execute, []

    def lose(self: psycopg.Connection, query: str, params: Any = None, **more: Any) -> Any:
        sent.append((query, params))
        raise psycopg.OperationalError("the connection was lost")

    monkeypatch.setattr(psycopg.Connection, "execute", lose)
    with pytest.raises(UnavailableError):
        process.reserve(("total",))
    monkeypatch.setattr(psycopg.Connection, "execute", execute)
    time.sleep(2 * postgres_link.PAUSE)
    assert process.reserve(("total",), 20) == 20
    with psycopg.connect(place.dsn) as late:
        assert len(sent) == 1
        late.execute(*sent[0])
    query = "SELECT bound FROM gatekeeper.leases JOIN gatekeeper.runs USING (run) WHERE name = %s"
    with psycopg.connect(place.dsn) as db:
        assert db.execute(query, (place.name,)).fetchone() == (AHEAD + 20,)
    store.close()


def test_a_database_that_is_gone_is_asked_now_and_then(
    postgres: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Callers do not wait for a connection each time; it is asked again after a pause."""
    place = postgres.new_run()
    open_log(place).close()
    store = PostgresLeases(place, {"total": 100}, 1)
    processes = Leases(store, 1, {"total": None})
    now, tries = 0.0, 0

    def refuse(*_: object, **__: object) -> None:
        nonlocal tries
        tries += 1
        raise psycopg.OperationalError("connection refused")

    connect = psycopg.connect
    store.close()
    monkeypatch.setattr(postgres_link, "monotonic", lambda: now)
    monkeypatch.setattr(psycopg, "connect", refuse)
    for _ in range(1000):  # 100 seconds of ten calls each
        with pytest.raises(UnavailableError, match="connection refused"):
            processes.reserve(("total",))
        now += 0.1
    assert 20 < tries < 30
    monkeypatch.setattr(psycopg, "connect", connect)
    now += postgres_link.LONGEST_PAUSE
    assert processes.reserve(("total",))
    store.close()


@pytest.mark.parametrize("seed", range(HISTORIES))
def test_kill_9_of_random_processes(seed: int, postgres: Server, tmp_path: Path) -> None:
    history = History(postgres, seed, tmp_path)
    store = PostgresLeases(history.place, history.caps, PRICE)
    for _ in range(PROCESSES):
        history.start()
    for _ in range(5):
        time.sleep(history.rng.uniform(0.0, 0.0004 * TASKS))
        history.check()
        history.kill(store)
        history.start(tasks=TASKS // 2)
    for process in history.running:
        process.join(PATIENCE)
        assert process.exitcode == 0
    history.check()
    history.reclaim_unnamed(store)
    granted, left = history.account()
    lost = granted - history.spent()  # charged for those that were killed
    assert 0 <= lost <= history.kills * (AHEAD + 1) * PRICE
    if any(line[0] == "refused" for line in history.lines()[-20:]):
        assert left <= PROCESSES * PRICE
    store.close()


def test_a_fenced_process_that_comes_back(postgres: Server, tmp_path: Path) -> None:
    """SIGSTOP, reclaimed, SIGCONT: its next write fails, and what it spent until then was
    charged."""
    history = History(postgres, 0, tmp_path)
    history.caps = {"total": 10**6 * PRICE}
    store = PostgresLeases(history.place, history.caps, PRICE)
    process = history.start(tasks=10**6)
    until(lambda: history.spent() >= 5 * PRICE)
    assert process.pid is not None
    os.kill(process.pid, signal.SIGSTOP)
    time.sleep(0.1)
    writer = history.writer_of(process)
    reclaim_writer(store, writer)
    granted, _ = history.account()
    assert granted - (AHEAD + 1) * PRICE <= history.spent() <= granted
    os.kill(process.pid, signal.SIGCONT)
    process.join(30)
    assert history.lines()[-1] == ["fenced"]
    assert history.spent() <= granted == history.account()[0]
    store.close()


def test_a_database_that_is_gone_for_a_while(postgres: Server, tmp_path: Path) -> None:
    """Processes use what they hold, then report it unavailable, and go on when it is back."""
    history = History(postgres, 1, tmp_path)
    history.caps = {"total": 10**6 * PRICE}
    store = PostgresLeases(history.place, history.caps, PRICE)
    for _ in range(4):
        history.start(tasks=10**6)
    until(lambda: history.spent() >= 100 * PRICE and history.joined() == 4)
    postgres.stop()
    try:
        until(lambda: history.lines().count(["unavailable"]) >= 8)
        history.check()
        before = history.spent()
        time.sleep(AWAY)
        assert history.spent() - before <= 4 * AHEAD * PRICE
    finally:
        postgres.start()
    until(lambda: history.spent() > before)
    history.ended.value = 1
    for process in history.running:
        process.join(PATIENCE)
        assert process.exitcode == 0
    history.check()
    assert history.lines()[-1] == ["left"]
    assert history.account()[0] == history.spent()
    store.close()
