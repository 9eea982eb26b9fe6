"""`gatekeeper signals` on files of responses of every shape."""

from __future__ import annotations

import gzip
import json
from pathlib import Path
from typing import Any

import pytest

from gatekeeper.cli import main

FIELDS = ["id", "h1", "h2", "h3", "token_coverage", "k_seen", "n_tokens", "signal"]


def entry(token: str, *values: float) -> dict[str, Any]:
    """The first alternative is the sampled one."""
    top = [{"token": f"{token}{i}", "bytes": None, "logprob": v} for i, v in enumerate(values)]
    return {"token": f"{token}0", "bytes": None, "logprob": values[0], "top_logprobs": top}


def chat(*contents: list[Any] | None, id: str = "chat") -> dict[str, Any]:
    choices = [
        {
            "index": i,
            "finish_reason": "stop",
            "message": {"content": "x"},
            "logprobs": content and {"content": content},
        }
        for i, content in enumerate(contents)
    ]
    return {"id": id, "model": "m", "choices": choices}


ENTRIES = [entry("a", -0.5, -1.5), entry("b", -1.0, -1.0)]
EXPECTED = {"h1": 0.75, "h2": 0.0, "h3": (2.718281828459045**-1 + 1) / 2}
LEGACY = {
    "tokens": ["a", "b"],
    "token_logprobs": [-0.5, -1.0],
    "top_logprobs": [{"a": -0.5, "c": -1.5}, {"b": -1.0, "d": -1.0}],
}
DICTS = [
    {"7": {"logprob": -0.5, "rank": 1}, "8": {"logprob": -1.5, "rank": 2}},
    {"9": {"logprob": -1.0, "rank": 1}, "8": {"logprob": -1.0, "rank": 2}},
]
STREAM = [
    {"choices": []},
    {"choices": [{"index": 0, "delta": {"content": "x"}, "logprobs": {"content": ENTRIES}}]},
]
PART = {"type": "output_text", "text": "x", "logprobs": ENTRIES}
SHAPES: dict[str, Any] = {
    "chat": chat(ENTRIES),
    "completion": {"id": "completion", "choices": [{"text": "x", "logprobs": LEGACY}]},
    "Responses": {"id": "Responses", "output": [{"type": "message", "content": [PART]}]},
    "vLLM": {"request_id": "vLLM", "outputs": [{"token_ids": [7, 9], "logprobs": DICTS}]},
    "arrays": {"id": "arrays", "logprob": [-0.5, -1.0], "top1": [-0.5, -1.0], "top2": [-1.5, -1.0]},
    "stream": {"id": "stream", "response": STREAM},
    "named": {"id": "named", "response": chat(ENTRIES)},
    "7": {"id": 7, "response": chat(ENTRIES)},
}


def write(path: Path, *lines: Any) -> Path:
    opener = gzip.open if path.suffix == ".gz" else open
    with opener(path, "wt", encoding="utf-8") as file:
        file.writelines((x if isinstance(x, str) else json.dumps(x)) + "\n" for x in lines)
    return path


def run(capsys: pytest.CaptureFixture[str], *arguments: object) -> tuple[int, list[Any], str]:
    """Exit code, lines of standard output, standard error."""
    code = main(["signals", *map(str, arguments)])
    out, err = capsys.readouterr()
    return code, [json.loads(line) for line in out.splitlines()], err


def test_every_shape_gives_the_same_line(tmp_path: Path, capsys: Any) -> None:
    code, lines, err = run(capsys, write(tmp_path / "r.jsonl", *SHAPES.values()))
    assert (code, err) == (0, "")
    assert [line["id"] for line in lines] == list(SHAPES)
    for line in lines:
        assert list(line) == FIELDS
        assert {name: line[name] for name in EXPECTED} == pytest.approx(EXPECTED)
        rest = (line["token_coverage"], line["n_tokens"], line["signal"])
        assert rest == (1.0, 2, "ok")
    assert {line["k_seen"] for line in lines if line["id"] != "arrays"} == {2}


def test_what_cannot_be_computed_is_null(tmp_path: Path, capsys: Any) -> None:
    """-inf, the most confident, is a value; JSON has no number for it."""
    forced = chat([entry("a", 0.0, -9999.0)], id="forced")
    source = write(tmp_path / "r.jsonl", chat(None), chat([entry("a", -0.5)], id="k1"), forced)
    _, lines, _ = run(capsys, source)
    assert [line["signal"] for line in lines] == ["missing", "partial", "ok"]
    assert [line["h1"] for line in lines] == [None, 0.5, 0.0]
    assert [line["h2"] for line in lines] == [None, None, "-inf"]


def test_one_line_per_choice(tmp_path: Path, capsys: Any) -> None:
    source = write(
        tmp_path / "r.jsonl",
        chat(ENTRIES, ENTRIES[:1]),
        {"id": "x", "response": chat(ENTRIES, None)},
    )
    _, lines, _ = run(capsys, source)
    assert [line["id"] for line in lines] == ["chat/0", "chat/1", "x/0", "x/1"]
    assert [line["n_tokens"] for line in lines] == [2, 1, 2, 0]


