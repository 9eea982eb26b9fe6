"""`gate.wrap`: every error has a named state, and the settings of a call hold for it alone."""

from __future__ import annotations

import asyncio
import gc
import pickle
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
from breaking_log import Breaking
from openai import OpenAI
from openai_server import Server
from wrapped_calls import (
    WAYS,
    AsyncChecker,
    Checker,
    chat_call,
    make_gate,
    new_client,
    opened,
    read_to_the_end,
)

from gatekeeper import (
    BadInputError,
    GatekeeperError,
    Generation,
    Outcome,
    Random,
    SignalState,
    Verdict,
    VerificationGate,
    VerifierUnavailableError,
)
from gatekeeper.adapters.openai.attachment import Attachment, attach
from gatekeeper.adapters.openai.call_settings import CallSettings
from gatekeeper.adapters.openai.observer import ResponseObserver
from gatekeeper.types import Undecided, UndecidedState

# -- every error has a named state ---------------------------------------------------------------


@pytest.mark.parametrize("kind", ["OpenAI", "AsyncOpenAI"])
@pytest.mark.parametrize(
    ("prompt", "way", "state"),
    [
        ("empty", "chat", UndecidedState.EMPTY),
        ("empty", "chat, stream", UndecidedState.EMPTY),
        ("empty", "responses", UndecidedState.EMPTY),
        ("cut", "chat, stream", UndecidedState.UNFINISHED),
        ("nojson", "chat, raw", UndecidedState.UNREADABLE),
    ],
)
def test_outputs_that_cannot_be_decided_on(
    server: Server, prompt: str, way: str, state: UndecidedState, kind: str
) -> None:
    """The call goes on and `result_of` names it; only `strict` raises it."""

    async def call(wrapped: Any) -> Any:
        async with opened(WAYS[way](wrapped, prompt)) as answer:
            await read_to_the_end(answer)
        return answer

    async def run() -> None:
        async with new_client(server, kind) as client:
            with make_gate(AsyncChecker()) as gate:
                result = gate.result_of(await call(gate.wrap(client)))
                assert isinstance(result, Undecided)
                assert result.state is state
                assert result.error.startswith("BadInputError: ")
                assert (result.verified, result.outcome, result.decision) == (False, None, None)
                with pytest.raises(BadInputError):
                    await call(gate.wrap(client, strict=True))
                assert gate.status().seen == 0

    asyncio.run(run())


class MuteError(Exception):
    def __str__(self) -> str:
        raise AttributeError("message")


def test_an_error_whose_text_cannot_be_made(client: OpenAI) -> None:
    """As some of other packages: the caller has the answer, and the state says what is known."""

    class Broken(Random):
        def decide(self, *_: Any, **__: Any) -> Any:
            raise MuteError

    broken = make_gate(policy=Broken(0.5))
    result = broken.result_of(chat_call(broken.wrap(client), "mute"))
    assert isinstance(result, Undecided)
    assert result.state is UndecidedState.GATE_ERROR
    assert result.error == "MuteError: its text cannot be made (AttributeError)"


@pytest.mark.parametrize(
    ("prompt", "state", "k"),
    [
        ("null", SignalState.MISSING, 0),
        ("k1", SignalState.PARTIAL, 1),
        ("logits", SignalState.PARTIAL, 5),
    ],
)
@pytest.mark.parametrize("way", ["chat", "chat, stream"])
def test_outputs_without_all_signals(
    client: OpenAI, gate: VerificationGate, prompt: str, way: str, state: SignalState, k: int
) -> None:
    answer = WAYS[way](gate.wrap(client), f"{prompt} {way}")
    if "stream" in way:
        list(answer)
    result = gate.result_of(answer)
    assert not isinstance(result, Undecided), result
    assert result.signals.state is state
    assert result.verified
    assert gate.output(result.id).k_seen == k


def test_ids_that_are_missing_or_come_twice(client: OpenAI, tmp_path: Path) -> None:
    """Each output has its own id and its own task, even if texts are equal; an output that an
    earlier process logged continues there."""
    log = tmp_path / "run.db"
    checker = Checker()
    with make_gate(checker, log=log) as gate:
        wrapped, other = gate.wrap(client), gate.wrap(client)
        ids = []
        for i, prompt in enumerate(["noid", "noid", "sameid 1", "sameid 2", "sameid 2"]):
            with gate.task(i):
                result = gate.result_of(chat_call(other if i % 2 else wrapped, prompt))
            assert result.verified
            ids.append(result.id)
        assert len(set(ids)) == 5
        assert ids[2:] == ["same", "same#2", "same#3"]
        assert [task for _, task in checker.saw] == list(range(5))
    with make_gate(checker, log=log) as gate:
        wrapped = gate.wrap(client)
        assert gate.result_of(chat_call(wrapped, "sameid 1")).id == "same"
        assert gate.result_of(chat_call(wrapped, "sameid 9")).id == "same#4"
        assert len(checker.saw) == 6


