"""`gatekeeper run tasks.jsonl`: the whole loop over a task file, resumable with the same log."""

from __future__ import annotations

import argparse
import hashlib
import json
import os
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict
from math import isnan
from pathlib import Path
from typing import Any, get_args

from rich.console import Console
from rich.table import Table
from rich.text import Text

from gatekeeper.adapters.generate import bundled_generator, openai_generator, vllm_generator
from gatekeeper.analysis.estimates import Estimates, as_json, estimate, show
from gatekeeper.analysis.summary import Summary, summarise
from gatekeeper.budget import Budget, Unit
from gatekeeper.cli._progress import progress
from gatekeeper.cli._skipped import skipped
from gatekeeper.errors import BadInputError, GeneratorUnavailableError
from gatekeeper.gate import VerificationGate
from gatekeeper.gate.runner import Generate, check_the_rest, run_tasks
from gatekeeper.gate.settings import OnDrift
from gatekeeper.io.datasets import FORMATS
from gatekeeper.io.records import records_of_log
from gatekeeper.io.tasks import Task, read_tasks
from gatekeeper.policies import policy_names
from gatekeeper.protocols import Verifier
from gatekeeper.types import Calibration, GateStatus
from gatekeeper.verifiers import ByKind, make_verifier

__all__ = ["add", "add_options", "main", "run"]

DOUBT = 1.645  # standard deviations above random that chance exceeds one time in twenty


def add(commands: argparse._SubParsersAction[Any]) -> None:
    parser = commands.add_parser(
        "run",
        help="generate, decide, verify and learn over a task file",
        description="The same command with the same log goes on where it was interrupted.",
    )
    parser.add_argument("tasks", type=Path, help="JSONL: id, prompt, kind, tests | gold")
    parser.add_argument(
        "--format",
        choices=FORMATS,
        default="tasks",
        help="what a line is: a task (default), or a row of MBPP or MATH-500",
    )
    parser.add_argument(
        "--generator",
        choices=["bundled", "openai", "vllm"],
        default="bundled",
        help="what answers the prompts: the bundled model (default), an endpoint, vLLM offline",
    )
    parser.add_argument("--model", metavar="NAME", help="openai, vllm: the model's name or folder")
    parser.add_argument("--skip-bad", action="store_true", help="skip and count bad lines")
    add_options(parser)
    parser.set_defaults(run=main)


def add_options(parser: argparse.ArgumentParser) -> None:
    """What `run` takes besides the tasks and the generator, for other commands that call `run`."""
    parser.add_argument("--base-url", metavar="URL", help="openai: the endpoint, ending in /v1")
    parser.add_argument(
        "--api-key-env", default="OPENAI_API_KEY", metavar="NAME", help="where its key stands"
    )
    parser.add_argument("--concurrency", type=int, default=8, help="openai: requests at once")
    parser.add_argument(
        "--max-tokens", type=int, metavar="N", help="of an answer (default: the model's own limit)"
    )
    parser.add_argument("--temperature", type=float, default=0.0, help="0: greedy (default)")
    parser.add_argument("--policy", default="cst", help=f"one of {', '.join(policy_names())}")
    parser.add_argument(
        "--budget", type=float, default=0.2, metavar="SHARE",
        help="share of the full cost; 1: verify everything",
    )  # fmt: skip
    parser.add_argument(
        "--explore", type=float, default=0.1, metavar="SHARE",
        help="share of the budget for outputs drawn at random (default 0.1); at 0 nothing can be "
        "said of the error rate among all outputs",
    )  # fmt: skip
    parser.add_argument(
        "--on-drift", choices=get_args(OnDrift), default="relearn",
        help="when thresholds no longer fit what comes: learn them anew (default), or only say so",
    )  # fmt: skip
    parser.add_argument("--unit", choices=get_args(Unit)[:2], default="verifications")
    parser.add_argument(
        "--sandbox", metavar="NAME", help="what runs code: docker, local, or a plug-in's verifier"
    )
    parser.add_argument("--workers", type=int, default=2, help="verifications at once")
    parser.add_argument("--log", type=Path, help="SQLite file to write or to resume")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument(
        "--check-all",
        action="store_true",
        help="afterwards verify the rest too, outside the budget, to compare with other choices",
    )
    parser.add_argument("--json", action="store_true", help="print the result as JSON")


