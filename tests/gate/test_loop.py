"""Agent loops: retries with feedback, the best of several, and no verification paid twice."""

from __future__ import annotations

import asyncio
import json
import random
import signal
import subprocess
import sys
import time
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from itertools import count
from math import inf
from pathlib import Path
from typing import Any

import httpx2
import pytest
from hypothesis import given
from hypothesis import strategies as st
from openai import AsyncOpenAI, OpenAI

from gatekeeper import (
    Attempt,
    BadInputError,
    Budget,
    Candidate,
    Choice,
    Decision,
    GateResult,
    Generation,
    LoopResult,
    Outcome,
    Reason,
    Signals,
    Stopped,
    Verdict,
    VerificationGate,
    VerifierUnavailableError,
)
from gatekeeper.adapters.bundled import BundledModel
from gatekeeper.bundled import TASKS
from gatekeeper.io.tasks import read_tasks
from gatekeeper.log import MemoryLog, SQLiteLog
from gatekeeper.maths import MathChecker
from gatekeeper.testing import AsyncScriptedVerifier, ScriptedVerifier, make_generation

PATIENCE = 60.0
KILLS = 5


class Wants:
    """A policy that selects given outputs, by id."""

    phase = "steady"

    def __init__(self, unwanted: set[str] | frozenset[str] = frozenset()) -> None:
        self._unwanted = unwanted

    def decide(self, candidate: Candidate) -> Decision:
        return Decision(candidate.id not in self._unwanted, Reason.POLICY, 0.5, 0.1, propensity=0.5)

    def update(self, candidate: Candidate, decision: Decision, outcome: Outcome) -> None:
        pass

    def state(self) -> dict[str, Any]:
        return {}

    def restore(self, state: dict[str, Any]) -> None:
        raise NotImplementedError


class Writer:
    """Generates outputs that name the attempt, and keeps what it was called with."""

    def __init__(self) -> None:
        self.calls: list[tuple[object, tuple[Attempt, ...]]] = []

    def __call__(self, task: object, attempts: tuple[Attempt, ...]) -> Generation:
        self.calls.append((task, attempts))
        return make_generation("the model's own id", text=f"answer {len(attempts) + 1}")

    async def later(self, task: object, attempts: tuple[Attempt, ...]) -> Generation:
        await asyncio.sleep(0)
        return self(task, attempts)


def gate_of(verifier: Any = None, *, unwanted: set[str] | None = None, **more: Any) -> Any:
    settings: dict[str, Any] = {"budget": Budget(total=100), "on_unavailable": "pass"} | more
    return VerificationGate(Wants(unwanted or set()), verifier=verifier, **settings)


# -- attempts ------------------------------------------------------------------------------------

LABELS = st.lists(st.sampled_from([0, 1, 1, 1, None]), min_size=1, max_size=5)


@given(LABELS, st.sets(st.integers(1, 5), max_size=2), st.integers(1, 4), st.booleans())
def test_a_loop_follows_its_definition(
    labels: list[Any], unwanted: set[int], total: int, later: bool
) -> None:
    """Compared with a second implementation; a second call generates nothing and pays nothing."""
    spent, stopped, number = 0, Stopped.ATTEMPTS, 0
    for number, label in enumerate(labels, 1):
        if number in unwanted or spent == total:
            stopped = Stopped.UNVERIFIED if number in unwanted else Stopped.BUDGET
            break
        if label is None:
            stopped = Stopped.NO_VERDICT
            break
        spent += 1
        if label == 0:
            stopped = Stopped.PASSED
            break

    verifier = AsyncScriptedVerifier({f"q/{i}": label for i, label in enumerate(labels, 1)})
    skip = {f"q/{i}" for i in unwanted}
    with gate_of(verifier, unwanted=skip, budget=Budget(total=total)) as gate:
        write = Writer()

        def run() -> LoopResult:
            if later:
                return asyncio.run(
                    gate.arun_loop(write.later, "T", id="q", max_attempts=len(labels))
                )
            return gate.run_loop(write, "T", id="q", max_attempts=len(labels))

        result = run()
        assert (result.id, result.stopped, len(result.attempts)) == ("q", stopped, number)
        assert result.text == f"answer {number}"
        assert result.verified == (stopped in (Stopped.PASSED, Stopped.ATTEMPTS))
        assert write.calls == [("T", result.attempts[:i]) for i in range(number)]
        for i, attempt in enumerate(result.attempts, 1):
            assert (attempt.number, attempt.text) == (i, f"answer {i}")
            assert attempt.result == gate.find(f"q/{i}")
            assert bool(attempt.feedback()) == (i < number or stopped is Stopped.ATTEMPTS)
        assert gate.status().spent == spent
        again = run()
        assert (again.stopped, again.text) == (result.stopped, result.text)
        assert len(write.calls) == number
        asked_again = [f"q/{number}"] * (stopped is Stopped.NO_VERDICT)
        assert verifier.calls == [f"q/{i + 1}" for i in range(spent)] + 2 * asked_again


