"""The command line: one module per command, each with `add` (its arguments) and `main`."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from importlib.metadata import version

from gatekeeper.cli import (
    compare,
    diagnose,
    doctor,
    evalplus,
    export,
    paper,
    plan,
    replay,
    report,
    run,
    sandbox,
    show,
    signals,
    verify,
)
from gatekeeper.programs.exit_code import exit_code_of

__all__ = ["main"]


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command.

    Parameters
    ----------
    argv : sequence of str or None
        The arguments; None: those of this process.

    Returns
    -------
    int
        The exit code: 0, 2 for bad input, 130 for Ctrl-C, or that of the command.
    """
    parser = argparse.ArgumentParser(
        prog="gatekeeper",
        description="Decides which LLM outputs deserve verification, within a budget.",
    )
    parser.add_argument("--version", action="version", version=version("llm-gatekeeper"))
    commands = parser.add_subparsers(required=True, metavar="command")
    for command in (
        run,
        show,
        export,
        replay,
        diagnose,
        plan,
        compare,
        report,
        paper,
        verify,
        evalplus,
        sandbox,
        signals,
        doctor,
    ):
        command.add(commands)
    args = parser.parse_args(argv)
    return exit_code_of(lambda: args.run(args))
