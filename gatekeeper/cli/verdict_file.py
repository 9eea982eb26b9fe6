"""`gatekeeper verify …` for every kind of item: read, verify, write, count."""

from __future__ import annotations

import argparse
import json
from collections import Counter, deque
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import AbstractContextManager
from pathlib import Path
from time import perf_counter
from typing import Any, TypeVar

from gatekeeper.errors import BadInputError
from gatekeeper.io.jsonl import read_jsonl
from gatekeeper.programs.progress import progress
from gatekeeper.programs.skipped_lines import skipped_lines
from gatekeeper.programs.values import check_output, input_file, open_output, summary_stream
from gatekeeper.types import Outcome, Verdict
from gatekeeper.wording import counted

__all__ = ["Id", "Judge", "add_common", "identity", "judge_file"]

Id = str | int
Item = TypeVar("Item")
Judge = Callable[[Iterable[Item]], Iterable[Outcome]]
"""From items to their outcomes, in order; it may read some items ahead."""


def add_common(parser: argparse.ArgumentParser, fields: str) -> None:
    """Add the arguments that all kinds of items have."""
    parser.add_argument(
        "items", type=input_file, help=f"JSONL (or .jsonl.gz): {fields}; - is standard input"
    )
    parser.add_argument(
        "-o",
        "--out",
        type=Path,
        required=True,
        help="JSONL (or .jsonl.gz) of verdicts to write; - is standard output",
    )
    parser.add_argument("--skip-bad", action="store_true", help="skip and count bad lines")
    parser.add_argument("--json", action="store_true", help="print the counts as JSON")


def identity(data: Mapping[str, Any]) -> Id:
    """The field `id`. Raises BadInputError if it is not a string or a whole number."""
    id_ = data.get("id")
    if isinstance(id_, bool) or not isinstance(id_, str | int):
        raise BadInputError(f"field 'id' is {id_!r:.80}: give a string or a whole number")
    return id_


def judge_file(
    args: argparse.Namespace,
    parse: Callable[[Mapping[str, Any]], tuple[Id, Item]],
    open_judge: Callable[[], AbstractContextManager[Judge[Item]]],
    *,
    title: str,
    fields: Iterable[str],
) -> int:
    """Write a verdict for each item, in input order.

    Parameters
    ----------
    args : argparse.Namespace
        With the arguments of `add_common`.
    parse : callable
        From a line's JSON to the id and the item.
    open_judge : callable
        Opens what verifies the items.
    title : str
        Title of the progress bar.
    fields : iterable of str
        Fields of an outcome's meta to write with its verdict.

    Returns
    -------
    int
        0, whatever the verdicts are.

    Raises
    ------
    BadInputError
        Before anything is written.
    """
    with skipped_lines() as bad:
        # Read twice, to find every bad line and to count, then to verify: a file may exceed memory.
        read = read_jsonl(args.items, parse, skip_bad=args.skip_bad, on_bad=bad.append)
        total = sum(1 for _ in read)
    if not total:
        raise BadInputError(f"{args.items} has no items")
    check_output("--out", args.out, source=args.items)
    ids: deque[Id] = deque()  # of the items that were read ahead
    counts: Counter[Verdict] = Counter()

    def items() -> Iterator[Item]:
        for id_, item in read_jsonl(args.items, parse, skip_bad=args.skip_bad):
            ids.append(id_)
            yield item

    started = perf_counter()
    with (
        open_judge() as judge,
        open_output("--out", args.out) as out,
        progress(title, total) as advance,
    ):
        for outcome in judge(items()):
            out.write(json.dumps(_line(ids.popleft(), outcome, fields)) + "\n")
            counts[outcome.verdict] += 1
            wrong = sum(n for verdict, n in counts.items() if verdict.error)
            advance(1, f"{wrong} wrong")
    seconds = perf_counter() - started
    summary = {verdict.value: counts[verdict] for verdict in Verdict}
    if args.json:
        text = json.dumps({"items": total, **summary, "skipped": len(bad), "seconds": seconds})
    else:
        found = ", ".join(f"{n} {name}" for name, n in summary.items() if n)
        left_out = f"; {counted(len(bad), 'bad line')} skipped" if bad else ""
        text = f"{counted(total, 'item')} in {seconds:.1f} s: {found}{left_out}."
        if str(args.out) != "-":
            text += f" Verdicts: {args.out}"
    print(text, file=summary_stream(args.out))
    return 0


def _line(id_: Id, outcome: Outcome, fields: Iterable[str]) -> dict[str, Any]:
    return {
        "id": id_,
        "verdict": outcome.verdict.value,
        "error": outcome.error,
        "seconds": round(outcome.seconds, 6),
        "detail": outcome.detail,
        **{field: outcome.meta.get(field) for field in fields},
    }
