"""docs/evalplus.md with EvalPlus itself, in an environment of its own: `make test-harness`."""

from __future__ import annotations

import gzip
import json
import os
import re
import shlex
import sqlite3
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import closing
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest

if find_spec("evalplus") is None:
    pytest.skip("evalplus is not installed: run `make test-harness`", allow_module_level=True)

import bundled_humaneval
from evalplus import evaluate
from evalplus.data import humaneval, mbpp
from evalplus.eval import untrusted_check
from killing import killed_when
from scripted_upstream import Request, Script, ScriptedUpstream, completion, reply

from gatekeeper.adapters.evalplus.checkers import check_program
from gatekeeper.bundled.serve import Server
from gatekeeper.cli import main
from gatekeeper.io.jsonl import read_jsonl

pytestmark = pytest.mark.filterwarnings("default")  # the harness's own

PAGE = (Path(__file__).parents[2] / "docs" / "evalplus.md").read_text()
GATED, WHOLE, MADE = (
    block.replace("\\\n", " ") for block in re.findall(r"```bash\n(.*?)```", PAGE, re.DOTALL)
)
N = 80  # problems


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """problems.jsonl, and samples.jsonl by the bundled model."""
    path = tmp_path_factory.mktemp("evalplus")
    bundled_humaneval.main(path, N)
    return path


@pytest.fixture
def place(folder: Path, tmp_path: Path) -> Path:
    for file in folder.glob("*.jsonl"):
        (tmp_path / file.name).write_bytes(file.read_bytes())
    return tmp_path


Ran = subprocess.CompletedProcess[str]