def test_the_next_prompt_gets_the_feedback() -> None:
    """The outcome's detail and the end of the candidate's output, and nothing else."""
    meta = {"stdout": "", "stderr": "Traceback\n" * 900 + "ZeroDivisionError", "x": "secret"}
    outcome = Outcome(Verdict.FAILED, detail="assert f(2) == 4\n", meta=meta)
    decision = Decision(True, Reason.POLICY)
    attempt = Attempt(1, "?", GateResult("q/1", Signals(1, -1, 1), decision, outcome))
    verdict, detail, *tail = attempt.feedback().split("\n")
    assert (verdict, detail) == ("verdict: failed", "detail: assert f(2) == 4")
    assert tail[0] == "stderr: Traceback"
    assert tail[-1] == "ZeroDivisionError"
    assert 1000 < len(attempt.feedback(1500)) <= 1500
    assert all(len(attempt.feedback(limit)) <= limit for limit in range(1, 300))
    with pytest.raises(BadInputError, match="limit=0"):
        attempt.feedback(0)
    with pytest.raises(BadInputError, match="id=''"):
        gate_of().run_loop(Writer(), id="")
    with pytest.raises(BadInputError, match="max_attempts=0"):
        gate_of().run_loop(Writer(), id="q", max_attempts=0)


def test_a_dead_verifier_raises_with_on_unavailable_raise() -> None:
    """When it works again, the loop goes on with the output it had."""
    verifier, write = ScriptedVerifier({"q/1": 1, "q/2": None}), Writer()
    with gate_of(verifier, on_unavailable="raise") as gate:
        with pytest.raises(VerifierUnavailableError):
            gate.run_loop(write, id="q")
        assert gate.status().spent == 1
        verifier.labels = {"q/2": 0}
        result = gate.run_loop(write, id="q")
        assert (result.stopped, result.text, len(write.calls)) == (Stopped.PASSED, "answer 2", 2)


def test_verdicts_may_come_from_outside() -> None:
    """Without a verifier the loop waits for each verdict, and goes on from there."""
    with gate_of(None, unwanted={"q/3"}) as gate:
        write = Writer()
        for number in (1, 2):
            waiting = gate.run_loop(write, id="q", max_attempts=4)
            assert (waiting.stopped, len(waiting.attempts)) == (Stopped.NO_VERDICT, number)
            gate.report_outcome(f"q/{number}", Outcome(Verdict.FAILED, detail=f"no {number}"))
        assert gate.run_loop(write, id="q", max_attempts=4).stopped is Stopped.UNVERIFIED
        gate.report_outcome("q/3", "failed")  # an external verdict on an output not selected
        last = gate.run_loop(write, id="q", max_attempts=4)
        assert (last.stopped, last.text) == (Stopped.NO_VERDICT, "answer 4")
        assert [a.feedback().splitlines()[-1] for a in write.calls[-1][1]] == [
            "detail: no 1",
            "detail: no 2",
            "verdict: failed",
        ]


def test_a_loop_interrupted_anywhere_ends_as_an_uninterrupted_one() -> None:
    """Ctrl-C in each generation and each verification in turn."""
    labels = {f"q/{i}": int(i < 4) for i in range(1, 5)}
    for stop in range(8):
        steps = count()

        def step(what: Any, *arguments: Any, steps: Any = steps, stop: int = stop) -> Any:
            if next(steps) == stop:
                raise KeyboardInterrupt
            return what(*arguments)

        write, verifier, log = Writer(), ScriptedVerifier(labels), MemoryLog()
        generate = lambda *call, step=step, write=write: step(write, *call)  # noqa: E731
        verify = verifier.verify
        verifier.verify = lambda *call, step=step, verify=verify: step(verify, *call)  # type: ignore[method-assign]
        with gate_of(verifier, log=log) as gate, pytest.raises(KeyboardInterrupt):
            gate.run_loop(generate, "T", id="q", max_attempts=4)
        with gate_of(verifier, log=log) as gate:
            assert gate.status().held == 0
            result = gate.run_loop(generate, "T", id="q", max_attempts=4)
            assert (result.stopped, len(result.attempts)) == (Stopped.PASSED, 4)
            assert [len(attempts) for _, attempts in write.calls] == [0, 1, 2, 3]
            assert (gate.status().spent, gate.status().seen) == (4, 4)
        assert Counter(e.kind for e in log.events())["outcome"] == 4


