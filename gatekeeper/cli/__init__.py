"""The command line: one module per command, each with `add` (its arguments) and `main`.

A module is imported when its command is called: `gatekeeper --help` needs none of them.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterable, Sequence
from importlib import import_module
from importlib.metadata import version

from gatekeeper.programs.exit_code import exit_code_of
from gatekeeper.programs.parser import Parser

__all__ = ["COMMANDS", "main", "parser"]

COMMANDS = {
    "run": "generate, decide, verify and learn over a task file",
    "serve": "a gateway that verifies the answers of an OpenAI-compatible API",
    "watch": "follow a run live, on a page or the terminal",
    "show": "show a log's outputs with their verdicts",
    "export": "write a log's outputs as a table",
    "replay": "compare policies on records whose outcomes are known",
    "diagnose": "test whether cost strata differ, and recommend a policy",
    "plan": "estimate the budget that a target recall or residual risk needs",
    "compare": "estimate what other policies would have found in a run",
    "report": "write one HTML page with figures, from records or a run's log",
    "paper": "replay the paper's tables, beside the paper's figures",
    "verify": "verify a file of outputs, all of them",
    "evalplus": "check samples for HumanEval+ or MBPP+ within a budget",
    "swebench": "evaluate predictions for SWE-bench within a budget",
    "sandbox": "prepare the Docker sandbox",
    "signals": "the signals h1, h2, h3 of a file of responses",
    "doctor": "test what works on this machine",
    "completion": "print the completion of this command line for a shell",
}


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command.

    Parameters
    ----------
    argv : sequence of str or None
        The arguments; None: those of this process.

    Returns
    -------
    int
        The exit code: 0, 2 for bad input, 130 for Ctrl-C, 143 for SIGTERM, or that of the command.
    """
    code = exit_code_of(lambda: _run(sys.argv[1:] if argv is None else list(argv)))
    if argv is None and code in (130, 143):
        os._exit(code)  # threads that wait for a server would keep the process
    return code


def parser(commands: Iterable[str] = COMMANDS) -> Parser:
    """The parser, with the arguments of these commands; of the others it has the name and the help.

    Parameters
    ----------
    commands : iterable of str
        Default: all.
    """
    made = Parser(
        prog="gatekeeper",
        description="Decides which LLM outputs deserve verification, within a budget.",
        epilog="gatekeeper COMMAND --help describes a command.",
    )
    made.add_argument("--version", action="version", version=version("llm-gatekeeper"))
    below = made.add_subparsers(required=True, metavar="command")
    for name, summary in COMMANDS.items():
        command = below.add_parser(name, help=summary)
        if name in commands:
            import_module(f"gatekeeper.cli.{name}").add(command)
    return made


def _run(argv: Sequence[str]) -> int:
    made = parser(argv[:1])
    if not argv:
        made.print_help()
        return 0
    args = made.parse_args(argv)
    code: int = args.run(args)
    return code
