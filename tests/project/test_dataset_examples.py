"""examples/mbpp.py and examples/math_dataset.py, on rows of the real shape.

And on the real data, if they are beside the repository; they are never shipped.
"""

from __future__ import annotations

import json
import random
import re
import runpy
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from logged_runs import events, final_state
from mutants import mutants
from serving import serving

from gatekeeper.cli import main as gatekeeper
from gatekeeper.errors import SandboxUnavailableError
from gatekeeper.io.datasets import mbpp_task
from gatekeeper.io.tasks import as_tasks
from gatekeeper.policies import DEFAULT_POLICY
from gatekeeper.sandbox import LocalSandbox
from gatekeeper.types import Generation, Outcome, Verdict

ROOT = Path(__file__).resolve().parents[2]
DATA = ROOT / "../shared/data"
FILES = {"mbpp": DATA / "mbpp.jsonl", "math_dataset": DATA / "math_500.jsonl"}
N = 64
Example = Callable[[Sequence[str]], int]

MBPP_ROWS: list[dict[str, Any]] = [
    {
        "task_id": i,
        "text": f"Write a function to add {i} to a number.",
        "code": f"def plus_{i}(x):\n    return x + {i}",
        "test_list": [f"assert plus_{i}(2) == {i + 2}", f"assert plus_{i}(-1) == {i - 1}"],
        "test_setup_code": "",
        "challenge_test_list": [],
    }
    for i in range(1, 6)
]
MATH_ROWS: list[dict[str, Any]] = [
    {
        "problem": f"What is ${i}^2$?",
        "solution": rf"It is $\boxed{{{i * i}}}$.",
        "answer": str(i * i),
        "subject": "Algebra",
        "level": 1,
        "unique_id": f"test/algebra/{i}.json",
    }
    for i in range(1, 6)
]


def example(name: str) -> Example:
    found: Example = runpy.run_path(str(ROOT / "examples" / f"{name}.py"))["main"]
    return found


def written(path: Path, rows: Iterable[Mapping[str, Any]]) -> str:
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return str(path)


def at_hand(name: str) -> str:
    if not FILES[name].exists():
        pytest.skip(f"not here: {FILES[name]}")
    return str(FILES[name])


def local_sandbox() -> None:
    try:
        LocalSandbox().close()
    except SandboxUnavailableError as error:
        pytest.skip(str(error))


# -- real data -----------------------------------------------------------------------------------


@pytest.mark.parametrize("name", FILES)
def test_a_killed_example_ends_as_an_uninterrupted_one(name: str, tmp_path: Path) -> None:
    """kill -9 in the middle, then the same command: the log of an uninterrupted run."""
    local_sandbox()
    data, rng = at_hand(name), random.Random(5)
    whole, broken = tmp_path / "whole.db", tmp_path / "broken.db"

    def command(log: Path) -> list[str]:
        run = [sys.executable, str(ROOT / "examples" / f"{name}.py"), "--data", data]
        run += ["--limit", str(N), "--max-tokens", "20", "--budget", "0.3", "--seed", "3"]
        return [*run, "--sandbox", "local", "--log", str(log)]

    done = subprocess.run(command(whole), check=True, capture_output=True, text=True)
    assert "warm-up: the first ones, all verified" in done.stdout
    total = events(whole)
    target = rng.uniform(0.2, 0.9) * total
    child = subprocess.Popen(command(broken), stdout=subprocess.DEVNULL)
    while events(broken) < target and child.poll() is None:
        time.sleep(0.02)
    child.send_signal(signal.SIGKILL)
    child.wait()
    subprocess.run(command(broken), check=True, capture_output=True)
    assert final_state(broken, DEFAULT_POLICY, N) == final_state(whole, DEFAULT_POLICY, N)


def test_mbpp_references_and_mutants(capsys: pytest.CaptureFixture[str]) -> None:
    local_sandbox()
    arguments = ["--check-references", "--sandbox", "local", "--limit", "40", "--mutants", "2"]
    assert example("mbpp")(["--data", at_hand("mbpp"), *arguments]) == 0
    out = capsys.readouterr().out
    assert "solutions: 40 of 40 verdicts agree" in out
    found = re.search(r"mutants: (\d+) of (\d+) verdicts agree", out)
    assert found is not None
    assert 60 < int(found[1]) == int(found[2])
    wrong = re.search(r"failed in the plain run, failed in the sandbox: (\d+)", out)
    assert wrong is not None
    assert int(wrong[1]) > 30