def test_cancelled_loops_give_back_what_they_held() -> None:
    """Cancelled while it generates or verifies, a loop leaves no reservation, and goes on later."""

    async def run() -> None:
        for generating in (True, False):
            verifier, write = AsyncScriptedVerifier({"q/1": 1}), Writer()
            with gate_of(verifier) as gate:

                async def generate(
                    *call: Any, write: Writer = write, slow: bool = generating
                ) -> Any:
                    if slow and call[1]:
                        await asyncio.sleep(PATIENCE)
                    return write(*call)

                if not generating:
                    verifier.delay = PATIENCE
                loop = asyncio.create_task(gate.arun_loop(generate, id="q"))
                while not verifier.calls or (generating and not gate.status().spent):
                    await asyncio.sleep(0.001)
                loop.cancel()
                with suppress(asyncio.CancelledError):
                    await loop
                status = gate.status()
                assert (status.held, status.seen) == (0, 1)
                verifier.delay = 0.0
                result = await gate.arun_loop(write.later, id="q")
                assert (result.stopped, result.text) == (Stopped.PASSED, "answer 2")
                assert gate.status().spent == 2
                assert len(write.calls) == 2

    asyncio.run(run())


@pytest.mark.parametrize("way", ["threads", "asyncio"])
def test_many_loops_share_one_budget(way: str) -> None:
    """The budget is not exceeded; loops without room report it."""
    rng = random.Random(5)
    labels = {f"q{i}/{n}": int(rng.random() < 0.7) for i in range(60) for n in (1, 2, 3)}
    verifier = AsyncScriptedVerifier(labels, delay=0.001)
    ids = [f"q{i}" for i in range(60)]
    with gate_of(verifier, budget=Budget(total=110)) as gate:
        if way == "threads":
            with ThreadPoolExecutor(16) as pool:
                results = list(pool.map(lambda id_: gate.run_loop(Writer(), id=id_), ids))
        else:

            async def run() -> list[LoopResult]:
                loops = [gate.arun_loop(Writer().later, id=id_) for id_ in ids]
                return await asyncio.gather(*loops)

            results = asyncio.run(run())
        assert gate.status().spent == 110 == len(verifier.calls)
    ends = Counter(result.stopped for result in results)
    assert set(ends) == {Stopped.PASSED, Stopped.BUDGET, Stopped.ATTEMPTS}
    for result in results:
        wrong = [labels[f"{result.id}/{a.number}"] for a in result.attempts if a.result.verified]
        assert wrong == [1] * (len(wrong) - 1) + [int(result.stopped is not Stopped.PASSED)] or (
            result.stopped is Stopped.BUDGET and all(wrong)
        )


# -- with the real parts -------------------------------------------------------------------------


@pytest.fixture(scope="module")
def maths() -> list[Any]:
    tasks = [task for task in read_tasks(TASKS) if task["kind"] == "math"]
    return sorted(tasks, key=lambda task: len(task["prompt"]))[:40]  # short answers, soon given


def test_retries_of_the_bundled_model_raise_what_passes(maths: list[Any]) -> None:
    """Real outputs, real verdicts: outputs reported as passed are right, and more of them pass."""
    model, checker = BundledModel(), MathChecker()

    def generate(task: Any, attempts: tuple[Attempt, ...]) -> Generation:
        (output,) = model.generate(
            [task["prompt"]],
            ids=[f"{task['id']}/{len(attempts)}"],
            temperature=0.7 if attempts else 0.0,
        )
        return output

    with VerificationGate(Wants(), budget=Budget(total=200), verifier=checker) as gate:
        results = [gate.run_loop(generate, task, id=task["id"]) for task in maths]
        first = sum(len(r.attempts) == 1 and r.stopped is Stopped.PASSED for r in results)
        passed = [r.stopped is Stopped.PASSED for r in results]
        right = [
            checker.check(t["gold"], r.text).error == 0 for t, r in zip(maths, results, strict=True)
        ]
        assert right == passed
        assert 0 < first < sum(passed) < len(maths)
        assert gate.status().spent == sum(len(r.attempts) for r in results)


