"""Hit rate against the strength of a synthetic signal (the paper's Figure "sweep")."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import cycle
from typing import TYPE_CHECKING

from gatekeeper.report.figures.style import COLOURS, DASHES, legend_above, new_figure, styled

if TYPE_CHECKING:
    from matplotlib.figure import Figure

__all__ = ["Point", "sweep_figure"]


@dataclass(frozen=True, slots=True)
class Point:
    """A marked point of the sweep."""

    label: str
    rho: float
    hit_rate: float


def sweep_figure(
    rho: Sequence[float],
    hit_rate: Sequence[float],
    *,
    threshold: float,
    points: Sequence[Point] = (),
    low: Sequence[float] | None = None,
    high: Sequence[float] | None = None,
) -> Figure:
    """Hit rate of MP-Syn against the strength ρ of a synthetic signal (the paper's Figure "sweep").

    Parameters
    ----------
    rho, hit_rate
        (R,) each.
    threshold
        Hit rate of Threshold on the real signal, drawn as a horizontal line.
    points
        Marked points.
    low, high
        (R,) each: 95 % interval of the hit rate.
    """
    with styled():
        figure = new_figure(6.4, 3.9)
        axes = figure.add_subplot()
        if low is not None and high is not None:
            axes.fill_between(rho, low, high, color=COLOURS[0], alpha=0.18, lw=0)
        axes.plot(rho, hit_rate, "o-", color=COLOURS[0], ms=4, label="MP-Syn, synthetic signal")
        axes.axhline(threshold, color=COLOURS[1], ls=DASHES[1], label="Threshold, real signal")
        for point, colour, marker in zip(
            points, cycle(COLOURS[2:]), cycle(("D", "X", "^", "s")), strict=False
        ):
            axes.plot(
                [point.rho],
                [point.hit_rate],
                marker,
                color=colour,
                ms=10,
                mec="white",
                ls="none",
                label=point.label,
                zorder=5,
            )
        axes.set_xlabel("signal strength ρ")
        axes.set_ylabel("hit rate")
        legend_above(figure, columns=2)
    return figure
