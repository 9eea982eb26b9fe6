"""`gatekeeper replay records.jsonl --policy cst --beta 0.1,0.2`: what policies would have found."""

from __future__ import annotations

import argparse
import json
import os
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from math import isnan
from pathlib import Path
from typing import Any, TextIO, get_args

import numpy as np
from rich.console import Console
from rich.table import Table

from gatekeeper.analysis.experiment import Comparison, Label, Protocol, compare
from gatekeeper.analysis.off_policy import without_unknown
from gatekeeper.analysis.policy_run import METRICS, Contender, PolicyRun
from gatekeeper.analysis.replay import Evaluate, Feedback
from gatekeeper.io.records import RecordTable, load_records
from gatekeeper.option_values import number, whole
from gatekeeper.policies import Oracle, Random, built_in, describe_policy, replay_names
from gatekeeper.programs.console import ResultConsole
from gatekeeper.programs.log_argument import add_source, place_given
from gatekeeper.programs.progress import progress
from gatekeeper.programs.skipped_lines import skipped_lines
from gatekeeper.programs.values import MOST_SEEDS, check_output, open_output, summary_stream
from gatekeeper.stats.interval import Interval
from gatekeeper.wording import counted, plural, signed

__all__ = ["add", "main"]

ALWAYS = (Random.name, Oracle.name)  # the lower and the upper bound in every table
SHOWN = ("hit_rate", "audit_rate", "utilisation", "recall", "yield")


def add(parser: argparse.ArgumentParser) -> None:
    parser.description = (
        "Replays policies on records (signals, costs, labels) under a budget, a share of "
        "the cost of verifying everything. Every seed shuffles the records, flips a tenth of "
        "the labels that policies learn from, and adds noise to the signals; the figures count "
        "the true labels. Means over seeds with Student-t 95 % margins."
    )
    parser.add_argument(
        "--policy",
        action="append",
        metavar="NAME",
        help=f"may be repeated (default: all); {' and '.join(ALWAYS)} are always included. One of "
        + ", ".join(replay_names()),
    )
    parser.add_argument(
        "--budget",
        "--beta",
        type=_shares,
        default="0.1,0.2,0.3,0.5",
        metavar="SHARE[,SHARE…]",
        help="shares of the full cost to spend, each in (0, 1)",
    )
    _add_protocol(parser)
    parser.add_argument(
        "--decisions",
        type=Path,
        metavar="OUT",
        help="JSONL (or .jsonl.gz) to write: every decision; - is standard output",
    )
    parser.add_argument(
        "--workers",
        type=whole(),
        metavar="N",
        default=os.cpu_count() or 1,
        help="processes (default: one per processor)",
    )
    parser.add_argument("--json", action="store_true", help="print the figures as JSON")
    add_source(parser)
    parser.set_defaults(run=main)


def _add_protocol(parser: argparse.ArgumentParser) -> None:
    """Add the options that become the `Protocol`."""
    parser.add_argument(
        "--seeds",
        type=whole(1, MOST_SEEDS),
        metavar="N",
        help="orders to average over (default: 10; 1 with --order given --no-noise, where all "
        "orders are equal)",
    )
    parser.add_argument(
        "--order",
        choices=("shuffled", "given"),
        default="shuffled",
        help="order of the records",
    )
    parser.add_argument("--no-noise", action="store_true", help="exact labels and signals")
    parser.add_argument(
        "--feedback",
        choices=get_args(Feedback),
        default="full",
        help="labels that policies learn from: all, or only those of verified records, as live",
    )
    parser.add_argument(
        "--evaluate",
        choices=get_args(Evaluate),
        help="records to count (default: second-half with "
        f"{' or '.join(p.name for p in built_in() if p.calibrates)}, else all)",
    )
    parser.add_argument(
        "--label",
        choices=get_args(Label),
        default="error",
        help="what to find: errors, or, for routing, outputs that an expensive model gets right",
    )


def main(args: argparse.Namespace) -> int:
    """Returns 0. Raises BadInputError for records or settings that cannot be replayed."""
    file = place_given(args.file, args)
    with skipped_lines() as bad:
        records = load_records(file, skip_bad=args.skip_bad, on_bad=bad.append)
    table = without_unknown(records) if args.label == "error" else records
    left_out = len(records) - len(table)
    chosen = [name for name in args.policy or replay_names() if name not in ALWAYS]
    names = [ALWAYS[0], *dict.fromkeys(chosen), ALWAYS[1]]
    contenders = [Contender(name) for name in names]
    protocol = _protocol(args)
    with _decisions(args, table) as write, progress("replay", protocol.seeds) as advance:
        comparison = compare(
            table,
            contenders,
            args.budget,
            protocol,
            workers=args.workers,
            on_progress=lambda seeds: advance(seeds, f"{len(contenders)} policies"),
            on_run=write,
        )
    out = summary_stream(args.decisions)
    if args.json:
        found = _as_json(comparison, table, skipped=len(bad), left_out=left_out)
        print(json.dumps(found, allow_nan=False), file=out)
    else:
        _print(comparison, table, left_out, ResultConsole(file=out))
    return 0


