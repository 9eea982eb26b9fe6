"""Gates on a run whose database is lost at an awkward moment."""

from __future__ import annotations

import logging
import random
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import psycopg
import pytest
from shared_runs import until

from gatekeeper import BadInputError, Budget, Generation, Random, VerificationGate
from gatekeeper.budget.lease_store import UnavailableError
from gatekeeper.errors import LogError
from gatekeeper.limits import MAX_ID
from gatekeeper.log import PostgresRun
from gatekeeper.log.postgres_link import Link
from gatekeeper.log.postgres_merge import Merged
from gatekeeper.log.run import read_run
from gatekeeper.testing import make_generation

if TYPE_CHECKING:
    from postgres import Server


@pytest.fixture
def place(postgres: Server) -> PostgresRun:
    return postgres.new_run()


def open_gate(place: PostgresRun, **given: Any) -> VerificationGate:
    given = {"policy": Random(0.5, warmup=5), "verifier": lambda output, task: True} | given
    return VerificationGate(**given, budget=Budget(fraction=0.5), log=place, shared=True)


def output(id_: str) -> Generation:
    return make_generation(id_, tokens=20, seed=sum(id_.encode()))


def test_events_of_others_are_applied_if_the_connection_is_lost_while_they_are_read(
    place: PostgresRun, monkeypatch: pytest.MonkeyPatch
) -> None:
    of_writer, lost = Merged._of_writer, []

    def breaking(merged: Merged, db: Any, writer: int, until: int) -> Iterator[Any]:
        for row in of_writer(merged, db, writer, until):
            yield row
            if row.kind == "decided" and not lost:
                lost.append(row)
                raise psycopg.OperationalError("lost")

    with open_gate(place) as one, open_gate(place) as two:
        monkeypatch.setattr(Merged, "_of_writer", breaking)
        for i in range(40):
            one.maybe_verify(output(f"a{i}"))
        until(lambda: two.status().verdicts == one.status().verdicts and two.status().seen == 40)
    assert lost


def wait_for_a_pause(gate: VerificationGate) -> None:
    """Until the next attempt to connect is a while away."""
    until(lambda: not _shared(gate).reachable and _shared(gate).waiting)


def _shared(gate: VerificationGate) -> Any:
    return gate.status().shared


def test_a_gate_that_is_closed_writes_what_waited_for_the_database(
    postgres: Server, place: PostgresRun, monkeypatch: pytest.MonkeyPatch
) -> None:
    """At once, also where the next attempt would be later; and its leases are returned."""
    monkeypatch.setattr("gatekeeper.log.postgres_link.PAUSE", 600.0)
    monkeypatch.setattr("gatekeeper.log.postgres_link.LONGEST_PAUSE", 600.0)
    gate = open_gate(place)
    given = [gate.maybe_verify(output("before"))]
    postgres.stop()
    try:
        given += [gate.maybe_verify(output(f"g{i}")) for i in range(20)]
        wait_for_a_pause(gate)
    finally:
        postgres.start()
    gate.close()
    logged = read_run(place).results
    assert [(id_, found.outcome) for id_, found in logged.items()] == [
        (result.id, result.outcome) for result in given
    ]
    assert sum(result.verified for result in given) > 1
    with open_gate(place) as other:
        other.maybe_verify(output("after"))
        until(lambda: len(_shared(other).processes) == 1)


