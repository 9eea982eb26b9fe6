"""The error rate of all outputs, estimated from those verified."""

from __future__ import annotations

from gatekeeper.analysis.estimates import Estimates, interval, rates
from gatekeeper.analysis.score import score_rows
from gatekeeper.report.data import ReportData
from gatekeeper.report.html import Markup, Section, element, section, table

__all__ = ["error_rate", "rates_table"]


def error_rate(data: ReportData) -> Section | None:
    found = data.rate
    if found is None:
        return None
    notes = [element("p", note) for note in (found.why, *found.notes)]
    caption = (
        "The naive rate covers only the verified outputs. The other two estimate the rate of "
        "all outputs: each verdict is weighted by the inverse of the probability that its "
        "output was selected. The last one also uses the signals: its interval is the "
        "narrower, the better they predict errors. About 95 of 100 such intervals contain the "
        "true rate."
    )
    if shown := rates_table(found, caption=caption):
        notes.insert(0, shown)
    if data.score is not None:
        caption = (
            "The mean score of all outputs: 1 for a right one, 0 for a wrong one, or the metric's "
            "own value. Of these outputs, the outputs that were not checked are uncertain; the "
            "other interval is for all questions that might have been asked."
        )
        of_score = ("score", "estimate", "from – to")
        notes.append(table(of_score, score_rows(data.score), caption=caption))
        notes += [element("p", note) for note in (data.score.why, *data.score.notes)]
    return section("How many of all outputs are wrong?", *notes)


def rates_table(found: Estimates, *, caption: str) -> Markup | None:
    """The rates that there are; None where there is none."""
    rows = [
        (name, f"{rate.n:,}", f"{rate.value:.1%}", interval(rate))
        for name, rate in rates(found)
        if rate is not None
    ]
    heads = ("error rate", "verdicts", "estimate", "95 % interval")
    return table(heads, rows, caption=caption) if rows else None
