"""The queue between a gate and a tracing tool: bounded, counted, and never blocking."""

from __future__ import annotations

import multiprocessing
import subprocess
import sys
import threading
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from types import ModuleType, SimpleNamespace

import pytest

from gatekeeper import BadInputError, Budget, Outcome, Verdict, VerificationGate
from gatekeeper.telemetry import scores as module
from gatekeeper.telemetry.mlflow import MLflowFeedback
from gatekeeper.telemetry.scores import ClientSink, Place, Score, ScoreSink
from gatekeeper.testing import ScriptedVerifier, make_generation

PATIENCE = 60.0


class Tool(ScoreSink):
    """A tool that takes scores once `go` is set, after a number of failures."""

    def __init__(self, *, failures: int = 0, most: int = 10_000) -> None:
        super().__init__(most=most)
        self.go = threading.Event()
        self.got: list[Score] = []
        self.failures = failures
        self.here: Place | None = Place("t", "s")

    def place(self) -> Place | None:
        return self.here

    def send(self, scores: Sequence[Score]) -> None:
        assert self.go.wait(PATIENCE)
        if self.failures:
            self.failures -= 1
            raise ConnectionError("no route")
        self.got += scores


@pytest.fixture(autouse=True)
def soon(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "WAITS", (0.0, 0.0, 0.0, 0.0))


def hand_in(tool: Tool, count: int) -> None:
    """Of 3 outputs one is right, one wrong, and of one the verifier cannot tell."""
    labels = {f"g{i}": [0, 1, None][i % 3] for i in range(count)}
    with VerificationGate(
        "cst",
        budget=Budget(fraction=1.0),
        verifier=ScriptedVerifier(labels, cost=1.0),
        telemetry=[tool],
        on_unavailable="pass",
    ) as gate:
        for id_ in labels:
            gate.maybe_verify(make_generation(id_))


def test_each_verdict_is_one_score_with_its_propensity() -> None:
    tool = Tool(failures=3)
    hand_in(tool, 9)
    tool.here = None
    hand_in(tool, 3)
    tool.go.set()
    assert tool.flush(PATIENCE)
    tool.close()
    assert (tool.sent, tool.dropped, tool.failed, tool.without_span) == (6, 0, 0, 2)
    assert [score.output for score in tool.got] == ["g0", "g1", "g3", "g4", "g6", "g7"]
    assert [(s.value, s.label) for s in tool.got[:2]] == [(1.0, "pass"), (0.0, "fail")]
    assert tool.got[0].metadata == {
        "propensity": 1.0,
        "reason": "warmup",
        "verdict": "passed",
        "policy": "cst",
        "policy_version": 0,
        "cost": 1.0,
        "unit": "verifications",
        "external": False,
    }


def test_a_fork_sends_its_own_scores_alone() -> None:
    """Those in the queue are the parent's, which has the thread that sends them."""
    tool = Tool()
    hand_in(tool, 3)
    context = multiprocessing.get_context("fork")
    found = context.SimpleQueue()

    def child() -> None:
        tool.go.set()
        hand_in(tool, 6)
        tool.flush(PATIENCE)
        found.put([score.output for score in tool.got])

    process = context.Process(target=child)
    process.start()
    process.join(PATIENCE)
    assert not found.empty()
    assert found.get() == ["g0", "g1", "g3", "g4"]
    tool.go.set()
    assert tool.flush(PATIENCE)
    tool.close()
    assert [score.output for score in tool.got] == ["g0", "g1"]


def test_a_tool_that_is_away_costs_a_bounded_queue(caplog: pytest.LogCaptureFixture) -> None:
    """Nothing waits for it; every score is counted as sent, dropped or failed."""
    tool = Tool(failures=10**9, most=50)
    hand_in(tool, 600)
    assert tool.dropped >= 400 - 50 - module.BATCH
    assert not tool.flush(0.01)
    tool.go.set()
    assert tool.flush(PATIENCE)
    assert (tool.sent, tool.dropped + tool.failed) == (0, 400)
    tool.failures = 0
    hand_in(tool, 3)
    tool.close(PATIENCE)
    assert tool.sent == 2
    hand_in(tool, 3)
    assert tool.dropped + tool.failed == 402
    found = [r.getMessage() for r in caplog.records if "no route" in r.getMessage()]
    assert found == [
        "gatekeeper: Tool took no scores: ConnectionError: no route. Further ones are counted as "
        "failed"
    ]
    for most in (0, True, 1.5):
        with pytest.raises(BadInputError, match="most="):
            Tool(most=most)  # type: ignore[arg-type]


