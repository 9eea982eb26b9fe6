"""HGA: heterogeneity-gated allocation (paper, Section "Heterogeneity-Gated Allocation")."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from math import inf, nan
from typing import Any, ClassVar, Literal, NamedTuple, get_args

import numpy as np

from gatekeeper.arguments import check_beta, check_choice, check_count, is_number
from gatekeeper.budget import affordable
from gatekeeper.errors import BadInputError
from gatekeeper.policies.cst import CST
from gatekeeper.policies.descriptor import Learns, Need
from gatekeeper.policies.missing_signal import OnMissing
from gatekeeper.policies.score import T0
from gatekeeper.policies.threshold import Threshold
from gatekeeper.stats.heterogeneity import correlation, dispersion
from gatekeeper.types import BoolArray, Candidate, Decision, FloatArray, IntArray, Outcome, Reason

__all__ = [
    "EPSILON_H",
    "EPSILON_P",
    "HGA",
    "CalibrationSample",
    "GateEvidence",
    "Rule",
    "weigh",
]

Labels = Literal["partial", "full"]
Test = Literal["paper", "heterogeneity"]
EPSILON_H = 0.002  # least Var_k(ρ_k) for the gate to open
EPSILON_P = 0.03  # least max p_k - min p_k
SAMPLED = 0.1  # share of the candidates after the calibration that are still drawn at random
AS_GOOD = 0.02  # hit rates closer than this do not close an open gate


@dataclass(frozen=True, slots=True)
class Rule:
    """When the gate opens."""

    epsilon_h: float = EPSILON_H
    epsilon_p: float = EPSILON_P
    test: Test = "paper"
    level: float = 0.05  # of the test, if it is "heterogeneity"
    was_open: bool = False  # once open, it closes less readily


class Drawn(NamedTuple):
    """One candidate of the calibration, with what each policy would have done."""

    score: float
    stratum: int
    cost_estimate: float
    threshold: bool  # Threshold's proposal to verify it
    cst: bool  # CST's


@dataclass(frozen=True, slots=True, eq=False)
class CalibrationSample:
    """The calibration's candidates that have a score; arrays of shape (n,).

    `error` and `stratum` count only where the label is known, `cost` everywhere.
    """

    score: FloatArray
    stratum: IntArray
    threshold: BoolArray  # Threshold's proposal to verify
    cst: BoolArray  # CST's
    error: FloatArray
    cost: FloatArray
    known: BoolArray  # whether the label is


@dataclass(frozen=True, slots=True)
class GateEvidence:
    """The result of the calibration; the gate opens if all conditions of its rule hold."""

    hit_threshold: float  # hit rate in [0, 1]; NaN where nothing was verified
    hit_cst: float
    dispersion: float  # Var_k(ρ_k); without sampling noise where that was tested
    base_rate_spread: float  # max p_k - min p_k
    labels: int
    open: bool
    p_value: float = nan  # of "all ρ_k are equal", where that was tested


class HGA:
    """Runs Threshold or CST, chosen by a calibration.

    After the warm-up comes a calibration of `calibration` candidates. Its labels give ρ_k (the
    point-biserial correlation of score and error in stratum k), the error rates p_k, and the hit
    rates that Threshold and CST would have had on it, each under its own cap β Σ c. The gate opens,
    for CST, iff hit(CST) ≥ hit(Threshold) and Var_k(ρ_k) ≥ `epsilon_h` and max p_k - min p_k ≥
    `epsilon_p`; an undefined hit rate keeps it closed. Strata with fewer than two labels of either
    kind have no ρ_k; candidates without signals are ignored.

    Parameters
    ----------
    beta
        Share of the full cost to spend, in (0, 1).
    calibration
        Number of candidates of the calibration.
    strata
        K, how many cost strata CST has.
    epsilon_h, epsilon_p
        Least Var_k(ρ_k) and least spread of error rates for the gate to open, at least 0.
    test
        "paper": the rule above. "heterogeneity", a departure from the paper: Var_k(ρ_k) of a few
        dozen labels exceeds 0.002 by noise alone, so the gate requires instead that Cochran's test
        reject equal ρ_k. It tests repeatedly: a tenth of the candidates after the calibration are
        drawn as in the calibration, and the latest `calibration` of them are tested each time half
        of them are new, the j-th time at level `alpha` / (j (j + 1)). So it opens falsely in at
        most `alpha` of all streams, of any length. Once open, it closes when no dispersion beyond
        noise is left, or when CST's hit rate or the spread of error rates falls clearly short.
    alpha
        Level of that test, in (0, 1).
    warmup
        How many candidates come first, all verified.
    labels
        "partial" (live): a calibration candidate is verified with probability β and its label
        weighs 1/β; costs never observed are estimated from ĉ. "full" (replay): the policy is shown
        every label of the calibration, and nothing is verified for it.
    on_missing
        For a candidate without signals: "uniform" (probability β), "verify" or "skip".
    seed
        Seed of the draws, at least 0.
    """

    name = "hga"
    label = "HGA"
    description = (
        "Threshold or CST, chosen by its calibration on the first half; where CST is better, it "
        "usually finds up to two points of recall less than CST"
    )
    learns: ClassVar[Learns] = "warm-up"
    needs: ClassVar[tuple[Need, ...]] = ("warmup", "calibration", "labels")
    options: ClassVar[tuple[str, ...]] = (
        "strata",
        "epsilon_h",
        "epsilon_p",
        "test",
        "alpha",
        "on_missing",
    )

    def __init__(
        self,
        beta: float,
        *,
        calibration: int = 500,
        strata: int = 4,
        epsilon_h: float = EPSILON_H,
        epsilon_p: float = EPSILON_P,
        test: Test = "paper",
        alpha: float = 0.05,
        warmup: int = T0,
        labels: Labels = "partial",
        on_missing: OnMissing = "uniform",
        seed: int = 0,
    ) -> None:
        check_choice("labels", labels, get_args(Labels))
        check_choice("test", test, get_args(Test))
        if not (is_number(alpha) and 0.0 < alpha < 1.0):
            raise BadInputError(f"alpha={alpha!r}: a probability between 0 and 1, such as 0.05")
        for name, least in (("epsilon_h", epsilon_h), ("epsilon_p", epsilon_p)):
            if not (is_number(least) and 0.0 <= least < inf):
                raise BadInputError(f"{name}={least!r}: what the gate asks for is at least 0")
        self.beta = check_beta(beta)
        self.calibration = check_count("calibration", calibration, least=0)
        self.strata = strata
        self.epsilon_h = epsilon_h
        self.epsilon_p = epsilon_p
        self.test: Test = test
        self.alpha = alpha
        self.warmup = warmup
        self.labels: Labels = labels
        self.on_missing = on_missing
        self.seed = seed
        self.evidence: GateEvidence | None = None  # known once the calibration is over
        self._threshold = Threshold(beta, warmup=warmup, on_missing=on_missing, seed=seed)
        self._cst = CST(beta, strata=strata, warmup=warmup, on_missing=on_missing, seed=seed)
        self._rng = np.random.default_rng(seed)
        self._left = calibration
        self._judged = 0  # number of tests so far
        self._new = 0  # drawn since then
        self._seen: dict[str, Drawn] = {}
        self._found: dict[str, tuple[int, float]] = {}  # id -> error label, true cost

    @property
    def phase(self) -> str:
        if self._threshold.phase == "warmup":
            return "warmup"
        return "calibration" if self._left else "steady"

    def decide(self, candidate: Candidate) -> Decision:
        phase = self.phase
        if phase == "steady":
            if self.evidence is None or (self._rolling and 2 * self._new >= self.calibration):
                self._judge()
            if not self._rolling:
                return self._deployed.decide(candidate)
        global_, local = self._threshold.decide(candidate), self._cst.decide(candidate)
        if phase == "warmup" or global_.reason is Reason.MISSING_SIGNAL:
            self._left -= phase == "calibration"
            return global_
        if phase == "steady":
            if self._rng.random() >= SAMPLED:
                return local if self._deployed is self._cst else global_
            self._new += 1
        else:
            self._left -= 1
        assert local.stratum is not None
        self._seen[candidate.id] = Drawn(
            local.score, local.stratum, candidate.cost_estimate, global_.verify, local.verify
        )
        rate = 0.0 if self.labels == "full" and phase == "calibration" else self.beta
        return Decision(
            bool(self._rng.random() < rate),
            Reason.CALIBRATION,
            score=local.score,
            stratum=local.stratum,
            propensity=rate,
            version=local.version,
        )

    def update(self, candidate: Candidate, decision: Decision, outcome: Outcome) -> None:
        if self.evidence is not None and not self._rolling:
            self._deployed.update(candidate, decision, outcome)
            return
        self._threshold.update(candidate, decision, outcome)
        self._cst.update(candidate, decision, outcome)
        # An output forced by a caller was not drawn, and would bias the estimates.
        drawn = decision.reason is Reason.CALIBRATION and candidate.id in self._seen
        if drawn and outcome.error is not None:
            cost = candidate.cost_estimate if outcome.cost is None else outcome.cost
            self._found[candidate.id] = (outcome.error, cost)

    @property
    def _deployed(self) -> Threshold | CST:
        return self._cst if self.evidence and self.evidence.open else self._threshold

    @property
    def _rolling(self) -> bool:
        return self.test == "heterogeneity" and self.calibration > 0

    def _judge(self) -> None:
        """Test the evidence of the drawn candidates; later labels do not change the result."""
        self._judged += 1
        self._new = 0
        ids = list(self._seen)[-self.calibration :]
        self._seen = {id_: self._seen[id_] for id_ in ids}
        self._found = {id_: self._found[id_] for id_ in ids if id_ in self._found}
        rule = Rule(
            self.epsilon_h,
            self.epsilon_p,
            self.test,
            level=self.alpha / (self._judged * (self._judged + 1)),
            was_open=self.evidence is not None and self.evidence.open,
        )
        self.evidence = weigh(self._sample(), beta=self.beta, strata=self.strata, rule=rule)
        if not self._rolling:
            self._seen, self._found = {}, {}

    def _sample(self) -> CalibrationSample:
        """The drawn candidates as arrays. A cost never observed is estimated from ĉ."""
        rows = list(self._seen.values())
        found = [self._found.get(id_, (0, 0.0)) for id_ in self._seen]
        known = np.array([id_ in self._found for id_ in self._seen], dtype=bool)
        y = np.array([error for error, _ in found], dtype=np.float64)
        c = np.array([cost for _, cost in found], dtype=np.float64)
        estimate = np.array([row.cost_estimate for row in rows], dtype=np.float64)
        if known.any():
            c[~known] = estimate[~known] * (c[known].sum() / estimate[known].sum())
        return CalibrationSample(
            np.array([row.score for row in rows], dtype=np.float64),
            np.array([row.stratum for row in rows], dtype=np.intp),
            np.array([row.threshold for row in rows], dtype=bool),
            np.array([row.cst for row in rows], dtype=bool),
            y,
            c,
            known,
        )

    def state(self) -> dict[str, Any]:
        return {
            "left": self._left,
            "judged": [self._judged, self._new],
            "evidence": None if self.evidence is None else asdict(self.evidence),
            "seen": {id_: list(row) for id_, row in self._seen.items()},
            "found": dict(self._found),
            "rng": dict(self._rng.bit_generator.state),
            "threshold": self._threshold.state(),
            "cst": self._cst.state(),
        }

    def restore(self, state: dict[str, Any]) -> None:
        evidence = state["evidence"]
        self._left = state["left"]
        self._judged, self._new = state["judged"]
        self.evidence = None if evidence is None else GateEvidence(**evidence)
        self._seen = {id_: Drawn(*row) for id_, row in state["seen"].items()}
        self._found = {id_: tuple(found) for id_, found in state["found"].items()}
        self._rng.bit_generator.state = state["rng"]
        self._threshold.restore(state["threshold"])
        self._cst.restore(state["cst"])


def weigh(
    sample: CalibrationSample, *, beta: float, strata: int = 4, rule: Rule = Rule()
) -> GateEvidence:
    """The gate's evidence from a calibration.

    Parameters
    ----------
    sample
        The calibration's candidates.
    beta
        Share of their cost that each of the two policies may spend.
    strata
        K, how many cost strata.
    rule
        When the gate opens.
    """
    known = sample.known

    def hit_rate(wanted: BoolArray) -> float:
        verified = affordable(wanted, sample.cost, beta * sample.cost.sum()) & known
        # every label was drawn with the same probability, so that 1/propensity cancels
        return float(sample.error[verified].mean()) if verified.any() else nan

    hit_threshold, hit_cst = hit_rate(sample.threshold), hit_rate(sample.cst)
    rates, rho, variance = _by_stratum(sample, strata)
    spread = max(rates) - min(rates) if rates else 0.0
    if rule.test == "paper":
        h, p_value = float(np.var(rho)) if rho else 0.0, nan
        dispersed = h >= rule.epsilon_h
    else:
        _, h, p_value = dispersion(rho, variance)
        dispersed = h > 0.0 if rule.was_open else p_value < rule.level
    slack = AS_GOOD if rule.was_open else 0.0
    return GateEvidence(
        hit_threshold,
        hit_cst,
        h,
        spread,
        labels=int(known.sum()),
        open=bool(
            hit_cst >= hit_threshold - slack and dispersed and spread >= rule.epsilon_p - slack
        ),
        p_value=p_value,
    )


def _by_stratum(
    sample: CalibrationSample, strata: int
) -> tuple[list[float], list[float], list[float]]:
    """The error rates p_k of strata with a label; ρ_k of those with two of either kind, and the
    variances of these.
    """
    rates, rho, variance = [], [], []
    for k in range(strata):
        mine = sample.known & (sample.stratum == k)
        labels = sample.error[mine]
        if labels.size:
            rates.append(float(labels.mean()))
        wrong = int(labels.sum())
        if min(wrong, labels.size - wrong) >= 2:
            n = labels.size
            estimate = correlation(sample.score[mine], labels, np.ones(n), float(n))
            rho.append(estimate[0])
            variance.append(estimate[1])
    return rates, rho, variance
