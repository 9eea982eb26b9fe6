"""docs/langchain.md with LangChain itself, in an environment of its own: `make test-harness`."""

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
import threading
import warnings
from collections import Counter
from collections.abc import AsyncIterator, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest

if find_spec("langchain_core") is None:
    pytest.skip("LangChain is not installed: run `make test-harness`", allow_module_level=True)

from langchain.chat_models import init_chat_model
from langchain_core.caches import InMemoryCache
from langchain_core.callbacks import BaseCallbackHandler
from langchain_core.globals import set_llm_cache
from langchain_core.language_models import BaseChatModel, FakeListChatModel
from langchain_core.messages import AIMessage, AIMessageChunk
from langchain_core.output_parsers import StrOutputParser
from langchain_core.outputs import ChatGeneration, ChatGenerationChunk, ChatResult
from langchain_core.runnables import RunnableGenerator, RunnableLambda, RunnableParallel
from langchain_openai import ChatOpenAI, OpenAI
from pydantic import BaseModel

from gatekeeper import (
    BadInputError,
    Budget,
    Outcome,
    UndecidedState,
    Verdict,
    VerificationGate,
    VerifierUnavailableError,
)
from gatekeeper.adapters.langchain import Gated
from gatekeeper.bundled.serve import Server
from gatekeeper.io.responses import as_generation, as_generations
from gatekeeper.signals import signals_of

pytestmark = pytest.mark.filterwarnings("ignore")  # the packages' own

PAGE = (Path(__file__).parents[2] / "docs" / "langchain.md").read_text()
BATCH, STREAM, AGENT = re.findall(r"```python\n(.*?)```", PAGE, re.DOTALL)
QUESTION = "Compute 7 + 8."


@contextmanager
def serving(**options: Any) -> Iterator[str]:
    server = Server(**options)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        yield server.base_url
    finally:
        server.shutdown()
        server.server_close()


@pytest.fixture(autouse=True)
def connections() -> Iterator[None]:
    """LangChain keeps the client of each event loop, and leaves its connections open."""
    yield
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ResourceWarning)
        gc.collect()


@pytest.fixture(scope="module")
def base_url() -> Iterator[str]:
    with serving() as url:
        yield url


@pytest.fixture
def model(base_url: str) -> dict[str, Any]:
    return {"base_url": base_url, "api_key": "none", "model": "gatekeeper-bundled", "seed": 1}


class Keeping:
    """Right if the output is the task; keeps what it was given; raises for the task "raise"."""

    def __init__(self) -> None:
        self.given: dict[str, str] = {}

    def verify(self, generation: Any, task: Any) -> Outcome:
        self.given[generation.id] = generation.text
        if task == "raise":
            raise ConnectionError("the checker is away")
        return Outcome(Verdict.PASSED if generation.text == task else Verdict.FAILED)


@pytest.fixture
def gate() -> Iterator[VerificationGate]:
    with VerificationGate(budget=Budget(fraction=1.0), verifier=Keeping()) as made:
        yield made


def config(id: str, **more: Any) -> dict[str, Any]:
    return {"configurable": {"gatekeeper": {"id": id, **more}}}


def test_the_programs_of_the_page(base_url: str, tmp_path: Path) -> None:
    """As they stand; the first one again with the same log decides on nothing twice."""
    environment = {**os.environ, "OPENAI_BASE_URL": base_url, "OPENAI_API_KEY": "none"}

    def start(program: str) -> subprocess.Popen[str]:
        command, pipe = [sys.executable, "-c", program], subprocess.PIPE
        return subprocess.Popen(
            command, cwd=tmp_path, env=environment, stdout=pipe, stderr=pipe, text=True
        )

    def printed(process: subprocess.Popen[str]) -> str:
        out, error = process.communicate()
        assert process.returncode == 0, error
        return out

    batch, stream, agent = map(printed, [start(each) for each in (BATCH, STREAM, AGENT)])
    lines = [line.split() for line in batch.splitlines()]
    assert [(id_, reason) for id_, _, reason in lines] == [("q1", "warmup"), ("q2", "warmup")]
    assert {verdict for _, verdict, _ in lines} <= {"passed", "failed", "no_answer"}
    assert stream.splitlines()[-1] == "warmup"
    assert "boxed" in stream
    assert re.fullmatch(r"warmup (passed|failed|no_answer) ok\n", agent)
    assert printed(start(BATCH)) == ""


