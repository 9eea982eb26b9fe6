"""The README's programs and commands run as they stand, and those of some pages.

The real openai client calls a server on loopback.
"""

import json
import os
import random
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from scripted_upstream import Request, ScriptedUpstream, completion, reply
from serving import serving

from gatekeeper.bundled import TASKS
from gatekeeper.cli import main

ROOT = Path(__file__).parents[2]
# `.ci/wheel` names that of a fresh environment, in which the wheel is installed.
PYTHON = os.environ.get("GATEKEEPER_TEST_PYTHON", sys.executable)


def answer(request: Request) -> list[bytes]:
    """Answers to the README's two questions, the second one wrong."""
    asked = json.loads(request.body)
    assert asked["logprobs"] is True
    first = "3/4" in asked["messages"][0]["content"]
    return [reply(json.dumps(completion(r"\boxed{19/12}" if first else r"\boxed{6}")).encode())]


@pytest.fixture
def base_url():
    with ScriptedUpstream(answer) as server:
        yield server.url


README = (ROOT / "README.md").read_text()
WRAP, FUNCTION, DECORATOR = re.findall(r"```python\n(.*?)```", README, re.DOTALL)


def ran(program: str, folder: Path, **environment: str) -> list[str]:
    """The lines that a program of at most ten lines prints."""
    assert len([line for line in program.splitlines() if line]) <= 10
    done = subprocess.run(
        [PYTHON, "-c", program],
        cwd=folder,
        env={"PATH": "/usr/bin:/bin", **environment},
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout.splitlines()


def test_the_readme_program_around_a_client(base_url: str, tmp_path: Path) -> None:
    """If the gate cannot decide, here because it is closed, the program goes on."""
    key = {"OPENAI_API_KEY": "none", "OPENAI_BASE_URL": base_url}
    (shown,) = ran(WRAP, tmp_path, **key)
    assert "Verdict.FAILED" in shown
    undecided = WRAP.replace("messages = [", "gate.close(); messages = [")
    assert ran(undecided, tmp_path, **key) == ["None"]


def test_the_readme_programs_with_functions(tmp_path: Path) -> None:
    assert ran(FUNCTION, tmp_path) == ["warmup passed"]
    assert ran(DECORATOR, tmp_path) == ["It is 4. passed", "It is 4. failed"]


def test_the_command_lines_of_the_readme(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    lines = (line for line in TASKS.read_text().splitlines(True) if '"math"' in line)
    Path("tasks.jsonl").write_text("".join(sorted(lines, key=len)[:56]))  # short answers
    commands = re.findall(r"^    gatekeeper (.*?)(?: +#.*)?$", README, re.MULTILINE)
    assert [command.split()[0] for command in commands] == ["run", "show", "report"]
    for command in commands:
        assert main(command.split()) == 0
    assert "56" in capsys.readouterr().out
    assert Path("report.html").stat().st_size > 10_000


def test_each_way_in_takes_ten_lines() -> None:
    """One click from here, each run by a test of tests/harness or tests/gateway."""
    ways = {
        "lm-eval": "lm_eval run",
        "inspect": "inspect score",
        "evalplus": "gatekeeper evalplus",
        "litellm": "GatekeeperLogger(gate)",
        "gateway": "gatekeeper serve",
    }
    for page, way in ways.items():
        assert f"(docs/{page}.md)" in README
        text = (ROOT / "docs" / f"{page}.md").read_text()
        blocks = re.findall(r"^```\w+\n((?:(?!```).*\n)+)|((?:^    .*\n)+)", text, re.MULTILINE)
        first = next(block for pair in blocks if way in (block := "".join(pair)))
        assert len([line for line in first.splitlines() if line]) <= 10, page


def test_the_wrapped_client_on_the_bundled_model(tmp_path: Path) -> None:
    """examples/wrapped_client.py; a second run asks nothing again."""
    command = [sys.executable, str(ROOT / "examples/wrapped_client.py"), "--limit", "52"]
    shown = [subprocess.check_output(command, cwd=tmp_path, text=True) for _ in range(2)]
    assert shown[0] == shown[1]
    assert shown[0].startswith("52 answers. 50 verified as warm-up, ")
    assert (tmp_path / "wrap.db").is_file()


def test_the_picture_of_the_gain_has_the_figures_of_the_table() -> None:
    """Both are of one run of `make demo`."""
    drawn = (ROOT / "docs/images/gain.svg").read_text()
    table = re.findall(r"│ (.*?) +│ +(\S+) │ +(\S+) │", README)
    found = {name.split(" (")[0]: wrong for name, _, wrong in table}
    for name in ("verified by the gate", "the same number at random", "the best possible choice"):
        assert f">{found[name]}<" in drawn


def test_the_page_on_openai_runs(tmp_path: Path) -> None:
    """docs/openai.md, as it stands, around the bundled model's server, as the page says."""
    page = (ROOT / "docs" / "openai.md").read_text()
    command = re.findall(r"bundled.serve --port 8011 --name (\S+) &", page)
    programs = re.findall(r"```python\n(.*?)```\n\n```\n(.*?)```", page, re.DOTALL)
    assert len(programs) == page.count("```python") == 3
    with serving(name=command[0]) as client:
        env = {"OPENAI_API_KEY": "none", "OPENAI_BASE_URL": str(client.base_url)}
        ran = subprocess.run(
            [sys.executable, "-c", "".join(program for program, _ in programs)],
            cwd=tmp_path,
            env=env | {"PATH": "/usr/bin:/bin"},
            capture_output=True,
            text=True,
        )
    assert (ran.returncode, ran.stdout) == (0, "".join(output for _, output in programs)), (
        ran.stderr
    )


def test_the_page_on_records_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """docs/replay.md: every command, on a file of the documented shape, and the program."""
    monkeypatch.chdir(tmp_path)
    rng = random.Random(0)
    with open("records.jsonl", "w") as out:
        for i in range(160):
            uncertainty, cost = rng.random(), rng.lognormvariate(0, 0.3)
            line = {
                "id": f"r{i}",
                "h1": uncertainty,
                "h2": uncertainty - 1,
                "h3": uncertainty,
                "cost": cost,
            }
            line |= {"cost_estimate": cost, "error": int(rng.random() < uncertainty)}
            out.write(json.dumps(line) + "\n")
    page = (ROOT / "docs" / "replay.md").read_text()
    commands = re.findall(r"^    gatekeeper (.*)$", page, re.MULTILINE)
    assert len(commands) == 5
    for command in commands:
        assert main([*command.split(), *(["--seeds", "2"] if "replay" in command else [])]) in (
            0,
            3,
            4,
        )
    assert Path("report.html").stat().st_size > 10_000
    assert len(Path("decisions.jsonl").read_text().splitlines()) > 100
    (program,) = re.findall(r"```python\n(.*?)```", page, re.DOTALL)
    ran = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert ran.returncode == 0, ran.stderr
    assert ran.stdout.count("Interval(value=") == 2


def test_the_page_on_sandboxes_runs(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """docs/sandbox.md: the program, and `verify code` on every shape of tests it names."""
    page = (ROOT / "docs" / "sandbox.md").read_text()
    (program,) = re.findall(r"```python\n(.*?)```", page, re.DOTALL)
    ran = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert (ran.returncode, ran.stdout) == (0, "passed literal\n"), ran.stderr
    double = "def f(x):\n    return 2 * x"
    items: dict[str, dict[str, Any]] = {
        "mbpp": {"code": double, "tests": ["assert f(2) == 4"], "test_setup_code": ""},
        "humaneval": {
            "code": "    return 2 * x\n",
            "prompt": 'def f(x):\n    """Twice."""\n',
            "test": "def check(candidate):\n    for i in range(9): assert candidate(i) == i + i",
            "entry_point": "f",
        },
        "functions": {
            "code": double,
            "test": "from solution import f\n\ndef test_f():\n    assert sum(map(f, [1, 2])) == 6",
        },
        "apps": {
            "code": "print(2 * int(input()))",
            "input_output": json.dumps({"inputs": ["2\n"], "outputs": ["4\n"]}),
        },
        "livecodebench": {
            "code": "class Solution:\n    def f(self, x):\n        return 2 * x",
            "tests": [{"input": "2", "output": "4", "testtype": "functional"}],
            "fn_name": "f",
        },
    }
    path, out = tmp_path / "items.jsonl", tmp_path / "verdicts.jsonl"
    path.write_text("".join(json.dumps({"id": id_, **item}) + "\n" for id_, item in items.items()))
    command = ["verify", "code", str(path), "--sandbox", "local", "--out", str(out)]
    assert main(command) == 0
    assert "5 items in" in capsys.readouterr().out
    verdicts = [json.loads(line) for line in out.read_text().splitlines()]
    assert [(v["id"], v["verdict"]) for v in verdicts] == [(id_, "passed") for id_ in items]
    assert [v["evaluation"] for v in verdicts] == [
        "literal",
        "judge",
        "judge",
        "literal",
        "literal",
    ]
