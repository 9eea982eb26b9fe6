"""`gatekeeper paper`: the paper's tables on synthetic streams, beside the paper's figures."""

from __future__ import annotations

import argparse
import json
from pathlib import Path
from typing import Any

from rich.console import Console

from gatekeeper.arguments import check_count
from gatekeeper.errors import BadInputError
from gatekeeper.paper import TABLES, Replays, closing, write_figures
from gatekeeper.paper.table import PaperTable
from gatekeeper.programs.progress import progress
from gatekeeper.report.figures import check_installed

__all__ = ["add", "main"]

FILE_WIDTH = 240  # columns, without a terminal


def add(commands: argparse._SubParsersAction[Any]) -> None:
    parser = commands.add_parser(
        "paper",
        help="replay the paper's tables, beside the paper's figures",
        description="The paper's records are not published: each setting is a synthetic stream "
        "fitted to the figures that the paper prints (--table parameters). A cell holds: ours (the "
        "paper's, the difference).",
    )
    parser.add_argument(
        "--table",
        action="append",
        choices=list(TABLES),
        metavar="NAME",
        help=f"only this table; may be repeated: {', '.join(TABLES)}",
    )
    parser.add_argument(
        "--seeds", type=int, default=10, help="replays of each data set (default: 10)"
    )
    parser.add_argument("--json", action="store_true", help="print the result as JSON")
    parser.add_argument(
        "--out", type=Path, metavar="DIR", help="also write the tables and figures to this folder"
    )
    parser.set_defaults(run=main)


def main(args: argparse.Namespace) -> int:
    check_count("seeds", args.seeds, least=2)
    if args.out:
        check_installed()
    names = args.table or list(TABLES)
    tables: list[PaperTable] = []
    with Replays(args.seeds) as replays:
        with progress("paper", len(names)) as advance:
            for name in names:
                advance(0, name)
                tables += TABLES[name](replays)
                advance(1, name)
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
    console = Console()
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
