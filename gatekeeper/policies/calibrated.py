"""Calibrated: expected errors per unit of expected cost, learned from what was verified."""

from __future__ import annotations

from collections import deque
from math import exp, log, nan
from typing import Any, ClassVar, Literal, get_args

import numpy as np

from gatekeeper.arguments import check_beta, check_choice, check_count
from gatekeeper.policies.budget_pacer import BudgetPacer, propensity_at
from gatekeeper.policies.descriptor import Learns, Need
from gatekeeper.policies.missing_signal import MissingSignalRule, OnMissing
from gatekeeper.policies.score import T0
from gatekeeper.stats.error_model import (
    KNOWN,
    RECENT,
    ErrorModel,
    Known,
    KnownTable,
    has_signal,
    raw_of,
)
from gatekeeper.stats.raw_table import Raw, RawTable
from gatekeeper.stats.shrinkage import as_seen
from gatekeeper.types import Candidate, Decision, Outcome, Reason

__all__ = ["Calibrated", "Objective"]

Objective = Literal["recall", "precision"]
GROWTH = 1.15  # growth of the data after which to fit again
AT_MOST = 250  # new labels after which to do so in any case
FEW = 100  # labels up to which "precision", too, ranks by P(error) / E[cost]
EXPLORE = 0.02  # of β: probability of verifying a candidate below the price
SHIFT, ALARM = 1.5, 8.0  # shift of the log odds to detect, and nats of evidence that detect it
KEPT, RELEARN = 25, 25  # labels kept after that; labels drawn uniformly before a fit is trusted


