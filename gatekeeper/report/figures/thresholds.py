"""Score distributions of the strata, with the thresholds that select among them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from gatekeeper.errors import BadInputError
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
from gatekeeper.stats.density import density

if TYPE_CHECKING:
    from matplotlib.figure import Figure

__all__ = ["threshold_figure"]


def threshold_figure(
    scores: Sequence[ArrayLike],
    *,
    global_threshold: float,
    thresholds: Sequence[float],
    names: Sequence[str] | None = None,
    xlabel: str = "score ÷ cost",
) -> Figure:
    """Score distribution of each stratum, and the share that either threshold selects.

    Parameters
    ----------
    scores
        K arrays of shape (n_k,). A stratum with one distinct score gets a vertical line.
    global_threshold
        The common threshold.
    thresholds
        τ_k, (K,); NaN where there is none.
    names
        Names of the strata; default: Q1, Q2, …
    xlabel
        Name of the score.

    Raises
    ------
    BadInputError
        If there is not one threshold per stratum.
    """
    if len(thresholds) != len(scores):
        raise BadInputError(
            f"thresholds={thresholds!r:.80}: give one per stratum, {len(scores)} in all"
        )
    values: list[NDArray[np.float64]] = [np.asarray(s, dtype=np.float64) for s in scores]
    names = [f"Q{k}" for k in range(1, len(values) + 1)] if names is None else names
    everything = np.concatenate([*values, [global_threshold], thresholds])
    low, high = _range_of(everything[np.isfinite(everything)])
    grid = np.linspace(low, high, POINTS)
    with styled():
        figure = new_figure(WIDTH, 0.9 + 0.95 * max(1, len(values)))
        panels: Any = figure.subplots(len(values), 1, sharex=True, squeeze=False)[:, 0]
        for axes, x, name, own in zip(panels, values, names, thresholds, strict=True):
            curve = density(x, grid)
            if np.isfinite(curve).all():
                axes.fill_between(grid, curve, color=COLOURS[5], alpha=0.35, lw=0)
                axes.plot(grid, curve, color=INK, lw=1.1)
                axes.set_ylim(0.0, 1.4 * curve.max() or 1.0)  # room for the note; 0: out of range
            elif x.size:
                axes.axvline(float(x[0]), color=INK, lw=3, alpha=0.5)
            below = {"ymax": 0.75}  # the note
            axes.axvline(
                global_threshold, color=COLOURS[1], ls=DASHES[1], label="common threshold", **below
            )
            axes.axvline(own, color=COLOURS[0], label="own threshold of the stratum", **below)
            note = "no scores"
            if x.size:
                by_common, by_own = np.mean(x > global_threshold), np.mean(x > own)
                note = f"selected: {by_common:.0%} by common, {by_own:.0%} by own"
            axes.text(1.0, 0.95, note, transform=axes.transAxes, ha="right", va="top", fontsize=9.5)
            top = axes.get_ylim()[1]
            for text, at in (("common", global_threshold), ("own", own)):
                tip(axes, at, top / 2, f"{name}: {text} threshold {at:.4g}")
            axes.set_ylabel(name, rotation=0, ha="right", va="center", fontweight="bold")
            axes.set_yticks([])
            axes.spines["left"].set_visible(False)
        panels[-1].set_xlim(low, high)
        panels[-1].set_xlabel(xlabel)
        legend_above(figure, columns=1)
    return figure


def _range_of(values: NDArray[np.float64]) -> tuple[float, float]:
    """Range to show: all values but a thin tail, with a margin."""
    if not values.size:
        return 0.0, 1.0
    low, high = np.quantile(values, (0.002, 0.995))
    room = 0.06 * (high - low) or max(abs(high), 1.0) * 0.1
    return float(low - room), float(high + room)
