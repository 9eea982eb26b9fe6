"""A run over tasks: generate, decide, verify and learn, then report; resumable with its log."""

from __future__ import annotations

import hashlib
import json
import os
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from inspect import signature
from typing import Any

from gatekeeper.analysis.estimates import estimate
from gatekeeper.analysis.summary import summarise
from gatekeeper.budget import Budget
from gatekeeper.errors import BadInputError, GeneratorUnavailableError
from gatekeeper.gate import VerificationGate
from gatekeeper.gate.runner import Generate, check_the_rest, run_tasks
from gatekeeper.io.providers import generator_names, generator_of
from gatekeeper.io.records import records_of_log
from gatekeeper.io.tasks import Task
from gatekeeper.programs.progress import progress
from gatekeeper.programs.run_options import RunOptions
from gatekeeper.programs.run_report import print_report, report_as_json
from gatekeeper.protocols import Verifier
from gatekeeper.types import PolicyHealth
from gatekeeper.verifiers import ByKind, make_verifier

__all__ = ["run"]


def run(tasks: Sequence[Task], options: RunOptions) -> int:
    """Pass the tasks through the loop and print the closing report.

    Parameters
    ----------
    tasks : sequence of Task
    options : RunOptions

    Returns
    -------
    int
        The exit code: 0; 1 if selected outputs have no verdict; 2 if the generator became
        unavailable; 130 after Ctrl-C.

    Raises
    ------
    GatekeeperError
        For impossible options, and for a log of another run.
    """
    budget = Budget(fraction=options.budget, unit=options.unit, horizon=len(tasks))
    verifier = _verifier(tasks, options)
    generate = _generate(options)  # before the log: an unavailable model leaves no log behind
    with VerificationGate(
        options.policy,
        budget=budget,
        verifier=verifier,
        log=options.log,
        on_unavailable="pass",
        workers=options.workers,
        seed=options.seed,
        explore=options.explore,
        prompt_template=getattr(generate, "prompt_template", None),
        on_drift=options.on_drift,
        settings={
            "tasks": hashlib.sha256(json.dumps(tasks, sort_keys=True).encode()).hexdigest(),
            "generator": options.generator,
            "model": options.model,
            "max_tokens": options.max_tokens,
            "temperature": options.temperature,
            "seed": options.seed,
        },
    ) as gate:
        try:
            _generate_and_verify(gate, tasks, generate, verifier, options)
        except (KeyboardInterrupt, GeneratorUnavailableError) as stop:
            return _stopped(stop, f"{gate.status().seen} of {len(tasks)} outputs", options)
        results = [result for task in tasks if (result := gate.find(task["id"])) is not None]
        status = gate.status()
    summary = summarise(results)
    # The log's records have ĉ too, and `gatekeeper report` reads them.
    rate = estimate(records_of_log(options.log) if options.log and results else results)
    if options.json:
        print(json.dumps(report_as_json(summary, status, rate, options), indent=2))
    else:
        print_report(summary, status, rate, options)
    return 1 if summary.could_not_tell else 0


def _generate_and_verify(
    gate: VerificationGate,
    tasks: Sequence[Task],
    generate: Generate,
    verifier: Verifier,
    options: RunOptions,
) -> None:
    with _gate_progress(gate, f"{options.policy}: answer, decide, verify", len(tasks)) as advance:
        run_tasks(gate, tasks, generate, on_progress=advance)
    if options.check_all:
        status = gate.status()
        known = status.verified + status.warmup_verified + status.external_verdicts
        rest = status.seen - known
        with _gate_progress(gate, "check the rest, to compare", rest) as advance:
            check_the_rest(gate, tasks, verifier, workers=options.workers, on_progress=advance)


def _stopped(stop: BaseException, done: str, options: RunOptions) -> int:
    interrupted = isinstance(stop, KeyboardInterrupt)
    why = "interrupted" if interrupted else f"{stop}; stopped"
    later = "the same command continues" if options.log else "without --log nothing is kept"
    print(f"gatekeeper: {why} after {done}; {later}", file=sys.stderr)
    return 130 if interrupted else 2


def _verifier(tasks: Sequence[Task], options: RunOptions) -> ByKind:
    kinds = {task["kind"] for task in tasks}
    verifiers: dict[str, Verifier] = {}
    if "code" in kinds:
        if options.sandbox is None:
            raise BadInputError(
                "there are tasks of kind 'code': choose what runs the model's code, for example "
                "--sandbox docker or --sandbox local (docs/sandbox.md compares them)"
            )
        verifiers["code"] = make_verifier(options.sandbox)
    if "math" in kinds:
        verifiers["math"] = make_verifier("math")
    return ByKind(verifiers)


def _generate(options: RunOptions) -> Generate:
    """The generator, with those of the options that it takes."""
    if not options.temperature >= 0:
        raise BadInputError(f"temperature={options.temperature!r}: give a number >= 0; 0 is greedy")
    if options.max_tokens is not None and options.max_tokens < 1:
        raise BadInputError(f"max_tokens={options.max_tokens!r}: give at least 1")
    make = generator_of(options.generator)
    takes = signature(make).parameters
    if options.base_url and "base_url" not in takes:
        raise BadInputError(
            f"--base-url {options.base_url}: generator {options.generator!r} has no endpoint; "
            "choose one that has, such as openai"
        )
    if bool(options.model) != ("model" in takes):
        others = [n for n in generator_names() if "model" in signature(generator_of(n)).parameters]
        raise BadInputError(
            f"--model is needed with --generator {' or '.join(others)}, and only with these"
        )
    available: dict[str, Any] = {
        "model": options.model,
        "base_url": options.base_url,
        "concurrency": options.concurrency,
        "temperature": options.temperature,
        "seed": options.seed,
        "max_tokens": options.max_tokens,
    }
    if "api_key" in takes:
        available["api_key"] = _api_key(options)
    made: Generate = make(**{name: value for name, value in available.items() if name in takes})
    return made


def _api_key(options: RunOptions) -> str:
    key = os.environ.get(options.api_key_env)
    if not key and not options.base_url:
        raise BadInputError(
            f"no key in {options.api_key_env}: set it, or give the --base-url of a server that "
            "needs none"
        )
    return key or "none"


@contextmanager
def _gate_progress(
    gate: VerificationGate, title: str, total: int
) -> Iterator[Callable[[int], None]]:
    """A progress bar with the numbers of the gate, and a line when the outputs drift."""
    drifted = False
    with progress(title, total) as advance:

        def note(done: int) -> None:
            nonlocal drifted
            status = gate.status()
            if status.health is PolicyHealth.DRIFTED and not drifted:
                where = f"by output {status.seen}"
                print(f"gatekeeper: drifted {where}: {status.drift}", file=sys.stderr)
            drifted = status.health is PolicyHealth.DRIFTED
            verified = status.verified + status.warmup_verified
            errors = status.errors_found + status.warmup_errors
            advance(done, f"{verified} verified, {errors} wrong")

        yield note