class Calibrated:
    """Verify iff P(error) / E[cost] exceeds the price that spends the budget to the end.

    `stats.error_model` fits both to the outcomes known so far: P(error) from signals, features, ĉ
    and its stratum, E[cost] from what is known before verification. It fits them again as labels
    arrive, at a cost per decision that does not grow. The price (`BudgetPacer`) spends the budget
    evenly and to the end; the ledger keeps the cap. A candidate below the price is verified with
    probability 0.02 β, so that every error rate can be estimated. If outcomes differ from the
    predicted ones by more than chance, the policy drops what it learned and draws the next labels
    uniformly.

    `Decision.score` is P(error). `threshold` is the price: errors per unit of cost, or P(error)
    where candidates are ranked by that alone.

    Parameters
    ----------
    beta
        Share of the full cost to spend, in (0, 1).
    horizon
        Number of candidates to come, the warm-up included, where it is known.
    objective
        "recall": the most errors for the cost. "precision": the highest hit rate; from 100 labels
        on it ranks by P(error) alone. Before, cheap candidates give more labels.
    warmup
        How many candidates come first, all verified.
    on_missing
        For a candidate without signals and features: "uniform" (probability β), "verify" or "skip".
    seed
        Seed of the draws, at least 0.
    """

    name = "calibrated"
    label = "Calibrated"
    description = "learns errors per cost from every label"
    learns: ClassVar[Learns] = "labels"
    needs: ClassVar[tuple[Need, ...]] = ("warmup", "horizon")
    options: ClassVar[tuple[str, ...]] = ("objective", "on_missing")

    def __init__(
        self,
        beta: float,
        *,
        horizon: int | None = None,
        objective: Objective = "recall",
        warmup: int = T0,
        on_missing: OnMissing = "uniform",
        seed: int = 0,
    ) -> None:
        check_choice("objective", objective, get_args(Objective))
        self.beta = check_beta(beta)
        self.horizon = None if horizon is None else check_count("horizon", horizon)
        self.objective: Objective = objective
        self.warmup = check_count("warmup", warmup)
        self.on_missing = on_missing
        self.seed = seed
        self._missing = MissingSignalRule(on_missing, beta, seed)
        self._rng = np.random.default_rng((seed, 1))  # other draws than the missing rule's
        # The last verifications are worth the least, so the highest hit rate leaves them out.
        to_come = None if horizon is None else max(horizon - warmup, 1)
        self._pacer = BudgetPacer(self.beta, to_come, use_up=objective == "recall")
        self._model: ErrorModel | None = None
        self._recent: deque[Raw] = deque(maxlen=RECENT)
        self._known: deque[Known] = deque(maxlen=KNOWN)
        self._evidence = [0.0, 0.0]  # for more errors than expected, and for fewer
        self._seen = self._labels = 0
        self._next_fit = (0, 0)  # seen, labels
        self._forgotten = 0  # labels, the first ones
        self._relearned = 0  # number of labels at which uniform draws end
        self._per_cost = True  # rank by P(error) / E[cost], not by P(error)
        self._last: tuple[str, float] | None = None  # id, expected cost

    @property
    def phase(self) -> str:
        return "warmup" if self._seen < self.warmup else "steady"

    def decide(self, candidate: Candidate) -> Decision:
        self._seen += 1
        raw = raw_of(candidate)
        signal = has_signal(candidate)
        if signal:
            self._recent.append(raw)
        if self._seen <= self.warmup:
            return Decision(True, Reason.WARMUP, version=self._labels)
        if not signal:
            cost = self._pacer.mean
            self._pacer.price(cost)
            decision = self._missing.decide(self._labels)
        else:
            if self._seen >= self._next_fit[0] or self._labels >= self._next_fit[1]:
                self._fit()
            assert self._model is not None
            p, cost, stratum = self._model(raw)
            decision = self._weigh(p, cost, stratum)
        self._last = (candidate.id, cost)
        return decision

    def observe(self, candidate: Candidate, decision: Decision) -> None:
        """Charge what is verified; a refusal by the budget indicates that the cap is reached.

        One by a full group does not: the budget that it leaves is for other outputs. What counts is
        the decision that was made, by another process too, whose draw was not this policy's.
        """
        if self._last is None or self._last[0] != candidate.id:
            return
        if decision.verify:
            self._pacer.charge(candidate.id, self._last[1])
        elif decision.reason is Reason.BUDGET_EXHAUSTED:
            self._pacer.refuse()

    def release(self, candidate: Candidate, decision: Decision) -> None:
        """Note that a verification ended without a verdict. See `WithoutVerdict`."""
        self._pacer.release(candidate.id)

    def update(self, candidate: Candidate, decision: Decision, outcome: Outcome) -> None:
        if outcome.error is None:
            return
        self._labels += 1
        if outcome.cost is not None:
            self._pacer.settle(candidate.id, outcome.cost)
        if decision.reason is Reason.FORCED:  # the caller may know more: a biased sample
            return
        raw = raw_of(candidate)
        if has_signal(candidate):
            # a charge of 0 has no information on what a verification costs
            self._known.append(Known(raw, outcome.error, outcome.cost or nan))
        if decision.score == decision.score:
            self._test_fit(outcome.error, decision.score)

    def _weigh(self, p: float, cost: float, stratum: int) -> Decision:
        price = self._pacer.price(cost)
        reason = Reason.POLICY
        propensity = propensity_at(p / cost if self._per_cost else p, price)
        if self._labels < self._relearned:
            reason, propensity = Reason.EXPLORE, self._pacer.rate
        elif propensity < EXPLORE * self.beta:
            reason, propensity = Reason.EXPLORE, EXPLORE * self.beta
        verify = propensity == 1.0 or bool(self._rng.random() < propensity)
        if not verify:
            reason = Reason.POLICY
        return Decision(verify, reason, p, price, stratum, propensity, self._labels)

    def _fit(self) -> None:
        more = int((self._labels - self._forgotten) * (GROWTH - 1.0)) + 1
        self._next_fit = int(self._seen * GROWTH) + 1, self._labels + min(more, AT_MOST)
        # The highest estimates are partly due to chance, and for precision only those count. (For
        # recall the posterior mean gains nothing, and where errors are rare it overrates uncertain
        # candidates.)
        cautious = self.objective == "precision"
        recent = RawTable.of(self._recent)
        self._model = ErrorModel.fit(recent, KnownTable.of(self._known), cautious=cautious)
        self._per_cost = self.objective == "recall" or self._labels < FEW
        p, cost = self._model.of_rows(recent)
        self._pacer.set_prices(p / cost if self._per_cost else p, cost)

    def _test_fit(self, error: int, p: float) -> None:
        """Drop all but the latest labels if they are improbable under the fit, with and without
        label noise.

        Page's test (1954) on either side: where the fit holds, a false alarm comes after at least
        e^8 / 2 = 1,490 labels on average.
        """
        seen = as_seen(p)
        for side, shift, q in ((0, SHIFT, max(p, seen)), (1, -SHIFT, min(p, seen))):
            ratio = error * shift - log(1.0 - q + q * exp(shift))  # log likelihood ratio
            self._evidence[side] = max(self._evidence[side] + ratio, 0.0)
        if max(self._evidence) > ALARM:
            self._known = deque(list(self._known)[-KEPT:], maxlen=KNOWN)
            self._evidence = [0.0, 0.0]
            self._forgotten = self._labels - len(self._known)
            self._relearned = self._labels + RELEARN
            self._next_fit = (0, 0)

    def state(self) -> dict[str, Any]:
        return {
            "seen": self._seen,
            "labels": self._labels,
            "forgotten": self._forgotten,
            "relearned": self._relearned,
            "per_cost": self._per_cost,
            "next_fit": list(self._next_fit),
            "last": None if self._last is None else list(self._last),
            "model": None if self._model is None else self._model.state(),
            "recent": [list(raw) for raw in self._recent],
            "known": [[list(known.raw), known.error, known.cost] for known in self._known],
            "evidence": list(self._evidence),
            "pacer": self._pacer.state(),
            "missing": self._missing.state(),
            "rng": dict(self._rng.bit_generator.state),
        }

    def restore(self, state: dict[str, Any]) -> None:
        self._seen, self._labels = state["seen"], state["labels"]
        self._forgotten, self._relearned = state["forgotten"], state["relearned"]
        self._per_cost = state["per_cost"]
        self._next_fit = tuple(state["next_fit"])
        self._last = None if state["last"] is None else tuple(state["last"])
        model = state["model"]
        self._model = None if model is None else ErrorModel.restored(model)
        self._recent = deque((Raw(*raw) for raw in state["recent"]), maxlen=RECENT)
        self._known = deque((Known(Raw(*r), y, c) for r, y, c in state["known"]), maxlen=KNOWN)
        self._evidence = list(state["evidence"])
        self._pacer.restore(state["pacer"])
        self._missing.restore(state["missing"])
        self._rng.bit_generator.state = state["rng"]
