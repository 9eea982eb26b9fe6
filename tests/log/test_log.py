"""However a run ends, its log is correct, and a new gate continues from it."""

from __future__ import annotations

import contextlib
import copy
import inspect
import json
import os
import random
import shutil
import signal
import sqlite3
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from histories import UNITS, SetVerifier, Step, attempt, play, steps
from hypothesis import given, settings
from hypothesis import strategies as st

from gatekeeper import (
    CST,
    HGA,
    BadInputError,
    Budget,
    GateStatus,
    Generation,
    LogError,
    Outcome,
    Policy,
    Random,
    Verdict,
    VerificationGate,
)
from gatekeeper.errors import LogLockedError, LogMismatchError, LogSchemaError
from gatekeeper.log import (
    Decided,
    Event,
    MemoryLog,
    PostgresRun,
    Released,
    Row,
    SQLiteLog,
    open_log,
)
from gatekeeper.testing import ScriptedVerifier, make_generation

if TYPE_CHECKING:
    from postgres import Server

N = 150
PATIENCE = 60.0
BUDGET = Budget(fraction=0.3, total=60)


def make_policy(name: str) -> Policy:
    if name == "hga":
        return HGA(0.3, calibration=40, warmup=20, seed=4)
    return CST(0.3, warmup=20, seed=4) if name == "cst" else Random(0.3, warmup=20, seed=4)


def stream(n: int = N) -> list[Generation]:
    rng = random.Random("stream")
    return [
        make_generation(
            f"g{i}",
            tokens=rng.choice((0, *range(1, 30))),
            seed=i,
            prompt_tokens=rng.randint(5, 200),
            text=f"answer {i}",
        )
        for i in range(n)
    ]


def labels() -> dict[str, Any]:
    rng = random.Random("labels")
    return {f"g{i}": int(rng.random() < 0.4) for i in range(N)}


def place(text: str) -> Path | PostgresRun:
    """A file, or an address and a run with a space between them."""
    address, _, name = text.rpartition(" ")
    return PostgresRun(address, name) if address else Path(text)


def open_gate(path: Path | PostgresRun, policy: str = "cst", **more: Any) -> VerificationGate:
    verifier = more.pop("verifier", None) or ScriptedVerifier(labels())
    return VerificationGate(
        make_policy(policy), budget=more.pop("budget", BUDGET), verifier=verifier, log=path, **more
    )


def run(gate: VerificationGate, mode: str, outputs: Iterable[Generation] | None = None) -> None:
    """The whole stream from its beginning, as `gatekeeper run` does it."""
    outputs = list(stream() if outputs is None else outputs)
    if mode == "one by one":
        for generation in outputs:
            gate.maybe_verify(generation)
    else:
        for i in range(0, len(outputs), 16):
            gate.verify_batch([(g, None) for g in outputs[i : i + 16]])


def final(gate: VerificationGate) -> tuple[GateStatus, str]:
    return gate.status(), json.dumps(gate.policy.state())  # as JSON: NaN equals NaN


def rows(path: Path | PostgresRun) -> list[Row]:
    with open_log(path, read_only=True) as log:
        return list(log.rows())


def assert_each_once(path: Path | PostgresRun) -> None:
    """Each id decided once; each selected one charged once and learned once."""
    happened = Counter((kind, id_) for kind, id_, _ in rows(path) if id_)  # others are of the gate
    assert max(happened.values()) == 1
    wanted = {e.id for e in rows(path) if e.kind == "decided" and e.data["verify"]}
    for kind in ("outcome", "learned"):
        assert {id_ for k, id_ in happened if k == kind} == wanted


def without_times(happened: list[Row]) -> list[tuple[str, str, Any]]:
    return [(k, i, {n: v for n, v in d.items() if n != "seconds"}) for k, i, d in happened]


# -- a crash at any moment ---------------------------------------------------------------------

