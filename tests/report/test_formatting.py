"""Intervals as text: the interval first, one way for every command."""

from math import nan

import pytest

from gatekeeper.report.formatting import count_interval, rate_interval
from gatekeeper.stats.interval import Interval


@pytest.mark.parametrize(
    ("rate", "text"),
    [
        (Interval(0.47, 0.394, 0.551), "39–55% (47%)"),
        (Interval(0.021, 0.003, 0.067), "0.3–6.7% (2.1%)"),
        (Interval(0.4, 0.4, 0.4), "40.0%"),
        (Interval(nan, nan, nan), "–"),
        (None, "–"),
    ],
)
def test_a_rate(rate: Interval | None, text: str) -> None:
    assert rate_interval(rate) == text


def test_a_difference_of_counts() -> None:
    assert count_interval(Interval(-1.2, -22.4, 19.0)) == "−22 to +19 (−1)"
    assert count_interval(Interval(7.0, 7.0, 7.0)) == "+7"
