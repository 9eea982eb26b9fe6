"""Tasks, verdicts and settings of calls, through the real client; what must not leave."""

from __future__ import annotations

import json
import logging
import threading
import urllib.error
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import openai
import pytest
from prometheus_client.parser import text_string_to_metric_families
from running_gateway import GoldChecker, Running, running_gateway
from scripted_upstream import Request, ScriptedUpstream, completion, event_stream, reply

from gatekeeper import Budget
from gatekeeper.types import Generation, Outcome

MESSAGES: Any = [{"role": "user", "content": "What is 3 + 4?"}]
GOLD = "GOLD-7431"
TASK = {"kind": "math", "gold": GOLD}


def answers(request: Request) -> Any:
    asked = json.loads(request.body)
    if asked["model"] == "refuses" and "logprobs" in asked:
        error = {"error": {"message": "You are not allowed to request logprobs from this model"}}
        return [reply(json.dumps(error).encode(), status="403 Forbidden")]
    text = GOLD if asked["model"] == "right" else "something else"
    return [reply(json.dumps(completion(text, logprobs="logprobs" in asked)).encode())]


@pytest.fixture(scope="module")
def upstream() -> Iterator[ScriptedUpstream]:
    with ScriptedUpstream(answers) as upstream:
        yield upstream


def get(url: str, *, method: str = "GET", data: Any = None, headers: Any = None) -> tuple[int, Any]:
    body = None if data is None else json.dumps(data).encode()
    request = urllib.request.Request(url, body, headers or {}, method=method)
    try:
        with urllib.request.urlopen(request, timeout=60) as answer:
            text = answer.read()
            return answer.status, json.loads(text) if text.startswith(
                (b"{", b"[")
            ) else text.decode()
    except urllib.error.HTTPError as error:
        with error:
            return error.code, json.loads(error.read())


def client_of(gateway: Running, **options: Any) -> openai.OpenAI:
    return openai.OpenAI(
        base_url=f"{gateway.url}/v1", api_key="sk-5ecret", max_retries=0, **options
    )


def call(client: openai.OpenAI, model: str = "right", headers: Any = None, **own: Any) -> Any:
    return client.chat.completions.with_raw_response.create(
        model=model,
        messages=MESSAGES,
        extra_body={"gatekeeper": own} if own else None,
        extra_headers=headers,
    )


