"""One level for every interval, and what follows from it."""

from __future__ import annotations

from math import isnan, nan

import numpy as np
import pytest
from scipy.stats import norm

from gatekeeper.stats.interval import LEVEL, NORMAL, TAIL, UPPER, Interval


def test_the_quantiles_are_those_of_the_level() -> None:
    assert pytest.approx(LEVEL) == 1 - 2 * TAIL
    assert UPPER == 1 - TAIL
    assert norm.ppf(UPPER) == pytest.approx(NORMAL, abs=5e-5)


def test_a_symmetric_interval_has_its_margin_back() -> None:
    found = Interval.around(0.4, 0.1, 10)
    assert (found.low, found.high) == (pytest.approx(0.3), pytest.approx(0.5))
    assert (found.margin, found.n) == (pytest.approx(0.1), 10)
    assert Interval.around(0.7, 0.0).margin == 0.0
    assert isnan(Interval.around(0.7, nan).margin)


def test_the_complement_turns_the_ends_round() -> None:
    assert Interval(0.25, 0.0, 0.5, 8).complement == Interval(0.75, 0.5, 1.0, 8)


def test_draws_give_their_mean_and_quantiles() -> None:
    draws = np.append(np.linspace(0.0, 1.0, 1001), nan)
    found = Interval.of_draws(draws, 7)
    assert (found.value, found.low, found.high) == pytest.approx((0.5, TAIL, UPPER))
    assert found.n == 7
    assert isnan(Interval.of_draws(np.array([nan])).value)