def main(args: argparse.Namespace) -> int:
    convert = FORMATS[args.format]
    with skipped() as bad:
        tasks = read_tasks(args.tasks, convert=convert, skip_bad=args.skip_bad, on_bad=bad.append)
    return run(tasks, args)


def run(tasks: Sequence[Task], args: argparse.Namespace) -> int:
    """Take the tasks through the loop and print the closing report; returns the exit code.

    `args` has what `add_options` adds, and `generator` and `model`.
    """
    budget = Budget(fraction=args.budget, unit=args.unit, horizon=len(tasks))
    verifier = _verifier(tasks, args)
    generate = _generate(args)  # before the log is made: a model that is not there leaves none
    with VerificationGate(
        args.policy,
        budget=budget,
        verifier=verifier,
        log=args.log,
        on_unavailable="pass",
        workers=args.workers,
        seed=args.seed,
        explore=args.explore,
        prompt_template=getattr(generate, "prompt_template", None),
        on_drift=args.on_drift,
        settings={
            "tasks": hashlib.sha256(json.dumps(tasks, sort_keys=True).encode()).hexdigest(),
            "generator": args.generator,
            "model": args.model,
            "max_tokens": args.max_tokens,
            "temperature": args.temperature,
            "seed": args.seed,
        },
    ) as gate:
        try:
            with _watched(gate, f"{args.policy}: answer, decide, verify", len(tasks)) as advance:
                run_tasks(gate, tasks, generate, on_progress=advance)
            if args.check_all:
                status = gate.status()
                rest = status.seen - status.verified - status.warmup_verified - status.audited
                with _watched(gate, "check the rest, to compare", rest) as advance:
                    check_the_rest(gate, tasks, verifier, workers=args.workers, on_progress=advance)
        except (KeyboardInterrupt, GeneratorUnavailableError) as stop:
            asked = isinstance(stop, KeyboardInterrupt)
            later = (
                "the same command goes on from there" if args.log else "without --log all is lost"
            )
            done = f"{gate.status().seen} of {len(tasks)} outputs"
            why = "interrupted" if asked else f"{stop}; stopped"
            print(f"gatekeeper: {why} after {done}; {later}", file=sys.stderr)
            return 130 if asked else 2
        results = [result for task in tasks if (result := gate.find(task["id"])) is not None]
        status = gate.status()
    summary = summarise(results)
    # The log's records know ĉ too, and are what `report` reads.
    rate = estimate(records_of_log(args.log) if args.log and results else results)
    if args.json:
        print(json.dumps(_as_json(summary, status, rate, args), indent=2))
    else:
        _print(summary, status, rate, args)
    return 1 if summary.could_not_tell else 0


def _verifier(tasks: Sequence[Task], args: argparse.Namespace) -> ByKind:
    kinds = {task["kind"] for task in tasks}
    verifiers: dict[str, Verifier] = {}
    if "code" in kinds:
        if args.sandbox is None:
            raise BadInputError(
                "there are tasks of kind 'code': say what runs the model's code, for "
                "example --sandbox docker or --sandbox local (docs/sandbox.md says what each stops)"
            )
        verifiers["code"] = make_verifier(args.sandbox)
    if "math" in kinds:
        verifiers["math"] = make_verifier("math")
    return ByKind(verifiers)


def _generate(args: argparse.Namespace) -> Generate:
    how = {"temperature": args.temperature, "seed": args.seed, "max_tokens": args.max_tokens}
    if not args.temperature >= 0:
        raise BadInputError(f"temperature={args.temperature!r}: give a number >= 0, 0 being greedy")
    if args.max_tokens is not None and args.max_tokens < 1:
        raise BadInputError(f"max_tokens={args.max_tokens!r}: give at least 1")
    if args.base_url and args.generator != "openai":
        raise BadInputError("--base-url is an endpoint's: it goes with a model that it serves")
    if bool(args.model) == (args.generator == "bundled"):
        raise BadInputError("--model goes with --generator openai or vllm, and they need it")
    if args.generator == "bundled":
        return bundled_generator(**how)
    if args.generator == "vllm":
        return vllm_generator(args.model, **how)
    key = os.environ.get(args.api_key_env)
    if not key and not args.base_url:
        raise BadInputError(f"no key in {args.api_key_env}, and no --base-url of a server without")
    return openai_generator(
        args.model,
        base_url=args.base_url,
        api_key=key or "none",
        concurrency=args.concurrency,
        **how,
    )


