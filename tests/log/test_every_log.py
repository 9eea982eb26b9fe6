"""The contract of every log, which a gate relies on: in memory, in SQLite, in PostgreSQL.

`gatekeeper.log.protocol` has the contract in words.
"""

from __future__ import annotations

import random
import time
from pathlib import Path
from typing import Any

import pytest

from gatekeeper import Generation, Outcome, Verdict, VerificationGate
from gatekeeper.budget import Budget
from gatekeeper.errors import LogError, LogLockedError, LogMismatchError
from gatekeeper.gate import journal
from gatekeeper.log import (
    Decided,
    Event,
    Learned,
    Log,
    MemoryLog,
    PostgresRun,
    Released,
    ReservedAgain,
    Settled,
    SnapshotLog,
    open_log,
)
from gatekeeper.log.place import place_of
from gatekeeper.policies import CST
from gatekeeper.testing import ScriptedVerifier, make_generation

IDS = ("g", "", 'quoted "id"', '"', '"g"', "a\0b", "\ud800 half", "é" * 300, "'; DROP TABLE ev;")


@pytest.fixture(params=["sqlite", "postgres"])
def place(request: pytest.FixtureRequest, tmp_path: Path) -> Path | PostgresRun:
    """A file or run for a log that does not exist yet."""
    if request.param == "sqlite":
        return tmp_path / "run.db"
    run: PostgresRun = request.getfixturevalue("postgres").new_run()
    return run


def ids_of(place: Path | PostgresRun) -> tuple[str, ...]:
    """An id that the place can store: a file takes no lone surrogates."""
    return IDS if isinstance(place, PostgresRun) else tuple(i for i in IDS if "\ud800" not in i)


def some_events(ids: tuple[str, ...], n: int) -> list[Event]:
    rng = random.Random("events")
    made: list[Event] = []
    for i in range(n):
        id_ = rng.choice(ids)
        outcome = Outcome(
            rng.choice((Verdict.PASSED, Verdict.FAILED)),
            rng.random(),
            rng.random(),
            f"{i} \0 \ud800 é",
            {"n": i, "deep": [1, {"a": None}]},
        )
        made.append(
            rng.choice(
                (
                    Settled(id_, outcome, rng.choice((rng.random(), 1e300))),
                    Released(id_, f"{i} \udfff", rng.choice((None, outcome))),
                    ReservedAgain(id_),
                    Learned(id_),
                )
            )
        )
    return made


def test_a_log_is_followed_from_any_event(place: Path | PostgresRun) -> None:
    """By another reader, while its gate writes: all events, in order, with their times."""
    events = some_events(ids_of(place), 40)
    begun = time.time()
    with open_log(place) as written:
        written.configure({"gate": 1})
        written.append(events[:25])
        with open_log(place, read_only=True) as followed:
            seen = list(followed.stamped_after(0))
            written.append(events[25:])
            seen += followed.stamped_after(seen[-1].seq)
            assert followed.last() == seen[-1].seq
            assert [stamped.event for stamped in followed.stamped_after(30)] == events[30:]
    assert [stamped.event for stamped in seen] == events
    assert [stamped.seq for stamped in seen] == list(range(1, 41))
    assert all(abs(stamped.at - begun) < 600 for stamped in seen)


def test_events_come_back_in_order(place: Path | PostgresRun) -> None:
    """All, those of one id, those after a number; at once, in parts, and from another connection;
    the same as from memory. Longer than one page of what is read at a time."""
    memory, ids = MemoryLog(), ids_of(place)
    events, rng = some_events(ids, 2300), random.Random("parts")
    with open_log(place) as log:
        rest = list(events)
        while rest:
            size = rng.choice((0, 1, 2, 40, 700))
            part, rest = rest[:size], rest[size:]
            log.append(part)
            memory.append(part)
        with open_log(place, read_only=True) as reader:
            for one in (log, reader):
                assert list(one.events()) == list(memory.events()) == events
                assert list(one.rows()) == list(memory.rows())
                assert list(one.events_after(777)) == events[777:]
                for id_ in (*ids, "unknown"):
                    assert list(one.events(id_)) == list(memory.events(id_))
                for some in ([], ["unknown"], [ids[2], "unknown", ids[0]], ids):
                    found = sorted(one.events_of(some), key=lambda event: event.id)
                    assert found == [e for id_ in sorted(some) for e in memory.events(id_)]
    with open_log(place) as log:
        log.append([Learned("more")])
        assert list(log.events()) == [*events, Learned("more")]


def test_a_log_may_be_written_while_it_is_read(place: Path | PostgresRun) -> None:
    events = some_events(("g",), 1500)
    with open_log(place) as log:
        log.append(events)
        found = []
        for event in log.events():
            if len(found) < 3:
                log.append([Learned("late")])
            found.append(event)
            if len(found) % 300 == 0:
                assert next(log.events("g")) == events[0]
        assert found[:1500] == events


