"""`gatekeeper evalplus --samples samples.jsonl`: HumanEval+ or MBPP+ within a budget."""

from __future__ import annotations

import argparse
import json
from collections import Counter
from collections.abc import Mapping, Sequence
from contextlib import closing, redirect_stdout
from functools import partial
from math import isnan
from pathlib import Path
from typing import Any, TextIO

from gatekeeper.adapters.evalplus.checkers import PASS, Checker, EvalPlusChecker, SandboxChecker
from gatekeeper.adapters.evalplus.results import results_file, write_results
from gatekeeper.adapters.evalplus.samples import Dataset, Sample, read_samples
from gatekeeper.adapters.evalplus.scores import KS, pass_at_1, pass_at_k
from gatekeeper.adapters.harness.gate import add_options, open_gate, options_of
from gatekeeper.adapters.harness.report import Report, report_of
from gatekeeper.analysis.score import score_as_json
from gatekeeper.errors import BadInputError
from gatekeeper.gate import VerificationGate
from gatekeeper.log import Log
from gatekeeper.log_mismatch import settings_as_options
from gatekeeper.option_values import number, whole
from gatekeeper.programs.harness_plan import add_plan_options, print_harness_plan
from gatekeeper.programs.option_groups import complete_group
from gatekeeper.programs.progress import progress
from gatekeeper.programs.values import (
    STDIN,
    base_url,
    check_output,
    input_file,
    open_output,
    summary_stream,
)
from gatekeeper.types import GateResult

__all__ = ["add", "main"]

QUICK = 60.0  # seconds: where all checks take no longer, a part of them saves little
# The options that the generation of samples has, with their defaults.
GENERATION = {"base_url": None, "n_samples": 1, "temperature": 0.0}
# Settings of a log, and their options.
OWN = {"dataset": "--dataset", "base_only": "--base-only", "sandbox": "--sandbox"}
BLOCK = 32  # decisions before their verdicts are learned; runs are equal only with an equal block


def add(parser: argparse.ArgumentParser) -> None:
    parser.description = (
        "Selects the samples on which EvalPlus's tests run, and estimates pass@1 from "
        "them. After an interruption the same command with the same log continues."
    )
    parser.add_argument(
        "--samples",
        type=input_file,
        required=True,
        metavar="FILE",
        help="EvalPlus's samples.jsonl, or a folder of solutions; - is standard input",
    )
    parser.add_argument(
        "--dataset", choices=["humaneval", "mbpp"], required=True, help="what the samples are for"
    )
    add_options(parser)
    parser.add_argument(
        "--sandbox",
        choices=["evalplus", "docker", "local"],
        default="evalplus",
        help="what runs the samples: EvalPlus's check (default), or a sandbox (docs/sandbox.md)",
    )
    parser.add_argument(
        "--base-only",
        action="store_true",
        help="run only the original tests, without EvalPlus's additions",
    )
    parser.add_argument(
        "--workers", type=whole(), default=2, metavar="N", help="checks at the same time"
    )
    parser.add_argument(
        "-o",
        "--out",
        type=Path,
        help="JSONL (or .jsonl.gz) to write: the decision and the verdict for each "
        "sample; - is standard output",
    )
    add_plan_options(parser, limited="problems of the data set")
    parser.add_argument("--json", action="store_true", help="print the result as JSON")
    _add_generation(parser.add_argument_group("generation of the samples that the file lacks"))
    parser.set_defaults(run=main)


def _add_generation(group: argparse._ArgumentGroup) -> None:
    """Add `--model`, and the options of `GENERATION`."""
    group.add_argument("--model", metavar="NAME", help="name of the model at the endpoint")
    group.add_argument(
        "--base-url",
        type=base_url,
        metavar="URL",
        help="endpoint of an OpenAI API; its key is in OPENAI_API_KEY",
    )
    group.add_argument(
        "--n-samples",
        type=whole(),
        metavar="N",
        help=f"samples for each problem (default: {GENERATION['n_samples']})",
    )
    group.add_argument(
        "--temperature",
        type=number("[0, inf)"),
        metavar="T",
        help=f"0 is greedy (default: {GENERATION['temperature']:g})",
    )


def main(args: argparse.Namespace) -> int:
    """Returns 0, or 1 if selected samples have no verdict. Raises BadInputError."""
    if args.out is not None:
        check_output("--out", args.out, source=args.samples)
    complete_group(
        args, GENERATION, needs="--model, the model that makes samples", met=bool(args.model)
    )
    if not (args.model or args.samples.exists()):
        raise BadInputError(f"--samples {args.samples} does not exist: --model generates it")
    options_of(args)  # before the data set, which takes its time
    dataset = Dataset(args.dataset, limit=args.limit)
    chosen = "samples (another file or --limit)"
    with settings_as_options(args.gate_log, outputs=chosen, own=OWN):
        return (_dry_run if args.dry_run else _run)(args, dataset)


