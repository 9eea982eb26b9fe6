"""`--telemetry NAME` of the commands."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest
from scripted_upstream import Request, ScriptedUpstream, reply

from gatekeeper.cli import main

TASKS = [{"id": f"q{i}", "prompt": "What is 1 + 1?", "kind": "math", "gold": "2"} for i in range(3)]

# As `opentelemetry-instrument` does before it runs a program.
UNDER_AN_SDK = """
import sys
from opentelemetry._logs import set_logger_provider
from opentelemetry.sdk._logs import LoggerProvider
from opentelemetry.sdk._logs.export import InMemoryLogRecordExporter, SimpleLogRecordProcessor
from gatekeeper.cli import main
kept = InMemoryLogRecordExporter()
provider = LoggerProvider()
provider.add_log_record_processor(SimpleLogRecordProcessor(kept))
set_logger_provider(provider)
code = main(sys.argv[1:])
records = [each.log_record for each in kept.get_finished_logs()]
assert all(record.event_name == "gen_ai.evaluation.result" for record in records)
print("events:", sorted(record.attributes["gatekeeper.output.id"] for record in records))
sys.exit(code)
"""


@pytest.fixture
def options(tmp_path: Path) -> list[str]:
    path = tmp_path / "tasks.jsonl"
    path.write_text("".join(json.dumps(task) + "\n" for task in TASKS))
    return ["run", str(path), "--budget", "1", "--telemetry"]


def test_events_of_a_run_go_to_the_sdk_of_the_process(
    options: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """One that is set up gets them, and no other: the variables of OTLP are not looked at."""
    with ScriptedUpstream(lambda request: [reply(b"")]) as collector:
        monkeypatch.setenv("OTEL_EXPORTER_OTLP_ENDPOINT", collector.url.removesuffix("/v1"))
        command = [sys.executable, "-c", UNDER_AN_SDK, *options, "opentelemetry"]
        done = subprocess.run(command, capture_output=True, text=True, timeout=300)
        assert done.returncode == 0, done.stderr
        assert done.stdout.splitlines()[-1] == "events: ['q0', 'q1', 'q2']"
        assert not collector.requests


def test_events_of_a_run_go_out_by_otlp(
    options: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def took(request: Request) -> list[bytes]:
        assert request.path == "/v1/logs"
        return [reply(b"", kind="application/x-protobuf")]

    with ScriptedUpstream(took) as collector:
        monkeypatch.setenv("OTEL_EXPORTER_OTLP_ENDPOINT", collector.url.removesuffix("/v1"))
        monkeypatch.delenv("OTEL_EXPORTER_OTLP_COMPRESSION", raising=False)
        assert main([*options, "opentelemetry"]) == 0
        sent = b"".join(request.body for request in collector.requests)
    assert sent.count(b"gen_ai.evaluation.result") == len(TASKS)


@pytest.mark.parametrize("name", ["langfuse", "phoenix"])
def test_a_run_has_no_traces_for_scores(
    name: str, options: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    assert main([*options, name]) == 2
    assert f"--telemetry {name}: it keeps scores of traces, and a run has none" in (
        capsys.readouterr().err
    )


def test_a_tool_that_is_not_installed_is_named(capsys: pytest.CaptureFixture[str]) -> None:
    pytest.importorskip("aiohttp")
    assert main(["serve", "--upstream", "http://127.0.0.1:9/v1", "--telemetry", "phoenix"]) == 2
    assert "--telemetry phoenix needs the package 'arize-phoenix-client'" in capsys.readouterr().err
