"""No silent failures: every way in warns of what is missing before the 60th output."""

from __future__ import annotations

import asyncio
import json
import logging
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from pathlib import Path
from threading import Thread
from typing import Any

import numpy as np
import pytest
from openai import AsyncOpenAI, OpenAI
from openai_server import Server
from serving import serving
from wrapped_calls import ask

from gatekeeper import (
    CST,
    Budget,
    Calibrated,
    Generation,
    Outcome,
    Reason,
    Undecided,
    Verdict,
    VerificationGate,
)
from gatekeeper.adapters.harness.gate import GateOptions, open_gate
from gatekeeper.adapters.harness.ordered_queue import OrderedQueue
from gatekeeper.bundled import TASKS
from gatekeeper.cli import main
from gatekeeper.errors import BadInputError, VerifierUnavailableError
from gatekeeper.gate.notices import Shortfall
from gatekeeper.gate.state import GateState
from gatekeeper.io.tasks import read_tasks
from gatekeeper.log.run import read_run
from gatekeeper.maths import MathChecker
from gatekeeper.policies import T0, policy_names
from gatekeeper.testing import ScriptedVerifier, make_generation

EARLY = 60  # the warning comes before this many outputs


def without_logprobs(id_: str) -> Generation:
    return Generation(id_, f"text of {id_}")


def never_works(generation: Generation, task: Any) -> bool:
    raise OSError("no daemon")


def gate_of(**options: Any) -> VerificationGate:
    options = {"budget": Budget(fraction=0.2), "on_unavailable": "pass"} | options
    return VerificationGate("cst", **options)


# -- each way in -----------------------------------------------------------------------------------

Way = Callable[[VerificationGate, Callable[[str], Generation]], None]


def by_hand(gate: VerificationGate, output: Callable[[str], Generation]) -> None:
    for i in range(EARLY - 1):
        gate.maybe_verify(output(f"o{i}"))


def in_batches(gate: VerificationGate, output: Callable[[str], Generation]) -> None:
    gate.verify_batch([(output(f"o{i}"), None) for i in range(EARLY - 1)])


def on_a_loop(gate: VerificationGate, output: Callable[[str], Generation]) -> None:
    async def all_at_once() -> None:
        await asyncio.gather(*(gate.amaybe_verify(output(f"o{i}")) for i in range(EARLY - 1)))

    asyncio.run(all_at_once())


def decorated(gate: VerificationGate, output: Callable[[str], Generation]) -> None:
    answer = gate.watch()(output)
    for i in range(EARLY - 1):
        assert answer(f"o{i}").id == f"o{i}"


WAYS: dict[str, Way] = {f.__name__: f for f in (by_hand, in_batches, on_a_loop, decorated)}


@pytest.mark.parametrize("way", WAYS)
def test_checks_that_never_work(way: str, caplog: pytest.LogCaptureFixture) -> None:
    with gate_of(verifier=never_works) as gate:
        WAYS[way](gate, lambda id_: make_generation(id_, seed=int(id_[1:])))
        first, *more = caplog.messages
        assert "could not tell" in first
        assert "OSError: no daemon" in first
        assert sum("could not tell whether" in text for text in caplog.messages) == 1
        assert any("the warm-up begins again" in text for text in more)
        (no_verdict, repeated) = gate.status().notes
        assert "No output has a verdict" in no_verdict
        assert repeated.startswith("The warm-up was repeated once")
    assert caplog.messages[-1].startswith("gatekeeper: the gate closes. No output has a verdict")
    assert {record.levelno for record in caplog.records} == {logging.WARNING}
    assert {record.name for record in caplog.records} == {"gatekeeper"}


@pytest.mark.parametrize("way", WAYS)
def test_logprobs_that_never_come(way: str, caplog: pytest.LogCaptureFixture) -> None:
    with gate_of(verifier=lambda generation, task: True) as gate:
        WAYS[way](gate, without_logprobs)
        first, after_warmup = caplog.messages
        assert "came without log-probabilities" in first
        assert "random draw, because" in after_warmup
        (note,) = gate.status().notes
        assert note.startswith(
            "This was a random draw, because none of the 9 outputs after the warm-up"
        )
        assert "59 of all 59 came without log-probabilities" in note
    gate.close()
    assert len(caplog.messages) == 3  # the last one when the gate closed, once