def test_every_way_to_call(gate: VerificationGate, model: dict[str, Any]) -> None:
    """Whole, streamed, in batches and on an event loop: the same text and the same signals."""
    chat, text = Gated(ChatOpenAI(**model), gate), Gated(OpenAI(**model), gate)
    with pytest.raises(BadInputError):
        gate.result_of(ChatOpenAI(**model).invoke(QUESTION))
    message = chat.invoke(QUESTION, config("whole"))
    expected = message.text

    summed = None
    for chunk in chat.stream(QUESTION, config("stream", task=expected)):
        assert summed is None or "gatekeeper" not in summed.response_metadata
        summed = chunk if summed is None else summed + chunk
    assert summed.text == expected
    assert summed.response_metadata["gatekeeper"] == {
        "id": "stream",
        "verify": True,
        "reason": "warmup",
        "propensity": 1.0,
        "verdict": "passed",
        "detail": "",
    }
    assert gate.result_of(chunk).id == "stream"

    chain = RunnableLambda(lambda number: f"Compute {number} + 8.") | chat | StrOutputParser()
    ids = [f"batch {i}" for i in range(7)]
    texts = chain.batch([7] * 7, [config(id_) for id_ in ids])
    assert texts == [expected] * 7
    assert "".join(chain.stream(7, config("chain"))) == expected

    async def calls() -> None:
        answer = await chat.ainvoke(QUESTION, config("async"))
        assert gate.result_of(answer).id == "async"
        pieces = [chunk async for chunk in chat.astream(QUESTION, config("async stream"))]
        assert pieces[-1].response_metadata["gatekeeper"]["id"] == "async stream"
        await chain.abatch([7, 7], [config("abatch 0"), config("abatch 1")])
        assert await text.ainvoke(QUESTION, config("async text"))

    asyncio.run(calls())
    with gate.task("", id="from task"):
        chat.invoke(QUESTION)
    ids += ["whole", "chain", "async", "async stream", "abatch 0", "abatch 1", "from task"]
    reference = gate.find("stream")
    assert reference is not None
    for id_ in ids:
        assert gate.verifier.given[id_] == expected, id_
        assert gate.find(id_).signals == reference.signals, id_
    assert reference.signals.state == "ok"
    # The reader of a message without a gate in between says the same.
    plain = ChatOpenAI(**model, logprobs=True, top_logprobs=5).invoke(QUESTION)
    assert signals_of(as_generation(plain)) == reference.signals
    assert signals_of(as_generation(json.loads(plain.model_dump_json()))) == reference.signals

    whole = text.invoke(QUESTION, config("text"))
    assert "".join(text.stream(QUESTION, config("text stream"))) == whole
    for id_ in ("text", "text stream", "async text"):
        assert gate.verifier.given[id_] == whole, id_
        assert gate.find(id_).signals == gate.find("text").signals
    assert gate.find("text").signals.state == "ok"


