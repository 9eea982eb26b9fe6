"""A gate that resumes from a snapshot is the gate that applied every event."""

from __future__ import annotations

import contextlib
import json
import os
import random
import shutil
import sqlite3
import tempfile
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from histories import UNITS, SetVerifier, Step, attempt, play, steps
from hypothesis import given, settings
from hypothesis import strategies as st

from gatekeeper import CST, Budget, Generation, VerificationGate
from gatekeeper.errors import LogError, LogMismatchError
from gatekeeper.gate import journal
from gatekeeper.log import Event, SQLiteLog
from gatekeeper.log.snapshot import FLOATS, Snapshot, packed, unpacked
from gatekeeper.policies import policy_names
from gatekeeper.policies.registry import describe_policy
from gatekeeper.testing import ScriptedVerifier, make_generation

UNITS_ALL = UNITS | {"usd": Budget(total=7.0, unit="usd", max_cost=1.0)}


class Kept(SQLiteLog):
    """Keeps the first snapshot only, and remembers from where it was read."""

    kept = 0
    after: int | None = None

    def keep_snapshot(self, key: str, state: Any) -> None:
        if not self.kept and self.after is None:
            super().keep_snapshot(key, state)
        self.kept += 1

    def events_after(self, seq: int) -> Iterator[Event]:
        self.after = seq
        return super().events_after(seq)


def outputs(n: int) -> list[Generation]:
    return [
        make_generation(
            f"g{i}",
            tokens=0 if i % 11 == 7 else 1 + i * 7 % 29,
            seed=i,
            prompt_tokens=5 + i * 37 % 190,
            text=f"answer {i} \ud800",
        )
        for i in range(n)
    ]


def without_snapshot(path: Path) -> Path:
    copy = Path(shutil.copy(path, path.with_suffix(".full.db")))
    with contextlib.closing(sqlite3.connect(copy)) as db, db:
        db.execute("DROP TABLE IF EXISTS snapshot")
    return copy


def state_of(gate: VerificationGate) -> str:
    """The whole state of a gate as JSON, in which NaN equals NaN."""
    life = gate._life
    known = [life._state.snapshot(), sorted(life._state.ids), life._admission.state()]
    return json.dumps([known, gate.policy.state(), [g.id for g in gate.pending()]])


@pytest.fixture
def early(monkeypatch: pytest.MonkeyPatch) -> None:
    """Snapshots from the second event on, and whenever one event is new at the end."""
    monkeypatch.setattr(journal, "FEW", 2)
    monkeypatch.setattr(journal, "SHARE", 0.0)


@settings(max_examples=40, deadline=None, database=None, derandomize=True)
@given(
    steps,
    st.sampled_from(sorted(UNITS_ALL)),
    st.sampled_from(["verifier", "no verifier"]),
    st.sampled_from(policy_names()),
    st.integers(1, 60),
)
def test_any_history_is_rebuilt_from_a_snapshot_at_any_position(
    history: list[Step], unit: str, mode: str, policy: str, position: int
) -> None:
    """State, account, pending and found outputs, later decisions: those of a full fold."""
    stream = outputs(40 * 2 + 30)
    verifier = SetVerifier()
    cost = verifier.cost

    def make(log: Any) -> VerificationGate:
        return VerificationGate(
            describe_policy(policy).build(
                0.5, seed=4, stream={"warmup": 3, "calibration": 5, "horizon": 60}
            ),
            budget=UNITS_ALL[unit],
            verifier=verifier if mode == "verifier" else None,
            log=log,
            on_unavailable="pass",
            workers=1,
            explore=0.2,
            seed=6,
        )

    with tempfile.TemporaryDirectory() as folder, pytest.MonkeyPatch.context() as patch:
        path = Path(folder, "run.db")
        patch.setattr(journal, "FEW", position)
        patch.setattr(journal, "SHARE", 0.0)
        first = Kept(path)
        gate = make(first)
        seen = play(gate, verifier, history, stream)
        expected = state_of(gate)
        gate.close()
        full_path = without_snapshot(path)
        patch.undo()
        verifier.cost = cost  # as it was: another setting would be another verifier
        log, full_log = Kept(path), Kept(full_path)
        again, full = make(log), make(full_log)
        assert full_log.after is None
        assert (log.after is None) == (first.kept == 0)
        if log.after is not None:
            assert log.after >= position
        assert state_of(again) == state_of(full) == expected
        assert again.status() == full.status()
        for generation in seen:
            assert repr(again.find(generation.id)) == repr(full.find(generation.id))
        verifier.now, verifier.cost = 1, 0.25
        for generation in [*seen[-10:], *stream[-30:]]:
            for one in (again, full):
                attempt(lambda: one.maybe_verify(generation))  # noqa: B023
            assert repr(again.find(generation.id)) == repr(full.find(generation.id))
        assert state_of(again) == state_of(full)
        again.close()
        full.close()