def test_outputs_with_features_alone_are_no_random_draw(caplog: pytest.LogCaptureFixture) -> None:
    def length(generation: Generation, task: Any) -> float:
        return len(generation.text)

    with VerificationGate(
        "calibrated",
        budget=Budget(fraction=0.2),
        verifier=lambda generation, task: len(generation.text) % 3 > 0,
        features=[length],
    ) as gate:
        for i in range(EARLY - 1):
            gate.maybe_verify(Generation(f"o{i}", "x" * i))
        (note,) = gate.status().notes
        first, after_warmup = caplog.messages
    assert "only its features to rank it by" in first
    assert "unless the policy uses their features" in after_warmup
    assert "such outputs can be ranked by features only, if they have any" in note
    assert "random draw" not in first + note


def test_no_note_tells_of_features_that_are_not_there() -> None:
    """For the goal "score" such outputs have a score all the same: the same one."""
    with VerificationGate(budget=Budget(fraction=0.5, horizon=9), goal="score") as gate:
        for i in range(9):
            gate.maybe_verify(Generation(f"o{i}", "x"))
        (note,) = gate.status().notes
    assert note.startswith("None of the 9 outputs came with log-probabilities")
    assert "by their features" not in note


def called(gate: VerificationGate, url: str, word: str, stream: bool) -> None:
    client = gate.wrap(OpenAI(base_url=url, api_key="none"))
    for i in range(EARLY - 1):
        request = {"model": "m", "messages": ask(f"{word} {i}"), "stream": stream}
        answer = client.chat.completions.create(**request)
        assert not stream or sum(1 for _ in answer) > 1


def awaited(gate: VerificationGate, url: str, word: str, stream: bool) -> None:
    async def one(client: Any, i: int) -> None:
        request = {"model": "m", "messages": ask(f"{word} {i}"), "stream": stream}
        answer = await client.chat.completions.create(**request)
        assert not stream or len([chunk async for chunk in answer]) > 1

    async def all_at_once() -> None:
        async with gate.wrap(AsyncOpenAI(base_url=url, api_key="none")) as client:
            await asyncio.gather(*(one(client, i) for i in range(EARLY - 1)))

    asyncio.run(all_at_once())


@pytest.mark.parametrize("word", ["null", "plain"])
@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize("call", [called, awaited])
def test_a_wrapped_client(
    call: Callable[..., None], stream: bool, word: str, caplog: pytest.LogCaptureFixture
) -> None:
    """With `null` the server drops log-probabilities; otherwise the task is forgotten."""

    def verify(generation: Generation, task: Any) -> bool:
        return generation.text == (task["answer"] if word == "plain" else "")

    server = Server()
    with server, gate_of(verifier=verify) as gate:
        call(gate, server.url, word, stream)
        said = " ".join(r.getMessage() for r in caplog.records if r.name == "gatekeeper")
        if word == "null":
            assert "came without log-probabilities" in said
            assert "this is a random draw" in said
        else:
            assert "no task was given" in said
            assert "the warm-up begins again" in said


