"""Replay: the decisions of a policy on candidates whose outcomes are all known.

docs/reference/policies.md, "Budget in replay": B = β Σ c over the evaluated candidates; one that
the policy proposes is verified only if spent + c <= B, and one that does not fit is skipped.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Literal, get_args

from gatekeeper.arguments import check_beta, check_choice
from gatekeeper.errors import BadInputError
from gatekeeper.policies.proposal import checked_proposal
from gatekeeper.policies.score import T0
from gatekeeper.protocols import ObservingPolicy, Policy
from gatekeeper.types import Candidate, Decision, Label, Outcome, Reason, Record, Verdict
from gatekeeper.types.record import check_record
from gatekeeper.types.values import COST, LEAST_COST, MOST_COST
from gatekeeper.wording import counted, plural

__all__ = [
    "Evaluate",
    "Feedback",
    "Replay",
    "evaluation_start",
    "outcome_of",
    "replay",
    "step_through",
]

Evaluate = Literal["all", "second-half"]
Feedback = Literal["full", "partial"]


@dataclass(frozen=True, slots=True)
class Replay:
    """Decisions on the evaluated records, in stream order, and their results.

    `Decision.verify` here is the policy's proposal; `verified`, whether the budget admitted it.
    Ratios lie in [0, 1] and are NaN for 0/0; costs are in the records' unit.
    """

    records: Sequence[Record]
    decisions: Sequence[Decision]
    verified: Sequence[bool]
    budget: float

    @property
    def spent(self) -> float:
        return sum(r.cost for r, v in zip(self.records, self.verified, strict=True) if v)

    @property
    def errors_found(self) -> int:
        return sum(r.error == 1 for r, v in zip(self.records, self.verified, strict=True) if v)

    @property
    def hit_rate(self) -> float:
        return _ratio(self.errors_found, sum(self.verified))

    @property
    def audit_rate(self) -> float:
        return _ratio(sum(self.verified), len(self.records))

    @property
    def recall(self) -> float:
        return _ratio(self.errors_found, sum(r.error == 1 for r in self.records))

    @property
    def utilisation(self) -> float:
        return _ratio(self.spent, self.budget)


def replay(
    records: Sequence[Record],
    policy: Policy,
    beta: float,
    *,
    warmup: int = T0,
    evaluate: Evaluate = "all",
    feedback: Feedback = "full",
    observed: Sequence[Label] | None = None,
) -> Replay:
    """Run a fresh policy over the records in their order.

    Before the evaluation begins every proposal is admitted. `Random` draws for every candidate
    after its own warm-up: with "second-half" give it one that lasts until the evaluation begins.
    The calibration of `HGA(labels="full")` gets its labels with any feedback.

    Parameters
    ----------
    records
        With all labels and costs, in stream order.
    policy
        A fresh one.
    beta
        Share of the evaluated records' cost to spend, in (0, 1).
    warmup
        How many records come first, verified and not evaluated: the policy's own T0.
    evaluate
        "second-half" also leaves out the first ⌊(N - warmup)/2⌋ after the warm-up; what HGA needs,
        with `calibration` set to that number.
    feedback
        "full" shows the policy every label, "partial" those of verified candidates only.
    observed
        Labels that the policy is shown, one per record, where they are not the records' own: noisy
        ones. Metrics always use `Record.error`.

    Raises
    ------
    BadInputError
        No record is left to evaluate, an id occurs twice, a cost is not above 0, or a label is
        unknown; or `policy` is none, such as a name.
    """
    check_beta(beta)
    if not isinstance(policy, Policy):
        raise BadInputError(f"policy={policy!r:.80}: give an instance, such as CST(0.2)")
    check_choice("feedback", feedback, get_args(Feedback))
    first = evaluation_start(len(records), warmup=warmup, evaluate=evaluate)
    _check(records)
    if observed is None:
        observed = [record.error or 0 for record in records]
    elif len(observed) != len(records):
        raise BadInputError(
            f"{counted(len(observed), 'observed label')} for {counted(len(records), 'record')}"
        )
    elif odd := [label for label in observed if label not in (0, 1)]:
        raise BadInputError(f"observed={odd[0]!r}: a label is 0 or 1")
    evaluated = records[first:]
    budget = beta * sum(record.cost for record in evaluated)
    stream = [
        (
            Candidate(record.id, record.signals, record.cost_estimate, record.features),
            replace(outcome_of(label, record.cost), value=record.value),
        )
        for record, label in zip(records, observed, strict=True)
    ]
    decisions, verified = step_through(policy, stream, first, budget, feedback=feedback)
    return Replay(evaluated, decisions, verified, budget)


def step_through(
    policy: Policy,
    stream: Iterable[tuple[Candidate, Outcome]],
    first: int,
    budget: float,
    *,
    feedback: Feedback,
) -> tuple[list[Decision], list[bool]]:
    """The policy's proposals for the candidates from `first` on, and which `budget` admitted.

    Parameters
    ----------
    policy
        A fresh one.
    stream
        Candidates, each with the outcome, cost included, that the policy gets; it gets none for a
        candidate without a label.
    first
        Index of the first evaluated candidate; earlier proposals are all admitted.
    budget
        Cap of the cost of the evaluated candidates.
    feedback
        "full": the policy gets every label; "partial": those of verified candidates only.
    """
    observer = policy if isinstance(policy, ObservingPolicy) else None
    spent = 0.0
    decisions, verified = [], []
    for t, (candidate, outcome) in enumerate(stream):
        decision = checked_proposal(policy.decide(candidate), candidate.id)
        cost = outcome.cost or 0.0
        verify = decision.verify and (t < first or spent + cost <= budget)
        final = decision if verify == decision.verify else replace(decision, verify=False)
        if observer is not None:
            observer.observe(candidate, final)
        if t >= first:
            spent += cost * verify
            decisions.append(decision)
            verified.append(verify)
        # HGA's calibration without verification uses labels that a replay has.
        given = decision.reason is Reason.CALIBRATION and decision.propensity == 0.0
        known = outcome.error is not None
        if known and (verify or given or feedback == "full"):
            policy.update(candidate, final, outcome)
    return decisions, verified


def outcome_of(label: float, cost: float) -> Outcome:
    """The outcome of a verifier: 1 is wrong, 0 right; NaN unknown."""
    if label != label:
        return Outcome(Verdict.INFRA_ERROR, cost=cost)
    return Outcome(Verdict.FAILED if label else Verdict.PASSED, cost=cost)


def evaluation_start(n: int, *, warmup: int = T0, evaluate: Evaluate = "all") -> int:
    """Index of the first of `n` records that is evaluated.

    Parameters
    ----------
    n
        Number of records.
    warmup, evaluate
        As for `replay`.

    Raises
    ------
    BadInputError
        If no record is evaluated.
    """
    check_choice("evaluate", evaluate, get_args(Evaluate))
    if n <= warmup:
        raise BadInputError(
            f"{counted(n, 'record')} {plural(n, 'leaves', 'leave')} none to evaluate after a "
            f"warm-up of {warmup}"
        )
    return warmup + ((n - warmup) // 2 if evaluate == "second-half" else 0)


def _check(records: Sequence[Record]) -> None:
    ids: set[str] = set()
    for record in map(check_record, records):
        if record.id in ids:
            raise BadInputError(f"id {record.id!r} occurs twice: give each record a unique id")
        ids.add(record.id)
        if record.error not in (0, 1):
            raise BadInputError(
                f"id={record.id!r}: error={record.error!r} must be 0 or 1 to replay"
            )
        for name, cost in (("cost", record.cost), ("cost_estimate", record.cost_estimate)):
            if not LEAST_COST <= cost <= MOST_COST:
                raise BadInputError(f"id={record.id!r}: {name}={cost!r} must be {COST}")


def _ratio(part: float, whole: float) -> float:
    return part / whole if whole else float("nan")
