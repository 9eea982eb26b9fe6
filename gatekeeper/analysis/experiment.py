"""Comparing policies on records: the paper's protocol, with intervals.

Ten seeds; each shuffles the stream, flips each observed label with probability 0.10 and adds to
every signal Gaussian noise of 0.1 × its standard deviation. Student-t 95 % intervals over seeds,
differences paired by seed (docs/reference/policies.md, "Budget in replay"; paper, "Costs, Noise,
and Baselines").
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass
from functools import partial
from typing import Any, Literal, get_args

import numpy as np

from gatekeeper.analysis.parallel import in_processes
from gatekeeper.analysis.policy_run import METRICS, Contender, PolicyRun
from gatekeeper.analysis.replay import Evaluate, Feedback, evaluation_start
from gatekeeper.analysis.vectorised import Decisions, Stream
from gatekeeper.arguments import check_beta, check_choice, check_count
from gatekeeper.errors import BadInputError
from gatekeeper.io.records import RecordTable
from gatekeeper.notebook import as_html
from gatekeeper.policies import T0, describe_policy
from gatekeeper.policies.descriptor import Need
from gatekeeper.stats.interval import Interval
from gatekeeper.stats.student import student_interval
from gatekeeper.types import BoolArray, FloatArray, IntArray
from gatekeeper.types.values import COST, LEAST_COST, MOST_COST
from gatekeeper.wording import counted, plural

__all__ = [
    "Comparison",
    "Label",
    "Protocol",
    "compare",
    "needs_second_half",
    "runs",
]

Label = Literal["error", "benefit"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Protocol:
    """How records are replayed.

    Parameters
    ----------
    seeds
        How many orders (with noise) are averaged over.
    shuffle
        Each seed puts the records into an order of its own.
    label_noise
        Probability in [0, 1) that a label is shown flipped.
    signal_noise
        Standard deviation of the noise, as a share >= 0 of each signal's own.
    feedback
        "full" shows learners every label, "partial" those of verified candidates.
    evaluate
        "second-half" leaves the first half after the warm-up to calibrations. None: so if a
        policy takes part that calibrates, else "all".
    label
        What counts as found: an "error", or, for routing, a "benefit".
    first_seed
        The seeds are this one and those after it; of orders, noise and policies.
    warmup
        How many records come first, verified and not evaluated.
    """

    seeds: int = 10
    shuffle: bool = True
    label_noise: float = 0.10
    signal_noise: float = 0.10
    feedback: Feedback = "full"
    evaluate: Evaluate | None = None
    label: Label = "error"
    first_seed: int = 0
    warmup: int = T0

    def __post_init__(self) -> None:
        check_count("seeds", self.seeds)
        check_count("first_seed", self.first_seed, least=0)
        check_count("warmup", self.warmup)
        if not 0.0 <= self.label_noise < 1.0:
            raise BadInputError(f"label_noise={self.label_noise!r}: a probability in [0, 1)")
        if not 0.0 <= self.signal_noise < np.inf:
            raise BadInputError(f"signal_noise={self.signal_noise!r}: must be at least 0")
        for name, choices in (("feedback", Feedback), ("label", Label)):
            check_choice(name, getattr(self, name), get_args(choices))

    @property
    def each_seed(self) -> range:
        return range(self.first_seed, self.first_seed + self.seeds)


@dataclass(frozen=True, slots=True, eq=False)
class Comparison:
    """Metrics of every contender, budget and seed: `values` has shape (P, B, S, 6)."""

    contenders: Sequence[Contender]
    betas: Sequence[float]
    protocol: Protocol
    evaluate: Evaluate
    values: FloatArray
    gate_open: FloatArray  # (P, B, S): 1 where HGA's gate opened, 0 where not, NaN for the others

    def estimate(self, contender: Contender | str, beta: float, metric: str) -> Interval:
        return student_interval(self.seeds(contender, beta, metric))

    def difference(
        self, contender: Contender | str, other: Contender | str, beta: float, metric: str
    ) -> Interval:
        """contender - other, paired by seed."""
        return student_interval(
            self.seeds(contender, beta, metric) - self.seeds(other, beta, metric)
        )

    def seeds(self, contender: Contender | str, beta: float, metric: str) -> FloatArray:
        """One value per seed: (S,). Raises BadInputError for what was not compared."""
        names = [str(c) for c in self.contenders]
        if str(contender) not in names or beta not in self.betas or metric not in METRICS:
            raise BadInputError(
                f"{contender} at beta={beta!r}, metric={metric!r}: not part of this comparison"
            )
        b, m = list(self.betas).index(beta), METRICS.index(metric)
        values: FloatArray = self.values[names.index(str(contender)), b, :, m]
        return values

    def _repr_html_(self) -> str:
        pairs = [(str(c), beta) for c in self.contenders for beta in self.betas]
        rows = [(*pair, *(self.estimate(*pair, m).value for m in METRICS)) for pair in pairs]
        return as_html("replay", rows, heads=("policy", "budget", *METRICS))


def needs_second_half(contenders: Sequence[Contender]) -> bool:
    """Whether one of them calibrates on the first half."""
    return any(describe_policy(c.name).calibrates for c in contenders)


def compare(
    table: RecordTable,
    contenders: Sequence[Contender | str],
    betas: Sequence[float],
    protocol: Protocol = Protocol(),
    *,
    workers: int = 1,
    on_progress: Callable[[int], None] = lambda seeds: None,
    on_run: Callable[[PolicyRun], None] | None = None,
) -> Comparison:
    """Replay every contender at every budget on every seed.

    Parameters
    ----------
    table
        Records with all labels and costs.
    contenders
        Policies, by name or with options.
    betas
        Budgets, as shares of the full cost, each in (0, 1).
    protocol
        How they are replayed.
    workers
        Processes, each of which takes one seed at a time.
    on_progress
        Called with the number of seeds done since the last call.
    on_run
        Called with every run, in the order of `runs`; all of them are made in this process then.

    Raises
    ------
    BadInputError
        No RecordTable, records without a label, too few records, an unknown policy, an option that
        it lacks, or a budget outside (0, 1). An error inside a policy is raised as it is.
    """
    plan = _plan(table, contenders, betas, protocol)
    values = np.full((len(plan.contenders), len(betas), protocol.seeds, len(METRICS)), np.nan)
    gates = np.full(values.shape[:3], np.nan)
    work = partial(plan.measure, on_run=on_run)
    workers = workers if on_run is None else 1
    with closing(in_processes(work, protocol.each_seed, workers)) as measured:
        for seed, found in measured:
            at = seed - protocol.first_seed
            values[:, :, at], gates[:, :, at] = found
            on_progress(1)
    return Comparison(plan.contenders, list(betas), protocol, plan.evaluate, values, gates)


def runs(
    table: RecordTable,
    contenders: Sequence[Contender | str],
    betas: Sequence[float],
    protocol: Protocol = Protocol(),
) -> Iterator[PolicyRun]:
    """The runs that `compare` measures, one after the other: by seed, budget, contender.

    Parameters and errors are those of `compare`.
    """
    plan = _plan(table, contenders, betas, protocol)
    for seed in protocol.each_seed:
        yield from plan.runs(seed)


@dataclass(frozen=True, slots=True, eq=False)
class _Plan:
    """A checked comparison, which can be sent to other processes."""

    table: RecordTable
    contenders: list[Contender]
    betas: list[float]
    protocol: Protocol
    evaluate: Evaluate

    def measure(
        self, seed: int, *, on_run: Callable[[PolicyRun], None] | None = None
    ) -> tuple[FloatArray, FloatArray]:
        """Metrics (P, B, 6) of one seed's runs, and whether HGA's gate opened (P, B)."""
        metrics = np.empty((len(self.contenders), len(self.betas), len(METRICS)))
        opened = np.full(metrics.shape[:2], np.nan)
        for i, run in enumerate(self.runs(seed)):
            if on_run is not None:
                on_run(run)
            at = i % len(self.contenders), i // len(self.contenders)
            metrics[at] = run.metrics()
            if run.decisions.evidence is not None:
                opened[at] = run.decisions.evidence.open
        return metrics, opened

    def runs(self, seed: int) -> Iterator[PolicyRun]:
        """The runs on the stream of a seed, by budget, then by contender."""
        order, stream = self._stream(seed)
        first = stream.first
        for beta in self.betas:
            for contender in self.contenders:
                yield PolicyRun(
                    contender,
                    beta,
                    seed,
                    order[first:],
                    _decide(stream, contender, beta, self.protocol, seed),
                    stream.error[first:],
                    stream.cost[first:],
                )

    def _stream(self, seed: int) -> tuple[IntArray, Stream]:
        """The seed's order and the stream in it: first the order is drawn, then flips, noise."""
        table, protocol = self.table, self.protocol
        rng = np.random.default_rng(seed)
        n = len(table)
        order = rng.permutation(n) if protocol.shuffle else np.arange(n)
        h, error = table.h[order], _labels(table, protocol.label)[order]
        observed = error
        if protocol.label_noise:
            observed = np.where(rng.random(n) < protocol.label_noise, 1.0 - error, error)
        if protocol.signal_noise:
            spread = np.array([_spread(column) for column in table.h.T])
            h = h + protocol.signal_noise * spread * rng.standard_normal((n, 3))
        return order, Stream(
            h,
            table.cost_estimate[order],
            table.cost[order],
            error,
            observed=observed,
            evaluate=self.evaluate,
            warmup=protocol.warmup,
            features={k: v[order] for k, v in (table.features or {}).items()},
        )


