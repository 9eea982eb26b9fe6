"""Why outputs were verified or not, and the verdicts."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from gatekeeper.log.run import Run
from gatekeeper.report.data import ReportData
from gatekeeper.report.html import Markup, Section, section, table
from gatekeeper.report.labels import REASONS, VERDICTS
from gatekeeper.types import GateResult, Reason, Verdict

__all__ = ["decisions"]


def decisions(data: ReportData) -> Section | None:
    if data.run is None:
        return None
    results = data.run.results
    return section(
        "Why outputs were verified or not", _reasons(results), _verdicts(data.run.log, results)
    )


def _reasons(results: Sequence[GateResult]) -> Markup:
    groups: dict[Reason, list[GateResult]] = {}
    for result in results:
        groups.setdefault(result.decision.reason, []).append(result)
    rows = []
    for reason, words in REASONS.items():
        group = groups.get(reason, [])
        if group:
            selected = [r for r in group if r.decision.verify]
            known = [r for r in selected if r.verified]
            wrong = sum(r.outcome is not None and r.outcome.error == 1 for r in known)
            rows.append((words, str(len(group)), str(len(selected)), str(len(known)), str(wrong)))
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
    rows = [
        (words, str(by_gate[verdict]), str(external[verdict]))
        for verdict, words in VERDICTS.items()
        if by_gate[verdict] or external[verdict] or verdict is Verdict.INFRA_ERROR
    ]
    if waiting:
        rows.append(("pending", str(waiting), ""))
    return table(
        ("verdict", "within the budget", "external"),
        rows,
        caption="External verdicts, such as those of a person or those made afterwards for "
        "comparison, are not charged to the budget. The policy never learns from them.",
    )
