"""The time that telemetry adds to a decision and a verdict, as a share of one in the same run.

    python benchmarks/telemetry.py            about a minute
    python benchmarks/telemetry.py --quick    a few seconds

Gates with a log in a file decide on the same outputs in turns, one block each: one without
telemetry, one with OpenTelemetry's API alone, one with its SDK (a span around each output, batch
processors for spans and events, an exporter that takes everything). Each output is verified, so
that each has a decision on a span and an event. `plain` is the processor time of one output without
telemetry; `added` is the median over blocks of the additional time of the others. The span itself,
which the caller's own instrumentation makes, is made for all gates alike. `alone` is the time of
the two calls of the sink in a loop without a gate: the least of five rounds.

Targets, per decision with its verdict: 20 µs with the API alone, 80 µs with the SDK; `--check`
exits with 1 if one is missed.
"""

from __future__ import annotations

import argparse
import gc
import platform
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from statistics import median
from typing import Any

from opentelemetry import trace
from opentelemetry.sdk._logs import LoggerProvider, ReadableLogRecord
from opentelemetry.sdk._logs.export import (
    BatchLogRecordProcessor,
    LogRecordExporter,
    LogRecordExportResult,
)
from opentelemetry.sdk.trace import ReadableSpan, TracerProvider
from opentelemetry.sdk.trace.export import BatchSpanProcessor, SpanExporter, SpanExportResult
from rich.console import Console
from rich.table import Table

from gatekeeper import Budget, Random, VerificationGate
from gatekeeper.telemetry.opentelemetry import OpenTelemetry
from gatekeeper.testing import ScriptedVerifier, make_generation
from gatekeeper.types import (
    Decision,
    GateFacts,
    GateResult,
    Observation,
    Outcome,
    Reason,
    Signals,
    Verdict,
)

BLOCK = 50
TARGETS = {"API alone": 20.0, "SDK": 80.0}  # microseconds


class TakesSpans(SpanExporter):
    def export(self, spans: Sequence[ReadableSpan]) -> SpanExportResult:
        return SpanExportResult.SUCCESS


class TakesEvents(LogRecordExporter):
    def export(self, batch: Sequence[ReadableLogRecord]) -> LogRecordExportResult:
        return LogRecordExportResult.SUCCESS

    def shutdown(self) -> None:
        pass

    def force_flush(self, timeout_millis: int = 10_000) -> bool:
        return True


def gate_of(log: Path, telemetry: Sequence[OpenTelemetry]) -> VerificationGate:
    return VerificationGate(
        Random(0.5, warmup=10**9),
        budget=Budget(fraction=1.0),
        verifier=ScriptedVerifier(cost=1.0),
        log=log,
        telemetry=telemetry,
    )


def calls_alone(sink: OpenTelemetry, tracer: trace.Tracer) -> float:
    """Microseconds for one decision and its verdict, in the sink alone."""
    signals, decision = Signals(1.0, 1.0, 1.0), Decision(True, Reason.POLICY)
    facts = GateFacts("random", "verifications", "f00")
    before = Observation(GateResult("g", signals, decision), facts, "r")
    outcome = Outcome(Verdict.PASSED, cost=1.0)
    after = Observation(GateResult("g", signals, decision, outcome), facts, "r")
    rounds = []
    with tracer.start_as_current_span("answer"):
        for _ in range(5):
            begun = time.thread_time_ns()
            for _ in range(2000):
                sink.concluded(after, sink.decided(before))
            rounds.append((time.thread_time_ns() - begun) / 2000 / 1e3)
    return min(rounds)


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--check", action="store_true")
    args = parser.parse_args()
    blocks = 20 if args.quick else 200
    traces, logs = TracerProvider(), LoggerProvider()
    traces.add_span_processor(BatchSpanProcessor(TakesSpans()))
    logs.add_log_record_processor(BatchLogRecordProcessor(TakesEvents()))
    recording, silent = traces.get_tracer("benchmark"), trace.NoOpTracer()
    outputs = [make_generation(f"g{i}", seed=i % 97) for i in range(BLOCK * blocks)]

    def block(gate: VerificationGate, tracer: Any, start: int) -> float:
        """Microseconds of processor time of this thread per output."""
        begun = time.thread_time_ns()
        for output in outputs[start : start + BLOCK]:
            with tracer.start_as_current_span("answer"):
                gate.maybe_verify(output)
        return (time.thread_time_ns() - begun) / BLOCK / 1e3

    alone = {
        "API alone": calls_alone(OpenTelemetry(), silent),
        "SDK": calls_alone(OpenTelemetry(logger_provider=logs), recording),
    }
    with tempfile.TemporaryDirectory() as folder:
        made: dict[str, tuple[VerificationGate, Any]] = {
            "plain": (gate_of(Path(folder) / "plain.db", []), silent),
            "API alone": (gate_of(Path(folder) / "api.db", [OpenTelemetry()]), silent),
            "plain in a span": (gate_of(Path(folder) / "span.db", []), recording),
            "SDK": (
                gate_of(Path(folder) / "sdk.db", [OpenTelemetry(logger_provider=logs)]),
                recording,
            ),
        }
        times: dict[str, list[float]] = {name: [] for name in made}
        names = list(made)
        gc.disable()
        for i in range(blocks):
            for name in names[i % len(names) :] + names[: i % len(names)]:
                times[name].append(block(*made[name], i * BLOCK))
            gc.collect()
        gc.enable()
        for gate, _ in made.values():
            gate.close()
    traces.shutdown()
    logs.shutdown()
    return show(times, alone, check=args.check)


def show(times: dict[str, list[float]], alone: dict[str, float], *, check: bool) -> int:
    plain = median(times["plain"])
    table = Table(title=f"One output, decided on and verified: {plain:.0f} µs without telemetry")
    for heading in ("telemetry", "added", "share of a decision", "target", "alone"):
        table.add_column(heading, justify="left" if heading == "telemetry" else "right")
    missed = False
    for name, base in (("API alone", "plain"), ("SDK", "plain in a span")):
        added = median(b - a for a, b in zip(times[base], times[name], strict=True))
        target = TARGETS[name]
        missed |= added > target
        share, own = f"{added / plain:.1%}", f"{alone[name]:.1f} µs"
        table.add_row(name, f"{added:.1f} µs", share, f"{target:.0f} µs", own)
    console = Console()
    console.print(f"Python {platform.python_version()}, {len(times['plain'])} blocks of {BLOCK}")
    console.print(table)
    return int(check and missed)


if __name__ == "__main__":
    sys.exit(main())
