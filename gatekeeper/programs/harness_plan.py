"""`--limit` and `--dry-run` of the commands that run a harness's checks within a budget."""

from __future__ import annotations

import argparse
from collections.abc import Callable

from gatekeeper.adapters.harness.gate import GateOptions
from gatekeeper.gate import VerificationGate
from gatekeeper.log import Log
from gatekeeper.option_values import whole
from gatekeeper.programs.run_plan import RunPlan, print_plan, run_to_continue

__all__ = ["add_plan_options", "print_harness_plan"]


def add_plan_options(parser: argparse.ArgumentParser, *, limited: str) -> None:
    """Add `--limit`, of which the help says what is limited, and `--dry-run`."""
    parser.add_argument("--limit", type=whole(), metavar="N", help=f"only the first N {limited}")
    parser.add_argument(
        "--dry-run",
        action="store_true",
        help="generate and check nothing; print how many would be checked",
    )


def print_harness_plan(
    outputs: int,
    options: GateOptions,
    gate_with: Callable[[Log], VerificationGate],
    *,
    noun: str,
    as_json: bool,
) -> None:
    """Print what the command would do with so many outputs.

    Parameters
    ----------
    outputs : int
    options : GateOptions
    gate_with : callable
        Makes the gate, with a log in memory.
    noun : str
        What an output is: "sample", "instance".
    as_json : bool
        For programs.

    Raises
    ------
    GatekeeperError
        If the log cannot be continued with these options.
    """
    run = run_to_continue(options.log, gate_with)
    known = 0 if run is None else len(run.outputs)
    plan = RunPlan(outputs, known, options.budget_of(outputs), options, noun)
    print_plan(plan, run, as_json=as_json)
