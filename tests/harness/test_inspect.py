"""docs/inspect.md with Inspect itself, in an environment of its own: `make test-harness`."""

from __future__ import annotations

import json
import os
import re
import shlex
import subprocess
import sys
import threading
from collections import Counter
from collections.abc import Iterator
from contextlib import suppress
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest

if find_spec("inspect_ai") is None:
    pytest.skip("inspect-ai is not installed: run `make test-harness`", allow_module_level=True)

from killing import killed_when

from gatekeeper.bundled.serve import Server

pytestmark = pytest.mark.filterwarnings("ignore")  # Inspect's own

PAGE = (Path(__file__).parents[2] / "docs" / "inspect.md").read_text()
PROGRAM, IN_ONE_GO = re.findall(r"```python\n(.*?)```", PAGE, re.DOTALL)
(COMMANDS,) = re.findall(r"```bash\n(.*?)```", PAGE, re.DOTALL)
SLOW = '''

import asyncio

from inspect_ai.scorer import Scorer, accuracy, scorer, stderr


@scorer(metrics=[accuracy(), stderr()])
def slow() -> Scorer:
    """`match`, which takes its time and leaves a trace."""
    wrapped = match()

    async def score(state, target):
        with open("calls.txt", "a") as calls:
            calls.write(f"{state.sample_id}\\n")
        await asyncio.sleep(0.2)
        return await wrapped(state, target)

    return score


@scorer(metrics=[accuracy(), stderr()])
def silent() -> Scorer:
    """It never has a score."""

    async def score(state, target):
        return None

    return score
'''


class Evaluation:
    """The folder in which the page's commands ran, and what they left there."""

    def __init__(self, folder: Path, base_url: str) -> None:
        self.folder = folder
        self.printed = ""
        self.env = {
            **os.environ,
            "PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}",
            "LOCAL_BASE_URL": base_url,
            "LOCAL_API_KEY": "none",
            "OTHER_BASE_URL": base_url,
            "OTHER_API_KEY": "none",
            "INSPECT_DISPLAY": "plain",
            "COLUMNS": "200",
        }

    def run(self, command: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            ["bash", "-euo", "pipefail", "-c", command],
            cwd=self.folder,
            env=self.env,
            capture_output=True,
            text=True,
            timeout=240,
        )

    @property
    def log(self) -> Path:
        (log,) = (self.folder / "logs").glob("*.eval")
        return log


@pytest.fixture(scope="module")
def done(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Evaluation]:
    """The page's task, generated, scored and reported on by its commands."""
    folder = tmp_path_factory.mktemp("inspect")
    (folder / "arithmetic.py").write_text(PROGRAM + SLOW)
    server = Server()
    threading.Thread(target=server.serve_forever, daemon=True).start()
    evaluation = Evaluation(folder, server.base_url)
    ran = evaluation.run(COMMANDS)
    assert ran.returncode == 0, ran.stdout + ran.stderr
    evaluation.printed = ran.stdout
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        for name in ("LOCAL", "OTHER"):
            patch.setenv(f"{name}_BASE_URL", evaluation.env[f"{name}_BASE_URL"])
            patch.setenv(f"{name}_API_KEY", "none")
        patch.setenv("INSPECT_DISPLAY", "plain")
        yield evaluation
    server.shutdown()
    server.server_close()


@pytest.fixture(scope="module")
def light(done: Evaluation) -> Path:
    """The log without its events, which are most of it."""
    from inspect_ai.log import write_eval_log

    log = read(done.log)
    for sample in log.samples:
        sample.events = []
    write_eval_log(log, str(path := done.folder / "light.eval"))
    return path


def inspect(command: str) -> None:
    """Inspect's command line in this process: a new one imports for some seconds."""
    from inspect_ai._cli.main import inspect as cli

    with suppress(SystemExit):
        cli(shlex.split(command), auto_envvar_prefix="INSPECT", standalone_mode=False)


def killed(command: str, calls: int) -> None:
    """Kill the command after `calls` calls of its scorer."""
    file = Path("calls.txt")
    killed_when(
        lambda: file.exists() and len(file.read_text().splitlines()) > calls, inspect, command
    )


