"""Spans and events through OpenTelemetry's own SDK: their place, their content, no added errors."""

from __future__ import annotations

import asyncio
import logging
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from opentelemetry import trace
from opentelemetry.sdk._logs import LoggerProvider
from opentelemetry.sdk._logs.export import InMemoryLogRecordExporter, SimpleLogRecordProcessor
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from opentelemetry.semconv._incubating.attributes import gen_ai_attributes as gen_ai
from opentelemetry.semconv.attributes import error_attributes
from scripted_upstream import completion

from gatekeeper import BadInputError, Budget, Outcome, Random, Verdict, VerificationGate
from gatekeeper.telemetry.opentelemetry import EVENT, LONGEST, OpenTelemetry
from gatekeeper.testing import AsyncScriptedVerifier, ScriptedVerifier, make_generation


@dataclass
class Telemetry:
    sink: OpenTelemetry
    tracer: trace.Tracer
    _spans: InMemorySpanExporter
    _events: InMemoryLogRecordExporter

    def span(self, name: str) -> Any:
        (found,) = [span for span in self._spans.get_finished_spans() if span.name == name]
        return found

    def events(self, id_: str) -> list[Any]:
        records = [each.log_record for each in self._events.get_finished_logs()]
        assert {record.event_name for record in records} <= {EVENT}
        return [r for r in records if r.attributes["gatekeeper.output.id"] == id_]

    def names(self) -> set[str]:
        """Of all attributes that were sent."""
        found = {name for span in self._spans.get_finished_spans() for name in span.attributes}
        for each in self._events.get_finished_logs():
            found |= each.log_record.attributes.keys()
        return found


@pytest.fixture
def telemetry() -> Iterator[Telemetry]:
    spans, events = InMemorySpanExporter(), InMemoryLogRecordExporter()
    traces, logs = TracerProvider(), LoggerProvider()
    traces.add_span_processor(SimpleSpanProcessor(spans))
    logs.add_log_record_processor(SimpleLogRecordProcessor(events))
    sink = OpenTelemetry(logger_provider=logs)
    yield Telemetry(sink, traces.get_tracer("test"), spans, events)
    traces.shutdown()
    logs.shutdown()


def gate_of(telemetry: Telemetry, verifier: Any, **options: Any) -> VerificationGate:
    """Verifies half of the outputs, drawn."""
    options = {"explore": 0.0, "on_unavailable": "pass", **options}
    policy = Random(0.5, warmup=1, seed=1)
    return VerificationGate(
        policy, budget=Budget(fraction=0.5), verifier=verifier, telemetry=telemetry.sink, **options
    )


def test_a_decision_is_on_the_callers_span_and_a_verdict_is_its_event(telemetry: Telemetry) -> None:
    """One by one, forced or as the policy decides; what was not verified has no event."""
    labels = {f"g{i}": [0, 1, None][i % 3] for i in range(30)}
    with gate_of(telemetry, ScriptedVerifier(labels, cost=1.0)) as gate:
        for id_ in labels:
            with telemetry.tracer.start_as_current_span(id_):
                gate.maybe_verify(make_generation(id_))
        results = [gate.find(id_) for id_ in labels]
    seen = {"pass": 0, "fail": 0, "infra_error": 0, "none": 0}
    for result in results:
        assert result is not None
        span = telemetry.span(result.id)
        decision = result.decision
        assert span.attributes == {
            "gatekeeper.output.id": result.id,
            "gatekeeper.decision.verify": decision.verify,
            "gatekeeper.decision.reason": decision.reason,
            "gatekeeper.decision.propensity": decision.propensity,
            "gatekeeper.policy.name": "random",
            "gatekeeper.policy.version": decision.version,
            "gatekeeper.verifier.fingerprint": span.attributes["gatekeeper.verifier.fingerprint"],
        }
        events = telemetry.events(result.id)
        assert len(events) == decision.verify
        if not decision.verify:
            seen["none"] += 1
            continue
        (event,) = events
        assert (event.trace_id, event.span_id) == (span.context.trace_id, span.context.span_id)
        found = event.attributes
        assert result.outcome is not None
        assert found["gen_ai.evaluation.name"] == "correctness"
        assert found["gen_ai.response.id"] == result.id
        assert found["gatekeeper.verdict"] == result.outcome.verdict
        if result.outcome.error is None:
            assert found["error.type"] == "infra_error"
            assert not [name for name in found if "score" in name or "cost" in name]
            seen["infra_error"] += 1
        else:
            assert "error.type" not in found
            label = found["gen_ai.evaluation.score.label"]
            assert found["gen_ai.evaluation.score.value"] == {"pass": 1.0, "fail": 0.0}[label]
            assert (label == "fail") == (result.outcome.error == 1)
            cost = found["gatekeeper.cost.value"], found["gatekeeper.cost.unit"]
            assert cost == (1.0, "verifications")
            seen[label] += 1
    assert min(seen.values()) >= 3


