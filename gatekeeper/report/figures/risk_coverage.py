"""Risk–coverage curves."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import cycle
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import ArrayLike

from gatekeeper.report.figures.style import (
    COLOURS,
    DASHES,
    INK,
    POINTS,
    WIDTH,
    legend_above,
    new_figure,
    styled,
    tip,
)
from gatekeeper.stats.risk_coverage import risk_coverage

if TYPE_CHECKING:
    from matplotlib.figure import Figure

__all__ = ["risk_coverage_figure"]

FLOOR, CEILING = "random", "oracle"  # curves that are always drawn


def risk_coverage_figure(orderings: Mapping[str, ArrayLike], labels: ArrayLike) -> Figure:
    """Error rate among accepted outputs against the share accepted, for several scores.

    "random" (the base rate) and "oracle" (all errors last) are always added.

    Parameters
    ----------
    orderings
        Name → scores (n,), larger = more uncertain; drawn in this order.
    labels
        (n,) in {0, 1}; 1 is wrong.

    Raises
    ------
    BadInputError
        As `gatekeeper.stats.risk_coverage.risk_coverage`.
    """
    y = np.asarray(labels, dtype=np.float64)
    with styled():
        figure = new_figure(WIDTH, 3.6)
        axes = figure.add_subplot()
        curves = {**orderings, FLOOR: np.zeros_like(y), CEILING: y}
        for (name, scores), colour, dash in zip(
            curves.items(), cycle(COLOURS), cycle(DASHES), strict=False
        ):
            risk = risk_coverage(scores, y)
            shown = np.unique(np.linspace(0, risk.size - 1, POINTS).astype(int))
            extra = {"color": INK, "lw": 1.2} if name in (FLOOR, CEILING) else {"color": colour}
            axes.plot(
                (shown + 1) / risk.size * 100,
                risk[shown],
                ls=dash,
                label=f"{name}, AURC {risk.mean():.3f}",
                **extra,
            )
            for share in range(10, 101, 10):
                at = risk[max(round(share / 100 * risk.size), 1) - 1]
                tip(axes, share, at, f"{name}: {at:.1%} wrong among the first {share} %")
        axes.set_xlim(0, 100)
        axes.set_ylim(bottom=0.0)
        axes.set_xlabel("coverage: share accepted, most certain first, %")
        axes.set_ylabel("error rate among accepted")
        legend_above(figure, columns=2)
    return figure