def read(path: Path) -> Any:
    from inspect_ai.log import read_eval_log

    return read_eval_log(str(path))


def gates(log: Any) -> dict[str, dict[str, Any]]:
    return {s.id: {**s.scores["gated"].metadata["gate"], "log": None} for s in log.samples}


def test_the_commands_of_the_page(done: Evaluation) -> None:
    log = read(done.log)
    assert len(log.samples) == 80
    (scores,) = log.results.scores
    ends = ["low", "high", "low_questions", "high_questions"]
    assert list(scores.metrics) == ["estimate", *ends, "verified"]
    values = {name: metric.value for name, metric in scores.metrics.items()}
    assert 0 <= values["low"] <= values["estimate"] <= values["high"] <= 1
    gate = gates(log)
    verified = {id_ for id_, each in gate.items() if each["verify"]}
    assert scores.scored_samples == len(verified)
    assert scores.unscored_samples == len(log.samples) - len(verified) > 0
    assert values["verified"] == len(verified) / len(log.samples)
    assert len(verified) == 0.2 * len(log.samples)
    for sample in log.samples:
        score = sample.scores["gated"]
        assert (score.value == score.value) == gate[sample.id]["verify"]
        assert gate[sample.id]["signal"] == "ok"
        assert gate[sample.id]["propensity"] > 0
        json.dumps(score.metadata, allow_nan=False)
    assert f"Score of all {len(gate)} outputs, {len(verified)} of them checked:" in done.printed


def test_killed_and_run_again(light: Path) -> None:
    """It ends as one run does, and calls the scorer again only for samples under way."""
    command = (
        f"score {light} --scorer gatekeeper/gated -S scorer=slow -S budget=0.2 "
        "-S log=slow.db --action overwrite --output-file slow.eval --overwrite"
    )
    killed(command, 5)
    inspect(command)
    gate = gates(read(Path("slow.eval")))
    assert gate == gates(read(light))
    called = Counter(Path("calls.txt").read_text().split())
    assert called.keys() == {id_ for id_, each in gate.items() if each["verify"]}
    assert called.total() <= len(called) + 32


def test_with_the_whole_budget_it_is_the_scorer_itself(light: Path) -> None:
    """And the page's table: budgets of 0.2 and 1; the interval holds the scorer's own metric."""
    from inspect_ai import score
    from inspect_ai.scorer import match

    from gatekeeper.adapters.inspect_ai import gated

    log, how = read(light), {"action": "overwrite", "display": "none"}
    own = score(log, match(), **how)
    for _ in range(2):  # the second time from the log
        ours = score(log, gated("match", log="whole.db", budget=1), **how)
        for mine, theirs in zip(ours.samples, own.samples, strict=True):
            a, b = mine.scores["gated"], theirs.scores["match"]
            assert (a.value, a.answer, a.explanation) == (b.value, b.answer, b.explanation)
        (a, all_samples), (b,) = ours.results.scores, own.results.scores
        for name, metric in b.metrics.items():
            assert a.metrics[name] == metric
        accuracy = b.metrics["accuracy"].value
        ends = [all_samples.metrics[name].value for name in ("estimate", "low", "high")]
        assert ends == [accuracy] * 3
        assert a.unscored_samples == 0
    part = {name: metric.value for name, metric in log.results.scores[0].metrics.items()}
    found = [[part[name] for name in ("estimate", "low", "high")], ends]
    table = re.findall(r"\| [\d.]+ \| ([\d.]+) \| ([\d.]+) – ([\d.]+) \| ([\d.]*) ?\|", PAGE)
    assert [[f"{value:.3f}" for value in row] for row in found] == [list(row[:3]) for row in table]
    assert f"{accuracy:.3f}" == table[1][3]
    assert part["low"] <= accuracy <= part["high"]


