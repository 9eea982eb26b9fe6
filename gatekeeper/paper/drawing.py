"""The paper's figures from our replays, as SVG files."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from gatekeeper.paper import published
from gatekeeper.paper.controls import SWEEP_RHO, sweep_grid
from gatekeeper.paper.replays import Replays
from gatekeeper.paper.settings import SETTINGS, STRATA
from gatekeeper.paper.streams import draw
from gatekeeper.paper.tables import BETA, QWEN
from gatekeeper.report import figures
from gatekeeper.types import FloatArray

if TYPE_CHECKING:
    from matplotlib.figure import Figure

__all__ = ["write_figures"]


def write_figures(folder: Path, replays: Replays) -> None:
    """quartile_rho, hga_gain, sweep, thresholds and risk_coverage, each `.svg`.

    Needs the extra `plots`. Raises MissingDependencyError without it.
    """
    drawn = {
        "quartile_rho": figures.correlation_figure([_correlations(s) for s in published.SETTINGS]),
        "hga_gain": figures.gain_figure([_gains(s, replays) for s in published.SETTINGS]),
        "sweep": _sweep(replays),
        "thresholds": _thresholds(),
        "risk_coverage": _risk_coverage(),
    }
    for name, figure in drawn.items():
        figures.save(figure, folder / f"{name}.svg")


def _correlations(setting: str) -> figures.Correlations:
    from scipy.stats import pearsonr

    s, y, _ = _scored(setting)
    parts = zip(np.array_split(s, STRATA), np.array_split(y, STRATA), strict=True)
    found = [pearsonr(a, b) for a, b in parts]
    return figures.Correlations(
        setting, [float(f.statistic) for f in found], [float(f.pvalue) for f in found]
    )


def _gains(setting: str, replays: Replays) -> figures.GainPanel:
    grid = replays.second_half(setting)
    betas = tuple(published.HGA[setting])
    gains = []
    for policy in ("cst", "hga"):
        rows = [grid.gain(policy, "threshold", beta) for beta in betas]
        ends = zip(*((row.value, row.low, row.high) for row in rows), strict=True)
        gains.append(figures.Gain(policy, *ends))
    return figures.GainPanel(setting, betas, gains)


def _sweep(replays: Replays) -> Figure:
    real = replays.grid(QWEN, published.POLICIES, published.BETAS)
    rho = published.FACTS[QWEN].rho
    hits = [sweep_grid(replays, r).mean("mp-adapt", BETA) for r in SWEEP_RHO]
    points = [
        figures.Point("MP-Syn at the observed ρ", rho, hits[SWEEP_RHO.index(rho)]),
        figures.Point("MP-Adapt on the signal itself", rho, real.mean("mp-adapt", BETA)),
    ]
    threshold = real.mean("threshold", BETA)
    return figures.sweep_figure(SWEEP_RHO, hits, threshold=threshold, points=points)


def _thresholds() -> Figure:
    s, _, cost = _scored(QWEN)
    z = (s - s.min()) / np.ptp(s) / cost
    strata = np.array_split(z, STRATA)
    return figures.threshold_figure(
        strata,
        global_threshold=float(np.quantile(z, 1 - BETA)),
        thresholds=[float(np.quantile(part, 1 - BETA)) for part in strata],
        names=[f"Q{k + 1}" for k in range(STRATA)],
    )


def _risk_coverage() -> Figure:
    s, y, cost = _scored(QWEN)
    scaled = (s - s.min()) / np.ptp(s)
    return figures.risk_coverage_figure({"score": scaled, "score ÷ cost": scaled / cost}, y)


def _scored(setting: str) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Mean standardised signal, label and ĉ of the first data set, from cheap to expensive."""
    table = draw(SETTINGS[setting], 0)
    s = ((table.h - table.h.mean(axis=0)) / table.h.std(axis=0)).mean(axis=1)
    return s, table.error, table.cost_estimate
