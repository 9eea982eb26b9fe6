"""docs/litellm.md with LiteLLM itself, in an environment of its own: `make test-harness`."""

from __future__ import annotations

import asyncio
import gc
import json
import logging
import os
import re
import signal
import subprocess
import sys
import textwrap
import threading
import time
from asyncio.selector_events import _SelectorSocketTransport
from collections.abc import Callable, Coroutine, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest

if find_spec("litellm") is None:
    pytest.skip("litellm is not installed: run `make test-harness`", allow_module_level=True)

from aiohttp import ClientSession

from gatekeeper import (
    BadInputError,
    Budget,
    GateResult,
    Outcome,
    UndecidedState,
    Verdict,
    VerificationGate,
)
from gatekeeper.bundled import TASKS
from gatekeeper.bundled.serve import Server
from gatekeeper.io.tasks import read_tasks
from gatekeeper.maths import MathChecker

pytestmark = pytest.mark.filterwarnings("ignore")  # LiteLLM's own

os.environ["LITELLM_LOCAL_MODEL_COST_MAP"] = "True"  # read at import: no download
PAGE = (Path(__file__).parents[2] / "docs" / "litellm.md").read_text()
SHORT, PROGRAM, SCORE, PROXY, SYNC, STREAM = re.findall(r"```python\n(.*?)```", PAGE, re.DOTALL)
QUESTION = [{"role": "user", "content": "What is 3/4 + 5/6?"}]


class StreamingServer(BaseHTTPRequestHandler):
    """A chat completion in chunks, one token each: the bundled model is served in one piece."""

    def do_POST(self) -> None:
        request = json.loads(self.rfile.read(int(self.headers["content-length"])))
        assert request["logprobs"] is True
        assert request["top_logprobs"] == 5
        assert "metadata" not in request
        self.send_response(200)
        self.send_header("content-type", "text/event-stream")
        self.end_headers()
        for text in ("\\boxed", "{19/", "12}", None):
            other = {"token": "?", "bytes": [63], "logprob": -1.9}
            token = {"token": text, "bytes": None, "logprob": -0.2}
            choice: dict[str, Any] = {
                "index": 0,
                "delta": {"content": text} if text else {},
                "finish_reason": None if text else "stop",
                "logprobs": {"content": [{**token, "top_logprobs": [token, other]}]}
                if text
                else None,
            }
            chunk = {"id": "c", "object": "chat.completion.chunk", "created": 1, "model": "m"}
            line = json.dumps({**chunk, "choices": [choice]})
            self.wfile.write(f"data: {line}\n\n".encode())
        self.wfile.write(b"data: [DONE]\n\n")

    def log_message(self, *args: object) -> None:
        pass


@contextmanager
def listening(server: ThreadingHTTPServer) -> Iterator[str]:
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        yield f"http://127.0.0.1:{server.server_address[1]}/v1"
    finally:
        server.shutdown()
        server.server_close()


