"""Whether the score tells wrong outputs from right ones."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from gatekeeper.report import figures
from gatekeeper.report.data import ReportData
from gatekeeper.report.html import Markup, element, figure, section
from gatekeeper.stats.risk_coverage import aurc

__all__ = ["signal"]


def signal(data: ReportData) -> Markup:
    s, records = data.scores, data.records
    # The score was fitted to the warm-up, so it looks better there than it is.
    after = np.arange(s.size) >= data.diagnosis.warmup
    use = data.labelled & after & np.isfinite(s)
    y = records.error[use]
    title = "Does the signal know which outputs are wrong?"
    if not 0 < y.sum() < y.size:
        return section(
            title,
            element(
                "p",
                f"Not to be said: of the {y.size} outputs with a label and a signal after the "
                f"warm-up, {y.sum():.0f} are wrong; some of both kinds are needed.",
            ),
        )
    orderings = {"score ÷ cost": (s / records.cost_estimate)[use], "score": s[use]}
    best = min(aurc(values, y) for values in orderings.values())
    drawn = figures.risk_coverage_figure(orderings, y)
    return section(
        title,
        *_caution(data),
        element(
            "p",
            "Accept the least doubtful outputs first, and see how many of the accepted are wrong. "
            f"An ordering that knows nothing keeps the base rate, {y.mean():.1%}; one that knew "
            f"everything would average {aurc(y, y):.1%}; the better of the two here "
            f"averages {best:.1%}"
            + ("." if best < y.mean() else ", which is no better than knowing nothing."),
        ),
        figure(
            figures.inline_svg(drawn, prefix="risk"),
            label="Error rate among accepted outputs against the share accepted",
            caption=f"{y.size:,} labelled outputs after the warm-up. A lower curve is better. "
            "AURC, the area under the curve, is the error rate averaged over all shares accepted.",
        ),
    )


def _caution(data: ReportData) -> Iterable[Markup]:
    """Which outputs have a label may have depended on their scores: say so."""
    if data.run is not None and not data.labelled.all():
        yield element(
            "p",
            "Mind: only outputs that were picked for verification have a label here, mostly "
            "the doubtful ones. What follows is about those, and shows less than the score "
            "is worth. To have the rest checked too, outside the budget: ",
            element("code", "gatekeeper run … --check-all"),
            class_="caution",
        )