def test_each_caller_has_its_own_span_in_batches_and_threads(telemetry: Telemetry) -> None:
    """Callers of one micro-batch, verifiers in threads, batches; and the span may have ended."""

    async def one(gate: VerificationGate, id_: str, later: list[Any]) -> None:
        with telemetry.tracer.start_as_current_span(id_):
            _, verification = await gate.adecide(make_generation(id_), force=True)
        if verification is not None:
            later.append(verification)

    async def many(gate: VerificationGate, ids: list[str]) -> None:
        later: list[Any] = []
        await asyncio.gather(*(one(gate, id_, later) for id_ in ids))
        await asyncio.gather(*later)

    for kind, verifier in (("sync", ScriptedVerifier()), ("async", AsyncScriptedVerifier())):
        ids = [f"{kind}{i}" for i in range(12)]
        with gate_of(telemetry, verifier) as gate:
            asyncio.run(many(gate, ids))
            with telemetry.tracer.start_as_current_span(f"{kind} batch"):
                pairs = [(make_generation(f"{kind} b{i}"), None) for i in range(9)]
                if kind == "sync":
                    gate.verify_batch(pairs)
        for id_ in ids:
            for event in telemetry.events(id_):
                assert event.span_id == telemetry.span(id_).context.span_id
    assert sum(len(telemetry.events(f"sync{i}")) for i in range(12)) >= 6
    verified = [event for i in range(9) for event in telemetry.events(f"sync b{i}")]
    batch = telemetry.span("sync batch").context.span_id
    assert len(verified) >= 2
    assert {event.span_id for event in verified} == {batch}


def test_verdicts_from_outside(telemetry: Telemetry, tmp_path: Path) -> None:
    """They belong to the output's span, not to the span of the report; after a restart that span
    is not known any more."""
    log = tmp_path / "gate.db"

    def gate_without_verifier() -> VerificationGate:
        return gate_of(telemetry, None, log=log)

    with gate_without_verifier() as gate:
        for i in range(8):
            with telemetry.tracer.start_as_current_span(f"g{i}"):
                gate.maybe_verify(completion("text"), id=f"g{i}")
        chosen = [g.id for g in gate.pending()]
        left = [f"g{i}" for i in range(8) if f"g{i}" not in chosen]
        detail = "x" * 5_000
        with telemetry.tracer.start_as_current_span("a person's page"):
            gate.report_outcome(chosen[0], "infra_error")
            gate.report_outcome(chosen[0], Outcome(Verdict.FAILED, value=0.25, detail=detail))
            gate.report_outcome(left[0], "passed")
    with gate_without_verifier() as gate, telemetry.tracer.start_as_current_span("another page"):
        gate.report_outcome(chosen[1], "passed")
    first, second = telemetry.events(chosen[0])
    about = telemetry.span(chosen[0]).context
    assert {first.span_id, second.span_id} == {about.span_id}
    assert first.attributes["error.type"] == "infra_error"
    assert second.attributes["gen_ai.evaluation.score.value"] == 0.25
    assert second.attributes["gen_ai.evaluation.explanation"] == detail[:LONGEST]
    assert second.attributes["gen_ai.response.id"] == completion()["id"] != chosen[0]
    (external,) = telemetry.events(left[0])
    assert external.attributes["gatekeeper.verdict.external"] is True
    assert "gatekeeper.cost.value" not in external.attributes
    (resumed,) = telemetry.events(chosen[1])
    assert (external.span_id, resumed.span_id, resumed.trace_id) == (0, 0, 0)
    assert "gen_ai.response.id" not in resumed.attributes


