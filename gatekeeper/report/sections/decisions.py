"""Why outputs were verified or not, and the verdicts."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import NamedTuple

from gatekeeper.log.run import Run
from gatekeeper.report.data import ReportData
from gatekeeper.report.html import Markup, Section, section, table
from gatekeeper.report.labels import DRAWN, REASONS, VERDICTS
from gatekeeper.types import GateResult, Reason, Verdict

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
    results = data.run.results
    names = REASONS | ({Reason.POLICY: DRAWN} if data.for_score else {})
    return section(
        "Why outputs were verified or not",
        reasons_table(_reasons(results), names),
        _verdicts(data.run.log, results),
    )


def _reasons(results: Sequence[GateResult]) -> dict[Reason, ReasonCounts]:
    groups: dict[Reason, list[GateResult]] = {}
    for result in results:
        groups.setdefault(result.decision.reason, []).append(result)
    counts = {}
    for reason, group in groups.items():
        selected = [r for r in group if r.decision.verify]
        known = [r for r in selected if r.verified]
        wrong = sum(r.outcome is not None and r.outcome.error == 1 for r in known)
        counts[reason] = ReasonCounts(len(group), len(selected), len(known), wrong)
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


def _verdicts(run: Run, results: Sequence[GateResult]) -> Markup:
    by_gate: Counter[Verdict] = Counter()
    external: Counter[Verdict] = Counter()
    for result in results:
        if result.outcome is not None:
            (external if result.id in run.external else by_gate)[result.outcome.verdict] += 1
    waiting = sum(r.decision.verify and r.outcome is None for r in results)
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
        caption="External verdicts, such as those of a person or those made afterwards for "
        "comparison, are not charged to the budget. The policy never learns from them.",
    )
