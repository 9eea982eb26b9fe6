"""Whether thresholds by cost help because costs differ."""

from __future__ import annotations

from gatekeeper.report import formatting as fmt
from gatekeeper.report.data import ReportData
from gatekeeper.report.html import Markup, section, table
from gatekeeper.report.labels import RULES

__all__ = ["controls"]


def controls(data: ReportData) -> Markup | None:
    found = data.diagnosis
    if found.partitions is None:
        return None
    rows = [
        (
            RULES[choice.name],
            fmt.percent(choice.hit_rate),
            fmt.percent(choice.recall),
            fmt.percent(choice.utilisation),
            fmt.difference(choice.above_threshold, choice.above_threshold_margin),
            fmt.difference(choice.above_random, choice.above_random_margin),
        )
        for choice in sorted(found.partitions, key=lambda choice: list(RULES).index(choice.name))
    ]
    return section(
        "Is it cost that makes the difference?",
        table(
            ("thresholds", "hit rate", "recall", "budget used", "above Threshold", "above random"),
            rows,
            caption="If thresholds by cost help because costs differ, those by groups that mean "
            f"nothing should not. Replayed at a budget of {fmt.budget(found.beta)} on all records "
            f"after the warm-up, in {found.orders} random orders, on labels and signals as they "
            "are; the figures above, with noise and on the second half, differ for that. These "
            "intervals count also which outputs happened to be wrong.",
        ),
    )