class Raising(Checker):
    def verify(self, generation: Generation, task: Any) -> Outcome:
        raise ConnectionError("no daemon")


@pytest.mark.parametrize("kind", ["OpenAI", "AsyncOpenAI"])
@pytest.mark.parametrize("way", ["chat", "chat, stream", "chat, raw"])
def test_trouble_of_the_gate_is_not_the_callers(
    server: Server, caplog: pytest.LogCaptureFixture, way: str, kind: str
) -> None:
    """A broken log, a closed gate, an id that is taken, invalid settings, a verifier that cannot
    tell: the call goes on, and the result names the state. With `strict` they raise."""
    log = Breaking()
    closed = make_gate()
    closed.close()
    cases: list[tuple[VerificationGate, Any, str]] = [
        (closed, {}, "GatekeeperError: this gate is closed"),
        (make_gate(log=log), {}, "LogError: disk full"),
        (make_gate(), {"id": "taken"}, "BadInputError: id='taken' already names another"),
        (make_gate(), {"id": 5}, "BadInputError: id=5: give a string of 1 to"),
        (make_gate(), {"verfy": "always"}, "BadInputError: gatekeeper={'verfy'"),
        (make_gate(), {"verify": "often"}, "BadInputError: verify='often': choose one of auto"),
        (make_gate(), "always", "BadInputError: gatekeeper='always'"),
    ]
    log.full = True

    async def call(wrapped: Any, prompt: str, settings: Any) -> Any:
        body = {"gatekeeper": settings}
        async with opened(WAYS[way](wrapped, prompt, extra_body=body)) as answer:
            await read_to_the_end(answer)
        return answer

    async def run() -> None:
        async with new_client(server, kind) as client:
            for i, (gate, settings, error) in enumerate(cases):
                if settings == {"id": "taken"}:
                    await gate.amaybe_verify(
                        Generation("taken", "x", *([[]] * 3)),
                        force=True,  # type: ignore[arg-type]
                    )
                result = gate.result_of(await call(gate.wrap(client), f"trouble {i}", settings))
                assert isinstance(result, Undecided)
                assert result.state is UndecidedState.GATE_ERROR
                assert result.error.startswith(error)
                assert error.partition(": ")[2] in caplog.text
                with pytest.raises(GatekeeperError):
                    await call(gate.wrap(client, strict=True), f"trouble {i}", settings)
                assert "gatekeeper" not in server.sent

            gate = make_gate(Raising())
            result = gate.result_of(await call(gate.wrap(client), "down", {}))
            assert not isinstance(result, Undecided)
            assert result.outcome is not None
            assert result.outcome.verdict is Verdict.INFRA_ERROR
            with pytest.raises(VerifierUnavailableError):
                await call(gate.wrap(client, strict=True), "down", {})

    asyncio.run(run())


def test_a_stream_that_is_not_read_to_its_end(
    client: OpenAI, gate: VerificationGate, caplog: pytest.LogCaptureFixture
) -> None:
    """Left before the output is complete: not seen. Left at the last token: decided."""
    caplog.set_level("INFO", "gatekeeper")
    wrapped = gate.wrap(client)
    with chat_call(wrapped, "left", stream=True) as stream:
        for chunk in stream:
            if chunk.choices and chunk.choices[0].delta.content:
                break
    assert gate.result_of(stream) == Undecided("", UndecidedState.UNFINISHED)
    del stream
    gc.collect()
    assert "'chatcmpl-left': not read to its end" in caplog.text
    assert gate.status().seen == 0
    with chat_call(wrapped, "left late", stream=True) as stream:
        for chunk in stream:
            if chunk.choices and chunk.choices[0].finish_reason:
                break
    assert gate.result_of(stream).verified


def test_a_stream_that_breaks_off(client: OpenAI, gate: VerificationGate) -> None:
    """The package's error is the caller's, also with `strict`; the output is not decided on."""
    for strict in (False, True):
        stream = chat_call(gate.wrap(client, strict=strict), "drop", stream=True)
        with pytest.raises(Exception, match=r"Connection error|peer closed"):
            list(stream)
        result = gate.result_of(stream)
        assert isinstance(result, Undecided)
        assert result.state is UndecidedState.UNFINISHED
        assert "Connection error" in result.error or "peer closed" in result.error
    assert gate.status().seen == 0


def choice_of(reason: str | None, name: str, index: int = 0) -> dict[str, Any]:
    return {"index": index, name: {"content": "The ans"}, "finish_reason": reason}


BROKEN_OFF = {
    "a chat": lambda reason: {"id": "c", "choices": [choice_of(reason, "message")]},
    "a stream": lambda reason: [
        {"id": "c", "choices": [choice_of(None, "delta")]},
        {"id": "c", "choices": [{"index": 0, "delta": {}, "finish_reason": reason}]},
    ],
    "a text completion": lambda reason: {
        "id": "c",
        "choices": [{"index": 0, "text": "The ans", "finish_reason": reason}],
    },
    "a Response": lambda reason: {
        "id": "c",
        "status": reason,
        "output": [{"content": [{"type": "output_text", "text": "The ans"}]}],
    },
}


