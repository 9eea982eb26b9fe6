"""`gatekeeper verify KIND items.jsonl`: verdicts for a file of outputs, without a gate."""

from __future__ import annotations

import argparse

from gatekeeper.cli import verify_code, verify_math

__all__ = ["add"]


def add(parser: argparse.ArgumentParser) -> None:
    kinds = parser.add_subparsers(required=True, metavar="kind")
    verify_code.add(kinds)
    verify_math.add(kinds)