@pytest.fixture
def run(
    place: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> Callable[[str], Ran]:
    """Runs a command in this process: a new one loads EvalPlus for a second."""
    monkeypatch.chdir(place)
    monkeypatch.setattr(humaneval, "HUMANEVAL_OVERRIDE_PATH", "problems.jsonl")
    monkeypatch.setattr(mbpp, "MBPP_OVERRIDE_PATH", "mbpp.jsonl")
    monkeypatch.setattr(evaluate, "CACHE_DIR", str(place / "cache" / "evalplus"))
    monkeypatch.setenv("OPENAI_API_KEY", "none")
    return lambda line: Ran(line, main(words(line)), *capsys.readouterr())


def words(line: str) -> list[str]:
    gatekeeper, *arguments = shlex.split(line)
    assert gatekeeper == "gatekeeper"
    return arguments


def own_process(place: Path, line: str, **more: str) -> Ran:
    """A command line of gatekeeper or of Python, in a process of its own."""
    name, *arguments = shlex.split(line)
    command = [str(Path(sys.executable).with_name(name)), *arguments]
    given = {"HUMANEVAL_OVERRIDE_PATH": "problems.jsonl", "MBPP_OVERRIDE_PATH": "mbpp.jsonl"}
    env = {**os.environ, **given, "XDG_CACHE_HOME": str(place / "cache"), **more}
    return subprocess.run(command, cwd=place, env=env, capture_output=True, text=True, check=False)


def test_a_budget_of_1_gives_evalplus_s_own_pass_at_1(
    place: Path, run: Callable[[str], Ran]
) -> None:
    """The page's command beside EvalPlus's; our sandbox gives its tests the same verdicts."""
    (place / "own.jsonl").write_bytes((place / "samples.jsonl").read_bytes())
    own = own_process(place, "python -m evalplus.evaluate humaneval own.jsonl")
    assert own.returncode == 0, own.stderr[-3000:]
    base, plus = re.findall(r"pass@1:\s+([0-9.]+)", own.stdout)
    gated = own_process(place, WHOLE)
    assert gated.returncode == 0, gated.stderr[-3000:]
    assert f"humaneval (base tests) pass@1: {base}, all samples checked\n" in gated.stdout
    assert f"humaneval+ (base + extra tests) pass@1: {plus}, all samples checked\n" in gated.stdout
    assert 0.2 < float(plus) < float(base) < 0.9
    theirs = json.loads((place / "own_eval_results.json").read_text())["eval"]
    ours = json.loads((place / "samples_eval_results.json").read_text())["eval"]
    assert ours == theirs
    for line in read_jsonl(place / "verdicts.jsonl", dict):
        (found,) = theirs[line["id"].removesuffix("/0")]
        right = found["base_status"] == found["plus_status"] == "pass"
        assert (line["verdict"] == "passed") == right, line
    fenced = run(f"{WHOLE} --sandbox local --json")
    if "no isolation" not in fenced.stderr:
        assert f"{json.loads(fenced.stdout)['scores']['plus']['pass@1']['point']:.3f}" == plus


TYPED = 'from typing import List\n\n\ndef f(x: List[int]):\n    """Doc."""\n'
PLAIN = 'def f(x):\n    """Doc."""\n'
FENCED = f"{PLAIN}    '''Such as\n\n```python\nf(1)\n```\n'''\n"
MIXED = "    return [1.0, 2.0] if x else [1, 2.0]\n"
# Prompt and body of the reference solution, a solution, inputs, and EvalPlus's verdict.
ODD: list[tuple[str, str, str, list[Any], str]] = [
    (TYPED, "    return sum(x)\n", "def f(x: List[int]):\n    return sum(x)\n", [[1]], "failed"),
    (TYPED, "    return sum(x)\n", "    return sum(x)\n", [[1]], "failed"),
    (PLAIN, "    return x\n", f"{FENCED}    return x\n", [1], "passed"),
    # A tolerance that one output needs holds for those after it.
    (PLAIN, MIXED, PLAIN + MIXED.replace("[1, 2.0]", "[1, 2.00000001]"), [1, 0], "passed"),
    (PLAIN, MIXED, PLAIN + MIXED.replace("[1, 2.0]", "[1, 2.1]"), [1, 0], "failed"),
]


def test_a_sandbox_runs_the_whole_solution_and_nothing_else(
    place: Path, run: Callable[[str], Ran]
) -> None:
    """As EvalPlus: without the prompt, and where Markdown is in a docstring."""
    with (place / "problems.jsonl").open("w") as problems:
        for number, (prompt, body, _, inputs, _) in enumerate(ODD):
            made: dict[str, Any] = {"task_id": f"HumanEval/{number}", "prompt": prompt}
            made |= {"entry_point": "f", "canonical_solution": body, "contract": "", "atol": 0}
            made |= {"base_input": [[value] for value in inputs], "plus_input": []}
            problems.write(json.dumps(made) + "\n")
    with (place / "samples.jsonl").open("w") as samples:
        for number, (_, _, solution, _, _) in enumerate(ODD):
            line = {"task_id": f"HumanEval/{number}", "solution": solution}
            samples.write(json.dumps(line) + "\n")
    for sandbox in ("evalplus", "local", "docker"):
        done = run(f"{WHOLE} --sandbox {sandbox}")
        if done.returncode == 2 and "sandbox" in done.stderr.splitlines()[-1]:
            continue
        assert done.returncode == 0, done.stderr[-2000:]
        verdicts = [line["verdict"] for line in read_jsonl(place / "verdicts.jsonl", dict)]
        assert verdicts == [verdict for *_, verdict in ODD], sandbox


ENDLESS = "import time\nwhile True:\n    time.sleep(1)\n"
KILLING = """import ctypes, os, time
time.sleep(0.1)
ctypes.CDLL(None).kill(os.getppid(), 9)
"""


def test_a_sample_that_kills_its_checker_costs_no_other_verdict(place: Path) -> None:
    """Beside one without end, whose process outlives the checker: the command ends, too."""
    samples = [json.loads(line) for line in (place / "samples.jsonl").read_text().splitlines()]
    for sample, solution in zip(samples, (ENDLESS, KILLING), strict=False):
        sample["solution"] = solution
    (place / "samples.jsonl").write_text("".join(f"{json.dumps(s)}\n" for s in samples[:8]))
    process = own_process(place, f"{WHOLE} --json")
    assert process.returncode == 1, process.stderr[-3000:]
    report = json.loads(process.stdout)
    assert (report["verified"], report["could_not_tell"]) == (7, 1)
    lines = list(read_jsonl(place / "verdicts.jsonl", dict))
    assert [line["verdict"] for line in lines[:2]] == ["timeout", "infra_error"]
    assert "passed" in {line["verdict"] for line in lines[2:]}


def test_the_page_s_command_goes_on_after_kill_9(place: Path, run: Callable[[str], Ran]) -> None:
    killed_when(lambda: outcomes(place) > 8, main, words(GATED))
    before = outcomes(place)
    again = own_process(place, f"{GATED} --json")
    assert again.returncode == 0, again.stderr[-3000:]
    reported = json.loads(again.stdout)
    assert before < outcomes(place) == reported["verified"] == len(reported["selected"])
    assert reported["outputs"] == N
    assert reported["warmup"] == 0
    assert reported["missing_signal"] == 0
    assert reported["verified"] == 0.2 * N
    found = reported["scores"]["plus"]["pass@1"]
    assert 0 < found["low"] < found["point"] < found["high"] < 1
    whole = run(f"{GATED} --json".replace("run.db", "other.db"))
    assert json.loads(whole.stdout) == reported
    # A finished log says how long its checks took: the same as the command that made it.
    told = [run(GATED.replace("run.db", "third.db")).stdout for _ in range(2)]
    assert told[0] == told[1]
    assert re.search(r"The checks take \d+ s with --workers 2; those of all", told[0])
    # The page's table: the interval of the part holds the score of all.
    every = json.loads(run(f"{WHOLE} --json").stdout)["scores"]
    table = re.findall(r"tests \| ([\d.]+), ([\d.]+) – ([\d.]+) \| ([\d.]+) \|", PAGE)
    for kind, row in zip(("base", "plus"), table, strict=True):
        part = reported["scores"][kind]["pass@1"]
        figures = [*(part[key] for key in ("point", "low", "high")), every[kind]["pass@1"]["point"]]
        assert [f"{figure:.3f}" for figure in figures] == list(row)
        assert part["low"] <= figures[-1] <= part["high"]


def outcomes(place: Path) -> int:
    try:
        with closing(sqlite3.connect(place / "run.db")) as log:
            (count,) = log.execute("select count(*) from events where kind='outcome'").fetchone()
            return int(count)
    except sqlite3.OperationalError:
        return 0


def test_a_part_of_the_problems_and_its_plan(place: Path, run: Callable[[str], Ran]) -> None:
    """`--dry-run` writes nothing; `--limit` checks the first problems, and leaves EvalPlus's file
    of results to a run of all."""
    before = sorted(place.iterdir())
    part = f"{WHOLE} --limit 20 --json"
    planned = run(f"{part} --dry-run")
    assert planned.returncode == 0, planned.stderr[-3000:]
    assert sorted({*place.iterdir()} - {place / "cache"}) == before
    plan = json.loads(planned.stdout)
    assert (plan["samples"], plan["to_verify_at_most"]) == (20, 20)
    done = run(part)
    assert done.returncode == 0, done.stderr[-3000:]
    first = [line["task_id"] for line in read_jsonl(place / "samples.jsonl", dict)][:20]
    checked = [line["id"] for line in read_jsonl(place / "verdicts.jsonl", dict)]
    assert checked == [f"{task}/0" for task in first]
    assert not (place / "samples_eval_results.json").exists()


def test_folders_and_unequal_samples_of_mbpp(place: Path, run: Callable[[str], Ran]) -> None:
    """pass@k as EvalPlus prints it, of a folder; a part of it holds that in its intervals."""
    solutions = list(read_jsonl(place / "samples.jsonl", dict))[:8]
    problems = [json.loads(line) for line in (place / "problems.jsonl").read_text().splitlines()]
    with (place / "mbpp.jsonl").open("w") as file:
        for number, problem in enumerate(problems[:8]):
            file.write(json.dumps({**problem, "task_id": f"Mbpp/{number + 2000}"}) + "\n")
    for number in range(8):
        folder = place / "samples" / f"Mbpp_{number + 2000}"
        folder.mkdir(parents=True)
        for sample in range(10 + number):  # an answer to the other problem fails
            source = solutions[number if sample < 3 * number else (number + 1) % 8]["solution"]
            (folder / f"{sample}.py").write_text(source)
    command = "gatekeeper evalplus --samples samples --dataset mbpp --json --budget"
    whole = run(f"{command} 1")
    assert whole.returncode == 0, whole.stderr[-3000:]
    own = own_process(place, "python -m evalplus.evaluate mbpp samples")
    assert "Load from previous results" in own.stdout  # which are ours
    scores = json.loads(whole.stdout)["scores"]
    printed = re.findall(r"pass@\d+:\s+([0-9.]+)", own.stdout)
    found = [scores[tests][f"pass@{k}"] for tests in ("base", "plus") for k in (1, 10)]
    assert [f"{each['point']:.3f}" for each in found] == printed
    part = json.loads(run(f"{command} 0.5").stdout)["scores"]
    for tests in ("base", "plus"):
        for at, known in scores[tests].items():
            assert part[tests][at]["low"] <= known["point"] <= part[tests][at]["high"]
    for sandbox in ("local", "docker"):
        done = run(f"{command} 0.1 --sandbox {sandbox}")
        if done.returncode == 2 and "sandbox" in done.stderr.splitlines()[-1]:
            continue  # not printed here either
        assert done.returncode == 0, done.stderr[-2000:]
        ends = json.loads(done.stdout)["scores"]["plus"]["pass@1"]
        assert ends["low"] <= scores["plus"]["pass@1"]["point"] <= ends["high"]


@pytest.mark.parametrize("broken", [True, False])
def test_failures_are_warned_of(broken: bool, place: Path) -> None:
    """Within 59 samples, for a check that never works and samples without log-probabilities."""
    samples = list(read_jsonl(place / "samples.jsonl", dict))[:59]
    with (place / "some.jsonl").open("w") as file:
        for sample in samples:
            kept = sample if broken else {k: sample[k] for k in ("task_id", "solution")}
            file.write(json.dumps(kept) + "\n")
    command = "gatekeeper evalplus --samples some.jsonl --dataset humaneval --base-only"
    more = {}
    if broken:  # the processes of EvalPlus's check end at once
        (place / "sitecustomize.py").write_text(
            "import evalplus.evaluate\n"
            "def check_correctness(*arguments): raise OSError('no daemon')\n"
            "evalplus.evaluate.check_correctness = check_correctness\n"
        )
        more = {"PYTHONPATH": f"{place}{os.pathsep}{os.environ.get('PYTHONPATH', '')}"}
    ran = own_process(place, command, **more)
    assert ran.returncode == (1 if broken else 0), ran.stderr[-3000:]
    expected = "could not tell whether" if broken else "came without log-probabilities"
    assert ran.stderr.count(expected) == 1, ran.stderr
    assert not broken or "no daemon" in ran.stderr


@pytest.fixture
def server() -> Iterator[Server]:
    server = Server()
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield server
    server.shutdown()
    server.server_close()


def test_it_makes_the_missing_samples(
    place: Path, server: Server, run: Callable[[str], Ran]
) -> None:
    """With log-probabilities; a line that an interruption cut off is made again."""
    problems = (place / "problems.jsonl").read_text().splitlines(keepends=True)[:4]
    (place / "problems.jsonl").write_text("".join(problems))
    command = MADE.replace("http://127.0.0.1:8011/v1", server.base_url) + " --json"
    first = run(command)
    assert first.returncode == 0, first.stderr[-3000:]
    assert json.loads(first.stdout)["missing_signal"] == 0
    lines = (place / "new.jsonl").read_text().splitlines(keepends=True)
    assert [json.loads(line)["task_id"] for line in lines] == [f"HumanEval/{i}" for i in range(4)]
    assert all(len(json.loads(line)["logprobs"]["top2"]) > 1 for line in lines)
    kept = json.dumps({"by": "another program", **json.loads(lines[2])})  # without a newline
    (place / "new.jsonl").write_text("".join(lines[:2]) + kept)
    again = run(command)
    assert again.stdout == first.stdout
    assert (place / "new.jsonl").read_text() == "".join([*lines[:2], f"{kept}\n", lines[3]])
    (place / "new.jsonl").write_text("".join(lines[:2]) + lines[2][:50])
    again = run(command)
    assert again.stdout == first.stdout
    assert (place / "new.jsonl").read_text() == "".join(lines)
    server.refuse_logprobs = True
    (place / "new.jsonl").unlink()
    without = run(command.replace("new.db", "other.db"))
    assert json.loads(without.stdout)["missing_signal"] == 4, without.stderr
    assert "gives no log-probabilities" in without.stderr


def test_killed_while_it_makes_and_while_it_checks(
    place: Path, server: Server, run: Callable[[str], Ran]
) -> None:
    """At temperature 0.8, two samples a problem: none is made or checked again."""
    problems = (place / "problems.jsonl").read_text().splitlines(keepends=True)[:12]
    (place / "problems.jsonl").write_text("".join(problems))
    made = MADE.replace("http://127.0.0.1:8011/v1", server.base_url)
    made = made.replace("--budget 0.3 --log new.db", "--budget 0.5 --log run.db --workers 1")
    command = f"{made} --n-samples 2 --temperature 0.8 --json"
    samples = place / "new.jsonl"

    def lines() -> list[str]:
        return samples.read_text().splitlines(keepends=True) if samples.exists() else []

    killed_when(lambda: len(lines()) >= 5, main, words(command))
    whole = [line for line in lines() if line.endswith("\n")]
    killed_when(lambda: outcomes(place) >= 3, main, words(command))
    assert lines()[: len(whole)] == whole
    every, before = lines(), outcomes(place)
    done = run(command)
    assert done.returncode == 0, done.stderr[-3000:]
    reported = json.loads(done.stdout)
    assert (reported["outputs"], reported["verified"], reported["missing_signal"]) == (24, 12, 0)
    assert 3 <= before < outcomes(place) == 12
    assert lines() == every
    assert run(command).stdout == done.stdout
    assert outcomes(place) == 12


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"--samples": "none.jsonl"}, "none.jsonl does not exist"),
        ({"--samples": "empty.jsonl"}, "has no sample"),
        ({"--samples": "broken.jsonl"}, "broken.jsonl, line 2: not JSON"),
        ({"--samples": "bare.jsonl"}, "bare.jsonl, line 1: field 'solution' is missing"),
        ({"--samples": "odd.jsonl"}, "odd.jsonl, line 1: field 'logprobs'"),
        ({"--budget": "0"}, "--budget '0'"),
        ({"--log": "nowhere/run.db"}, "its folder does not exist"),
        ({"--base-url": "http://127.0.0.1:9/v1"}, "needs --model"),
        ({"--samples": "samples.jsonl.gz", "--model": "m"}, "appends samples to a plain file"),
        ({"--samples": "solutions", "--model": "m"}, "appends samples to a plain file"),
        ({"--samples": "solutions"}, "0.py cannot be read: 'utf-8' codec can't decode"),
        ({"--samples": "x.jsonl", "--model": "m", "--base-url": "http://127.0.0.1:9/v1"}, "answer"),
    ],
)
def test_bad_input_is_one_line_and_2(
    place: Path, run: Callable[[str], Ran], change: dict[str, str], said: str
) -> None:
    first = (place / "samples.jsonl").read_text().splitlines()[0]
    (place / "empty.jsonl").write_text("")
    (place / "broken.jsonl").write_text(f"{first}\n{first[:40]}\n")
    (place / "bare.jsonl").write_text('{"task_id": "HumanEval/0"}\n')
    (place / "samples.jsonl.gz").write_bytes(zipped := gzip.compress(first.encode()))
    (place / "solutions" / "HumanEval_0").mkdir(parents=True)
    (place / "solutions" / "HumanEval_0" / "0.py").write_bytes(b"# caf\xe9\n")
    odd = json.loads(first) | {"logprobs": 7}
    (place / "odd.jsonl").write_text(json.dumps(odd) + "\n")
    options = {"--samples": "samples.jsonl", "--dataset": "humaneval"} | change
    done = run(shlex.join(["gatekeeper", "evalplus", *(w for o in options.items() for w in o)]))
    assert done.returncode == 2
    last = done.stderr.strip().splitlines()[-1]
    assert last.startswith("gatekeeper: ")
    assert said in last
    assert (place / "samples.jsonl.gz").read_bytes() == zipped