def _run(args: argparse.Namespace, dataset: Dataset) -> int:
    if args.model:
        from gatekeeper.adapters.evalplus.codegen import codegen

        with progress("ask the model", len(dataset.problems)) as advance:
            codegen(
                args.samples,
                dataset,
                model=args.model,
                base_url=args.base_url,
                n_samples=args.n_samples,
                temperature=args.temperature,
                on_progress=lambda done: advance(done, ""),
            )
    samples = read_samples(args.samples, dataset)
    results = _gate(args, dataset, samples)
    report = report_of(results, args.gate_goal)
    scores = _scores(args, samples, results)
    if args.out is not None:
        with open_output("--out", args.out) as out:
            _write(out, results)
    theirs = results_file(args.samples)
    checked = all(result.verified for result in results)
    whole = checked and args.limit is None  # EvalPlus takes such a file for all problems
    if whole and args.sandbox == "evalplus" and not theirs.exists() and args.samples != STDIN:
        write_results(theirs, dataset, samples, results)
    with redirect_stdout(summary_stream(args.out)):
        if args.json:
            print(json.dumps({"scores": scores, **report.as_json()}, indent=2))
        else:
            _print(args, report, scores)
            problems = len(dataset.problems)
            if absent := problems - len({sample.task_id for sample in samples}):
                print(f"Without a sample, and not counted: {absent} of {problems} problems.")
            _say_quick(results, args.workers)
    return 1 if report.summary.could_not_tell else 0


def _gate(
    args: argparse.Namespace, dataset: Dataset, samples: Sequence[Sample]
) -> list[GateResult]:
    checker: Checker
    if args.sandbox == "evalplus":
        checker = EvalPlusChecker(dataset, base_only=args.base_only, workers=args.workers)
    else:
        checker = SandboxChecker(
            dataset, args.sandbox, base_only=args.base_only, workers=args.workers
        )
    results: list[GateResult] = []
    with (
        closing(checker),
        _open_gate(args, dataset, len(samples)) as gate,
        progress("decide, check", len(samples)) as advance,
    ):
        for start in range(0, len(samples), BLOCK):
            block = samples[start : start + BLOCK]
            pairs = [(sample.generation, partial(checker.check, sample)) for sample in block]
            results += gate.verify_batch(pairs)
            advance(len(block), "")
    return results


def _open_gate(
    args: argparse.Namespace, dataset: Dataset, samples: int, *, log: Log | None = None
) -> VerificationGate:
    settings = {"dataset": dataset.hash, "base_only": args.base_only, "sandbox": args.sandbox}
    return open_gate(
        options_of(args), horizon=samples, settings=settings, workers=args.workers, log=log
    )


def _dry_run(args: argparse.Namespace, dataset: Dataset) -> int:
    """Print how many samples would be checked, those that the model would add included."""
    there = read_samples(args.samples, dataset) if args.samples.exists() else []
    count = len(there)
    if args.model:
        of = Counter(sample.task_id for sample in there)
        count += sum(max(args.n_samples - of[problem], 0) for problem in dataset.problems)
    print_harness_plan(
        count,
        options_of(args),
        lambda log: _open_gate(args, dataset, count, log=log),
        noun="sample",
        as_json=args.json,
    )
    return 0


def _scores(
    args: argparse.Namespace, samples: Sequence[Sample], results: Sequence[GateResult]
) -> dict[str, dict[str, Any]]:
    """EvalPlus's pass@k by kind of tests, each with its interval."""
    kinds = {"base" if args.base_only else "plus": [_passes(result) for result in results]}
    if args.sandbox == "evalplus" and not args.base_only:  # it runs them separately
        base = [_passes(result, "base") for result in results]
        kinds = {"base": base, **kinds}
    found: dict[str, dict[str, Any]] = {}
    for kind, right in kinds.items():
        score = pass_at_1(samples, results, right)
        found[kind] = {"pass@1": score_as_json(score)}
        for k in KS:
            at_k = pass_at_k(k, samples, results, right)
            if at_k is not None:
                value = None if isnan(at_k.value) else at_k.value
                found[kind][f"pass@{k}"] = {"point": value, "low": at_k.low, "high": at_k.high}
    return found


def _passes(result: GateResult, tests: str = "") -> bool | None:
    if result.outcome is None or result.outcome.error is None:
        return None
    return result.outcome.meta[tests] == PASS if tests else result.outcome.error == 0


def _write(out: TextIO, results: Sequence[GateResult]) -> None:
    for result in results:
        line = {
            "id": result.id,
            "verify": result.decision.verify,
            "reason": result.decision.reason.value,
            "propensity": result.decision.propensity,
            "verdict": result.outcome.verdict.value if result.outcome else None,
        }
        out.write(json.dumps(line) + "\n")


def _print(
    args: argparse.Namespace, report: Report, scores: Mapping[str, Mapping[str, Any]]
) -> None:
    for tests, name in (("base", "base tests"), ("plus", "base + extra tests")):
        plus = "+" if tests == "plus" else ""
        for at, found in scores.get(tests, {}).items():
            ends = f"{found['low']:.3f} to {found['high']:.3f}"
            if found["point"] is None:
                text = f"between {ends} (no estimate)"
            elif found["low"] == found["high"]:
                text = f"{found['point']:.3f}, all samples checked"
            else:
                text = f"{found['point']:.3f}, 95 % interval {ends}"
            print(f"{args.dataset}{plus} ({name}) {at}: {text}")
            if both := found.get("both"):
                print(f"  with the sampling of problems {both['low']:.3f} to {both['high']:.3f}")
    print(*report.lines(), sep="\n")
    if args.gate_log is None:
        print("No log was kept; --log FILE keeps one.")


def _say_quick(results: Sequence[GateResult], workers: int) -> None:
    """Print a note if checking everything would be quick, so that no estimate is needed.

    By the times of the checks in the log: this command may have made few of them, or none.
    """
    took = [result.outcome.seconds for result in results if result.outcome is not None]
    if not took or len(took) == len(results):
        return
    seconds = sum(took) / workers
    whole = seconds * len(results) / len(took)
    if whole <= QUICK:
        print(
            f"The checks take {seconds:.0f} s with --workers {workers}; those of all samples would "
            f"take about {whole:.0f} s, with --budget 1 and another log."
        )
