"""The page's numbers, followed event by event, are those of a reading of the whole log."""

from __future__ import annotations

import gzip
import os
import shutil
import tempfile
from collections import Counter
from pathlib import Path

import pytest
from histories import UNITS, SetVerifier, Step, play, steps
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from gatekeeper import Budget, Generation, VerificationGate
from gatekeeper.analysis.estimates import estimate
from gatekeeper.analysis.summary import summarise
from gatekeeper.errors import LogError
from gatekeeper.io.records import records_of_log
from gatekeeper.log import MemoryLog, SQLiteLog
from gatekeeper.log.run import read_run
from gatekeeper.page.course import found_over_stream, rate_over_stream
from gatekeeper.page.follower import Follower
from gatekeeper.page.watcher import Watcher
from gatekeeper.policies import CST
from gatekeeper.testing import ScriptedVerifier, make_generation

CAPTURED = Path(__file__).parents[1] / "log" / "captured"
OUTPUTS = [make_generation(f"g{i}", seed=i, prompt_tokens=20 + i) for i in range(90)]


def check(follower: Follower, path: Path) -> None:
    """All figures that page and report share."""
    state, run = follower.state, read_run(path)
    figures, results = state.figures(), list(run.results.values())
    assert figures.summary == summarise(results)
    of_report = estimate(records_of_log(path))
    assert figures.rate.naive == of_report.naive
    assert figures.rate.weighted == of_report.weighted
    assert (figures.rate.why, figures.rate.notes) == (of_report.why, of_report.notes)
    assert state.ledger.state() == run.ledger.state()
    assert tuple(state.health_changes) == run.health_changes
    reasons = Counter(r.decision.reason for r in results)
    assert {reason: counts.outputs for reason, counts in figures.reasons.items()} == reasons
    verdicts = Counter(
        r.outcome.verdict for r in results if r.outcome and r.outcome.error is not None
    )
    assert state.by_gate + state.external == verdicts
    waiting = [r.id for r in results if r.decision.verify and not r.verified]
    assert sorted(state.outputs) == sorted(waiting)
    assert [s.id for s in state.last] == [r.id for r in results][-50:]
    shown = {s.id: s.outcome and s.outcome.verdict for s in state.last}
    assert shown == {id_: (o := run.results[id_].outcome) and o.verdict for id_ in shown}


@settings(max_examples=25, deadline=None, suppress_health_check=list(HealthCheck))
@given(history=steps, unit=st.sampled_from(sorted(UNITS)), seed=st.integers(0, 3))
def test_the_numbers_are_the_reports(history: list[Step], unit: str, seed: int) -> None:
    """After any history, read while it goes on and in pieces of any size."""
    with tempfile.TemporaryDirectory() as folder:
        path, verifier = Path(folder) / "run.db", SetVerifier()
        with VerificationGate(
            CST(0.3, warmup=4),
            budget=UNITS[unit],
            verifier=verifier,
            log=path,
            seed=seed,
            on_unavailable="pass",
        ) as gate:
            follower = Follower(path)
            for start in range(0, len(history), 9):
                part = OUTPUTS[2 * start : 2 * start + 20]
                play(gate, verifier, history[start : start + 9], part)
                follower.advance(0.0)
            while follower.advance(0.0):
                pass
            if follower.state.ledger.seen:
                check(follower, path)
        follower.close()


def test_a_long_run(tmp_path: Path) -> None:
    """With verdicts from outside on every other output, which were not selected."""
    path, log = tmp_path / "run.db", MemoryLog()
    labels = {g.id: int(i % 3 == 0) for i, g in enumerate(_outputs(600))}
    for where in (path, log):
        with VerificationGate(
            "threshold",
            budget=Budget(fraction=0.3),
            verifier=ScriptedVerifier(labels),
            log=where,
        ) as gate:
            for output in _outputs(600):
                gate.maybe_verify(output)
            for output in _outputs(600)[::2]:
                if gate.find(output.id).outcome is None:
                    gate.report_outcome(output.id, "failed" if labels[output.id] else "passed")
    followers = Follower(path), Follower(log)
    for follower in followers:
        follower.advance(60.0)
        check(follower, path)
        figures = follower.state.figures()
        parts = rate_over_stream(figures)
        assert parts[0].first == 0
        assert parts[-1].end == 600
        assert [p.first for p in parts[1:]] == [p.end for p in parts[:-1]]
        at, found, random = found_over_stream(figures)
        assert (at[-1], found[-1]) == (600, figures.summary.errors_found)
        assert random[-1] == pytest.approx(figures.summary.random_found)
        assert 0 < len(found) < 200
    followers[0].close()


