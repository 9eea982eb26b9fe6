"""docs/pydantic-evals.md with pydantic-evals itself, in an environment of its own."""

from __future__ import annotations

import asyncio
import json
import os
import re
import signal
import subprocess
import sys
import threading
from collections import Counter
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass, field
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest

if find_spec("pydantic_evals") is None:
    pytest.skip("pydantic-evals is not installed: run `make test-harness`", allow_module_level=True)

from pydantic_ai import Agent, ModelResponse, TextPart
from pydantic_ai.exceptions import ModelHTTPError
from pydantic_ai.models.openai import OpenAIChatModel, OpenAIResponsesModel
from pydantic_ai.providers.openai import OpenAIProvider
from pydantic_evals import Case, Dataset
from pydantic_evals.evaluators import EvaluationReason, Evaluator, EvaluatorContext
from pydantic_evals.online import OnlineEvalConfig, OnlineEvaluator, wait_for_evaluations
from pydantic_evals.online_capability import OnlineEvaluation
from tenacity import stop_after_attempt

from gatekeeper import BadInputError, Budget, VerificationGate
from gatekeeper.adapters import pydantic_evals as adapter
from gatekeeper.adapters.harness.release import unusable
from gatekeeper.adapters.pydantic_evals import EvaluatorVerifier, Gated, GatedScore, Logprobs
from gatekeeper.analysis.score import estimate_score
from gatekeeper.bundled.serve import Server
from gatekeeper.io.responses import as_generation
from gatekeeper.maths import MathChecker
from gatekeeper.signals import signals_of

pytestmark = pytest.mark.filterwarnings("ignore")  # the packages' own

PAGE = (Path(__file__).parents[2] / "docs" / "pydantic-evals.md").read_text()
ONLINE, DATASET, MATHS = re.findall(r"```python\n(.*?)```", PAGE, re.DOTALL)


@contextmanager
def serving(**options: Any) -> Iterator[Server]:
    server = Server(**options)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        yield server
    finally:
        server.shutdown()
        server.server_close()


@pytest.fixture(scope="module")
def base_url() -> Iterator[str]:
    with serving() as server:
        yield server.base_url


@asynccontextmanager
async def model(kind: type[Any], base_url: str) -> AsyncIterator[Any]:
    provider = OpenAIProvider(base_url=base_url, api_key="none")
    yield kind("gatekeeper-bundled", provider=provider)
    await provider.client.close()
    await asyncio.sleep(0.01)  # for the transports to close


@dataclass
class Even(Evaluator):
    """Counts its calls; raises for some inputs."""

    asked: Counter[str] = field(default_factory=Counter)
    failures: int = 0

    def evaluate(self, ctx: EvaluatorContext) -> Any:
        self.asked[ctx.output] += 1
        if self.asked[ctx.output] <= self.failures:
            raise ConnectionError("the judge is away")
        return EvaluationReason(int(ctx.output.split()[-1]) % 2 == 0, f"of {ctx.output}")


def even_cases(n: int) -> list[Case]:
    return [Case(name=f"q{i}", inputs=f"number {i}") for i in range(n)]


def gate_of(evaluator: Evaluator, n: int, share: float = 0.3, **more: Any) -> VerificationGate:
    verifier = EvaluatorVerifier(evaluator, **more.pop("verifier", {}))
    budget = Budget(fraction=share, horizon=n)
    return VerificationGate(budget=budget, verifier=verifier, **{"goal": "score", **more})


def report_of(dataset: Dataset, task: Any, **more: Any) -> Any:
    """Without `evaluate_sync`, which leaves an event loop open."""
    return asyncio.run(dataset.evaluate(task, progress=False, **more))


def evaluated(gate: VerificationGate, cases: list[Case], **more: Any) -> Any:
    dataset = Dataset(
        name="numbers", cases=cases, evaluators=[Gated(gate)], report_evaluators=[GatedScore(gate)]
    )
    return report_of(dataset, lambda text: text, **more)