def test_scores_that_the_end_of_the_process_loses_are_reported(
    caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "WAITS", (PATIENCE,))
    tool = Tool(failures=10**9)
    tool.go.set()
    hand_in(tool, 3)
    tool.close(0.5)
    assert tool._thread is not None
    tool._thread.join(PATIENCE)
    assert tool.dropped + tool.failed == 2
    (found,) = [r.getMessage() for r in caplog.records if "Tool" in r.getMessage()]
    assert found == (
        "gatekeeper: Tool was closed before 2 scores were sent: ConnectionError: no route"
    )


class Spans(ClientSink):
    calls, clients = "add", "a client"

    def send(self, scores: Sequence[Score]) -> None:
        pass


def test_a_span_that_is_not_sampled_is_none() -> None:
    """The tool never gets it: a score of it would be lost, and counted as sent."""
    trace = pytest.importorskip("opentelemetry.trace")
    sink = Spans(client=SimpleNamespace(add=print))
    for flags, kept in ((0, None), (1, Place(f"{1:032x}", f"{2:016x}"))):
        about = trace.SpanContext(1, 2, is_remote=True, trace_flags=trace.TraceFlags(flags))
        with trace.use_span(trace.NonRecordingSpan(about)):
            assert sink.place() == kept
    assert sink.place() is None


class UnknownError(Exception):
    error_code = "RESOURCE_DOES_NOT_EXIST"


def test_a_trace_that_is_not_there_yet_holds_up_no_other(monkeypatch: pytest.MonkeyPatch) -> None:
    """MLflow's server has a trace only when its root span has ended."""
    open_, got, here = {"t1", "t3"}, list[str](), ["t0"]

    def log_feedback(*, trace_id: str, **feedback: object) -> None:
        if trace_id == "t3":
            open_.discard("t1")  # it ends while the others are sent
        if trace_id in open_:
            raise UnknownError(trace_id)
        got.append(trace_id)

    span = SimpleNamespace(span_id="s")
    mlflow = ModuleType("mlflow")
    vars(mlflow).update(
        log_feedback=log_feedback,
        get_current_active_span=lambda: vars(span).update(trace_id=here[0]) or span,
    )
    entities = ModuleType("mlflow.entities")
    vars(entities).update(AssessmentSource=SimpleNamespace)
    monkeypatch.setitem(sys.modules, "mlflow", mlflow)
    monkeypatch.setitem(sys.modules, "mlflow.entities", entities)
    tool = MLflowFeedback()
    with (
        VerificationGate(
            "cst", budget=Budget(fraction=1.0), verifier=ScriptedVerifier({}), telemetry=[tool]
        ) as gate,
        tool._changed,
    ):  # one batch
        for i in range(6):
            here[0] = f"t{i}"
            gate.maybe_verify(make_generation(f"g{i}"))
    assert tool.flush(PATIENCE)
    tool.close()
    assert got == ["t0", "t2", "t4", "t5", "t1"]
    assert (tool.sent, tool.failed) == (5, 1)


def test_texts_that_a_tool_would_refuse_a_batch_for() -> None:
    tool = Tool()
    tool.go.set()

    class Quotes:
        def verify(self, generation: object, task: object) -> Outcome:
            return Outcome(Verdict.FAILED, detail="got \ud800, \0\n  not é 👩\u200d💻")

    with VerificationGate(
        "cst", budget=Budget(fraction=1.0), verifier=Quotes(), telemetry=[tool]
    ) as gate:
        gate.maybe_verify(replace(make_generation("g"), id="a\0b"))
    tool.close(PATIENCE)
    (score,) = tool.got
    assert score.explanation == "got \ufffd, \ufffd\n  not é 👩\u200d💻"
    assert score.output == "a\ufffdb"


LAST = """
from gatekeeper.telemetry.scores import Place, ScoreSink
from gatekeeper.types import *

class Tool(ScoreSink):
    def place(self): return Place("t", "s")
    def send(self, scores): print(*(score.output for score in scores), flush=True)

tool = Tool()
for i in range(5):
    outcome = Outcome(Verdict.PASSED)
    result = GateResult(f"g{i}", Signals(1.0, 1.0, 1.0), Decision(True, Reason.POLICY), outcome)
    tool.concluded(Observation(result, GateFacts("cst", "verifications")), tool.place())
"""


def test_what_is_queued_at_the_end_of_the_process_is_sent() -> None:
    root = Path(__file__).parents[2]
    done = subprocess.run(
        [sys.executable, "-c", LAST], cwd=root, capture_output=True, text=True, check=True
    )
    assert done.stdout.split() == [f"g{i}" for i in range(5)]
