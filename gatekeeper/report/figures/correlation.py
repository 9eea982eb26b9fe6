"""Correlation of score and error in each cost stratum."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import cycle
from typing import TYPE_CHECKING

import numpy as np

from gatekeeper.report.figures.style import (
    COLOURS,
    INK,
    MARKERS,
    WIDTH,
    legend_above,
    new_figure,
    styled,
    tip,
)
from gatekeeper.wording import p_text

if TYPE_CHECKING:
    from matplotlib.figure import Figure

__all__ = ["Correlations", "correlation_figure"]

SIGNIFICANT = 0.05  # two-sided p below which a marker is filled
NEAR_RANDOM = 0.10  # ρ below which a signal is close to random (the paper's shaded band)


@dataclass(frozen=True, slots=True)
class Correlations:
    """ρ_k of one setting, by stratum; NaN where a stratum has too few wrong or correct outputs."""

    name: str
    rho: Sequence[float]  # (K,), in [-1, 1]
    p_value: Sequence[float]  # (K,), two-sided
    low: Sequence[float] = ()  # (K,), 95 % interval; empty: none is drawn
    high: Sequence[float] = ()


def correlation_figure(settings: Sequence[Correlations]) -> Figure:
    """Correlation of score and error in each stratum (the paper's Figure "quartile").

    Filled markers: p < 0.05; open markers: not significant. The band ρ < 0.10 is close to random.
    With intervals there are bars, and no line between strata, which have nothing between them.

    Parameters
    ----------
    settings
        One line each; drawn side by side. Without any, the axes stay empty.
    """
    with styled():
        figure = new_figure(WIDTH if len(settings) == 1 else 6.4, 3.6)
        axes = figure.add_subplot()
        k = max((len(setting.rho) for setting in settings), default=0)
        axes.axhspan(-2.0, NEAR_RANDOM, color=INK, alpha=0.09, lw=0)
        axes.axhline(0.0, color=INK, lw=0.8)
        drawn = [0.0, 2.5 * NEAR_RANDOM]
        width = 0.09 * min(len(settings) - 1, 4)  # side by side, so that no marker hides another
        shifts = np.linspace(-width, width, len(settings)) if len(settings) > 1 else [0.0]
        for setting, shift, colour, marker in zip(
            settings, shifts, cycle(COLOURS), cycle(MARKERS), strict=False
        ):
            rho, p = np.asarray(setting.rho, float), np.asarray(setting.p_value, float)
            x = np.arange(1, rho.size + 1) + shift
            drawn.extend(rho[np.isfinite(rho)].tolist())
            if len(setting.low):
                bars = np.abs(np.array([setting.low, setting.high]) - rho)
                axes.errorbar(x, rho, bars, fmt="none", ecolor=colour, elinewidth=1.6, capsize=5)
                drawn.extend(v for v in (*setting.low, *setting.high) if v == v)
            else:
                axes.plot(x, rho, "-", color=colour, lw=1.2, alpha=0.6)
            for i, (at, value, own) in enumerate(zip(x, rho, p, strict=True)):
                between = f", {setting.low[i]:.2f} to {setting.high[i]:.2f}" if setting.low else ""
                tip(axes, at, value, f"Q{i + 1}: ρ = {value:.3f}{between}, {p_text(own)}")
            for chosen, fill in ((p < SIGNIFICANT, colour), (~(p < SIGNIFICANT), "none")):
                axes.plot(x[chosen], rho[chosen], marker, color=colour, mfc=fill, mew=1.6, ms=8)
            line = "none" if len(setting.low) else "-"
            axes.plot([], [], marker, ls=line, color=colour, label=setting.name)
        for label, fill in (("p < 0.05", INK), ("not significant", "none")):
            axes.plot([], [], "o", color=INK, mfc=fill, mew=1.6, label=label)
        axes.set_ylim(min(drawn) - 0.06, max(drawn) + 0.08)
        axes.set_xlim(0.6, k + 0.4)
        axes.set_xticks(range(1, k + 1), [f"Q{i}" for i in range(1, k + 1)])
        axes.grid(axis="x", visible=False)
        axes.text(
            0.99,
            NEAR_RANDOM,
            "near random",
            va="top",
            ha="right",
            fontsize=9,
            transform=axes.get_yaxis_transform(),
        )
        axes.set_xlabel("cost stratum, cheapest first")
        axes.set_ylabel("correlation ρ of score and error")
        legend_above(figure, columns=3)
    return figure