CHILD = """
from __future__ import annotations
import random, sys, time
from pathlib import Path
from gatekeeper import CST, HGA, Budget, Random, VerificationGate
from gatekeeper.errors import LogError
from gatekeeper.log import PostgresRun
from gatekeeper.testing import ScriptedVerifier, make_generation

N, BUDGET = {n}, {budget}
{helpers}

def slowly(self, id_, at_once=ScriptedVerifier._outcome):
    time.sleep(0.001)
    return at_once(self, id_)

ScriptedVerifier._outcome = slowly  # another class would be another verifier
"""

TELL = """
path, policy, size = place(sys.argv[1]), sys.argv[2], int(sys.argv[3])
with open_gate(path, policy, verifier=ScriptedVerifier(labels())) as gate:
    outputs = stream()
    for i in range(0, len(outputs), size):
        part = outputs[i : i + size]
        if size == 1:
            results = [gate.maybe_verify(part[0])]
        else:
            results = gate.verify_batch([(g, None) for g in part])
        for r in results:
            print(r.id, r.outcome.verdict if r.outcome else "-", flush=True)
    sys.stdin.read()  # one that is to be killed does not end before
"""


def child(code: str) -> list[str]:
    """A process that has this file's helpers, without the weight of pytest."""
    helpers = "".join(inspect.getsource(f) for f in (make_policy, stream, labels, place, open_gate))
    return [sys.executable, "-c", CHILD.format(n=N, budget=BUDGET, helpers=helpers) + code]


@pytest.mark.parametrize(
    ("policy", "mode", "kills"), [("hga", "one by one", 6), ("cst", "batches", 3)]
)
def test_kill_9_loses_nothing(policy: str, mode: str, kills: int, tmp_path: Path) -> None:
    kill_9(str(tmp_path / "run.db"), policy, mode, kills, tmp_path)


@pytest.mark.parametrize(
    ("policy", "mode", "kills"), [("hga", "one by one", 3), ("cst", "batches", 2)]
)
def test_kill_9_loses_nothing_in_postgres(
    policy: str, mode: str, kills: int, tmp_path: Path, postgres: Server
) -> None:
    run = postgres.new_run()
    kill_9(f"{run.dsn} {run.name}", policy, mode, kills, tmp_path)


