"""The examples run and print what their readers expect, and so do the pages about them."""

from __future__ import annotations

import argparse
import json
import os
import re
import runpy
import shutil
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest
from logged_runs import events
from scripted_upstream import Request, ScriptedUpstream, completion, reply

from gatekeeper.io.records import read_records
from gatekeeper.log import SQLiteLog

ROOT = Path(__file__).parents[2]
EXAMPLES = ROOT / "examples"
TASKS = ROOT / "gatekeeper" / "bundled" / "tasks.jsonl"


def test_own_policy_and_verifier(capsys: pytest.CaptureFixture[str]) -> None:
    runpy.run_path(str(EXAMPLES / "own_parts.py"), run_name="__main__")
    assert capsys.readouterr().out.splitlines() == [
        "short: unchecked (policy)",
        "long: failed (policy)",
        "longer: passed (policy)",
        "longest: unchecked (budget_exhausted)",
    ]


# -- helpers --------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def maths(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Some of the bundled model's maths tasks: more than a warm-up."""
    path = tmp_path_factory.mktemp("tasks") / "tasks.jsonl"
    lines = [
        line
        for line in TASKS.read_text().splitlines(keepends=True)
        if json.loads(line)["kind"] == "math"
    ]
    path.write_text("".join(sorted(lines, key=len)[:56]))  # short answers, soon given
    return path


def program(name: str, *arguments: object) -> list[str]:
    return [sys.executable, str(EXAMPLES / f"{name}.py"), *map(str, arguments)]


def run(command: list[str], **more: Any) -> str:
    ran = subprocess.run(command, capture_output=True, text=True, **more)
    assert ran.returncode == 0, ran.stderr
    return ran.stdout


def interrupt(command: list[str], log: Path, until: int, how: signal.Signals) -> tuple[int, str]:
    """Run it until its log has so many events, then send the signal: exit code and stderr."""
    with subprocess.Popen(
        command,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
    ) as child:
        while child.poll() is None and events(log) < until:
            time.sleep(0.01)
        child.send_signal(how)
        _, said = child.communicate()
    return child.returncode, said


def charges(log: Path) -> Counter[str]:
    with SQLiteLog(log, read_only=True) as opened:
        return Counter(event.id for event in opened.events() if event.kind == "outcome")


@pytest.fixture
def serve() -> Iterator[Callable[[Callable[[str, list[Any]], str]], str]]:
    """Starts an endpoint that answers as `answer(model, messages)` says; returns its base URL."""
    with ExitStack() as servers:

        def start(answer: Callable[[str, list[Any]], str]) -> str:
            def script(request: Request) -> list[bytes]:
                asked = json.loads(request.body)
                text = answer(asked["model"], asked["messages"])
                return [reply(json.dumps(completion(text, logprob=-0.01 * len(text))).encode())]

            return servers.enter_context(ScriptedUpstream(script)).url

        yield start


def answers_of(tasks: Path) -> dict[str, str]:
    lines = map(json.loads, tasks.read_text().splitlines())
    return {task["prompt"]: task["gold"] for task in lines}


def boxed(number: object) -> str:
    return f"\\boxed{{{number}}}"


def page(name: str) -> tuple[list[tuple[str, str]], list[str]]:
    """Its programs, each with what it prints, and its commands."""
    text = (ROOT / "docs" / name).read_text()
    commands = re.findall(r"^    ((?:python|gatekeeper|head) .*)$", text, re.MULTILINE)
    return re.findall(r"```python\n(.*?)```\n\n```\n(.*?)```", text, re.DOTALL), commands


# -- the agent -----------------------------------------------------------------------------------


