"""`gatekeeper verify math items.jsonl --out verdicts.jsonl`: does each response reach its gold?"""

from __future__ import annotations

import argparse
import json
import sys
from collections import Counter, deque
from collections.abc import Iterator, Mapping
from pathlib import Path
from time import perf_counter
from typing import Any, TextIO

from gatekeeper.cli._progress import progress
from gatekeeper.errors import BadInputError
from gatekeeper.jsonl import field, read_jsonl
from gatekeeper.maths import MathChecker
from gatekeeper.maths.checker import reference
from gatekeeper.types import Outcome, Verdict

__all__ = ["add", "main"]

Item = tuple[str | int, str, str]  # id, gold, response


def add(subparsers: argparse._SubParsersAction[Any]) -> None:
    parser = subparsers.add_parser(
        "math",
        help="check solutions against reference answers",
        description="Writes one verdict per item, in input order. How it judges: docs/maths.md",
    )
    parser.add_argument("items", type=Path, help="JSONL (or .jsonl.gz): id, gold, response")
    parser.add_argument("--out", type=Path, required=True, help="JSONL of verdicts to write")
    parser.add_argument("--workers", type=int, help="comparisons at once (default: by processors)")
    parser.add_argument("--skip-bad", action="store_true", help="skip and count bad lines")
    parser.add_argument("--json", action="store_true", help="print the counts as JSON")
    parser.set_defaults(run=main)


def main(args: argparse.Namespace) -> int:
    """Returns 0 however many answers are wrong. Raises BadInputError before anything is written."""
    bad: list[BadInputError] = []
    # Once to find every bad line and to count, and once to judge: a file need not fit in memory.
    total = sum(1 for _ in read_jsonl(args.items, _item, skip_bad=args.skip_bad, on_bad=bad.append))
    for error in bad:
        print(f"gatekeeper: skipped {error}", file=sys.stderr)
    if not total:
        raise BadInputError(f"{args.items} holds no item")
    if args.out.exists() and args.out.samefile(args.items):
        raise BadInputError(f"--out {args.out} is the file of items itself")
    started = perf_counter()
    with MathChecker(workers=args.workers) as checker:
        counts = _judge(checker, args, total)
    seconds = perf_counter() - started
    summary = {verdict.value: counts[verdict] for verdict in Verdict}
    if args.json:
        print(json.dumps({"items": total, **summary, "skipped": len(bad), "seconds": seconds}))
    else:
        found = ", ".join(f"{n} {name}" for name, n in summary.items() if n)
        skipped = f"; {len(bad)} bad lines skipped" if bad else ""
        print(f"{total} items in {seconds:.1f} s: {found}{skipped}. Verdicts: {args.out}")
    return 0


def _judge(checker: MathChecker, args: argparse.Namespace, total: int) -> Counter[Verdict]:
    """Write the verdicts, with a bar on a terminal's standard error."""
    counts: Counter[Verdict] = Counter()
    ids: deque[str | int] = deque()  # of the items that the checker has read ahead

    def pairs() -> Iterator[tuple[str, str]]:
        for id_, gold, response in read_jsonl(args.items, _item, skip_bad=args.skip_bad):
            ids.append(id_)
            yield gold, response

    with _open(args.out) as out, progress("check answers", total) as advance:
        for outcome in checker.check_many(pairs()):
            out.write(json.dumps(_line(ids.popleft(), outcome)) + "\n")
            counts[outcome.verdict] += 1
            wrong = sum(n for verdict, n in counts.items() if verdict.error)
            advance(1, f"{wrong} wrong")
    return counts


def _open(path: Path) -> TextIO:
    try:
        return path.open("w", encoding="utf-8")
    except OSError as e:
        raise BadInputError(f"--out {path} cannot be written: {e.strerror}") from e


def _item(data: Mapping[str, Any]) -> Item:
    id_ = data.get("id")
    if isinstance(id_, bool) or not isinstance(id_, str | int):
        raise BadInputError(f"field 'id' is {id_!r:.80}: a string is needed, or a whole number")
    gold = field(data, "gold", str)
    try:
        reference(gold)
    except BadInputError as e:
        raise BadInputError(f"field 'gold': {e}") from None
    return id_, gold, field(data, "response", str)


def _line(id_: str | int, outcome: Outcome) -> dict[str, Any]:
    return {
        "id": id_,
        "verdict": outcome.verdict.value,
        "error": outcome.error,
        "seconds": round(outcome.seconds, 6),
        "detail": outcome.detail,
        "extracted": outcome.meta["extracted"],
        "rule": outcome.meta["rule"],
    }
