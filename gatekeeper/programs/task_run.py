"""A run over tasks: generate, decide, verify and learn, then report; resumable with its log."""

from __future__ import annotations

import hashlib
import json
import sys
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, ExitStack, closing, contextmanager
from dataclasses import replace

from gatekeeper.analysis.advice import advise
from gatekeeper.analysis.estimates import estimate
from gatekeeper.analysis.score import estimate_score_of_run
from gatekeeper.analysis.summary import summarise
from gatekeeper.analysis.warmup import warmup_of
from gatekeeper.budget import Budget
from gatekeeper.budget.groups import MODEL, groups_of
from gatekeeper.errors import BadInputError, GeneratorUnavailableError
from gatekeeper.features import features_of, samples_of
from gatekeeper.gate import VerificationGate
from gatekeeper.gate.runner import (
    BLOCK,
    Generate,
    Sampler,
    blocks_of,
    check_the_rest,
    run_tasks,
)
from gatekeeper.gate.shared_runner import run_shared_tasks
from gatekeeper.io.records import RecordTable, load_with_run
from gatekeeper.io.tasks import Task
from gatekeeper.log import Log, PostgresRun
from gatekeeper.log_mismatch import OUTPUTS, settings_as_options
from gatekeeper.programs.interrupt import set_interrupt_message
from gatekeeper.programs.progress import progress
from gatekeeper.programs.run_options import RunOptions
from gatekeeper.programs.run_plan import RunPlan, print_plan, run_to_continue
from gatekeeper.programs.run_report import RunReport
from gatekeeper.programs.standard_output import result_alone
from gatekeeper.programs.task_cluster import on_cluster
from gatekeeper.programs.task_generator import check_generator, make_sampler, with_comparisons
from gatekeeper.programs.task_verifier import verifier_of, verifiers_by_kind
from gatekeeper.programs.telemetry import EVENTS, sinks_of
from gatekeeper.protocols import Sink, Verifier
from gatekeeper.ray import RayGenerator
from gatekeeper.types import GateResult, PolicyHealth
from gatekeeper.verifiers import ByKind
from gatekeeper.wording import counted

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
        The exit code: 0; 1 if selected outputs have no verdict.

    Raises
    ------
    GatekeeperError
        For impossible options, a log of another run, and a generator that became unavailable.
    """
    budget = options.budget_of(len(tasks))
    _check_groups(tasks, budget)
    if options.telemetry not in (None, EVENTS):
        raise BadInputError(
            f"--telemetry {options.telemetry}: it keeps scores of traces, and a run has none; "
            f"give {EVENTS}, or `gatekeeper export` the log"
        )
    if options.engine == "ray" and not options.dry_run:
        check_generator(options)
        with result_alone(), on_cluster(tasks, options) as (pool, sampler):
            report = _run(tasks, budget, pool, sampler, replace(options, threads=BLOCK))
    else:
        verifier = _verifier(tasks, options)
        check_generator(options)
        if options.dry_run:
            return _dry_run(tasks, budget, verifier, options)
        with result_alone():
            report = _run(tasks, budget, verifier, make_sampler(options)(), options)
    if options.json:
        print(json.dumps(report.as_json(), indent=2))
    else:
        report.print()
    return 1 if report.summary.could_not_tell else 0


def _check_groups(tasks: Sequence[Task], budget: Budget) -> None:
    """Check that each task is in a group of each name, before anything is spent.

    Raises
    ------
    BadInputError
        For a task that is not.
    """
    names = budget.groups.keys() - {MODEL}  # which is known from the outputs
    for task in tasks:
        try:
            groups_of(names, task, None)
        except BadInputError as e:
            raise BadInputError(f"task {task['id']!r:.80}: {e}") from None


def _run(
    tasks: Sequence[Task],
    budget: Budget,
    verifier: Verifier,
    sampler: Sampler,
    options: RunOptions,
) -> RunReport:
    """Open the gate, pass the tasks through it and report."""
    # The sampler is made before the log: an unavailable model leaves no log behind.
    generate = with_comparisons(sampler, tasks, options)
    ahead = sampler.actors if isinstance(sampler, RayGenerator) else 0
    with ExitStack() as stack:
        sinks = stack.enter_context(sinks_of(options.telemetry))
        with _as_options(options):
            opened = _gate(tasks, budget, verifier, options, generate=generate, sinks=sinks)
        gate = stack.enter_context(opened)
        known = gate.status().seen
        print(f"gatekeeper: {RunPlan(len(tasks), known, budget, options)}", file=sys.stderr)
        try:
            _generate_and_verify(gate, tasks, generate, verifier, options, ahead=ahead)
        except GeneratorUnavailableError as e:
            raise GeneratorUnavailableError(
                f"{e}; stopped after {_stopped(gate.status().seen, len(tasks), options)}"
            ) from e
        results = [result for task in tasks if (result := gate.find(task["id"])) is not None]
        status = gate.status()
    summary = summarise(results)
    # The log's records have ĉ too, and `gatekeeper report` reads them.
    outputs: Sequence[GateResult] | RecordTable = results
    share = None if options.total or options.share == 1.0 else options.share
    advice = None
    if options.log and results:
        outputs, run = load_with_run(options.log)
        if share is not None and options.goal == "errors":
            advice = advise(outputs, share, warmup=warmup_of(run))
    score = estimate_score_of_run(outputs) if outputs else None
    return RunReport(summary, status, estimate(outputs), score, options, advice)


def _gate(
    tasks: Sequence[Task],
    budget: Budget,
    verifier: Verifier,
    options: RunOptions,
    *,
    log: Log | None = None,
    generate: Generate | None = None,
    sinks: Sequence[Sink] = (),
) -> VerificationGate:
    samples = samples_of(options.features)
    return VerificationGate(
        options.policy,
        budget=budget,
        verifier=verifier,
        log=options.log if log is None else log,
        shared=options.shared and log is None,
        on_unavailable="pass",
        workers=options.threads,
        seed=options.seed,
        warmup=options.warmup,
        explore=options.explore,
        prompt_template=getattr(generate, "prompt_template", None),
        on_drift=options.on_drift,
        features=features_of(options.features),
        goal=options.goal,
        telemetry=tuple(sinks),
        settings={
            "tasks": hashlib.sha256(json.dumps(tasks, sort_keys=True).encode()).hexdigest(),
            "generator": options.generator,
            "model": options.model,
            "max_tokens": options.max_tokens,
            "temperature": options.temperature,
            "seed": options.seed,
        }
        | ({"samples": samples} if samples else {})
        | ({"second_model": options.second_model} if options.second_model else {}),
    )


def _as_options(options: RunOptions) -> AbstractContextManager[None]:
    names = ("generator", "model", "second_model", "max_tokens", "temperature", "seed")
    own = {name: f"--{name.replace('_', '-')}" for name in names} | {"tasks": OUTPUTS}
    chosen = "tasks (another file, --format or --limit)"
    return settings_as_options(options.log, outputs=chosen, own=own)


def _dry_run(tasks: Sequence[Task], budget: Budget, verifier: ByKind, options: RunOptions) -> int:
    """Print the plan; the settings are checked against the log, which is only read."""
    with _as_options(options):
        run = run_to_continue(
            options.log, lambda log: _gate(tasks, budget, verifier, options, log=log)
        )
    print_plan(
        RunPlan(len(tasks), 0 if run is None else len(run.outputs), budget, options),
        run,
        kinds=dict(Counter(str(task["kind"]) for task in tasks)),
        others=samples_of(options.features) + (options.second_model is not None),
        max_seconds=verifier.max_seconds,
        as_json=options.json,
    )
    return 0


def _stopped(seen: int, tasks: int, options: RunOptions) -> str:
    later = "the same command continues" if options.log else "without --log nothing is kept"
    return f"{seen} of {counted(tasks, 'output')}; {later}"


def _generate_and_verify(
    gate: VerificationGate,
    tasks: Sequence[Task],
    generate: Generate,
    verifier: Verifier,
    options: RunOptions,
    *,
    ahead: int,
) -> None:
    def note_where() -> None:
        stopped = _stopped(gate.status().seen, len(tasks), options)
        set_interrupt_message(f" after {stopped}")

    note_where()
    with _gate_progress(gate, f"{options.policy}: answer, decide, verify", len(tasks)) as advance:

        def note(done: int) -> None:
            advance(done)
            note_where()

        if options.shared:
            _run_shared(gate, tasks, generate, options, on_progress=note)
        else:
            run_tasks(gate, tasks, generate, ahead=ahead, on_progress=note)
    if options.check_all:
        status = gate.status()
        known = status.verified + status.warmup_verified + status.external_verdicts
        rest = status.seen - known
        with _gate_progress(gate, "check the rest, to compare", rest) as advance:
            check_the_rest(gate, tasks, verifier, workers=options.threads, on_progress=advance)


def _run_shared(
    gate: VerificationGate,
    tasks: Sequence[Task],
    generate: Generate,
    options: RunOptions,
    *,
    on_progress: Callable[[int], None],
) -> None:
    from gatekeeper.log.postgres_blocks import PostgresBlocks  # needs the extra

    shared = gate.status().shared
    assert shared is not None
    assert isinstance(options.log, PostgresRun)
    count = len(list(blocks_of(tasks, BLOCK)))
    with closing(PostgresBlocks(options.log, shared.number, count)) as blocks:
        run_shared_tasks(gate, blocks, tasks, generate, on_progress=on_progress)


def _verifier(tasks: Sequence[Task], options: RunOptions) -> ByKind:
    kinds = {task["kind"] for task in tasks}
    names = verifiers_by_kind(kinds, sandbox=options.sandbox, maths=options.maths_checker)
    return verifier_of(names)


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
