"""`gatekeeper diagnose records.jsonl | run.db`: do cost strata differ? And which policy to use."""

from __future__ import annotations

import argparse
import json
from dataclasses import asdict
from math import isnan
from typing import Any

from rich.table import Table
from rich.text import Text

from gatekeeper.analysis.advice import Advice, advise
from gatekeeper.analysis.diagnosis import (
    Diagnosis,
    Partition,
    PartitionResult,
    Thresholds,
    diagnose,
    orders_for,
)
from gatekeeper.analysis.diagnosis.text import odds
from gatekeeper.analysis.feature_worth import FeatureWorth, feature_worth
from gatekeeper.analysis.run_budget import USUAL, share_of
from gatekeeper.analysis.warmup import warmup_of
from gatekeeper.io.records import load_with_run
from gatekeeper.log.run_table import RunTable
from gatekeeper.option_values import number, whole
from gatekeeper.programs.console import ResultConsole
from gatekeeper.programs.log_argument import add_source, place_given
from gatekeeper.programs.progress import progress
from gatekeeper.programs.skipped_lines import skipped_lines
from gatekeeper.programs.values import MOST_SEEDS
from gatekeeper.report import formatting as fmt
from gatekeeper.stats.interval import Interval
from gatekeeper.types import PolicyHealth
from gatekeeper.wording import counted, p_text, signed

__all__ = ["add", "main"]

NAMES: dict[str, str] = {
    Partition.NONE: "none",
    Partition.RANDOM: "random",
    Partition.SIGNAL: "signal",
    Partition.COST: "cost: CST",
    Partition.LABEL: "true label",
}
OF_HGA = (
    "HGA is worth it where Threshold is better; elsewhere it usually finds slightly less than CST."
)
EXIT = {Thresholds.ONE: 0, Thresholds.OWN: 3, Thresholds.UNKNOWN: 4}


def add(parser: argparse.ArgumentParser) -> None:
    parser.description = (
        "Compares the cost strata of records or of a run's log: whether one threshold serves them "
        "all (policy threshold), or each needs its own (cst). Then recommends a policy."
    )
    parser.epilog = (
        "Exit code: 0 one threshold serves all strata (no evidence that they differ, or cst is no "
        "better than threshold); 3 strata need thresholds of their own (cst is better); 4 unknown "
        "(too few labels or records); 2 bad input."
    )
    parser.add_argument(
        "--budget",
        "--beta",
        type=number("(0, 1)"),
        metavar="SHARE",
        help=f"share of the full cost (default: the log's own; {USUAL} for records)",
    )
    parser.add_argument(
        "--strata", type=whole(2), default=4, metavar="K", help="how many cost strata"
    )
    parser.add_argument(
        "--seeds", type=whole(1, MOST_SEEDS), metavar="N",
        help="orders in which policies are replayed (default: 10; 3 above 300,000 records)",
    )  # fmt: skip
    parser.add_argument("--json", action="store_true", help="print the result as JSON")
    add_source(parser)
    parser.set_defaults(run=main)


def main(args: argparse.Namespace) -> int:
    file = place_given(args.file, args)
    with skipped_lines() as bad:
        table, run = load_with_run(file, skip_bad=args.skip_bad, on_bad=bad.append)
    warmup, beta = warmup_of(run), share_of(run) if args.budget is None else args.budget
    orders = orders_for(len(table)) if args.seeds is None else args.seeds
    with progress("replay", orders) as advance:
        found = diagnose(
            table,
            beta=beta,
            strata=args.strata,
            warmup=warmup,
            orders=orders,
            on_progress=lambda done: advance(done, ""),
        )
    worth = feature_worth(table, beta, warmup=warmup)
    advice = advise(table, beta, warmup=warmup)
    if args.json:
        features = [asdict(w) for w in worth]
        result = {"file": str(file), "skipped": len(bad), **asdict(found)}
        result["features"] = features
        result["advice"] = asdict(advice)
        print(json.dumps(_finite(result), indent=2, allow_nan=False))
    else:
        _print(found, file.name)
        if worth:
            ResultConsole().print(_features(worth, beta))
        if run is not None:
            _print_drift(run)
        _print_advice(advice)
    return EXIT[found.thresholds]


