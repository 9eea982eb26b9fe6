"""The command in a process of its own: SIGTERM under load, `kill -9` and restart, its file."""

from __future__ import annotations

import asyncio
import json
import re
import signal
import subprocess
import sys
import time
import urllib.request
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import aiohttp
import pytest
from opentelemetry.proto.collector.logs.v1.logs_service_pb2 import ExportLogsServiceRequest
from scripted_upstream import Request, ScriptedUpstream, completion, event_stream, reply

from gatekeeper.cli import main
from gatekeeper.log.run import read_run
from gatekeeper.log.sqlite import SQLiteLog
from gatekeeper.programs.config_file import line_of

PATIENCE = 120.0
TRACE = "4bf92f3577b34da6a3ce929d0e0e4736"
TASKS = [{"id": f"q{i}", "prompt": "p", "kind": "math", "gold": f"x + {i}"} for i in range(8)]


def answers(request: Request) -> Any:
    """After 0.3 s the right answer to q0, written so that its check needs algebra; as a stream in
    two parts, if a stream is asked for."""
    found = completion("So it is \\boxed{(x^2 + 0)/x}")
    if not json.loads(request.body).get("stream"):
        return [0.3, reply(json.dumps(found).encode())]
    (choice,) = found["choices"]
    chunk = found | {"object": "chat.completion.chunk"}
    chunk["choices"] = [choice | {"delta": choice["message"]}]
    first = f"data: {json.dumps(chunk)}\n\n".encode()
    return event_stream(first, 0.3, b"data: [DONE]\n\n")


@contextmanager
def serving(*options: object) -> Iterator[tuple[subprocess.Popen[str], str]]:
    """The process and its URL."""
    command = [sys.executable, "-m", "gatekeeper", "serve", "--port", "0", *map(str, options)]
    process = subprocess.Popen(command, stderr=subprocess.PIPE, text=True)
    try:
        assert process.stderr is not None
        found = re.search(r"http://127\.0\.0\.1:\d+", process.stderr.readline())
        assert found is not None
        yield process, found[0]
    finally:
        process.kill()
        process.communicate()


async def calls(url: str, count: int, *, streams: bool = False) -> list[tuple[int, str]]:
    """Status and id of each answer, of as many calls at once; every other one as a stream."""
    asked = {"model": "m", "messages": [{"role": "user", "content": "q"}]}
    async with aiohttp.ClientSession(connector=aiohttp.TCPConnector(limit=0)) as session:

        async def one(i: int) -> tuple[int, str]:
            headers = {"x-gatekeeper-task": f"q{i % len(TASKS)}"}
            body = asked | {"stream": streams and i % 2 == 1}
            async with session.post(
                f"{url}/v1/chat/completions", json=body, headers=headers
            ) as answer:
                text = await answer.read()
                assert not body["stream"] or text.endswith(b"data: [DONE]\n\n")
                return answer.status, answer.headers.get("x-gatekeeper-id", "")

        return await asyncio.gather(*(one(i) for i in range(count)))


@pytest.fixture
def task_file(tmp_path: Path) -> Path:
    path = tmp_path / "tasks.jsonl"
    path.write_text("".join(json.dumps(task) + "\n" for task in TASKS))
    return path