def _decide(
    stream: Stream, contender: Contender, beta: float, protocol: Protocol, seed: int
) -> Decisions:
    policy, options = describe_policy(contender.name), contender.options
    if stream.has_rule(policy.make, options):
        return stream.decide(policy.make, beta, seed=seed, feedback=protocol.feedback, **options)
    known: dict[Need, Any] = {
        "warmup": stream.warmup,
        "calibration": stream.first - stream.warmup,
        "labels": "full",
        "horizon": len(stream),
    }
    if policy.replay_only:
        known["records"] = stream.evaluated_records()
    made = policy.build(beta, seed=seed, stream=known, options=options)
    return stream.step(made, beta, feedback=protocol.feedback)


def _plan(
    table: RecordTable,
    contenders: Sequence[Contender | str],
    betas: Sequence[float],
    protocol: Protocol,
) -> _Plan:
    if not isinstance(table, RecordTable):
        raise BadInputError(
            f"table={table!r:.80}: give a RecordTable: of load_records, or RecordTable.of(records)"
        )
    them = [Contender.of(contender) for contender in contenders]
    for beta in betas:
        check_beta(beta)
    if not them or not betas:
        raise BadInputError("nothing to compare: name a policy and a budget")
    _check_options(them, betas[0], protocol.warmup, len(table))
    evaluate = protocol.evaluate or ("second-half" if needs_second_half(them) else "all")
    evaluation_start(len(table), warmup=protocol.warmup, evaluate=evaluate)
    _check_values(table, protocol.label)
    return _Plan(table, them, list(betas), protocol, evaluate)


