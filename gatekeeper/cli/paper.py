"""`gatekeeper paper`: the paper's tables on synthetic streams, beside the paper's figures."""

from __future__ import annotations

import argparse
import json
from pathlib import Path
from typing import Any

from gatekeeper.errors import BadInputError
from gatekeeper.option_values import whole
from gatekeeper.paper import TABLES, Replays, closing, write_figures
from gatekeeper.paper.table import PaperTable
from gatekeeper.programs.console import ResultConsole
from gatekeeper.programs.progress import progress
from gatekeeper.programs.values import MOST_SEEDS
from gatekeeper.report.figures import check_installed

__all__ = ["add", "main"]

FILE_WIDTH = 240  # columns, without a terminal


def add(parser: argparse.ArgumentParser) -> None:
    parser.description = (
        "Prints the paper's tables, replayed. The paper's records are not published: each setting "
        "is a synthetic stream fitted to the figures that the paper prints (--table parameters). A "
        "cell holds: ours (the paper's, the difference)."
    )
    parser.add_argument(
        "--table",
        action="append",
        choices=list(TABLES),
        metavar="NAME",
        help=f"only this table; may be repeated: {', '.join(TABLES)}",
    )
    parser.add_argument(
        "--seeds",
        type=whole(2, MOST_SEEDS),
        default=10,
        metavar="N",
        help="replays of each data set",
    )
    parser.add_argument("--json", action="store_true", help="print the result as JSON")
    parser.add_argument(
        "-o",
        "--out",
        type=Path,
        metavar="DIR",
        help="also write the tables and figures to this folder",
    )
    parser.set_defaults(run=main)


def main(args: argparse.Namespace) -> int:
    if args.out:
        check_installed()
    names = args.table or list(TABLES)
    tables: list[PaperTable] = []
    with Replays(args.seeds) as replays:
        with progress("paper", len(names)) as advance:
            name, made = "", 0

            def replayed(count: int) -> None:
                nonlocal made
                made += count
                advance(0, f"{name}: {made:,} replays so far")

            replays.on_progress = replayed
            for name in names:
                replayed(0)
                tables += TABLES[name](replays)
                advance(1, "")
        differences = closing(tables)
        document = {
            "seeds": args.seeds,
            "tables": [t.json() for t in tables],
            "differences": differences,
        }
        if args.out:
            _write(args.out, replays, tables, differences, document)
    if args.json:
        print(json.dumps(document, indent=2, ensure_ascii=False))
        return 0
    console = ResultConsole()
    if not console.is_terminal:
        console.width = FILE_WIDTH
    for table in tables:
        console.print(table.rich())
        console.print()
    console.print("Where we differ and why", style="bold")
    for text in differences:
        console.print(f"- {text}", markup=False, highlight=False)
    return 0


def _write(
    folder: Path,
    replays: Replays,
    tables: list[PaperTable],
    differences: list[str],
    document: dict[str, Any],
) -> None:
    """paper.md, paper.json and the figures."""
    listed = "\n".join(f"- {text}" for text in differences)
    text = "\n".join(t.markdown() for t in tables) + f"\n## Where we differ and why\n\n{listed}\n"
    try:
        folder.mkdir(parents=True, exist_ok=True)
        (folder / "paper.md").write_text(text, encoding="utf-8")
        as_json = json.dumps(document, indent=2, ensure_ascii=False)
        (folder / "paper.json").write_text(as_json, encoding="utf-8")
    except OSError as e:
        raise BadInputError(f"--out {folder} cannot be written: {e.strerror}") from e
    write_figures(folder, replays)
