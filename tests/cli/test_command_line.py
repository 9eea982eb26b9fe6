"""What holds for every command: help, defaults, standard input and output, completion."""

from __future__ import annotations

import argparse
import json
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from gatekeeper.cli import COMMANDS, main, parser

ROOT = Path(__file__).parents[2]
MATHS = [{"id": i, "gold": "2", "response": f"\\boxed{{{2 + i % 2}}}"} for i in range(4)]


def commands(of: argparse.ArgumentParser) -> Iterator[argparse.ArgumentParser]:
    below = [a for a in of._actions if isinstance(a, argparse._SubParsersAction)]
    if not below:
        yield of
    for action in below:
        for child in action.choices.values():
            yield from commands(child)


def gatekeeper(*arguments: str, stdin: str = "") -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "gatekeeper", *arguments]
    return subprocess.run(command, input=stdin, capture_output=True, text=True)


def test_alone_it_lists_the_commands(capsys: pytest.CaptureFixture[str]) -> None:
    assert main([]) == 0
    out = capsys.readouterr().out
    for name, summary in COMMANDS.items():
        assert f"{name} " in out or f"{name}\n" in out
        assert summary.split(",")[0] in " ".join(out.split())


def test_the_list_of_commands_imports_none_of_them() -> None:
    code = "import sys; from gatekeeper.cli import main; main([]); print(*sys.modules)"
    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    loaded = set(ran.stdout.splitlines()[-1].split())
    assert not loaded & {"rich", "scipy", "shtab", "gatekeeper.maths", "gatekeeper.cli.run"}


def test_every_option_says_what_it_is_and_its_default() -> None:
    """A default that stands for "none" or "no" needs no word."""
    options = 0
    for command in commands(parser()):
        text = " ".join(command.format_help().split())
        for action in command._actions:
            assert action.help, f"{command.prog} {action.dest}"
            options += 1
            if action.option_strings and action.default not in (None, False, argparse.SUPPRESS, []):
                said = command._get_formatter()._expand_help(action)
                assert "default" in said, f"{command.prog} {action.dest}"
                assert said.split()[0] in text
    assert options > 100


def test_one_name_per_idea() -> None:
    """Options of one name have one meaning: type and placeholder are the same everywhere."""
    seen: dict[str, set[object]] = {}
    for command in commands(parser()):
        for action in command._actions:
            name = next((s for s in action.option_strings if s.startswith("--")), None)
            if name and not action.choices and action.nargs != 0:
                seen.setdefault(name, set()).add(action.metavar)
    mixed = {name for name, metavars in seen.items() if len(metavars) > 1}
    # `replay` takes several budgets; `paper` writes a folder
    assert mixed == {"--budget", "--out"}


def test_dash_is_standard_input_and_output() -> None:
    """Alone on standard output are the data; the file is read twice, to check it first."""
    text = "".join(json.dumps(item) + "\n" for item in MATHS)
    ran = gatekeeper("verify", "math", "-", "--out", "-", stdin=text)
    assert [json.loads(line)["error"] for line in ran.stdout.splitlines()] == [0, 1, 0, 1]
    assert "4 items in " in ran.stderr
    bad = gatekeeper("verify", "math", "-", "--out", "-", stdin=text + "{\n")
    assert (bad.returncode, bad.stdout) == (2, "")
    assert bad.stderr.startswith("gatekeeper: /dev/stdin, line 5: not JSON")


@pytest.mark.skipif(not shutil.which("bash"), reason="has <(command)")
def test_the_output_of_another_command_is_a_file(tmp_path: Path) -> None:
    """A pipe gives its bytes only once, and files are read twice."""
    items = tmp_path / "items.jsonl"
    items.write_text("".join(json.dumps(item) + "\n" for item in MATHS))
    shell = f"{sys.executable} -m gatekeeper verify math <(cat {items}) --out -"
    ran = subprocess.run(["bash", "-c", shell], capture_output=True, text=True)
    assert [json.loads(line)["error"] for line in ran.stdout.splitlines()] == [0, 1, 0, 1]
    assert "4 items in " in ran.stderr


@pytest.mark.skipif(not shutil.which("bash"), reason="completes bash")
def test_completion_in_bash(tmp_path: Path) -> None:
    """Of commands, options of a subcommand, choices and files."""
    script = tmp_path / "completion.sh"
    script.write_text(gatekeeper("completion", "bash").stdout)
    (tmp_path / "records.jsonl").touch()

    def completed(*words: str) -> set[str]:
        line = " ".join(f"'{word}'" for word in words)
        shell = (
            f"shopt -s progcomp; source {script}; COMP_WORDS=({line}); "
            f'COMP_CWORD={len(words) - 1}; COMP_LINE="${{COMP_WORDS[*]}}"; '
            "COMP_POINT=${#COMP_LINE}; $(complete -p gatekeeper | sed 's/.*-F \\([^ ]*\\).*/\\1/') "
            'gatekeeper "${COMP_WORDS[COMP_CWORD]}" "${COMP_WORDS[COMP_CWORD-1]}"; '
            'printf "%s\\n" "${COMPREPLY[@]}"'
        )
        ran = subprocess.run(["bash", "-c", shell], cwd=tmp_path, capture_output=True, text=True)
        return {word.strip() for word in ran.stdout.splitlines()}

    assert completed("gatekeeper", "di") == {"diagnose"}
    assert completed("gatekeeper", "run", "--dry") == {"--dry-run"}
    assert completed("gatekeeper", "verify", "ma") == {"math"}
    assert "records.jsonl" in completed("gatekeeper", "replay", "rec")
