"""`gatekeeper signals responses.jsonl`: the signals of a file of responses, without a gate."""

from __future__ import annotations

import argparse
import json
import sys
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, TextIO

from rich.table import Table
from rich.text import Text

from gatekeeper.errors import BadInputError
from gatekeeper.io.jsonl import lines_of, read_jsonl
from gatekeeper.io.providers import response_names
from gatekeeper.io.responses import as_generations
from gatekeeper.log.json_values import json_number
from gatekeeper.programs.console import ResultConsole
from gatekeeper.programs.progress import progress
from gatekeeper.programs.skipped_lines import skipped_lines
from gatekeeper.programs.values import check_output, input_file, open_output, summary_stream
from gatekeeper.signals import signals_of
from gatekeeper.types import Generation, SignalState
from gatekeeper.wording import counted

__all__ = ["add", "main"]

Line = dict[str, Any]

NAMED = 'as {"id": …, "response": …}'  # what a line may be whose response has no id of its own
COLUMNS = {
    "h1": "h1",
    "h2": "h2",
    "h3": "h3",
    "coverage": "token_coverage",
    "k": "k_seen",
    "tokens": "n_tokens",
    "signal": "signal",
}


def add(parser: argparse.ArgumentParser) -> None:
    parser.description = (
        "Prints or writes one line per output, in input order. A line of the input is "
        f"JSON: {'; '.join(response_names())}; or {{id, response}}, where the response may also be "
        "the list of chunks of a stream. Several choices of one response become id/0, id/1, …; "
        "an id may occur once in a file. A signal that cannot be computed is null."
    )
    parser.add_argument(
        "responses", type=input_file, help="JSONL (or .jsonl.gz); - is standard input"
    )
    parser.add_argument(
        "-o", "--out", type=Path, help="JSONL (or .jsonl.gz) to write (default: standard output, -)"
    )
    parser.add_argument(
        "--scope",
        choices=["content", "reasoning", "all"],
        default="content",
        help="tokens that count where a response has reasoning beside the answer (default: the "
        "answer's)",
    )
    parser.add_argument(
        "--skip-forced", action="store_true", help="leave out tokens that a grammar forced"
    )
    parser.add_argument("--skip-bad", action="store_true", help="skip and count bad lines")
    parser.add_argument(
        "--json", action="store_true", help="JSON: the lines, or with --out what was written"
    )
    parser.set_defaults(run=main)


def main(args: argparse.Namespace) -> int:
    """Returns 0 however few signals there are. Raises BadInputError before anything is written."""
    if args.out:
        check_output("--out", args.out, source=args.responses)
    with skipped_lines() as bad:
        lines = _read(args, bad.append)
    if not lines:
        raise BadInputError(f"{args.responses} has no outputs")
    if args.out is not None:
        with open_output("--out", args.out) as out:
            _write(lines, out)
        _report(lines, len(bad), args)
    elif args.json or not sys.stdout.isatty():
        _write(lines, sys.stdout)
    else:
        ResultConsole().print(_table(lines))
    return 0


def _read(args: argparse.Namespace, on_bad: Callable[[BadInputError], None]) -> list[Line]:
    seen: set[str] = set()

    def parse(data: Mapping[str, Any]) -> list[Line]:
        id_, response = data.get("id"), data
        if "response" in data:
            response = data["response"]
            if isinstance(id_, bool) or not isinstance(id_, str | int):
                raise BadInputError(f"id={id_!r:.80}: give a string or a whole number, {NAMED}")
        found = as_generations(
            response,
            id=str(id_) if "response" in data else None,
            scope=args.scope,
            skip_forced=args.skip_forced,
        )
        if not found:
            raise BadInputError(f"id={id_!r:.80}: the response has no outputs")
        ids = [generation.id for generation in found]
        for name in ids:
            if name in seen or ids.count(name) > 1:
                raise BadInputError(
                    f"id {name!r:.80} occurs twice: give each response a unique id, {NAMED}"
                )
        seen.update(ids)
        return [_line(generation) for generation in found]

    lines: list[Line] = []
    outputs = read_jsonl(args.responses, parse, skip_bad=args.skip_bad, on_bad=on_bad)
    with progress("read responses", _count(args.responses)) as advance:
        for found in outputs:
            lines += found
            advance(1, "")
    return lines


def _count(path: Path) -> int:
    """Lines of the file, for the progress bar; 0 for a file that cannot be read."""
    try:
        return sum(1 for line in lines_of(path) if line is None or line.strip())
    except BadInputError:
        return 0


def _line(generation: Generation) -> Line:
    signals = signals_of(generation)
    return {
        "id": generation.id,
        "h1": json_number(signals.h1),
        "h2": json_number(signals.h2),
        "h3": json_number(signals.h3),
        "token_coverage": generation.token_coverage,
        "k_seen": generation.k_seen,
        "n_tokens": signals.n_tokens,
        "signal": signals.state.value,
    }


def _write(lines: Sequence[Line], out: TextIO) -> None:
    for line in lines:
        out.write(json.dumps(line) + "\n")


def _report(lines: Sequence[Line], skipped: int, args: argparse.Namespace) -> None:
    counts = Counter(line["signal"] for line in lines)
    states = {state.value: counts[state.value] for state in SignalState}
    if args.json:
        numbers = {"outputs": len(lines), **states, "skipped": skipped}
        print(json.dumps(numbers), file=summary_stream(args.out))
    else:
        found = ", ".join(f"{n} {name}" for name, n in states.items() if n)
        lost = f"; {counted(skipped, 'bad line')} skipped" if skipped else ""
        text = f"{counted(len(lines), 'output')}: signals {found}{lost}. Records: {args.out}"
        print(text, file=summary_stream(args.out))


def _table(lines: Sequence[Line]) -> Table:
    table = Table(caption="h1, h2, h3 in nats, larger is more uncertain; blank: not computable")
    table.add_column("id", overflow="fold")
    for heading in COLUMNS:
        table.add_column(heading, justify="left" if heading == "signal" else "right")
    for line in lines:
        table.add_row(Text(line["id"]), *(_cell(line[name]) for name in COLUMNS.values()))
    return table


def _cell(value: float | str | None) -> str:
    if value is None:
        return ""
    return f"{value:.4g}" if isinstance(value, float) else str(value)