@pytest.mark.parametrize("broken", [True, False])
def test_the_harness_adapters(broken: bool, caplog: pytest.LogCaptureFixture) -> None:
    """What lm-eval and EvalPlus use, and what Inspect uses: a harness runs what stands here."""

    def check() -> Outcome:
        return Outcome(Verdict.INFRA_ERROR if broken else Verdict.PASSED, detail="no metric")

    def output(i: int) -> Generation:
        return make_generation(f"o{i}", seed=i) if broken else without_logprobs(f"o{i}")

    expected = "could not tell whether" if broken else "came without log-probabilities"
    with open_gate(GateOptions(), horizon=300, settings={}) as gate:
        gate.verify_batch([(output(i), check) for i in range(EARLY - 1)])
        assert sum(expected in text for text in caplog.messages) == 1
    caplog.clear()

    async def scored(queue: OrderedQueue, i: int) -> None:
        async with queue.decided(i, output(i)) as queued:
            assert queued.result is not None
            if queued.result.decision.verify:
                queued.outcome = check()

    async def all_at_once(queue: OrderedQueue) -> None:
        await asyncio.gather(*(scored(queue, i) for i in range(EARLY - 1)))

    with gate_of(verifier=None) as gate:
        asyncio.run(all_at_once(OrderedQueue(gate)))
        assert sum(expected in text for text in caplog.messages) == 1


def test_a_sound_run_gets_no_warning(caplog: pytest.LogCaptureFixture) -> None:
    labels = {f"o{i}": int(i % 3 == 0) for i in range(120)}
    with gate_of(verifier=ScriptedVerifier(labels)) as gate:
        for id_ in labels:
            gate.maybe_verify(make_generation(id_, seed=int(id_[1:])))
        assert gate.status().notes == ()
    assert not caplog.messages


def test_a_gate_without_a_warmup_announces_no_end_of_it(caplog: pytest.LogCaptureFixture) -> None:
    with VerificationGate(
        goal="score", budget=Budget(fraction=0.2), verifier=ScriptedVerifier({})
    ) as gate:
        gate.maybe_verify(without_logprobs("o0"))
    assert len(caplog.messages) == 2  # at the first such output, and when the gate closes
    assert not any("is over" in text for text in caplog.messages)


