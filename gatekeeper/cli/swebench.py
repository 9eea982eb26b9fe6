"""`gatekeeper swebench --predictions preds.jsonl`: SWE-bench within a budget."""

from __future__ import annotations

import argparse
import json
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, redirect_stdout
from dataclasses import replace
from functools import partial
from itertools import count
from pathlib import Path
from typing import Any

from gatekeeper.adapters.harness.gate import GateOptions, add_options, open_gate, options_of
from gatekeeper.adapters.harness.report import Report, report_of
from gatekeeper.adapters.harness.scores import sentence
from gatekeeper.adapters.swebench.harness import Evaluation
from gatekeeper.adapters.swebench.predictions import Prediction, fingerprint, read_predictions
from gatekeeper.adapters.swebench.reports import EMPTY, Recorded, counts
from gatekeeper.adapters.swebench.scores import resolve_rate
from gatekeeper.errors import BadInputError
from gatekeeper.gate import VerificationGate
from gatekeeper.log import Log
from gatekeeper.log_mismatch import OUTPUTS, settings_as_options
from gatekeeper.option_values import whole
from gatekeeper.programs.harness_plan import add_plan_options, print_harness_plan
from gatekeeper.programs.interrupt import set_interrupt_message
from gatekeeper.programs.option_groups import complete_group
from gatekeeper.programs.progress import progress
from gatekeeper.programs.standard_output import result_alone
from gatekeeper.programs.values import check_output, input_file, open_output, summary_stream
from gatekeeper.types import GateResult, Outcome
from gatekeeper.wording import counted, plural

__all__ = ["add", "main"]

# Decisions before their verdicts are learned. An evaluation takes minutes, and the last ones of a
# block leave processors idle: larger blocks than where checks take seconds.
BLOCK = 100
SHOWN = 5  # instances without a verdict
# The options that an evaluation has, with their defaults.
EVALUATION = {"split": "test", "run_id": "gatekeeper", "workers": 4, "timeout": 1800}
OWN = {  # settings of a log, and their options
    "predictions": OUTPUTS,
    "dataset": "--dataset",
    "split": "--split",
    "timeout": "--timeout",
}


def add(parser: argparse.ArgumentParser) -> None:
    parser.description = (
        "Selects the instances that SWE-bench evaluates, each in a container, and estimates the "
        "resolve rate of all predictions. After an interruption the same command with the same "
        "log continues."
    )
    parser.add_argument(
        "--predictions",
        type=input_file,
        required=True,
        metavar="FILE",
        help="SWE-bench's predictions, .json or JSON Lines; - is standard input",
    )
    source = parser.add_mutually_exclusive_group(required=True)
    source.add_argument(
        "--dataset",
        metavar="NAME",
        help="what to evaluate them on: verified, full, multilingual, multimodal, a name of "
        "Hugging Face's, or a local .json, .jsonl or .parquet file",
    )
    source.add_argument(
        "--reports",
        type=Path,
        metavar="DIR",
        help="evaluate nothing: take the reports of an earlier run from this folder, "
        "logs/run_evaluation/RUN_ID; of a run to come where it is empty",
    )
    add_options(parser)
    parser.add_argument(
        "-o",
        "--out",
        type=Path,
        help="JSONL (or .jsonl.gz) to write: the decision and the verdict for each instance with "
        "a patch; - is standard output",
    )
    add_plan_options(parser, limited="predictions of the file")
    parser.add_argument("--json", action="store_true", help="print the result as JSON")
    _add_evaluation(parser.add_argument_group("evaluation, with --dataset"))
    parser.set_defaults(run=main)


def _add_evaluation(group: argparse._ArgumentGroup) -> None:
    """Add the options of `EVALUATION`."""
    usual = "(default: {})".format
    group.add_argument("--split", help=f"of the data set {usual(EVALUATION['split'])}")
    group.add_argument(
        "--run-id",
        metavar="NAME",
        help=f"names the folder logs/run_evaluation/NAME {usual(EVALUATION['run_id'])}",
    )
    group.add_argument(
        "--workers",
        type=whole(),
        metavar="N",
        help=f"evaluations at the same time {usual(EVALUATION['workers'])}",
    )
    group.add_argument(
        "--timeout",
        type=whole(1, 10**6),
        metavar="SECONDS",
        help=f"for the tests of an instance {usual(EVALUATION['timeout'])}",
    )


def main(args: argparse.Namespace) -> int:
    """Returns 0, or 1 if selected instances have no verdict. Raises BadInputError."""
    if args.out is not None:
        check_output("--out", args.out, source=args.predictions)
    needs = "--dataset: with --reports nothing is evaluated"
    complete_group(args, EVALUATION, needs=needs, met=args.reports is None)
    options = options_of(args)
    predictions = read_predictions(args.predictions)[: args.limit]
    if not any(p.patch for p in predictions):
        raise BadInputError(_no_patch(args, len(predictions)))
    chosen = "predictions (another file or --limit)"
    with settings_as_options(options.log, outputs=chosen, own=OWN):
        return (_dry_run if args.dry_run else _run)(args, options, predictions)


def _dry_run(
    args: argparse.Namespace, options: GateOptions, predictions: Sequence[Prediction]
) -> int:
    """Print how many predictions would be evaluated."""
    patched = sum(bool(p.patch) for p in predictions)
    print_harness_plan(
        patched,
        options,
        lambda log: _open_gate(args, options, predictions, patched, log=log),
        noun="prediction",
        as_json=args.json,
    )
    return 0


