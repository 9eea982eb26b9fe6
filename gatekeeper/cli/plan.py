"""`gatekeeper plan run.db --recall 0.9`: the budget that a target needs."""

from __future__ import annotations

import argparse
import json
from dataclasses import asdict
from math import isfinite
from pathlib import Path
from typing import Any

import numpy as np
from rich.table import Table
from rich.text import Text

from gatekeeper.analysis.off_policy import Evidence
from gatekeeper.analysis.plan import BUDGETS, Curve, Needed, curve_of
from gatekeeper.analysis.warmup import warmup_of
from gatekeeper.cli.logged_settings import is_for_score, own_policy, settings_of
from gatekeeper.errors import BadInputError
from gatekeeper.io.records import load_with_run
from gatekeeper.log.place import PostgresRun
from gatekeeper.option_values import number
from gatekeeper.policies import DEFAULT_POLICY, Random, describe_policy
from gatekeeper.programs.console import ResultConsole
from gatekeeper.programs.log_argument import add_source, place_given
from gatekeeper.programs.progress import progress
from gatekeeper.programs.skipped_lines import skipped_lines
from gatekeeper.report import formatting as fmt
from gatekeeper.wording import counted

__all__ = ["add", "main"]

SHOWN = (0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9)


def add(parser: argparse.ArgumentParser) -> None:
    parser.description = (
        "Estimates the budget that the next run of such outputs needs, with 95 % "
        "intervals, from a run's log (partly verified, by a gate that explores) or from records "
        "with all labels. Budgets are shares of the cost of verifying all after the warm-up."
    )
    parser.add_argument(
        "--recall", type=number("(0, 1)"), metavar="SHARE",
        help="share of all errors to find (default: 0.9, unless a risk is given)",
    )  # fmt: skip
    parser.add_argument(
        "--residual-risk", type=number("(0, 1)"), metavar="RATE",
        help="highest error rate of outputs accepted unverified, at 95 %% confidence",
    )  # fmt: skip
    parser.add_argument(
        "--policy",
        metavar="NAME",
        help="policy of the next run (default: the run's own; "
        f"{DEFAULT_POLICY} for records and after --goal score)",
    )
    parser.add_argument("--json", action="store_true", help="print the result as JSON")
    add_source(parser)
    parser.set_defaults(run=main)


def main(args: argparse.Namespace) -> int:
    """Returns 0. Raises BadInputError for a file without verdicts and for impossible targets."""
    file = place_given(args.file, args)
    recall, risk = args.recall, args.residual_risk
    if recall is None and risk is None:
        recall = 0.9
    settings = settings_of(file)
    for_errors = settings is not None and not is_for_score(settings)
    policy = args.policy or (own_policy(settings or {}) if for_errors else DEFAULT_POLICY)
    if policy is None:
        raise BadInputError(
            "the run's policy is not one of gatekeeper: name a policy with --policy"
        )
    with skipped_lines() as bad:
        table, run = load_with_run(file, skip_bad=args.skip_bad, on_bad=bad.append)
    evidence = Evidence(table, warmup=warmup_of(run))
    them = {str(policy): policy, Random.name: Random.name}
    with progress("budgets", len(them) * len(BUDGETS)) as advance:
        curves = [
            curve_of(evidence, one, on_progress=lambda done: advance(done, ""))
            for one in them.values()
        ]
    if args.json:
        print(json.dumps(_as_json(file, evidence, curves, recall, risk), allow_nan=False))
    else:
        _print(file, evidence, curves, recall, risk)
    return 0


