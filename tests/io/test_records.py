"""Records are read as they were written, and a bad line is named."""

from __future__ import annotations

import gzip
import json
import re
import subprocess
import sys
from collections.abc import Callable
from math import inf, nan
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gatekeeper import (
    BadInputError,
    Record,
    Signals,
)
from gatekeeper.io.records import (
    RecordTable,
    load_records,
    read_records,
    write_records,
)

GOOD: dict[str, Any] = {"id": "a", "h1": 0.5, "cost_estimate": 2, "cost": 1.5, "error": 1}
FIELDS = {*GOOD, "h2", "h3", "stratum", "group", "benefit", "propensity", "verified"}
FIELDS |= {"features", "value"}


def lines(*rows: dict[str, Any]) -> str:
    return "".join(json.dumps(row) + "\n" for row in rows)


PACKED = gzip.compress(lines(GOOD).encode(), mtime=0)
CORRUPT = PACKED[:12] + bytes(byte ^ 255 for byte in PACKED[12:])


@pytest.fixture
def read(tmp_path: Path) -> Callable[..., RecordTable]:
    def read(*rows: dict[str, Any], **more: Any) -> RecordTable:
        path = tmp_path / "records.jsonl"
        path.write_text(lines(*rows))
        return read_records(path, **more)

    return read


# -- round trip --------------------------------------------------------------------------------

finite = st.floats(allow_nan=False, allow_infinity=False)
signal = st.one_of(st.floats(-1e100, 1e100), st.just(nan), st.just(-inf))
positive = st.floats(1e-100, 1e100)
texts = st.text(min_size=1)
json_values = st.recursive(
    st.none() | st.booleans() | finite | st.integers(-(2**70), 2**70) | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
    max_leaves=4,
)


@st.composite
def a_record(draw: st.DrawFn, id_: str) -> Record:
    error = draw(st.sampled_from([0, 1, None]))
    verified = draw(st.sampled_from([True, False, None]))
    unverified = error is None or verified is False
    return Record(
        id_,
        Signals(draw(signal), draw(signal), draw(signal)),
        draw(positive),
        draw(positive | st.just(nan) if unverified else positive),
        error,  # type: ignore[arg-type]
        stratum=draw(st.none() | st.integers(0, 2**40)),
        group=draw(st.none() | texts),
        benefit=draw(st.sampled_from([0, 1, None])),
        propensity=draw(st.none() | st.floats(0, 1)),
        verified=verified,
        meta=draw(st.dictionaries(st.text().filter(lambda k: k not in FIELDS), json_values)),
        features=dict(sorted(draw(st.dictionaries(texts, finite, max_size=4)).items())),
    )


some_records = st.lists(texts, min_size=1, max_size=6, unique=True).flatmap(
    lambda ids: st.tuples(*(a_record(id_) for id_ in ids))
)


@settings(deadline=None)
@given(records=some_records, packed=st.booleans())
def test_what_is_written_is_read_back(
    tmp_path_factory: pytest.TempPathFactory, records: tuple[Record, ...], packed: bool
) -> None:
    path = tmp_path_factory.getbasetemp() / f"round.jsonl{'.gz' if packed else ''}"
    write_records(path, records)
    table = read_records(path)
    assert list(map(repr, table)) == list(map(repr, records))  # NaN equals NaN
    assert list(map(repr, RecordTable.of(records))) == list(map(repr, records))
    first = path.read_bytes()
    write_records(path, table)
    assert path.read_bytes() == first
    assert not list(path.parent.glob("*.part"))
    for line in (gzip.decompress(first) if packed else first).splitlines():
        json.loads(line, parse_constant=lambda name: pytest.fail(f"{name} is no JSON"))


@settings(deadline=None)
@given(records=some_records, data=st.data())
def test_take_is_indexing(records: tuple[Record, ...], data: st.DataObject) -> None:
    index = data.draw(st.lists(st.integers(0, len(records) - 1)))
    table = RecordTable.of(records)
    taken = list(table.take(np.array(index, dtype=np.intp)))
    assert list(map(repr, taken)) == [repr(records[i]) for i in index]
    mask = np.isin(np.arange(len(records)), index)
    kept = [repr(r) for r, keep in zip(records, mask, strict=True) if keep]
    assert list(map(repr, table.take(mask))) == kept


def test_unknown_fields_stay_where_they_were(
    read: Callable[..., RecordTable], tmp_path: Path
) -> None:
    first = GOOD | {"model": {"name": "m", "scores": [1, nan]}, "meta": {"k": 1}}
    table = read(first, GOOD | {"id": "b"})
    assert table.meta is not None
    assert table.meta[0].keys() == {"model", "meta"}
    assert table.meta[1] == {}
    write_records(tmp_path / "out.jsonl", table)
    again = [json.loads(line) for line in (tmp_path / "out.jsonl").read_text().splitlines()]
    assert again == [
        GOOD | {"model": {"name": "m", "scores": [1, None]}, "meta": {"k": 1}},
        GOOD | {"id": "b"},
    ]