def test_what_is_asked_for(gate: VerificationGate, model: dict[str, Any]) -> None:
    """Never fewer alternatives than the model has, none against its will; of `n` the first."""
    signals = {}
    for id_, made in (
        ("more", ChatOpenAI(**model, top_logprobs=9)),
        ("false", ChatOpenAI(**model, logprobs=False)),
        ("bound false", ChatOpenAI(**model).bind(logprobs=False)),
        ("tools", ChatOpenAI(**model).bind_tools([]).with_retry()),
        ("fallback", ChatOpenAI(**model).with_fallbacks([ChatOpenAI(**model)])),
        ("other", FakeListChatModel(responses=["x"])),
    ):
        message = Gated(made, gate).invoke(QUESTION, config(id_))
        signals[id_] = gate.result_of(message).signals.state
        if id_ == "more":
            entries = message.response_metadata["logprobs"]["content"]
            assert {len(entry["top_logprobs"]) for entry in entries} == {9}
    assert {id_ for id_, state in signals.items() if state == "missing"} == {
        "false",
        "bound false",
        "other",
    }

    several = ChatOpenAI(**model, n=3, temperature=1.5, logprobs=True, top_logprobs=5)

    class Results(BaseCallbackHandler):
        def on_llm_end(self, response: Any, **more: Any) -> None:
            self.response = response

    results = Results()
    question = "Define f(x) as the reverse of x."
    message = Gated(several, gate).invoke(question, {**config("n"), "callbacks": [results]})
    assert gate.verifier.given["n"] == message.text
    assert gate.status().seen == len(signals) + 1
    found = as_generations(results.response, id="all")
    assert [g.id for g in found] == ["all/0", "all/1", "all/2"]
    for generation, choice in zip(found, results.response.generations[0], strict=True):
        entries = choice.message.response_metadata["logprobs"]["content"]
        assert [entry["logprob"] for entry in entries] == generation.logprob.tolist()


def test_errors(
    gate: VerificationGate, model: dict[str, Any], caplog: pytest.LogCaptureFixture
) -> None:
    """Of the verifier, of the settings, of the endpoint: none counts as a wrong output."""
    chat = Gated(ChatOpenAI(**model), gate)
    found = chat.invoke(QUESTION, config("away", task="raise")).response_metadata["gatekeeper"]
    assert found["verdict"] == "infra_error"
    assert "the checker is away" in found["detail"]
    assert gate.status().spent == 0.0
    with pytest.raises(VerifierUnavailableError):
        Gated(ChatOpenAI(**model), gate, strict=True).invoke(QUESTION, config("b", task="raise"))

    result = gate.result_of(chat.invoke(QUESTION, config("c", bogus=1)))
    assert result.state is UndecidedState.GATE_ERROR
    assert "a dict of task, id, verify, scope is needed" in result.error
    with pytest.raises(BadInputError, match="task, id, verify, scope"):
        Gated(ChatOpenAI(**model), gate, strict=True).invoke(QUESTION, config("c", bogus=1))
    never = gate.result_of(chat.invoke(QUESTION, config("d", verify="never")))
    assert never.state is UndecidedState.SKIPPED
    nothing = Gated(RunnableLambda(lambda _: "no model"), gate)
    assert nothing.invoke(QUESTION) == "no model"

    seen = gate.status().seen
    down = ChatOpenAI(**{**model, "base_url": "http://127.0.0.1:9/v1"}, max_retries=0)
    for call in (lambda m: m.invoke(QUESTION), lambda m: list(m.stream(QUESTION))):
        with pytest.raises(Exception, match="Connection error"):
            call(Gated(down, gate))
    abandoned = chat.stream(QUESTION, config("abandoned"))
    next(abandoned)
    abandoned.close()
    assert gate.status().seen == seen
    for wrong in ((QUESTION, gate), (ChatOpenAI(**model), None)):
        with pytest.raises(BadInputError, match="give a"):
            Gated(*wrong)  # type: ignore[arg-type]


