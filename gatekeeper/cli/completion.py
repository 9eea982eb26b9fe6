"""`gatekeeper completion bash`: completion of commands, options, their choices and files."""

from __future__ import annotations

import argparse
from pathlib import Path

from gatekeeper.programs.log_argument import log_file, log_or_records
from gatekeeper.programs.values import input_file

__all__ = ["add", "main"]

SHELLS = ("bash", "zsh", "tcsh", "fish", "powershell")


def add(parser: argparse.ArgumentParser) -> None:
    parser.description = (
        "Prints the completion of this command line for a shell. In ~/.bashrc: "
        'eval "$(gatekeeper completion bash)"; in ~/.zshrc the same with zsh.'
    )
    parser.add_argument("shell", choices=SHELLS, help="shell whose completion to print")
    parser.set_defaults(run=main)


def main(args: argparse.Namespace) -> int:
    """Returns 0."""
    import shtab  # only here: no other command needs it

    from gatekeeper.cli import parser

    whole = parser()
    _mark_files(whole, shtab.FILE)
    print(shtab.complete(whole, args.shell))
    return 0


def _mark_files(parser: argparse.ArgumentParser, mark: object) -> None:
    """Mark the arguments that are files, as shtab wants it."""
    for action in parser._actions:
        if isinstance(action, argparse._SubParsersAction):
            for below in action.choices.values():
                _mark_files(below, mark)
        elif action.type in (Path, input_file, log_file, log_or_records):
            action.complete = mark  # type: ignore[attr-defined]
