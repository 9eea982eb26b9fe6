"""The data of all sections, from one reading of the file."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import numpy as np

from gatekeeper.analysis.advice import Advice, advise
from gatekeeper.analysis.diagnosis import Diagnosis, diagnose
from gatekeeper.analysis.estimates import Estimates, estimate
from gatekeeper.analysis.experiment import Comparison, Protocol, compare
from gatekeeper.analysis.run_budget import share_of
from gatekeeper.analysis.score import ScoreEstimate, estimate_score_of_run
from gatekeeper.analysis.summary import Summary, summary_of
from gatekeeper.analysis.vectorised import fixed_score
from gatekeeper.analysis.warmup import warmup_of
from gatekeeper.arguments import check_beta
from gatekeeper.errors import BadInputError
from gatekeeper.gate.notices import Shortfall
from gatekeeper.io.records import RecordTable, load_with_run
from gatekeeper.log.place import PostgresRun
from gatekeeper.log.run_table import NO_VERDICT, RunTable
from gatekeeper.policies import Calibrated, PolicyDescriptor, built_in, describe_policy
from gatekeeper.report.origin import Origin, call_of, name_of, origin_of
from gatekeeper.stats.strata import strata_of
from gatekeeper.types import BoolArray, FloatArray, IntArray, Reason

__all__ = ["MANY", "STRATA", "PolicyReplays", "ReportData", "RunData", "read_data"]

STRATA = 4
BUDGETS = (0.05, 0.1, 0.2, 0.3, 0.5)
MANY = 20_000  # records: policies that learn from every label would take too long
FEW = 5_000  # records up to which Calibrated is replayed at several budgets, which takes longest
SEEDS, SEEDS_OF_MANY = 10, 3
SHOWN = 50  # wrong outputs with their texts, in the order of deciding


@dataclass(frozen=True, slots=True)
class PolicyReplays:
    """Replays of the built-in policies on the records with a known label and cost."""

    policies: list[PolicyDescriptor]  # at β
    at_beta: Comparison
    over: list[PolicyDescriptor]  # at several budgets: the quick ones, and Calibrated
    over_budgets: Comparison
    seeds: int
    without_learners: bool


@dataclass(frozen=True, slots=True)
class RunData:
    """A gate's log and the counts over it."""

    log: RunTable
    notes: tuple[str, ...]  # reasons why the gate could not choose or learn
    summary: Summary


@dataclass(frozen=True, eq=False)
class ReportData:
    """The input of every section."""

    name: str  # of the file
    origin: Origin
    records: RecordTable
    run: RunData | None  # None for records
    beta: float
    diagnosis: Diagnosis
    advice: Advice
    scores: FloatArray  # (N,): s in [0, 1]; NaN without a signal
    stratum: IntArray  # (N,): 0 … STRATA - 1, by expected cost
    for_score: bool  # whether the run's goal was the score
    rate: Estimates | None  # error rate of all outputs; None without propensities
    score: ScoreEstimate | None  # the mean score, of a run for it or without another estimate
    replays: PolicyReplays | None  # None with too few labels

    @cached_property
    def labelled(self) -> BoolArray:
        return np.isfinite(self.records.error)


def read_data(
    path: str | Path | PostgresRun,
    *,
    beta: float | None,
    skip_bad: bool,
    on_bad: Callable[[BadInputError], None],
    command: str,
) -> ReportData:
    """Read the file and compute the data of the page. Parameters and errors as in `report`."""
    made_with = command or call_of(path, beta=beta, skip_bad=skip_bad)
    records, run = load_with_run(path, skip_bad=skip_bad, on_bad=on_bad, wrong_rows=SHOWN)
    beta = check_beta(beta if beta is not None else share_of(run))
    warmup = warmup_of(run)
    rate = estimate(records) if records.propensity is not None else None
    for_score = run is not None and run.settings.get("more", {}).get("goal") == "score"
    scored = for_score or (rate is not None and rate.weighted is None)
    diagnosis = diagnose(records, beta=beta, strata=STRATA, warmup=warmup)
    return ReportData(
        name=name_of(path),
        origin=origin_of(path, made_with),
        records=records,
        run=None if run is None else _counted(run),
        beta=beta,
        diagnosis=diagnosis,
        advice=advise(records, beta, warmup=warmup),
        scores=fixed_score(records.h, records.cost_estimate, records.error, warmup=warmup),
        stratum=strata_of(records.cost_estimate, STRATA, warmup=warmup),
        rate=rate,
        for_score=for_score,
        score=estimate_score_of_run(records) if scored else None,
        replays=_replay(records, beta, diagnosis),
    )


def _counted(run: RunTable) -> RunData:
    summary = summary_of(
        warmup=run.of_reason(Reason.WARMUP),
        selected=run.selected,
        labelled=run.labelled,
        wrong=run.wrong,
        budget_exhausted=int(run.of_reason(Reason.BUDGET_EXHAUSTED).sum()),
        missing_signal=int(run.missing.sum()),
    )
    return RunData(run, shortfall_of(run).notes(), summary)


def shortfall_of(run: RunTable) -> Shortfall:
    """The signals and verdicts that the gate of a run lacked, as its log has them."""
    after = ~run.of_reason(Reason.WARMUP)
    random = run.missing | run.of_reason(Reason.MISSING_SIGNAL)
    concluded = run.selected & (run.verdict != NO_VERDICT)
    return Shortfall(
        outputs=len(run.ids),
        missing=int(run.missing.sum()),
        evaluated=int(after.sum()),
        unscored=int((after & ~run.scored & random).sum()),
        verdicts=int((concluded & run.labelled).sum()),
        failed=int((concluded & ~run.labelled).sum()),
        why=run.why,
        warmups=run.warmups,
    )


def _replay(records: RecordTable, beta: float, diagnosis: Diagnosis) -> PolicyReplays | None:
    if diagnosis.absent is not None:
        return None
    known = records.take(np.isfinite(records.error) & np.isfinite(records.cost))
    many = len(known) > MANY
    protocol = Protocol(
        seeds=SEEDS_OF_MANY if many else SEEDS, evaluate="second-half", warmup=diagnosis.warmup
    )
    quick = [policy for policy in built_in() if policy.learns != "labels"]
    learners = [policy for policy in built_in() if policy.learns == "labels"]
    shown = quick if many else [*quick, *learners]
    shown = sorted(shown, key=lambda policy: policy.replay_only)  # the oracle is last
    fast = many or len(known) > FEW
    several = quick if fast else [*quick, describe_policy(Calibrated.name)]
    several = sorted(several, key=lambda policy: policy.replay_only)
    over = compare(known, [p.name for p in several], sorted({*BUDGETS, beta}), protocol)
    at_beta = over if many else compare(known, [p.name for p in shown], [beta], protocol)
    return PolicyReplays(shown, at_beta, several, over, protocol.seeds, many)
