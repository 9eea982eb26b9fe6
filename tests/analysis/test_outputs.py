"""The columns of outputs are the same from a table of records as from its records one by one."""

from __future__ import annotations

from dataclasses import replace
from math import inf, nan
from typing import Any

import numpy as np
import pytest

from gatekeeper.analysis.outputs import OutputTable, raw_of_records
from gatekeeper.errors import BadInputError
from gatekeeper.io.records import RecordTable
from gatekeeper.types import FloatArray


def a_table(seed: int) -> RecordTable:
    """Each optional column may be there, with values that are missing."""
    rng = np.random.default_rng(seed)
    n = int(rng.choice((0, 1, 50)))

    def some(*values: float, missing: float = 0.3) -> FloatArray:
        return np.where(rng.random(n) < missing, nan, rng.choice(values, n))

    optional: dict[str, Any] = {
        "propensity": some(0.0, 1.0, 1e-300, 0.3),
        "verified": some(0.0, 1.0),
        "value": some(0.4, -1e300, 0.0, -0.0),
        "features": {"b": some(1.0, -0.0, 1e308), "never": np.full(n, nan), "a": some(2.0)},
    }
    given = {name: column for name, column in optional.items() if rng.random() < 0.7}
    return RecordTable(
        [f"g{i}" for i in range(n)],
        np.column_stack([some(-inf, 1.5, 0.0, missing=0.5) for _ in range(3)]),
        rng.choice((1e-100, 1e100, 0.1, 3.0), n),
        np.full(n, nan),
        some(0.0, 1.0),
        **given,
    )


@pytest.mark.parametrize("seed", range(40))
def test_a_table_is_its_records(seed: int) -> None:
    records = a_table(seed)
    table, one_by_one = OutputTable.of(records), OutputTable.of(list(records))
    everything = np.arange(len(table.ids))
    raw, other = table.raw(everything), one_by_one.raw(everything)
    assert table.ids == one_by_one.ids
    for name in ("propensity", "selected", "drawn", "label", "value"):
        found, expected = getattr(table, name), getattr(one_by_one, name)
        assert found.dtype == expected.dtype
        assert np.array_equal(found, expected, equal_nan=found.dtype == np.float64), name
    assert np.array_equal(raw.rows, other.rows, equal_nan=True)
    seen = raw.only(other.names)
    assert seen.names == other.names
    assert np.array_equal(seen.features, other.features, equal_nan=True)
    left_out = set(raw.names) - set(seen.names)
    assert np.isnan(raw.only(left_out).features).all()


@pytest.mark.parametrize(
    ("column", "value"),
    [
        ("propensity", -0.1),
        ("propensity", 1.5),
        ("propensity", inf),
        ("cost_estimate", 0.0),
        ("cost_estimate", nan),
        ("cost_estimate", 1e101),
    ],
)
def test_impossible_values_are_named(column: str, value: float) -> None:
    records = replace(a_table(2), propensity=np.full(50, 0.5))
    changed = np.array(getattr(records, column))
    changed[[7, 31]] = value
    records = replace(records, **{column: changed})
    messages = []
    for outputs in (records, list(records)):
        with pytest.raises(BadInputError) as found:
            OutputTable.of(outputs)
        messages.append(str(found.value))
    assert messages[0] == messages[1]
    assert messages[0].startswith(f"id='g7': {column}={value!r} must be") or (
        messages[0] == f"id='g7': propensity={value!r} must lie in [0, 1]"
    )


def test_features_are_in_the_order_of_their_names() -> None:
    records = replace(a_table(2), features={"b": np.full(50, 2.0), "a": np.full(50, 1.0)})
    raw = raw_of_records(records)
    assert raw.names == ("a", "b")
    assert raw.features.tolist() == [[1.0, 2.0]] * 50
    assert raw.only(["b"]).features.tolist() == [[2.0]] * 50
