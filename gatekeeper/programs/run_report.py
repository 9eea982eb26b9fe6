"""The closing report of a run over tasks, as a table or as JSON."""

from __future__ import annotations

from dataclasses import asdict
from math import isnan
from typing import Any

from rich.console import Console
from rich.table import Table
from rich.text import Text

from gatekeeper.analysis.estimates import Estimates, as_json, show
from gatekeeper.analysis.summary import Summary
from gatekeeper.programs.run_options import RunOptions
from gatekeeper.types import GateStatus, PolicyHealth

__all__ = ["print_report", "report_as_json"]

Z = 1.645  # standard errors above random that chance exceeds one time in twenty


def report_as_json(
    summary: Summary, status: GateStatus, rate: Estimates, options: RunOptions
) -> dict[str, Any]:
    """The report as a JSON object."""
    return {
        "policy": options.policy,
        "budget": None if options.budget is None and options.total else options.share,
        "total": options.total,
        "unit": options.unit,
        **asdict(summary),
        "above_random": None if isnan(summary.above_random) else summary.above_random,
        "spent": status.spent,
        "cap": status.cap,
        "warmup_spent": status.warmup_spent,
        "health": status.health,
        "drift": status.drift,
        "notes": list(status.notes),
        "pace": status.pace,
        "shift": status.shift,
        "error_rate": as_json(rate),
        "log": None if options.log is None else str(options.log),
    }


def print_report(
    summary: Summary, status: GateStatus, rate: Estimates, options: RunOptions
) -> None:
    """Print the report."""
    title = Text(f"gatekeeper: policy {options.policy}, {_budget(options)}")
    table = Table(title=title, min_width=70)
    table.add_column("")
    table.add_column("outputs", justify="right")
    table.add_column("wrong", justify="right")
    table.add_row("answered by the model", f"{summary.outputs}", "")
    table.add_row(
        "warm-up: the first ones, all verified",
        f"{summary.warmup_verified}",
        f"{summary.warmup_errors}",
    )
    table.add_row("decided on after the warm-up", f"{summary.evaluated}", _number(summary.errors))
    table.add_section()
    table.add_row(
        f"[bold]verified by the gate[/] ({status.spent:g} of {status.cap:g} {options.unit})",
        f"[bold]{summary.verified}[/]",
        f"[bold]{summary.errors_found}[/]",
    )
    estimated = "" if summary.all_checked else ", estimated from the warm-up"
    table.add_row(
        f"the same number at random{estimated}",
        f"{summary.verified}",
        _number(summary.random_found),
    )
    table.add_row("the best possible choice", f"{summary.verified}", _number(summary.best_found))
    console = Console()
    console.print(table)
    if summary.above_random < Z:
        console.print("This is not more than chance explains.")
    if summary.evaluated < summary.warmup_verified:
        console.print("Most of this run was warm-up; the budget applies only after it.")
    if not (summary.all_checked or options.check_all):
        console.print(
            "The others are unverified; --check-all verifies them too and fills the table."
        )
    if options.unit == "seconds" and summary.budget_exhausted:
        console.print(
            f"{summary.budget_exhausted} more were selected but did not fit: a verification "
            "reserves its maximum cost before it starts."
        )
    for note in status.notes:
        console.print(note, markup=False, highlight=False)
    if summary.could_not_tell:
        console.print("The same command tries those without a verdict again.")
    if status.drift:
        console.print(f"The outputs drifted: {status.drift}. {_after_drift(status, options)}")
    console.print("", *show(rate), "", sep="\n", markup=False, highlight=False)
    log = f"Log: {options.log}" if options.log else "No log was kept; --log FILE keeps one."
    console.print(log, markup=False)


def _after_drift(status: GateStatus, options: RunOptions) -> str:
    if options.on_drift == "report":
        return "The policy kept what it had learned; --on-drift relearn learns it again."
    if status.health is PolicyHealth.DRIFTED:
        return "The policy is learning again."
    return "The policy has learned again."


def _budget(options: RunOptions) -> str:
    if options.total is None:
        return f"budget {options.share:.0%}"
    total = f"total {options.total:g} {options.unit}"
    return total if options.budget is None else f"budget {options.budget:.0%}, {total}"


def _number(value: float | None) -> str:
    if value is None:
        return "?"
    return f"{value:.1f}" if isinstance(value, float) else str(value)
