"""`gatekeeper evalplus --samples samples.jsonl`: HumanEval+ or MBPP+ within a budget."""

from __future__ import annotations

import argparse
import json
from collections.abc import Mapping, Sequence
from contextlib import closing, redirect_stdout
from functools import partial
from pathlib import Path
from typing import TextIO

from gatekeeper.adapters.evalplus.checkers import Checker, EvalPlusChecker, SandboxChecker
from gatekeeper.adapters.evalplus.samples import Dataset, Sample, pass_at_1, read_samples
from gatekeeper.adapters.harness.gate import add_options, open_gate, options_of
from gatekeeper.adapters.harness.report import Report, report_of
from gatekeeper.errors import BadInputError
from gatekeeper.programs.progress import progress
from gatekeeper.programs.values import (
    check_output,
    input_file,
    number,
    open_output,
    summary_stream,
    whole,
)
from gatekeeper.types import GateResult

__all__ = ["add", "main"]

PASS = "pass"  # a status of EvalPlus
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
        help="EvalPlus's samples.jsonl; - is standard input",
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
    parser.add_argument("--json", action="store_true", help="print the result as JSON")
    made = parser.add_argument_group("generation of the samples that the file lacks")
    made.add_argument("--model", metavar="NAME", help="name of the model at the endpoint")
    made.add_argument(
        "--base-url", metavar="URL", help="endpoint of an OpenAI API; its key is in OPENAI_API_KEY"
    )
    made.add_argument(
        "--n-samples", type=whole(), default=1, metavar="N", help="samples for each problem"
    )
    made.add_argument(
        "--temperature", type=number("[0, inf)"), default=0.0, metavar="T", help="0 is greedy"
    )
    parser.set_defaults(run=main)


def main(args: argparse.Namespace) -> int:
    """Returns 0, or 1 if selected samples have no verdict. Raises BadInputError."""
    if args.out is not None:
        check_output("--out", args.out, source=args.samples)
    if args.base_url and not args.model:
        raise BadInputError(f"--base-url {args.base_url} needs --model, the model's name there")
    if not (args.model or args.samples.exists()):
        raise BadInputError(f"--samples {args.samples} does not exist: --model generates it")
    dataset = Dataset(args.dataset)
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
    report, exact = report_of(results), _exact(args, samples, results)
    if args.out is not None:
        with open_output("--out", args.out) as out:
            _write(out, results)
    with redirect_stdout(summary_stream(args.out)):
        if args.json:
            print(json.dumps({"pass@1": exact or None, **report.as_json()}, indent=2))
        else:
            _print(args, report, exact)
            problems = len(dataset.problems)
            if absent := problems - len({sample.task_id for sample in samples}):
                print(f"{absent} of {problems} problems have no sample and are not counted.")
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
    settings = {"dataset": dataset.hash, "base_only": args.base_only, "sandbox": args.sandbox}
    results: list[GateResult] = []
    with (
        closing(checker),
        open_gate(
            options_of(args), horizon=len(samples), settings=settings, workers=args.workers
        ) as gate,
        progress("decide, check", len(samples)) as advance,
    ):
        for start in range(0, len(samples), BLOCK):
            block = samples[start : start + BLOCK]
            pairs = [(sample.generation, partial(checker.check, sample)) for sample in block]
            results += gate.verify_batch(pairs)
            advance(len(block), "")
    return results


def _exact(
    args: argparse.Namespace, samples: Sequence[Sample], results: Sequence[GateResult]
) -> dict[str, float]:
    """EvalPlus's pass@1 by kind of tests; empty unless every sample has a verdict."""
    outcomes = [result.outcome for result in results if result.verified]
    if len(outcomes) < len(samples):
        return {}
    right = [outcome is not None and outcome.error == 0 for outcome in outcomes]
    if args.base_only:
        return {"base": pass_at_1(samples, right)}
    base = [outcome.meta.get("base") for outcome in outcomes if outcome is not None]
    exact = {"plus": pass_at_1(samples, right)}
    if None not in base:  # only EvalPlus's check runs them separately
        exact["base"] = pass_at_1(samples, [status == PASS for status in base])
    return exact


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


def _print(args: argparse.Namespace, report: Report, exact: Mapping[str, float]) -> None:
    print(*report.lines(), sep="\n")
    for tests, name in (("base", "base tests"), ("plus", "base + extra tests")):
        if tests in exact:
            plus = "+" if tests == "plus" else ""
            print(f"{args.dataset}{plus} ({name}), all samples checked: pass@1 {exact[tests]:.3f}")
    if args.gate_log is None:
        print("No log was kept; --log FILE keeps one.")
