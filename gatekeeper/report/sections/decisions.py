"""Why outputs were verified or not, and what the verifier said."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from gatekeeper.log.run import Run
from gatekeeper.report.data import ReportData
from gatekeeper.report.html import Markup, section, table
from gatekeeper.report.labels import REASONS, VERDICTS
from gatekeeper.types import GateResult, Reason, Verdict

__all__ = ["decisions"]


def decisions(data: ReportData) -> Markup | None:
    if data.run is None:
        return None
    results = data.run.results
    return section(
        "Why outputs were verified, or not", _reasons(results), _verdicts(data.run.log, results)
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
        ("how it was decided", "outputs", "selected", "with a verdict", "wrong"),
        rows,
        caption="Each output counts once. Selected: to be verified. Selected without a verdict: "
        "the verifier could not tell, or has not answered yet.",
    )


def _verdicts(run: Run, results: Sequence[GateResult]) -> Markup:
    by_gate: Counter[Verdict] = Counter()
    outside: Counter[Verdict] = Counter()
    for result in results:
        if result.outcome is not None:
            (outside if result.id in run.audited else by_gate)[result.outcome.verdict] += 1
    waiting = sum(r.decision.verify and r.outcome is None for r in results)
    rows = [
        (words, str(by_gate[verdict]), str(outside[verdict]))
        for verdict, words in VERDICTS.items()
        if by_gate[verdict] or outside[verdict] or verdict is Verdict.INFRA_ERROR
    ]
    if waiting:
        rows.append(("no answer yet", str(waiting), ""))
    return table(
        ("what the verifier said", "within the budget", "from outside"),
        rows,
        caption="“From outside” are checks that the budget did not pay for: a person's, or those "
        "made afterwards to compare. The policy never learns from them.",
    )
