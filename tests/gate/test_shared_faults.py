"""Gates on a run whose database fails at one statement, or is not as most are."""

from __future__ import annotations

import signal
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from typing import TYPE_CHECKING, Any

import psycopg
import pytest
from handled_signal import handling
from lost_connection import lost_at
from shared_runs import accounts, check_every_moment, until
from ticks import ticks

from gatekeeper import Budget, GateResult, Generation, Random, Reason, VerificationGate
from gatekeeper.budget.lease_store import UnavailableError
from gatekeeper.errors import BadInputError, LogError
from gatekeeper.log import PostgresRun
from gatekeeper.log.postgres_link import Link
from gatekeeper.log.postgres_shared import SharedLog
from gatekeeper.testing import make_generation

if TYPE_CHECKING:
    from postgres import Server

TOTAL = 12
PATIENCE = 60.0


@pytest.fixture
def place(postgres: Server) -> PostgresRun:
    return postgres.new_run()


@pytest.fixture
def database(postgres: Server) -> Iterator[Any]:
    """A database of its own, as a run in it and a connection to it."""
    dsn = postgres.database()
    with psycopg.connect(dsn, autocommit=True) as db:
        yield PostgresRun(dsn, "run"), db


def open_gate(place: PostgresRun, **given: Any) -> VerificationGate:
    given = {"verifier": lambda output, task: True, "shared": True} | given
    budget = Budget(total=100) if "budget" not in given else given.pop("budget")
    return VerificationGate(Random(0.5, warmup=3), budget=budget, log=place, **given)


def output(id_: str) -> Generation:
    return make_generation(id_, tokens=20, seed=sum(id_.encode()))


def end_sessions(db: psycopg.Connection[Any]) -> None:
    """End all other sessions of a database, as an administrator may."""
    query = (
        "SELECT count(pg_terminate_backend(pid)), array_agg(pid) FROM pg_stat_activity"
        " WHERE datname = current_database() AND pid <> pg_backend_pid()"
    )
    ended, pids = db.execute(query).fetchone() or (0, [])
    assert ended
    left = "SELECT count(*) FROM pg_stat_activity WHERE pid = ANY(%s)"
    until(lambda: db.execute(left, (pids,)).fetchone() == (0,))


@pytest.mark.parametrize("answered", [False, True])
def test_a_connection_that_is_lost_at_a_statement_costs_nothing(
    answered: bool, postgres: Server
) -> None:
    """Each verification is charged once, within the cap, and no call raises, unless the gate was
    not open yet."""
    for statement in range(5 + 8 * answered, 70, 16):
        place, verified = postgres.new_run(), list[str]()

        def fill(name: str, place: PostgresRun = place, verified: list[str] = verified) -> int:
            def verifier(output: Generation, task: object) -> bool:
                verified.append(output.id)
                return True

            budget = Budget(total=TOTAL, groups={"tenant": 8})
            with open_gate(place, budget=budget, verifier=verifier) as gate:
                for i in range(10):
                    gate.maybe_verify(output(f"{name}{i}"), {"tenant": "ab"[i % 2]}, force=True)
            return 10

        seen, is_open = 0, True
        with lost_at(statement, answered=answered):
            try:
                seen += fill("a")
            except LogError:
                assert not verified
                is_open = False
        seen += fill("b")
        state = check_every_moment(place)
        assert len(verified) == len(set(verified)) <= TOTAL
        assert state.ledger.spent + state.ledger.warmup_spent == len(verified)
        assert len(state.outputs) == seen
        charged = accounts(place)["total"]
        assert charged == ticks(len(verified)) or not is_open


def test_a_lost_connection_is_made_again_at_once(place: PostgresRun) -> None:
    """A pause follows only where that fails, too."""
    open_gate(place).close()
    with closing(Link(place, "events")) as link:
        with lost_at(2, answered=False), pytest.raises(UnavailableError), link.connection() as db:
            db.execute("SELECT 1")
        with link.connection() as db:
            assert db.execute("SELECT 1").fetchone() == (1,)


def test_callers_do_not_notice_that_idle_sessions_were_ended(database: Any) -> None:
    place, db = database
    with open_gate(place) as gate, open_gate(place) as other:
        other.maybe_verify(output("a"), force=True)
        until(lambda: gate.find("a"))
        for i in range(5):
            end_sessions(db)
            found = gate.find("a")
            assert found is not None
            assert found.verified
            assert gate.maybe_verify(output(f"b{i}"), force=True).verified
            assert [found.id for found in gate.pending()] == []
    check_every_moment(place)


@pytest.mark.parametrize("level", ["repeatable read", "serializable"])
def test_the_databases_own_isolation_does_not_matter(level: str, database: Any) -> None:
    place, db = database
    db.execute(f"ALTER DATABASE {db.info.dbname} SET default_transaction_isolation = '{level}'")
    gates = [open_gate(place) for _ in range(4)]

    def fill(number: int) -> list[GateResult]:
        gate = gates[number]
        return [gate.maybe_verify(output(f"{number}-{i}"), force=True) for i in range(20)]

    with ThreadPoolExecutor(len(gates)) as pool:
        results = [result for results in pool.map(fill, range(len(gates))) for result in results]
    for gate in gates:
        gate.close()
    assert {result.decision.reason for result in results} == {Reason.WARMUP, Reason.FORCED}
    assert accounts(place) == {"total": ticks(80)}
    check_every_moment(place)