@pytest.mark.parametrize("is_cut", [False, True], ids=["no choice", "a choice that broke off"])
def test_a_server_without_a_complete_output_is_asked_once(
    is_cut: bool, place: Path, run: Callable[[str], Ran]
) -> None:
    """Requests are paid for. What was made before stays."""
    cut = completion("def f():")["choices"][0] | {"finish_reason": "error"}
    answers = [
        completion("def f():\n    return 7"),
        completion() | {"choices": [cut] if is_cut else []},
    ]

    def script(request: Request) -> Script:
        if not answers:
            return [reply(b"{}", status="404 Not Found")]
        return [reply(json.dumps(answers.pop(0)).encode())]

    with ScriptedUpstream(script) as server:
        options = f"--samples few.jsonl --dataset humaneval --model m --base-url {server.url}"
        done = run(f"gatekeeper evalplus {options}")
        assert len(server.requests) == 2
    assert done.returncode == 2
    last = done.stderr.strip().splitlines()[-1]
    assert last.startswith("gatekeeper: HumanEval/1: the model 'm' at ")
    assert "gave no complete output" in last
    assert [line["task_id"] for line in read_jsonl(place / "few.jsonl", dict)] == ["HumanEval/0"]


def test_a_data_set_that_cannot_be_had(place: Path, run: Callable[[str], Ran]) -> None:
    (place / "problems.jsonl").unlink()
    done = run(GATED)
    assert done.returncode == 2
    assert "HUMANEVAL_OVERRIDE_PATH" in done.stderr.strip().splitlines()[-1]


