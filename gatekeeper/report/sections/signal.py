"""Whether the score separates wrong outputs from correct ones."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

import numpy as np

from gatekeeper.policies import Random
from gatekeeper.report import figures
from gatekeeper.report.data import ReportData
from gatekeeper.report.html import Markup, Section, element, figure, section, table
from gatekeeper.stats.risk_coverage import aurc, risk_coverage
from gatekeeper.types import FloatArray
from gatekeeper.wording import counted

__all__ = ["signal"]

RANDOM = f"{Random.__module__}.{Random.__qualname__}"  # in a log's settings


def signal(data: ReportData) -> Section:
    s, records = data.scores, data.records
    # The score was fitted to the warm-up, so it looks better there than it is.
    after = np.arange(s.size) >= data.diagnosis.warmup
    # External verdicts are no random sample, so they count only where every output has a verdict.
    known = data.labelled if data.labelled.all() else records.drawn
    use = known & after & np.isfinite(s)
    y = records.error[use]
    title = "Does the score separate wrong outputs from correct ones?"
    if not 0 < y.sum() < y.size:
        return section(
            title,
            element(
                "p",
                f"Cannot be computed: of the {counted(y.size, 'output')} with a label and a "
                f"signal after the warm-up, {y.sum():.0f} are wrong; both wrong and correct "
                "outputs are needed.",
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
            "Outputs are accepted from the most certain to the most uncertain; the curve shows the "
            "error rate among those accepted. A random order stays at the base rate, "
            f"{y.mean():.1%}; a perfect order has a mean of {aurc(y, y):.1%}; the better of the "
            f"two scores has a mean of {best:.1%}"
            + ("." if best < y.mean() else ", which is no better than a random order."),
        ),
        figure(
            figures.inline_svg(drawn, prefix="risk"),
            label="Error rate among accepted outputs, by share accepted",
            caption=f"{counted(y.size, 'labelled output')} after the warm-up. A lower curve is "
            "better. AURC, the area under the curve, is the mean error rate over all shares "
            "accepted.",
            values=_values(orderings, y),
        ),
    )


def _values(orderings: Mapping[str, FloatArray], y: FloatArray) -> Markup:
    curves = {name: risk_coverage(values, y) for name, values in orderings.items()}
    ends = sorted({max(round(y.size * share / 10), 1) for share in range(1, 11)})
    return table(
        ("accepted", *curves),
        [(f"{end:,}", *(f"{risk[end - 1]:.1%}" for risk in curves.values())) for end in ends],
        caption="Error rate among the outputs accepted, the most certain first.",
    )


def _caution(data: ReportData) -> Iterable[Markup]:
    """A caution if labels are missing: the outputs that have one may depend on the score."""
    if data.run is not None and not data.labelled.all():
        share = data.run.log.propensity[data.diagnosis.warmup :]
        drawn = data.for_score or data.run.log.settings["policy"].get("type") == RANDOM
        these = (
            "Caution: outputs without a verdict are left out here, so the figures are less certain."
            if drawn or not np.ptp(share)
            else "Caution: only outputs that were selected for verification have a label here, "
            "mostly uncertain ones. This section describes those only and understates the value of "
            "the score."
        )
        yield element(
            "p",
            f"{these} The others can be verified too, outside the budget: on the command line ",
            "with ",
            element("code", "gatekeeper run … --check-all"),
            ", in Python with ",
            element("code", "gate.report_outcome"),
            class_="caution",
        )
