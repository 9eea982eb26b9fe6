"""Whether thresholds by cost help because costs differ: other partitions as controls."""

from __future__ import annotations

from gatekeeper.report import formatting as fmt
from gatekeeper.report.data import ReportData
from gatekeeper.report.html import Section, section, table
from gatekeeper.report.labels import PARTITIONS
from gatekeeper.wording import counted

__all__ = ["controls"]


def controls(data: ReportData) -> Section | None:
    found = data.diagnosis
    if found.partitions is None:
        return None
    rows = [
        (
            PARTITIONS[choice.name],
            fmt.percent(choice.hit_rate),
            fmt.percent(choice.recall),
            fmt.percent(choice.utilisation),
            fmt.difference(choice.above_threshold),
            fmt.difference(choice.above_random),
        )
        for choice in sorted(
            found.partitions, key=lambda choice: list(PARTITIONS).index(choice.name)
        )
    ]
    return section(
        "Does stratifying by cost make the difference?",
        table(
            ("thresholds", "hit rate", "recall", "budget used", "above Threshold", "above random"),
            rows,
            caption="If thresholds by cost help because costs differ, thresholds by arbitrary "
            f"groups should not. Replays at a budget of {fmt.budget(found.beta)} on all records "
            f"after the warm-up, in {counted(found.orders, 'random order')}, with labels and "
            "signals as they are. The values above differ, because they include noise and cover "
            "the second half only. These intervals also account for which outputs happened to be "
            "wrong.",
        ),
    )
