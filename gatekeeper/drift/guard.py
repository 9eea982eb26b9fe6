"""The reaction to drift: the policy is reset when outputs change."""

from __future__ import annotations

from array import array
from collections import deque
from collections.abc import Callable
from copy import deepcopy
from math import nan
from typing import Any

import numpy as np

from gatekeeper.drift.monitor import Monitor
from gatekeeper.drift.pace import UNDERSPENT, PaceTest
from gatekeeper.drift.recalibration import Recalibration
from gatekeeper.drift.scores import ScoreRanks
from gatekeeper.policies import T0
from gatekeeper.protocols import ObservingPolicy, Policy, ReleasingPolicy
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
from gatekeeper.stats.shrinkage import FLIPPED, as_seen
from gatekeeper.types import Candidate, Decision, Label, Outcome, PolicyHealth, Reason, Signals
from gatekeeper.types.states import REFUSED

__all__ = ["BATCH", "RELEARNING", "TESTS", "DriftGuard"]

TESTS = 7  # version of the tests; another version may find drift at other outputs

# Growth of the labels between fits, and the most that come between: a fit that adapts at once would
# hide a change, and with that many labels a fit to a few more hardly differs.
GROWTH, AT_MOST = 1.3, 1000
RELEARNING = "relearning"  # the phase in which candidates are drawn uniformly
UNSTEADY = ("warmup", "calibration")  # phases in which the pace is not tested
# Source of the decision on a candidate without a label yet, see `_pending`: the policy itself, a
# draw that became its warm-up, or the policy before its reset.
OWN, HANDED, OLD = 0, 1, 2
# After a drift: how many verifications to be behind the budget before drawing beside the policy,
# because chance alone causes a few; and over how many outputs to catch up.
LAG, CATCH_UP = 5.0, 40.0
ROW = 6  # values of an untested output: h1, h2, h3, ĉ, positions, bet on or not
# Outputs whose scores are tested at once, which is several times as fast; and so many once there is
# some evidence.
BATCH, FINE = 32, 4
EVIDENCE = 3.0
# While there is some: highest probability of a draw beside a policy that verified a smaller share
# of the budget's rate than this.
SUSPECTED, STARVING = 0.5, 0.5
SLACK = 1.5  # tolerated error of a prediction, in labels of those known