def test_a_cached_answer_is_another_output(gate: VerificationGate, model: dict[str, Any]) -> None:
    """LangChain's cache gives the same message again: each call has its own result, and a call
    that is not gated has none."""
    chat = ChatOpenAI(**model)
    set_llm_cache(InMemoryCache())
    try:
        answers = [Gated(chat, gate).invoke(QUESTION, config(id_)) for id_ in "ab"]
        plain = chat.bind(logprobs=True, top_logprobs=5).invoke(QUESTION)
    finally:
        set_llm_cache(None)
    assert [answer.response_metadata["gatekeeper"]["id"] for answer in answers] == ["a", "b"]
    assert [gate.result_of(answer).id for answer in answers] == ["a", "b"]
    assert gate.find("a").signals == gate.find("b").signals
    assert plain.text == answers[0].text
    assert "gatekeeper" not in plain.response_metadata
    with pytest.raises(BadInputError):
        gate.result_of(plain)


def test_a_provider_that_refuses_log_probabilities(
    gate: VerificationGate, model: dict[str, Any], caplog: pytest.LogCaptureFixture
) -> None:
    with (
        caplog.at_level(logging.WARNING, "gatekeeper"),
        serving(refuse_logprobs=True) as url,
    ):
        made = ChatOpenAI(**{**model, "base_url": url})
        chat = Gated(made, gate)
        for id_ in "ab":
            assert chat.invoke(QUESTION, config(id_)).text
        assert list(Gated(made, gate).stream(QUESTION, config("c")))

        async def calls() -> None:
            await Gated(made, gate).ainvoke(QUESTION, config("d"))
            assert [chunk async for chunk in Gated(made, gate).astream(QUESTION, config("e"))]

        asyncio.run(calls())
    assert all(gate.find(id_).signals.state == "missing" for id_ in "abcde")
    warned = [r.message for r in caplog.records if "gives no log-probabilities" in r.message]
    assert len(warned) == 4  # one for each Gated
    with serving(refuse_logprobs=True) as url:
        asked = ChatOpenAI(**{**model, "base_url": url}, logprobs=True)
        with pytest.raises(Exception, match="logprobs"):
            Gated(asked, gate).invoke(QUESTION)


class Bare(BaseChatModel):
    """Takes no argument that is not its own, as models of other providers."""

    @property
    def _llm_type(self) -> str:
        return "bare"

    def _generate(self, messages: Any, stop: Any = None, run_manager: Any = None) -> ChatResult:
        return ChatResult(generations=[ChatGeneration(message=AIMessage("bare"))])


def test_fallbacks_answer_as_without_the_gate(
    gate: VerificationGate, model: dict[str, Any]
) -> None:
    """What is requested of one model reaches no other, and a refusal of it is no failure."""
    down = ChatOpenAI(**{**model, "base_url": "http://127.0.0.1:9/v1"}, max_retries=0)
    # Servers of their own: LangChain may reuse the connections of a loop that is closed.
    with serving(refuse_logprobs=True) as refusing_url, serving() as url:
        refusing = ChatOpenAI(**{**model, "base_url": refusing_url})
        chains = {
            "down": down.with_fallbacks([Bare()]),
            "refusing": refusing.with_fallbacks([Bare()]).with_retry().bind(stop=["?"]),
            "second": down.with_fallbacks([ChatOpenAI(**{**model, "base_url": url})]).with_config(
                tags=[]
            ),
        }
        gated = {id_: Gated(chain, gate) for id_, chain in chains.items()}
        expected = {id_: chain.invoke(QUESTION).text for id_, chain in chains.items()}
        for id_, chain in gated.items():
            assert chain.invoke(QUESTION, config(id_)).text == expected[id_]
            chunks = chain.stream(QUESTION, config(f"{id_} s"))
            assert "".join(chunk.text for chunk in chunks) == expected[id_]

        async def calls() -> None:
            for id_, chain in gated.items():
                message = await chain.ainvoke(QUESTION, config(f"{id_} a"))
                chunks = chain.astream(QUESTION, config(f"{id_} as"))
                texts = [message.text, "".join([chunk.text async for chunk in chunks])]
                assert texts == [expected[id_]] * 2

        asyncio.run(calls())
    for way in ("", " s", " a", " as"):
        found = [gate.find(id_ + way).signals.state for id_ in chains]
        assert found == ["missing", "missing", "ok"]


