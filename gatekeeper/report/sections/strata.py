"""Whether outputs of different cost can be compared by one score."""

from __future__ import annotations

from math import isnan, nan

import numpy as np

from gatekeeper.analysis.diagnosis import Diagnosis
from gatekeeper.report import figures
from gatekeeper.report import formatting as fmt
from gatekeeper.report.data import STRATA, ReportData
from gatekeeper.report.html import Markup, element, figure, section, table

__all__ = ["strata"]


def strata(data: ReportData) -> Markup:
    found = data.diagnosis
    names = [*(f"Q{j}" for j in range(1, STRATA + 1)), "all"]
    rows = [
        (
            name,
            f"{f.n:,}",
            f"{f.labelled:,}",
            "–" if isnan(f.mean_cost) else fmt.cost(f.mean_cost),
            fmt.percent(f.error_rate),
            fmt.decimals(f.rho),
            fmt.p_value(f.p_value),
        )
        for name, f in zip(names, [*found.strata, found.overall], strict=True)
    ]
    rho = [f.rho for f in found.strata]
    p_value = [f.p_value for f in found.strata]
    correlations = figures.correlation_figure(
        [figures.Correlations("score and error", rho, p_value)]
    )
    return section(
        "Can outputs of different cost be compared?",
        element("p", found.conclusion),
        *(element("p", f"{note[:1].upper()}{note[1:]}.", class_="caution") for note in found.notes),
        table(
            ("stratum", "outputs", "labelled", "mean cost ĉ", "wrong", "ρ", "p"),
            rows,
            caption="Strata: outputs by expected cost, cheapest first, with quarters of the "
            "warm-up as borders; the warm-up itself is left out. ρ: how strongly score and error "
            "go together among the labelled; p: how often chance alone gives as much.",
        ),
        figure(
            figures.inline_svg(correlations, prefix="rho"),
            label="Correlation of score and error in each stratum",
            caption="Filled: told from 0 with p < 0.05. In the grey band the score is next to "
            "random. Where the points differ much, one ranking for all strata misleads. A stratum "
            "with fewer than two right or two wrong outputs has no point.",
        ),
        _differences(found),
        _densities(data),
    )


def _differences(found: Diagnosis) -> Markup:
    """What the conclusion rests on."""
    rows = [
        (
            "variance of ρ over strata, H",
            fmt.decimals(found.dispersion, 4),
            fmt.p_value(found.dispersion_p),
        ),
        (
            "the same, less what few labels alone make",
            fmt.decimals(found.dispersion_corrected, 4),
            "",
        ),
        (
            "largest error rate minus smallest",
            fmt.percent(found.base_rate_spread),
            fmt.p_value(found.base_rate_p),
        ),
    ]
    return table(
        ("do strata differ?", "measured", "p"),
        rows,
        caption="p: how often strata that are all alike would differ as much by chance.",
    )


def _densities(data: ReportData) -> Markup:
    z = data.scores / data.records.cost_estimate
    usable = np.isfinite(z) & (np.arange(z.size) >= data.diagnosis.warmup)
    inside = [z[usable & (data.stratum == j)] for j in range(STRATA)]
    level = 1.0 - data.beta
    drawn = figures.threshold_figure(
        inside,
        global_threshold=float(np.quantile(z[usable], level)) if usable.any() else nan,
        thresholds=[float(np.quantile(own, level)) if own.size else nan for own in inside],
    )
    return figure(
        figures.inline_svg(drawn, prefix="densities"),
        label="Distribution of score divided by cost in each stratum, with both thresholds",
        caption="How score ÷ cost spreads in each stratum. What lies right of a line is verified "
        f"at a budget of {fmt.budget(data.beta)}. Percentages: the share right of the one "
        "threshold for all (policy Threshold), and right of the stratum's own (policy CST).",
    )
