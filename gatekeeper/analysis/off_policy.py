"""What a policy would have found on a run's stream, from the run's own log.

The log has the verdicts of the outputs that its gate verified, and the propensity of every output.
A policy is replayed on the same outputs in the same order; if it selects an output, it gets the
verdict if the log has it. So its choices S do not depend on whether the log has the next verdict,
and what S would have found is

    A = Σ S y,    B = Σ (1 - S) y,    recall = A / (A + B),    hit rate = A / Σ S

Verdicts in the log are known; those it lacks are drawn from their posterior
(`stats.label_posterior`), given predictions from signals and ĉ, cost strata, the propensity, and
whether the policy chose the output: errors of the predictions among its choices, or among the rest,
are estimated from the verdicts there. A value is the mean over draws, its interval holds 95 % of
them.

For policies that learn from nothing after the warm-up S is what they would have chosen. Those that
learn or calibrate after it (`PolicyDescriptor.learns_after_warmup`) get only verdicts that the log
has: S is what they choose with these, usually fewer than they would have had. Where the
log has every verdict nothing is estimated, and the result is that of `gatekeeper.analysis.replay`
with partial feedback.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property, partial
from math import nan

import numpy as np

from gatekeeper.analysis.outputs import raw_of_records
from gatekeeper.analysis.policy_run import Contender
from gatekeeper.analysis.predictions import log_odds_of
from gatekeeper.analysis.rate_of_all import by_propensity
from gatekeeper.analysis.vectorised import Stream
from gatekeeper.arguments import check_beta
from gatekeeper.errors import BadInputError
from gatekeeper.io.records import RecordTable
from gatekeeper.policies import T0, describe_policy, make_policy
from gatekeeper.stats.interval import Interval
from gatekeeper.stats.label_posterior import LabelPosterior
from gatekeeper.stats.mid_p import midp_interval
from gatekeeper.stats.strata import strata_of
from gatekeeper.types import BoolArray, FloatArray, IntArray
from gatekeeper.wording import counted, plural

__all__ = [
    "SEED",
    "STRATA",
    "Evidence",
    "PolicyValue",
    "parts_by_choice",
    "policy_values",
    "without_unknown",
]

STRATA = 4  # of cost, as CST has by default: what predictions may miss in one
SEED = 7_919  # of replayed policies; the log's own would repeat the log's draws
COMPLETE = 0.99  # share of known labels that is as good as all: verifiers fail now and then
LEAST = 10.0  # effective verdicts below which nothing is estimated
CHANCELESS = 0.1  # share of outputs that may have propensity 0: the rest is nearly the run


@dataclass(frozen=True, slots=True)
class PolicyValue:
    """What one policy would have found; None where the log has too few verdicts on its choices."""

    policy: str
    verified: float  # share of the outputs it would have verified
    recall: Interval
    hit_rate: Interval | None
    more: Interval  # errors found beyond those of the first policy compared, in number
    effective: float  # effective number of verdicts that the log has on its choices
    learns: bool  # after the warm-up, here from the log's verdicts only: an approximation


def without_unknown(table: RecordTable) -> RecordTable:
    """The table, without the records that lack a label or a cost if those are at most 1 %."""
    known = ~np.isnan(table.error) & ~np.isnan(table.cost)
    return table.take(known) if COMPLETE * len(table) <= known.sum() < len(table) else table


class Evidence:
    """The outputs after the warm-up, their propensities, and the known verdicts.

    Arrays of shape (n,). Outputs with propensity 0, where the budget was used up, are left out of
    all sums but stay in the stream. `table` has the outputs, `without_unknown`; `left_out` is how
    many that leaves out.

    Parameters
    ----------
    table
        Records with all labels, or a gate's log.
    warmup
        How many outputs come first, all verified: `warmup_of` a log.

    Raises
    ------
    BadInputError
        Where the records do not represent all outputs, with the reason.
    """

    def __init__(self, table: RecordTable, *, warmup: int = T0) -> None:
        given, table = len(table), without_unknown(table)
        self.table, self.left_out = table, given - len(table)
        if len(table) <= warmup:
            raise BadInputError(
                f"{counted(len(table), 'output')} {plural(len(table), 'leaves', 'leave')} none "
                f"after a warm-up of {warmup}: nothing can be estimated"
            )
        self.warmup = warmup
        known = ~np.isnan(table.error)
        self.complete = bool(known.all())
        drawn = known if self.complete else table.drawn
        p = np.ones(len(table)) if self.complete else table.propensity
        _check_chances(p, warmup)
        assert p is not None
        label = np.where(drawn, table.error, nan)
        self._drawn = drawn
        self._cost = _costs(table, p, drawn)
        self.stream = Stream(
            table.h,
            table.cost_estimate,
            self._cost,
            label,
            warmup=warmup,
            features=table.features,
        )
        after = slice(warmup, None)
        self.p, self.label, self.drawn = p[after], label[after], drawn[after]
        self.cost = self._cost[after]
        self.counted = self.p > 0.0
        if not (self.label[self.counted] == 1.0).any():
            effective = _effective(self.p[self.counted])
            raise BadInputError(
                "no verdict after the warm-up found an error, so that recall is undefined; the "
                "error rate of the outputs after it is at most "
                f"{midp_interval(0.0, effective).high:.1%} (95 % interval; effective number of "
                f"verdicts: {effective:.0f})"
            )

    @cached_property
    def _predicted(self) -> FloatArray:
        """Log odds of an error (N,), predicted from the verdicts."""
        t = self.table
        return log_odds_of(partial(raw_of_records, t), self._drawn, t.error)

    def shares(self, policy: Contender | str, beta: float) -> FloatArray:
        """The probability with which the policy verifies each output, given the log's verdicts.

        Parameters
        ----------
        policy
            Its name, or with options.
        beta
            Budget, a share of the outputs' cost in (0, 1).

        Returns
        -------
        array
            Shape (n,), 0 or 1; β for random. Nothing is explored.
        """
        contender = Contender.of(policy)
        described, options = describe_policy(contender.name), contender.options
        live = make_policy(
            contender.name,
            beta,
            horizon=len(self.stream),
            warmup=self.warmup,
            seed=SEED,
            options=options,
        )
        if described.learns == "nothing":
            return np.full(self.p.size, beta)
        if not described.learns_after_warmup and self.stream.has_rule(described.make, options):
            decisions = self.stream.decide(described.make, beta, seed=SEED, **options)
        else:
            decisions = self.stream.step(live, beta, feedback="partial")
        return decisions.verified.astype(np.float64)

    def labels(self, choice: IntArray) -> LabelPosterior:
        """The posterior of all labels (N,), the warm-up's first.

        Parameters
        ----------
        choice
            Shape (n,): numbers of the parts of the outputs after the warm-up. Each part has its
            own error of prediction.
        """
        label = self.stream.error
        if self.complete:
            return LabelPosterior(label, np.zeros(label.size), [])
        propensity = np.full(label.size, -1)
        propensity[self.warmup :] = by_propensity(self.p)
        both = propensity.copy()
        both[self.warmup :] += (propensity.max() + 1) * choice
        warmup = np.full(label.size, -1)
        warmup[: self.warmup] = 0
        strata = strata_of(self.table.cost_estimate, STRATA, warmup=self.warmup)
        return LabelPosterior(label, self._predicted, [propensity, both, strata, warmup])

    def totals(
        self, labels: LabelPosterior, weights: FloatArray, *, resample: bool = False
    ) -> tuple[FloatArray, FloatArray]:
        """`LabelPosterior.totals` of the outputs that count, for weights (n, m)."""
        whole = np.zeros((self.warmup + self.p.size, weights.shape[1]))
        whole[self.warmup :][self.counted] = weights[self.counted]
        return labels.totals(whole, resample=resample)

    @property
    def costs(self) -> tuple[float, float]:
        """The cost of verifying the warm-up, and that of all later outputs; estimated where
        unknown."""
        return float(self._cost[: self.warmup].sum()), float(self.cost.sum())

    def effective(self, among: BoolArray) -> float:
        """The effective number of verdicts on these outputs: of equal weight, as informative."""
        return _effective(self.p[among & self.counted])


def _effective(p: FloatArray) -> float:
    """Kish's effective number n² / Σ 1/p, of the verdicts to expect on n outputs."""
    return p.size**2 / float((1.0 / p).sum()) if p.size else 0.0