def _protocol(args: argparse.Namespace) -> Protocol:
    noise = 0.0 if args.no_noise else 0.10
    usual = 1 if args.order == "given" and args.no_noise else 10
    return Protocol(
        seeds=usual if args.seeds is None else args.seeds,
        shuffle=args.order == "shuffled",
        label_noise=noise,
        signal_noise=noise,
        feedback=args.feedback,
        evaluate=args.evaluate,
        label=args.label,
    )


def _shares(text: str) -> list[float]:
    parse = number("(0, 1)")
    try:
        return list(dict.fromkeys(parse(part) for part in text.split(",")))
    except argparse.ArgumentTypeError:
        raise argparse.ArgumentTypeError(
            f"{text!r}: give numbers in (0, 1), separated by commas, such as 0.1,0.2"
        ) from None


def _print(comparison: Comparison, table: RecordTable, left_out: int, console: Console) -> None:
    what = "benefits" if comparison.protocol.label == "benefit" else "errors"
    console.print(_grid(comparison, len(table), what))
    if left_out:
        console.print(f"{counted(left_out, 'record')} left out, without a label or a cost.")
    for remark in _remarks(comparison, table):
        console.print(remark, highlight=False)
    for beta in comparison.betas:
        console.print(_conclusion(comparison, beta, what), highlight=False)


def _grid(comparison: Comparison, records: int, what: str) -> Table:
    """A row for each budget and policy."""
    seeds = comparison.protocol.seeds
    over = "one seed" if seeds == 1 else f"mean of {counted(seeds, 'seed')} ± 95 % margin"
    grid = Table(title=f"{counted(records, 'record')}, {over}")
    grid.add_column("β", justify="right")
    grid.add_column("policy", no_wrap=True)
    heads = ("hit rate", "audit rate", "utilisation", f"recall of {what}", "yield per cost")
    for head in heads:
        grid.add_column(head, justify="right", overflow="fold")  # never cut short with "…"
    grid.add_column("hit rate − random", justify="right", overflow="fold")
    for beta in comparison.betas:
        for contender in comparison.contenders:
            cells = [
                _cell(comparison.estimate(contender, beta, metric), rate=metric != "yield")
                for metric in SHOWN
            ]
            gain = comparison.difference(contender, ALWAYS[0], beta, "hit_rate")
            cells.append("" if contender.name == ALWAYS[0] else _cell(gain, sign=True))
            grid.add_row(f"{beta:g}", str(contender), *cells)
        grid.add_section()
    return grid


def _remarks(comparison: Comparison, table: RecordTable) -> Iterator[str]:
    """What the grid counts, and what a reader has to know of its figures."""
    if any(isnan(v) for v in comparison.values[..., [METRICS.index(m) for m in SHOWN]].flat):
        yield "–: 0/0 in at least one seed."
    half = comparison.evaluate == "second-half"
    which = "the second half of what follows the warm-up" if half else "all after the warm-up"
    yield (
        f"Counted: {which}. A policy that spends little can have a high hit rate: compare "
        "utilisation and recall too."
    )
    missing = int(np.isnan(table.h).all(axis=1).sum())
    if missing:
        yield (
            f"{missing} of {counted(len(table), 'record')} {plural(missing, 'has', 'have')} no "
            "signal (h1, h2, h3): policies draw them at random, with probability β."
        )
    calibrating = [c.name for c in comparison.contenders if describe_policy(c.name).calibrates]
    if calibrating and not half:
        yield (
            f"With all records counted, {' and '.join(calibrating)} have nothing to calibrate on: "
            "their figures mean nothing."
        )
    else:
        yield from _gate_remarks(comparison)


def _gate_remarks(comparison: Comparison) -> Iterator[str]:
    """How often a policy with a gate, such as HGA, chose CST."""
    for contender, gates in zip(comparison.contenders, comparison.gate_open, strict=True):
        if np.isnan(gates).all():
            continue
        shares = ", ".join(
            f"{share:.0%} at β = {beta:g}"
            for beta, share in zip(comparison.betas, gates.mean(axis=1), strict=True)
        )
        label = describe_policy(contender.name).label
        yield f"{label} opened its gate (for CST) in {shares} of the seeds."


