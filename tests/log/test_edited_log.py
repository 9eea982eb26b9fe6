"""A log that was edited is read, or refused with an error that names the event; nothing crashes."""

from __future__ import annotations

import re
import sqlite3
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from gatekeeper import Budget, Generation, Outcome, Verdict, VerificationGate
from gatekeeper.cli.logged_settings import settings_of
from gatekeeper.errors import LogError
from gatekeeper.log.run import read_run
from gatekeeper.log.run_table import read_table
from gatekeeper.page.follower import Follower
from gatekeeper.testing import make_generation

Stored = tuple[Any, Any, Any]  # kind, id and data of a row
OUTPUTS = [make_generation(f"c{i}", seed=i) for i in range(6)]


def verify(output: Generation, task: Any) -> Outcome:
    """No verdict on one output, until it comes again."""
    if output.id == "c1" and task is None:
        return Outcome(Verdict.INFRA_ERROR, detail="no daemon")
    return Outcome(Verdict.FAILED if output.id == "c0" else Verdict.PASSED, seconds=0.1)


def gate_of(log: Path) -> VerificationGate:
    return VerificationGate(
        "random",
        budget=Budget(fraction=0.5, total=4),
        verifier=verify,
        log=log,
        on_unavailable="pass",
    )


@pytest.fixture(scope="module")
def written(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A log with an event of each kind that an output can have."""
    path = tmp_path_factory.mktemp("log") / "run.db"
    with gate_of(path) as gate:
        for output in OUTPUTS[:2]:
            gate.maybe_verify(output, None)
        results = [gate.maybe_verify(output, "again") for output in OUTPUTS[1:]]
        unselected = next(r.id for r in results if not r.decision.verify)
        gate.report_outcome(unselected, Outcome(Verdict.FAILED))
    kinds = {kind for kind, _, _ in rows_of(path)}
    assert kinds >= {"decided", "reserved", "outcome", "released", "learned", "audited"}
    return path


def rows_of(path: Path) -> list[Stored]:
    db = sqlite3.connect(path)
    rows = db.execute("SELECT kind, id, data FROM events ORDER BY seq").fetchall()
    db.close()
    return rows


def edited_log(written: Path, rows: list[Stored], path: Path) -> Path:
    path.write_bytes(written.read_bytes())
    db = sqlite3.connect(path)
    db.execute("DELETE FROM events")
    db.executemany("INSERT INTO events (at, kind, id, data) VALUES (0, ?, ?, ?)", rows)
    db.commit()
    db.close()
    return path


def edits(rows: list[Stored]) -> Iterator[list[Stored]]:
    for i, (kind, id_, data) in enumerate(rows):
        before, after = rows[:i], rows[i + 1 :]
        yield before + after
        yield rows[i:]  # without all before it
        yield [*rows[: i + 1], rows[i], *after]
        yield [*rows, rows[i]]
        yield [rows[i], *before, *after]
        for changed in (
            (kind, "zz", data), (kind, b"\xff", data), ("ünknown", id_, data), (5, id_, data),
            (kind, id_, b"\xff{}"), (kind, id_, 7), (kind, id_, "{}"),
        ):  # fmt: skip
            yield [*before, changed, *after]


def resumed(path: Path) -> None:
    with gate_of(path) as gate:
        for output in OUTPUTS:
            gate.find(output.id)
            gate.maybe_verify(output, "again")


def followed(path: Path) -> None:
    follower = Follower(path)
    try:
        follower.advance(60.0)
    finally:
        follower.close()


READERS: dict[str, Callable[[Path], object]] = {
    "all": lambda path: list(read_run(path).rows()),
    "table": lambda path: read_table(path, wrong_rows=9),
    "page": followed,
    "gate": resumed,
}


@pytest.mark.parametrize("reader", READERS)
def test_an_edited_log_is_read_or_refused(reader: str, written: Path, tmp_path: Path) -> None:
    refused = 0
    for n, edited in enumerate(edits(rows_of(written))):
        path = edited_log(written, edited, tmp_path / f"{n}.db")
        try:
            READERS[reader](path)
        except LogError:  # anything else fails the test
            refused += 1
        path.unlink()
    assert refused > n / 2


@pytest.mark.parametrize(
    ("kind", "why"),
    [
        ("outcome", "no budget is reserved for this output"),
        ("released", "no budget is reserved for this output"),
        ("reserved", "no reservation of this output has been released"),
        ("learned", "no verdict waits to be learned from"),
        ("audited", "no decision on this output comes before it"),
    ],
)
def test_an_event_of_an_unknown_output_is_named(
    kind: str, why: str, written: Path, tmp_path: Path
) -> None:
    rows = [(k, "nowhere" if k == kind else id_, data) for k, id_, data in rows_of(written)]
    path = edited_log(written, rows, tmp_path / "run.db")
    said = rf"event '{kind}' of id='nowhere' cannot be applied: {why}"
    with pytest.raises(LogError, match=f"log of this gate cannot be read: {said}"):
        gate_of(path)
    if kind != "learned":  # nothing else learns
        with pytest.raises(LogError, match=f"run.db' cannot be read: {said}"):
            read_table(path)


def log_with_number(written: Path, name: str, number: object, folder: Path) -> Path:
    """The log with this number in each field of the name."""
    rows = [
        (kind, id_, re.sub(f'"{name}":[^,]*', f'"{name}":{number}', data))
        for kind, id_, data in rows_of(written)
    ]
    return edited_log(written, rows, folder / f"{name}.db")


@pytest.mark.parametrize("reader", READERS)
@pytest.mark.parametrize("number", ["NaN", "Infinity", "-Infinity", "1e400"])
def test_a_number_that_json_or_a_log_lacks(
    number: str, reader: str, written: Path, tmp_path: Path
) -> None:
    for name in ("propensity", "cost_estimate", "h1"):
        path = log_with_number(written, name, number, tmp_path)
        with pytest.raises(LogError, match=rf"has no valid data: {number} is no number"):
            READERS[reader](path)


@pytest.mark.parametrize("reader", READERS)
@pytest.mark.parametrize("number", [1 << 63, -(1 << 63) - 1, 10**30, 10**400])
def test_a_whole_number_that_is_too_long(
    number: int, reader: str, written: Path, tmp_path: Path
) -> None:
    for name in ("stratum", "n_tokens", "version", "propensity", "cost_estimate", "h1"):
        path = log_with_number(written, name, number, tmp_path)
        with pytest.raises(LogError, match=rf"\.{name}` \(it is {str(number)[:50]}"):
            READERS[reader](path)


@pytest.mark.parametrize("reader", READERS)
def test_ids_that_are_no_texts(reader: str, written: Path, tmp_path: Path) -> None:
    rows = [(kind, b"x", data) for kind, _, data in rows_of(written)]
    path = edited_log(written, rows, tmp_path / "run.db")
    with pytest.raises(LogError, match="of id=b'x': the id is no text"):
        READERS[reader](path)


@pytest.mark.parametrize("value", ["[]", "7", "null", "NaN", '"text"', "{", "[" * 100_000])
def test_settings_that_are_no_objects(value: str, written: Path, tmp_path: Path) -> None:
    path = edited_log(written, rows_of(written), tmp_path / "run.db")
    for name in ("policy", "budget", "exploration", "more"):
        db = sqlite3.connect(path)
        db.execute("UPDATE settings SET value = ? WHERE name = ?", (value, name))
        db.commit()
        db.close()
        with pytest.raises(LogError):
            settings_of(path)
        for read in READERS.values():
            with pytest.raises(LogError):
                read(path)