@pytest.mark.parametrize("captured", sorted(CAPTURED.glob("*.db.gz")), ids=lambda path: path.stem)
def test_earlier_logs(captured: Path, tmp_path: Path) -> None:
    path = tmp_path / "run.db"
    path.write_bytes(gzip.decompress(captured.read_bytes()))
    follower = Follower(path)
    follower.advance(60.0)
    assert follower.state.ledger.seen > 0
    check(follower, path)
    follower.close()


def test_a_file_in_place_of_another(tmp_path: Path) -> None:
    """A new run under the same name begins again; a log without a run is refused."""
    path, new = tmp_path / "run.db", tmp_path / "new.db"
    for where, count in ((path, 60), (new, 10)):
        with VerificationGate("random", budget=Budget(fraction=0.5), log=where) as gate:
            for output in OUTPUTS[:count]:
                gate.maybe_verify(output)
    follower = Follower(path)
    follower.advance(60.0)
    assert follower.state.ledger.seen == 60
    new.rename(path)
    follower.advance(60.0)
    assert follower.state.ledger.seen == 10
    path.rename(new)
    path.write_text("no log")
    with pytest.raises(LogError, match="not a log"):
        follower.advance(60.0)
    new.rename(path)
    assert not follower.advance(60.0)  # the log that was read is back
    assert follower.state.ledger.seen == 10
    check(follower, path)
    follower.close()
    SQLiteLog(tmp_path / "empty.db").close()
    with pytest.raises(LogError, match=r"empty\.db' has no run in it yet"):
        Follower(tmp_path / "empty.db")


@pytest.mark.parametrize(("first", "second"), [(60, 10), (10, 60), (30, 30)])
def test_a_file_that_is_copied_over_the_log(first: int, second: int, tmp_path: Path) -> None:
    """It is the same file, of which SQLite knows the earlier pages."""
    path, new = tmp_path / "run.db", tmp_path / "new.db"
    for where, count, start in ((path, first, 0), (new, second, 5)):
        with VerificationGate("random", budget=Budget(fraction=0.5), log=where) as gate:
            for output in OUTPUTS[start : start + count]:
                gate.maybe_verify(output)
    follower = Follower(path)
    follower.advance(60.0)
    assert follower.state.ledger.seen == first
    os.utime(path, (0, 0))
    assert not follower.advance(60.0)  # the same log, although something was written
    shutil.copyfile(new, path)
    assert follower.advance(60.0)
    assert follower.state.ledger.seen == second
    check(follower, path)
    with VerificationGate("random", budget=Budget(fraction=0.5), log=path) as gate:
        gate.maybe_verify(make_generation("later"))
        follower.advance(60.0)
        assert follower.state.ledger.seen == second + 1
    follower.close()


def test_the_page_of_a_file_in_place_of_another(tmp_path: Path) -> None:
    """People judge the new log's texts; nothing of the old one is shown."""
    path, new, empty = (tmp_path / name for name in ("run.db", "new.db", "empty.db"))
    for where, texts in ((path, ["OLD", "OLD too"]), (new, ["new"]), (empty, [])):
        with VerificationGate("random", budget=Budget(fraction=1), log=where) as gate:
            for i, text in enumerate(texts):
                gate.maybe_verify(Generation(f"g{i}", text))
    watcher = Watcher(path)
    assert "OLD too" in watcher.advance(60.0, at_once=True).queue
    new.rename(path)
    shown = watcher.advance(60.0, at_once=True)
    assert "new" in shown.queue
    assert "OLD" not in shown.page(writable=True)
    path.rename(new)
    path.write_text("no log")
    assert "not a log" in watcher.advance(60.0, at_once=True).status
    new.rename(path)
    assert "not a log" not in watcher.advance(60.0, at_once=True).status
    empty.rename(path)
    assert ">new<" not in watcher.advance(60.0, at_once=True).page(writable=True)
    watcher.close()


def _outputs(count: int) -> list:
    return [make_generation(f"h{i}", seed=i) for i in range(count)]