def _check_options(contenders: Sequence[Contender], beta: float, warmup: int, n: int) -> None:
    """Make each policy once, so that it refuses wrong options before anything is replayed."""
    known: dict[Need, Any] = {
        "warmup": warmup,
        "calibration": 0,
        "labels": "full",
        "horizon": n,
        "records": [],
    }
    for contender in contenders:
        policy = describe_policy(contender.name)
        policy.build(beta, seed=0, stream=known, options=contender.options)


def _check_values(table: RecordTable, label: Label) -> None:
    """Raises BadInputError for records that cannot be replayed."""
    labels = _labels(table, label)
    unknown = np.flatnonzero(np.isnan(labels))
    if unknown.size:
        text = (
            f"{unknown.size} of {counted(len(table), 'record')} "
            f"{plural(unknown.size, 'has', 'have')} no {label!r} label, the first is "
            f"id={table.ids[unknown[0]]!r}: a replay needs all of them"
        )
        if label == "error" and table.propensity is not None:
            text += "; `gatekeeper compare` estimates from those that there are"
        raise BadInputError(text)
    if np.isnan(table.cost).any():
        first = int(np.flatnonzero(np.isnan(table.cost))[0])
        raise BadInputError(f"id={table.ids[first]!r} has no cost: a replay needs all of them")
    # Files are checked as they are read; this is for tables made by hand.
    for name, values, fine, rule in (
        (label, labels, np.isin(labels, (0.0, 1.0)), "0 or 1"),
        ("cost", table.cost, _is_cost(table.cost), COST),
        ("cost_estimate", table.cost_estimate, _is_cost(table.cost_estimate), COST),
    ):
        if not fine.all():
            first = int(np.argmin(fine))
            raise BadInputError(
                f"id={table.ids[first]!r}: {name}={float(values[first])!r} must be {rule} to replay"
            )


def _is_cost(values: FloatArray) -> BoolArray:
    return np.asarray((values >= LEAST_COST) & (values <= MOST_COST))


def _labels(table: RecordTable, label: Label) -> FloatArray:
    if label == "error":
        return table.error
    if table.benefit is None:
        raise BadInputError("no record has a 'benefit' label: routing needs one in each")
    return table.benefit


def _spread(column: FloatArray) -> float:
    """Standard deviation of what is finite; 0 for a signal that is absent."""
    finite = column[np.isfinite(column)]
    return float(finite.std()) if finite.size else 0.0
