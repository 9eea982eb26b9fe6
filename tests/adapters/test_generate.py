"""The generators of answers: an endpoint, vLLM, the bundled model."""

from __future__ import annotations

import asyncio
import json
import logging
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from logged_runs import events, final_state
from openai_json import completion
from scripted_upstream import Request, Script, ScriptedUpstream, reply
from scripted_upstream import completion as scripted
from serving import serving

import gatekeeper.bundled
from gatekeeper import BadInputError, MissingDependencyError, SignalState, signals_of
from gatekeeper.adapters.bundled import BundledModel
from gatekeeper.adapters.generate import bundled_generator, openai_generator, vllm_generator
from gatekeeper.cli import main
from gatekeeper.errors import GeneratorUnavailableError
from gatekeeper.io.records import records_of_log
from gatekeeper.io.tasks import read_tasks
from gatekeeper.policies import DEFAULT_POLICY

MODEL = BundledModel.name
TASKS = read_tasks(gatekeeper.bundled.TASKS)
PROMPTS = [task["prompt"] for task in TASKS[:12]]
IDS = [task["id"] for task in TASKS[:12]]
N = 72


def test_an_endpoint_answers_as_the_model_behind_it() -> None:
    expected = bundled_generator(max_tokens=60)(PROMPTS, IDS)
    with serving() as client:
        generate = openai_generator(
            MODEL, base_url=str(client.base_url), api_key="none", concurrency=3, max_tokens=60
        )
        answers = generate(PROMPTS, IDS)
        assert [a.id for a in generate(PROMPTS[:2], ["x", "y"])] == ["x", "y"]
        sampled = [generate(PROMPTS, IDS, temperature=1.0, seed=seed) for seed in (1, 1, 2)]
    texts = [[answer.text for answer in answers] for answers in sampled]
    assert texts[0] == texts[1]
    assert texts[0] != texts[2]
    assert [(a.id, a.text, a.model) for a in answers] == [(e.id, e.text, e.model) for e in expected]
    for answer, e in zip(answers, expected, strict=True):
        np.testing.assert_allclose(answer.top2, e.top2, atol=1e-3)


def test_an_endpoint_answers_where_an_event_loop_runs() -> None:
    """As in the cells of a notebook."""

    async def cell(url: str) -> Any:
        return openai_generator(MODEL, base_url=url, api_key="none")(PROMPTS[:2], IDS[:2])

    with serving() as client:
        answers = asyncio.run(cell(str(client.base_url)))
    assert [answer.id for answer in answers] == IDS[:2]


def test_a_model_that_refuses_logprobs_is_asked_without(
    caplog: pytest.LogCaptureFixture,
) -> None:
    with serving(refuse_logprobs=True) as client:
        generate = openai_generator(MODEL, base_url=str(client.base_url), api_key="none")
        answers = [*generate(PROMPTS, IDS), *generate(PROMPTS[:1], ["again"])]
    assert {signals_of(answer).state for answer in answers} == {SignalState.MISSING}
    (line,) = [r for r in caplog.records if r.name == "gatekeeper" and r.levelno > logging.INFO]
    assert line.getMessage() == f"model {MODEL!r} gives no log-probabilities: signals missing"


def test_a_refusal_that_comes_after_another_was_noticed_is_a_refusal() -> None:
    """Both requests ask for log-probabilities; the second is refused when the first is answered."""
    asked, answered = threading.Barrier(2), threading.Event()

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = json.loads(self.rfile.read(int(self.headers["content-length"])))
            refused = bool(body.get("logprobs"))
            if refused and asked.wait(30):
                answered.wait(30)
            message = "You are not allowed to request logprobs from this model"
            reply = {"error": {"message": message}} if refused else completion(None)
            data = json.dumps(reply).encode()
            self.send_response(400 if refused else 200)
            self.send_header("content-type", "application/json")
            self.send_header("content-length", str(len(data)))
            self.end_headers()
            self.wfile.write(data)
            if not refused:
                answered.set()

        def log_message(self, *_: object) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    try:
        url = f"http://127.0.0.1:{server.server_port}/v1"
        generate = openai_generator("tiny-1", base_url=url, api_key="none", concurrency=2)
        answers = generate(PROMPTS[:2], IDS[:2])
    finally:
        server.shutdown()
        thread.join()
        server.server_close()
    assert [answer.text for answer in answers] == ["four", "four"]