@pytest.fixture(autouse=True)
def sessions_end_with_their_loop(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """LiteLLM closes no connection: it caches a chat client for each event loop, and drops the
    client of each text completion. What is still open when garbage is collected, at any later
    time, is a ResourceWarning, and a session can be closed on its own loop only."""
    run = asyncio.run

    def objects_of(kind: type) -> list[Any]:
        return [found for found in gc.get_objects() if type(found) is kind]

    async def closing(main: Coroutine[Any, Any, Any]) -> Any:
        try:
            return await main
        finally:
            for session in objects_of(ClientSession):
                await session.close()
            await asyncio.sleep(0)  # for the transports to close

    monkeypatch.setattr(asyncio, "run", lambda main: run(closing(main)))
    yield
    assert [t for t in objects_of(_SelectorSocketTransport) if not t.is_closing()] == []


@pytest.fixture(scope="module")
def base_url() -> Iterator[str]:
    with listening(Server()) as url:
        yield url


@pytest.fixture
def gate() -> Iterator[VerificationGate]:
    """A gate behind LiteLLM's calls, for one test."""
    import litellm

    from gatekeeper.adapters.litellm import GatekeeperLogger

    with VerificationGate("cst", budget=Budget(fraction=0.2), verifier=MathChecker()) as made:
        litellm.callbacks = [GatekeeperLogger(made)]
        yield made
        litellm.callbacks, litellm.input_callback = [], []


@pytest.fixture
def model(base_url: str) -> dict[str, Any]:
    return {"model": "openai/gatekeeper-bundled", "api_base": base_url, "api_key": "none"}


@pytest.fixture
def run(
    base_url: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> Iterator[Callable[..., str]]:
    """Runs a program in this process, because a new one imports LiteLLM for four seconds: what it
    prints."""
    import litellm

    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("OPENAI_API_KEY", "none")
    monkeypatch.setenv("OPENAI_API_BASE", base_url)

    def printed(program: str, *arguments: str) -> str:
        monkeypatch.setattr(sys, "argv", ["program.py", *arguments])
        exec(program, {})
        return capsys.readouterr().out

    yield printed
    litellm.callbacks, litellm.input_callback = [], []


def test_the_programs_of_the_page(run: Callable[..., str]) -> None:
    """Run again with the same log, the second asks, decides and charges nothing twice."""
    assert "Verdict.PASSED" in run(SHORT)
    ran = subprocess.run([sys.executable, "-c", PROGRAM], capture_output=True, text=True)
    assert ran.returncode == 0, ran.stderr
    lines = [line.split() for line in ran.stdout.splitlines() if line.startswith("q")]
    assert [(id_, reason) for id_, _, reason in lines] == [("q1", "warmup"), ("q2", "warmup")]
    assert {verdict for _, verdict, _ in lines} <= {"passed", "failed", "no_answer"}
    assert run(PROGRAM) == ""


def test_the_table_of_the_page(run: Callable[..., str]) -> None:
    """Budgets of 0.2 and 1 on the same answers: the interval holds the score of all."""
    rows = re.findall(r"\| ([\d.]+) \| ([\d.]+) \| (known|[\d. –]+) \| ([\d. –]+) \|", PAGE)
    ends = []
    for budget, *row in rows:
        printed = re.findall(r"  [a-z ]+ ([\d.]+)   (.+)", run(SCORE, budget, f"{budget}.db"))
        assert [printed[0][0], printed[0][1], printed[1][1]] == row
        ends.append([float(value) for value in re.findall(r"[\d.]+", " ".join(printed[0]))])
    (value, low, high), (known,) = ends
    assert low < value < high
    assert low <= known <= high


NOTING = """
import time


def noting(output, task, checker=MathChecker()):
    with open("calls.txt", "a") as calls:
        calls.write(f"{output.id} {output.text!r}\\n")
    time.sleep(0.1)
    return checker.verify(output, task)

"""


def test_a_log_goes_on_after_kill_9(run: Callable[..., str]) -> None:
    """At temperature 0.8: an output with a decision is not asked again, none is verified twice."""
    program = SCORE.replace("[:160]", "[:60]").replace("temperature=0,", "temperature=0.8,")
    program = program.replace("=MathChecker()", "=noting")
    program = program.replace("budget, log =", NOTING + "budget, log =")
    calls = Path("calls.txt")

    def called() -> list[str]:
        return calls.read_text().splitlines() if calls.exists() else []

    with subprocess.Popen([sys.executable, "-c", program, "0.5", "run.db"]) as killed:
        while killed.poll() is None and len(called()) < 4:
            time.sleep(0.01)
        killed.kill()
    assert killed.returncode == -signal.SIGKILL
    before = called()
    printed = run(program, "0.5", "run.db")
    ids = [line.split()[0] for line in called()]
    tasks = [task for task in read_tasks(TASKS)[:60] if task["kind"] == "math"]
    assert f"of all {len(tasks)} outputs, {len(set(ids))} of them checked" in printed
    assert len(set(ids)) == len(tasks) // 2
    # The one whose verification was under way is verified again: the same answer.
    assert len(ids) <= len(set(ids)) + 1
    assert len(set(called())) == len(set(ids)) > len(before)
    assert run(program, "0.5", "run.db") == printed
    assert len(called()) == len(ids)


def of_the_adapter(caplog: pytest.LogCaptureFixture) -> list[str]:
    """The adapter's warnings, without those of the gate's notices."""
    ours = [r for r in caplog.records if r.name == "gatekeeper" and r.module != "notices"]
    return [r.message for r in ours]


def test_what_a_call_gets(
    gate: VerificationGate, model: dict[str, Any], caplog: pytest.LogCaptureFixture
) -> None:
    import litellm

    async def ask(**arguments: Any) -> Any:
        return await litellm.acompletion(messages=QUESTION, **{**model, **arguments})

    async def calls() -> None:
        given = {"task": {"gold": "19/12"}, "id": "a"}
        response = await ask(metadata={"gatekeeper": given})
        result = gate.result_of(response)
        assert isinstance(result, GateResult)
        assert (result.id, result.verified, result.signals.state) == ("a", True, "ok")
        assert response._hidden_params["gatekeeper"] == [result]
        assert "_gatekeeper" not in str(response.model_dump())

        with gate.task({"gold": "19/12"}, id="b"):
            responses = await asyncio.gather(ask(n=2))
        assert [r.id for r in gate.results_of(responses[0])] == ["b/0", "b/1"]

        await asyncio.gather(
            *[ask(metadata={"gatekeeper": given | {"id": f"c{i}"}}) for i in "123"]
        )
        assert all(gate.find(f"c{i}") for i in "123")

        skipped = gate.result_of(await ask(metadata={"gatekeeper": {"verify": "never"}}))
        assert skipped.state is UndecidedState.SKIPPED
        wrong = gate.result_of(await ask(metadata={"gatekeeper": {"bogus": 1}}))
        assert wrong.state is UndecidedState.GATE_ERROR
        assert "a dict of task, id, verify, scope is needed" in wrong.error

        without = gate.result_of(
            await ask(logprobs=False, metadata={"gatekeeper": given | {"id": "d"}})
        )
        assert without.signals.state == "missing"

        router = litellm.Router([{"model_name": "m", "litellm_params": model}])
        routed = await router.acompletion(
            model="m", messages=QUESTION, metadata={"gatekeeper": given | {"id": "e"}}
        )
        assert gate.result_of(routed).signals.state == "ok"

        seen = gate.status().seen
        await litellm.atext_completion(
            prompt="x", **{**model, "model": "text-completion-openai/gatekeeper-bundled"}
        )
        assert gate.status().seen == seen

    with caplog.at_level(logging.WARNING, "gatekeeper"):
        asyncio.run(calls())
    assert of_the_adapter(caplog) == [
        "output '': no decision, gate_error: BadInputError: gatekeeper={'bogus': 1}: a dict of "
        "task, id, verify, scope is needed"
    ]


def test_each_of_two_gates_has_its_own_result(
    gate: VerificationGate, model: dict[str, Any]
) -> None:
    import litellm

    from gatekeeper.adapters.litellm import GatekeeperLogger

    async def calls() -> None:
        task = {"gatekeeper": {"task": {"gold": "never"}}}
        response = await litellm.acompletion(messages=QUESTION, metadata=task, **model)
        for one, logger, verdict in zip(
            (gate, other), litellm.callbacks, ("failed", "passed"), strict=True
        ):
            assert one.result_of(response).outcome.verdict == verdict
            headers = await logger.async_post_call_response_headers_hook({}, None, response)
            assert headers["x-gatekeeper-verdict"] == verdict

    with VerificationGate("cst", budget=Budget(fraction=0.2), verifier=lambda *_: True) as other:
        litellm.callbacks.append(GatekeeperLogger(other))
        asyncio.run(calls())


def test_a_call_with_fallbacks_is_one_output(gate: VerificationGate, model: dict[str, Any]) -> None:
    """LiteLLM calls its hooks for the call and for each model, of which one may refuse what was
    added for another."""
    import litellm

    down = {**model, "model": "openai/away", "api_base": "http://127.0.0.1:9/v1", "max_retries": 0}
    other = {"model": "anthropic/claude-3-haiku-20240307", "mock_response": "42", "api_key": "none"}

    async def calls() -> None:
        for seen, (first, second, state) in enumerate(
            [(model, other, "ok"), (down, model, "ok"), (down, other, "missing")], 1
        ):
            response = await litellm.acompletion(messages=QUESTION, fallbacks=[second], **first)
            assert gate.result_of(response).signals.state == state
            assert gate.status().seen == seen

    asyncio.run(calls())


def test_completion_and_streams(
    gate: VerificationGate, monkeypatch: pytest.MonkeyPatch, base_url: str, caplog: Any
) -> None:
    """The page's two snippets, and a line for each that says so."""
    import litellm

    monkeypatch.setenv("OPENAI_API_KEY", "none")
    monkeypatch.setenv("OPENAI_API_BASE", base_url)
    names: dict[str, Any] = {"litellm": litellm, "gate": gate}
    with caplog.at_level(logging.WARNING, "gatekeeper"):
        exec(SYNC, names)
        assert names["result"].signals.state == "ok"
        assert gate.status().seen == 1
        batch = [[{"role": "user", "content": f"What is {n} + 1?"}] for n in (1, 2)]
        named = {"model": "openai/gatekeeper-bundled", "api_base": base_url, "api_key": "none"}
        assert len(litellm.batch_completion(messages=batch, **named)) == 2
        assert gate.status().seen == 1
        with listening(ThreadingHTTPServer(("127.0.0.1", 0), StreamingServer)) as url:
            monkeypatch.setenv("OPENAI_API_BASE", url)
            body = textwrap.indent(STREAM, "    ")
            exec(f"async def read():\n{body}    return result", names)
            result = asyncio.run(names["read"]())
    assert (result.id, result.signals.n_margins) == ("q3", 3)
    assert result.outcome.verdict is Verdict.PASSED
    first, second = of_the_adapter(caplog)
    assert "litellm.completion() and batch_completion() are not gated" in first
    assert "a stream is not gated automatically" in second


@pytest.mark.parametrize("by_position", [False, True])
def test_a_model_without_log_probabilities(
    by_position: bool,
    gate: VerificationGate,
    model: dict[str, Any],
    caplog: pytest.LogCaptureFixture,
) -> None:
    """One error of the provider, one line, and no further request for log-probabilities."""
    import litellm

    async def ask(id_: str) -> Any:
        wanted = {"gatekeeper": {"task": {"gold": "1"}, "id": id_}}
        more = dict(model)
        first = [more.pop("model")] if by_position else []
        return await litellm.acompletion(*first, messages=QUESTION, metadata=wanted, **more)

    async def calls() -> None:
        with pytest.raises(litellm.BadRequestError, match="not allowed to request logprobs"):
            await ask("a")
        for id_ in "bc":
            assert gate.result_of(await ask(id_)).signals.state == "missing"

    with (
        caplog.at_level(logging.WARNING, "gatekeeper"),
        listening(Server(refuse_logprobs=True)) as url,
    ):
        model["api_base"] = url
        asyncio.run(calls())
    (line,) = of_the_adapter(caplog)
    named = "a model that was passed by position" if by_position else "model 'openai/gatekeeper-b"
    assert line.startswith(named)
    assert "gives no log-probabilities" in line
    assert ("pass model=... by name" in line) == by_position


@pytest.mark.parametrize("broken", [True, False])
def test_failures_are_warned_of(
    broken: bool, model: dict[str, Any], caplog: pytest.LogCaptureFixture
) -> None:
    """Before the 60th output, for a checker that never works and missing log-probabilities."""
    import litellm

    from gatekeeper.adapters.litellm import GatekeeperLogger

    def verify(generation: Any, task: Any) -> bool:
        if broken:
            raise OSError("no daemon")
        return True

    async def calls() -> None:
        with VerificationGate(
            "cst", budget=Budget(fraction=0.2), verifier=verify, on_unavailable="pass"
        ) as gate:
            litellm.callbacks = [GatekeeperLogger(gate)]
            asked = {} if broken else {"logprobs": False}
            await asyncio.gather(
                *(litellm.acompletion(messages=QUESTION, **asked, **model) for _ in range(59))
            )
            litellm.callbacks, litellm.input_callback = [], []
            assert gate.status().seen == 59
            said.extend(caplog.messages)

    said: list[str] = []
    model["max_tokens"] = 4
    with caplog.at_level(logging.WARNING, "gatekeeper"):
        asyncio.run(calls())
    expected = "could not tell whether" if broken else "came without log-probabilities"
    assert sum(expected in text for text in said) == 1


def test_an_endpoint_that_is_down_is_the_callers_error(
    gate: VerificationGate, model: dict[str, Any]
) -> None:
    import litellm

    model["api_base"] = "http://127.0.0.1:9/v1"
    with pytest.raises(litellm.InternalServerError):
        asyncio.run(litellm.acompletion(messages=QUESTION, num_retries=0, **model))
    assert gate.status().seen == 0


def test_the_proxy_trusts_no_client(
    model: dict[str, Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The page's callback, called as the proxy calls it: with `proxy_server_request`."""
    import litellm

    monkeypatch.chdir(tmp_path)
    tasks: list[Any] = []

    class Noting:
        def verify(self, generation: Any, task: Any) -> Outcome:
            tasks.append(task)
            return Outcome(Verdict.PASSED)

    program = PROXY.replace('"What is 665', '"What is 3/4 + 5/6?": "19/12", "What is 665')
    names: dict[str, Any] = {"Noting": Noting}
    exec(program.replace("MathChecker()", "Noting()"), names)
    litellm.callbacks = [names["callback"]]
    hook = names["callback"].async_post_call_response_headers_hook

    async def ask(question: str, **theirs: Any) -> Any:
        response = await litellm.acompletion(
            messages=[{"role": "user", "content": question}],
            metadata={"gatekeeper": theirs},
            proxy_server_request={"url": "http://proxy/v1/chat/completions", "method": "POST"},
            **model,
        )
        return await hook({}, None, response)

    async def calls() -> None:
        known = await ask("What is 3/4 + 5/6?", verify="never", task={"gold": "7"})
        assert known["x-gatekeeper-verify"] == "yes"
        assert known["x-gatekeeper-verdict"] == "passed"
        assert (await ask("And now?", verify="always"))["x-gatekeeper-state"] == "skipped"
        assert "not gated" in (await hook({"stream": True}, None, None))["x-gatekeeper-state"]

    with names["gate"] as gate:
        asyncio.run(calls())
        assert tasks == [{"gold": "19/12"}]
        assert gate.status().seen == 1
    litellm.callbacks, litellm.input_callback = [], []


def test_headers_on_the_proxys_other_routes(gate: VerificationGate, model: dict[str, Any]) -> None:
    """`"model": "a,b"` and formats made of a model's response; from a class that inherits."""
    import litellm

    from gatekeeper.adapters.litellm import GatekeeperLogger

    class Inheriting(GatekeeperLogger):
        pass

    # The proxy looks for hooks in `vars` of the callback's class.
    assert {"async_pre_call_hook", "async_post_call_response_headers_hook"} <= vars(
        Inheriting
    ).keys()
    callback = Inheriting(gate)
    litellm.callbacks = [callback]

    async def request(*calls: dict[str, Any]) -> list[Any]:
        """Calls in tasks of their own, as in the proxy."""
        await callback.async_pre_call_hook(None, None, {}, "agenerate_content")
        inside = {"proxy_server_request": {}, "messages": QUESTION, **model}
        return await asyncio.gather(*[litellm.acompletion(**{**inside, **call}) for call in calls])

    async def headers(response: Any, **data: Any) -> Any:
        return await callback.async_post_call_response_headers_hook(data, None, response)

    async def calls() -> None:
        both = await request({}, {"n": 2})
        ids = [result.id for response in both for result in gate.results_of(response)]
        assert len(ids) == 3
        assert (await headers(both))["x-gatekeeper-id"] == ", ".join(ids)
        (one,) = await request({})
        assert (await headers({"candidates": []}))["x-gatekeeper-id"] == one.id
        await request()
        assert await headers({"object": "response"}) == {"x-gatekeeper-state": "not gated"}
        assert await headers(None) is None

    asyncio.run(calls())


def test_wrong_arguments(gate: VerificationGate) -> None:
    from gatekeeper.adapters.litellm import GatekeeperLogger

    async def settings(request: Any) -> Any: ...

    for given, shown in (
        ({"settings": 3}, r"settings=3: give a function of the request"),
        ({"settings": settings}, r"settings=<function .*: give a function"),
        ({"trust_clients": "no"}, r"trust_clients='no': give True or False"),
    ):
        with pytest.raises(BadInputError, match=shown):
            GatekeeperLogger(gate, **given)
