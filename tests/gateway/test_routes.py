"""Routes of a file: each has its policy, its budget, its settings and its log; models choose."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
import urllib.error
import urllib.request
from pathlib import Path
from typing import Any

import pytest
from scripted_upstream import Request, ScriptedUpstream, completion, reply

from gatekeeper.cli import main
from gatekeeper.log.run import read_run

PATIENCE = 60.0
FILE = """\
upstream = "{first}/v1"
upstream-key-env = "FIRST_KEY"
tasks = "tasks.jsonl"
log = "gateway.db"
port = 0

[route.small]
models = ["small-*"]
policy = "threshold"
budget = 1.0
warmup = 1
on-failed = "block"

[route.other]
models = ["small-1", "other/big"]
upstream = "{second}"
goal = "score"
"""


def answered(request: Request) -> Any:
    return [reply(json.dumps(completion("7")).encode())]


def send(url: str, model: str, task: str | None = None) -> tuple[int, dict[str, str]]:
    """Status, and the result as the headers have it."""
    body = json.dumps({"model": model, "messages": [{"role": "user", "content": "q"}]}).encode()
    headers = {} if task is None else {"x-gatekeeper-task": task}
    try:
        with urllib.request.urlopen(
            urllib.request.Request(f"{url}/v1/chat/completions", body, headers), timeout=PATIENCE
        ) as found:
            return found.status, {k.lower(): v for k, v in found.headers.items()}
    except urllib.error.HTTPError as error:
        error.close()
        return error.code, {k.lower(): v for k, v in error.headers.items()}


def get(url: str) -> str:
    with urllib.request.urlopen(url, timeout=PATIENCE) as answer:
        text: str = answer.read().decode()
        return text


def test_each_model_has_its_route(tmp_path: Path) -> None:
    """The first route that fits counts, and the gateway's own has the rest. Results, figures and
    pages are found for all; a restart goes on with each log."""
    tasks = [{"id": gold, "prompt": "p", "kind": "math", "gold": gold} for gold in ("7", "8")]
    (tmp_path / "tasks.jsonl").write_text("".join(json.dumps(task) + "\n" for task in tasks))
    command = [sys.executable, "-m", "gatekeeper", "serve", "--config", "gateway.toml"]
    with ScriptedUpstream(answered) as first, ScriptedUpstream(answered) as second:
        (tmp_path / "gateway.toml").write_text(FILE.format(first=first.url, second=second.url))
        for start in range(2):
            environment = os.environ | {"FIRST_KEY": "of-the-first"}
            process = subprocess.Popen(
                command, stderr=subprocess.PIPE, text=True, cwd=tmp_path, env=environment
            )
            try:
                assert process.stderr is not None
                lines = [process.stderr.readline() for _ in range(6)]
                (url,) = re.findall(r"http://127\.0\.0\.1:\d+(?=/v1 is)", lines[0])
                pages = [re.findall(r"http://\S+", line)[-1] for line in lines[3:]]
                assert "route small, models small-*" in lines[1]
                assert ("1 output in gateway.small.db" in lines[1]) == (start == 1)
                if start == 0:
                    assert send(url, "m", "8")[0] == 200  # wrong, and not held back
                    assert send(url, "small-1", "8")[0] == 422
                    status, result = send(url, "other/big", "7")
                    assert (status, result["x-gatekeeper-reason"]) == (200, "policy")
                    assert (len(first.requests), len(second.requests)) == (2, 1)
                    assert first.requests[-1].header("authorization") == "Bearer of-the-first"
                    assert second.requests[-1].header("authorization") is None
                    known = json.loads(get(f"{url}/gatekeeper/results/{result['x-gatekeeper-id']}"))
                    assert known["results"][0]["reason"] == "policy"
                metrics = get(f"{url}/gatekeeper/metrics")
                assert metrics.count("# TYPE gatekeeper_decisions_total counter") == 1
                name = "gatekeeper_decisions_total"
                assert f'{name}{{policy="calibrated",reason="warmup"}} 1.0' in metrics
                small = '{policy="threshold",reason="warmup",route="small"} 1.0'
                assert f"{name}{small}" in metrics
                health = json.loads(get(f"{url}/gatekeeper/healthz"))
                assert health["routes"].keys() == {"small", "other"}
                for page, log in zip(pages, ("gateway.db", "gateway.small.db"), strict=False):
                    assert f"<title>gatekeeper: {log}" in get(page.partition("?")[0])
                assert pages[1].startswith(f"{url}/gatekeeper/routes/small/?token=")
                process.send_signal(signal.SIGTERM)
                assert process.wait(PATIENCE) == 0
                assert "ended after 3 outputs" in process.stderr.read()
            finally:
                process.kill()
                process.communicate()
    for name, policy in (("", "calibrated"), (".small", "threshold"), (".other", "survey")):
        run = read_run(tmp_path / f"gateway{name}.db")
        assert run.settings["policy"]["type"].rpartition(".")[2].lower() == policy
        assert len(run.results) == 1


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("policy = 'no'", "route 'small': policy 'no' is unknown"),
        ("goal = 'score'", "route 'small': --policy cst with --goal score: there every output"),
        ("goal = 'score'", "leave --policy out; --policy is at the top of {path}\n"),
        ("goal = 'score'\npolicy = 'hga'", "leave --policy out\n"),
        ("goal = 'score'\npolicy = 'hga'", "leave --policy out; --policy is on the command line\n"),
        ("features = 'no'", "route 'small': --features 'no'"),
        ("upstream-key-env = 'NO_SUCH_KEY'", "route 'small': --upstream-key-env NO_SUCH_KEY"),
    ],
)
def test_invalid_options_of_a_route(
    text: str, message: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "gateway.toml"
    path.write_text(
        "upstream = 'http://127.0.0.1:9/v1'\npolicy = 'cst'\n"
        f"[route.small]\nmodels = ['m']\n{text}\n"
    )
    line = ["--policy", "cst"] if "command line" in message else []
    assert main(["serve", "--config", str(path), *line]) == 2
    assert message.format(path=path) in capsys.readouterr().err
