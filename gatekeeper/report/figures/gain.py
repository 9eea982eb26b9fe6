"""Gain of a policy over Threshold, by budget."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import cycle
from typing import TYPE_CHECKING

import numpy as np

from gatekeeper.errors import BadInputError
from gatekeeper.report.figures.style import (
    COLOURS,
    DASHES,
    INK,
    MARKERS,
    WIDTH,
    legend_above,
    new_figure,
    styled,
    tip,
)
from gatekeeper.wording import signed

if TYPE_CHECKING:
    from matplotlib.figure import Figure

__all__ = ["Gain", "GainPanel", "gain_figure"]


@dataclass(frozen=True, slots=True)
class Gain:
    """Hit rate of a policy minus that of Threshold, by budget; in percentage points."""

    policy: str
    mean: Sequence[float]  # (B,)
    low: Sequence[float]  # (B,), 95 % interval
    high: Sequence[float]  # (B,)


@dataclass(frozen=True, slots=True)
class GainPanel:
    setting: str
    beta: Sequence[float]  # (B,), in (0, 1)
    gains: Sequence[Gain]


def gain_figure(panels: Sequence[GainPanel]) -> Figure:
    """Gain of policies over Threshold at each budget, with 95 % intervals.

    Parameters
    ----------
    panels
        One per setting, at least one.

    Raises
    ------
    BadInputError
        Without a panel.
    """
    if not panels:
        raise BadInputError("panels=[]: nothing to draw; give at least one panel")
    with styled():
        columns = min(3, len(panels))
        rows = -(-len(panels) // columns)
        alone = len(panels) == 1  # as large as the other figures
        figure = new_figure(*((WIDTH, 3.4) if alone else (0.8 + 3.1 * columns, 0.6 + 2.7 * rows)))
        grid = list(figure.subplots(rows, columns, sharey=True, squeeze=False).flat)
        for axes, panel in zip(grid, panels, strict=False):
            beta = 100.0 * np.asarray(panel.beta, float)
            axes.axhline(0.0, color=INK, lw=1.0)
            for gain, colour, marker, dash in zip(
                panel.gains, cycle(COLOURS), cycle(MARKERS), cycle(DASHES), strict=False
            ):
                axes.fill_between(beta, gain.low, gain.high, color=colour, alpha=0.18, lw=0)
                axes.plot(
                    beta, gain.mean, marker=marker, color=colour, ls=dash, ms=5, label=gain.policy
                )
                for x, y, low, high in zip(beta, gain.mean, gain.low, gain.high, strict=True):
                    tip(
                        axes,
                        x,
                        y,
                        f"{gain.policy} at {x:g} %: {signed(y, 1)} pp, {signed(low, 1)} to "
                        f"{signed(high, 1)}",
                    )
            axes.set_title(panel.setting)
            axes.set_xlabel("budget β, %")
        for axes in grid[len(panels) :]:
            axes.remove()
        for axes in grid[::columns]:
            axes.set_ylabel("gain over Threshold, pp")
        legend_above(figure, columns=4)
    return figure