def _print(
    file: Path | PostgresRun,
    evidence: Evidence,
    curves: list[Curve],
    recall: float | None,
    risk: float | None,
) -> None:
    console = ResultConsole()
    n = int(evidence.counted.sum())
    table = Table(
        title=Text(f"{file.name}: {counted(n, 'output')} after the warm-up, {_verdicts(evidence)}")
    )
    table.add_column("budget", justify="right")
    for curve in curves:
        table.add_column(f"recall\n{curve.policy}", justify="right")
        table.add_column(f"residual risk\n{curve.policy}", justify="right")
    for budget in SHOWN:
        cells = []
        for curve in curves:
            point = curve.at(budget)
            cells += [fmt.rate_interval(point.recall), fmt.rate_interval(point.residual_risk)]
        table.add_row(f"{budget:.0%}", *cells)
    console.print(table)
    console.print(
        "Recall: errors found ÷ all errors. Residual risk: error rate of the outputs accepted "
        "unverified. 95 % intervals for the next run of such outputs, and the estimate.",
        highlight=False,
    )
    if evidence.left_out:
        console.print(
            f"{counted(evidence.left_out, 'output')} left out, without a label or a cost.",
            highlight=False,
        )
    if describe_policy(curves[0].policy.name).learns_after_warmup and not evidence.complete:
        console.print(
            f"{curves[0].policy} learns or calibrates after the warm-up: here only from the "
            "verdicts in the log.",
            highlight=False,
        )
    for curve in curves:
        if recall is not None:
            console.print(Text(_recall_sentence(curve, curve.for_recall(recall), n), style="bold"))
        if risk is not None:
            console.print(Text(_risk_sentence(curve, risk, n), style="bold"))


def _verdicts(evidence: Evidence) -> str:
    if evidence.complete:
        return "all with a verdict"
    count, effective = int(evidence.drawn.sum()), evidence.effective(evidence.counted)
    return f"{counted(count, 'verdict')} (effective number: {effective:.0f} drawn at random)"


def _recall_sentence(curve: Curve, needed: Needed, n: int) -> str:
    what = f"Recall of {100 * needed.target:.3g}% with {curve.policy}:"
    budget = needed.budget
    low, high = (f"{100 * end:.0f}" for end in (budget.low, budget.high))
    if low == "100":
        return f"{what} only by verifying everything."
    said = f"a budget of {_share(budget.value)}"
    if low != high:
        said = f"a budget of {low} to {high}% (95 % interval), estimate {_share(budget.value)}"
    verified = round(n * curve.at(budget.value).verified)
    return f"{what} {said}; about {verified:,} of {counted(n, 'output')} verified."


def _risk_sentence(curve: Curve, target: float, n: int) -> str:
    what = f"Residual risk of at most {100 * target:.3g}% with {curve.policy}:"
    budget = curve.for_residual_risk(target)
    if budget == 0.0:
        return f"{what} no budget needed: all outputs together are below it, at 95 % confidence."
    if budget is not None:
        verified = round(n * curve.at(budget).verified)
        of = f"about {verified:,} of {counted(n, 'output')} verified"
        return f"{what} a budget of {_share(budget)}, at 95 % confidence; {of}."
    if curve.policy.name == Random.name:
        rate = fmt.rate_interval(curve.points[0].residual_risk)
        return (
            f"{what} only at 100%: outputs left out at random have the error rate of all: {rate}."
        )
    highest = curve.highest_risks()
    closest = int(np.nanargmin(highest))
    best = curve.points[closest]
    return (
        f"{what} this file shows it at no budget below 100%. The closest is a budget of "
        f"{_share(best.budget)}: at most {highest[closest]:.1%}, from "
        f"{counted(best.residual_risk.n, 'verdict')} on outputs left out; more such verdicts would "
        "lower this bound."
    )


def _share(budget: float) -> str:
    return f"{budget:.0%}"


def _needed(needed: Needed) -> dict[str, float]:
    budget = needed.budget
    return {
        "target": needed.target,
        "budget": budget.value,
        "low": budget.low,
        "high": budget.high,
    }


def _as_json(
    file: Path | PostgresRun,
    evidence: Evidence,
    curves: list[Curve],
    recall: float | None,
    risk: float | None,
) -> dict[str, Any]:
    """The result with null for NaN, which is a rate of nothing."""
    policies = []
    for curve in curves:
        points = [asdict(point) for point in curve.points]
        for point in points:
            for name in ("recall", "residual_risk"):
                point[name] = {
                    key: value if isfinite(value) else None for key, value in point[name].items()
                }
        policies.append(
            {
                "policy": str(curve.policy),
                "recall": None if recall is None else _needed(curve.for_recall(recall)),
                "residual_risk": None
                if risk is None
                else {"target": risk, "budget": curve.for_residual_risk(risk)},
                "curve": points,
            }
        )
    return {
        "file": str(file),
        "outputs": int(evidence.counted.sum()),
        "left_out": evidence.left_out,
        "verdicts": int(evidence.drawn.sum()),
        "effective": evidence.effective(evidence.counted),
        "policies": policies,
    }