def test_tasks_and_verdicts_and_what_must_not_leave(
    upstream: ScriptedUpstream, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """Tasks by body, by header and by PUT; gold answers and keys are nowhere else."""
    caplog.set_level(logging.DEBUG)
    log = tmp_path / "gate.db"
    pages = []
    with (
        running_gateway(upstream.url, gate={"log": log}) as gateway,
        client_of(gateway) as client,
    ):
        # A task of the body, held until its verdict.
        headers = call(client, task=TASK, wait="verdict").headers
        assert headers["x-gatekeeper-decision"] == "verify"
        assert headers["x-gatekeeper-verdict"] == "passed"
        assert float(headers["x-gatekeeper-overhead-ms"]) > 0
        found = get(f"{gateway.url}/gatekeeper/results/{headers['x-gatekeeper-id']}")
        assert found[1]["results"][0]["error"] == 0
        # By header, once it was put there; ids may have any characters.
        with pytest.raises(openai.BadRequestError, match="is unknown") as unknown:
            call(client, headers={"x-gatekeeper-task": "a/%C3%A4"})
        tasks = f"{gateway.url}/gatekeeper/tasks"
        assert get(f"{tasks}/a/%C3%A4", method="PUT", data=TASK)[0] == 201
        assert get(f"{tasks}/a/%C3%A4", method="PUT", data=TASK)[0] == 204
        answer = call(client, "wrong", headers={"x-gatekeeper-task": "a/%C3%A4"}, wait="verdict")
        assert answer.headers["x-gatekeeper-verdict"] == "failed"
        assert answer.parse().choices[0].message.content == "something else"
        id_ = answer.headers["x-gatekeeper-id"]
        found = get(f"{gateway.url}/gatekeeper/results/{id_}")
        assert (found[0], found[1]["results"][0]["verdict"]) == (200, "failed")
        pages += [found, get(f"{gateway.url}/gatekeeper/results/nobody")]
        assert pages[-1][0] == 404
        # Blocked, in OpenAI's envelope.
        with pytest.raises(openai.UnprocessableEntityError, match="is wrong: failed") as blocked:
            call(client, "wrong", task=TASK, on_failed="block")
        assert blocked.value.code == "verification_failed"
        assert blocked.value.response.headers["x-gatekeeper-verdict"] == "failed"
        # Without a task, not at all, annotated; a model that refuses is asked once without.
        assert call(client).headers["x-gatekeeper-reason"] == "warmup"
        assert call(client, verify="never").headers["x-gatekeeper-reason"] == "skipped"
        assert "logprobs" not in upstream.sent
        shown = json.loads(call(client, task=TASK, wait="verdict", annotate=True).text)
        assert shown.pop("gatekeeper")["results"][0]["verdict"] == "passed"
        assert shown == completion(GOLD, logprobs=False)
        before = len(upstream.requests)
        for _ in range(2):
            assert call(client, "refuses", task=TASK).headers["x-gatekeeper-decision"] == "verify"
        assert len(upstream.requests) == before + 3
        # What the gateway implements itself, it refuses itself.
        for own, why in (
            ({"task": {"kind": "math"}}, "gold"),
            ({"waits": 1}, "has 'waits', which is unknown: choose from annotate, id"),
            ({"wait": "verdikt"}, "choose one of background, verdict (did you mean 'verdict'?)"),
            ({"annotate": "yes"}, "annotate='yes': give true or false"),
            ({"task": 7}, "a task is an object"),
        ):
            with pytest.raises(openai.BadRequestError, match="gatekeeper: ") as bad:
                call(client, **own)
            assert why in bad.value.body["message"]
            pages.append((400, str(bad.value)))
        code = {"kind": "code", "tests": ["assert 1"]}
        assert get(f"{tasks}/c", method="PUT", data=code)[0] == 400
        status, metrics = get(f"{gateway.url}/gatekeeper/metrics")
        pages += [(status, metrics), get(f"{gateway.url}/gatekeeper/healthz"), (400, unknown.value)]
        families = {f.name: f for f in text_string_to_metric_families(metrics)}
        decisions = families["gatekeeper_decisions"].samples
        seen = gateway.gate.status().seen
        assert sum(s.value for s in decisions) == seen == 7
        assert families["gatekeeper_without_task"].samples[0].value == 1
        outcomes = {s.labels["verdict"]: s.value for s in families["gatekeeper_outcomes"].samples}
        assert outcomes["failed"] >= 2
    written = b"".join(path.read_bytes() for path in tmp_path.iterdir())
    assert b"something else" in written
    own = [r.getMessage() for r in caplog.records if r.name.split(".")[0] != "openai"]
    said = repr(own) + repr(pages)
    assert GOLD.encode() not in upstream.wire
    assert b"x-gatekeeper" not in upstream.wire.lower()
    assert b"sk-5ecret" in upstream.wire  # the caller's own key, for the upstream
    for secret in (b"sk-5ecret", b'"gold"'):
        assert secret not in written
    assert "sk-5ecret" not in said
    assert GOLD not in said


def test_keys(upstream: ScriptedUpstream) -> None:
    """A key of the gateway's own is asked for everywhere but in healthz; the upstream gets its
    key in place of the caller's."""
    with running_gateway(upstream.url, own_key="0wn", upstream_key="up") as gateway:
        with client_of(gateway) as client, pytest.raises(openai.AuthenticationError):
            call(client)
        assert get(f"{gateway.url}/gatekeeper/metrics")[0] == 401
        assert get(f"{gateway.url}/gatekeeper/healthz")[0] == 200
        with client_of(gateway, default_headers={"x-gatekeeper-key": "0wn"}) as client:
            assert call(client).http_response.status_code == 200
    last = upstream.requests[-1]
    assert last.header("authorization") == "Bearer up"
    assert last.header("x-gatekeeper-key") is None


@pytest.mark.parametrize("end", [b"data: [DONE]\n\n", b"data: [DONE]\n", b"data: [DO", b""])
def test_a_wrong_stream_is_blocked_however_it_ends(end: bytes) -> None:
    choice = completion("7")["choices"][0]
    chunk = completion() | {"choices": [choice | {"delta": {"content": "7"}}]}
    first = f"data: {json.dumps(chunk)}\n\n".encode()
    own = {"task": {"kind": "math", "gold": "8"}, "on_failed": "block"}
    body = json.dumps({"model": "m", "messages": [], "stream": True, "gatekeeper": own}).encode()
    with (
        ScriptedUpstream(lambda request: event_stream(first, *filter(None, [end]))) as upstream,
        running_gateway(upstream.url) as gateway,
        urllib.request.urlopen(f"{gateway.url}/v1/chat/completions", body) as answer,
    ):
        text = answer.read()
    assert text.count(b"verification_failed") == 1
    assert text.endswith(b"}\n\n")
    assert b"[DO" not in text


@pytest.mark.parametrize("id_", ["\ud800", "x" * 1025, 7])
def test_an_id_that_no_log_could_store_is_refused_before_the_call(
    upstream: ScriptedUpstream, id_: Any
) -> None:
    before = len(upstream.requests)
    with running_gateway(upstream.url) as gateway:
        body = json.dumps({"model": "m", "messages": [], "gatekeeper": {"id": id_}}).encode()
        with pytest.raises(urllib.error.HTTPError, match="400") as raised:
            urllib.request.urlopen(f"{gateway.url}/v1/chat/completions", body)
        raised.value.close()
    assert len(upstream.requests) == before


def test_a_refusal_of_log_probabilities_is_of_one_deployment() -> None:
    """Azure names the model in the path."""

    def script(request: Request) -> Any:
        if "/o3/" in request.path and b"logprobs" in request.body:
            return [reply(b'{"error": {"message": "no logprobs"}}', status="400 Bad")]
        return [reply(json.dumps(completion("7")).encode())]

    asked = []
    with ScriptedUpstream(script) as upstream, running_gateway(upstream.url) as gateway:
        for model in ("gpt-4o", "o3", "gpt-4o"):
            path = f"/openai/deployments/{model}/chat/completions?api-version=1"
            body = json.dumps({"messages": []}).encode()
            urllib.request.urlopen(f"{gateway.url}{path}", body).close()
            asked.append(b"logprobs" in upstream.requests[-1].body)
    assert asked == [True, False, True]


class Counting(GoldChecker):
    def __init__(self) -> None:
        self.count = 0
        self._lock = threading.Lock()

    def verify(self, generation: Generation, task: Any) -> Outcome:
        with self._lock:
            self.count += 1
        return super().verify(generation, task)


def test_a_thousand_connections_and_a_cap() -> None:
    """1,000 calls at once, of which the budget has room for 300: no error, no overshoot."""
    import asyncio

    import aiohttp

    body = json.dumps(completion(GOLD)).encode()
    sent = json.dumps({"model": "m", "messages": MESSAGES, "gatekeeper": {"task": TASK}}).encode()
    counting = Counting()

    async def all_at_once(url: str) -> list[str]:
        connector = aiohttp.TCPConnector(limit=0)
        async with aiohttp.ClientSession(connector=connector) as session:

            async def one() -> str:
                async with session.post(url, data=sent) as answer:
                    assert answer.status == 200
                    assert len(await answer.read()) < len(body)
                    return answer.headers["x-gatekeeper-decision"]

            return await asyncio.gather(*(one() for _ in range(1000)))

    with (
        ScriptedUpstream(lambda request: [0.05, reply(body)]) as upstream,
        running_gateway(
            upstream.url, budget=Budget(fraction=1.0, total=300), verifier=counting
        ) as gateway,
    ):
        decisions = asyncio.run(all_at_once(f"{gateway.url}/v1/chat/completions"))
        assert decisions.count("verify") == 300
        assert len(upstream.requests) == 1000
        assert GOLD.encode() not in upstream.wire
    status = gateway.gate.status()
    assert (status.seen, counting.count) == (1000, 300)
    assert status.spent + status.warmup_spent == 300
    assert (status.held, status.unresolved) == (0, 0)


@pytest.mark.parametrize("broken", [True, False])
def test_failures_are_warned_of(broken: bool, caplog: pytest.LogCaptureFixture) -> None:
    """Before the 60th answer, for a verifier that never works and an upstream that drops
    log-probabilities."""

    class Checker(GoldChecker):
        def verify(self, generation: Generation, task: Any) -> Outcome:
            if broken:
                raise OSError("no daemon")
            return super().verify(generation, task)

    def answer(request: Request) -> Any:
        text = json.dumps(completion(GOLD, logprobs=broken))
        return [reply(text.encode())]

    with (
        ScriptedUpstream(answer) as server,
        running_gateway(
            server.url, verifier=Checker(), budget=Budget(fraction=0.2, horizon=300)
        ) as gateway,
        client_of(gateway) as client,
    ):
        for _ in range(59):
            call(client, task=TASK, wait="verdict")
        said = [r.getMessage() for r in caplog.records if r.name == "gatekeeper"]
    assert sum(("could not tell" if broken else "without log-prob") in text for text in said) >= 1
    if broken:
        assert "no daemon" in said[0]
        assert any("the warm-up begins again" in text for text in said)
    else:
        assert any("this is a random draw" in text for text in said)