AGENT = """
import json, sys, time
from gatekeeper import CST, Budget, VerificationGate
from gatekeeper.maths import MathChecker
from gatekeeper.testing import make_generation

def generate(task, attempts):
    number = len(attempts) + 1
    print(f"{task['id']}/{number}", flush=True)
    time.sleep(0.002)
    right = hash((task["seed"], number)) % 3 == 0
    text = "\\\\boxed{%s}" % (task["gold"] if right else -number)
    return make_generation("-", seed=task["seed"] * 10 + number, tokens=12, text=text)

policy = CST(0.3, warmup=20)
budget = Budget(fraction=0.3)
with VerificationGate(policy, budget=budget, verifier=MathChecker(), log=sys.argv[1]) as gate:
    for i in range(120):
        task = {"id": f"q{i}", "seed": i, "gold": str(i * 7919)}
        result = gate.run_loop(generate, task, id=task["id"])
        print(json.dumps([result.stopped, result.text, len(result.attempts)]), flush=True)
    sys.stdin.read()  # one that is to be killed does not end before
"""


def logged(path: Path) -> list[Any]:
    with SQLiteLog(path, read_only=True) as log:
        return list(log.events())


def test_kill_9_in_the_middle_of_a_loop_pays_nothing_twice(tmp_path: Path) -> None:
    """Real processes with the real checker, killed at random moments: outputs in the log are not
    generated again, and the end is that of an uninterrupted run."""
    rng = random.Random(11)
    broken, alone = tmp_path / "broken.db", tmp_path / "alone.db"

    def run(path: Path, results: int | None = None) -> tuple[list[str], list[Any]]:
        """The ids generated, and the results; the process is killed soon after so many results."""
        generated: list[str] = []
        said: list[Any] = []
        command = [sys.executable, "-c", AGENT, str(path)]
        stdin = subprocess.DEVNULL if results is None else subprocess.PIPE
        with subprocess.Popen(command, stdin=stdin, stdout=subprocess.PIPE, text=True) as process:
            assert process.stdout is not None
            for line in process.stdout:
                if not line.endswith("\n"):
                    break
                if line[0] == "q":
                    generated.append(line.strip())
                else:
                    said.append(json.loads(line))
                if len(said) == results:
                    time.sleep(rng.uniform(0.0, 0.02))
                    process.kill()
        assert process.returncode == (0 if results is None else -signal.SIGKILL)
        return generated, said

    generated, expected = run(alone)
    assert {stopped for stopped, _, _ in expected} >= {"passed", "unverified", "attempts"}
    known: set[str] = set()
    for kill in [*range(1, KILLS + 1), None]:
        again, results = run(broken, kill and kill * len(expected) // (KILLS + 2))
        assert not known & set(again)
        assert results == expected[: len(results)]
        known = {e.id for e in logged(broken) if e.kind == "decided"}
    assert len(results) == len(expected)
    assert known == set(generated)
    for kind in ("decided", "outcome", "learned"):
        of_each = [Counter(e.id for e in logged(p) if e.kind == kind) for p in (broken, alone)]
        assert of_each[0] == of_each[1]
        assert max(of_each[0].values()) == 1


# -- around a wrapped client ---------------------------------------------------------------------


def chat(content: str) -> dict[str, Any]:
    token = {"token": content, "bytes": None, "logprob": -0.2}
    top = [token, {"token": "?", "bytes": None, "logprob": -1.9}]
    message = {"role": "assistant", "content": content, "refusal": None}
    logprobs = {"content": [{**token, "top_logprobs": top}], "refusal": None}
    choice = {"index": 0, "finish_reason": "stop", "message": message, "logprobs": logprobs}
    head = {"id": "chatcmpl-1", "object": "chat.completion", "created": 1, "model": "m"}
    return head | {"choices": [choice]}


@pytest.mark.parametrize("wrapped", [True, False])
@pytest.mark.parametrize("later", [True, False])
def test_a_wrapped_client_in_a_loop_is_decided_on_once(wrapped: bool, later: bool) -> None:
    """The gate that the client passes through and the loop are one: one id, one charge."""
    prompts: list[str] = []

    def handle(request: httpx2.Request) -> httpx2.Response:
        prompts.append(json.loads(request.content)["messages"][-1]["content"])
        return httpx2.Response(200, json=chat(r"\boxed{5}" if len(prompts) > 1 else r"\boxed{6}"))

    async def ahandle(request: httpx2.Request) -> httpx2.Response:
        return handle(request)

    transport = httpx2.MockTransport(ahandle if later else handle)
    http = (httpx2.AsyncClient if later else httpx2.Client)(transport=transport)
    make = AsyncOpenAI if later else OpenAI
    client: Any = make(api_key="-", base_url="http://nowhere/v1", http_client=http)
    with gate_of(MathChecker()) as gate:
        if wrapped:
            client = gate.wrap(client, strict=True)

        def generate(task: Any, attempts: tuple[Attempt, ...]) -> Any:
            content = "\n".join([task["prompt"], *(a.feedback() for a in attempts)])
            return client.chat.completions.create(
                model="m",
                messages=[{"role": "user", "content": content}],
                logprobs=True,
                top_logprobs=5,
            )

        task = {"prompt": "2 + 3?", "gold": "5"}
        if later:
            result = asyncio.run(gate.arun_loop(generate, task, id="q"))
        else:
            result = gate.run_loop(generate, task, id="q")
        assert (result.stopped, result.text) == (Stopped.PASSED, r"\boxed{5}")
        assert prompts == ["2 + 3?", "2 + 3?\nverdict: failed"]
        assert [a.result.id for a in result.attempts] == ["q/1", "q/2"]
        assert (gate.status().seen, gate.status().spent) == (2, 2)


# -- the best of several -------------------------------------------------------------------------

OUTPUTS = st.lists(
    st.tuples(st.sampled_from("abcdefgh"), st.integers(0, 3), st.sampled_from([0, 1, 1, None])),
    min_size=1,
    max_size=7,
)


def output(i: int, text: str, uncertainty: int) -> Generation:
    """Its h1 is `uncertainty`; 0 for none at all."""
    logprob = [-float(uncertainty)] * bool(uncertainty)
    top2 = [-9.0] * bool(uncertainty)
    return Generation(f"g{i}", text, logprob, logprob, top2)  # type: ignore[arg-type]


@given(OUTPUTS, st.sets(st.integers(0, 6)), st.integers(1, 4), st.booleans())
def test_the_best_follows_its_definition(
    drawn: list[Any], unwanted: set[int], total: int, later: bool
) -> None:
    """Compared with a second implementation; a second call pays nothing."""
    about = {text: (uncertainty, label) for text, uncertainty, label in drawn}
    outputs = [output(i, text, about[text][0]) for i, (text, _, _) in enumerate(drawn)]
    uncertainty = {text: about[text][0] or inf for text in about}

    asked: list[str] = []
    errors: dict[str, int | None] = {}
    for text in sorted(dict.fromkeys(o.text for o in outputs), key=lambda t: -uncertainty[t]):
        first = next(i for i, o in enumerate(outputs) if o.text == text)
        errors[text] = None
        if first not in unwanted and sum(e is not None for e in errors.values()) < total:
            asked.append(f"q/{first}")
            errors[text] = about[text][1]
            if errors[text] == 0:
                break
    order = {0: 0, None: 1, 1: 2}
    chosen = min(outputs, key=lambda o: (order[errors.get(o.text)], uncertainty[o.text])).text

    labels = {f"q/{i}": about[o.text][1] for i, o in enumerate(outputs)}
    verifier = AsyncScriptedVerifier(labels)
    skip = {f"q/{i}" for i in unwanted}
    with gate_of(verifier, unwanted=skip, budget=Budget(total=total)) as gate:

        def run() -> Choice:
            if later:
                return asyncio.run(gate.abest_of(outputs, id="q"))
            return gate.best_of(outputs, id="q")

        choice = run()
        assert verifier.calls == asked
        assert choice.text == chosen
        assert choice.passed == (errors.get(chosen) == 0)
        assert [o.text for o in choice.outputs] == [o.text for o in outputs]
        for o, result in zip(choice.outputs, choice.results, strict=True):
            found = None if result is None or result.outcome is None else result.outcome.error
            assert found == errors.get(o.text)
            assert (result is None) <= (0 in errors.values())
        spent = gate.status().spent
        assert spent == sum(e is not None for e in errors.values()) <= total
        again = run()
        assert (again.index, gate.status().spent) == (choice.index, spent)


def test_choices_of_one_response_and_outputs_without_ids() -> None:
    """`n` choices of one response get different ids; outputs without ids must be given some."""
    response = chat("yes")
    response["choices"] += [{**chat("no")["choices"][0], "index": 1}]
    with gate_of(ScriptedVerifier({"q/0": 1})) as gate:
        choice = gate.best_of([response], id="q")
        assert [o.id for o in choice.outputs] == ["q/0", "q/1"]
        assert (choice.text, choice.passed, choice.result) == ("no", True, gate.find("q/1"))
        for responses, said in (
            ([], "no output"),
            (response, "a list"),
            ([output(1, "a", 1), output(1, "b", 1)], "share an id"),
        ):
            with pytest.raises(BadInputError, match=said):
                gate.best_of(responses)
        assert gate.status().seen == 2