OUTPUTS: list[tuple[Any, Any, float]] = [
    (1, 1, 0),
    (1, 2, 0),
    (1.0, 1, 0),
    (1.0000005, 1.0, 0),
    (1.00001, 1.0, 0),
    (1.00001, 1.0, 1e-3),
    (1, 1.0, 1e-3),
    (2, 1.0, 1e-3),
    ([1.0, 2.0000001], [1.0, 2.0], 0),
    ([1.0, 2.1], [1.0, 2.0], 0),
    ([1.0], [1.0, 2.0], 0),
    ((1.0, 2.0), [1.0, 2.0], 0),
    ([1, 2.0], [1, 2.0000001], 0),
    ([1, 2.0], [1, 2.0000001], 1e-6),
    ("a", "b", 1e-6),
    (None, 1.0, 0),
    (float("inf"), float("inf"), 0),
    (float("nan"), 1.0, 0),
    ([], [], 0),
    (True, 1, 0),
]


@pytest.mark.parametrize(("out", "expected", "atol"), OUTPUTS)
def test_our_comparison_is_evalplus_s(out: Any, expected: Any, atol: float) -> None:
    """`check_program` without numpy against EvalPlus's own process."""
    code = f"from math import inf, nan\ndef f(x):\n    return {out!r}\n"
    status, _ = untrusted_check("humaneval", code, [[0]], "f", [expected], atol, [0.1], True)
    program: dict[str, Any] = {}
    exec(check_program("humaneval", {"entry_point": "f", "atol": atol}, [([0], expected)]), program)
    try:
        program["check"](lambda x: out)
        same = True
    except (AssertionError, TypeError):
        same = False
    assert same == (status == "pass")
