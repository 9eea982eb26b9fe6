"""The command line: one module per command, each with `add` (its arguments) and `main`."""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Callable, Sequence
from importlib.metadata import version

from gatekeeper.cli import (
    compare,
    diagnose,
    doctor,
    evalplus,
    paper,
    plan,
    replay,
    report,
    run,
    sandbox,
    signals,
    verify,
)
from gatekeeper.errors import GatekeeperError
from gatekeeper.limits import cause_of

__all__ = ["guarded", "main"]


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command; returns the exit code: 0, 2 for bad input, 130 for Ctrl-C."""
    parser = argparse.ArgumentParser(
        prog="gatekeeper",
        description="Decides which LLM outputs deserve verification, within a budget.",
    )
    parser.add_argument("--version", action="version", version=version("llm-gatekeeper"))
    commands = parser.add_subparsers(required=True, metavar="command")
    for command in (
        run,
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
    return guarded(lambda: args.run(args))


def guarded(work: Callable[[], int]) -> int:
    """The exit code of a command: what it returns, or what its error comes to, in one line."""
    try:
        code = work()
        sys.stdout.flush()
    except GatekeeperError as e:
        print(f"gatekeeper: {e}", file=sys.stderr)
        return 2
    except BrokenPipeError:  # whoever read our output has stopped; nothing more to say
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 141
    except KeyboardInterrupt:
        print("gatekeeper: interrupted", file=sys.stderr)
        return 130
    except Exception as e:
        cause = cause_of(e)
        if cause is None:  # a bug of ours: all of it is wanted
            raise
        print(f"gatekeeper: {cause}", file=sys.stderr)
        return 2
    return code