def test_a_gate_may_be_idle_for_longer_than_the_database_allows(database: Any) -> None:
    """One that is alone has its lock by its session."""
    place, db = database
    if db.info.server_version < 140_000:
        pytest.skip("postgres: idle_session_timeout came with version 14")
    db.execute(f"ALTER DATABASE {db.info.dbname} SET idle_session_timeout = '1s'")
    with open_gate(place, shared=False) as gate:
        assert gate.maybe_verify(output("a"), force=True).verified
        time.sleep(1.5)
        assert gate.maybe_verify(output("b"), force=True).verified


def test_a_clock_that_is_set_back_changes_no_order(database: Any) -> None:
    """Neither of one process's events, nor of those that depend on another's."""
    place, db = database
    db.execute("CREATE SCHEMA fake")
    db.execute("CREATE TABLE fake.shift AS SELECT 0.0::float8 AS seconds")
    db.execute(
        "CREATE FUNCTION fake.clock_timestamp() RETURNS timestamptz LANGUAGE sql VOLATILE AS"
        " 'SELECT pg_catalog.clock_timestamp() + seconds * interval ''1 s'' FROM fake.shift'"
    )
    db.execute(f"ALTER DATABASE {db.info.dbname} SET search_path = fake, pg_catalog")

    def verifier(output: Generation, task: object) -> bool | None:
        return None if output.id == "none" else True

    with open_gate(place, verifier=verifier, on_unavailable="pass") as two:
        with open_gate(place, verifier=verifier, on_unavailable="pass") as one:
            one.maybe_verify(output("none"), force=True)
            one.maybe_verify(output("before"), force=True)
            until(lambda: two.status().verified + two.status().warmup_verified == 1)
            db.execute("UPDATE fake.shift SET seconds = -1000")
            for i in range(3):
                one.maybe_verify(output(f"after{i}"), force=True)
                found = one.find(f"after{i}")
                assert found is not None
                assert found.verified
        until(lambda: [found.id for found in two.pending()] == ["none"])
        assert two.report_outcome("none", "failed").verified
    assert check_every_moment(place).warmup_errors == 1
    with open_gate(place, verifier=verifier, on_unavailable="pass") as three:
        assert three.status().seen == 5


def test_what_an_ended_process_has_verified_is_not_verified_again(
    place: PostgresRun, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Another one knows of the decisions, and not yet of the verdict. It may verify the others at
    once, more than once if that gives no verdict."""
    begun, known = threading.Event(), threading.Event()
    verified: list[str] = []

    def verifier(output: Generation, task: object) -> bool | None:
        verified.append(output.id)
        if output.id == "open":
            return None if verified.count("open") <= 2 else True
        assert verified.count("a") == 1
        begun.set()
        return known.wait(PATIENCE)

    def pending() -> list[str]:
        return [output.id for output in two.pending()]

    with open_gate(place, verifier=verifier, on_unavailable="pass") as two:
        one = open_gate(place, verifier=verifier, on_unavailable="pass")
        one.maybe_verify(output("open"))
        call = threading.Thread(target=one.maybe_verify, args=(output("a"),))
        call.start()
        assert begun.wait(PATIENCE)
        until(lambda: two.status().seen == 2)
        monkeypatch.setattr("gatekeeper.log.postgres_shared.FOLLOW", 1.0)
        time.sleep(0.4)  # it reads now, and then in a second
        known.set()
        call.join()
        one.close()
        assert pending() == ["open"]
        assert not two.maybe_verify(output("open")).verified
        assert two.maybe_verify(output("open")).verified
        until(lambda: two.status().warmup_verified == 2)
        assert pending() == []
        assert two.maybe_verify(output("a")).verified
    assert verified == ["open", "a", "open", "open"]
    assert check_every_moment(place).ledger.warmup_spent == 2.0


def test_a_signal_handler_that_closes_the_gate_while_it_writes(
    place: PostgresRun, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The end would wait for the statement that it interrupts."""
    sync, write = SharedLog.sync, SharedLog._write
    inside = list[str]()

    def marked(log: SharedLog) -> None:
        if threading.current_thread() is threading.main_thread():
            inside.append("sync")
        sync(log)

    def interrupt(log: SharedLog, rows: Any) -> float:
        if threading.current_thread() is threading.main_thread() and inside == ["sync"]:
            inside.append("written")
            signal.raise_signal(signal.SIGUSR1)
        return write(log, rows)

    monkeypatch.setattr(SharedLog, "_tend", lambda log: None)  # it may write first
    monkeypatch.setattr(SharedLog, "sync", marked)
    monkeypatch.setattr(SharedLog, "_write", interrupt)
    gate = open_gate(place)
    with closing(gate), handling(gate.close):
        with pytest.raises(BadInputError, match=r"signal handler closes.*raise SystemExit"):
            gate.maybe_verify(output("a"))
        assert gate.maybe_verify(output("b")).verified
    with open_gate(place) as again:
        assert again.maybe_verify(output("a")).verified
        assert again.status().warmup_spent == 2.0
    check_every_moment(place)
