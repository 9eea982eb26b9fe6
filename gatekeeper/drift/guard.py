"""The reaction to drift: what a policy learned is dropped once outcomes contradict predictions."""

from __future__ import annotations

from collections import deque
from copy import deepcopy
from math import nan
from typing import Any

import numpy as np

from gatekeeper.drift.monitor import Monitor
from gatekeeper.policies import T0
from gatekeeper.protocols import ObservingPolicy, Policy
from gatekeeper.stats.error_model import (
    AT_MOST,
    KNOWN,
    RECENT,
    ErrorModel,
    Known,
    Raw,
    has_signal,
    raw_of,
)
from gatekeeper.stats.shrinkage import as_seen
from gatekeeper.types import Candidate, Decision, Label, Outcome, PolicyHealth, Reason

__all__ = ["RELEARNING", "DriftGuard"]

GROWTH = 1.3  # labels between fits, as a factor: a fit that follows each change at once hides it
RELEARNING = "relearning"  # the phase in which candidates are drawn uniformly
# Who decided on a candidate whose label is to come, see `_pending`: the policy itself, a draw that
# became its warm-up, or the policy before it was restored.
OWN, HANDED, OLD = 0, 1, 2


class DriftGuard:
    """A policy that decides as the one given does, for as long as outcomes are as predicted.

    P(error) is fitted to the labels known so far (`ErrorModel`: signals, ĉ, stratum). Each new
    label is compared with its prediction from the earlier ones, and `Monitor` tests whether the
    differences are chance. Labels of forced verifications are left out, because they are no fair
    sample, and so are candidates without signals.

    On drift what was learned is dropped. The policy is restored to the state in which it was
    handed in, and candidates are drawn uniformly; those that are verified, by whichever uniform
    draw, are its new warm-up. After that it decides again. None of this counts as warm-up: a draw
    has `Reason.EXPLORE` and its exact propensity.

    Parameters
    ----------
    policy
        Any fresh one; do not use it elsewhere.
    rate
        Probability, in (0, 1], of drawing a candidate meanwhile; None: the share of candidates
        verified so far after the warm-up.
    relearns
        False: drift is only reported; `health` then stays "drifted".
    seed
        Of the draws.
    """

    def __init__(
        self, policy: Policy, *, rate: float | None = None, relearns: bool = True, seed: int = 0
    ) -> None:
        self._policy, self._rate, self._relearns = policy, rate, relearns
        self._observer = policy if isinstance(policy, ObservingPolicy) else None
        self._initial = deepcopy(policy.state())
        self._rng = np.random.default_rng((seed, 3))  # other draws than a policy's or a gate's
        self._monitor = Monitor()
        self._model: ErrorModel | None = None
        self._recent: deque[Raw] = deque(maxlen=RECENT)
        self._known: deque[Known] = deque(maxlen=KNOWN)
        self._labels = 0  # learned since the start, or since what was learned was dropped
        self._next_fit = T0
        self._health = PolicyHealth.COLD
        self._why = ""
        self._relearning = False
        self._pending: dict[str, int] = {}  # id of what is to be verified -> who decided on it
        self._after = self._verified = 0  # candidates after the warm-up, and how many verified

    @property
    def phase(self) -> str:
        return RELEARNING if self._relearning else self._policy.phase

    @property
    def health(self) -> PolicyHealth:
        """COLD until the warm-up is over and `T0` labels are known; DRIFTED until the policy has
        relearned and `T0` new labels are known."""
        return self._health

    @property
    def why(self) -> str:
        """In words, what the test found when it last found drift; "" if it never did."""
        return self._why

    def decide(self, candidate: Candidate) -> Decision:
        raw = raw_of(candidate)
        if has_signal(raw):
            self._recent.append(raw)
        if not self._relearning:
            return self._policy.decide(candidate)
        rate = self._rate or (1 + self._verified) / (2 + self._after)
        verify = bool(self._rng.random() < rate)
        reason = Reason.EXPLORE if verify else Reason.POLICY
        return Decision(verify, reason, propensity=rate, version=self._labels)

    def observe(self, candidate: Candidate, decision: Decision) -> None:
        """Pass the final decision on; while relearning, give the policy its new warm-up, which is
        what is verified in fact, except forced candidates."""
        if not self._relearning and self._observer is not None:
            self._observer.observe(candidate, decision)
        if decision.reason is not Reason.WARMUP:
            self._after += 1
            self._verified += decision.verify
        if not decision.verify:
            return
        drawn = self._relearning and decision.reason is not Reason.FORCED
        if drawn:
            proposal = self._policy.decide(candidate)
            if self._observer is not None:
                self._observer.observe(candidate, proposal)
            self._relearning = self._policy.phase == "warmup"
        self._pending[candidate.id] = HANDED if drawn else OWN

    def update(self, candidate: Candidate, decision: Decision, outcome: Outcome) -> None:
        who = self._pending.pop(candidate.id, OWN)
        if who == OLD:
            return
        if who == HANDED:
            self._policy.update(candidate, Decision(True, Reason.WARMUP), outcome)
        elif not self._relearning:
            self._policy.update(candidate, decision, outcome)
        if outcome.error is not None and decision.reason is not Reason.FORCED:
            self._test(raw_of(candidate), outcome.error)

    def restart(self) -> None:
        """Begin with the policy's warm-up again, as if no candidate had come."""
        self._policy.restore(deepcopy(self._initial))
        self._pending = dict.fromkeys(self._pending, OLD)

    def relearn(self) -> None:
        """Drop what was learned, for a reason outside the labels: another model, say."""
        self.restart()
        self._monitor.reset()
        self._model = None
        self._recent.clear()
        self._known.clear()
        self._labels, self._next_fit = 0, T0
        self._health = PolicyHealth.DRIFTED
        self._relearning = self._policy.phase == "warmup"

    def _test(self, raw: Raw, error: Label) -> None:
        """Compare the label with its prediction, then learn it."""
        given_up = self._health is PolicyHealth.DRIFTED and not self._relearns
        if given_up or not has_signal(raw):
            return
        if self._labels >= self._next_fit:
            self._next_fit = min(int(self._labels * GROWTH) + 1, self._labels + AT_MOST)
            self._model = ErrorModel.fit(self._recent, self._known)
        if self._model is not None:
            p, _, _ = self._model(raw)
            self._monitor.observe(error, as_seen(p))
            if self._monitor.drifted:
                self._why = self._monitor.why
                if self._relearns:
                    self.relearn()
                else:
                    self._health = PolicyHealth.DRIFTED
                return
        self._known.append(Known(raw, error, nan))
        self._labels += 1
        if self._labels >= T0 and self.phase not in ("warmup", RELEARNING):
            self._health = PolicyHealth.VALID

    def state(self) -> dict[str, Any]:
        return {
            "policy": self._policy.state(),
            "monitor": self._monitor.state(),
            "estimates": None if self._model is None else self._model.state(),
            "recent": [list(raw) for raw in self._recent],
            "known": [[list(known.raw), known.error] for known in self._known],
            "labels": self._labels,
            "next_fit": self._next_fit,
            "health": self._health,
            "why": self._why,
            "relearning": self._relearning,
            "pending": dict(self._pending),
            "account": [self._after, self._verified],
            "rng": dict(self._rng.bit_generator.state),
        }

    def restore(self, state: dict[str, Any]) -> None:
        self._policy.restore(state["policy"])
        self._monitor.restore(state["monitor"])
        estimates = state["estimates"]
        self._model = None if estimates is None else ErrorModel.restored(estimates)
        self._recent = deque(map(tuple, state["recent"]), maxlen=RECENT)
        self._known = deque((Known(tuple(raw), y, nan) for raw, y in state["known"]), maxlen=KNOWN)
        self._labels, self._next_fit = state["labels"], state["next_fit"]
        self._health, self._why = PolicyHealth(state["health"]), state["why"]
        self._relearning, self._pending = state["relearning"], dict(state["pending"])
        self._after, self._verified = state["account"]
        self._rng.bit_generator.state = state["rng"]
