"""The error rate of all outputs, estimated from those verified."""

from __future__ import annotations

from gatekeeper.analysis.estimates import interval, rates
from gatekeeper.report.data import ReportData
from gatekeeper.report.html import Markup, element, section, table

__all__ = ["error_rate"]


def error_rate(data: ReportData) -> Markup | None:
    found = data.rate
    if found is None:
        return None
    rows = [
        (name, f"{rate.n:,}", f"{rate.value:.1%}", interval(rate))
        for name, rate in rates(found)
        if rate is not None
    ]
    notes = [element("p", note) for note in (found.why, *found.notes)]
    if rows:
        caption = (
            "The naive rate is that of the verified outputs. The other two are about all: each "
            "verdict weighs one over the chance that its output had to be verified; the last one "
            "uses the signals as well, and is the narrower the more they tell. Of 100 such "
            "intervals about 95 hold the true rate."
        )
        heads = ("error rate", "verdicts", "estimate", "95 % interval")
        notes.insert(0, table(heads, rows, caption=caption))
    return section("How many of all outputs are wrong?", *notes)
