"""Gates on a run whose database is lost at an awkward moment."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import psycopg
import pytest
from shared_runs import until

from gatekeeper import Budget, Generation, Random, VerificationGate
from gatekeeper.log import PostgresRun
from gatekeeper.log.postgres_merge import Merged
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
            if not lost:
                lost.append(row)
                raise psycopg.OperationalError("lost")

    with open_gate(place) as one, open_gate(place) as two:
        monkeypatch.setattr(Merged, "_of_writer", breaking)
        for i in range(40):
            one.maybe_verify(output(f"a{i}"))
        until(lambda: two.status().verdicts == one.status().verdicts and two.status().seen == 40)
    assert lost