@contextmanager
def _watched(gate: VerificationGate, title: str, total: int) -> Iterator[Callable[[int], None]]:
    """A bar that shows what the gate has verified and found, and a line when it drifts."""
    drifted = False
    with progress(title, total) as advance:

        def note(done: int) -> None:
            nonlocal drifted
            status = gate.status()
            if status.calibration is Calibration.DRIFTED and not drifted:
                where = f"by output {status.seen}"
                print(f"gatekeeper: drifted {where}: {status.drift}", file=sys.stderr)
            drifted = status.calibration is Calibration.DRIFTED
            verified = status.verified + status.warmup_verified
            errors = status.errors_found + status.warmup_errors
            advance(done, f"{verified} verified, {errors} wrong")

        yield note


def _as_json(
    summary: Summary, status: GateStatus, rate: Estimates, args: argparse.Namespace
) -> dict[str, Any]:
    return {
        "policy": args.policy,
        "budget": args.budget,
        "unit": args.unit,
        **asdict(summary),
        "above_random": None if isnan(summary.above_random) else summary.above_random,
        "spent": status.spent,
        "cap": status.cap,
        "warmup_spent": status.warmup_spent,
        "calibration": status.calibration,
        "drift": status.drift,
        "error_rate": as_json(rate),
        "log": None if args.log is None else str(args.log),
    }


def _print(summary: Summary, status: GateStatus, rate: Estimates, args: argparse.Namespace) -> None:
    """The closing table, for somebody who sees it for the first time."""
    title = Text(f"gatekeeper: policy {args.policy}, budget {args.budget:.0%}")
    table = Table(title=title, min_width=70)
    table.add_column("")
    table.add_column("outputs", justify="right")
    table.add_column("wrong", justify="right")
    table.add_row("answered by the model", f"{summary.outputs}", "")
    table.add_row(
        "warm-up: the first ones, all verified",
        f"{summary.warmup_verified}",
        f"{summary.warmup_errors}",
    )
    table.add_row("decided on after the warm-up", f"{summary.evaluated}", _number(summary.errors))
    table.add_section()
    table.add_row(
        f"[bold]verified by the gate[/] ({status.spent:g} of {status.cap:g} {args.unit})",
        f"[bold]{summary.verified}[/]",
        f"[bold]{summary.errors_found}[/]",
    )
    estimated = "" if summary.all_checked else ", estimated from the warm-up"
    table.add_row(
        f"the same number at random{estimated}",
        f"{summary.verified}",
        _number(summary.random_found),
    )
    table.add_row("the best possible choice", f"{summary.verified}", _number(summary.best_found))
    console = Console()
    console.print(table)
    if summary.above_random < DOUBT:
        console.print("That is no better than chance would explain.")
    if summary.evaluated < summary.warmup_verified:
        console.print("Most of this run was warm-up: the budget counts only what comes after it.")
    if not (summary.all_checked or args.check_all):
        console.print("The rest is unchecked; --check-all verifies it too and fills the table.")
    if args.unit == "seconds" and summary.budget_exhausted:
        console.print(
            f"{summary.budget_exhausted} more were wanted and did not fit: before a verification "
            "starts, the most that it can take is reserved."
        )
    if summary.could_not_tell:
        console.print(
            f"{summary.could_not_tell} selected outputs have no verdict: the verifier could not "
            "tell. The same command tries them again."
        )
    if summary.missing_signal:
        console.print(f"{summary.missing_signal} outputs came without log-probabilities.")
    if status.drift:
        console.print(f"What the policy had learned drifted: {status.drift}. {_now(status, args)}")
    console.print("", *show(rate), "", sep="\n", markup=False, highlight=False)
    log = f"Log: {args.log}" if args.log else "No log was kept; --log FILE keeps one."
    console.print(log, markup=False)


def _now(status: GateStatus, args: argparse.Namespace) -> str:
    if args.on_drift == "report":
        return "It went on with that; --on-drift relearn drops it."
    if status.calibration is Calibration.DRIFTED:
        return "It is being learned again."
    return "It has been learned again."


def _number(value: float | None) -> str:
    if value is None:
        return "?"
    return f"{value:.1f}" if isinstance(value, float) else str(value)
