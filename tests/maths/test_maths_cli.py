"""`gatekeeper verify math`: one verdict per item, in input order; clear messages for bad input."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from gatekeeper.cli import verify_math
from gatekeeper.errors import BadInputError
from gatekeeper.programs.parser import Parser

ITEMS: list[dict[str, Any]] = [
    {"id": "right", "gold": "x^2+2x+1", "response": r"\boxed{(x+1)^2}"},
    {"id": 2, "gold": "1/2", "response": r"\boxed{0.25}", "more": "is kept out"},
    {"id": "none", "gold": "7", "response": "n = 7 failed. No answer."},
    {"id": "unknown", "gold": "7", "response": r"\boxed{9^{9^{9^9}}} \ud800"},
    {"id": "again", "gold": "1/2", "response": "0.5"},
]


def run(*args: object) -> int:
    parser = Parser()
    verify_math.add(parser.add_subparsers(metavar="kind"))
    parsed = parser.parse_args(["math", *map(str, args)])
    code: int = parsed.run(parsed)
    return code


def write(path: Path, *lines: object) -> Path:
    path.write_text("".join(f"{x if isinstance(x, str) else json.dumps(x)}\n" for x in lines))
    return path


def test_verdicts_in_input_order(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    items = write(tmp_path / "items.jsonl", *ITEMS * 20)
    out = tmp_path / "verdicts.jsonl"
    assert run(items, "--out", out, "--workers", 2, "--json") == 0
    verdicts = [json.loads(line) for line in out.read_text().splitlines()]
    assert [v["id"] for v in verdicts] == ["right", 2, "none", "unknown", "again"] * 20
    assert [v["error"] for v in verdicts] == [0, 1, 1, None, 0] * 20
    fields = {"id", "verdict", "error", "seconds", "detail", "extracted", "rule"}
    assert all(set(v) == fields for v in verdicts)
    assert verdicts[0]["rule"] == "symbolic"
    assert verdicts[1]["extracted"] == "0.25"
    summary = json.loads(capsys.readouterr().out)
    assert (summary["items"], summary["passed"], summary["infra_error"]) == (100, 40, 20)


@pytest.mark.parametrize(
    ("line", "words"),
    [
        ("not JSON", "not JSON"),
        ({"id": "a", "gold": "1"}, "'response'"),
        ({"gold": "1", "response": "1"}, "'id'"),
        ({"id": "a", "gold": " $ $ ", "response": "1"}, "'gold'.*empty"),
        ({"id": "a", "gold": 1, "response": "1"}, "'gold'"),
    ],
)
def test_bad_line(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], line: object, words: str
) -> None:
    items = write(tmp_path / "items.jsonl", ITEMS[4], line, ITEMS[4])
    out = tmp_path / "verdicts.jsonl"
    with pytest.raises(BadInputError, match=rf"items\.jsonl, line 2: .*{words}"):
        run(items, "--out", out)
    assert not out.exists()
    assert run(items, "--out", out, "--skip-bad") == 0
    assert len(out.read_text().splitlines()) == 2
    captured = capsys.readouterr()
    assert "line 2" in captured.err
    assert "1 bad line" in captured.out


def test_files_that_cannot_be_used(tmp_path: Path) -> None:
    empty = write(tmp_path / "empty.jsonl")
    items = write(tmp_path / "items.jsonl", *ITEMS)
    for args, words in [
        ((tmp_path / "absent.jsonl", "--out", tmp_path / "o"), "cannot be read"),
        ((empty, "--out", tmp_path / "o"), "has no items"),
        ((items, "--out", items), "input file itself"),
        ((items, "--out", tmp_path / "nowhere" / "o"), "cannot be written"),
        ((items, "--out", tmp_path / "o", "--workers", 0), "at least 1"),
    ]:
        with pytest.raises(BadInputError, match=words):
            run(*args)
    assert len(items.read_text().splitlines()) == len(ITEMS)