def open_gate(log: Any, *, beta: float = 0.3, **more: Any) -> VerificationGate:
    labels = {f"g{i}": i * 7 % 3 == 0 for i in range(300)}
    return VerificationGate(
        more.pop("policy", None) or CST(beta, warmup=20),
        budget=more.pop("budget", None) or Budget(fraction=beta),
        verifier=ScriptedVerifier({id_: int(wrong) for id_, wrong in labels.items()}),
        log=log,
        **more,
    )


def made(path: Path, n: int = 100, **more: Any) -> str:
    with open_gate(path, **more) as gate:
        for output in outputs(n):
            gate.maybe_verify(output)
        return state_of(gate)


def read_from(path: Path, **more: Any) -> tuple[int | None, str]:
    """After which event a gate resumed, and its state."""
    log = Kept(path)
    log.kept = 1
    with open_gate(log, **more) as gate:
        return log.after, state_of(gate)


@pytest.mark.usefixtures("early")
def test_a_snapshot_of_other_code_is_ignored(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "run.db"
    state = made(path)
    assert read_from(path)[0]
    for other in ("another version", None):
        monkeypatch.setattr(journal, "code_fingerprint", lambda: other)  # noqa: B023
        assert read_from(path) == (None, state)


def test_the_fingerprint_is_of_every_source(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It changes with any file of the package, and there is none once a file has changed since
    this process loaded it."""
    package = tmp_path / "gatekeeper"
    folder = Path(journal.__file__).parents[1]
    ignored = shutil.ignore_patterns("__pycache__", "adapters", "sandbox", "*.json", "*.npz")
    shutil.copytree(folder, package, ignore=ignored)
    monkeypatch.setattr(journal, "__file__", str(package / "gate" / "journal.py"))
    compute = journal.code_fingerprint.__wrapped__
    assert compute() is None
    monkeypatch.setattr(journal, "_LOADED", float("inf"))
    before = compute()
    for changed in ("policies/cst.py", "budget/ledger.py", "stats/quantile.py", "drift/guard.py"):
        file = package / changed
        text = file.read_text()
        file.write_text(text + "\n")
        assert compute() not in (None, before)
        file.write_text(text)
        assert compute() == before


@pytest.mark.usefixtures("early")
def test_a_damaged_snapshot_is_ignored(tmp_path: Path) -> None:
    """Any byte changed, bytes missing, a part missing, no bytes at all."""
    path = tmp_path / "run.db"
    state = made(path)
    with contextlib.closing(sqlite3.connect(path)) as db:
        (data,) = db.execute("SELECT data FROM snapshot").fetchone()
    damages = [data[: len(data) // 2], b"", None, "text", *(flipped(data, i) for i in (0, 40, 900))]
    for damage in damages:
        with contextlib.closing(sqlite3.connect(path)) as db, db:
            db.execute("UPDATE snapshot SET data = ?", (damage,))
        assert read_from(path) == (None, state)
    with contextlib.closing(sqlite3.connect(path)) as db, db:
        db.execute("UPDATE snapshot SET data = ?", (data,))
    assert read_from(path)[0]


def flipped(data: bytes, i: int) -> bytes:
    return data[:i] + bytes([data[i] ^ 1]) + data[i + 1 :]


@pytest.mark.usefixtures("early")
def test_other_settings_are_refused_with_a_snapshot_too(tmp_path: Path) -> None:
    """Also settings that no other check compares: the gate's seed and its reaction to drift."""
    path = tmp_path / "run.db"
    made(path)
    with pytest.raises(LogMismatchError, match="beta"):
        open_gate(path, policy=CST(0.2, warmup=20))
    with pytest.raises(LogMismatchError, match="on_drift"):
        open_gate(path, on_drift="report")
    assert read_from(path)[0]


@pytest.mark.usefixtures("early")
def test_no_id_keeps_a_log_from_opening(tmp_path: Path) -> None:
    """Ids are keys of the ledger's state, and this one stands for a list of floats there."""
    path = tmp_path / "run.db"

    def open_() -> VerificationGate:
        return VerificationGate("cst", budget=Budget(fraction=0.3), log=path)

    with open_() as gate:
        gate.maybe_verify(Generation(FLOATS, "a text"))
    with open_() as gate:
        assert [output.id for output in gate.pending()] == [FLOATS]


@pytest.mark.usefixtures("early")
def test_a_snapshot_is_for_equal_rates_of_drawing(tmp_path: Path) -> None:
    """Of a total over a horizon, by the gate's `warmup`, which a policy instance does not have."""
    path, budget = tmp_path / "run.db", Budget(total=60, horizon=300)
    made(path, budget=budget, warmup=20)
    assert read_from(path, budget=budget, warmup=20)[0]
    with contextlib.suppress(LogMismatchError):  # all decisions are made again
        assert read_from(path, budget=budget, warmup=40)[0] is None


class Own(CST):
    """Of another package, whose code is in no fingerprint."""


@pytest.mark.usefixtures("early")
def test_policies_of_others_have_no_snapshot(tmp_path: Path) -> None:
    path = tmp_path / "run.db"
    state = made(path, policy=Own(0.3, warmup=20))
    assert read_from(path, policy=Own(0.3, warmup=20)) == (None, state)


def test_snapshots_are_few_and_replaced(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """One for each doubling, none where a gate opens and closes with little new."""
    monkeypatch.setattr(journal, "FEW", 16)
    path, written = tmp_path / "run.db", []

    class Counted(SQLiteLog):
        def keep_snapshot(self, key: str, state: Any) -> None:
            super().keep_snapshot(key, state)
            written.append(self._last())

    with open_gate(Counted(path)) as gate:
        for output in outputs(250):
            gate.maybe_verify(output)
    *live, at_the_end = written
    assert 4 <= len(live) <= 6
    assert all(b >= 2 * a for a, b in pairwise(live))
    assert at_the_end > live[-1]
    for i in range(250, 255):
        with open_gate(Counted(path)) as gate:
            gate.maybe_verify(outputs(255)[i])
    assert written[-1] == at_the_end
    with contextlib.closing(sqlite3.connect(path)) as db:
        assert db.execute("SELECT count(*) FROM snapshot").fetchone() == (1,)


@pytest.mark.usefixtures("early")
def test_a_snapshot_that_cannot_be_written_is_left_out(tmp_path: Path) -> None:
    class Full(SQLiteLog):
        def keep_snapshot(self, key: str, state: Any) -> None:
            raise LogError("the disk is full")

    state = made(tmp_path / "full.db")
    with open_gate(Full(tmp_path / "run.db")) as gate:
        for output in outputs(100):
            gate.maybe_verify(output)
        assert state_of(gate) == state
    assert read_from(tmp_path / "run.db") == (None, state)


@pytest.mark.usefixtures("early")
def test_a_snapshot_of_a_log_that_cannot_be_read_is_left_out(tmp_path: Path) -> None:
    """The events are stored by then: the gate goes on."""

    class Unreadable(SQLiteLog):
        readable = True

        def _last(self) -> int:
            if self.readable:
                return super()._last()
            raise sqlite3.OperationalError("disk I/O error")

    state = made(tmp_path / "full.db")
    log = Unreadable(tmp_path / "run.db")
    log.readable = False
    with open_gate(log) as gate:
        for output in outputs(100):
            gate.maybe_verify(output)
        assert state_of(gate) == state


@pytest.mark.usefixtures("early")
def test_a_gate_that_broke_off_writes_none(tmp_path: Path) -> None:
    """Its memory may be ahead of its log."""
    path = tmp_path / "run.db"

    class Breaks(CST):
        __module__ = CST.__module__
        __qualname__ = CST.__qualname__
        broken = False

        def update(self, *given: Any) -> None:
            super().update(*given)
            if self.broken:
                raise RuntimeError("in the middle")

    made(path)
    policy = Breaks(0.3, warmup=20)
    gate = open_gate(path, policy=policy)
    policy.broken = True
    with pytest.raises(RuntimeError, match="in the middle"):
        gate.maybe_verify(outputs(101)[100], force=True)
    ahead = state_of(gate)
    gate.close()
    full = read_from(without_snapshot(path))
    again = read_from(path)
    assert again[1] == full[1] != ahead


def test_packing_keeps_every_value() -> None:
    state = {
        "short": [1.5, -0.0],
        "long": [float(i) / 3 for i in range(100)] + [float("inf"), -0.0],
        "mixed": [*range(50), 0.5, None, "\ud800", True],
        "nested": [[0.1] * 40, {"a": [float("nan")] * 33}],
        "large": 2**127 + 1,
    }
    found = unpacked("key", packed("key", Snapshot(7, state)))
    assert found is not None
    assert found.seq == 7
    assert repr(found.state) == repr(state)
    assert unpacked("other", packed("key", Snapshot(7, state))) is None


@pytest.mark.usefixtures("early")
def test_a_log_cut_off_anywhere_goes_on_from_its_snapshot(tmp_path: Path) -> None:
    """The write-ahead log ends at a random byte, in a snapshot too: the gate is the one that
    applied every event that is whole."""
    rng, path = random.Random("cuts"), tmp_path / "run.db"
    gate = open_gate(path)
    for output in outputs(120):
        gate.maybe_verify(output)
    for name in ("run.db", "run.db-wal"):  # before close() moves the one into the other
        shutil.copy(tmp_path / name, tmp_path / f"copy of {name}")
    gate.close()
    whole = (tmp_path / "copy of run.db-wal").stat().st_size
    resumed_after = set()
    for i in range(8):
        cut = Path(shutil.copy(tmp_path / "copy of run.db", tmp_path / f"{i}.db"))
        wal = Path(shutil.copy(tmp_path / "copy of run.db-wal", f"{cut}-wal"))
        os.truncate(wal, rng.randint(whole // 20, whole))
        SQLiteLog(cut).close()  # what is whole, in one file
        full = without_snapshot(cut)
        after, state = read_from(cut)
        assert read_from(full) == (None, state)
        resumed_after.add(after)
    assert len(resumed_after - {None}) > 1
