"""The closing report of a run over tasks, as a table or as JSON."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict, dataclass
from math import isnan
from typing import Any

from rich.table import Table
from rich.text import Text

from gatekeeper.analysis.advice import Advice
from gatekeeper.analysis.estimates import Estimates, as_json, show
from gatekeeper.analysis.score import ScoreEstimate, score_as_json, show_score
from gatekeeper.analysis.summary import Summary
from gatekeeper.programs.console import ResultConsole
from gatekeeper.programs.run_options import RunOptions
from gatekeeper.report import formatting as fmt
from gatekeeper.types import GateStatus, PolicyHealth
from gatekeeper.wording import amount, cost_text

__all__ = ["RunReport"]

Z = 1.645  # standard errors above random that chance exceeds one time in twenty


@dataclass(frozen=True, slots=True)
class RunReport:
    """The closing report of a run.

    Parameters
    ----------
    summary : Summary
    status : GateStatus
    rate : Estimates
        The error rate of all outputs.
    score : ScoreEstimate or None
        The mean score of all outputs; None without any.
    options : RunOptions
    advice : Advice or None
        The policy for the next run; None where policies cannot be compared.
    """

    summary: Summary
    status: GateStatus
    rate: Estimates
    score: ScoreEstimate | None
    options: RunOptions
    advice: Advice | None

    def as_json(self) -> dict[str, Any]:
        """The report as a JSON object."""
        summary, status, options = self.summary, self.status, self.options
        return {
            "goal": options.goal,
            "policy": options.policy,
            "budget": None if options.budget is None and options.total else options.share,
            "total": options.total,
            "unit": options.unit,
            **asdict(summary),
            "above_random": None if isnan(summary.above_random) else summary.above_random,
            "spent": status.spent,
            "cap": status.cap,
            "warmup_spent": status.warmup_spent,
            "groups": {name: asdict(group) for name, group in status.groups.items()},
            "health": status.health,
            "drift": status.drift,
            "notes": list(status.notes),
            "pace": status.pace,
            "shift": status.shift,
            "error_rate": as_json(self.rate),
            "score": None if self.score is None else score_as_json(self.score),
            "advice": None if self.advice is None else asdict(self.advice),
            "log": None if options.log is None else str(options.log),
        }

    def print(self) -> None:
        """Print the report."""
        summary, status, options = self.summary, self.status, self.options
        console = ResultConsole()
        console.print(self._table())
        if options.goal == "errors":
            for sentence in self._on_errors():
                console.print(sentence)
        if options.unit == "seconds" and summary.budget_exhausted:
            console.print(
                f"Selected, but without room: {summary.budget_exhausted:,}. A verification "
                "reserves the most seconds that it may take before it starts. A larger --budget "
                "makes room, and with --unit verifications each reserves one."
            )
        for name, group in status.groups.items():
            line = f"{name}: spent {cost_text(group.spent)} of {amount(group.cap, options.unit)}"
            console.print(line, markup=False, highlight=False)
        for note in status.notes:
            console.print(note, markup=False, highlight=False)
        if summary.could_not_tell:
            console.print("The same command tries those without a verdict again.")
        if status.drift and options.goal == "errors":
            line = f"The outputs drifted: {status.drift}. {_after_drift(status, options)}"
            console.print(line, markup=False)
        lines = [] if options.goal == "score" else show(self.rate)
        if self.score is not None and (options.goal == "score" or self.rate.weighted is None):
            lines += show_score(self.score)
        console.print("", *lines, "", sep="\n", markup=False, highlight=False)
        if self.advice is not None and self.advice.reason is None:
            console.print(f"Next time: {self.advice}", "", sep="\n", markup=False, highlight=False)
        log = f"Log: {options.log}" if options.log else "No log was kept; --log FILE keeps one."
        console.print(log, markup=False)

    def _table(self) -> Table:
        summary, status, options = self.summary, self.status, self.options
        what = "for the score" if options.goal == "score" else f"policy {options.policy}"
        table = Table(title=Text(f"gatekeeper: {what}, {_budget(options)}"), min_width=70)
        table.add_column("")
        table.add_column("outputs", justify="right")
        table.add_column("wrong", justify="right")
        row = table.add_row
        spent = f"({cost_text(status.spent)} of {amount(status.cap, options.unit)})"
        verified = f"[bold]{summary.verified}[/]", f"[bold]{summary.errors_found}[/]"
        if options.goal == "score":
            row("answered by the model", f"{summary.outputs}", _number(summary.errors))
            row(f"[bold]drawn and verified[/] {spent}", *verified)
            return table
        row("answered by the model", f"{summary.outputs}", "")
        every = summary.warmup_verified == summary.warmup
        row(
            "warm-up: the first ones, all verified"
            if every
            else f"warm-up: verified, of the first {summary.warmup:,}",
            f"{summary.warmup_verified}",
            f"{summary.warmup_errors}",
        )
        if not summary.evaluated:
            return table
        row("decided on after the warm-up", f"{summary.evaluated}", _number(summary.errors))
        table.add_section()
        row(f"[bold]verified by the gate[/] {spent}", *verified)
        estimated = "" if summary.all_checked else ", estimated from the warm-up"
        row(
            f"the same number at random{estimated}",
            f"{summary.verified}",
            _number(summary.random_found),
        )
        row("the best possible choice", f"{summary.verified}", _number(summary.best_found))
        return table

    def _on_errors(self) -> Iterator[str]:
        """Sentences on the errors found, and on unverified outputs."""
        summary = self.summary
        if summary.above_random < Z:
            yield "The errors found are not more than chance explains."
        if summary.evaluated < summary.warmup_verified:
            yield "Most of this run was warm-up; the budget applies only after it."
        if summary.evaluated and not (summary.all_checked or self.options.check_all):
            how = "; --check-all verifies them too and fills the table"
            yield f"The others are unverified{'' if self.options.shared else how}."


def _after_drift(status: GateStatus, options: RunOptions) -> str:
    if options.on_drift == "report":
        return "The policy kept what it had learned; --on-drift relearn learns it again."
    if status.health is PolicyHealth.DRIFTED:
        return "The policy is learning again."
    return "The policy has learned again."


def _budget(options: RunOptions) -> str:
    if options.total is None:
        return f"budget {fmt.budget(options.share)}"
    total = f"total {options.total:g} {options.unit}"
    return total if options.budget is None else f"budget {fmt.budget(options.budget)}, {total}"


def _number(value: float | None) -> str:
    if value is None:
        return "?"
    return f"{value:.1f}" if isinstance(value, float) else str(value)