def test_an_error_of_the_endpoint_is_one_line() -> None:
    with serving() as client:
        url = str(client.base_url).rstrip("/")
        unknown = openai_generator("other", base_url=url, api_key="none")
        with pytest.raises(
            GeneratorUnavailableError, match=r"answers id='.*' with status 404.*'other' does not"
        ):
            unknown(PROMPTS, IDS)
    cut = completion(None)
    cut["choices"][0]["finish_reason"] = "error"
    broken = json.dumps(cut).encode()
    with ScriptedUpstream(lambda request: [reply(broken)]) as server:
        generate = openai_generator("tiny-1", base_url=server.url, api_key="none")
        with pytest.raises(
            GeneratorUnavailableError, match=r"broke off the answer to id='.*'error"
        ):
            generate(PROMPTS[:1], IDS[:1])
    page = b"<!doctype html>\n<title>It works!</title>"  # of the same server, without /v1
    with ScriptedUpstream(lambda request: [reply(page, kind="text/html")]) as server:
        generate = openai_generator("tiny-1", base_url=server.url, api_key="none")
        with pytest.raises(
            GeneratorUnavailableError, match=r"no chat completion: <!doctype html> <title>.*/v1\?"
        ):
            generate(PROMPTS[:1], IDS[:1])
    for body in (b"", b"It works!", b'"\xff"', b"[" * 100_000):
        with ScriptedUpstream(lambda request, body=body: [reply(body)]) as server:
            generate = openai_generator("tiny-1", base_url=server.url, api_key="none")
            with pytest.raises(
                GeneratorUnavailableError, match=r"answers id='.*' with a body that"
            ):
                generate(PROMPTS[:1], IDS[:1])
    gone = openai_generator(MODEL, base_url=url, api_key="none")
    with pytest.raises(GeneratorUnavailableError, match=f"{url} cannot be reached: "):
        gone(PROMPTS[:1], IDS[:1])
    with pytest.raises(BadInputError, match="concurrency=0"):
        openai_generator(MODEL, concurrency=0)


@pytest.mark.parametrize(
    ("package", "make"), [("openai", openai_generator), ("vllm", vllm_generator)]
)
def test_missing_packages(package: str, make: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, package, None)
    with pytest.raises(MissingDependencyError, match=rf"\(extra {package}\): pip install"):
        make("x")


class FakeLLM:
    """As much of vLLM as is called; `make test-vllm` has the real one's outputs."""

    template: str | None = "…"

    def __init__(self, model: str, *, seed: int) -> None:
        if model == "nowhere":
            raise OSError("no such\nmodel")
        self.llm_engine = SimpleNamespace(engine_core=SimpleNamespace(shutdown=lambda: None))

    def get_tokenizer(self) -> SimpleNamespace:
        return SimpleNamespace(chat_template=self.template)

    def chat(self, talks: list[Any], params: Any, use_tqdm: bool) -> list[Any]:
        assert params.logprobs == 2
        return [self._output(f"chat {talk[0]['content']}") for talk in talks]

    def generate(self, prompts: list[str], params: Any, use_tqdm: bool) -> list[Any]:
        if "long" in prompts:
            raise ValueError("longer than the\ncontext")
        return [self._output(f"raw {prompt}") for prompt in prompts]

    def _output(self, text: str) -> dict[str, Any]:
        logprobs = [{"7": {"logprob": -0.5, "rank": 1}, "8": {"logprob": -1.5, "rank": 2}}]
        completion = {"index": 0, "text": text, "token_ids": [7], "logprobs": logprobs}
        return {"request_id": "0", "prompt_token_ids": [1], "outputs": [completion]}


class FakeParams(SimpleNamespace):
    logprobs = None

    def clone(self) -> FakeParams:
        return FakeParams(**vars(self))


