"""Base of MPAdapt and MPStrat: a learned score and a price of the budget.

Utility u_t = θᵀx_t - λ ĉ'_t; verify iff u_t > 0. A label updates θ by exponentiated gradient
(Kivinen & Warmuth 1997), every step updates λ (paper, Section "Global Policies", MP-Adapt).
"""

from __future__ import annotations

from math import exp
from typing import Any, ClassVar, NamedTuple

import numpy as np

from gatekeeper.arguments import check_beta, check_count
from gatekeeper.policies.missing_signal import MissingSignalRule, OnMissing
from gatekeeper.policies.score import T0, WarmupScore, weighted_mean
from gatekeeper.types import Candidate, Decision, Outcome, Reason

__all__ = ["MirrorProxPolicy", "exponentiated_gradient", "surrogate"]


class _Step(NamedTuple):
    """One evaluated candidate whose label may still come."""

    n: int  # evaluation steps before it
    stratum: int
    x: list[float]
    u: float  # the utility it was decided by; NaN without a signal
    price: float  # λ before the step
    cost: float  # ĉ'
    move: int  # how often the stratum's λ had changed, this step included


class MirrorProxPolicy:
    """Costs are divided by their warm-up means: ĉ', c'.

    θ starts as w0, λ as the (1 - β) quantile of s/ĉ' over the warm-up. After each step
    λ ← max(floor, λ + η_λ (a c' - β)), with a = 1 only where the budget allowed the verification:
    `observe` informs the policy of that. ĉ' replaces c' until the true cost is known, for a
    verification without a result, and always if no true cost of the warm-up is known when it ends.

    Labels of the warm-up that arrive after it has ended change neither θ nor λ. A verified
    candidate is kept until its label arrives.
    """

    name: ClassVar[str]
    floor: ClassVar[float]  # of λ

    def __init__(
        self, beta: float, *, warmup: int = T0, on_missing: OnMissing = "uniform", seed: int = 0
    ) -> None:
        self.beta = check_beta(beta)
        self.warmup = check_count("warmup", warmup)
        self.on_missing = on_missing
        self.seed = seed
        self._missing = MissingSignalRule(on_missing, beta, seed)
        self._warmup = WarmupScore(warmup)
        self._warmup_costs: list[float] = []
        self._mean_estimate = 1.0
        self._mean_cost: float | None = None  # unknown where no label came in time
        self._fitted = False
        self._labels = 0
        self._n = 0
        self._price: list[float] = []
        self._moves: list[int] = []
        self._last: tuple[str, _Step] | None = None
        self._open: dict[str, _Step] = {}  # verified, no label yet

    @property
    def phase(self) -> str:
        return "warmup" if self._warmup.active else "steady"

    def decide(self, candidate: Candidate) -> Decision:
        if self._warmup.active:
            self._warmup.add(candidate)
            return Decision(True, Reason.WARMUP, version=self._labels)
        if not self._fitted:
            self._fit()
        k = self._stratum(candidate.cost_estimate)
        cost, price = candidate.cost_estimate / self._mean_estimate, self._price[k]
        signals = candidate.signals
        x = self._warmup.scaled((signals.h1, signals.h2, signals.h3))
        s = weighted_mean(x, self._decider(k))
        u = s - price * cost
        self._last = (candidate.id, _Step(self._n, k, x, u, price, cost, self._moves[k] + 1))
        self._n += 1
        if s != s:
            return self._missing.decide(self._labels)
        verify = u > 0.0
        return Decision(
            verify,
            Reason.POLICY,
            score=s,
            threshold=price / self._mean_estimate,
            stratum=self._shown(k),
            propensity=1.0 if verify else 0.0,
            version=self._labels,
        )

    def observe(self, candidate: Candidate, decision: Decision) -> None:
        """Update λ by the spending of this step, whether or not its label arrives."""
        if decision.reason is Reason.WARMUP or self._last is None:
            return
        id_, step = self._last
        self._move(step.stratum, step.price, step.cost if decision.verify else 0.0)
        self._moves[step.stratum] = step.move
        if decision.verify:
            self._open[id_] = step

    def update(self, candidate: Candidate, decision: Decision, outcome: Outcome) -> None:
        if outcome.error is None:
            return
        self._labels += 1
        if decision.reason is Reason.WARMUP:
            if not self._fitted:
                self._warmup.learn(candidate.id, outcome.error)
                if outcome.cost:
                    self._warmup_costs.append(outcome.cost)
            return
        step = self._open.pop(candidate.id, None)
        if step is None and self._last is not None and self._last[0] == candidate.id:
            step = self._last[1]
        if step is None:
            return
        if step.u == step.u:
            rate = 0.5 / (1.0 + 0.002 * step.n)
            self._learn(step.stratum, step.x, outcome.error, step.u, step.price * step.cost, rate)
        if decision.verify and outcome.cost is not None and self._mean_cost is not None:
            cost = outcome.cost / self._mean_cost
            k = step.stratum
            if self._moves[k] == step.move:  # no change since: as if known at once
                self._move(k, step.price, cost)
            else:
                corrected = self._price[k] + self._rate * (cost - step.cost)
                self._price[k] = max(self.floor, corrected)
                self._moves[k] += 1  # no later label may start from an earlier price

    # -- what subclasses define ---------------------------------------------------------------

    def _start(self, w0: list[float], price: float) -> None:
        """Set θ and the prices after the warm-up."""
        raise NotImplementedError

    def _decider(self, stratum: int) -> list[float]:
        """θ that decides."""
        raise NotImplementedError

    def _learn(
        self, stratum: int, x: list[float], y: int, u: float, charge: float, rate: float
    ) -> None:
        """Update θ; `u` and `charge` = λ ĉ' are those of the decision, `rate` is η_t."""
        raise NotImplementedError

    def _stratum(self, cost_estimate: float) -> int:
        return 0

    def _shown(self, stratum: int) -> int | None:
        return None

    # -----------------------------------------------------------------------------------------

    @property
    def _rate(self) -> float:
        """η_λ = 0.25 β: the paper's β/N with Σ c = 1, multiplied by N."""
        return 0.25 * self.beta

    def _move(self, stratum: int, price: float, cost: float) -> None:
        self._price[stratum] = max(self.floor, price + self._rate * (cost - self.beta))

    def _fit(self) -> None:
        self._warmup.fit()
        costs = self._warmup.costs
        self._mean_estimate = float(np.mean(costs))
        if self._warmup_costs:
            self._mean_cost = float(np.mean(self._warmup_costs))
        ratios = [s / (c / self._mean_estimate) for s, c in self._warmup.scores() if s == s]
        price = float(np.quantile(ratios, 1.0 - self.beta)) if ratios else 0.0
        self._start(self._warmup.weights, price)
        self._moves = [0] * len(self._price)
        self._warmup.close()
        self._fitted = True

    def state(self) -> dict[str, Any]:
        return {
            "labels": self._labels,
            "warmup": self._warmup.state(),
            "missing": self._missing.state(),
            "warmup_costs": list(self._warmup_costs),
            "means": [self._mean_estimate, self._mean_cost],
            "fitted": self._fitted,
            "n": self._n,
            "price": list(self._price),
            "moves": list(self._moves),
            "last": None if self._last is None else [self._last[0], list(self._last[1])],
            "open": {id_: list(step) for id_, step in self._open.items()},
        }

    def restore(self, state: dict[str, Any]) -> None:
        self._labels, self._n, self._fitted = state["labels"], state["n"], state["fitted"]
        self._warmup.restore(state["warmup"])
        self._missing.restore(state["missing"])
        self._warmup_costs = list(state["warmup_costs"])
        self._mean_estimate, self._mean_cost = state["means"]
        self._price, self._moves = list(state["price"]), list(state["moves"])
        last = state["last"]
        self._last = None if last is None else (last[0], _Step(*last[1]))
        self._open = {id_: _Step(*step) for id_, step in state["open"].items()}


def surrogate(y: float, u: float) -> float:
    """y - σ(u), the factor of the gradient; σ only smooths it, decisions are not drawn from it."""
    if u >= 0.0:
        return y - 1.0 / (1.0 + exp(-u))
    e = exp(u)
    return y - e / (1.0 + e)


def exponentiated_gradient(
    theta: list[float], factor: float, x: list[float], rate: float
) -> list[float]:
    """EG(θ, g, η)_j = θ_j exp(η g_j) / Σ_i θ_i exp(η g_i) with g = `factor` x, 0 where x is NaN."""
    grown = [t * exp(rate * (factor * v)) if v == v else t for t, v in zip(theta, x, strict=True)]
    total = sum(grown)
    return [g / total for g in grown] if total else theta