def test_lenient_forms(read: Callable[..., RecordTable]) -> None:
    """Forms that other tools write: ids as numbers, labels as 1.0, NaN for null."""
    a, b, c = read(
        GOOD | {"id": 7, "h1": nan, "h2": "-inf", "h3": -inf, "error": 1.0, "group": 3},
        GOOD | {"id": "b", "error": nan, "cost": nan, "benefit": nan, "verified": 1},
        GOOD | {"id": "c", "cost": None, "verified": False, "h1": None, "stratum": 2.0},
    )
    assert (a.id, a.group, a.error) == ("7", "3", 1)
    assert repr(a.signals) == repr(Signals(nan, -inf, -inf))
    assert (b.error, b.benefit, b.verified) == (None, None, True)
    assert np.isnan([b.cost, c.cost]).all()
    assert c.stratum == 2


def test_optional_columns_are_absent_or_full(read: Callable[..., RecordTable]) -> None:
    table = read(GOOD, GOOD | {"id": "b", "stratum": 1, "group": "g", "propensity": 0.5})
    assert len(table) == 2
    assert table.stratum is not None
    assert table.propensity is not None
    assert table.stratum.tolist() == [-1, 1]
    assert table.group == [None, "g"]
    assert np.array_equal(table.propensity, [nan, 0.5], equal_nan=True)
    assert table.benefit is table.verified is table.meta is None


def test_features_are_columns_with_gaps(read: Callable[..., RecordTable]) -> None:
    """Any finite numbers by name; null, NaN and a name that is not there are all absent."""
    table = read(
        GOOD,
        GOOD | {"id": "b", "features": {"length": 7, "parses": True}},
        GOOD | {"id": "c", "features": {"length": None, "confidence": nan}},
        GOOD | {"id": "d", "features": {"confidence": -0.5}},
    )
    assert table.features is not None
    assert list(table.features) == ["confidence", "length", "parses"]
    columns = np.array(list(table.features.values()))
    expected = [[nan, nan, nan, -0.5], [nan, 7, nan, nan], [nan, 1, nan, nan]]
    assert np.array_equal(columns, expected, equal_nan=True)
    assert [r.features for r in table] == [{}, {"length": 7, "parses": 1}, {}, {"confidence": -0.5}]
    assert table.take(np.array([3, 1])).features["length"].tolist()[1] == 7  # type: ignore[index]


@pytest.mark.parametrize(
    ("features", "shown"),
    [
        ({"length": "7"}, r"features\['length'\]='7': a finite number is needed"),
        ({"length": float("inf")}, r"features\['length'\]=inf: a finite number"),
        ({"": 1}, r"features has the name ''"),
        ([1, 2], r"features=\[1, 2\]: give a dict"),
        ({f"f{i}": i for i in range(300)}, "more than 256 names"),
    ],
)
def test_a_feature_that_is_not_a_number(
    read: Callable[..., RecordTable], features: object, shown: str
) -> None:
    with pytest.raises(BadInputError, match=f"line 2.*{shown}"):
        read(GOOD, GOOD | {"id": "b", "features": features})


