"""Cumulative verifications and errors over the stream."""

from __future__ import annotations

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

if TYPE_CHECKING:
    from matplotlib.figure import Figure

__all__ = ["timeline_figure"]


def timeline_figure(
    verified: ArrayLike, wrong: ArrayLike, *, warmup: int, rate: float | None
) -> Figure:
    """Cumulative verifications and the errors they found, over the stream.

    Parameters
    ----------
    verified, wrong
        (n,) booleans in stream order: verified by the gate; verified and wrong.
    warmup
        Length of the warm-up, which is shaded.
    rate
        Verifications per output that the budget allows after the warm-up; None draws no such line.
    """
    v, w = np.asarray(verified, dtype=bool), np.asarray(wrong, dtype=bool)
    shown = np.unique(np.linspace(0, v.size, 2 * POINTS).astype(int))
    with styled():
        figure = new_figure(WIDTH, 3.4)
        axes = figure.add_subplot()
        if warmup:
            axes.axvspan(0, warmup, color=INK, alpha=0.09, lw=0, label="warm-up")
        for values, name, colour, dash in (
            (v, "verified", COLOURS[0], DASHES[0]),
            (w, "verified and wrong", COLOURS[1], DASHES[1]),
        ):
            total = np.concatenate(([0], np.cumsum(values)))
            axes.plot(shown, total[shown], color=colour, ls=dash, label=name)
            for at in np.unique(np.linspace(0, v.size, 21).astype(int)).tolist():
                tip(axes, at, float(total[at]), f"{total[at]} {name} of the first {at}")
        if rate is not None:
            allowed = [v[:warmup].sum(), v[:warmup].sum() + rate * (v.size - warmup)]
            axes.plot(
                [warmup, v.size],
                allowed,
                color=INK,
                ls=DASHES[2],
                lw=1.2,
                label="budget, spent evenly",
            )
        axes.set_xlim(0, max(1, v.size))
        axes.set_ylim(bottom=0)
        axes.set_xlabel("outputs seen")
        axes.set_ylabel("outputs, cumulative")
        legend_above(figure, columns=2)
    return figure