def test_an_append_is_stored_whole_or_not_at_all(
    place: Path | PostgresRun, monkeypatch: pytest.MonkeyPatch
) -> None:
    with open_log(place) as log:
        log.append(some_events(("g",), 3))
        monkeypatch.setattr("gatekeeper.log.encoding.MAX_LINE", 1000)
        with pytest.raises(LogError, match="the limit of one"):
            log.append([Learned("g"), Released("g", "x" * 2000, None)])
        log.append([Learned("g")])
        assert list(log.events()) == [*some_events(("g",), 3), Learned("g")]


def test_settings(place: Path | PostgresRun) -> None:
    first = {"budget": {"fraction": 0.1, "total": None}, "more": {"model": "\ud800 é \0"}}
    second = {"budget": {"fraction": 0.2}, "more": {}}
    with open_log(place) as log:
        assert log.settings() == {}
        for settings in (first, second):
            log.configure(settings)
            assert log.settings() == settings
    with open_log(place, read_only=True) as log:
        assert log.settings() == second


def test_a_snapshot_is_kept_for_its_key(
    place: Path | PostgresRun, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whole, where it takes several rows; the last one alone."""
    module = "postgres" if isinstance(place, PostgresRun) else "sqlite"
    monkeypatch.setattr(f"gatekeeper.log.{module}._PART", 1000)
    state = {"numbers": [i / 3 for i in range(1000)], "text": "\ud800 \0", "none": None}
    with open_log(place) as log:
        assert isinstance(log, SnapshotLog)
        assert log.snapshot("a") is None
        log.append(some_events(("g",), 5))
        log.keep_snapshot("a", {"first": 1})
        log.append(some_events(("g",), 2))
        log.keep_snapshot("b", state)
        log.append([Learned("g")])
    with open_log(place) as log:
        assert log.snapshot("a") is None
        found = log.snapshot("b")
        assert found is not None
        assert (found.seq, found.state) == (7, state)
        assert list(log.events_after(found.seq)) == [Learned("g")]


def test_readers_need_a_log_and_never_create_one(place: Path | PostgresRun) -> None:
    with pytest.raises(LogError, match="does not exist"):
        open_log(place, read_only=True)
    with open_log(place) as log:
        log.append([Learned("g")])
    with open_log(place, read_only=True) as reader:
        for write in (
            lambda: reader.append([Learned("g")]),
            lambda: reader.configure({"a": 1}),
        ):
            with pytest.raises(LogError, match="cannot be written"):
                write()
        assert list(reader.events()) == [Learned("g")]


def test_one_writer_at_a_time(place: Path | PostgresRun, monkeypatch: pytest.MonkeyPatch) -> None:
    if isinstance(place, PostgresRun):
        monkeypatch.setattr("gatekeeper.log.postgres.PATIENCE", 0.2)
    with open_log(place) as log:
        with pytest.raises(LogLockedError, match=r"in use by another gate.*close it"):
            open_log(place)
        log.append([Learned("g")])
    with open_log(place) as log:
        log.append([Learned("g")])
        assert len(list(log.events())) == 2


def a_gate(log: Log | Path | PostgresRun, beta: float = 0.3) -> VerificationGate:
    verifier = ScriptedVerifier({f"g{i}": int(i * 7 % 3 == 0) for i in range(300)})
    return VerificationGate(
        CST(beta, warmup=20), budget=Budget(fraction=beta), verifier=verifier, log=log
    )


def outputs(start: int, stop: int) -> list[Generation]:
    return [make_generation(f"g{i}", tokens=1 + i * 7 % 29, seed=i) for i in range(start, stop)]


def without_seconds(log: Any) -> list[Any]:
    return [
        (kind, id_, {name: value for name, value in data.items() if name != "seconds"})
        for kind, id_, data in log.rows()
    ]


def test_a_gate_goes_on_as_it_would_in_memory(
    place: Path | PostgresRun, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Closed and opened again, with snapshots and without: status, decisions and events are those
    of a gate that stayed; other settings are refused."""
    memory = MemoryLog()
    alone = a_gate(memory)
    for start in range(0, 120, 30):
        few = 10 if start < 60 else 10**9
        monkeypatch.setattr(journal, "FEW", few)
        monkeypatch.setattr(journal, "SHARE", 0.0)
        with a_gate(place) as gate:
            for output in outputs(start, start + 30):
                assert repr(gate.maybe_verify(output).decision) == repr(
                    alone.maybe_verify(output).decision
                )
            assert gate.status() == alone.status()
            assert repr(gate.find("g7")) != "None"
    with pytest.raises(LogMismatchError, match="fraction"):
        a_gate(place, 0.2)
    with open_log(place) as log:
        assert log.snapshot("another gate's") is None
        assert without_seconds(log) == without_seconds(memory)
        decided = [event.id for event in log.events() if isinstance(event, Decided)]
        assert list(log.decided_ids(10**9)) == decided
        assert list(log.decided_ids(40)) == [
            e.id for e in list(log.events())[:40] if isinstance(e, Decided)
        ]


def test_a_place_is_a_file_or_a_run() -> None:
    assert place_of("run.db") == place_of(Path("run.db")) == Path("run.db")
    assert place_of("postgresql://h/d", "a") == PostgresRun("postgresql://h/d", "a")
