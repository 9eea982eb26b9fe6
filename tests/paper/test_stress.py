"""The stress streams: made from a seed, well-formed, and with true labels."""

from __future__ import annotations

import numpy as np
import pytest

from gatekeeper import BadInputError
from gatekeeper.io.records import RecordTable, read_records, write_records
from gatekeeper.paper.stress import (
    STREAMS,
    Recipe,
    make_stream,
    stream_names,
    true_error_probability,
)


def same(a: RecordTable, b: RecordTable) -> bool:
    columns = ("h", "cost_estimate", "cost", "error")
    return all(np.array_equal(getattr(a, c), getattr(b, c), equal_nan=True) for c in columns)


@pytest.mark.parametrize("name", stream_names())
def test_a_stream_is_records_that_anyone_could_have(name: str, tmp_path_factory) -> None:  # type: ignore[no-untyped-def]
    table = make_stream(name, 400, 3)
    assert len(table) == 400
    assert same(table, make_stream(name, 400, 3))
    assert not same(table, make_stream(name, 400, 4))
    h1, h2, h3 = table.h.T
    for h, low, high in ((h1, 0.0, np.inf), (h2, -np.inf, 0.0), (h3, 0.0, 1.0)):
        seen = h[~np.isnan(h)]
        assert ((seen >= low) & (seen <= high)).all()
    path = tmp_path_factory.mktemp("streams") / "records.jsonl"
    write_records(path, table)  # costs, labels and ids are those of a file of records
    assert same(read_records(path), table)


@pytest.mark.parametrize("name", stream_names())
def test_the_true_probability_is_calibrated(name: str) -> None:
    """Of candidates with P(error) = p a share of p is wrong; no observed value predicts better."""
    n = 40_000
    table, p = make_stream(name, n, 0), true_error_probability(name, n, 0)
    order = np.argsort(p)
    for part in np.array_split(order, 8):
        spread = np.sqrt((p[part] * (1 - p[part])).sum()) / part.size
        assert abs(table.error[part].mean() - p[part].mean()) < 4.5 * spread + 1e-9
    residual = table.error - p
    for seen in (np.log(table.cost_estimate), *table.h.T):
        has = np.isfinite(seen)
        if has.any() and np.ptp(seen[has]):
            ranks = np.argsort(np.argsort(seen[has]))
            assert abs(np.corrcoef(ranks, residual[has])[0, 1]) < 4.5 / np.sqrt(has.sum())


def test_each_stream_stresses_what_its_name_says() -> None:
    n = 20_000

    def correlation(name: str, part: slice = slice(None)) -> tuple[float, float, float]:
        """Of ĉ with c, ĉ with y and h1 with y, by rank."""
        t = make_stream(name, n, 1)
        ranks = [np.argsort(np.argsort(v[part])) for v in (t.cost_estimate, t.cost, t.h[:, 0])]
        y = t.error[part]
        pairs = ((ranks[0], ranks[1]), (ranks[0], y), (ranks[2], y))
        return tuple(float(np.corrcoef(a, b)[0, 1]) for a, b in pairs)  # type: ignore[return-value]

    t = make_stream("homogeneous", n, 1)
    assert np.ptp(t.cost) == np.ptp(t.cost_estimate) == 0.0
    t = make_stream("exact-cost", n, 1)
    assert np.allclose(t.cost, t.cost_estimate)
    assert correlation("weak-cost")[0] == pytest.approx(0.3, abs=0.05)
    assert correlation("unrelated-cost")[0] == pytest.approx(0.0, abs=0.03)
    assert correlation("rising")[1] > 0.3
    assert correlation("falling")[1] < -0.3
    assert correlation("u-shaped")[1] == pytest.approx(0.0, abs=0.03)
    assert correlation("no-signal")[2] == pytest.approx(0.0, abs=0.03)
    assert correlation("inverted-signal")[2] < -0.2
    half = n // 2
    assert correlation("drift-inverted", slice(0, half))[2] > 0.2
    assert correlation("drift-inverted", slice(half, n))[2] < -0.2
    cost = np.sort(make_stream("heavy-tail", n, 1).cost)
    assert cost[-n // 100 :].sum() > 0.15 * cost.sum()
    t = make_stream("missing-signals", n, 1)
    assert np.isnan(t.h).all(axis=1).mean() == pytest.approx(0.2, abs=0.02)
    bad = make_stream("one-bad-stratum", n, 1)
    k = np.searchsorted(np.quantile(bad.cost_estimate, (0.25, 0.5, 0.75)), bad.cost_estimate)
    rho = [np.corrcoef(bad.h[k == j, 2], bad.error[k == j])[0, 1] for j in range(4)]
    assert min(rho[:3]) > 0.2
    assert rho[3] < -0.2


def test_a_recipe_of_ones_own_and_what_is_refused() -> None:
    assert same(make_stream(STREAMS["usual"], 300, 0), make_stream("usual", 300, 0))
    assert make_stream(Recipe(error_rate=(1.0,)), 300, 0).error.all()
    for name, n, seed, message in (
        ("calm", 500, 0, "name='calm' is not a stream"),
        ("usual", 299, 0, "n=299"),
        ("usual", 100_001, 0, "n=100001"),
        ("usual", 500, -1, "seed=-1"),
    ):
        with pytest.raises(BadInputError, match=message):
            make_stream(name, n, seed)