def kill_9(log: str, policy: str, mode: str, kills: int, tmp_path: Path) -> None:
    """A process is killed at random moments and started again: all that it reported is in the log,
    nothing is charged twice, and the end is that of an uninterrupted run."""
    rng = random.Random(f"kills {policy}")
    path = place(log)
    command = [*child(TELL), log, policy, "1" if mode == "one by one" else "16"]
    said: dict[str, str] = {}

    def hear(lines: Iterable[bytes]) -> None:
        for line in lines:
            if line.endswith(b"\n"):
                id_, verdict = line.decode().split()
                assert said.setdefault(id_, verdict) == verdict, f"{id_} was told differently"

    for kill in range(kills):
        with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
            assert process.stdout is not None
            # It first reports what it knows, then does new work: kill it during the latter.
            hear(process.stdout.readline() for _ in range((kill + 1) * N // (kills + 2)))
            time.sleep(rng.uniform(0.0, 0.02))
            process.kill()
            hear(process.stdout)
        assert process.returncode == -signal.SIGKILL
        logged = {e.id: e.data["verdict"] for e in rows(path) if e.kind == "outcome"}
        decided = {e.id for e in rows(path) if e.kind == "decided"}
        assert decided >= said.keys()
        assert {i: v for i, v in said.items() if v != "-"}.items() <= logged.items()
    done = subprocess.run(command, check=True, input=b"", stdout=subprocess.PIPE, timeout=PATIENCE)
    hear(done.stdout.splitlines(keepends=True))

    assert_each_once(path)
    with open_gate(tmp_path / "alone.db", policy) as alone:
        run(alone, mode)
    with open_gate(path, policy) as resumed:
        assert final(resumed) == final(alone)
        assert resumed.pending() == []
        for id_, verdict in said.items():
            result = resumed.find(id_)
            assert result is not None
            assert (result.outcome.verdict if result.outcome else "-") == verdict
    if mode == "one by one":
        assert without_times(rows(path)) == without_times(rows(tmp_path / "alone.db"))


@pytest.mark.parametrize(
    ("mode", "way"),
    [("one by one", "whole stream"), ("one by one", "pending first"), ("batches", "whole stream")],
)
def test_the_log_cut_off_anywhere_goes_on(mode: str, way: str, tmp_path: Path) -> None:
    """Cut the write-ahead log at a random byte, within a transaction or between two: the gate
    resumes from the complete transactions, and ends as an uninterrupted one. "pending first" passes
    the outputs of `pending` and then those that `find` does not know, instead of all again."""
    rng = random.Random(f"cuts {mode}")
    policy = "hga"
    gate = open_gate(tmp_path / "run.db", policy)
    run(gate, mode)
    expected = final(gate)
    for name in ("run.db", "run.db-wal"):  # before close() moves the one into the other
        shutil.copy(tmp_path / name, tmp_path / f"copy of {name}")
    gate.close()
    whole = (tmp_path / "copy of run.db-wal").stat().st_size
    lengths = []
    for i in range(15):
        path = tmp_path / f"cut {i}.db"
        shutil.copy(tmp_path / "copy of run.db", path)
        wal = Path(shutil.copy(tmp_path / "copy of run.db-wal", f"{path}-wal"))
        os.truncate(wal, rng.randint(whole // 20, whole))
        with open_gate(path, policy) as gate:
            lengths.append(gate.status().seen)
            if way == "pending first":
                outputs = {g.id: g for g in stream()}
                run(gate, mode, [outputs[g.id] for g in gate.pending()])
                run(gate, mode, [g for g in stream() if gate.find(g.id) is None])
            run(gate, mode)
            assert final(gate) == expected
            assert gate.pending() == []
        assert_each_once(path)
    assert len(set(lengths)) > 5
    assert min(lengths) < N


def test_pending_after_a_crash(tmp_path: Path) -> None:
    """What was selected and not finished is listed with its text and can be verified; it stays
    reserved meanwhile."""
    path, image = tmp_path / "run.db", tmp_path / "copy.db"

    class Dies(ScriptedVerifier):
        def _outcome(self, id_: str) -> Outcome:
            if id_ == "g3" and not image.exists():
                shutil.copy(path, image)
                shutil.copy(f"{path}-wal", f"{image}-wal")
            return super()._outcome(id_)

    with open_gate(path, verifier=Dies()) as gate:
        run(gate, "one by one", stream(5))
    with open_gate(image) as gate:
        assert [(g.id, g.text) for g in gate.pending()] == [("g3", "answer 3")]
        assert (gate.status().warmup_spent, gate.status().unresolved) == (3.0, 1)
        with pytest.raises(BadInputError, match="another output"):
            gate.maybe_verify(replace(stream()[3], text="something else"))
        for generation in gate.pending():
            assert gate.maybe_verify(generation).verified
        assert gate.pending() == []
        assert gate.status().warmup_spent == 4.0


def test_a_verdict_from_outside_survives_a_crash(tmp_path: Path) -> None:
    """`report_outcome`, cut off after any of its writes: reported again, or handed in again as
    `pending` says, the output is charged once and learned once."""
    copies: list[Path] = []

    class Copied(SQLiteLog):
        def append(self, events: Iterable[Event]) -> None:
            super().append(events)
            copies.append(tmp_path / f"copy {len(copies)}.db")
            shutil.copy(self.path, copies[-1])
            shutil.copy(f"{self.path}-wal", f"{copies[-1]}-wal")

    def play(gate: VerificationGate) -> None:
        for generation in stream(30):
            gate.maybe_verify(generation)
            result = gate.find(generation.id)
            assert result is not None
            if result.decision.verify and not result.verified:
                gate.report_outcome(generation.id, "failed")

    def open_deciding(log: Any) -> VerificationGate:
        return VerificationGate(make_policy("cst"), budget=BUDGET, log=log)

    with open_deciding(Copied(tmp_path / "run.db")) as gate:
        play(gate)
        expected = final(gate)
    assert len(copies) > 50
    for path in random.Random(0).sample(copies, 25):
        with open_deciding(path) as gate:
            for generation in gate.pending():
                gate.maybe_verify(generation)
            play(gate)
            assert final(gate) == expected
        assert_each_once(path)


def test_resume_after_close_goes_on_exactly(tmp_path: Path) -> None:
    """Closed and opened between any two outputs: the decisions of a gate that stayed open."""
    path = tmp_path / "run.db"
    outputs, results = stream(), []
    for i in range(0, N, 10):
        with open_gate(path, "hga") as gate:
            results += [gate.maybe_verify(g) for g in outputs[i : i + 10]]
            last = final(gate)
    with open_gate(tmp_path / "alone.db", "hga") as alone:
        for generation, result in zip(outputs, results, strict=True):
            expected = alone.maybe_verify(generation)
            assert repr(result.decision) == repr(expected.decision)
            assert result.verified == expected.verified
        assert final(alone) == last


# -- files that are not logs of this gate ------------------------------------------------------


def test_a_log_of_a_newer_schema_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "run.db"
    open_gate(path).close()
    with contextlib.closing(sqlite3.connect(path)) as db, db:
        db.execute("INSERT INTO migrations VALUES ('_add_wonders', 0)")
    db.close()
    before = path.read_bytes()
    for read in (lambda: open_gate(path), lambda: SQLiteLog(path, read_only=True)):
        with pytest.raises(LogSchemaError, match=r"_add_wonders.*with that version"):
            read()
    assert path.read_bytes() == before


def test_an_output_is_found_with_an_index_and_without(tmp_path: Path) -> None:
    """Before the first look-up, after it, by a reader, in a file from when all had the index."""
    path, memory, rng = tmp_path / "run.db", MemoryLog(), random.Random("index")

    def write(log: SQLiteLog) -> None:
        for _ in range(40):
            event = Released(f"id-{rng.randrange(10)}", f"{rng.random()}", None)
            log.append([event])
            memory.append([event])

    def assert_found(log: SQLiteLog) -> None:
        for id_ in ("id-3", "id-7", "unknown"):
            assert list(log.events(id_)) == list(memory.events(id_))

    def is_indexed() -> bool:
        with contextlib.closing(sqlite3.connect(path)) as db:
            found = db.execute("SELECT name FROM sqlite_master WHERE type = 'index'")
            return any(not name.startswith("sqlite_") for (name,) in found)

    with SQLiteLog(path) as log:
        write(log)
        with SQLiteLog(path, read_only=True) as reader:
            assert_found(reader)
        assert not is_indexed()
        assert_found(log)
        assert is_indexed()
        write(log)
        assert_found(log)
    with contextlib.closing(sqlite3.connect(path)) as db, db:
        db.execute("DELETE FROM migrations WHERE name = '_index_on_demand'")
    with SQLiteLog(path, read_only=True) as reader:
        assert_found(reader)
    with SQLiteLog(path) as log:
        assert not is_indexed()
        write(log)
        assert_found(log)
    assert is_indexed()


def test_other_files_are_refused_and_not_changed(tmp_path: Path) -> None:
    text, other = tmp_path / "notes.txt", tmp_path / "other.db"
    text.write_text("not a database, " * 100)
    with contextlib.closing(sqlite3.connect(other)) as db, db:
        db.execute("CREATE TABLE books (title TEXT)")
        db.execute("INSERT INTO books VALUES ('Dune')")
    db.close()
    before = text.read_bytes(), other.read_bytes()
    wrong = "another program's database: "
    for path, written, read in (
        (text, "not a log", "not a log"),
        (other, f"{wrong}choose a new file", f"{wrong}give the log of a gate"),
    ):
        with pytest.raises(LogError, match=written):
            open_gate(path)
        with pytest.raises(LogError, match=read):
            SQLiteLog(path, read_only=True)
    assert (text.read_bytes(), other.read_bytes()) == before
    with contextlib.closing(sqlite3.connect(other)) as db, db:
        assert db.execute("SELECT * FROM books").fetchall() == [("Dune",)]
    db.close()
    (tmp_path / "empty.db").touch()  # mktemp makes these; a log can begin there
    with open_gate(tmp_path / "empty.db") as gate:
        gate.maybe_verify(stream()[0])


@pytest.mark.parametrize("path", ["nowhere/run.db", ".", "file/run.db"])
def test_places_where_no_log_can_be(path: str, tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(LogError, match="cannot be opened"):
        open_gate(tmp_path / path)
    with pytest.raises(LogError):
        SQLiteLog(tmp_path / path, read_only=True)


@pytest.mark.parametrize("mode", [0o555, 0o000], ids=["no writing", "no entering"])
def test_a_folder_without_permission(mode: int) -> None:
    """LogError that names the log; from a child, as root may write anywhere."""
    code = """
import os
import numpy.random  # now: another user may not reach root's Python
if os.getuid() == 0:
    os.setuid(65534)
try:
    open_gate(Path(sys.argv[1]))
except LogError as e:
    print("LogError", e)
"""
    with tempfile.TemporaryDirectory() as folder:  # pytest's own is closed to other users
        inner = Path(folder) if mode else Path(folder, "inner")
        inner.mkdir(exist_ok=True)
        path = inner / "run.db"
        Path(folder).chmod(mode)
        done = subprocess.run(
            [*child(code), str(path)], capture_output=True, text=True, check=False
        )
        Path(folder).chmod(0o755)
        assert done.stdout.startswith(f"LogError log '{path}' cannot be opened"), done.stderr
        assert not list(inner.iterdir())


def test_one_gate_at_a_time(tmp_path: Path) -> None:
    """A second gate in this process, or another process, is refused at once; whatever name the
    file has there. Afterwards the log is free."""
    path, link = tmp_path / "run.db", tmp_path / "link.db"
    link.symlink_to(path)
    code = (
        "import sys\n"
        "from gatekeeper.errors import LogLockedError\n"
        "from gatekeeper.log import SQLiteLog\n"
        "try: SQLiteLog(sys.argv[1])\n"
        "except LogLockedError as e: print('locked')\n"
        "else: print('free')\n"
    )

    def from_another_process() -> str:
        command = [sys.executable, "-c", code, str(path)]
        return subprocess.run(command, capture_output=True, text=True, check=True).stdout.strip()

    with open_gate(path) as gate:
        start = time.monotonic()
        with pytest.raises(LogLockedError, match="in use by another gate"):
            open_gate(path)
        assert time.monotonic() - start < PATIENCE
        assert from_another_process() == "locked"
        gate.maybe_verify(stream()[0])
        with pytest.raises(LogLockedError, match="in use by another gate"):
            open_gate(link)
    assert from_another_process() == "free"
    with open_gate(path) as gate:
        assert gate.status().seen == 1


def test_a_second_gate_beside_a_removed_lock_stops_one_of_the_two(tmp_path: Path) -> None:
    """Nothing is decided twice, and the log can be continued."""
    path = tmp_path / "run.db"
    with open_gate(path) as first:
        first.maybe_verify(stream()[0])
        (tmp_path / "run.db.lock").unlink()
        with open_gate(path) as second:
            second.maybe_verify(stream()[1])
            with pytest.raises(LogError, match=r"another gate .* \(was run\.db\.lock removed\?\)"):
                first.maybe_verify(stream()[1])
            second.maybe_verify(stream()[2])
    with open_gate(path) as gate:
        assert gate.status().seen == 3


@pytest.mark.parametrize(
    ("change", "named"),
    [
        ({"budget": Budget(fraction=0.2, total=60)}, "fraction"),
        ({"policy": Random(0.3, warmup=20, seed=4)}, "policy"),
        ({"policy": CST(0.25, warmup=20, seed=4)}, "beta"),
        ({"policy": CST(0.3, warmup=20, seed=5)}, "seed"),
        ({"policy": CST(0.3, strata=3, warmup=20, seed=4)}, "strata"),
        ({"policy": CST(0.3, warmup=20, seed=4, on_missing="skip")}, "on_missing"),
        ({"settings": {"model": "b"}}, "model"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_other_settings_are_refused_by_name(
    change: dict[str, Any], named: str, tmp_path: Path
) -> None:
    """Not resumed under another budget, policy, seed or model: the message shows both values."""
    path = tmp_path / "run.db"
    same: dict[str, Any] = {
        "policy": CST(0.3, warmup=20, seed=4),
        "budget": BUDGET,
        "settings": {"model": "a"},
        "log": path,
    }
    with VerificationGate(**same) as gate:
        gate.maybe_verify(make_generation("a1"))
    with pytest.raises(LogMismatchError, match=named):
        VerificationGate(**same | change)
    VerificationGate(**same | {"policy": CST(0.3, warmup=20, seed=4)}).close()


# -- a full disk -------------------------------------------------------------------------------


def fill(gate: VerificationGate, outputs: Iterable[Generation]) -> list[str]:
    """Verify until the log cannot be written; the ids that were answered."""
    answered: list[str] = []
    rest = iter(outputs)

    def go_on() -> None:
        for generation in rest:
            gate.maybe_verify(generation)
            answered.append(generation.id)

    with pytest.raises(LogError, match="cannot be written"):
        go_on()
    return answered


def test_a_full_disk_stops_the_gate_and_nothing_is_lost(tmp_path: Path) -> None:
    """SQLITE_FULL at every kind of write: LogError, the gate stays stopped, its answers are in the
    log, and once there is room a new gate on it ends as an uninterrupted one."""
    with open_gate(tmp_path / "alone.db") as alone:
        run(alone, "one by one")
        expected = final(alone)
    for room in range(12):
        path = tmp_path / f"{room}.db"
        verifier = ScriptedVerifier(labels())
        log = SQLiteLog(path)
        gate = VerificationGate(make_policy("cst"), budget=BUDGET, verifier=verifier, log=log)
        log._db.execute(f"PRAGMA max_page_count = {9 + room}")  # pages of 4 KiB
        answered = fill(gate, stream()[room % 2 :])
        with pytest.raises(LogError, match=r"stopped at an earlier error.*full"):
            gate.maybe_verify(stream()[-1])
        with pytest.raises(LogError, match="stopped"):
            gate.report_outcome(answered[0], "failed")
        gate.close()

        with open_gate(path) as resumed:
            for id_ in answered:
                result = resumed.find(id_)
                assert result is not None
                assert result.decision.verify == result.verified
            run(resumed, "one by one", stream()[room % 2 :])
            if room % 2 == 0:
                assert final(resumed) == expected
        assert_each_once(path)


def test_a_file_size_limit_stops_the_gate_and_nothing_is_lost(tmp_path: Path) -> None:
    """The same where the operating system refuses to write: a quota, `ulimit -f`."""
    code = """
import resource
with open_gate(Path(sys.argv[1])) as gate:
    resource.setrlimit(resource.RLIMIT_FSIZE, (100_000, resource.RLIM_INFINITY))
    try:
        for g in stream():
            gate.maybe_verify(g)
            print(g.id)
    except LogError as e:
        print("LogError")
    resource.setrlimit(resource.RLIMIT_FSIZE, (resource.RLIM_INFINITY,) * 2)
"""
    path = tmp_path / "run.db"
    command = [*child(code), str(path)]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=PATIENCE)
    assert done.returncode == 0, done.stderr[-2000:]
    *answered, last = done.stdout.split()
    assert last == "LogError"
    assert answered
    with open_gate(path) as gate:
        assert all(gate.find(id_) is not None for id_ in answered)
        run(gate, "one by one")
        after = final(gate)
    with open_gate(tmp_path / "alone.db") as alone:
        run(alone, "one by one")
        assert final(alone) == after


# -- reading ------------------------------------------------------------------------------------


def test_others_may_read_while_a_gate_writes(tmp_path: Path) -> None:
    """read_only needs no lock, sees what is committed, and cannot write."""
    path = tmp_path / "run.db"
    with pytest.raises(LogError, match="does not exist"):
        SQLiteLog(path, read_only=True)
    assert list(tmp_path.iterdir()) == []
    with open_gate(path) as gate:
        for n, generation in enumerate(stream(30), 1):
            gate.maybe_verify(generation)
            with SQLiteLog(path, read_only=True) as log:
                assert sum(isinstance(e, Decided) for e in log.events()) == n
                assert log.settings()["budget"]["fraction"] == 0.3
        with SQLiteLog(path, read_only=True) as log, pytest.raises(LogError):
            log.append([Released("x", "", None)])
        assert gate.maybe_verify(stream()[30]).id == "g30"


GOES_ON = """
from gatekeeper.errors import LogError
from gatekeeper.io.records import load_records
from gatekeeper.log.sqlite_file import why_not
from gatekeeper.report.report import report

path, way = Path(sys.argv[1]), sys.argv[2]
gate = open_gate(path)
for g in stream()[:10]:
    gate.maybe_verify(g)
if way == "load_records":
    load_records(path)
elif way == "report":
    report(path)
elif way == "error":
    print(why_not(LogError("of SQLite"), path), file=sys.stderr)
elif way == "copy":
    path.read_bytes()
print("begun", flush=True)
sys.stdin.readline()
try:
    for g in stream()[10:40]:
        gate.maybe_verify(g)
        print(g.id, flush=True)
except LogError as e:
    print(e, file=sys.stderr)
os.kill(os.getpid(), 9)
"""


@pytest.mark.parametrize("way", ["load_records", "report", "error", "copy"])
def test_nothing_is_lost_after_the_file_was_read_beside_its_gate(way: str, tmp_path: Path) -> None:
    """A process that closes any descriptor of a file drops its locks on it, so that the next reader
    elsewhere removes the write-ahead log. Our own readings avoid that; where a program makes a
    copy, the gate stops, and all that it had answered is in the log; or it goes on, because SQLite
    from 3.51 on resists that."""
    path = tmp_path / "run.db"
    command = [*child("import os\n" + GOES_ON), str(path), way]
    with subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as process:
        assert process.stdout is not None
        first = process.stdout.readline()
        rows(path)  # a reader elsewhere, which closes the file
        said, errors = process.communicate("go on\n", timeout=PATIENCE)
    assert first == "begun\n", errors
    answered = said.split()
    assert {row.id for row in rows(path) if row.kind == "decided"} >= {*answered}
    if way == "copy" and not answered:
        assert "was moved, deleted or replaced while a gate wrote it" in errors
    else:
        assert len(answered) == 30


def test_a_file_that_is_copied_over_a_log_ends_its_gate(tmp_path: Path) -> None:
    """It is the same file, and SQLite goes on with the other's rows."""
    paths = tmp_path / "run.db", tmp_path / "new.db"
    with SQLiteLog(paths[0]) as log, SQLiteLog(paths[1]):
        for i in range(3):  # more than the write-ahead log holds before it is taken over
            log.append([Released(str(i), "x" * (5 << 20), None)])
        shutil.copyfile(paths[1], paths[0])
        with pytest.raises(LogError, match="was moved, deleted or replaced while a gate wrote it"):
            log.append([Released("3", "", None)])


def strictly_json(text: str) -> Any:
    def refuse(constant: str) -> None:
        raise AssertionError(f"{constant} is not JSON")

    return json.loads(text, parse_constant=refuse)


@pytest.mark.parametrize("text", ["\ud800 alone", "a\0b", "", "é" * 5000, "'; DROP TABLE events;"])
def test_any_text_survives(text: str, tmp_path: Path) -> None:
    """Lone surrogates, NUL, anything a model may emit: in the log, and the same when resumed."""
    path = tmp_path / "run.db"
    id_ = text.encode(errors="replace").decode()[:500] or "empty"

    class Detailed:
        def verify(self, generation: Generation, task: Any) -> Outcome:
            return Outcome(Verdict.FAILED, detail=generation.text, seconds=0.5)

    generation = make_generation(id_, text=text)
    with open_gate(path, verifier=Detailed()) as gate:
        result = gate.maybe_verify(generation)
    with open_gate(path, verifier=Detailed()) as gate:
        assert gate.maybe_verify(generation).outcome == result.outcome
        assert gate.output(id_).text == text
        assert gate.status().seen == 1


def test_every_line_is_json_for_any_reader(tmp_path: Path) -> None:
    """No NaN or Infinity tokens, whatever the signals and the costs are."""
    path = tmp_path / "run.db"

    class Odd:
        def verify(self, generation: Generation, task: Any) -> Outcome:
            i = int(generation.id[1:])
            odd = (float("nan"), float("inf"), -1.0)[i % 3]
            return Outcome(Verdict.FAILED, cost=odd)

    with open_gate(path, verifier=Odd(), budget=Budget(total=40)) as gate:
        for i, generation in enumerate(stream(40)):
            top2 = generation.top2 if i % 3 else np.full_like(generation.top2, -np.inf)
            gate.maybe_verify(replace(generation, top2=top2))
    db = sqlite3.connect(path)
    for (data,) in db.execute("SELECT data FROM events UNION ALL SELECT value FROM settings"):
        strictly_json(data)
    db.close()


# -- any history -------------------------------------------------------------------------------


@settings(max_examples=40, deadline=None, database=None, derandomize=True)
@given(
    steps,
    st.sampled_from(sorted(UNITS)),
    st.sampled_from(["verifier", "no verifier"]),
    st.sampled_from(["random", "cst", "hga"]),
)
def test_any_history_is_rebuilt_from_its_log(
    history: list[Step], unit: str, mode: str, policy: str
) -> None:
    """Admissions, verdicts, releases, second tries, reports, external verdicts, broken batches in
    any order: a gate made from the log has the same status, policy and pending outputs."""
    log, verifier = MemoryLog(), SetVerifier()

    def make(log: MemoryLog) -> VerificationGate:
        settings_of = {"random": Random(0.5, warmup=3), "cst": CST(0.5, warmup=3)}
        return VerificationGate(
            settings_of.get(policy) or HGA(0.5, calibration=5, warmup=3),
            budget=UNITS[unit],
            verifier=verifier if mode == "verifier" else None,
            log=log,
            on_unavailable="pass",
            workers=1,
        )

    gate = make(log)
    outputs = stream(40 * 3 + 1)
    seen = play(gate, verifier, history, outputs)
    again = make(copy.deepcopy(log))
    assert final(again) == final(gate)
    assert [g.id for g in again.pending()] == [g.id for g in gate.pending()]
    for generation in seen:
        told_then, told_now = gate.find(generation.id), again.find(generation.id)
        if told_then is None or told_now is None:  # a batch that was broken off before it
            assert told_then is told_now
            assert any("batch" in kind for kind, *_ in history)
            continue
        assert repr(told_then.decision) == repr(told_now.decision)
        assert told_then.verified == told_now.verified
    verifier.now, verifier.cost = 1, 0.25
    for generation in outputs:
        for one in (gate, again):
            attempt(lambda: one.maybe_verify(generation))  # noqa: B023
    assert final(again) == final(gate)
    again.close()
    gate.close()


def test_what_a_verifier_may_take_belongs_to_the_settings(tmp_path: Path) -> None:
    """Another limit would charge other amounts: refused by name, and what was charged stands."""

    class Slow:
        def __init__(self, max_seconds: float) -> None:
            self.max_seconds = max_seconds

        def verify(self, generation: Generation, task: Any) -> Outcome:
            return Outcome(Verdict.PASSED, seconds=8.0)

    def gate(max_seconds: float) -> VerificationGate:
        budget = Budget(total=100.0, unit="seconds")
        return VerificationGate(
            Random(0.5, warmup=3),
            budget=budget,
            verifier=Slow(max_seconds),
            log=tmp_path / "run.db",
        )

    with gate(10.0) as first:
        for generation in stream(3):
            first.maybe_verify(generation)
    with pytest.raises(LogMismatchError, match=r"max_cost=10.0 .*5\.0"):
        gate(5.0)
    with gate(10.0) as again:
        assert (again.status().warmup_spent, again.status().overrun) == (24.0, 0.0)


def test_why_a_verifier_could_not_tell_is_known_after_a_resume(tmp_path: Path) -> None:
    verifier = ScriptedVerifier({"g0": ConnectionError("no daemon")})
    with open_gate(tmp_path / "run.db", verifier=verifier, on_unavailable="pass") as gate:
        given = gate.maybe_verify(stream()[0])
    with open_gate(tmp_path / "run.db") as gate:
        found = gate.find("g0")
    assert found is not None
    assert found.outcome == given.outcome
    assert found.outcome is not None
    assert "no daemon" in found.outcome.detail
