"""`gatekeeper show` and `gatekeeper export`: every output of a log, unchanged."""

from __future__ import annotations

import csv
import gzip
import io
import json
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from gatekeeper import Budget, Outcome, Verdict, VerificationGate
from gatekeeper.cli import main
from gatekeeper.errors import BadInputError, MissingDependencyError
from gatekeeper.log.rows import COLUMNS, as_json
from gatekeeper.log.run import read_run
from gatekeeper.testing import make_generation

N = 90
BELL = 'red \x1b[31m, \x07 and 長い\nsecond line, "quoted", half a pair \ud800'


class Parity:
    """Fails the even ones; cannot tell of o5."""

    def verify(self, generation: Any, task: Any) -> Outcome:
        number = int(generation.id[1:])
        if number == 5:
            return Outcome(Verdict.INFRA_ERROR, detail="no daemon")
        verdict = Verdict.PASSED if number % 2 else Verdict.FAILED
        return Outcome(verdict, detail=f"number {number}", meta={"rule": "parity"})


@pytest.fixture
def log(tmp_path: Path) -> Path:
    """o3 has an awkward text, and one that was not selected an external verdict."""
    path = tmp_path / "run.db"
    with VerificationGate(
        "cst",
        budget=Budget(fraction=0.2, horizon=N),
        verifier=Parity(),
        on_unavailable="pass",
        log=path,
    ) as gate:
        for i in range(N):
            text = BELL if i == 3 else f"text {i}"
            output = make_generation(f"o{i}", seed=i, text=text)
            gate.maybe_verify(replace(output, features={"length": i}))
        left = next(f"o{i}" for i in range(N) if not gate.find(f"o{i}").decision.verify)  # type: ignore[union-attr]
        gate.report_outcome(left, Outcome(Verdict.FAILED, cost=9.0, detail="a person"))
    return path


def shown(capsys: pytest.CaptureFixture[str], *arguments: object) -> list[dict[str, Any]]:
    assert main(["show", *map(str, arguments), "--json", "--limit", "0"]) == 0
    found: list[dict[str, Any]] = json.loads(capsys.readouterr().out)
    return found


def test_rows_have_the_gate_s_results(log: Path, capsys: pytest.CaptureFixture[str]) -> None:
    run = read_run(log)
    rows = {row["id"]: row for row in shown(capsys, log)}
    assert list(rows) == [f"o{i}" for i in range(N)]
    for id_, result in run.results.items():
        row, outcome = rows[id_], result.outcome
        assert list(row) == list(COLUMNS)
        assert row["text"] == (BELL if id_ == "o3" else f"text {id_[1:]}")
        h = result.signals
        assert (row["h1"], row["h2"], row["h3"]) == (h.h1, h.h2, h.h3)
        assert row["verify"] is result.decision.verify
        assert row["reason"] == result.decision.reason
        assert row["verdict"] == (outcome and outcome.verdict)
        assert row["error"] == (outcome and outcome.error)
        assert row["external"] is (id_ in run.external)
    wrong = {id_ for id_, row in rows.items() if row["error"] == 1}
    assert {row["id"] for row in shown(capsys, log, "--wrong")} == wrong
    assert {row["detail"] for row in rows.values()} >= {"no daemon", "a person", "number 2", None}
    unchecked = {id_ for id_, row in rows.items() if row["error"] is None}
    assert {row["id"] for row in shown(capsys, log, "--unchecked")} == unchecked
    assert "o5" in unchecked
    assert rows["o2"]["meta"] == {"rule": "parity"}
    assert rows["o5"]["cost"] is None
    charged = sum(row["cost"] or 0.0 for row in rows.values())
    assert charged == run.ledger.spent + run.ledger.warmup_spent


def test_text_for_people(log: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["show", str(log), "--wrong", "--limit", "2"]) == 0
    text = capsys.readouterr().out
    wrong = sum(row["error"] == 1 for row in read_run(log).rows())
    assert text.startswith(f"{N} outputs: {wrong} wrong")
    assert text.count("wrong (failed)") == 2
    assert f"{wrong - 2} more: --limit 0 shows all" in text
    assert f"Shown: the first 2 of {wrong} wrong" in text
    assert main(["show", str(log), "--id", "o3"]) == 0
    text = capsys.readouterr().out
    assert text.count("o3: correct (passed)") == 1
    assert "second line" in text
    assert "\x1b" not in text
    assert "\x07" not in text
    assert main(["show", str(log), "--id", "o5"]) == 0
    assert "no verdict (infra_error)" in capsys.readouterr().out