def test_a_gate_that_cannot_write_says_how_much_is_lost(
    postgres: Server,
    place: PostgresRun,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    monkeypatch.setattr("gatekeeper.log.postgres_shared.LAST", 0.5)
    gate = open_gate(place)
    gate.maybe_verify(output("before"))
    postgres.stop()
    try:
        for i in range(20):
            gate.maybe_verify(output(f"g{i}"))
        waiting = _shared(gate).waiting
        with caplog.at_level(logging.WARNING, logger="gatekeeper"):
            gate.close()
    finally:
        postgres.start()
    assert waiting >= 20
    assert f"{waiting} events were not written" in caplog.text


def test_only_errors_that_pass_count_as_a_lost_database(place: PostgresRun) -> None:
    """Any other would return at each attempt, and keep all later events out of the log."""
    link, found = Link(place, "events"), {}
    for state in ("08006", "25006", "40P01", "53300", "55P03", "57P01", "22000", "42501", "54000"):
        link.end_pause()
        with pytest.raises(LogError, match="oh no") as caught, link.connection() as db:
            db.execute(f"DO $$ BEGIN RAISE 'oh no' USING ERRCODE = '{state}'; END $$".encode())
        found[state] = isinstance(caught.value, UnavailableError)
    link.close()
    assert [state for state, passes in found.items() if not passes] == ["22000", "42501", "54000"]


@pytest.mark.parametrize("character", ["x", "é", "\0", '"'])
def test_the_longest_id_can_be_stored_and_none_above_it_is_taken(
    place: PostgresRun, character: str
) -> None:
    rng = random.Random("ids")
    longest = character + "".join(chr(rng.randrange(32)) for _ in range(MAX_ID))
    longest = longest.encode()[:MAX_ID].decode()
    with open_gate(place) as gate:
        with pytest.raises(BadInputError, match=f"a string of 1 to {MAX_ID} bytes"):
            gate.maybe_verify(output("a"), id=longest + "x")
        assert gate.maybe_verify(output("a"), id=longest).verified
        assert gate.maybe_verify(output("b")).verified
    assert list(read_run(place).outputs) == [longest, "b"]


def test_a_call_that_has_to_read_a_lost_log_raises_and_the_gate_goes_on(
    postgres: Server, place: PostgresRun
) -> None:
    with open_gate(place) as gate:
        results = [gate.maybe_verify(output(f"g{i}")) for i in range(30)]
        verified = next(result.id for result in results if result.verified)
        other = next(result.id for result in results if not result.decision.verify)
        postgres.stop()
        try:
            for call in (
                lambda: gate.find(verified),
                lambda: gate.maybe_verify(output(verified)),
                lambda: gate.verify_batch([(output(other), None)]),
                lambda: gate.report_outcome(other, "failed"),
            ):
                with pytest.raises(LogError, match=r"cannot be (read|opened|reached)"):
                    call()
                gate.maybe_verify(output(f"h{gate.status().seen}"))
        finally:
            postgres.start()
        until(lambda: not _shared(gate).waiting)
        known = gate.maybe_verify(output(verified))
        assert known.outcome == next(r.outcome for r in results if r.id == verified)
        assert gate.report_outcome(other, "failed").verified
    assert len(read_run(place).outputs) == 34


def test_an_output_that_waits_for_the_database_is_not_looked_up_in_it(
    postgres: Server, place: PostgresRun, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The database is back, but the events were not written yet: the call raises, and no other."""
    monkeypatch.setattr("gatekeeper.log.postgres_link.PAUSE", 600.0)
    monkeypatch.setattr("gatekeeper.log.postgres_link.LONGEST_PAUSE", 600.0)
    with open_gate(place) as gate:
        before = gate.maybe_verify(output("before"))
        postgres.stop()
        try:
            results = [gate.maybe_verify(output(f"g{i}")) for i in range(30)]
            with pytest.raises(LogError, match=r"cannot be (read|opened)"):
                gate.find("before")
            wait_for_a_pause(gate)
        finally:
            postgres.start()
        other = next(result.id for result in results if not result.decision.verify)
        for call in (lambda: gate.find(other), lambda: gate.report_outcome(other, "failed")):
            with pytest.raises(LogError, match="cannot be reached"):
                call()
        found = gate.find("before")
        assert found is not None
        assert found.outcome == before.outcome
        gate.maybe_verify(output("after"))
    assert len(read_run(place).outputs) == 32