class RefusedError(Exception):
    status_code = 400


class Refusing(BaseChatModel):
    """Refuses log-probabilities, when so many calls have asked for them."""

    together: Any
    logprobs: Any = None
    top_logprobs: Any = None

    @property
    def _llm_type(self) -> str:
        return "refusing"

    def _generate(self, *messages: Any, logprobs: Any = None, **more: Any) -> ChatResult:
        if logprobs:
            self.together.wait(60)
            raise RefusedError("logprobs are not supported with this model")
        return ChatResult(generations=[ChatGeneration(message=AIMessage("15"))])


@pytest.mark.parametrize("streamed", [False, True])
@pytest.mark.parametrize("on_loop", [False, True])
def test_calls_at_the_same_time_that_are_refused(
    gate: VerificationGate, streamed: bool, on_loop: bool
) -> None:
    """Each of them goes on without log-probabilities, whichever is refused first."""
    chat = Gated(Refusing(together=threading.Barrier(4)), gate)
    configs = [config(id_) for id_ in "abcd"]
    if on_loop and streamed:

        async def read(settings: Any) -> Any:
            return [chunk async for chunk in chat.astream(QUESTION, settings)][-1]

        async def calls() -> Any:
            return await asyncio.gather(*map(read, configs))

        found = asyncio.run(calls())
    elif on_loop:
        found = asyncio.run(chat.abatch([QUESTION] * 4, configs))
    elif streamed:
        with ThreadPoolExecutor(4) as pool:
            found = list(pool.map(lambda c: list(chat.stream(QUESTION, c))[-1], configs))
    else:
        found = chat.batch([QUESTION] * 4, configs)
    assert [message.text for message in found] == ["15"] * 4
    assert gate.status().seen == 4


class Breaking(BaseChatModel):
    """Streams some words, then its connection breaks."""

    words: list[str]

    @property
    def _llm_type(self) -> str:
        return "breaking"

    def _generate(self, *messages: Any, **more: Any) -> ChatResult:
        raise NotImplementedError

    def _stream(self, *messages: Any, **more: Any) -> Iterator[ChatGenerationChunk]:
        for word in self.words:
            yield ChatGenerationChunk(message=AIMessageChunk(word))
        raise ConnectionError("cut")


@pytest.mark.parametrize("words", [[], ["one"], ["one ", "two ", "three"]])
def test_no_chunk_is_lost_before_an_error(gate: VerificationGate, words: list[str]) -> None:
    """The caller gets what it would get without the gate, which does not decide."""
    chat = Gated(Breaking(words=words), gate)
    came: list[str] = []
    with pytest.raises(ConnectionError, match="cut"):
        came.extend(chunk.text for chunk in chat.stream(QUESTION))
    assert came == words

    async def read() -> None:
        async for chunk in chat.astream(QUESTION):
            came.append(chunk.text)

    came.clear()
    with pytest.raises(ConnectionError, match="cut"):
        asyncio.run(read())
    assert came == words
    assert gate.status().seen == 0


def test_the_budget_holds(model: dict[str, Any]) -> None:
    """A batch in threads: the cap, the propensities and the estimate of all."""
    from gatekeeper.analysis.score import estimate_score

    answers = [str(i % 2) for i in range(60)]
    with VerificationGate(
        goal="score", budget=Budget(fraction=0.3, horizon=60), verifier=Keeping()
    ) as gate:
        chat = Gated(FakeListChatModel(responses=answers), gate)
        messages = chat.batch(["?"] * 60, [config(f"q{i}", task="1") for i in range(60)])
        results = [gate.result_of(message) for message in messages]
        status = gate.status()
        assert status.verified == 18
        assert status.spent <= status.cap
        score = estimate_score(results)
    assert (score.checks, score.outputs) == (18, 60)
    # Threads arrive in any order: which 18 are drawn, and where the interval lies, is chance.
    assert {r.decision.propensity for r in results} == {0.3}
    assert 0 <= score.bounds.low <= 0.5 <= score.bounds.high <= 1
    for message, result in zip(messages, results, strict=True):
        found = message.response_metadata["gatekeeper"]
        assert found["propensity"] == result.decision.propensity
        assert (found["verdict"] is None) is not found["verify"]