def test_a_gate_resumed_only_to_read_gets_no_warning(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    with gate_of(verifier=never_works, log=tmp_path / "run.db") as gate:
        by_hand(gate, lambda id_: make_generation(id_, seed=int(id_[1:])))
        notes = gate.status().notes
    caplog.clear()
    with gate_of(verifier=never_works, log=tmp_path / "run.db") as gate:
        assert gate.status().notes == notes
    assert not caplog.messages


def test_a_handler_may_ask_the_gate() -> None:
    """Warnings are sent without the gate's lock."""
    found = []

    class Handler(logging.Handler):
        def emit(self, record: logging.LogRecord) -> None:
            found.append(asyncio.run(status()))

    async def status() -> int:
        loop = asyncio.get_running_loop()
        return (await loop.run_in_executor(None, gate.status)).seen

    handler = Handler()
    logging.getLogger("gatekeeper").addHandler(handler)
    try:
        with gate_of(verifier=never_works) as gate:
            gate.maybe_verify(make_generation("a"))
    finally:
        logging.getLogger("gatekeeper").removeHandler(handler)
    assert found[0] == 1


class Raises(logging.Handler):
    def emit(self, record: logging.LogRecord) -> None:
        raise OSError("nowhere to write to")


@pytest.mark.parametrize("way", WAYS)
def test_a_handler_that_raises_costs_nothing(way: str, capsys: pytest.CaptureFixture[str]) -> None:
    handler = Raises()
    logging.getLogger("gatekeeper").addHandler(handler)
    try:
        with gate_of(verifier=never_works) as gate:
            WAYS[way](gate, lambda id_: make_generation(id_, seed=int(id_[1:])))
            status = gate.status()
    finally:
        logging.getLogger("gatekeeper").removeHandler(handler)
    assert (status.seen, status.verifying, status.reserved) == (EARLY - 1, 0, 0)
    assert "nowhere to write to" in capsys.readouterr().err


def test_the_last_summary_is_made_under_the_lock(monkeypatch: pytest.MonkeyPatch) -> None:
    """A gate that is closed while another thread decides: the open outputs change meanwhile."""
    gate = gate_of(verifier=never_works)
    gate.maybe_verify(make_generation("a"))
    summary, others = Shortfall.of_state, []

    def while_others_ask(state: GateState) -> Shortfall:
        thread = Thread(target=lambda: others.append(gate.status()), daemon=True)
        monkeypatch.undo()
        thread.start()
        thread.join(0.2)
        assert not others
        return summary(state)

    monkeypatch.setattr(Shortfall, "of_state", while_others_ask)
    gate.close()


# -- the warm-up lasts until it has verdicts ------------------------------------------------------


class Recovers:
    """Cannot tell the first `broken` times."""

    def __init__(self, broken: int) -> None:
        self.broken, self.calls = broken, 0

    def verify(self, generation: Generation, task: Any) -> Outcome:
        self.calls += 1
        if self.calls <= self.broken:
            return Outcome(Verdict.INFRA_ERROR, detail="down")
        return Outcome(Verdict.FAILED if self.calls % 3 else Verdict.PASSED)


@pytest.mark.parametrize("policy", policy_names())
@pytest.mark.parametrize(("broken", "warmups"), [(T0 - 1, 1), (T0, 2), (2 * T0 + 5, 3), (10**6, 3)])
def test_the_warmup_is_repeated_until_it_has_verdicts(
    policy: str, broken: int, warmups: int, tmp_path: Path
) -> None:
    """At most three times, charged as one at most; and a resumed log decides the same."""
    n, log = 200, tmp_path / "run.db"
    open_ = partial(
        VerificationGate,
        policy,
        budget=Budget(fraction=0.2, horizon=n),
        on_unavailable="pass",
        log=log,
    )
    verifier = Recovers(broken)
    with open_(verifier=verifier) as gate:
        for i in range(n):
            if i == 70:
                break
            gate.maybe_verify(make_generation(f"o{i}", seed=i, prompt_tokens=20 + i % 60))
    with open_(verifier=verifier) as gate:
        for i in range(70, n):
            gate.maybe_verify(make_generation(f"o{i}", seed=i, prompt_tokens=20 + i % 60))
        status = gate.status()
        reasons = [gate.find(f"o{i}").decision.reason for i in range(n)]  # type: ignore[union-attr]
    assert reasons.count(Reason.WARMUP) == status.warmup_seen == warmups * T0
    assert set(reasons[: warmups * T0]) == {Reason.WARMUP}
    assert status.warmup_spent <= T0
    assert status.spent + status.held <= status.cap
    assert read_run(log).warmups == warmups
    with open_(verifier=verifier) as gate:
        assert gate.status() == status


def test_verdicts_to_come_do_not_repeat_the_warmup() -> None:
    """Without a verifier: they are reported when they come."""
    with gate_of(verifier=None) as gate:
        for i in range(T0):
            gate.maybe_verify(make_generation(f"o{i}", seed=i))
        for i in range(T0 - 1):
            gate.report_outcome(f"o{i}", "infra_error")
        assert gate.status().phase == "steady"
        gate.report_outcome(f"o{T0 - 1}", "failed")
        assert gate.status().phase == "steady"


def test_a_policy_that_relearns_repeats_no_warmup() -> None:
    """Scores drift while all verdicts are yet to be reported: draws are the new warm-up."""

    def output(i: int, factor: float) -> Generation:
        made = make_generation(f"o{i}", seed=i)
        return replace(made, logprob=made.logprob * factor, top2=made.top2 * factor)

    with gate_of(verifier=None) as gate:
        for i in range(400):
            gate.maybe_verify(output(i, 1.0 if i < 300 else 5.0))
        assert gate.status().phase == "relearning"
        pending = dict(gate._life._state.guard.state()["pending"])
        for i in range(T0):
            gate.report_outcome(f"o{i}", "infra_error")
        assert gate.status().phase == "relearning"
        assert not any("repeated" in note for note in gate.status().notes)
        assert gate._life._state.guard.state()["pending"] == pending


def test_a_total_caps_the_repeated_warmup() -> None:
    verifier = Recovers(T0)
    with VerificationGate(
        CST(0.2), budget=Budget(total=20), verifier=verifier, on_unavailable="pass"
    ) as gate:
        for i in range(150):
            gate.maybe_verify(make_generation(f"o{i}", seed=i))
        assert gate.status().warmup_spent <= 20


# -- a function as a verifier ---------------------------------------------------------------------


@pytest.mark.parametrize(
    ("value", "verdict", "detail"),
    [
        (True, Verdict.PASSED, ""),
        (False, Verdict.FAILED, ""),
        (np.bool_(False), Verdict.FAILED, ""),
        (1, Verdict.PASSED, ""),
        (1.0, Verdict.PASSED, ""),
        (np.float32(0.25), Verdict.FAILED, "score 0.25"),
        (0, Verdict.FAILED, "score 0"),
        (Outcome(Verdict.TIMEOUT, detail="slow"), Verdict.TIMEOUT, "slow"),
        (None, Verdict.INFRA_ERROR, "the function returned None"),
        (float("nan"), Verdict.INFRA_ERROR, "the function returned nan"),
        (85, Verdict.INFRA_ERROR, "BadInputError: the function returned 85"),
        ("yes", Verdict.INFRA_ERROR, "BadInputError: the function returned 'yes'"),
    ],
)
@pytest.mark.parametrize("is_async", [False, True])
def test_the_verdict_of_a_function(
    value: Any, verdict: Verdict, detail: str, is_async: bool
) -> None:
    seen = []

    def function(generation: Generation, task: Any) -> Any:
        seen.append((generation.id, task))
        return value

    async def coroutine(generation: Generation, task: Any) -> Any:
        return function(generation, task)

    with gate_of(verifier=coroutine if is_async else function) as gate:
        outcome = asyncio.run(gate.amaybe_verify(make_generation("a"), {"x": 1})).outcome
    assert seen == [("a", {"x": 1})]
    assert outcome is not None
    assert outcome.verdict is verdict
    assert outcome.detail.startswith(detail)


def test_another_function_is_another_verifier(tmp_path: Path) -> None:
    def strict(generation: Generation, task: Any) -> bool:
        return False

    labels = [make_generation(f"o{i}", seed=i) for i in range(80)]
    with gate_of(verifier=lambda generation, task: True, log=tmp_path / "run.db") as gate:
        for output in labels:
            gate.maybe_verify(output)
    with gate_of(verifier=strict, log=tmp_path / "run.db") as gate:
        assert "another verifier" in gate.status().drift


def test_a_class_is_not_a_function() -> None:
    with pytest.raises(BadInputError, match="or a function of both"):
        gate_of(verifier=ScriptedVerifier)


# -- a function that generates --------------------------------------------------------------------


def test_a_watched_function_returns_what_it_returns() -> None:
    tasks = []

    def verify(generation: Generation, task: Any) -> bool:
        tasks.append((generation.text, task))
        return generation.text == task

    with gate_of(verifier=verify) as gate:

        @gate.watch(
            task=lambda question, *, shout=False: question.upper(), id=lambda q, **_: f"q-{q}"
        )
        def answer(question: str, *, shout: bool = False) -> str:
            "Answers."
            return question.upper() if shout else question

        assert (answer.__name__, answer.__doc__) == ("answer", "Answers.")
        assert answer("a", shout=True) == "A"
        value, result = answer.with_result("b")
        assert (value, result.outcome.verdict) == ("b", Verdict.FAILED)
        found = gate.find("q-a")
        assert found is not None
        assert found.outcome is not None
        assert found.outcome.verdict is Verdict.PASSED
        assert tasks == [("A", "A"), ("b", "B")]

        @gate.watch(task="fixed")
        async def later(question: str) -> Generation:
            return make_generation(question)

        assert asyncio.run(later("x")).id == "x"
        _, result = asyncio.run(later.with_result("y"))
        assert result.id == "y"
        assert tasks[-1][1] == "fixed"


def test_a_watched_method_is_bound_to_its_object() -> None:
    """As plain methods are: by each object, by the class, beside other decorators."""
    seen = []

    def verify(generation: Generation, task: Any) -> bool:
        seen.append((generation.text, task))
        return generation.text == task

    with gate_of(verifier=verify) as gate:

        class Model:
            def __init__(self, name: str) -> None:
                self.name = name

            @gate.watch(task=lambda self, question: f"{self.name}: {question}")
            def answer(self, question: str) -> str:
                return f"{self.name}: {question}"

            @gate.watch(task="x")
            async def later(self, question: str) -> str:
                return f"{self.name}{question}"

            @staticmethod
            @gate.watch(task="6")
            def double(n: int) -> str:
                return str(2 * n)

            @classmethod
            @gate.watch(task="Model 3")
            def of(cls, n: int) -> str:
                return f"{cls.__name__} {n}"

        a, b = Model("a"), Model("b")
        assert (a.answer("q"), b.answer(question="r")) == ("a: q", "b: r")
        assert Model.answer(a, "s") == "a: s"
        assert asyncio.run(a.later("y")) == "ay"
        assert (Model.double(3), a.double(3), Model.of(3)) == ("6", "6", "Model 3")
        value, result = b.answer.with_result("t")
        assert (value, result.outcome.verdict) == ("b: t", Verdict.PASSED)
        assert [text for text, task in seen if text != task] == ["ay"]
        assert len(seen) == gate.status().seen == 8
        for wrapped in (staticmethod(without_logprobs), classmethod(without_logprobs)):
            with pytest.raises(BadInputError, match="below @"):
                gate.watch()(wrapped)  # type: ignore[arg-type]


def test_a_watched_response_without_an_id_gets_one() -> None:
    with gate_of() as gate:
        answer = gate.watch()(lambda: {"done": True, "response": "four", "model": "m"})
        for _ in range(2):  # Ollama sends none
            _, result = answer.with_result()
            assert gate.output(result.id).text == "four"
        assert gate.status().seen == 2


def test_errors_of_a_watched_function(caplog: pytest.LogCaptureFixture) -> None:
    """Its own are the caller's; those of the gate are named, or raised if strict."""
    with gate_of(verifier=never_works, on_unavailable="raise") as gate:
        value, result = gate.watch()(make_generation).with_result("a")
        assert value.id == "a"
        assert result.outcome.verdict is Verdict.INFRA_ERROR
        with pytest.raises(VerifierUnavailableError):
            gate.watch(strict=True)(make_generation)("b")
        value, result = gate.watch()(lambda: 17).with_result()
        assert value == 17
        assert isinstance(result, Undecided)
        assert "has no known shape" in result.error
        assert "has no known shape" in caplog.messages[-1]
        with pytest.raises(ZeroDivisionError):
            gate.watch()(lambda: 1 / 0)()

        def stream() -> Any:
            yield 1

        for wrong in (stream, 3, Calibrated):
            with pytest.raises(BadInputError):
                gate.watch()(wrong)  # type: ignore[arg-type]


# -- the command line -----------------------------------------------------------------------------


@pytest.mark.parametrize("broken", [True, False])
def test_the_command_line(
    broken: bool,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """A run of 59 tasks: with a checker that never works, or an endpoint without logprobs."""
    tasks = [task for task in read_tasks(TASKS) if task["kind"] == "math"][: EARLY - 1]
    path = tmp_path / "tasks.jsonl"
    path.write_text("".join(f"{json.dumps(task)}\n" for task in tasks))
    if broken:
        monkeypatch.setattr(MathChecker, "verify", lambda *_: never_works(*_[1:]))
        assert main(["run", str(path), "--json"]) == 1
        expected, note = "could not tell whether", "No output has a verdict"
    else:
        with serving(refuse_logprobs=True) as client:
            endpoint = ["--base-url", str(client.base_url), "--model", "gatekeeper-bundled"]
            options = ["--generator", "openai", "--max-tokens", "4", "--json"]
            assert main(["run", str(path), *endpoint, *options]) == 0
        expected, note = "there is nothing to rank it by", "This was a random draw, because"
    assert sum(expected in text for text in caplog.messages) == 1
    assert any(found.startswith(note) for found in json.loads(capsys.readouterr().out)["notes"])