def test_verdicts_go_out_in_the_callers_trace(
    task_file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """By OTLP to a collector, at the latest when the gateway ends; the header goes upstream as it
    came, and the reference answer stays inside. Without the header they are in no trace, also on
    a connection that had one before."""
    spans = ["", *(f"{i:016x}" for i in range(1, 7)), ""]
    with (
        ScriptedUpstream(answers) as upstream,
        ScriptedUpstream(lambda request: [reply(b"", kind="application/x-protobuf")]) as collector,
    ):
        monkeypatch.setenv("OTEL_EXPORTER_OTLP_ENDPOINT", collector.url.removesuffix("/v1"))
        monkeypatch.delenv("OTEL_EXPORTER_OTLP_COMPRESSION", raising=False)
        options = (
            "--upstream",
            upstream.url,
            "--tasks",
            task_file,
            "--budget",
            1,
            "--grace",
            PATIENCE,
        )
        with serving(*options, "--telemetry", "opentelemetry") as (process, url):
            for i, span in enumerate(spans):  # one after the other, on any connections
                asked = {"model": "m", "messages": [], "stream": i % 2 == 1}
                parent = f"00-{TRACE}-{span}-01" if span else None
                headers = {"x-gatekeeper-task": "q0"}
                if parent is not None:
                    headers["traceparent"] = parent
                request = urllib.request.Request(
                    f"{url}/v1/chat/completions", json.dumps(asked).encode(), headers
                )
                with urllib.request.urlopen(request, timeout=PATIENCE) as answer:
                    answer.read()
                assert upstream.requests[-1].header("traceparent") == parent
            process.send_signal(signal.SIGTERM)
            process.communicate(timeout=PATIENCE)
        assert process.returncode == 0
    sent = ExportLogsServiceRequest()
    found = []
    for request in collector.requests:
        assert request.path == "/v1/logs"
        sent.ParseFromString(request.body)
        (of_gate,) = sent.resource_logs
        name = next(a for a in of_gate.resource.attributes if a.key == "service.name")
        assert name.value.string_value == "gatekeeper"
        found += [record for scope in of_gate.scope_logs for record in scope.log_records]
        assert b"x + 0" not in request.body
    assert {record.trace_id.hex() for record in found if record.span_id} == {TRACE}
    assert not any(record.trace_id for record in found if not record.span_id)
    assert sorted(record.span_id.hex() for record in found) == sorted(spans)
    assert {record.event_name for record in found} == {"gen_ai.evaluation.result"}


def events(log: Path) -> list[tuple[str, str]]:
    with SQLiteLog(log) as opened:
        return [
            (type(event).__name__, event.id) for event in opened.events() if hasattr(event, "id")
        ]


def test_sigterm_under_load_loses_nothing(tmp_path: Path, task_file: Path) -> None:
    """Every answer under way is delivered, every reservation is settled or released."""
    log = tmp_path / "gate.db"
    with (
        ScriptedUpstream(answers) as upstream,
        serving("--upstream", upstream.url, "--tasks", task_file, "--log", log, "--budget", 1) as (
            process,
            url,
        ),
    ):

        async def load() -> list[tuple[int, str]]:
            under_way = asyncio.create_task(calls(url, 40, streams=True))
            while len(upstream.requests) < 40:
                await asyncio.sleep(0.005)
            process.send_signal(signal.SIGTERM)
            return await under_way

        found = asyncio.run(load())
        assert process.wait(PATIENCE) == 0
    assert Counter(status for status, _ in found) == {200: 40}
    run = read_run(log)
    assert set(run.results) == {id_ for _, id_ in found}
    kinds: dict[str, list[str]] = {}
    for kind, id_ in events(log):
        kinds.setdefault(id_, []).append(kind)
    for _, id_ in found:
        assert {"Settled", "Released"} & set(kinds[id_]), kinds[id_]


def test_kill_and_restart(tmp_path: Path, task_file: Path) -> None:
    """What was selected and not verified is verified after the restart; each output is decided on
    and charged once."""
    log = tmp_path / "gate.db"
    with ScriptedUpstream(answers) as upstream:
        options = ("--upstream", upstream.url, "--tasks", task_file, "--log", log, "--budget", 1)
        with serving(*options, "--threads", 1) as (process, url):
            found = asyncio.run(calls(url, 30))
            process.send_signal(signal.SIGKILL)
            process.wait(PATIENCE)
        before = {r.id for r in read_run(log).results.values() if r.outcome is not None}
        assert len(before) < 30
        with serving(*options, "--threads", 1) as (process, url):
            deadline = time.monotonic() + PATIENCE
            while sum(r.verified for r in read_run(log).results.values()) < 30:
                assert time.monotonic() < deadline
                time.sleep(0.05)
            process.send_signal(signal.SIGTERM)
            assert process.wait(PATIENCE) == 0
    counts = Counter(events(log))
    for _, id_ in found:
        assert counts["Decided", id_] == counts["Settled", id_] == 1
    right = {r.id.partition("~")[0] for r in read_run(log).results.values() if r.outcome.error == 0}
    assert right == {"q0"}


CONFIG = """\
# in front of vLLM
upstream = "http://127.0.0.1:9/v1"
budget = 0.25
tasks = "{tasks}"  # a comment
wait = "verdict"
"""


@pytest.mark.parametrize(
    ("line", "text", "message"),
    [
        (6, "polcy = 'cst'", "polcy: unknown: did you mean 'policy'?"),
        (6, "warmup = 0", "warmup: '0': give a whole number of at least 1"),
        (6, "on-failed = 'stop'", "on-failed: 'stop' is unknown: choose one of return, block"),
        (6, "log = 5", "log: 5: give a string"),
        (6, "seed = true", "seed: True: give a number"),
        (6, "max-tokens = 0", "max-tokens: '0': give a whole number of at least 1"),
        (6, "dry-run = 'yes'", "dry-run: 'yes': give true or false"),
        (8, "features = '''\nlength'''\nthreads = 'two'", "threads: 'two': give a number"),
        (6, "[verifier]\ncode = 'docker'", "verifier: unknown"),
        (6, "route = 5", "route: give tables, such as [route.small] with models = ['gpt-*']"),
        (6, "[[route]]\nname = 'a'", "route: give tables"),
        (6, "[route.'a b']\nmodels = ['m']", "route.a b: 'a b': a name has 1 to 50 letters"),
        (7, "\n[route.a]\nbudget = 0.1", "route.a: models is missing"),
        (7, "[route.a]\nmodels = 'm'", "route.a.models: 'm': give a list of names"),
        (7, "[route.a]\nmodels = [\n'm',\n'']", "route.a.models: ['m', '']: give a list"),
        (9, "[route.a]\nmodels = ['m']\n[route.b]\nmodels = ['m']", "route.b.models: 'm' is in"),
        (8, "[route.a]\nmodels = ['m']\nbudget = 2", "route.a.budget: '2': give a number in (0"),
        (8, "[route.a]\nmodels = ['m']\npolcy = 'x'", "route.a.polcy: unknown: did you mean"),
        (8, "[route.a]\nmodels = ['m']\nport = 1", "route.a.port: of all routes: move it"),
        (8, "[route.a]\nmodels = ['m']\nlog = 'a.db'", "route.a.log: of all routes: move it"),
    ],
)
@pytest.mark.parametrize("command", ["serve", "run"])
def test_a_file_of_options(
    command: str,
    line: int,
    text: str,
    message: str,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """An error names file, line and key: those of the other command, too."""
    path = tmp_path / "gateway.toml"
    path.write_text(CONFIG + text)
    assert main([command, "--config", str(path)]) == 2
    assert f"{path}, line {line}: {message}" in capsys.readouterr().err


def test_the_same_file_for_a_run(
    task_file: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """What it says of a run counts, the file of tasks too, unless the command line says more."""
    path, other = tmp_path / "gateway.toml", tmp_path / "other.jsonl"
    path.write_text(CONFIG.format(tasks=task_file) + "warmup = 2\ndry-run = true\nport = 1\n")
    other.write_text(json.dumps(TASKS[0]))
    for more, says in (
        ((), "8 tasks: the first 2 are verified to warm up, then at most 1 of the other 6"),
        (("--budget", "1"), "8 tasks, all of them verified"),
        ((other, "--budget", "1"), "1 task, all of them verified"),
    ):
        assert main(["run", "--config", str(path), *map(str, more)]) == 0
        assert says in capsys.readouterr().out
    path.write_text("budget = 0.5")
    assert main(["run", "--config", str(path)]) == 2
    assert "required: tasks" in capsys.readouterr().err


def test_the_command_line_has_precedence(task_file: Path, tmp_path: Path) -> None:
    path = tmp_path / "gateway.toml"
    path.write_text(CONFIG.format(tasks=task_file) + "port = 1\nlog = 'no/such/folder/x.db'\n")
    assert line_of(path.read_text(), "log") == 7
    with serving("--config", path, "--log", tmp_path / "gate.db") as (process, _):
        process.send_signal(signal.SIGTERM)
        assert process.wait(PATIENCE) == 0
    assert (tmp_path / "gate.db").exists()
