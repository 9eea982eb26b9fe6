"""`gatekeeper compare run.db`: what other policies would have found on a run's stream."""

from __future__ import annotations

import argparse
import json
from collections.abc import Mapping
from dataclasses import asdict
from math import isfinite
from pathlib import Path
from typing import Any

from rich.table import Table
from rich.text import Text

from gatekeeper.analysis.advice import Advice, advise
from gatekeeper.analysis.off_policy import Evidence, PolicyValue, policy_values
from gatekeeper.analysis.policy_run import Contender
from gatekeeper.analysis.run_budget import share_of_costs
from gatekeeper.analysis.warmup import warmup_of
from gatekeeper.cli.logged_settings import own_policy, settings_of
from gatekeeper.errors import BadInputError
from gatekeeper.io.records import load_with_run
from gatekeeper.log.place import PostgresRun
from gatekeeper.option_values import number
from gatekeeper.policies import Random, policy_names
from gatekeeper.programs.console import ResultConsole
from gatekeeper.programs.log_argument import add_source, place_given
from gatekeeper.programs.skipped_lines import skipped_lines
from gatekeeper.report import formatting as fmt
from gatekeeper.wording import counted

__all__ = ["add", "main"]


def add(parser: argparse.ArgumentParser) -> None:
    parser.description = (
        "Estimates, from a run's own log, the recall and the hit rate that each "
        "policy would have had on the same outputs at the same budget, with 95 % intervals. The "
        "gate must have explored: outputs with propensity 0 cannot be estimated."
    )
    parser.add_argument(
        "--policy", action="append", metavar="NAME",
        help="may be repeated (default: all). One of " + ", ".join(policy_names()),
    )  # fmt: skip
    parser.add_argument(
        "--budget",
        "--beta",
        type=number("(0, 1)"),
        metavar="SHARE",
        help="share of the full cost (default: the run's own)",
    )
    parser.add_argument("--json", action="store_true", help="print the result as JSON")
    add_source(parser, records="records with propensities")
    parser.set_defaults(run=main)


def main(args: argparse.Namespace) -> int:
    """Returns 0. Raises BadInputError for a file without the needed verdicts."""
    file = place_given(args.file, args)
    settings = settings_of(file)
    with skipped_lines() as bad:
        table, run = load_with_run(file, skip_bad=args.skip_bad, on_bad=bad.append)
    if settings is None and args.budget is None:
        raise BadInputError(
            "records have no budget: give one with --budget, for example --budget 0.2"
        )
    evidence = Evidence(table, warmup=warmup_of(run))
    beta = _share(settings or {}, evidence) if args.budget is None else args.budget
    own = None if settings is None else own_policy(settings)
    them = [own or Contender(Random.name), *map(Contender, args.policy or policy_names())]
    values = policy_values(evidence, list({str(c): c for c in them}.values()), beta)
    advice = advise(table, beta, warmup=evidence.warmup, evidence=evidence)
    if args.json:
        print(json.dumps(_as_json(file, evidence, values, advice), allow_nan=False))
    else:
        _print(file, evidence, values, advice)
    return 0


def _share(settings: Mapping[str, Any], evidence: Evidence) -> float:
    """The share of the run's budget. Raises BadInputError for one that is no such share."""
    share = share_of_costs(settings.get("budget", {}), *evidence.costs)
    if share is None:
        raise BadInputError(
            "the run's budget is for verifying everything, or nothing after the warm-up: give the "
            "share of the cost with --budget, for example --budget 0.2"
        )
    return share


def _print(
    file: Path | PostgresRun, evidence: Evidence, values: list[PolicyValue], advice: Advice
) -> None:
    n, drawn = int(evidence.counted.sum()), int((evidence.drawn & evidence.counted).sum())
    title = (
        f"{file.name} at a budget of {fmt.budget(advice.budget)}: {counted(n, 'output')} after the "
    )
    known = evidence.complete
    table = Table(
        title=Text(f"{title}warm-up, {counted(drawn, 'verdict')}"), box=None, padding=(0, 1, 0, 0)
    )
    table.add_column("policy", no_wrap=True)
    heads = ["verifies", "recall", "hit rate", f"more than\n{values[0].policy}"]
    for head in heads if known else [*heads, "verdicts"]:
        table.add_column(head, justify="right", no_wrap=True)
    for v in values:
        more = "" if v is values[0] else fmt.count_interval(v.more)
        rates = fmt.rate_interval(v.recall), fmt.rate_interval(v.hit_rate)
        row = [_name(v, known=known), f"{v.verified:.0%}", *rates, more]
        table.add_row(*row, *([] if known else [f"{v.effective:.0f}"]))
    console = ResultConsole()
    console.print(table)
    for line in _said(evidence, values):
        console.print(Text(line))
    console.print(Text(f"{advice}", style="bold"))


def _name(value: PolicyValue, *, known: bool) -> str:
    return f"{value.policy} ~" if value.learns and not known else value.policy


def _said(evidence: Evidence, values: list[PolicyValue]) -> list[str]:
    lines = [f"More than {values[0].policy}: how many more errors it would have found."]
    if evidence.left_out:
        lines.append(f"{counted(evidence.left_out, 'output')} left out, without a label or a cost.")
    without_chance = int((~evidence.counted).sum())
    if without_chance:
        lines.append(f"{counted(without_chance, 'output')} left out, with propensity 0.")
    if not evidence.complete:
        lines.append(
            "95 % intervals, for this stream, and the estimate. Verdicts: effective number of "
            "verdicts on the policy's choices."
        )
        if any(v.learns for v in values):
            lines.append(
                "~ learns or calibrates after the warm-up: here only from the verdicts in the log, "
                "usually fewer than it would have had."
            )
        if any(v.hit_rate is None for v in values):
            lines.append("–: the log has too few verdicts on the outputs that the policy selects.")
    first, *others = values
    better = [v.policy for v in others if v.more.low > 0.0]
    worse = [v.policy for v in others if v.more.high < 0.0]
    level = [v.policy for v in others if v.policy not in better + worse]
    if better:
        lines.append(f"More errors than {first.policy} would have found: {', '.join(better)}.")
    if worse:
        lines.append(f"Fewer than {first.policy}: {', '.join(worse)}.")
    if level:
        lines.append(f"No significant difference from {first.policy}: {', '.join(level)}.")
    return lines


def _as_json(
    file: Path | PostgresRun, evidence: Evidence, values: list[PolicyValue], advice: Advice
) -> dict[str, Any]:
    rows = [asdict(value) for value in values]
    for row in rows:
        for name, value in row.items():
            if isinstance(value, dict):
                row[name] = {k: v if isfinite(v) else None for k, v in value.items()}
    return {
        "file": str(file),
        "budget": advice.budget,
        "outputs": int(evidence.counted.sum()),
        "left_out": evidence.left_out,
        "verdicts": int((evidence.drawn & evidence.counted).sum()),
        "effective": evidence.effective(evidence.counted),
        "policies": rows,
        "advice": asdict(advice),
    }
