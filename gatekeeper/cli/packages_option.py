"""`--with numpy,scipy`: packages that candidates may import."""

from __future__ import annotations

import argparse
import re

__all__ = ["add_with"]

# A comma before a name separates; one within a version (>=1,<3) or extras ([a,b]) does not.
_SEPARATOR = re.compile(r",(?=\s*(?:[A-Za-z]|,|$))(?![^\[]*\])")


def add_with(parser: argparse.ArgumentParser, help: str) -> None:
    """Add the option; its list is `args.packages`."""
    parser.add_argument(
        "--with",
        dest="packages",
        metavar="PKG,…",
        type=_SEPARATOR.split,
        action="extend",
        default=[],
        help=help,
    )