class DriftGuard:
    """A policy that decides as the one given does, for as long as outputs do not change.

    Three tests, which together give a false alarm on less than 1 % of the streams of 3,000 outputs
    that do not change (`benchmarks/drift.py`), and on 1.6 % of longer ones at most, as far as their
    assumptions hold:

    - scores: signals and sizes of each output are compared with those of earlier ones (`Monitor`);
      of several outputs of one task in a row (`task/1`, `task/2`, equal ĉ) only the first is. Of
      those that are, 32 are tested at once, or 4 if there is some evidence already;
    - labels: P(error) is fitted to the labels known so far (`ErrorModel`: signals, ĉ, stratum), and
      corrected where earlier labels differed (`Recalibration`). Each new label is compared with its
      prediction ± 1.5 / n for n known labels (`Monitor`). Labels of forced verifications are left
      out, because they are not a random sample, and so are candidates without signals;
    - pace: as many outputs are verified as were before (`PaceTest`), while the policy is steady.

    On drift the policy is reset to its initial state, and candidates are drawn uniformly; those
    that are verified by any uniform draw are its new warm-up. After that it decides again. None of
    this counts as warm-up: a draw has `Reason.EXPLORE` and its exact propensity. From the first
    drift on, the guard also draws candidates in addition to the policy, while the policy is more
    than `LAG` verifications behind the budget. With some evidence of drift it does so before, if
    less than half of the budget's rate was verified, because a policy that verifies little gives
    few labels to detect a change.

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
        Seed of the draws.

    Attributes
    ----------
    behind
        Returns how many verifications the budget would have paid for by now beyond those made;
        None: unknown, and there are no additional draws.
    testing
        False: no tests; drift comes from calls of `drift` only. For logs written with other tests.
    health
        COLD until the warm-up is over and `T0` labels are known; DRIFTED until the policy has
        relearned and `T0` new labels are known.
    why
        The finding of the tests at the last drift, in words; "" if there was none.
    """

    def __init__(
        self, policy: Policy, *, rate: float | None = None, relearns: bool = True, seed: int = 0
    ) -> None:
        self._policy, self._rate, self._relearns = policy, rate, relearns
        self._observer = policy if isinstance(policy, ObservingPolicy) else None
        self._releaser = policy if isinstance(policy, ReleasingPolicy) else None
        self._initial = deepcopy(policy.state())
        self._rng = np.random.default_rng((seed, 3))  # other draws than a policy's or a gate's
        self._seed = seed
        self.behind: Callable[[], float] | None = None
        self.testing = True
        self._monitor, self._ranks, self._pace = Monitor(), ScoreRanks(seed), PaceTest(rate)
        self._task: tuple[str, float] | None = None  # of the last output: its id's first part, ĉ
        self._untested = array("d")  # `ROW` values of each output, one after another
        self._catches_up = False  # after a drift: draw in addition to the policy if it is behind
        self._suspected = False  # there is some evidence of drift
        self._model: ErrorModel | None = None
        self._recalibration = Recalibration()
        self._recent: deque[Candidate] = deque(maxlen=RECENT)
        self._known: deque[Known] = deque(maxlen=KNOWN)
        self._labels = 0  # learned since the start, or since what was learned was dropped
        self._next_fit = T0
        self.health = PolicyHealth.COLD
        self.why = ""
        self._relearning = False
        self._pending: dict[str, int] = {}  # id of what is to be verified -> what decided on it
        self._after = self._verified = 0  # candidates after the warm-up, and how many verified

    @property
    def phase(self) -> str:
        return RELEARNING if self._relearning else self._policy.phase

    @property
    def shift(self) -> float:
        """Evidence that the scores are not exchangeable with earlier ones, see `Monitor.shift`."""
        return self._monitor.shift

    def decide(self, candidate: Candidate) -> Decision:
        if has_signal(candidate):
            self._recent.append(candidate)
        if not (self._relearning or self._catches_up or self._suspected):
            return self._policy.decide(candidate)
        rate = self._rate or (1 + self._verified) / (2 + self._after)
        extra = self._extra_rate(rate)
        if not self._relearning:
            return self._with_extra_draw(self._policy.decide(candidate), extra)
        rate = min(rate + extra, 1.0)
        verify = bool(self._rng.random() < rate)
        reason = Reason.EXPLORE if verify else Reason.POLICY
        return Decision(verify, reason, propensity=rate, version=self._labels)

    def observe(self, candidate: Candidate, decision: Decision) -> None:
        """Pass the final decision on; while relearning, give the policy its new warm-up: the
        candidates that are actually verified, except forced ones.
        """
        if not self._relearning and self._observer is not None:
            self._observer.observe(candidate, decision)
        if decision.reason is not Reason.WARMUP:
            self._after += 1
            self._verified += decision.verify
        if decision.verify:
            self._note_selected(candidate, decision)
        if self.testing and not self._given_up:
            self._test_output(candidate, decision)

    def _note_selected(self, candidate: Candidate, decision: Decision) -> None:
        """Note what selected the candidate; a draw while relearning joins the new warm-up."""
        drawn = self._relearning and decision.reason is not Reason.FORCED
        if drawn:
            proposal = self._policy.decide(candidate)
            if self._observer is not None:
                self._observer.observe(candidate, proposal)
            self._relearning = self._policy.phase == "warmup"
        self._pending[candidate.id] = HANDED if drawn else OWN

    def release(self, candidate: Candidate, decision: Decision) -> None:
        """Pass it on, where the policy as it is now decided."""
        decided = self._pending.get(candidate.id, OWN)
        if self._releaser is not None and decided == OWN and not self._relearning:
            self._releaser.release(candidate, decision)

    def update(self, candidate: Candidate, decision: Decision, outcome: Outcome) -> None:
        decided = self._pending.pop(candidate.id, OWN)
        if decided == OLD:
            return
        if decided == HANDED:
            self._policy.update(candidate, Decision(True, Reason.WARMUP), outcome)
        elif not self._relearning:
            self._policy.update(candidate, decision, outcome)
        if outcome.error is not None and decision.reason is not Reason.FORCED:
            self._test_label(candidate, outcome.error)

    def drift(self, why: str) -> None:
        """React to drift: relearn, or only report it."""
        self.why = why
        if self._relearns:
            self.relearn()
        else:
            self.health = PolicyHealth.DRIFTED

    def restart(self) -> None:
        """Begin with the policy's warm-up again, as if no candidate had come."""
        self._policy.restore(deepcopy(self._initial))
        self._pending = dict.fromkeys(self._pending, OLD)

    def relearn(self) -> None:
        """Reset the policy for a reason outside the tests, such as another model."""
        self.restart()
        self._monitor.reset()
        self._suspected = False
        self._ranks = ScoreRanks(self._seed)
        del self._untested[:]
        self._pace.reset()
        self._catches_up = self.testing
        self._model = None
        self._recalibration = Recalibration()
        self._recent.clear()
        self._known.clear()
        self._labels, self._next_fit = 0, T0
        self.health = PolicyHealth.DRIFTED
        self._relearning = self._policy.phase == "warmup"

    @property
    def _given_up(self) -> bool:
        return not self._relearns and self.health is PolicyHealth.DRIFTED

    def _extra_rate(self, rate: float) -> float:
        """Probability of an additional draw, so that the budget is spent."""
        most = rate if self._catches_up else 0.0
        starving = self._verified < STARVING * rate * self._after
        if self._suspected and self._relearns and starving:
            most = max(most, SUSPECTED)
        if not most or self.behind is None:
            return 0.0
        return min(max((self.behind() - LAG) / CATCH_UP, 0.0), most)

    def _with_extra_draw(self, proposal: Decision, extra: float) -> Decision:
        """The proposal, after one more draw of probability `extra`; a warm-up has none."""
        if not extra or proposal.reason is Reason.WARMUP:
            return proposal
        drawn, p = bool(self._rng.random() < extra), proposal.propensity
        return Decision(
            proposal.verify or drawn,
            Reason.EXPLORE if drawn and not proposal.verify else proposal.reason,
            proposal.score,
            proposal.threshold,
            proposal.stratum,
            p + extra * (1.0 - p),
            proposal.version,
        )

    def _test_output(self, candidate: Candidate, decision: Decision) -> None:
        """Compare the output with earlier ones, and the pace with the earlier pace."""
        before, self._task = self._task, _task_of(candidate) if "/" in candidate.id else None
        if self._task is None or self._task != before:
            h, bet_on = candidate.signals, decision.reason is not Reason.WARMUP
            row = (h.h1, h.h2, h.h3, candidate.cost_estimate, h.n_tokens, bet_on)
            self._untested.extend(row)
            n = len(self._untested) // ROW
            if n >= (FINE if self._suspected else BATCH) and n % FINE == 0:
                self._test_scores()
        if not self._relearning and self._policy.phase not in UNSTEADY:
            self._pace.observe(decision.verify or decision.reason in REFUSED)
            if self._pace.underspent:
                self.drift(UNDERSPENT)

    def _test_scores(self) -> None:
        rows = np.array(self._untested).reshape(-1, ROW)
        del self._untested[:]
        scores = self._ranks(rows[:, :-1])
        if len(scores):
            self._monitor.observe_outputs(scores[rows[:, -1] == 1.0])
            self._react_to_monitor()

    def _test_label(self, candidate: Candidate, error: Label) -> None:
        """Compare the label with its prediction, then learn it."""
        if self._given_up or not has_signal(candidate):
            return
        raw = raw_of(candidate)
        if self.testing and self._labels >= self._next_fit:
            self._next_fit = min(int(self._labels * GROWTH) + 1, self._labels + AT_MOST)
            recent = RawTable.of([raw_of(c) for c in self._recent])
            self._model = ErrorModel.fit(recent, KnownTable.of(self._known))
        if self.testing and self._model is not None:
            # between clean labels and those that the fit assumes
            q = as_seen(self._model(raw)[0], FLIPPED / 2.0)
            p, slack = self._recalibration(q), SLACK / self._labels
            self._recalibration.learn(q, error)
            self._monitor.observe_label(error, max(p - slack, 0.0), min(p + slack, 1.0))
            if self._react_to_monitor():
                return
        self._known.append(Known(raw, error, nan))
        self._labels += 1
        if self._labels >= T0 and self.phase not in ("warmup", RELEARNING):
            self.health = PolicyHealth.VALID

    def _react_to_monitor(self) -> bool:
        """React to the monitor's latest result; returns whether there is drift."""
        self._suspected = self._monitor.wealth >= EVIDENCE
        if self._monitor.drifted:
            self.drift(self._monitor.why)
            return True
        return False

    def state(self) -> dict[str, Any]:
        return {
            "policy": self._policy.state(),
            "testing": self.testing,
            "monitor": self._monitor.state(),
            "ranks": self._ranks.state(),
            "pace": self._pace.state(),
            "task": None if self._task is None else list(self._task),
            "untested": list(self._untested),
            "catches_up": self._catches_up,
            "model": None if self._model is None else self._model.state(),
            "recalibration": self._recalibration.state(),
            "recent": [_row_of(recent) for recent in self._recent],
            "known": [[list(known.raw), known.error] for known in self._known],
            "labels": self._labels,
            "next_fit": self._next_fit,
            "health": self.health,
            "why": self.why,
            "relearning": self._relearning,
            "pending": dict(self._pending),
            "account": [self._after, self._verified],
            "rng": dict(self._rng.bit_generator.state),
        }

    def restore(self, state: dict[str, Any]) -> None:
        self._policy.restore(state["policy"])
        self.testing = state["testing"]
        self._monitor.restore(state["monitor"])
        self._suspected = self._monitor.wealth >= EVIDENCE
        self._ranks.restore(state["ranks"])
        self._pace.restore(state["pace"])
        self._task = None if state["task"] is None else (state["task"][0], state["task"][1])
        self._untested = array("d", state["untested"])
        self._catches_up = state["catches_up"]
        model = state["model"]
        self._model = None if model is None else ErrorModel.restored(model)
        self._recalibration.restore(state["recalibration"])
        self._recent = deque(map(_candidate_of, state["recent"]), maxlen=RECENT)
        self._known = deque((Known(Raw(*raw), y, nan) for raw, y in state["known"]), maxlen=KNOWN)
        self._labels, self._next_fit = state["labels"], state["next_fit"]
        self.health, self.why = PolicyHealth(state["health"]), state["why"]
        self._relearning, self._pending = state["relearning"], dict(state["pending"])
        self._after, self._verified = state["account"]
        self._rng.bit_generator.state = state["rng"]


def _row_of(candidate: Candidate) -> list[Any]:
    """The data of a candidate for a fit, as JSON values."""
    h = candidate.signals
    return [h.h1, h.h2, h.h3, h.n_tokens, candidate.cost_estimate, dict(candidate.features)]


def _candidate_of(row: list[Any]) -> Candidate:
    h1, h2, h3, n_tokens, cost_estimate, features = row
    return Candidate("", Signals(h1, h2, h3, n_tokens), cost_estimate, features)


def _task_of(candidate: Candidate) -> tuple[str, float]:
    """The common key of several outputs of one task, whose ids have a slash."""
    return candidate.id.rpartition("/")[0], candidate.cost_estimate
