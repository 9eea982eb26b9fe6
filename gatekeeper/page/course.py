"""The course of a run over its stream: the error rate part by part, and the errors found."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import count

import numpy as np

from gatekeeper.page.state import Figures
from gatekeeper.stats.interval import Interval
from gatekeeper.types import FloatArray, Reason

__all__ = ["Part", "found_over_stream", "rate_over_stream"]

PARTS = 24  # at most
LABELS = 60  # verdicts in a part, on average, at least
POINTS = 160


@dataclass(frozen=True, slots=True)
class Part:
    """A part of the stream, and the error rate of all its outputs."""

    first: int  # outputs before it
    end: int
    rate: Interval | None  # None where it cannot be estimated


def rate_over_stream(figures: Figures) -> list[Part]:
    """The error rate of all outputs of each part, from that part's verdicts alone.

    Parts have round sizes, so that their borders stay while the stream grows.
    """
    n, verdicts = len(figures.columns), int(figures.drawn.sum())
    if not verdicts:
        return []
    least = max(n / PARTS, LABELS * n / verdicts)
    size = next(s for s in _round_sizes() if s >= min(least, n))
    return [
        Part(first, min(first + size, n), figures.rate_of(slice(first, first + size)).weighted)
        for first in range(0, n, size)
    ]


def found_over_stream(figures: Figures) -> tuple[FloatArray, FloatArray, FloatArray]:
    """After how many outputs, how many errors the gate had found, and as many checks at random.

    After the warm-up, and at the rate of the summary's `random_found`; empty without it.
    """
    summary, empty = figures.summary, np.empty(0)
    if summary.random_found is None or not summary.verified:
        return empty, empty, empty
    checked = figures.drawn & ~figures.columns.of_reason(Reason.WARMUP)
    found = np.concatenate(([0], np.cumsum(checked & figures.wrong)))
    checks = np.concatenate(([0], np.cumsum(checked)))
    at = np.unique(np.linspace(0, checked.size, POINTS).astype(np.intp))
    share = summary.random_found / summary.verified
    return at.astype(float), found[at].astype(float), checks[at] * share


def _round_sizes() -> Iterator[int]:
    for power in count(1):
        yield from (10**power, 2 * 10**power, 5 * 10**power)