def test_vllm_is_asked_through_its_template(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("VLLM_LOGGING_STREAM", "ext://sys.stderr")
    fake = SimpleNamespace(LLM=FakeLLM, SamplingParams=FakeParams)
    monkeypatch.setitem(sys.modules, "vllm", fake)  # type: ignore[arg-type]
    (answer,) = vllm_generator("m")(["p"], ["a"])
    assert (answer.id, answer.text, answer.model) == ("a", "chat p", "m")
    assert (answer.top1[0], answer.top2[0]) == (-0.5, -1.5)
    monkeypatch.setattr(FakeLLM, "template", None)
    (answer,) = vllm_generator("m")(["p"], ["a"])
    assert answer.text == "raw p"
    with pytest.raises(
        GeneratorUnavailableError, match=r"refuses one of \['a'\]: longer than the c"
    ):
        vllm_generator("m")(["long"], ["a"])
    with pytest.raises(GeneratorUnavailableError, match="load model='nowhere': no such model"):
        vllm_generator("nowhere")


# -- the command ---------------------------------------------------------------------------------


@contextmanager
def server_process(port: str = "0") -> Iterator[tuple[subprocess.Popen[str], str]]:
    command = [sys.executable, "-m", "gatekeeper.bundled.serve", "--port", port]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as server:
        try:
            assert server.stdout is not None
            yield server, server.stdout.readline().split()[-1]
        finally:
            server.kill()


def test_an_endpoint_that_goes_down_loses_nothing(tmp_path: Path) -> None:
    """One line, exit code 2; later the same command ends as an uninterrupted run does."""
    tasks = tmp_path / "tasks.jsonl"
    lines = gatekeeper.bundled.TASKS.read_text().splitlines(keepends=True)
    tasks.write_text("".join(lines[:N]))

    def command(log: Path, url: str) -> list[str]:
        run = [sys.executable, "-m", "gatekeeper", "run", str(tasks), "--sandbox", "local"]
        run += ["--generator", "openai", "--model", MODEL, "--base-url", url, "--seed", "3"]
        return [*run, "--max-tokens", "60", "--budget", "0.3", "--log", str(log)]

    whole, broken = tmp_path / "whole.db", tmp_path / "broken.db"
    with server_process() as (server, url):
        subprocess.run(command(whole, url), check=True, capture_output=True)
        child = subprocess.Popen(
            command(broken, url), stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
        )
        while events(broken) < 40 and child.poll() is None:
            time.sleep(0.02)
        server.send_signal(signal.SIGKILL)
        out, err = child.communicate()
    assert (child.returncode, out) == (2, "")
    plan, stop = err.splitlines()
    assert plan.startswith(f"gatekeeper: {N} tasks: ")
    assert stop.startswith(f"gatekeeper: {url} cannot be reached: ")
    assert stop.endswith(f" of {N} outputs; the same command continues")
    with server_process(url.split(":")[-1].partition("/")[0]) as (_, again):
        assert again == url
        subprocess.run(command(broken, url), check=True, capture_output=True)
    assert final_state(broken, DEFAULT_POLICY, N) == final_state(whole, DEFAULT_POLICY, N)


def test_a_second_model_agrees_or_not(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its agreement is a feature; no endpoint gets the key of another."""

    def answers(text: str) -> Any:
        def script(request: Request) -> Script:
            prompt = json.loads(request.body)["messages"][0]["content"]
            return [reply(json.dumps(scripted(text if "half" in prompt else "7")).encode())]

        return script

    tasks = tmp_path / "tasks.jsonl"
    prompts = {"a": "What is a half?", "b": "What is 3 + 4?", "c": "What is half of 3?"}
    tasks.write_text(
        "".join(
            json.dumps({"id": id_, "prompt": prompt, "kind": "math", "gold": "7"}) + "\n"
            for id_, prompt in prompts.items()
        )
    )
    log = tmp_path / "run.db"
    monkeypatch.setenv("OPENAI_API_KEY", "first-key")
    monkeypatch.setenv("OTHER_KEY", "other-key")
    with (
        ScriptedUpstream(answers(r"\boxed{\frac{1}{2}}")) as first,
        ScriptedUpstream(answers(r"It is $\boxed{0.5}$.")) as second,
    ):
        run = ["run", str(tasks), "--generator", "openai", "--model", "m", "--base-url", first.url]
        run += ["--log", str(log), "--second-model", "cheap"]
        assert main([*run, "--second-base-url", second.url]) == 0
        assert json.loads(second.requests[0].body)["model"] == "cheap"
        assert b"first-key" in first.wire
        assert b"first-key" not in second.wire
        features = records_of_log(log).features
        assert features is not None
        assert features["second_model"].tolist() == [1.0, 1.0, 1.0]
        capsys.readouterr()
        assert main([*run, "--second-model", "another"]) == 2
        message = " ".join(capsys.readouterr().err.split())
        assert "--second-model cheap (now another)" in message
        log.unlink()
        second.script = answers("8")
        key = ["--second-api-key-env", "OTHER_KEY"]
        assert main([*run, "--second-base-url", second.url, *key]) == 0
        assert b"other-key" in second.wire
        features = records_of_log(log).features
        assert features is not None
        assert features["second_model"].tolist() == [0.0, 1.0, 0.0]
        before = len(first.requests)
        assert main([*run, "--log", str(tmp_path / "same.db")]) == 0  # both at one endpoint
        models = [json.loads(request.body)["model"] for request in first.requests[before:]]
        assert sorted(models) == ["cheap"] * 3 + ["m"] * 3


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["--generator", "openai"], "--generator openai needs --model"),
        (["--model", "x"], "--model x: it is for --generator openai or vllm"),
        (
            ["--base-url", "http://127.0.0.1:1/v1"],
            "generator 'bundled' has no endpoint",
        ),
        (["--generator", "openai", "--model", "x", "--api-key-env", "NO_KEY"], "no key in NO_KEY"),
        (["--second-model", "x", "--second-api-key-env", "NO_KEY"], "no key in NO_KEY"),
        (["--concurrency", "4"], "--concurrency 4: generator 'bundled' has no endpoint"),
        (
            ["--second-model", "x", "--concurrency", "4", "--second-api-key-env", "NO_KEY"],
            "no key in NO_KEY",  # the second model has an endpoint
        ),
        (
            ["--second-base-url", "http://x/v1"],
            "--second-base-url http://x/v1: it is for --second-model; give that too",
        ),
        (["--second-api-key-env", "sk-secret"], "--second-api-key-env … (not shown"),
        (["--max-tokens", "0"], "--max-tokens '0'"),
        (
            ["--generator", "openai", "--model", "x", "--base-url", "nowhere"],
            "--base-url: the URL (not shown",
        ),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, list) else "",
)
def test_wrong_options(
    arguments: list[str], says: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    tasks = tmp_path / "tasks.jsonl"
    tasks.write_text('{"id": "a", "prompt": "What is 1 + 1?", "kind": "math", "gold": "2"}\n')
    assert main(["run", str(tasks), *arguments]) == 2
    *before, message = capsys.readouterr().err.splitlines()
    assert says in message
    assert all(line.startswith("usage: ") for line in before)  # refused before the run