def test_floats_and_epochs_are_reduced_by_inspect(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """At budget 1 every number of its own is equal to the last digit."""
    from inspect_ai import Task, eval, score
    from inspect_ai.dataset import Sample
    from inspect_ai.scorer import Score, Scorer, mean, scorer, stderr
    from inspect_ai.solver import Solver, solver

    from gatekeeper.adapters.inspect_ai import gated

    @solver
    def still() -> Solver:
        async def solve(state: Any, generate: Any) -> Any:
            return state

        return solve

    @scorer(metrics=[mean(), stderr()])
    def floating() -> Scorer:
        async def score(state: Any, target: Any) -> Score:
            return Score(value=(int(state.sample_id) * 7 + state.epoch**2) % 11 / 13)

        return score

    monkeypatch.chdir(tmp_path)
    task = Task(dataset=[Sample(id=n, input="?") for n in range(12)], solver=still(), epochs=3)
    (log,) = eval(task, model="mockllm/model", display="none", log_dir="logs")
    assert log.status == "success"
    truth = sum((n * 7 + e**2) % 11 / 13 for n in range(12) for e in (1, 2, 3)) / 36
    for reducer in ("mean", "median", "mode", "max", "at_least_2", "pass_at_2", ["mean", "max"]):
        how = {"display": "none", "epochs_reducer": reducer, "action": "overwrite"}
        own = score(log, floating(), **how).results.scores
        found = score(log, gated("floating", log="run.db", budget=1), **how).results.scores
        ours = [each for each in found if "mean" in each.metrics]
        assert [each.reducer for each in ours] == [each.reducer for each in own]
        assert [each.metrics for each in ours] == [each.metrics for each in own]
        whole = {  # of the epochs as they are, whatever reduces them
            tuple(each.metrics[name].value for name in ("estimate", "low", "high"))
            for each in found
            if "estimate" in each.metrics
        }
        assert whole.pop() == pytest.approx((truth,) * 3, rel=1e-15)


def test_a_total_and_a_warmup(light: Path) -> None:
    """`inspect score` does not know how many samples will come: a total alone needs the horizon."""
    from inspect_ai import score
    from inspect_ai._util.error import PrerequisiteError

    from gatekeeper.adapters.inspect_ai import gated

    made = read(light)

    def selected(**given: Any) -> int:
        log = score(made, gated("match", **given), action="overwrite", display="none")
        return sum(each["verify"] for each in gates(log).values())

    assert selected(log="nine.db", total=9, horizon=80) == 9
    warm = selected(log="warm.db", goal="errors", warmup=12, total=20, horizon=80)
    assert 19 <= warm <= 20
    with pytest.raises(PrerequisiteError) as error:
        selected(log="alone.db", total=9)
    assert "horizon" in str(error.value.message)


def test_in_one_go_and_without_log_probabilities(
    done: Evaluation, caplog: pytest.LogCaptureFixture
) -> None:
    from inspect_ai import eval

    names: dict[str, Any] = {"__name__": "arithmetic"}
    exec(PROGRAM, names)
    names["samples"] = list(names["arithmetic"](size=60).dataset)
    exec(IN_ONE_GO.replace("Task(", "made = Task("), names)
    model = "openai-api/local/gatekeeper-bundled"
    (log,) = eval(names["made"], model=model, max_tokens=4, display="none", log_dir="once")
    assert log.status == "success"
    gate = gates(log)
    said = [r.getMessage() for r in caplog.records if r.name == "gatekeeper"]
    assert sum("came without log-probabilities" in text for text in said) == 1
    assert {each["signal"] for each in gate.values()} == {"missing"}
    assert log.results.scores[0].unscored_samples == 42
    assert [log.eval.task_id in file.name for file in Path("once").glob("*.db")] == [True]


def test_a_scorer_that_never_has_a_score_is_named(
    light: Path, caplog: pytest.LogCaptureFixture
) -> None:
    inspect(
        f"score {light} --scorer gatekeeper/gated -S scorer=silent -S log=silent.db "
        "--action overwrite --output-file silent.eval --overwrite"
    )
    said = [r.getMessage() for r in caplog.records if r.name == "gatekeeper"]
    assert sum("could not tell whether" in text for text in said) == 1, said


ODD = """
from inspect_ai import Task, task
from inspect_ai.dataset import Sample
from inspect_ai.model import ModelOutput
from inspect_ai.scorer import Score, Scorer, accuracy, scorer
from inspect_ai.solver import solver

from gatekeeper.adapters.inspect_ai import gated

VALUES = {
    "infinite": lambda n: float("inf") if n % 2 else 1.0,
    "unscored": lambda n: float("nan"),
    "empty": lambda n: {},
    "raising": lambda n: 1 // (n % 2),
}


@scorer(metrics=[accuracy()])
def odd(kind: str) -> Scorer:
    async def score(state, target):
        value = VALUES[kind](int(state.input_text))
        return Score(value=value, metadata={"graded by": "odd"})
    return score


@solver
def repeats():
    async def solve(state, generate):
        state.output = ModelOutput.from_content("none", state.input_text)
        return state
    return solve


@task
def odds(kind: str, size: int = 20, budget: float = 0.5) -> Task:
    samples = [Sample(id=n, input=str(n)) for n in range(size)]
    return Task(dataset=samples, solver=repeats(), scorer=gated("odd", kind=kind, budget=budget))
"""


@pytest.mark.parametrize(
    ("kind", "more", "expected"),
    [
        ("infinite", "-T budget=1", {"estimate": 1.0, "verified": 0.5}),
        ("raising", "-T budget=1 --no-fail-on-error", {"estimate": 1.0, "verified": 0.5}),
        ("unscored", "", {"low": 0.0, "high": 1.0, "verified": 0.0}),
        ("empty", "", {"low": 0.0, "high": 1.0, "verified": 0.0}),
        ("infinite", "-T size=1", {"low": 0.0, "high": 1.0, "verified": 0.0}),
    ],
)
def test_no_score_is_neither_right_nor_wrong(
    kind: str, more: str, expected: dict[str, float], tmp_path: Path, monkeypatch: Any
) -> None:
    """A scorer that raises, or gives no finite number: an interval for all, or bounds; the scorer's
    own metadata stays."""
    (tmp_path / "odds.py").write_text(ODD)
    monkeypatch.chdir(tmp_path)
    inspect(f"eval odds.py -T kind={kind} {more} --model mockllm/model --display none")
    (path,) = (tmp_path / "logs").glob("*.eval")
    log = read(path)
    assert log.status == "success", log.error
    scores = [sample.scores["gated"] for sample in log.samples if not sample.error]
    assert all(score.metadata["gate"]["id"] for score in scores)
    assert all("graded by" in s.metadata for s in scores if s.metadata["gate"]["verify"])
    found = {name: m.value for name, m in log.results.scores[-1].metrics.items()}
    assert expected.items() <= found.items()
    if "estimate" in expected:
        assert found["low"] < found["estimate"] == found["high"]
    else:
        assert "estimate" not in found


SEVERAL = """
import asyncio

from inspect_ai import Task, task
from inspect_ai.dataset import Sample
from inspect_ai.scorer import Score, Scorer, mean, scorer
from inspect_ai.solver import generate

from gatekeeper.adapters.inspect_ai import gated


@scorer(metrics={"*": [mean()]})
def several() -> Scorer:
    async def score(state, target):
        with open("calls.txt", "a") as calls:
            calls.write(f"{state.sample_id}/{state.epoch}\\n")
        await asyncio.sleep(0.05)
        shared = len(set(target.text) & set(state.output.completion))
        return Score(value={"part": shared / len(set(target.text)), "length": len(target.text)})
    return score


@task
def sums(budget: float = 0.5) -> Task:
    samples = [Sample(id=n, input=f"What is {n} + {n}?", target=str(n + n)) for n in range(10, 30)]
    return Task(dataset=samples, solver=generate(), scorer=gated("several", budget=budget))
"""


def test_models_epochs_and_a_retry_after_kill_9(
    done: Evaluation, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """At temperature 0.8: no output is scored twice, and each evaluation has a gate of its own."""
    (tmp_path / "sums.py").write_text(SEVERAL)
    monkeypatch.chdir(tmp_path)
    calls = tmp_path / "calls.txt"
    command = "eval sums.py --temperature 0.8 --max-tokens 8 --epochs 2 --max-samples 8 --model "
    killed(f"{command} openai-api/local/gatekeeper-bundled", 5)
    inspect(f"eval-retry {next((tmp_path / 'logs').glob('*.eval'))}")
    once = Counter(calls.read_text().split())
    assert once.total() <= len(once) + 4  # under way when it was killed
    assert len(once) == 20
    assert len(list((tmp_path / "logs").glob("*.db"))) == 1
    logs = [read(path) for path in sorted((tmp_path / "logs").glob("*.eval"))]
    (score,) = logs[-1].results.scores
    values = {name: metric.value for name, metric in score.metrics.items()}
    for key in ("part", "length"):
        assert values[f"{key}_low"] <= values[f"{key}_estimate"] <= values[f"{key}_high"]
        assert values[f"{key}_low_questions"] <= values[f"{key}_low"]
    assert values["verified"] == 0.5
    both = "openai-api/local/gatekeeper-bundled,openai-api/other/gatekeeper-bundled"
    inspect(f"{command} {both} --log-dir two -T budget=1")
    assert len(list((tmp_path / "two").glob("*.db"))) == 2
    for path in (tmp_path / "two").glob("*.eval"):
        log = read(path)
        found = {score.name: score.metrics for score in log.results.scores}
        parts = [s.scores["gated"].value["part"] for s in log.samples]
        assert found["part"]["mean"].value == pytest.approx(sum(parts) / 40)
        assert found["gated"]["part_low"].value == pytest.approx(sum(parts) / 40)


MARKED = """
import asyncio

from inspect_ai import Task, task
from inspect_ai.dataset import Sample
from inspect_ai.model import get_model
from inspect_ai.scorer import CORRECT, INCORRECT, PARTIAL, Score, Scorer, accuracy, scorer, stderr
from inspect_ai.solver import generate

from gatekeeper.adapters.inspect_ai import gated


@scorer(metrics=[accuracy(), stderr()])
def marked() -> Scorer:
    async def score(state, target):
        with open("calls.txt", "a") as calls:
            calls.write(f"{get_model()} {target.text} {state.sample_id}/{state.epoch}\\n")
        await asyncio.sleep(0.05)
        answer = state.output.completion
        value = CORRECT if f"{{{target.text}}}" in answer else INCORRECT
        return Score(value=value if state.sample_id % 3 else PARTIAL, answer=answer)
    return score


def of(sign: str, results: list[int], budget: float) -> Task:
    samples = [
        Sample(id=n, input=f"What is {n} {sign} {n}?", target=str(result))
        for n, result in enumerate(results, 10)
    ]
    return Task(dataset=samples, solver=generate(), scorer=gated("marked", budget=budget))


@task
def sums(budget: float = 0.5) -> Task:
    return of("+", [n + n for n in range(10, 20)], budget)


@task
def differences(budget: float = 0.5) -> Task:
    return of("-", [0 for n in range(10, 20)], budget)
"""


def test_an_eval_set_of_tasks_and_models_with_partial_credit(
    done: Evaluation, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Killed and run again at temperature 0.8; then everything, which is the scorer itself."""
    (tmp_path / "marks.py").write_text(MARKED)
    monkeypatch.chdir(tmp_path)
    calls = tmp_path / "calls.txt"
    command = (
        "eval-set marks.py --temperature 0.8 --epochs 2 --max-samples 4 --log-dir set "
        "--model openai-api/local/gatekeeper-bundled,openai-api/other/gatekeeper-bundled"
    )
    killed(command, 20)
    inspect(command)
    once = Counter(calls.read_text().splitlines())
    assert len(once) == 40  # half of two tasks, two models, two epochs, ten samples
    assert once.total() <= len(once) + 8  # under way when it was killed
    assert len(list((tmp_path / "set").glob("*.db"))) == 4
    logs = {path: read(path) for path in (tmp_path / "set").glob("*.eval")}
    ended = {path: log for path, log in logs.items() if log.status == "success"}
    assert len({(log.eval.task, log.eval.model) for log in ended.values()}) == 4
    for log in ended.values():
        (score,) = log.results.scores
        values = {name: metric.value for name, metric in score.metrics.items()}
        assert values["low"] <= values["estimate"] <= values["high"]
        assert values["verified"] == 0.5
    some = next(path for path, log in ended.items() if log.eval.task == "sums")
    inspect(
        f"score {some} --scorer gatekeeper/gated -S scorer=marked -S budget=1 "
        "-S log=whole.db --action overwrite --output-file whole.eval --overwrite"
    )
    log = read(tmp_path / "whole.eval")
    found = {n: m.value for score in log.results.scores for n, m in score.metrics.items()}
    marks = [{"C": 1.0, "P": 0.5, "I": 0.0}[s.scores["gated"].value] for s in log.samples]
    assert 0.5 in marks
    assert found["accuracy"] == sum(marks) / 20
    assert {found["estimate"], found["low"], found["high"]} == {found["accuracy"]}
    assert found["low_questions"] < found["accuracy"] < found["high_questions"]


def test_errors_are_one_line(done: Evaluation, light: Path) -> None:
    from inspect_ai import score
    from inspect_ai._util.error import PrerequisiteError

    from gatekeeper.adapters.inspect_ai import gated, main

    def refused(**arguments: Any) -> str:
        with pytest.raises(PrerequisiteError) as error:
            gated(**{"scorer": "match", "log": "bad.db", **arguments})
        return str(error.value.message)

    assert "budget" in refused(budget=3) or "fraction=3" in refused(budget=3)
    assert "-S total=0" in refused(total=0)
    assert "-S warmup=-1" in refused(warmup=-1)
    assert "-S scorer=match" in refused(scorer=None)
    assert "-S log=''" in refused(log="")
    assert "-S warmup=7 is for finding errors: add -S goal=errors" in refused(warmup=7)
    assert "passing='x'" in refused(passing="x")
    assert "-S passing=nan: give a finite number" in refused(passing=float("nan"))
    assert "policy 'nope'" in refused(policy="nope")
    assert "bogus" in refused(bogus=1)
    assert not Path("bad.db").exists()
    own, few = str(done.log.with_suffix(".db")), read(light)
    few.samples = few.samples[:5]  # Inspect copies all of them before it scores one
    with pytest.raises(PrerequisiteError) as error:  # the log was written with another scorer
        score(few, gated("includes", log=own, budget=0.2), display="none")
    assert "was written with -S scorer match (now includes)" in str(error.value.message)
    few.samples[0].output.completion = "another answer"
    with pytest.raises(PrerequisiteError) as error:  # the log is of another eval log
        score(few, gated("match", log=own, budget=0.2), display="none")
    assert "it belongs to another eval log" in str(error.value.message)
    with pytest.raises(PrerequisiteError) as error:
        score(few, gated("match"), display="none")
    assert "-S log is needed" in str(error.value.message)
    assert main(["report", "nowhere.db"]) == 2
    with pytest.raises(PrerequisiteError) as error:
        inspect(f"score {light} --scorer gatekeeper/gated -S scorer=mtch -S log=x.db")
    assert "-S scorer=mtch: no scorer of that name" in str(error.value.message)


def test_outputs_of_every_kind() -> None:
    """None at all, and an answer after reasoning, whose tokens do not count."""
    from inspect_ai.model import ModelOutput
    from inspect_ai.solver import TaskState

    from gatekeeper.adapters.inspect_ai.outputs import generation_of_state
    from gatekeeper.signals import signals_of

    def state(output: ModelOutput) -> TaskState:
        return TaskState("mockllm/model", "a", 2, "?", [], output=output)

    empty = generation_of_state(state(ModelOutput()))
    assert (empty.id, empty.text, signals_of(empty).state) == ("a/2", "", "missing")

    def token(text: str, p: float) -> dict[str, Any]:
        top = [{"token": text, "logprob": p}, {"token": "?", "logprob": p - 1}]
        return {"token": text, "logprob": p, "top_logprobs": top}

    thought = ModelOutput.model_validate(
        {
            "choices": [
                {
                    "message": {
                        "role": "assistant",
                        "content": [
                            {"type": "reasoning", "reasoning": "six times seven"},
                            {"type": "text", "text": "42"},
                        ],
                    },
                    "logprobs": {"content": [token("six times seven", -3.0), token("42", -0.5)]},
                }
            ],
            "usage": {"input_tokens": 5, "output_tokens": 2, "total_tokens": 7},
        }
    )
    answer = generation_of_state(state(thought))
    assert (answer.text, answer.logprob.tolist(), answer.output_tokens) == ("42", [-0.5], 1)
    assert signals_of(answer).state == "ok"
