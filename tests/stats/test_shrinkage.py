"""Fits of coefficients that are shrunk in groups."""

import numpy as np
import pytest

from gatekeeper.stats.shrinkage import Group, shrunk_fit


@pytest.mark.parametrize("flipped", [0.0, 0.1])
def test_a_count_stands_for_equal_rows(flipped: float) -> None:
    rng = np.random.default_rng(0)
    x = np.column_stack([np.ones(60), rng.normal(size=60), np.arange(60) % 3 == 0])
    y, count = rng.integers(0, 2, 60).astype(float), rng.integers(1, 40, 60)
    groups = [Group((0, 1), variance=4.0, weight=np.inf), Group((2,), variance=0.1)]
    each = shrunk_fit(x.repeat(count, axis=0), y.repeat(count), groups, "logistic", flipped=flipped)
    counted = shrunk_fit(x, y, groups, "logistic", flipped=flipped, count=count.astype(float))
    for found, expected in zip(counted, each, strict=True):
        assert found == pytest.approx(expected, rel=1e-9)