def test_math_references(capsys: pytest.CaptureFixture[str]) -> None:
    assert example("math_dataset")(["--data", at_hand("math_dataset"), "--check-references"]) == 0
    assert capsys.readouterr().out == "solutions: 500 of 500 agree with their answers\n"


# -- rows of our own -----------------------------------------------------------------------------


def test_mutants_are_few_where_little_can_be_changed() -> None:
    tasks = as_tasks(MBPP_ROWS, convert=mbpp_task)
    found = list(mutants(tasks, per_task=200))
    assert len({(m.task_id, m.code) for m in found}) == len(found) < 5 * 200
    assert {m.task_id for m in found} == {task["id"] for task in tasks}


def test_a_sandbox_that_passes_everything_is_detected(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    class Credulous:
        def __init__(self, **_: object) -> None: ...
        def __enter__(self) -> Credulous:
            return self

        def __exit__(self, *_: object) -> None: ...
        def verify_many(self, pairs: Iterable[tuple[Generation, object]]) -> Iterable[Outcome]:
            return [Outcome(Verdict.PASSED) for _ in pairs]

    main = example("mbpp")
    monkeypatch.setitem(main.__globals__["SANDBOXES"], "local", Credulous)
    data = written(tmp_path / "mbpp.jsonl", MBPP_ROWS)
    arguments = ["--data", data, "--check-references", "--sandbox", "local", "--mutants", "3"]
    assert main(arguments) == 1
    out = capsys.readouterr().out
    assert "solutions: 5 of 5 verdicts agree" in out
    assert "failed in the plain run, in the sandbox Outcome(verdict=<Verdict.PASSED" in out


def test_a_wrong_answer_of_the_data_set_is_detected(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    rows = [*MATH_ROWS[:-1], MATH_ROWS[-1] | {"answer": "26"}]
    data = written(tmp_path / "math.jsonl", rows)
    assert example("math_dataset")(["--data", data, "--check-references"]) == 1
    out = capsys.readouterr().out
    assert out.startswith("solutions: 4 of 5 agree")
    assert "test/algebra/5.json: failed, found '25', gold '26'" in out


@pytest.mark.filterwarnings(  # of the package `docker`, where no engine answers
    "ignore:unclosed <socket:ResourceWarning",
    "ignore:Exception ignored in. <socket:pytest.PytestUnraisableExceptionWarning",
)
@pytest.mark.parametrize(
    ("name", "arguments", "says"),
    [
        ("mbpp", ["--data", "none.jsonl"], "none.jsonl cannot be read: No such file"),
        ("mbpp", ["--data", "."], "cannot be read: Is a directory"),
        ("mbpp", ["--data", "empty.jsonl"], "empty.jsonl holds no task"),
        ("mbpp", ["--data", "math.jsonl"], "math.jsonl, line 1: field 'test_list' is missing"),
        ("mbpp", ["--data", "mbpp.jsonl"], "choose what runs the model's code"),
        ("mbpp", ["--data", "mbpp.jsonl", "--check-references"], "sandbox=None: choose one of"),
        ("mbpp", ["--data", "mbpp.jsonl", "--sandbox", "docker"], "no Docker engine answers"),
        (
            "mbpp",
            ["--data", "mbpp.jsonl", "--check-references", "--sandbox", "docker"],
            "no Docker engine answers",
        ),
        ("math_dataset", ["--data", "mbpp.jsonl"], "line 1: field 'unique_id' is missing"),
        (
            "math_dataset",
            ["--data", "math.jsonl", "--limit", "0"],
            "--limit '0': give a whole number of at least 1",
        ),
        (
            "math_dataset",
            ["--data", "math.jsonl", "--model", "m", "--base-url", "http://127.0.0.1:9/v1"],
            "http://127.0.0.1:9/v1 cannot be reached: ",
        ),
        ("math_dataset", ["--data", "math.jsonl", "--model", "m"], "no key in OPENAI_API_KEY"),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, list) else None,
)
def test_invalid_input_is_one_line(
    name: str,
    arguments: list[str],
    says: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    monkeypatch.setenv("DOCKER_HOST", f"unix://{tmp_path}/none.sock")
    written(tmp_path / "empty.jsonl", [])
    written(tmp_path / "mbpp.jsonl", MBPP_ROWS)
    written(tmp_path / "math.jsonl", MATH_ROWS)
    assert example(name)(arguments) == 2
    captured = capsys.readouterr()
    *plan, message = captured.err.splitlines()
    assert says in message
    assert (captured.out, len(plan)) == ("", "cannot be reached" in says)  # the others: before it


def test_a_data_set_by_its_name(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def load_dataset(name: str, *, split: str) -> list[dict[str, Any]]:
        if name == "unreachable":
            raise ConnectionError("cannot\nreach it")
        assert split == "test"
        return MATH_ROWS[:0] if name == "empty" else MATH_ROWS

    def run(name: str) -> tuple[int, str]:
        code = example("math_dataset")(["--dataset", name, "--limit", "3", "--check-references"])
        captured = capsys.readouterr()
        assert (captured.out + captured.err).count("\n") == 1
        return code, captured.out + captured.err

    monkeypatch.setitem(
        sys.modules,
        "datasets",
        SimpleNamespace(load_dataset=load_dataset),  # type: ignore[arg-type]
    )
    assert run("math") == (0, "solutions: 3 of 3 agree with their answers\n")
    code, said = run("unreachable")
    assert (code, "cannot be loaded: cannot reach it; " in said) == (2, True)
    assert "holds no task" in run("empty")[1]
    monkeypatch.setitem(sys.modules, "datasets", None)
    assert "pip install 'datasets>=3'" in run("math")[1]


def test_a_model_without_logprobs(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    data = written(tmp_path / "math.jsonl", MATH_ROWS)
    with serving(refuse_logprobs=True) as client:
        arguments = ["--model", "gatekeeper-bundled", "--base-url", str(client.base_url)]
        assert example("math_dataset")(["--data", data, "--max-tokens", "10", *arguments]) == 0
    assert "None of the 5 outputs came with log-probabilities" in capsys.readouterr().out


def test_the_page_on_data_sets_runs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """docs/datasets.md: every command but the server's, and the program."""
    local_sandbox()
    monkeypatch.chdir(tmp_path)
    written(tmp_path / "mbpp.jsonl", MBPP_ROWS)
    written(tmp_path / "math_500.jsonl", MATH_ROWS)
    rows = {"google-research-datasets/mbpp": MBPP_ROWS, "HuggingFaceH4/MATH-500": MATH_ROWS}
    hub = SimpleNamespace(load_dataset=lambda name, split: rows[name])
    monkeypatch.setitem(sys.modules, "datasets", hub)  # type: ignore[arg-type]
    page = (ROOT / "docs" / "datasets.md").read_text().replace("\\\n", "")
    commands = re.findall(r"^ {4,}(?:python examples/(\w+)\.py|(gatekeeper)) (.*)$", page, re.M)
    assert len(commands) == 8
    with serving() as client:
        for name, ours, line in commands:
            line = line.replace("http://127.0.0.1:8011/v1", str(client.base_url).rstrip("/"))
            arguments = line.replace("--sandbox docker", "--sandbox local").split()
            if "--log" in arguments:  # each with a log of its own: the page's are of one model
                arguments[arguments.index("--log") + 1] = f"{len(list(tmp_path.iterdir()))}.db"
            more = [] if "--check-references" in arguments else ["--max-tokens", "10"]
            entry = gatekeeper if ours else example(name)
            assert entry([*arguments, *more]) == 0, line
    (program,) = re.findall(r"```python\n(.*?)```", page, re.DOTALL)
    capsys.readouterr()
    exec(program, {})
    fields = "['id', 'kind', 'prompt', 'reference', 'test_setup_code', 'tests']"
    assert capsys.readouterr().out == f"5 Mbpp/1 code {fields}\n"
