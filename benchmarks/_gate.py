"""A gate's decisions on a stream, without outputs and log, which would take most of the time.

Policy and ledger are the package's; exploration draws a share ε = explore β of the candidates.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np

from gatekeeper.analysis.replay import outcome_of
from gatekeeper.budget import Budget, Ledger
from gatekeeper.drift.guard import DriftGuard
from gatekeeper.gate.admission import decision_of
from gatekeeper.gate.rates import exploration_rate
from gatekeeper.io.records import RecordTable
from gatekeeper.protocols import ObservingPolicy, Policy
from gatekeeper.types import Candidate, Reason, Signals

__all__ = ["EXPLORE", "go_through"]

EXPLORE = 0.1


def go_through(
    policy: Policy,
    stream: RecordTable,
    budget: Budget,
    seed: int,
    *,
    after: Callable[[int], None] = lambda t: None,
) -> RecordTable:
    """The records that the gate's log would have: only verified candidates have labels.

    `after` is called with the index of each candidate after its decision and verdict. The budget is
    in verifications.
    """
    n = len(stream)
    epsilon = exploration_rate(budget, EXPLORE)
    observe = policy.observe if isinstance(policy, ObservingPolicy) else None
    ledger = Ledger(budget, 1.0, explore=epsilon)
    if isinstance(policy, DriftGuard):
        policy.behind = ledger.behind
    explored = np.random.default_rng((seed, 1)).random(n) < epsilon
    outcomes = [outcome_of(label, 1.0) for label in (0, 1)]
    propensity, verified = np.empty(n), np.empty(n, dtype=bool)
    rows = zip(
        stream.ids,
        stream.h.tolist(),
        stream.cost_estimate.tolist(),
        stream.error.astype(int).tolist(),
        explored.tolist(),
        strict=True,
    )
    for t, (id_, h, cost_estimate, error, drawn) in enumerate(rows):
        candidate = Candidate(id_, Signals(*h), cost_estimate)
        proposal = policy.decide(candidate)
        warmup = proposal.reason is Reason.WARMUP
        room = ledger.room(cost_estimate, warmup=warmup)
        admitted = room >= (0 if warmup else ledger.spare())
        rate = epsilon if not warmup and room >= 0 else 0.0
        hold = ledger.see(cost_estimate, warmup=warmup)
        decision = decision_of(proposal, admitted=admitted, explored=drawn, epsilon=rate)
        propensity[t] = decision.propensity
        verified[t] = verify = decision.verify
        if verify:
            ledger.reserve(id_, hold)
        if observe:
            observe(candidate, decision)
        if verify:
            ledger.settle(id_, 1.0)
            policy.update(candidate, decision, outcomes[error])
        after(t)
    return replace(
        stream,
        error=np.where(verified, stream.error, np.nan),
        propensity=propensity,
        verified=verified.astype(np.float64),
    )