def test_scope_and_skip_forced(tmp_path: Path, capsys: Any) -> None:
    thought = chat([entry("t", -0.5, -1.5), entry("y", -2.0, -3.0)], id="thought")
    thought["choices"][0]["message"] = {"content": "y0", "reasoning": "t0"}
    forced = chat([entry("a", 0.0, -9999.0), *ENTRIES], id="forced")
    source = write(tmp_path / "r.jsonl", thought, forced)
    for scope, h1 in {"content": 2.0, "reasoning": 0.5, "all": 1.25}.items():
        _, (line, _), _ = run(capsys, source, "--scope", scope)
        assert line["h1"] == h1
    _, (_, line), _ = run(capsys, source, "--skip-forced")
    assert line["h1"] == 0.75


@pytest.mark.parametrize("suffix", [".jsonl", ".jsonl.gz"])
def test_records_are_written(tmp_path: Path, capsys: Any, suffix: str) -> None:
    """The same lines, gzip by suffix on both sides; on standard output only what was written."""
    source = write(tmp_path / f"in{suffix}", *SHAPES.values(), chat(None, id="none"))
    _, expected, _ = run(capsys, source)
    target = tmp_path / f"out{suffix}"
    code, (counts,), _ = run(capsys, source, "--out", target, "--json")
    assert code == 0
    assert counts == {"outputs": 9, "ok": 8, "partial": 0, "missing": 1, "skipped": 0}
    text = gzip.decompress(target.read_bytes()) if suffix.endswith("gz") else target.read_bytes()
    assert [json.loads(line) for line in text.decode().splitlines()] == expected
    assert main(["signals", str(source), "--out", str(target)]) == 0
    assert "9 outputs: signals 8 ok, 1 missing" in capsys.readouterr().out


def test_a_table_on_a_terminal(tmp_path: Path, capsys: Any, monkeypatch: Any) -> None:
    """Ids are shown as they are, brackets too."""
    monkeypatch.setattr("sys.stdout.isatty", lambda: True)
    source = write(tmp_path / "r.jsonl", chat(ENTRIES, id="a[b]"), chat(None))
    assert main(["signals", str(source)]) == 0
    out = capsys.readouterr().out
    assert "a[b]" in out
    assert "missing" in out
    assert main(["signals", str(source), "--json"]) == 0
    assert len([json.loads(line) for line in capsys.readouterr().out.splitlines()]) == 2


BAD = {
    "not JSON": ("{", "not JSON"),
    "no response": ({"a": 1}, "no known shape"),
    "an error of the server": ({"error": {"message": "no"}}, "no known shape"),
    "no output": (chat(), "has no outputs"),
    "without an id": ({"choices": chat(ENTRIES)["choices"]}, "id=''"),
    "an id that is no text": ({"id": [1], "response": chat(ENTRIES)}, "id="),
    "Ollama's, which has none": ({"response": "42", "done": True}, 'as {"id": …, "response": …}'),
    "the same id": (SHAPES["chat"], "id 'chat' occurs twice"),
    "a chunk": ({"choices": [{"delta": {"content": "x"}}]}, "chunk of a stream"),
    "odd arrays": ({"id": "a", "logprob": [0.0], "top1": ["x"], "top2": [0]}, "top1"),
    "arrays of two lengths": ({"id": "a", "logprob": [-1.0], "top1": [], "top2": []}, "id='a'"),
    "an odd logprob": (chat([{"token": "a", "logprob": "x"}], id="b"), "'x'"),
}


@pytest.mark.parametrize("name", BAD)
def test_bad_input_is_one_clear_line(tmp_path: Path, capsys: Any, name: str) -> None:
    """It names file and line, and nothing is written; or the line is skipped and counted."""
    line, message = BAD[name]
    source = write(tmp_path / "r.jsonl", SHAPES["chat"], "", line, SHAPES["arrays"])
    target = tmp_path / "out.jsonl"
    code, out, err = run(capsys, source, "--out", target)
    assert (code, out, target.exists()) == (2, [], False)
    assert err.count("\n") == 1
    assert f"{source}, line 3: " in err
    assert message in err
    code, (counts,), err = run(capsys, source, "--out", target, "--json", "--skip-bad")
    assert (code, counts["outputs"], counts["skipped"]) == (0, 2, 1)
    assert "line 3" in err


def test_files_that_cannot_be_used(tmp_path: Path, capsys: Any) -> None:
    source = write(tmp_path / "r.jsonl", SHAPES["chat"])
    before = source.read_bytes()
    cases = [
        (tmp_path / "none.jsonl",),
        (write(tmp_path / "empty.jsonl"),),
        (source, "--out", source),
        (source, "--out", tmp_path / "no" / "out.jsonl"),
    ]
    for arguments in cases:
        code, _, err = run(capsys, *arguments)
        assert (code, err.count("\n")) == (2, 1)
    assert source.read_bytes() == before