def test_the_same_in_every_format(
    log: Path, tmp_path: Path, capfdbinary: pytest.CaptureFixture[bytes]
) -> None:
    assert main(["export", str(log)]) == 0
    lines = [json.loads(line) for line in capfdbinary.readouterr().out.splitlines()]
    assert lines == list(map(as_json, read_run(log).rows()))
    assert lines[2]["features"] == {"length": 2.0}
    assert main(["export", str(log), "-o", str(tmp_path / "run.csv")]) == 0
    assert f"{N} outputs".encode() in capfdbinary.readouterr().err
    with open(tmp_path / "run.csv", newline="", encoding="utf-8") as file:
        table = list(csv.DictReader(file))
    assert [row["id"] for row in table] == [line["id"] for line in lines]
    assert table[3]["text"] == BELL.replace("\ud800", "\\ud800")
    assert [row["error"] for row in table] == [
        "" if line["error"] is None else str(line["error"]) for line in lines
    ]


def test_parquet_and_pandas(log: Path, tmp_path: Path) -> None:
    pytest.importorskip("pandas")
    parquet = pytest.importorskip("pyarrow.parquet")
    rows = list(read_run(log).rows())
    assert main(["export", str(log), "--format", "parquet", "-o", str(tmp_path / "p")]) == 0
    assert main(["export", str(log), "-o", str(tmp_path / "run.parquet")]) == 0
    assert (tmp_path / "run.parquet").read_bytes() == (tmp_path / "p").read_bytes()
    read = parquet.read_table(tmp_path / "p").to_pylist()
    assert read == [r | {"text": r["text"].replace("\ud800", "\\ud800")} for r in rows]
    table = read_run(log).to_pandas()
    assert list(table.columns) == list(COLUMNS)
    assert int(table["error"].sum()) == sum(row["error"] == 1 for row in rows)
    assert table["error"].isna().sum() == sum(row["error"] is None for row in rows)


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["show", "{log}", "--id", "nobody"], "--id 'nobody'"),
        (["show", "{log}", "--limit", "-1"], "--limit '-1'"),
        (["show", "/nowhere.db"], "/nowhere.db"),
        (["export", "/nowhere.db"], "/nowhere.db"),
        (["export", "{log}", "-o", "{log}"], "is the input file itself"),
        (["export", "{log}", "-o", "x.xls"], "--out x.xls: format 'xls' is unknown: give --format"),
        (["export", "{log}", "-o", "x.xlsx"], "a name that ends in .jsonl, .csv, .parquet"),
        (["export", "{log}", "-o", "/nowhere/x.csv"], "--out /nowhere/x.csv cannot be written"),
    ],
)
def test_bad_input_is_named(
    arguments: list[str], says: str, log: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    before = log.read_bytes()
    assert main([a.format(log=log) for a in arguments]) == 2
    assert says in capsys.readouterr().err
    assert log.read_bytes() == before


def test_a_missing_package_is_named(
    log: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    for name in ("pandas", "pyarrow"):
        monkeypatch.setitem(sys.modules, name, None)
    with pytest.raises(MissingDependencyError, match=r"pip install .pandas"):
        read_run(log).to_pandas()
    assert main(["export", str(log), "--format", "parquet", "-o", "x"]) == 2
    assert "pip install 'pandas>=2.2' 'pyarrow>=15'" in capsys.readouterr().err


def test_texts_can_be_left_out(log: Path) -> None:
    run = read_run(log, texts=False)
    assert (len(run.outputs), run.generations) == (N, {})
    with pytest.raises(BadInputError, match="without its texts"):
        next(run.rows())


@pytest.mark.parametrize("how", ["x.jsonl", "x.csv", "x --format jsonl"])
def test_a_name_that_ends_in_gz_is_gzip(how: str, log: Path, tmp_path: Path) -> None:
    name, *more = how.split()
    plain, zipped = tmp_path / name, tmp_path / f"{name}.gz"
    assert main(["export", str(log), "-o", str(plain), *more]) == 0
    assert main(["export", str(log), "-o", str(zipped), *more]) == 0
    assert gzip.decompress(zipped.read_bytes()) == plain.read_bytes()


def test_standard_output_is_a_pipe(log: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """UTF-8, whatever the encoding of standard output."""
    buffer = io.BytesIO()
    monkeypatch.setattr(sys, "stdout", io.TextIOWrapper(buffer, encoding="ascii"))
    assert main(["export", str(log), "--format", "csv"]) == 0
    assert buffer.getvalue().count(b"\r\n") >= N
