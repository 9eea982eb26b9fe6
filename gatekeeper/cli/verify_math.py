"""`gatekeeper verify math items.jsonl --out verdicts.jsonl`: is each response's answer the gold?"""

from __future__ import annotations

import argparse
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from gatekeeper.cli.verdict_file import Id, Judge, add_common, identity, judge_file
from gatekeeper.errors import BadInputError
from gatekeeper.io.jsonl import field
from gatekeeper.maths import MathChecker
from gatekeeper.maths.checker import reference
from gatekeeper.option_values import whole

__all__ = ["add", "main"]

Item = tuple[str, str]  # gold, response


def add(subparsers: argparse._SubParsersAction[Any]) -> None:
    parser = subparsers.add_parser(
        "math",
        help="check solutions against reference answers",
        description="Writes one verdict per item, in input order. docs/maths.md has the rules.",
    )
    add_common(parser, "id, gold, response")
    parser.add_argument(
        "--workers",
        type=whole(),
        metavar="N",
        help="comparisons at the same time (default: by processors)",
    )
    parser.set_defaults(run=main)


def main(args: argparse.Namespace) -> int:
    """Returns 0, whatever the verdicts are. Raises BadInputError before anything is written."""

    @contextmanager
    def checker() -> Iterator[Judge[Item]]:
        with MathChecker(workers=args.workers) as opened:
            yield opened.check_many

    return judge_file(args, _item, checker, title="check answers", fields=("extracted", "rule"))


def _item(data: Mapping[str, Any]) -> tuple[Id, Item]:
    id_ = identity(data)
    gold = field(data, "gold", str)
    try:
        reference(gold)
    except BadInputError as e:
        raise BadInputError(f"field 'gold': {e}") from None
    return id_, (gold, field(data, "response", str))
