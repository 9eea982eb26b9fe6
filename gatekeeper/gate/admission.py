"""Whether an output is verified: the policy proposes, exploration draws, the budget admits."""

from __future__ import annotations

from dataclasses import replace
from math import inf
from typing import Any

import numpy as np

from gatekeeper.budget import Ledger
from gatekeeper.gate.state import GateState
from gatekeeper.log.events import Decided
from gatekeeper.policies.proposal import checked_phase, checked_proposal
from gatekeeper.types import Candidate, Decision, Generation, Reason, Signals

__all__ = ["Admission", "decision_of", "refusal"]


class Admission:
    """Decides on candidates, in stream order.

    It takes the policy's proposal and one draw of exploration per candidate, and changes nothing
    else: the decision takes effect when the state applies the event.

    Parameters
    ----------
    state
        The gate's; read only, apart from its policy, which proposes.
    epsilon
        ε in [0, 1], probability with which a candidate after the warm-up is verified, independent
        of the policy.
    seed
        Seed of the draws.
    planned
        The policy's own draws never exceed the budget: an output that it does not draw is left out
        by that draw, also where the budget has no room at the moment. Beyond the horizon a total
        may be used up; then no output has a chance.
    """

    def __init__(
        self, state: GateState, *, epsilon: float, seed: int, planned: bool = False
    ) -> None:
        self._state, self._epsilon, self._planned = state, epsilon, planned
        self._draws = np.random.default_rng((seed, 2))  # others than a policy's of the same seed

    def decide(self, generation: Generation, candidate: Candidate, *, force: bool) -> Decided:
        """Decide on the next candidate.

        Parameters
        ----------
        force
            The caller requests verification: it is admitted if the budget has room at all.
        """
        state, ledger = self._state, self._state.ledger
        phase = checked_phase(state.decider.phase, candidate.id)
        proposal = checked_proposal(state.decider.decide(candidate), candidate.id)
        # For every candidate, independent of the proposal, so that a resumed run has the same
        # draws.
        explored = self._epsilon > 0.0 and self._draws.random() < self._epsilon
        warmup = proposal.reason is Reason.WARMUP
        if force and not warmup:
            proposal = replace(proposal, verify=True, reason=Reason.FORCED, propensity=1.0)
        groups = candidate.groups
        is_full = bool(groups) and ledger.group_room(ledger.groups.of(groups)) < 0
        room = -inf if is_full else ledger.room(candidate.cost_estimate, warmup=warmup)
        if warmup or force:
            admitted, epsilon = room >= 0, 0.0
        else:
            spare = ledger.spare()
            # A draw depends on the budget, not on groups: no output of a full group can be
            # verified.
            unselected = self._planned and not proposal.verify and not (is_full or self._is_over)
            admitted = room >= spare or unselected
            # Whether or not it was drawn: the propensity must not depend on that.
            if not admitted and proposal.propensity and room >= 0:
                admitted = ledger.has_beside(spare)
            epsilon = self._epsilon if room >= 0 else 0.0
        decision = decision_of(proposal, admitted=admitted, explored=explored, epsilon=epsilon)
        if decision.reason is Reason.BUDGET_EXHAUSTED:
            decision = replace(decision, reason=refusal(ledger, is_full=is_full))
        coverage = _coverage(generation, candidate.signals)
        accrued = None
        if ledger.logs_expected_cost and not warmup:
            accrued = ledger.expected_cost(candidate.cost_estimate)
        return Decided(generation, candidate, decision, phase, force, warmup, coverage, accrued)

    @property
    def _is_over(self) -> bool:
        """Whether no further output can be verified: the plan has ended, and used up the total."""
        ledger = self._state.ledger
        horizon = ledger.budget.horizon
        return horizon is not None and ledger.seen >= horizon and ledger.left(warmup=True) < 0

    def follow(self, candidate: Candidate) -> None:
        """Inform the policy of a candidate that another process decided on."""
        self._state.decider.decide(candidate)

    def state(self) -> dict[str, Any]:
        """A snapshot of values that `json` takes."""
        return dict(self._draws.bit_generator.state)

    def restore(self, state: dict[str, Any]) -> None:
        self._draws.bit_generator.state = state


def decision_of(proposal: Decision, *, admitted: bool, explored: bool, epsilon: float) -> Decision:
    """The decision made from a policy's proposal.

    Parameters
    ----------
    proposal
        Proposal of the policy.
    admitted
        The budget has room for it, beside the draws to come.
    explored
        This candidate was drawn.
    epsilon
        Probability of that draw, in [0, 1]; 0 where the budget has no room for one more.

    Returns
    -------
    Decision
        With its exact propensity, 1 - (1 - ε)(1 - p): p is the proposal's, 0 if not admitted.
    """
    verify, reason = proposal.verify and admitted, proposal.reason
    if not verify and explored and epsilon:
        verify, reason = True, Reason.EXPLORE
    elif proposal.verify and not admitted:
        reason = Reason.BUDGET_EXHAUSTED
    p = proposal.propensity if admitted else 0.0
    propensity = p + epsilon * (1.0 - p)  # exact at 0 and 1
    if (
        verify is proposal.verify
        and reason is proposal.reason
        and propensity == proposal.propensity
    ):
        return proposal
    return Decision(
        verify,
        reason,
        proposal.score,
        proposal.threshold,
        proposal.stratum,
        propensity,
        proposal.version,
    )


def refusal(ledger: Ledger, *, is_full: bool) -> Reason:
    """The reason why the ledger had no room the last time.

    Parameters
    ----------
    is_full
        A group of the output had no room.
    """
    if not ledger.reachable:
        return Reason.BUDGET_UNAVAILABLE
    return Reason.GROUP_EXHAUSTED if is_full else Reason.BUDGET_EXHAUSTED


def _coverage(generation: Generation, signals: Signals) -> float:
    """`generation.token_coverage`; where its signals used every position, without the arrays."""
    n = signals.n_margins
    if 0 < n == signals.n_tokens:
        return n / max(n, generation.output_tokens or 0)
    return generation.token_coverage
