"""The axes of the live page's charts."""

from __future__ import annotations

import re

import pytest

from gatekeeper.page.charts import Band, Line, chart


def numbers_beside(svg: str) -> list[str]:
    """Of the y axis, from the bottom."""
    return re.findall(r'text-anchor="end" fill="currentColor">([\d.e-]+[%kMG]?)<', svg)


@pytest.mark.parametrize(
    ("found", "last"), [(0.0, "1"), (0.4, "1"), (1.0, "1"), (7.0, "8"), (12_000.0, "15k")]
)
def test_an_axis_of_counts(found: float, last: str) -> None:
    """Where nothing is wrong, or little, it ends at 1."""
    line = Line("found", [0.0, 60.0], [0.0, found])
    numbers = numbers_beside(chart(lines=[line], x_label="outputs", y_label="wrong"))
    assert (numbers[0], numbers[-1]) == ("0", last)


@pytest.mark.parametrize(("share", "last"), [(0.0, "1%"), (0.07, "8%"), (0.9, "100%")])
def test_an_axis_of_shares(share: float, last: str) -> None:
    band = Band(0.0, 60.0, 0.0, share, share, "")
    svg = chart(bands=[band], x_label="outputs", y_label="wrong", percent=True)
    numbers = numbers_beside(svg)
    assert (numbers[0], numbers[-1]) == ("0%", last)