@pytest.mark.parametrize("reason", ["error", "abort", "failed", "cancelled"])
@pytest.mark.parametrize("kind", BROKEN_OFF)
def test_an_output_that_the_server_broke_off(
    gate: VerificationGate, kind: str, reason: str
) -> None:
    """It is incomplete, not wrong."""
    answer = BROKEN_OFF[kind](reason)
    observer = ResponseObserver(gate, CallSettings())
    if isinstance(answer, list):
        assert list(observer.chunks(answer)) == answer
    else:
        observer.decide(observer.outputs_of(answer))
    (result,) = observer.attachment.results
    assert isinstance(result, Undecided)
    assert result.state is UndecidedState.UNFINISHED
    assert result.error.endswith(f"its finish reason is {reason}")
    assert gate.status().seen == 0


def test_a_choice_that_the_server_broke_off_beside_a_complete_one(gate: VerificationGate) -> None:
    choices = [choice_of("abort", "message"), choice_of("stop", "message", 1)]
    observer = ResponseObserver(gate, CallSettings())
    observer.decide(observer.outputs_of({"id": "c", "choices": choices}))
    broken, complete = observer.attachment.results
    assert isinstance(broken, Undecided)
    assert complete.verified
    assert gate.status().seen == 1


def test_outputs_that_come_one_after_the_other(gate: VerificationGate) -> None:
    """As completions of several prompts may: the second begins when the first is complete."""
    chunks = [
        {"id": "c", "choices": [{"index": i, "text": text, "finish_reason": reason}]}
        for i in range(3)
        for text, reason in (("a", None), ("b", None), ("", "stop"))
    ]

    async def later() -> AsyncIterator[Any]:
        for chunk in chunks:
            yield chunk

    async def read() -> list[Any]:
        return [chunk async for chunk in gate.observe_stream(later(), id="async")]

    assert list(gate.observe_stream(iter(chunks), id="sync")) == chunks
    assert asyncio.run(read()) == chunks
    assert gate.status().seen == 6


# -- settings of a call --------------------------------------------------------------------------


def test_settings_of_a_call(server: Server, client: OpenAI) -> None:
    """By `gate.task`, by `extra_body`, which goes first; of this gate only."""
    checker = Checker()
    with (
        make_gate(checker, policy=Random(0.001, warmup=0, seed=3)) as gate,
        make_gate() as other,
    ):
        wrapped, others = gate.wrap(client), other.wrap(client)
        assert not gate.result_of(chat_call(wrapped, "auto")).verified
        with gate.task("T", id="mine", verify="always"):
            assert gate.result_of(chat_call(wrapped, "one")).id == "mine"
            body = {"gatekeeper": {"id": "his", "verify": "auto"}}
            result = gate.result_of(chat_call(wrapped, "two", extra_body=body))
            assert (result.id, result.verified) == ("his", False)
            with gate.task(verify="never"):
                result = gate.result_of(chat_call(wrapped, "three"))
                assert result == Undecided("", UndecidedState.SKIPPED)
                assert "logprobs" not in server.sent
            assert other.result_of(chat_call(others, "four")).id == "chatcmpl-four"
            stream = chat_call(wrapped, "five", stream=True, extra_body={"gatekeeper": {"id": "5"}})
        list(stream)  # the settings are those of the call
        assert gate.result_of(stream).id == "5"
        assert gate.result_of(chat_call(wrapped, "six")).id == "chatcmpl-six"
        assert [(g.id, t) for g, t in checker.saw] == [("mine", "T"), ("5", "T")]
        assert gate.status().seen == 5
        with pytest.raises(BadInputError, match="scope='text': choose one of content"):
            gate.task(scope="text")  # type: ignore[arg-type]


def test_a_gate_gives_its_own_results_only(client: OpenAI, gate: VerificationGate) -> None:
    """Two gates may see one response, and its copies; a third has no result of it."""
    answer = chat_call(gate.wrap(client), "two gates")
    result = gate.result_of(answer)
    with make_gate() as other:
        with pytest.raises(BadInputError, match="passed through another gate: ask that one"):
            other.result_of(answer)
        attach(answer, other, Attachment((Undecided("theirs", UndecidedState.SKIPPED),)))
        for seen in (answer, pickle.loads(pickle.dumps(answer))):
            assert other.result_of(seen).id == "theirs"
            assert repr(gate.result_of(seen)) == repr(result)


def test_what_did_not_come_through_a_gate(client: OpenAI, gate: VerificationGate) -> None:
    with pytest.raises(BadInputError, match="did not pass through this gate"):
        gate.result_of(chat_call(client, "bare"))