def test_every_attribute_is_in_the_registry_or_has_our_prefix(telemetry: Telemetry) -> None:
    """The registry that the SDK's package of conventions has."""
    with gate_of(telemetry, ScriptedVerifier({"b": None, "c": ValueError("why")})) as gate:
        for id_ in "abcdefgh":
            with telemetry.tracer.start_as_current_span(id_):
                gate.maybe_verify(make_generation(id_), force=True)
    known = {
        value
        for module in (gen_ai, error_attributes)
        for name, value in vars(module).items()
        if name.isupper() and isinstance(value, str)
    }
    names = telemetry.names()
    conventional = {name for name in names if not name.startswith("gatekeeper.")}
    assert conventional <= known
    assert conventional == {
        gen_ai.GEN_AI_EVALUATION_NAME,
        gen_ai.GEN_AI_EVALUATION_SCORE_VALUE,
        gen_ai.GEN_AI_EVALUATION_SCORE_LABEL,
        gen_ai.GEN_AI_EVALUATION_EXPLANATION,
        gen_ai.GEN_AI_RESPONSE_ID,
        error_attributes.ERROR_TYPE,
    }
    page = (Path(__file__).parents[2] / "docs" / "telemetry.md").read_text()
    assert not {name for name in names if f"`{name}`" not in page}


def test_explanations_can_stay_out() -> None:
    events = InMemoryLogRecordExporter()
    logs = LoggerProvider()
    logs.add_log_record_processor(SimpleLogRecordProcessor(events))
    sink = OpenTelemetry("maths", explanations=False, logger_provider=logs)
    with VerificationGate("cst", budget=Budget(fraction=1.0), telemetry=[sink]) as gate:
        gate.maybe_verify(make_generation("a"))
        gate.report_outcome("a", Outcome(Verdict.FAILED, detail="the gold answer is 7"))
    (event,) = events.get_finished_logs()
    assert event.log_record.attributes["gen_ai.evaluation.name"] == "maths"
    assert "gen_ai.evaluation.explanation" not in event.log_record.attributes
    logs.shutdown()


def test_an_explanation_that_no_exporter_could_encode(telemetry: Telemetry) -> None:
    with gate_of(telemetry, None) as gate:
        gate.maybe_verify(make_generation("a"))
        gate.report_outcome("a", Outcome(Verdict.FAILED, detail="got \ud800"))
    (event,) = telemetry.events("a")
    assert event.attributes["gen_ai.evaluation.explanation"] == "got \ufffd"


class Broken:
    def __init__(self) -> None:
        self.calls = 0

    def decided(self, seen: object) -> object:
        self.calls += 1
        raise RuntimeError("no such host")

    def concluded(self, seen: object, kept: object) -> None:
        self.calls += 1
        raise RuntimeError("no such host")


def test_a_sink_that_raises_costs_no_output_its_result(caplog: pytest.LogCaptureFixture) -> None:
    broken = Broken()
    caplog.set_level(logging.WARNING)
    with VerificationGate(
        "cst", budget=Budget(fraction=1.0), verifier=ScriptedVerifier(), telemetry=broken
    ) as gate:
        assert all(gate.maybe_verify(make_generation(f"g{i}")).verified for i in range(5))
        assert gate.status().held == 0
    assert broken.calls == 10
    assert [r.getMessage() for r in caplog.records if "no such host" in r.getMessage()] == [
        f"gatekeeper: telemetry {broken!r} raised RuntimeError: no such host. Further errors are "
        "not logged"
    ]
    for wrong in (OpenTelemetry, "opentelemetry", [None]):
        with pytest.raises(BadInputError, match="give an object that has decided and concluded"):
            VerificationGate("cst", budget=Budget(fraction=1.0), telemetry=wrong)  # type: ignore


USE = """
import sys
from gatekeeper import Budget, VerificationGate
from gatekeeper.testing import ScriptedVerifier, make_generation
{before}
with VerificationGate(
    "cst", budget=Budget(fraction=1.0), verifier=ScriptedVerifier(), telemetry={telemetry}
) as gate:
    assert gate.maybe_verify(make_generation("a")).verified
print(*sys.modules)
"""