def test_the_programs_of_the_page(base_url: str, tmp_path: Path) -> None:
    """As they stand, at the same time; the log of the first is the estimate's."""
    environment = {**os.environ, "OPENAI_BASE_URL": base_url, "OPENAI_API_KEY": "none"}
    running = [
        subprocess.Popen(
            [sys.executable, "-c", program],
            cwd=tmp_path,
            env={**environment, "COLUMNS": "200"},
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        for program in (ONLINE, DATASET, MATHS)
    ]
    printed = []
    for process in running:
        out, error = process.communicate()
        assert process.returncode == 0, error
        printed.append(out)
    online, dataset, maths = printed
    labels = Counter(re.findall("RightSum gate ([a-z]+) ", online))
    assert labels == {"verified": 4, "skipped": 16}
    assert len(re.findall(r"RightSum (?:True|False)", online)) == 4
    assert "Score of all 20 outputs, 4 of them checked" in online
    assert len(re.findall("Right gate: verified", dataset)) == 10
    assert len(re.findall("Right: [✔✗]", dataset)) == 10
    assert re.search(r"Right, all: [01]\.\d+", dataset)
    assert "Right: mean of all 40 outputs, 10 of them verified" in dataset
    assert re.findall(r"(q\d).*'MathChecker gate'.*value='verified'", maths) == ["q1", "q2"]


def test_skipped_outputs_do_not_count() -> None:
    """At budget 1 the report is that of the evaluator alone; below, a share has results."""
    cases, n = even_cases(50), 50
    alone = Dataset(name="numbers", cases=cases, evaluators=[Even()])
    plain = report_of(alone, lambda text: text)
    with gate_of(Even(), n, 1.0) as gate:
        every = evaluated(gate, cases)
    for mine, theirs in zip(every.cases, plain.cases, strict=True):
        assert mine.assertions.keys() == theirs.assertions.keys() == {"Even"}
        assert mine.assertions["Even"].value == theirs.assertions["Even"].value
        assert mine.assertions["Even"].reason == theirs.assertions["Even"].reason
    assert every.averages().assertions == plain.averages().assertions == 0.5
    scalar, table = every.analyses
    assert (scalar.value, table.rows[0][1:]) == (0.5, ["0.5000", "known"])

    judge = Even()
    with gate_of(judge, n) as gate:
        report = evaluated(gate, cases)
        assert judge.asked.total() == gate.status().verified == 15
        for case in report.cases:
            result = gate.find(case.attributes["gatekeeper"])
            assert result is not None
            label = case.labels["Even gate"]
            assert label.value == ("verified" if result.decision.verify else "skipped")
            assert f"propensity {result.decision.propensity:.3g}" in label.reason
            assert (case.assertions == {}) is (label.value == "skipped")
            assert case.evaluator_failures == []
    scalar, table = report.analyses
    # Threads arrive in any order: which 15 are drawn, and where the interval lies, is chance.
    results = [gate.find(case.attributes["gatekeeper"]) for case in report.cases]
    found = estimate_score([result for result in results if result is not None])
    ends = f"{found.low:.4f} to {found.high:.4f}"
    assert (scalar.value, scalar.description) == (found.point, f"95 % interval {ends}")
    assert 0 <= found.bounds.low <= 0.5 <= found.bounds.high <= 1
    json.loads(adapter.to_json(report.cases[0].attributes))


def test_repeats_are_clustered_by_case() -> None:
    with gate_of(Even(), 60, 0.5) as gate:
        report = evaluated(gate, even_cases(20), repeat=3)
        names = Counter(case.attributes["gatekeeper"].partition("#")[0] for case in report.cases)
        assert names == {f"q{i}": 3 for i in range(20)}
        assert gate.status().seen == 60
    _, table = report.analyses
    assert [row[0] for row in table.rows] == ["of these outputs", "with the sampling of questions"]


def test_repeats_of_an_earlier_process_are_not_verified_again(tmp_path: Path) -> None:
    """In whatever order their texts come this time; another text is another output."""
    log, answers = tmp_path / "run.db", ["1", "2", "1"]
    for order, seen in (((0, 1, 2), 6), ((1, 2, 0), 6), ((1, 1, 2), 8)):
        texts = {i: iter([answers[at] for at in order]) for i in range(2)}
        cases = [Case(name=f"q{i}", inputs=i) for i in texts]
        with VerificationGate(
            "random", budget=Budget(fraction=1.0), verifier=EvaluatorVerifier(Even()), log=log
        ) as gate:
            dataset = Dataset(name="repeats", cases=cases, evaluators=[Gated(gate)])
            report_of(dataset, lambda i: next(texts[i]), repeat=3)  # noqa: B023
            status = gate.status()
            assert (status.seen, status.warmup_spent + status.spent) == (seen, seen)


def test_an_evaluator_that_raises_could_not_tell() -> None:
    cases = even_cases(8)
    retry = {"stop": stop_after_attempt(3), "reraise": True}
    with gate_of(Even(failures=99), 8, 1.0) as gate:
        report = evaluated(gate, cases)
        assert gate.status().spent == 0.0
        for case in report.cases:
            (failure,) = case.evaluator_failures
            assert "could not tell (ConnectionError: the judge is away)" in failure.error_message
            assert case.assertions == case.labels == {}
    assert len(report.analyses) == 1  # bounds, no estimate
    assert "0.0000 – 1.0000" in report.analyses[0].rows[0][2]

    with gate_of(Even(failures=99), 8, 1.0, on_unavailable="pass") as gate:
        report = evaluated(gate, cases)
    assert all(case.labels["Even gate"].value == "could not tell" for case in report.cases)
    assert "the judge is away" in report.cases[0].labels["Even gate"].reason
    assert all(not c.assertions and not c.evaluator_failures for c in report.cases)

    with gate_of(Even(failures=1), 8, 0.5) as gate:
        report = evaluated(gate, cases, retry_evaluators=retry)
        assert gate.status().seen == 8
        assert gate.status().spent == gate.status().verified == 4
    assert not any(case.evaluator_failures for case in report.cases)


@dataclass
class Giving(Evaluator):
    """Returns its input."""

    def evaluate(self, ctx: EvaluatorContext) -> Any:
        return ctx.inputs


@pytest.mark.parametrize(
    ("value", "options", "error", "grade"),
    [
        (True, {}, 0, 1.0),
        (0.7, {"passing": 0.5}, 0, 0.7),
        (0.7, {}, 1, 0.7),
        (3, {"passing": 4}, 1, 3.0),
        ("good", {"passing": "good"}, 0, 1.0),
        ({"polite": True, "exact": EvaluationReason(0.2, "far")}, {"key": "exact"}, 1, 0.2),
        ({"polite": True, "exact": 0.2}, {}, 0, 1.0),
        ("good", {}, None, None),
        ({}, {}, None, None),
        ({"a": 1}, {"key": "b"}, None, None),
        ([1], {}, None, None),
    ],
)
def test_values_as_verdicts(value: Any, options: dict[str, Any], error: Any, grade: Any) -> None:
    with gate_of(Giving(), 1, 1.0, verifier=options, on_unavailable="pass") as gate:
        dataset = Dataset(name="one", cases=[Case(inputs=value)], evaluators=[Gated(gate)])
        (case,) = report_of(dataset, lambda text: "x").cases
        result = gate.find(case.attributes["gatekeeper"])
    assert result is not None
    outcome = result.outcome
    if error is None:
        assert outcome is None or outcome.error is None
        assert case.labels["Giving gate"].value == "could not tell"
    else:
        assert outcome is not None
        assert (outcome.error, outcome.grade) == (error, grade)
        found = {**case.assertions, **case.scores, **case.labels}
        named = value if isinstance(value, dict) else {"Giving": value}
        for name, given in named.items():
            assert found[name].value == getattr(given, "value", given)


def test_two_gates_on_one_function() -> None:
    right, even = gate_of(Giving(), 9, 1.0), gate_of(Even(), 9, 0.34)
    cases = [Case(name=f"q{i}", inputs=True) for i in range(9)]
    with right, even:
        dataset = Dataset(name="two", cases=cases, evaluators=[Gated(right), Gated(even)])
        report = report_of(dataset, lambda _: "number 2")
        assert (right.status().verified, even.status().verified) == (9, 3)
    assert report.cases[0].labels.keys() == {"Giving gate", "Even gate"}


def test_many_at_once_in_threads_and_on_a_loop() -> None:
    """Sync functions are evaluated in threads with loops of their own; the budget holds."""
    judge, seen = Even(), Counter[str]()
    gate = gate_of(judge, 120)

    def sink(results: Any, failures: Any, context: Any) -> None:
        assert not failures
        seen.update(r.value for r in results if r.name == "Even gate")

    evaluate = OnlineEvalConfig(default_sink=sink).evaluate
    gated = OnlineEvaluator(evaluator=Gated(gate), max_concurrency=1000)
    plain = evaluate(gated)(lambda i: f"number {i}")

    @evaluate(gated)
    async def coroutine(i: int) -> str:
        await asyncio.sleep(0)
        return f"number {i}"

    async def calls() -> None:
        await asyncio.gather(*(coroutine(i) for i in range(60)))
        await wait_for_evaluations()

    with gate:
        for i in range(60, 120):
            plain(i)
        asyncio.run(calls())
        status = gate.status()
    assert seen == {"verified": status.verified, "skipped": 120 - status.verified}
    assert 30 <= status.verified <= 36
    assert status.spent <= status.cap
    assert judge.asked.total() == status.verified


def test_a_gate_whose_log_has_the_names_for_other_texts(tmp_path: Path) -> None:
    """Beside a new gate: its outputs have names of their own there, and its score is of these."""
    scores = []
    for right in (False, True):

        @dataclass
        class Second(Evaluator):
            right: bool

            def evaluate(self, ctx: EvaluatorContext) -> bool:
                return self.right

        log = tmp_path / "second.db"
        second = EvaluatorVerifier(Second(right), name="second")
        with (
            gate_of(Even(), 20, 0.5) as first,
            VerificationGate(
                goal="score", budget=Budget(fraction=0.5), verifier=second, log=log
            ) as other,
        ):
            dataset = Dataset(
                name="numbers",
                cases=even_cases(20),
                evaluators=[Gated(first), Gated(other)],
                report_evaluators=[GatedScore(first), GatedScore(other)],
            )
            report = report_of(dataset, lambda text, right=right: f"{right} {text}")
            assert not any(case.evaluator_failures for case in report.cases)
            assert (first.status().seen, other.status().seen) == (20, 40 if right else 20)
        scores += [a.value for a in report.analyses if getattr(a, "title", "") == "Second, all"]
    assert scores == [0.0, 1.0]


def test_log_probabilities_reach_the_gate(base_url: str) -> None:
    """By the capability, whole and streamed; of the Responses API; and in what is returned."""
    results: list[Any] = []
    verifier = EvaluatorVerifier(Giving(), passing="Compute 7 + 8.")
    with VerificationGate(budget=Budget(fraction=0.5), verifier=verifier) as gate:
        config = OnlineEvalConfig(default_sink=lambda found, failed, ctx: results.append(ctx))
        online = OnlineEvaluation(evaluators=[Gated(gate)], config=config)

        async def runs(chat: Any, responses: Any) -> None:
            agent = Agent(chat, capabilities=[Logprobs(), online])
            whole = await agent.run("Compute 7 + 8.")
            async with agent.run_stream("Compute 7 + 8.") as stream:
                text = await stream.get_output()
            await agent.run("Compute 7 + 8.", model_settings={"openai_logprobs": False})
            await Agent(responses, capabilities=[Logprobs(), online]).run("Compute 7 + 8.")
            alone = Agent(chat)
            settings = {"openai_logprobs": True, "openai_top_logprobs": 5}

            @config.evaluate(Gated(gate))
            async def answer(question: str) -> Any:
                return await alone.run(question, model_settings=settings)

            given = await answer("Compute 7 + 8.")
            await wait_for_evaluations()
            ids = [ctx.attributes["gatekeeper"] for ctx in results]
            found = [gate.find(id_) for id_ in ids]
            assert [r.signals.state for r in found] == ["ok", "ok", "missing", "ok", "ok"]
            assert [gate.output(id_).text for id_ in (ids[1], ids[4])] == [text, given.output]
            # What the reader of the whole response says, without a gate.
            assert signals_of(as_generation(whole.response)) == found[0].signals

        async def main() -> None:
            async with (
                model(OpenAIChatModel, base_url) as chat,
                model(OpenAIResponsesModel, base_url) as responses,
            ):
                await runs(chat, responses)

        asyncio.run(main())


def test_a_model_without_log_probabilities() -> None:
    """It is asked again without; a stream raises once."""

    async def runs(base_url: str) -> None:
        async with model(OpenAIChatModel, base_url) as chat:
            agent = Agent(chat, capabilities=[Logprobs()])
            assert (await agent.run("Compute 7 + 8.")).output
            assert (await agent.run("Compute 7 + 9.")).output
            agent = Agent(chat, capabilities=[Logprobs()])
            with pytest.raises(ModelHTTPError, match="logprobs"):
                async with agent.run_stream("Compute 7 + 8."):
                    pass

    with serving(refuse_logprobs=True) as server:
        asyncio.run(runs(server.base_url))


def test_gemini_and_text_parts() -> None:
    """Shapes of pydantic-ai that the bundled server does not give, from objects and from JSON."""
    one = {"token": "4", "log_probability": -0.5, "token_id": 4}
    two = {"token": "5", "log_probability": -1.0, "token_id": 5}
    details = {"chosen_candidates": [one], "top_candidates": [{"candidates": [one, two]}]}
    response = ModelResponse(
        parts=[TextPart("4")], provider_details={"logprobs": details}, provider_response_id="g"
    )
    for each in (response, json.loads(adapter.to_json(response))):
        found = as_generation(each)
        assert (found.id, found.text) == ("g", "4")
        assert [*found.logprob, *found.top1, *found.top2] == [-0.5, -0.5, -1.0]


KILLED = """
import json, os, random, signal, sys
from dataclasses import dataclass
from pydantic_evals import Case, Dataset
from pydantic_evals.evaluators import Evaluator
from gatekeeper import Budget, VerificationGate
from gatekeeper.adapters.pydantic_evals import EvaluatorVerifier, Gated, GatedScore

seed, stop = int(sys.argv[1]), int(sys.argv[2])

@dataclass
class Counting(Evaluator):
    def evaluate(self, ctx):
        with open("asked", "a") as file:
            file.write(f"{ctx.name} {ctx.output}\\n")
        if len(open("asked").readlines()) == stop:
            os.kill(os.getpid(), signal.SIGKILL)
        return len(ctx.output) % 2 == 0

def answer(name):
    known = gate.find(name)
    return gate.output(name).text if known else str(random.Random(f"{seed} {name}").random())

cases = [Case(name=f"q{i}", inputs=f"q{i}") for i in range(40)]
with VerificationGate(
    goal="score", budget=Budget(fraction=0.8, horizon=40),
    verifier=EvaluatorVerifier(Counting()), log="run.db",
) as gate:
    dataset = Dataset(
        name="numbers", cases=cases, evaluators=[Gated(gate)], report_evaluators=[GatedScore(gate)]
    )
    report = dataset.evaluate_sync(answer, progress=False, max_concurrency=1)
    found = {case.name: gate.find(case.name) for case in cases}
    print(json.dumps({
        "decided": {name: [r.decision.verify, r.decision.propensity] for name, r in found.items()},
        "answers": {case.name: case.output for case in report.cases},
        "judged": [case.name for case in report.cases if case.assertions],
        "seen": gate.status().seen,
        "spent": gate.status().spent,
        "table": report.analyses[-1].title,
    }))
"""


def test_kill_9_and_the_same_log_again(tmp_path: Path) -> None:
    """With other answers the second time, as at temperature 0.8: the logged ones count."""

    def ran(name: str, seed: int, stop: int = -1) -> subprocess.CompletedProcess[str]:
        (tmp_path / name).mkdir(exist_ok=True)
        command = [sys.executable, "-c", KILLED, str(seed), str(stop)]
        return subprocess.run(command, cwd=tmp_path / name, capture_output=True, text=True)

    assert ran("part", 1, stop=14).returncode == -signal.SIGKILL
    before = (tmp_path / "part" / "asked").read_text().splitlines()
    printed = [ran("part", 2), ran("whole", 1)]
    assert [each.returncode for each in printed] == [0, 0], printed[0].stderr
    again, whole = (json.loads(each.stdout) for each in printed)
    assert again["answers"] != whole["answers"]
    same = ("decided", "judged", "seen", "spent", "table")
    assert {name: again[name] for name in same} == {name: whole[name] for name in same}
    assert (again["seen"], again["spent"], len(again["judged"])) == (40, 32, 32)
    asked = Counter((tmp_path / "part" / "asked").read_text().splitlines())
    assert asked.keys() == {f"{name} {again['answers'][name]}" for name in again["judged"]}
    assert asked.pop(before[-1]) == 2  # its verdict was not known yet
    assert set(asked.values()) == {1}


def test_bad_input() -> None:
    with pytest.raises(BadInputError, match="give an Evaluator"):
        EvaluatorVerifier(lambda ctx: True)  # type: ignore[arg-type]
    for passing in (float("nan"), float("inf"), None, True):  # NaN: every output would be wrong
        with pytest.raises(BadInputError, match=r"passing=.*: give a finite number"):
            EvaluatorVerifier(Giving(), passing=passing)
    with pytest.raises(BadInputError, match="key=3: a string is needed"):
        EvaluatorVerifier(Giving(), key=3)
    with pytest.raises(BadInputError, match="gate=None: give a VerificationGate"):
        GatedScore(None)
    with pytest.raises(BadInputError, match="gate='x': give a VerificationGate"):
        Gated("x")  # type: ignore[arg-type]
    with VerificationGate(budget=Budget(fraction=0.5), verifier=MathChecker()) as gate:
        dataset = Dataset(name="none", cases=[Case(inputs=1)], report_evaluators=[GatedScore(gate)])
        report = report_of(dataset, lambda i: i)
    (failure,) = report.report_evaluator_failures
    assert "no output passed through this gate" in failure.error_message
    missing = ImportError("no name OnlineEvaluation", name="pydantic_evals")
    message = str(unusable("pydantic-evals", "2.62.0", extra="pydantic-evals", error=missing))
    assert "made for 2.62.0" in message
    assert "pip install 'pydantic-evals==2.62.0'" in message