def _check_chances(p: FloatArray | None, warmup: int) -> None:
    """Raises BadInputError where the verdicts allow no estimate for the other outputs."""
    if p is None or np.isnan(p).any():
        raise BadInputError(
            "some outputs have no verdict, and estimates for these need the propensities of all "
            "outputs: give a gate's log, or records with all labels"
        )
    after = p[warmup:]
    without = float((after == 0.0).mean())
    if without > CHANCELESS:
        raise BadInputError(
            f"{without:.0%} of the outputs have propensity 0, so nothing can be "
            "estimated for them: make the log with a gate that explores (explore=0.1) and whose "
            "budget lasts to the end"
        )
    effective = _effective(after[after > 0.0])
    if effective < LEAST:
        raise BadInputError(
            f"the verdicts after the warm-up carry as much information as {effective:.1f} drawn at "
            f"random, and estimates need {LEAST:g}: give a log of more outputs, or of a gate that "
            "explores more, or verdicts on all outputs"
        )


def _costs(table: RecordTable, p: FloatArray, drawn: BoolArray) -> FloatArray:
    """True costs where known; otherwise ĉ times the mean cost per ĉ, or the one cost of all."""
    known = ~np.isnan(table.cost)
    if known.all():
        return table.cost
    drawn = drawn & known & (p > 0.0)
    if not drawn.any():
        raise BadInputError("no verified output has a cost: a budget needs costs")
    cost, estimate, weight = table.cost[drawn], table.cost_estimate[drawn], 1.0 / p[drawn]
    if np.ptp(cost) == 0.0:  # in units of verifications
        return np.full(len(table), cost[0])
    rate = float(weight @ cost) / float(weight @ estimate)
    return np.where(known, table.cost, rate * table.cost_estimate)