def loaded(telemetry: str, before: str = "") -> set[str]:
    """The modules of a process that used a gate."""
    code = USE.format(telemetry=telemetry, before=before)
    run = [sys.executable, "-W", "error", "-c", code]
    return set(subprocess.run(run, capture_output=True, text=True, check=True).stdout.split())


def test_imports_of_telemetry() -> None:
    """Off: none. On without an SDK: the API alone, and nothing is sent."""
    off = loaded("()")
    assert not [name for name in off if "telemetry" in name or "prometheus" in name]
    load = "from gatekeeper.telemetry.opentelemetry import OpenTelemetry"
    on = loaded("OpenTelemetry()", load)
    assert "opentelemetry.trace" in on
    assert "opentelemetry.sdk" not in on
    missing = f"sys.modules['opentelemetry'] = None\n{load}\nimport gatekeeper.errors\ntry:\n"
    missing += "    OpenTelemetry()\nexcept gatekeeper.errors.MissingDependencyError as e:\n"
    missing += "    assert 'extra telemetry' in str(e), e\nelse:\n    raise AssertionError"
    assert loaded("()", missing)


DEAD = """
import logging, resource, sys
from opentelemetry.exporter.otlp.proto.http._log_exporter import OTLPLogExporter
from opentelemetry.sdk._logs import LoggerProvider
from opentelemetry.sdk._logs.export import BatchLogRecordProcessor
from opentelemetry.sdk.metrics import MeterProvider
from opentelemetry.sdk.metrics.export import InMemoryMetricReader
from gatekeeper.telemetry.opentelemetry import OpenTelemetry
from gatekeeper.types import *

logging.disable(logging.CRITICAL)  # the SDK's own warnings
reader = InMemoryMetricReader()
meters = MeterProvider([reader])
logs = LoggerProvider()
exporter = OTLPLogExporter("http://127.0.0.1:9/v1/logs", timeout=0.2, meter_provider=meters)
logs.add_log_record_processor(
    BatchLogRecordProcessor(exporter, schedule_delay_millis=100, meter_provider=meters)
)
sink = OpenTelemetry(logger_provider=logs)
facts = GateFacts("cst", "verifications", "f00")

def verdicts(count):
    for i in range(count):
        outcome = Outcome(Verdict.FAILED, cost=1.0, detail="x" * 500)
        result = GateResult(f"g{i}", Signals(1.0, 1.0, 1.0), Decision(True, Reason.POLICY), outcome)
        sink.concluded(Observation(result, facts), None)

verdicts(5_000)
before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
verdicts(100_000)
growth = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before
assert growth < 20 * 1024, growth  # KiB
logs.shutdown()
lost = 0
for scope in reader.get_metrics_data().resource_metrics[0].scope_metrics:
    for metric in scope.metrics:
        if metric.name in ("otel.sdk.processor.log.processed", "otel.sdk.exporter.log.exported"):
            for point in metric.data.data_points:
                if "error.type" in point.attributes:
                    lost += point.value
print(lost)
"""


def test_a_hundred_thousand_verdicts_to_a_dead_endpoint() -> None:
    """No exception, bounded memory; the SDK counts each one that it lost."""
    environment = {"OTEL_PYTHON_SDK_INTERNAL_METRICS_ENABLED": "true"}
    done = subprocess.run(
        [sys.executable, "-c", DEAD],
        capture_output=True,
        text=True,
        env=environment | {"PYTHONPATH": str(Path(__file__).parents[2])},
    )
    assert done.returncode == 0, done.stderr
    assert 105_000 <= int(done.stdout) < 106_000  # it may count one twice that it just sent


def test_ids_that_no_exporter_can_encode(telemetry: Telemetry) -> None:
    """The provider's own may have anything; the exporter drops an attribute with half a pair."""
    answer = completion("7") | {"id": "chatcmpl-\ud800"}
    with (
        gate_of(telemetry, ScriptedVerifier()) as gate,
        telemetry.tracer.start_as_current_span("s"),
    ):
        gate.maybe_verify(answer, id="a\0b", force=True)
    (event,) = telemetry.events("a\ufffdb")
    assert event.attributes["gen_ai.response.id"] == "chatcmpl-\ufffd"
    assert telemetry.span("s").attributes["gatekeeper.output.id"] == "a\ufffdb"
