"""The harness's command line, with the options of the gate."""

from __future__ import annotations

import argparse
import importlib
import sys
from collections.abc import Sequence
from dataclasses import fields
from typing import Any, NoReturn

from gatekeeper.adapters.harness.gate import GateOptions, add_options, options_of
from gatekeeper.adapters.lm_eval.evaluate import evaluate, load_harness, replaced
from gatekeeper.adapters.lm_eval.grading import Grading
from gatekeeper.adapters.lm_eval.session import RunReport
from gatekeeper.errors import BadInputError, GatekeeperError
from gatekeeper.option_values import number
from gatekeeper.wording import one_line

__all__ = ["main"]


class _Parser(argparse.ArgumentParser):
    """Raises BadInputError for an option's value, instead of ending the process."""

    def error(self, message: str) -> NoReturn:
        raise BadInputError(message.removeprefix("argument "))


def main(argv: Sequence[str] | None = None) -> int:
    """Run the harness's command line.

    Parameters
    ----------
    argv : sequence of str or None
        The arguments; None: those of this process.

    Returns
    -------
    int
        0; 1 if selected outputs have no verdict; 2 for bad input; 130 after Ctrl-C.
    """
    parser = _parser()
    try:
        args, rest = parser.parse_known_args(argv)
        options = options_of(args, "--gate_")
        grading = Grading(**{f.name: getattr(args, f"gate_{f.name}") for f in fields(Grading)})
        if not rest or {"-h", "--help"} & set(rest):
            parser.print_help()
            print()
        report = _run(rest, options, grading)
    except GatekeeperError as e:
        return _print_error(e)
    except KeyboardInterrupt:
        later = (
            "the same command continues" if args.gate_log else "without --gate_log nothing is kept"
        )
        _print_error(f"interrupted; {later}")
        return 130
    if report is None:
        return 0
    print("gatekeeper:")
    print(*(f"  {line}" for line in report.lines()), sep="\n")
    return 1 if report.run.summary.could_not_tell else 0


def _parser() -> _Parser:
    """The parser of the gate's options; the others are the harness's."""
    parser = _Parser(
        prog="python -m gatekeeper.adapters.lm_eval",
        usage="%(prog)s [--gate_… …] <arguments of lm-eval>",
        add_help=False,
        allow_abbrev=False,
    )
    add_options(parser, "--gate_")
    add = parser.add_argument
    add(
        "--gate_metric",
        metavar="NAME",
        help="metric that decides what is right (default: the first with a value per document)",
    )
    add("--gate_filter", metavar="NAME", help="filter whose metric counts (default: the first)")
    add(
        "--gate_passing",
        type=number("(-inf, inf)"),
        metavar="X",
        help="value of the metric from which on an answer is right (default: 1, or 0 for a "
        "metric that is better when lower)",
    )
    add(
        "--gate_verifier",
        metavar="NAME",
        help="verifier in place of the metric: math, docker, local or a plug-in's",
    )
    return parser


def _run(rest: Sequence[str], options: GateOptions, grading: Grading) -> RunReport | None:
    """Run the harness's own command with these arguments; None where it evaluates nothing.

    Raises
    ------
    BadInputError
        For what the harness says about its arguments, and for an endpoint that does not answer.
    """
    report: RunReport | None = None
    started = False

    def gated(model: Any, **kwargs: Any) -> Any:
        nonlocal started, report
        started = True
        results, report = evaluate(model, options, grading, kwargs)
        return results

    harness, unreachable = load_harness()
    try:
        with (
            replaced(harness, "simple_evaluate", gated),
            replaced(sys, "argv", ["lm-eval", *rest]),
        ):
            importlib.import_module("lm_eval.__main__").cli_evaluate()
    except GatekeeperError:
        raise
    except unreachable as e:
        raise BadInputError(f"the model did not answer: {e}") from e
    except (ValueError, TypeError, OSError) as e:
        if started:
            raise
        raise BadInputError(one_line(e)) from e  # of the harness, about its arguments
    return report


def _print_error(text: object) -> int:
    print(f"gatekeeper: {text}", file=sys.stderr)
    return 2