def policy_values(
    evidence: Evidence, policies: Sequence[Contender | str], beta: float
) -> list[PolicyValue]:
    """What each policy would have found.

    Parameters
    ----------
    evidence
        Evidence of the run.
    policies
        By name, or with options; all are compared with the first.
    beta
        Budget, a share of the full cost in (0, 1).

    Returns
    -------
    list of PolicyValue
        One for each policy, in order.

    Raises
    ------
    BadInputError
        For an unknown policy and a budget outside (0, 1).
    """
    check_beta(beta)
    them = [Contender.of(policy) for policy in policies]
    shares = [evidence.shares(policy, beta) for policy in them]
    return [
        _value(evidence, policy, share, shares[0])
        for policy, share in zip(them, shares, strict=True)
    ]


def parts_by_choice(first: FloatArray, second: FloatArray) -> IntArray:
    """The parts (n,) of outputs that both policies verify with the same probabilities (n,)."""
    _, part = np.unique(np.column_stack([first, second]), axis=0, return_inverse=True)
    return part.reshape(-1).astype(np.intp)


def _value(
    evidence: Evidence, policy: Contender, share: FloatArray, first: FloatArray
) -> PolicyValue:
    weights = np.column_stack([share, np.ones(share.size), share - first])
    labels = evidence.labels(parts_by_choice(share, first))
    (found, errors, more), size = (sums.T for sums in evidence.totals(labels, weights))
    verdicts = evidence.drawn & evidence.counted
    chosen = share > 0.0
    effective = evidence.effective(chosen)
    n = int((chosen & verdicts).sum())
    return PolicyValue(
        str(policy),
        float(share[evidence.counted].mean()),
        Interval.of_draws(found / errors, int(verdicts.sum())),
        Interval.of_draws(found / size[0], n) if effective >= LEAST else None,
        Interval.of_draws(more, int((verdicts & (share != first)).sum())),
        effective,
        describe_policy(policy.name).learns_after_warmup,
    )
