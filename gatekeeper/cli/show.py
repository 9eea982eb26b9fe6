"""`gatekeeper show run.db`: the outputs of a log, each with its verdict and decision."""

from __future__ import annotations

import argparse
import json
from collections.abc import Iterator, Mapping
from typing import Any

from gatekeeper.errors import BadInputError
from gatekeeper.option_values import whole
from gatekeeper.printable import printable
from gatekeeper.programs.log_argument import add_run_name, log_file, place_given
from gatekeeper.wording import amount, counted

__all__ = ["add", "main"]

LIMIT = 20  # outputs shown without --limit
SHORT = 400  # characters of a text in a list of several


def add(parser: argparse.ArgumentParser) -> None:
    parser.description = "Text, verdict, detail, reason, signals and cost of each output of a log."
    parser.add_argument("log", type=log_file, help="a gate's log")
    which = parser.add_mutually_exclusive_group()
    which.add_argument("--wrong", action="store_true", help="only those found wrong")
    which.add_argument("--unchecked", action="store_true", help="only those without a verdict")
    which.add_argument("--id", metavar="ID", help="only this one, with its whole text")
    parser.add_argument(
        "--limit",
        type=whole(0),
        default=LIMIT,
        metavar="N",
        help="show the first N; 0 for all",
    )
    parser.add_argument("--json", action="store_true", help="print a list of JSON objects")
    add_run_name(parser)
    parser.set_defaults(run=main)


def main(args: argparse.Namespace) -> int:
    """Returns 0. Raises BadInputError for an unknown id, LogError for a file that is no log."""
    from gatekeeper.log.rows import as_json
    from gatekeeper.log.run import read_run

    log = place_given(args.log, args)
    run = read_run(log)
    every = list(run.rows())
    rows = [row for row in every if _is_chosen(row, args)]
    if args.id is not None and not rows:
        raise BadInputError(
            f"--id {args.id!r}: {log} has no such output among its {len(every):,}; "
            f"gatekeeper show {log} lists them"
        )
    shown = rows[: args.limit or None]
    if args.json:
        print(json.dumps(list(map(as_json, shown))))
        return 0
    if args.id is None:
        print(_heading(every, len(rows), len(shown), args))
    for row in shown:
        print("", *_block(row, run.ledger.budget.unit, whole=args.id is not None), sep="\n")
    if len(rows) > len(shown):
        print(f"\n{len(rows) - len(shown):,} more: --limit 0 shows all, --id ID one in full")
    return 0


def _is_chosen(row: Mapping[str, Any], args: argparse.Namespace) -> bool:
    if args.id is not None:
        return bool(row["id"] == args.id)
    if args.wrong:
        return bool(row["error"] == 1)
    return row["error"] is None if args.unchecked else True


def _heading(every: list[dict[str, Any]], found: int, shown: int, args: argparse.Namespace) -> str:
    wrong = sum(row["error"] == 1 for row in every)
    unchecked = sum(row["error"] is None for row in every)
    counts = f"{counted(len(every), 'output')}: {wrong:,} wrong, {unchecked:,} without a verdict"
    which = "wrong" if args.wrong else "without a verdict" if args.unchecked else ""
    number = f"{found:,}" if shown == found else f"the first {shown:,} of {found:,}"
    return f"{counts}. Shown: {number} {which}".rstrip()


def _block(row: Mapping[str, Any], unit: str, *, whole: bool) -> Iterator[str]:
    """One output, as lines for a terminal."""
    yield f"{printable(row['id'])}: {_verdict(row)}"
    if row["detail"]:
        yield _field("detail", row["detail"], whole)
    yield _field("reason", f"{row['reason']}, propensity {row['propensity']:.3g}", whole)
    numbers = [f"{name} {row[name]:.4g}" for name in ("h1", "h2", "h3") if row[name] is not None]
    if row["score"] is not None:
        numbers.append(f"score {row['score']:.3g}")
    yield _field("signals", ", ".join(numbers) or "none: no log-probabilities came", whole)
    spent = "nothing charged"
    if row["cost"] is not None:
        spent = amount(row["cost"], unit)
    yield _field("cost", f"{spent}; ex-ante cost {row['cost_estimate']:.4g}", whole)
    yield _field("text", row["text"], whole)


def _verdict(row: Mapping[str, Any]) -> str:
    if row["verdict"] is None:
        return "selected, no verdict yet" if row["verify"] else "not verified"
    known = {1: "wrong", 0: "correct", None: "no verdict"}[row["error"]]
    return f"{known} ({row['verdict']}{', external' if row['external'] else ''})"


def _field(name: str, text: str, whole: bool) -> str:
    if len(text) > SHORT and not whole:
        text = f"{text[:SHORT]} … ({len(text):,} characters)"
    return f"  {name:<8} " + printable(text).replace("\n", "\n" + " " * 11)
