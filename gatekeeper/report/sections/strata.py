"""Whether outputs of different cost can be compared by one score."""

from __future__ import annotations

from math import atanh, isnan, nan, sqrt, tanh

import numpy as np

from gatekeeper.analysis.diagnosis import Diagnosis, StratumFigures
from gatekeeper.report import figures
from gatekeeper.report import formatting as fmt
from gatekeeper.report.data import STRATA, ReportData
from gatekeeper.report.html import Markup, Section, element, figure, section, table
from gatekeeper.stats.interval import NORMAL
from gatekeeper.types import FloatArray
from gatekeeper.wording import cost_text

__all__ = ["strata"]


def strata(data: ReportData) -> Section:
    found = data.diagnosis
    names = [*(f"Q{j}" for j in range(1, STRATA + 1)), "all"]
    rows = [
        (
            name,
            f"{f.n:,}",
            f"{f.labelled:,}",
            "–" if isnan(f.mean_cost) else cost_text(f.mean_cost),
            fmt.percent(f.error_rate),
            fmt.decimals(f.rho),
            _between(_interval(f)),
            fmt.p_value(f.p_value),
        )
        for name, f in zip(names, [*found.strata, found.overall], strict=True)
    ]
    return section(
        "Can one score compare outputs of different cost?",
        element("p", found.conclusion),
        *(element("p", f"{note[:1].upper()}{note[1:]}.", class_="caution") for note in found.notes),
        table(
            ("stratum", "outputs", "labelled", "mean cost ĉ", "wrong", "ρ", "95 % interval", "p"),
            rows,
            caption="Strata: outputs by expected cost, cheapest first. The borders are quartiles "
            "of the warm-up, which is itself left out. ρ: correlation of score and error among "
            "labelled outputs, with its interval on Fisher's scale. p: probability of a "
            "correlation at least this strong by chance.",
        ),
        *_correlations(found),
        _differences(found),
        *_densities(data),
    )


def _correlations(found: Diagnosis) -> list[Markup]:
    """The figure of the ρ_k, if one is known."""
    rho = [f.rho for f in found.strata]
    p_value = [f.p_value for f in found.strata]
    if all(map(isnan, rho)):
        return []
    low, high = zip(*map(_interval, found.strata), strict=True)
    correlations = figures.correlation_figure(
        [figures.Correlations("score and error", rho, p_value, low, high)]
    )
    return [
        figure(
            figures.inline_svg(correlations, prefix="rho"),
            label="Correlation of score and error in each stratum",
            caption="Bars: 95 % intervals. Filled markers: ρ differs from 0 with p < 0.05. In the "
            "grey band the score is close to random. If the markers differ much, one ranking for "
            "all strata is misleading. A stratum with fewer than two correct or two wrong outputs "
            "has no marker. The table above has the values.",
        )
    ]


def _interval(figures_: StratumFigures) -> tuple[float, float]:
    """The interval of ρ_k: normal on Fisher's scale, so that it stays within [-1, 1]."""
    rho = figures_.rho
    if isnan(rho) or isnan(figures_.variance) or abs(rho) >= 1.0:
        return nan, nan
    margin = NORMAL * sqrt(figures_.variance) / (1.0 - rho * rho)
    return tanh(atanh(rho) - margin), tanh(atanh(rho) + margin)


def _between(interval: tuple[float, float]) -> str:
    return "–" if isnan(interval[0]) else " … ".join(fmt.decimals(v, 2) for v in interval)


def _differences(found: Diagnosis) -> Markup:
    """The tests behind the conclusion."""
    rows = [
        (
            "variance of ρ over strata, H",
            fmt.decimals(found.dispersion, 4),
            fmt.p_value(found.dispersion_p),
        ),
        (
            "H, corrected for sampling noise",
            fmt.decimals(found.dispersion_corrected, 4),
            "",
        ),
        (
            "largest minus smallest error rate",
            fmt.percent(found.base_rate_spread),
            fmt.p_value(found.base_rate_p),
        ),
    ]
    return table(
        ("difference between strata", "value", "p"),
        rows,
        caption="p: probability of a difference at least this large if all strata are alike.",
    )


def _densities(data: ReportData) -> list[Markup]:
    """The figure of score ÷ cost, if one is known."""
    z = data.scores / data.records.cost_estimate
    usable = np.isfinite(z) & (np.arange(z.size) >= data.diagnosis.warmup)
    inside = [z[usable & (data.stratum == j)] for j in range(STRATA)]
    level = 1.0 - data.beta
    if not usable.any():
        return []
    common = float(np.quantile(z[usable], level))
    thresholds = [float(np.quantile(own, level)) if own.size else nan for own in inside]
    drawn = figures.threshold_figure(inside, global_threshold=common, thresholds=thresholds)
    values = table(
        ("stratum", "outputs", "own threshold", "selected by it", "selected by the common one"),
        [
            (f"Q{k}", f"{x.size:,}", fmt.decimals(tau, 4), _above(x, tau), _above(x, common))
            for k, (x, tau) in enumerate(zip(inside, thresholds, strict=True), start=1)
        ],
        caption=f"The common threshold is {fmt.decimals(common, 4)}.",
    )
    return [
        figure(
            figures.inline_svg(drawn, prefix="densities"),
            label="Distribution of score divided by cost in each stratum, with both thresholds",
            caption="Distribution of score ÷ cost in each stratum. Outputs to the right of a line "
            f"are verified at a budget of {fmt.budget(data.beta)}. Percentages: share of the "
            "stratum selected by the common threshold (policy Threshold) and by its own (policy "
            "CST).",
            values=values,
        )
    ]


def _above(values: FloatArray, threshold: float) -> str:
    return fmt.share(float((values > threshold).sum()), values.size)