def _conclusion(comparison: Comparison, beta: float, what: str) -> str:
    """The best policy at this budget, and whether it is better than random."""
    rivals = [c for c in comparison.contenders if c.name not in ALWAYS]
    if not rivals:
        return f"β = {beta:g}: no policy to compare with random."

    def recall(contender: Contender) -> float:
        return comparison.estimate(contender, beta, "recall").value

    ranked = sorted((c for c in rivals if recall(c) == recall(c)), key=recall, reverse=True)
    if not ranked:
        return f"β = {beta:g}: in at least one seed no counted record is among the {what}."
    best = ranked[0]
    lead = comparison.difference(best, ALWAYS[0], beta, "recall")
    text = f"β = {beta:g}: {best} finds {recall(best):.1%} of the {what}"
    text += ", the most" if len(ranked) > 1 else ""
    gain = f"{signed(100 * lead.value, 1)} ± {100 * lead.margin:.1f} points"
    if lead.low <= 0.0:
        less = "less than random" if lead.high < 0.0 else "no significant difference from random"
        sure = [
            str(c)
            for c in ranked[1:]
            if comparison.difference(c, ALWAYS[0], beta, "recall").low > 0.0
        ]
        pays = f"significantly more than random: {', '.join(sure)}" if sure else "no policy pays"
        return f"{text} ({gain} against random): {less}; {pays} at this budget."
    if lead.margin != lead.margin:
        return f"{text} (random {recall(comparison.contenders[0]):.1%}; one order, no interval)."
    level = [
        str(c) for c in ranked[1:] if comparison.difference(best, c, beta, "recall").low <= 0.0
    ]
    if level:
        beside = f"; no significant difference from it: {', '.join(level)}"
    else:
        beside = ", ahead of all others" if len(ranked) > 1 else ""
    return f"{text} ({gain} against random){beside}."


def _cell(estimate: Interval, *, sign: bool = False, rate: bool = True) -> str:
    """A figure with three decimals; in units of cost, with three digits."""
    if isnan(estimate.value):
        return "–"
    mean = f"{estimate.value:{'.3f' if rate else '.3g'}}"
    if sign:
        mean = signed(estimate.value, 3)
    margin = f"{estimate.margin:{'.3f' if rate else '.2g'}}"
    return mean if isnan(estimate.margin) else f"{mean} ±{margin}"


def _as_json(
    comparison: Comparison, table: RecordTable, *, skipped: int, left_out: int
) -> dict[str, Any]:
    """The result with null for NaN, which is a ratio 0/0."""
    protocol = comparison.protocol
    results = []
    for p, contender in enumerate(comparison.contenders):
        for b, beta in enumerate(comparison.betas):
            row: dict[str, Any] = {"policy": str(contender), "beta": beta}
            for metric in METRICS:
                row[metric] = _pair(comparison.estimate(contender, beta, metric))
            row["hit_rate_minus_random"] = _pair(
                comparison.difference(contender, ALWAYS[0], beta, "hit_rate")
            )
            if not np.isnan(comparison.gate_open[p, b]).all():
                row["gate_open"] = float(comparison.gate_open[p, b].mean())
            results.append(row)
    return {
        "records": len(table),
        "skipped": skipped,
        "left_out": left_out,
        "seeds": protocol.seeds,
        "order": "shuffled" if protocol.shuffle else "given",
        "noise": protocol.label_noise > 0.0,
        "feedback": protocol.feedback,
        "evaluate": comparison.evaluate,
        "label": protocol.label,
        "results": results,
    }


def _pair(estimate: Interval) -> dict[str, float | None]:
    return {"mean": _number(estimate.value), "margin": _number(estimate.margin)}


def _number(value: float) -> float | None:
    return value if abs(value) < float("inf") else None


@contextmanager
def _decisions(
    args: argparse.Namespace, table: RecordTable
) -> Iterator[Callable[[PolicyRun], None] | None]:
    """The function that writes each run's decisions to --decisions; None without that option.

    The first run makes the file, so bad settings are reported before.
    """
    path: Path | None = args.decisions
    if path is None:
        yield None
        return
    check_output("--decisions", path, source=place_given(args.file, args))
    with ExitStack() as stack:
        out: TextIO | None = None

        def write(run: PolicyRun) -> None:
            nonlocal out
            if out is None:
                out = stack.enter_context(open_output("--decisions", path))
            out.writelines(_lines(run, table))

        yield write


def _lines(run: PolicyRun, table: RecordTable) -> Iterator[str]:
    """A line per record: "wanted" is the policy's proposal, "verify" what the budget admitted."""
    d = run.decisions
    columns = (run.rows, d.verified, d.wanted, d.score, d.threshold, d.stratum)
    for row, verify, wanted, score, threshold, stratum in zip(
        *(column.tolist() for column in columns), strict=True
    ):
        line = {
            "policy": str(run.contender),
            "beta": run.beta,
            "seed": run.seed,
            "id": table.ids[row],
            "verify": verify,
            "wanted": wanted,
            "score": _number(score),
            "threshold": _number(threshold),
            "stratum": None if stratum < 0 else stratum,
        }
        yield json.dumps(line) + "\n"