def test_the_agent_goes_on_where_it_was_interrupted(maths: Path, tmp_path: Path) -> None:
    """Ctrl-C, kill -9, then the same command: it prints and pays what one run does."""
    alone, log = tmp_path / "alone.db", tmp_path / "run.db"
    expected = run(program("agent", maths, "--log", alone))
    assert re.search(r"^56 tasks, \d+ attempts$", expected, re.MULTILINE)
    assert "failed, passed\n" in expected
    command = program("agent", maths, "--log", log)
    code, said = interrupt(command, log, events(alone) // 4, signal.SIGINT)
    assert (code, said) == (130, "agent: interrupted; the same command continues\n")
    interrupt(command, log, events(alone) // 2, signal.SIGKILL)
    assert run(command) == expected
    assert charges(log) == charges(alone)
    assert max(charges(log).values()) == 1


def test_the_agent_sends_feedback_to_an_endpoint(
    serve: Callable[..., str], maths: Path, tmp_path: Path
) -> None:
    """A model that corrects its answer by the feedback passes at the second attempt."""
    golds = answers_of(maths)
    asked: list[int] = []

    def answer(model: str, messages: list[Any]) -> str:
        asked.append(len(messages))
        informed = "verdict: failed" in messages[-1]["content"]
        return boxed(golds[messages[0]["content"]]) if informed else boxed("wrong")

    url = serve(answer)
    few = tmp_path / "few.jsonl"
    few.write_text("".join(maths.read_text().splitlines(keepends=True)[:10]))
    said = run(program("agent", few, "--base-url", url, "--model", "m"))
    assert said.count(": failed, passed\n") == 10
    assert "10 tasks were tried again, and 10 of them passed then" in said
    assert asked == [1, 3] * 10


def test_the_page_on_agents_runs(serve: Callable[..., str], tmp_path: Path) -> None:
    programs, commands = page("agent.md")

    def answer(model: str, messages: list[Any]) -> str:
        return boxed("19/12") if "Try again." in messages[-1]["content"] else boxed("18")

    env = os.environ | {"OPENAI_API_KEY": "none", "OPENAI_BASE_URL": serve(answer)}
    assert len(programs) == 2
    for program_, printed in programs:
        for _ in range(2):  # the second time from the log
            assert run([sys.executable, "-c", program_], cwd=tmp_path, env=env) == printed

    shutil.copytree(EXAMPLES, tmp_path / "examples")
    (tmp_path / "gatekeeper" / "bundled").mkdir(parents=True)
    shutil.copy(TASKS, tmp_path / "gatekeeper" / "bundled")
    gain = commands.pop()  # minutes: the next test runs it on few tasks
    assert gain == "python examples/agent_gain.py"
    assert [command.split()[0] for command in commands] == ["head", "python"]
    env["PATH"] = f"{Path(sys.executable).parent}:{env['PATH']}"
    said = [run(["/bin/sh", "-c", command], cwd=tmp_path, env=env) for command in commands]
    assert "150 tasks, " in said[1]  # which leaves the warm-up, and says what was gained
    found, random = re.findall(r"found (\d+) wrong attempts; .* about (\d+)$", said[1], re.M)[0]
    assert int(found) > int(random) > 0
    counts = re.findall(
        r"^(\d+) tasks had .*: (\d+) have .*, (\d+) are .*, (\d+) have", said[1], re.M
    )
    n, *parts = map(int, counts[0])
    assert n == sum(parts) > 0


def test_what_an_agent_gains(maths: Path, tmp_path: Path) -> None:
    """The table's ends are known: no checks, and every answer checked."""
    said = run(program("agent_gain", maths, "--orders", "2", "--budget", "0.5"))
    rows = re.findall(r"^(.*?)  +([\d.]+)  +([\d.]+)  +([\d.]+)%  +([\d.]+)%$", said, re.M)
    table = {name: [*map(float, values)] for name, *values in rows}
    assert list(table) == ["none", "at random, budget 50%", "cst, budget 50%", "of every answer"]
    none, every = table["none"], table["of every answer"]
    assert none[:2] == [0.0, 1.0]
    assert none[2] + none[3] == pytest.approx(100)
    assert every[0] == every[1] > 1.0
    assert every[3] == 0.0
    for name in ("at random, budget 50%", "cst, budget 50%"):
        assert 0.0 < table[name][0] <= 0.5 * table[name][1] + 0.01


# -- the router ----------------------------------------------------------------------------------


def test_the_page_on_routing_runs_and_goes_on_where_it_was_killed(
    maths: Path, tmp_path: Path
) -> None:
    """Its program; its commands, on few tasks; and what is printed agrees with the records."""
    ((program_, printed),), (route, replay) = page("routing.md")
    assert run([sys.executable, "-c", program_]) == printed
    start, options = "python examples/routing.py ", "--log routing.db --records routing.jsonl"
    assert route.startswith(start)
    assert route.endswith(options)
    alone, log, records = tmp_path / "alone.db", tmp_path / "run.db", tmp_path / "routing.jsonl"
    command = program("routing", maths, *route[len(start) : -len(options)].split())
    expected = run([*command, "--log", str(alone), "--records", str(records)])
    command += ["--log", str(log)]
    interrupt(command, log, events(alone) * 2 // 3, signal.SIGKILL)
    assert run(command) == expected
    assert charges(log) == charges(alone)

    table = read_records(records)
    assert table.benefit is not None
    rows = dict(re.findall(r"^(.*?)  +\d+  ([\d.]+)%", expected, re.MULTILINE))
    right, benefits = (1 - table.error[50:]).sum(), table.benefit[50:].sum()  # after the warm-up
    n = len(table) - 50
    assert float(rows["the cheap model alone"]) == round(100 * right / n, 1)
    best = float(rows["the best choice of as many"])
    calls = re.findall(r"^routed by \S+ +(\d+)", expected, re.MULTILINE)
    assert int(calls[0]) <= 0.2 * n
    assert best == round(100 * (right + min(benefits, int(calls[0]))) / n, 1)
    run([sys.executable, "-m", *replay.split(), "--seeds", "2"], cwd=tmp_path)


def test_the_router_between_two_models_of_an_endpoint(
    serve: Callable[..., str], maths: Path
) -> None:
    """The cheap model gets all tasks, the expensive one the warm-up and its share of the rest."""
    golds = answers_of(maths)
    asked: Counter[str] = Counter()

    def answer(model: str, messages: list[Any]) -> str:
        prompt = messages[-1]["content"]
        asked[model] += 1
        return boxed(golds[prompt]) if model == "large" or len(prompt) % 2 else boxed("wrong")

    options = ["--base-url", serve(answer), "--cheap", "small", "--expensive", "large"]
    said = run(program("routing", maths, *options, "--teach", "differ", "--budget", "0.4"))
    calls = int(re.findall(r"routed by calibrated +(\d+)", said)[0])
    assert 0 < calls <= 4
    assert asked == {"small": 56, "large": 50 + calls}


# -- help ----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "name", sorted(file.stem for file in EXAMPLES.glob("*.py") if file.stem != "own_parts")
)
def test_help_names_every_default(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """And is no traceback: `own_parts` has no options."""
    parsers: list[argparse.ArgumentParser] = []

    def parse(parser: argparse.ArgumentParser, *_: Any, **__: Any) -> None:
        parsers.append(parser)
        raise SystemExit

    monkeypatch.setattr(argparse.ArgumentParser, "parse_args", parse)
    monkeypatch.setattr(argparse.ArgumentParser, "parse_known_args", parse)
    with pytest.raises(SystemExit):
        runpy.run_path(str(EXAMPLES / f"{name}.py"), run_name="__main__")
    for action in parsers[0]._actions:
        if action.default not in (None, False, argparse.SUPPRESS, [], ""):
            assert action.help, action.dest
            assert "default" in parsers[0]._get_formatter()._expand_help(action)


# -- bad input -------------------------------------------------------------------------------------

DOWN = ["--base-url", "http://127.0.0.1:9/v1"]


@pytest.mark.parametrize(
    ("name", "arguments", "said"),
    [
        ("agent", ["nowhere.jsonl"], "nowhere.jsonl cannot be read"),
        ("agent", ["empty.jsonl"], "empty.jsonl holds no task"),
        ("agent", ["code.jsonl", "--sandbox", "none"], "verifier='none'"),
        ("agent", ["code.jsonl", "--budget", "2"], "fraction=2.0"),
        ("agent", ["code.jsonl", "--attempts", "0"], "max_attempts=0"),
        ("agent_gain", ["nowhere.jsonl"], "nowhere.jsonl cannot be read"),
        ("agent_gain", ["code.jsonl"], "tasks=1: give more than the warm-up's 50"),
        ("agent", ["code.jsonl", *DOWN], "needs --model"),
        ("agent", ["code.jsonl", *DOWN, "--model", "m"], "http://127.0.0.1:9/v1"),
        ("routing", ["nowhere.jsonl"], "nowhere.jsonl cannot be read"),
        ("routing", ["code.jsonl"], "code.jsonl has no maths task"),
        ("routing", ["math.jsonl", "--records", "out.jsonl"], "needs --compare"),
        ("routing", ["math.jsonl", *DOWN, "--cheap", "m"], "http://127.0.0.1:9/v1"),
        ("routing", ["math.jsonl", *DOWN, "--expensive", "m"], "http://127.0.0.1:9/v1"),
    ],
)
def test_bad_input_is_one_line(
    name: str,
    arguments: list[str],
    said: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("empty.jsonl").touch()
    for kind in ("code", "math"):
        lines = [
            line
            for line in TASKS.read_text().splitlines(keepends=True)
            if json.loads(line)["kind"] == kind
        ]
        Path(f"{kind}.jsonl").write_text(lines[0])
    assert runpy.run_path(str(EXAMPLES / f"{name}.py"))["main"](arguments) == 2
    out, err = capsys.readouterr()
    assert out == ""
    assert err.startswith(f"{name}: ")
    assert err.count("\n") == 1
    assert said in err