def test_the_reference_page_is_true(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """docs/reference/records.md: the table has every field, lines are read, the program runs."""
    text = (Path(__file__).parents[2] / "docs" / "reference" / "records.md").read_text()
    fields = text.partition("## Fields")[2].partition("##")[0]
    first = re.findall(r"^\| (`.*?`) \|", fields, re.MULTILINE)
    assert {name for cell in first for name in re.findall(r"`(\w+)`", cell)} == FIELDS
    monkeypatch.chdir(tmp_path)
    Path("page.jsonl").write_text("\n".join(re.findall(r"^    (\{.*\})$", text, re.MULTILINE)))
    assert read_records("page.jsonl").ids == ["q1", "q2"]
    ((program, shown),) = re.findall(r"```python\n(.*?)  # (.*?)\n```", text, re.DOTALL)
    printed = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert printed.stdout == f"{shown}\n"


# -- bad input ---------------------------------------------------------------------------------

BAD = [
    *(("id", value) for value in ("", True, 1.5, [], None)),
    *((h, value) for h in ("h1", "h2", "h3") for value in (inf, "inf", "0.5", True, [1], 10**400)),
    *(
        (cost, value)
        for cost in ("cost", "cost_estimate")
        for value in (0, -1, nan, inf, -inf, "2", True, None, [], 10**400, 0.0)
    ),
    *(("error", value) for value in (2, -1, 0.5, "1", True, False, inf, [])),
    *(("stratum", value) for value in (-1, 0.5, "1", True, inf)),
    *(("group", value) for value in ("", 1.5, True, [])),
    *(("benefit", value) for value in (2, "1", True)),
    *(("propensity", value) for value in (-0.1, 1.1, "1", True)),
    *(("verified", value) for value in (2, "true", [])),
]


@pytest.mark.parametrize(("name", "value"), BAD)
def test_a_bad_value_names_file_line_and_field(
    read: Callable[..., RecordTable], name: str, value: object
) -> None:
    with pytest.raises(BadInputError, match=rf"records\.jsonl, line 2: field '{name}' is "):
        read(GOOD, GOOD | {"id": "b", name: value})


@pytest.mark.parametrize("name", ["id", "cost_estimate", "cost", "error"])
def test_a_missing_field_is_named(read: Callable[..., RecordTable], name: str) -> None:
    row = {key: value for key, value in GOOD.items() if key != name}
    with pytest.raises(BadInputError, match=f"line 1: field '{name}' is missing"):
        read(row)


def test_an_id_stands_once(read: Callable[..., RecordTable]) -> None:
    with pytest.raises(BadInputError, match="line 3: id '1' occurs twice"):
        read(GOOD, GOOD | {"id": 1}, GOOD | {"id": "1"})


def test_bad_lines_are_skipped_whole(read: Callable[..., RecordTable]) -> None:
    """A refused line has no effect: its id may come again."""
    bad: list[BadInputError] = []
    bad_row = GOOD | {"id": "b", "group": "g", "propensity": 2}
    table = read(GOOD, bad_row, GOOD, bad_row | {"propensity": 1}, skip_bad=True, on_bad=bad.append)
    assert table.ids == ["a", "b"]
    assert table.group == [None, "g"]
    assert ["line 2" in str(bad[0]), "line 3" in str(bad[1])] == [True, True]
    with pytest.raises(BadInputError, match="holds no good record"):
        read({}, skip_bad=True)


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("a.jsonl", b"", "holds no record: give a log, or a JSON object a line"),
        ("a.jsonl", b"\n \n", "holds no record"),
        ("a.jsonl.gz", lines(GOOD).encode(), "cannot be read: Not a gzipped file"),
        ("a.jsonl.gz", PACKED[:-9], "cannot be read"),
        ("a.jsonl", PACKED, "line 1: not UTF-8"),
        ("a.jsonl.gz", CORRUPT, "cannot be read: Error -3 while decompressing"),
        ("a.jsonl", b"[1]\n", "line 1: a JSON object is needed"),
        ("a.jsonl", b"{\n", "line 1: not JSON"),
        ("a.jsonl", lines(GOOD)[:-1].encode() + b" {}\n", "line 1: not JSON: after column"),
    ],
)
def test_a_bad_file_is_named(tmp_path: Path, name: str, content: bytes, message: str) -> None:
    (tmp_path / name).write_bytes(content)
    with pytest.raises(BadInputError, match=message) as error:
        load_records(tmp_path / name)
    assert name in str(error.value)


@pytest.mark.parametrize("name", ["absent.jsonl", "."])
def test_a_path_that_is_not_a_file_is_named(tmp_path: Path, name: str) -> None:
    with pytest.raises(BadInputError, match="cannot be read"):
        load_records(tmp_path / name)


def a_plain_record(**changes: Any) -> Record:
    return Record(
        **({"id": "a", "signals": Signals(1, -1, 1), "cost_estimate": 1, "cost": 1, "error": 1})
        | changes  # type: ignore[arg-type]
    )


@pytest.mark.parametrize(
    "record",
    [
        a_plain_record(cost=nan),
        a_plain_record(cost_estimate=0),
        a_plain_record(signals=Signals(inf, 0, 0)),
        a_plain_record(error=2),
        a_plain_record(meta={"cost": 1}),
        a_plain_record(meta={"x": object()}),
    ],
)
def test_a_record_that_could_not_be_read_is_not_written(tmp_path: Path, record: Record) -> None:
    path = tmp_path / "out.jsonl"
    path.write_text("as before")
    with pytest.raises(BadInputError, match="id='a': "):
        write_records(path, [a_plain_record(id="first"), record])
    assert path.read_text() == "as before"
    assert list(tmp_path.iterdir()) == [path]


def test_equal_ids_are_not_written(tmp_path: Path) -> None:
    with pytest.raises(BadInputError, match="occurs twice"):
        write_records(tmp_path / "out.jsonl", [a_plain_record()] * 2)
    with pytest.raises(BadInputError, match="cannot be written"):
        write_records(tmp_path / "no" / "out.jsonl", [a_plain_record()])


def test_a_file_may_be_written_over_itself(tmp_path: Path) -> None:
    path = tmp_path / "out.jsonl"
    write_records(path, [a_plain_record()])
    write_records(path, (record for record in read_records(path)))
    assert len(read_records(path)) == 1


@pytest.mark.parametrize("path", [5, True, None, b"records.jsonl", ["records.jsonl"]])
def test_what_is_no_path_is_refused(path: Any) -> None:
    """`open` would read file descriptor 5."""
    for use in (load_records, read_records, lambda given: write_records(given, [])):
        with pytest.raises(BadInputError, match=rf"path={re.escape(repr(path))}: give the path"):
            use(path)