def _run(args: argparse.Namespace, options: GateOptions, predictions: Sequence[Prediction]) -> int:
    with result_alone(), _source(args, predictions) as source:  # SWE-bench prints
        results = _gate(args, options, predictions, source)
        notes = _notes(source, predictions, results)
    score = resolve_rate(predictions, results)
    report = replace(report_of(results, options.goal), pass_rate=score)
    if args.out is not None:
        with open_output("--out", args.out) as out:
            for result in results:
                out.write(json.dumps(_line(result)) + "\n")
    with redirect_stdout(summary_stream(args.out)):
        if args.json:
            print(json.dumps(_as_json(predictions, results, report), indent=2))
        else:
            print(*_lines(predictions, results, report), *notes, sep="\n")
    return 1 if report.summary.could_not_tell else 0


def _no_patch(args: argparse.Namespace, read: int) -> str:
    """What is wrong with predictions of which none has a patch."""
    if args.limit is None:
        return f"{args.predictions}: every patch is empty, so that none is resolved"
    return (
        f"--limit {args.limit}: the first {counted(read, 'prediction')} of {args.predictions} "
        f"{plural(read, 'has an empty patch', 'have empty patches')}, so that none is resolved: "
        "give a larger one"
    )


@contextmanager
def _source(
    args: argparse.Namespace, predictions: Sequence[Prediction]
) -> Iterator[Evaluation | Recorded]:
    """What gives the verdicts."""
    source: Evaluation | Recorded
    if args.reports is not None:
        source = Recorded(args.reports, predictions)
    else:
        source = Evaluation(
            args.dataset, args.split, predictions, run_id=args.run_id, timeout=args.timeout
        )
    try:
        yield source
    finally:
        source.close()


def _gate(
    args: argparse.Namespace,
    options: GateOptions,
    predictions: Sequence[Prediction],
    source: Evaluation | Recorded,
) -> list[GateResult]:
    """The results of all predictions with a patch."""
    patched = [p for p in predictions if p.patch]
    if args.reports is None and options.log is not None:
        set_interrupt_message("; the same command continues")
    results: list[GateResult] = []
    with (
        _open_gate(args, options, predictions, len(patched)) as gate,
        progress("decide, evaluate", len(patched)) as advance,
    ):
        evaluated = count(1)

        def check(prediction: Prediction) -> Outcome:
            outcome = source.check(prediction)
            advance(0, f"{next(evaluated)} evaluated")
            return outcome

        for start in range(0, len(patched), BLOCK):
            block = patched[start : start + BLOCK]
            pairs = [(p.generation, partial(check, p)) for p in block]
            try:
                results += gate.verify_batch(pairs)
            except BaseException:
                source.stop()
                raise
            advance(len(block), "")
    return results


def _open_gate(
    args: argparse.Namespace,
    options: GateOptions,
    predictions: Sequence[Prediction],
    patched: int,
    *,
    log: Log | None = None,
) -> VerificationGate:
    settings: dict[str, Any] = {"predictions": fingerprint(predictions)}
    if args.reports is None:
        settings |= {"dataset": args.dataset, "split": args.split, "timeout": args.timeout}
    return open_gate(options, horizon=patched, settings=settings, workers=args.workers, log=log)


def _notes(
    source: Evaluation | Recorded,
    predictions: Sequence[Prediction],
    results: Sequence[GateResult],
) -> list[str]:
    """SWE-bench's own report where everything was evaluated, and what has no prediction."""
    if isinstance(source, Recorded):
        return []
    notes = []
    if absent := source.total - len(predictions):
        notes.append(
            "Without a prediction among these, and not counted: "
            f"{absent} of {counted(source.total, 'instance')}."
        )
    if all(result.decision.verify for result in results):
        notes.append(f"SWE-bench's own report is {source.write_report(predictions)}.")
    return notes


def _line(result: GateResult) -> dict[str, Any]:
    return {
        "id": result.id,
        "verify": result.decision.verify,
        "reason": result.decision.reason.value,
        "propensity": result.decision.propensity,
        "verdict": result.outcome.verdict.value if result.outcome else None,
        "detail": result.outcome.detail if result.outcome else "",
    }


def _counts(predictions: Sequence[Prediction], results: Sequence[GateResult]) -> dict[str, int]:
    """How many of those evaluated SWE-bench counts as what; empty patches are all known."""
    empty = [EMPTY for p in predictions if not p.patch]
    return dict(counts([*(result.outcome for result in results), *empty]))


def _as_json(
    predictions: Sequence[Prediction], results: Sequence[GateResult], report: Report
) -> dict[str, Any]:
    found = report.as_json()
    rate = found.pop("pass_rate")
    return {"resolve_rate": rate, "swebench": _counts(predictions, results), **found}


def _lines(
    predictions: Sequence[Prediction], results: Sequence[GateResult], report: Report
) -> list[str]:
    if report.error_rate is None:
        lines = report.lines("resolve rate")
    else:
        lines = [sentence("resolve rate", report.pass_rate), *report.lines()]
    unknown = [r for r in results if r.decision.verify and not r.verified]
    for result in unknown[:SHOWN]:
        lines.append(f"  {result.id}: {result.outcome.detail if result.outcome else 'no verdict'}")
    if len(unknown) > SHOWN:
        lines.append(f"  and {len(unknown) - SHOWN} more: --out FILE has all")
    found = _counts(predictions, results)
    counts = ", ".join(f"{name} {number}" for name, number in sorted(found.items()))
    lines.append(f"SWE-bench's counts of these and of all empty patches: {counts}")
    if unknown and all(result.decision.verify for result in results):
        resolved = found.get("resolved", 0)
        lines.append(
            "SWE-bench counts instances without a verdict as not resolved: "
            f"resolved {resolved} of {len(predictions)}, {resolved / len(predictions):.4f}"
        )
    return lines