KILLED = """
import json, os, signal, sys
from langchain_openai import ChatOpenAI
from gatekeeper import Budget, VerificationGate
from gatekeeper.adapters.langchain import Gated

folder, seed, stop = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])

def check(output, task):
    with open(f"{folder}/asked", "a") as file:
        file.write(json.dumps([output.id, output.text]) + "\\n")
    if len(open(f"{folder}/asked").readlines()) == stop:
        os.kill(os.getpid(), signal.SIGKILL)
    return len(output.text) % 2 == 0

ids = [f"q{i}" for i in range(20)]
model = ChatOpenAI(model="gatekeeper-bundled", temperature=0.8, seed=seed, max_tokens=60)
budget = Budget(fraction=0.8, horizon=20)
with VerificationGate(goal="score", budget=budget, verifier=check, log=f"{folder}/run.db") as gate:
    new = [id for id in ids if not gate.find(id)]
    for output in gate.pending():
        gate.maybe_verify(output)
    Gated(model, gate, strict=True).batch(
        [f"What is {357 * int(id[1:])} + 8765?" for id in new],
        [{"configurable": {"gatekeeper": {"id": id}}, "max_concurrency": 1} for id in new],
    )
    found = {id: gate.find(id) for id in ids}
    print(json.dumps({
        "decided": {id: [r.decision.verify, r.decision.propensity] for id, r in found.items()},
        "verdicts": {id: str(r.outcome.verdict) for id, r in found.items() if r.outcome},
        "texts": {id: gate.output(id).text for id in ids},
        "spent": gate.status().spent,
    }))
"""


def test_kill_9_and_the_same_log_again(base_url: str, tmp_path: Path) -> None:
    """At temperature 0.8, with other answers the second time: the logged ones count."""
    environment = {**os.environ, "OPENAI_BASE_URL": base_url, "OPENAI_API_KEY": "none"}

    def ran(name: str, seed: int, stop: int = -1) -> subprocess.CompletedProcess[str]:
        folder = tmp_path / name
        folder.mkdir(exist_ok=True)
        command = [sys.executable, "-c", KILLED, str(folder), str(seed), str(stop)]
        return subprocess.run(command, env=environment, capture_output=True, text=True)

    assert ran("part", 1, stop=6).returncode == -signal.SIGKILL
    before = (tmp_path / "part" / "asked").read_text().splitlines()
    printed = [ran("part", 2), ran("whole", 1)]
    assert [each.returncode for each in printed] == [0, 0], printed[0].stderr
    again, whole = (json.loads(each.stdout) for each in printed)
    assert again["decided"] == whole["decided"]
    assert again["spent"] == whole["spent"] == len(again["verdicts"]) == 0.8 * 20
    assert again["texts"] != whole["texts"]
    asked = Counter((tmp_path / "part" / "asked").read_text().splitlines())
    assert asked.pop(before[-1]) == 2  # its verdict was not known yet
    assert set(asked.values()) == {1}
    assert len(asked) == 15
    assert {json.dumps([id_, again["texts"][id_]]) for id_ in again["verdicts"]} == {
        *asked,
        before[-1],
    }


