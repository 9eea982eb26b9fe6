"""Why outputs were verified or not, and the verdicts."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from gatekeeper.log.run_table import NO_VERDICT, RunTable
from gatekeeper.report.data import ReportData
from gatekeeper.report.html import Markup, Section, section, table
from gatekeeper.report.labels import DRAWN, REASONS, VERDICTS
from gatekeeper.types import Reason, Verdict

__all__ = ["ReasonCounts", "decisions", "reasons_table", "verdicts_table"]


class ReasonCounts(NamedTuple):
    """Counts of the outputs that were decided on for one reason."""

    outputs: int
    selected: int
    verdicts: int  # of the selected
    wrong: int


def decisions(data: ReportData) -> Section | None:
    if data.run is None:
        return None
    run = data.run.log
    names = REASONS | ({Reason.POLICY: DRAWN} if data.for_score else {})
    return section(
        "Why outputs were verified or not",
        reasons_table(_reasons(run), names),
        _verdicts(run),
    )


def _reasons(run: RunTable) -> dict[Reason, ReasonCounts]:
    counts = {}
    for reason in Reason:
        of = run.of_reason(reason)
        if of.any():
            selected = of & run.selected
            known = selected & run.labelled
            masks = (of, selected, known, known & run.wrong)
            counts[reason] = ReasonCounts(*(int(mask.sum()) for mask in masks))
    return counts


def reasons_table(
    counts: Mapping[Reason, ReasonCounts], names: Mapping[Reason, str] = REASONS
) -> Markup:
    """Outputs, selected ones, verdicts and wrong ones, by reason in words."""
    rows = [
        (words, *map(str, counts[reason])) for reason, words in names.items() if reason in counts
    ]
    return table(
        ("reason", "outputs", "selected", "verdicts", "wrong"),
        rows,
        caption="Each output counts once. A selected output has no verdict if the verifier failed "
        "or has not answered yet.",
    )


def _verdicts(run: RunTable) -> Markup:
    by_gate, external = (
        {verdict: int((run.of_verdict(verdict) & of).sum()) for verdict in Verdict}
        for of in (~run.external, run.external)
    )
    waiting = int((run.selected & (run.verdict == NO_VERDICT)).sum())
    return verdicts_table(by_gate, external, waiting=waiting)


def verdicts_table(
    by_gate: Mapping[Verdict, int], external: Mapping[Verdict, int], *, waiting: int
) -> Markup:
    """How often there was each verdict; `waiting` selected outputs have none."""
    rows = [
        (words, str(by_gate.get(verdict, 0)), str(external.get(verdict, 0)))
        for verdict, words in VERDICTS.items()
        if by_gate.get(verdict) or external.get(verdict) or verdict is Verdict.INFRA_ERROR
    ]
    if waiting:
        rows.append(("pending", str(waiting), ""))
    return table(
        ("verdict", "within the budget", "external"),
        rows,
        caption="External verdicts are those on outputs that were not selected, of a person or "
        "made afterwards for comparison. They are not charged to the budget, and the policy does "
        "not learn from them.",
    )
