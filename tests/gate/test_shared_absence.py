"""Gates in processes of a shared run: the database is away, or one of them is stopped.

For a second by default, for a minute with `make test-scale`.
"""

from __future__ import annotations

import multiprocessing
import os
import signal
import time
from collections.abc import Iterator
from itertools import count
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from shared_runs import AWAY, accounts, asked, check_every_moment, until, writers
from ticks import ticks

from gatekeeper import Budget, Generation, LogError, Random, Reason, VerificationGate
from gatekeeper.budget.lease_store import FENCED
from gatekeeper.budget.leases import AHEAD
from gatekeeper.budget.silence import BEAT, LOOKS
from gatekeeper.log import PostgresRun
from gatekeeper.testing import make_generation

if TYPE_CHECKING:
    from postgres import Server

FORK = multiprocessing.get_context("fork")
PROCESSES, TOTAL, ENOUGH = 4, 2000, 20
VERIFIES = "verifies"


class Book:
    """What processes do: each writes a line at once, which no kill takes back."""

    def __init__(self, path: Path) -> None:
        path.touch()
        self.path = path

    def note(self, number: int, what: str) -> None:
        file = os.open(self.path, os.O_WRONLY | os.O_APPEND)
        os.write(file, f"{number} {what}\n".encode())
        os.close(file)

    def lines(self, number: int) -> list[str]:
        """Those of one process."""
        found = (line.split() for line in self.path.read_text().splitlines())
        return [what for of, what in found if int(of) == number]

    def verifications(self) -> int:
        return self.path.read_text().count(VERIFIES)


def open_gate(place: PostgresRun, budget: Budget, verifier: Any = lambda g, t: True) -> Any:
    return VerificationGate(
        Random(0.5, warmup=5), budget=budget, verifier=verifier, log=place, shared=True
    )


def output(number: int, i: int) -> Generation:
    return make_generation(f"p{number}-{i}", tokens=20, seed=i)


def work(place: PostgresRun, budget: Budget, book: Book, number: int, stop: Any) -> None:
    """Ask for a verification, again and again; the book has the reason of each decision."""

    def verifier(generation: Generation, task: object) -> bool:
        book.note(number, VERIFIES)
        return True

    with open_gate(place, budget, verifier) as gate:
        for i in count():
            if stop.is_set():
                break
            try:
                book.note(number, gate.maybe_verify(output(number, i), force=True).decision.reason)
            except LogError as error:
                if FENCED not in str(error):
                    raise
                book.note(number, "fenced")
            time.sleep(0.02)


def written(place: PostgresRun) -> int:
    """Events that the first process has in the log."""
    ((found,),) = asked(
        place,
        "SELECT count(*) FROM gatekeeper.events JOIN gatekeeper.runs USING (run)"
        " WHERE name = %s AND writer = 1",
    )
    return int(found)


class Processes:
    """Several of them; `stop` ends those that still run."""

    def __init__(self, place: PostgresRun, budget: Budget, count: int, folder: Path) -> None:
        self.book, self.stop = Book(folder / "book"), FORK.Event()
        self.running = [
            FORK.Process(target=work, args=(place, budget, self.book, number, self.stop))
            for number in range(count)
        ]
        for process in self.running:
            process.start()

    def all_have(self, *reasons: str, more: int = 1) -> None:
        """Wait until the last decisions of each had one of these reasons."""
        until(
            lambda: all(
                len(lines := self.decisions(number)) >= more and set(lines[-more:]) <= set(reasons)
                for number in range(len(self.running))
            )
        )

    def decisions(self, number: int) -> list[str]:
        return [line for line in self.book.lines(number) if line != VERIFIES]

    def end(self) -> None:
        self.stop.set()
        for process in self.running:
            process.join(60)
            assert process.exitcode == 0


@pytest.fixture
def place(postgres: Server) -> PostgresRun:
    return postgres.new_run()


@pytest.fixture
def started(place: PostgresRun, tmp_path: Path) -> Iterator[Any]:
    """Starts processes, of which none is left."""
    found: list[Processes] = []

    def start(budget: Budget, count: int) -> Processes:
        found.append(Processes(place, budget, count, tmp_path))
        return found[-1]

    yield start
    for process in (process for each in found for process in each.running):
        process.kill()


@pytest.mark.parametrize(
    "budget", [Budget(total=TOTAL), Budget(fraction=0.3)], ids=("total", "fraction")
)
def test_the_database_is_away(
    budget: Budget, postgres: Server, place: PostgresRun, started: Any
) -> None:
    """Each decides on its lease, and then with `budget_unavailable`. No call raises, none is taken
    for dead, no event is lost, and all goes on when it is back."""
    processes: Processes = started(budget, PROCESSES)
    book, given = processes.book, (Reason.WARMUP, Reason.FORCED, Reason.BUDGET_EXHAUSTED)
    processes.all_have(*given, more=ENOUGH)
    postgres.stop()
    try:
        begun, before = time.monotonic(), book.verifications()
        # The last answer of the database may reach a process after its first such decision.
        processes.all_have(Reason.BUDGET_UNAVAILABLE, more=ENOUGH)
        held = book.verifications()
        assert held - before <= PROCESSES * (AHEAD + 1)
        while time.monotonic() < begun + AWAY:
            time.sleep(0.05)
        processes.all_have(Reason.BUDGET_UNAVAILABLE, more=2 * ENOUGH)
        assert book.verifications() == held
    finally:
        postgres.start()
    processes.all_have(*given, more=ENOUGH)
    processes.end()
    assert book.verifications() > held
    state = check_every_moment(place)
    assert len(state.outputs) == sum(len(processes.decisions(n)) for n in range(PROCESSES))
    spent = state.ledger.spent + state.ledger.warmup_spent
    assert spent == book.verifications()
    if budget.total is not None:
        assert accounts(place) == {"total": ticks(spent)}


def test_a_process_is_stopped_and_comes_back(
    place: PostgresRun, started: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """SIGSTOP, and another one takes it for dead, charges its bound and spends the rest; SIGCONT,
    and it can neither spend nor write."""
    monkeypatch.setattr("gatekeeper.log.postgres_shared.BEAT", min(BEAT, AWAY / (3 * LOOKS)))
    budget = Budget(total=100)
    processes: Processes = started(budget, 1)
    book, (process,) = processes.book, processes.running
    until(lambda: book.verifications() >= ENOUGH)
    os.kill(process.pid, signal.SIGSTOP)
    begun = time.monotonic()
    with open_gate(place, budget) as other:
        until(lambda: process.pid not in writers(place))
        while time.monotonic() < begun + AWAY:
            time.sleep(0.05)
        alone = (other.maybe_verify(output(1, i), force=True) for i in count())
        assert sum(iter(lambda: next(alone).decision.verify, False)) > ENOUGH
        charged, verified, logged = accounts(place), book.verifications(), written(place)
        assert charged == {"total": ticks(100)}
        os.kill(process.pid, signal.SIGCONT)
        until(lambda: book.lines(0).count("fenced") >= ENOUGH)
        processes.end()
    assert book.verifications() - verified <= 1  # it was under way when the process was stopped
    assert written(place) == logged
    assert accounts(place) == charged
    check_every_moment(place)