class Answering(BaseChatModel):
    """A chat model with the two fields, which answers with a fixed text."""

    answer: str
    logprobs: bool | None = None
    top_logprobs: int | None = None

    @property
    def _llm_type(self) -> str:
        return "answering"

    def _generate(self, messages: Any, stop: Any = None, manager: Any = None, **given: Any) -> Any:
        if not self.answer:
            raise ConnectionError("the model is away")
        top = [{"token": token, "logprob": value} for token, value in (("x", -0.1), ("y", -3.0))]
        content = [{**top[0], "top_logprobs": top}] if given.get("logprobs") else None
        message = AIMessage(self.answer, response_metadata={"logprobs": {"content": content}})
        return ChatResult(generations=[ChatGeneration(message=message)])


@pytest.mark.parametrize("way", ["invoke", "ainvoke", "stream", "astream"])
def test_a_parser_after_the_model(gate: VerificationGate, way: str) -> None:
    """`with_structured_output` returns a chain: log-probabilities are requested in it, and an
    answer that its parser refuses is an output all the same."""

    async def last(chunks: Any) -> Any:
        return [chunk async for chunk in chunks][-1]

    def call(chain: Any, id_: str) -> Any:
        found = getattr(Gated(chain, gate), way)(QUESTION, config(id_))
        if way == "stream":
            return list(found)[-1]
        return asyncio.run(last(found) if way == "astream" else found) if way[0] == "a" else found

    parser = StrOutputParser() | RunnableLambda(json.loads)
    right, wrong = Answering(answer='{"sum": 15}'), Answering(answer="fifteen")
    assert call(right | parser, "right") == {"sum": 15}
    with pytest.raises(json.JSONDecodeError):
        call(wrong | parser, "wrong")
    both = call(RunnableParallel(raw=right), "raw")
    assert both["raw"].response_metadata["gatekeeper"]["id"] == "raw"
    assert gate.result_of(both["raw"]).id == "raw"
    with pytest.raises(ConnectionError, match="the model is away"):
        call(right | StrOutputParser() | Answering(answer=""), "no answer of the last model")
    answers = {"right": right.answer, "wrong": wrong.answer, "raw": right.answer}
    assert gate.verifier.given == answers
    assert {gate.find(id_).signals.state for id_ in answers} == {"ok"}


def test_a_stream_of_nothing_has_no_chunk(gate: VerificationGate) -> None:
    """Such as of a parser that found nothing; the model has answered all the same."""

    def none(chunks: Iterator[Any]) -> Iterator[Any]:
        yield from (chunk for chunk in chunks if chunk is None)

    async def anone(chunks: AsyncIterator[Any]) -> AsyncIterator[Any]:
        async for chunk in chunks:
            if chunk is None:
                yield chunk

    chain = Gated(Answering(answer="x") | RunnableGenerator(none, anone), gate)
    assert list(chain.stream(QUESTION, config("sync"))) == []

    async def read() -> list[Any]:
        return [chunk async for chunk in chain.astream(QUESTION, config("async"))]

    assert asyncio.run(read()) == []


def test_wrong_arguments(gate: VerificationGate) -> None:
    for value in ("no", None, 2):
        with pytest.raises(BadInputError, match=f"strict={value!r}: give True or False"):
            Gated(Answering(answer="x"), gate, strict=value)


class Sum(BaseModel):
    """What a model is to return."""

    sum: int


def test_structured_output_and_a_model_made_for_each_call(
    gate: VerificationGate, model: dict[str, Any], base_url: str
) -> None:
    """`init_chat_model` without a model takes every key of the configuration as its own field."""
    chat = ChatOpenAI(**model)
    structured = chat.with_structured_output(Sum, method="json_mode", include_raw=True)
    found = Gated(structured, gate).invoke(QUESTION, config("structured"))
    assert gate.result_of(found["raw"]).signals.state == "ok"
    made = init_chat_model(base_url=base_url, api_key="none", logprobs=True, top_logprobs=5)
    given = config("made")
    given["configurable"]["model"] = "openai:gatekeeper-bundled"
    message = Gated(made, gate).invoke(QUESTION, given)
    assert gate.result_of(message).signals.state == "ok"
    assert message.text == gate.verifier.given["made"]