def _print(d: Diagnosis, name: str) -> None:
    console = ResultConsole()
    console.print(_strata(d, name))
    alone = sum(f.n > 0 for f in d.strata) == 1
    absent = "there is one stratum only" if alone else "too few labels to test"
    lines = [
        f"ρ: H = Var_k(ρ_k) = {fmt.decimals(d.dispersion, 4)}, "
        f"{fmt.decimals(d.dispersion_corrected, 4)} without sampling noise; test that all are "
        f"equal: {_p(d.dispersion_p, absent)}",
        f"error rates: {fmt.decimals(d.base_rate_spread)} from lowest to highest; test that all "
        f"are equal: {_p(d.base_rate_p, absent)}",
        *(f"Note: {note}." for note in d.notes),
    ]
    if d.without_signal:
        lines.append(f"Note: left out: {counted(d.without_signal, 'output')} without a signal.")
    if d.absent is not None:
        lines.append(f"No policy is replayed: {d.absent}.")
    if d.odds is not None:
        lines.append(f"Odds: {odds(d.odds)}.")
    for line in lines:
        console.print(Text(line))
    if d.gate is not None:
        opens = all(condition.holds for condition in d.gate)
        state = "open: CST" if opens else "closed: Threshold"
        gate = Table(title=f"HGA's gate, judged on the first half: {state}")
        for column in ("condition", "value", "at least", ""):
            gate.add_column(column, justify="left" if column == "condition" else "right")
        for c in d.gate:
            holds = "yes" if c.holds else "no"
            gate.add_row(c.name, fmt.decimals(c.value, 4), fmt.decimals(c.least, 4), holds)
        console.print(gate)
        console.print(Text(OF_HGA))
    if d.partitions is not None and d.sweep is not None:
        orders = counted(d.orders, "order")
        title = f"Thresholds within a partition, budget {fmt.budget(d.beta)}, {orders}"
        console.print(_choices([(NAMES[c.name], c) for c in d.partitions], title))
        console.print(_choices([(c.name, c) for c in d.sweep], "CST with K strata"))
    console.print(Text(d.conclusion, style="bold"))


def _print_advice(advice: Advice) -> None:
    console = ResultConsole()
    if advice.recall is not None:
        console.print(_policies(advice))
    console.print(Text(f"{advice}", style="bold"))


def _print_drift(run: RunTable) -> None:
    """Print the drifts of a run: its outputs may then not be one stream."""
    for change in run.health_changes:
        if change.health is PolicyHealth.DRIFTED:
            ResultConsole().print(Text(f"Note: drifted by output {change.after:,}: {change.why}."))


def _features(worth: list[FeatureWorth], beta: float) -> Table:
    table = Table(
        title=f"Features: points of recall that calibrated gains, budget {fmt.budget(beta)}"
    )
    for column in ("", "present", "beside the signals", "beside the other features too"):
        table.add_column(column, justify="right" if column else "left")
    for w in worth:
        name = w.features[0] if len(w.features) == 1 else "all together"
        gains = _points(w.beside_signals), _points(w.beside_all)
        table.add_row(Text(name), f"{w.present:.0%}", *gains)
    return table


def _points(gain: Interval | None) -> str:
    if gain is None:
        return ""
    at, low, high = (signed(100 * v, 1) for v in (gain.value, gain.low, gain.high))
    return f"{at} [{low}, {high}]"


def _strata(d: Diagnosis, name: str) -> Table:
    table = Table(
        title=Text(f"{name}\n{counted(d.records, 'record')}, warm-up: the first {d.warmup}")
    )
    for column in ("cost stratum", "n", "labelled", "error rate", "mean cost", "ρ", "p"):
        table.add_column(column, justify="right")
    for i, f in enumerate([*d.strata, d.overall], 1):
        whole = f is d.overall
        if whole:
            table.add_section()
        table.add_row(
            "all" if whole else f"{i}",
            f"{f.n}",
            f"{f.labelled}",
            fmt.decimals(f.error_rate),
            "–" if isnan(f.mean_cost) else f"{f.mean_cost:.4g}",
            fmt.decimals(f.rho),
            _p(f.p_value, "–"),
        )
    return table


def _choices(choices: list[tuple[str, PartitionResult]], title: str) -> Table:
    table = Table(title=title)
    for column in ("", "hit rate", "recall", "spent", "vs threshold", "vs random"):
        table.add_column(column, justify="right" if column else "left")
    for name, c in choices:
        table.add_row(
            name,
            fmt.decimals(c.hit_rate),
            fmt.decimals(c.recall),
            fmt.decimals(c.utilisation),
            _difference(c.above_threshold),
            _difference(c.above_random),
        )
    return table


def _policies(advice: Advice) -> Table:
    """The recall of every policy in the next run."""
    table = Table(title=f"Recall in the next run, budget {fmt.budget(advice.budget)}")
    for column in ("policy", "recall", f"points below {advice.policy}"):
        table.add_column(column, justify="left" if column == "policy" else "right")
    table.add_row(advice.policy, fmt.rate_interval(advice.recall), "")
    for rival in advice.rivals:
        table.add_row(
            rival.policy, fmt.rate_interval(rival.recall), fmt.points_interval(rival.less)
        )
    return table


def _difference(gain: Interval) -> str:
    if isnan(gain.value):
        return "–"
    if gain.value == gain.margin == 0.0:
        return ""
    return f"{signed(gain.value, 3)} ± {gain.margin:.3f}"


def _p(value: float, absent: str) -> str:
    return absent if isnan(value) else p_text(value)


def _finite(value: Any) -> Any:
    """The value with null for NaN, which JSON does not have."""
    if isinstance(value, float) and isnan(value):
        return None
    if isinstance(value, dict):
        return {key: _finite(v) for key, v in value.items()}
    return [_finite(v) for v in value] if isinstance(value, list) else value
