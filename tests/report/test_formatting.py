"""Intervals as text: the interval first, one way for every command; texts from a log."""

from math import nan

import pytest

from gatekeeper.printable import printable
from gatekeeper.report.formatting import count_interval, rate_interval
from gatekeeper.report.html import element
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
    assert count_interval(Interval(0.2, -0.4, 1.0)) == "+0 to +1 (+0)"


@pytest.mark.parametrize(
    "text",
    [
        "全角\u3000空白, 12\u202f000 and a\u00a0b",
        "👨\u200d👩\u200d👧 and زن\u200cها",
        "a\tb\nc",
        "",
    ],
)
def test_what_people_write_is_shown_as_it_is(text: str) -> None:
    assert printable(text) == text


def test_what_acts_on_a_page_or_a_terminal_is_replaced() -> None:
    assert printable("a\r\nb") == "a\nb"
    odd = "\x00\x07\x1b\x7f\x85\x9b\r\ud800\u2028\u200b"
    odd += "\u200e\u200f\u061c\u202a\u202e\u2066\u2069\ufeff"
    shown = "\ufffd" * len(odd)
    assert printable(odd) == shown
    assert element("p", odd, aria_label=odd) == f'<p aria-label="{shown}">{shown}</p>'
