"""HGA: heterogeneity-gated allocation (paper, Section "Heterogeneity-Gated Allocation")."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from math import inf
from typing import Any, Literal, NamedTuple, get_args

import numpy as np
from numpy.typing import NDArray

from gatekeeper.budget import affordable
from gatekeeper.errors import BadInputError
from gatekeeper.policies._checks import check_beta, check_count
from gatekeeper.policies._missing import OnMissing
from gatekeeper.policies._warmup import T0
from gatekeeper.policies.cst import CST
from gatekeeper.policies.threshold import Threshold
from gatekeeper.types import Candidate, Decision, FloatArray, Outcome, Reason

__all__ = ["EPSILON_H", "EPSILON_P", "HGA", "GateEvidence", "weigh"]

Labels = Literal["partial", "full"]
EPSILON_H = 0.002  # least Var_k(ρ_k) for the gate to open
EPSILON_P = 0.03  # least max p_k - min p_k


class Calibrated(NamedTuple):
    """One candidate of the calibration, with what each policy would have done."""

    score: float
    stratum: int
    cost_estimate: float
    threshold: bool  # Threshold wanted to verify it
    cst: bool


@dataclass(frozen=True, slots=True)
class GateEvidence:
    """What the calibration found; the gate opens iff all three conditions hold."""

    hit_threshold: float  # hit rate in [0, 1]; NaN where nothing was verified
    hit_cst: float
    dispersion: float  # Var_k(ρ_k)
    base_rate_spread: float  # max p_k - min p_k
    labels: int
    open: bool


class HGA:
    """Runs Threshold or CST, whichever the calibration speaks for.

    After the warm-up comes a calibration of `calibration` candidates. Its labels give ρ_k (the
    point-biserial correlation of score and error in stratum k), the error rates p_k, and the hit
    rates that Threshold and CST would have had on it, each under its own cap β Σ c. The gate
    opens, for CST, iff hit(CST) ≥ hit(Threshold) and Var_k(ρ_k) ≥ `epsilon_h` and
    max p_k - min p_k ≥ `epsilon_p`; an undefined hit rate keeps it closed. Strata with fewer than
    two labels of either kind have no ρ_k; candidates without signals take no part.

    `labels="partial"` (live): a calibration candidate is verified with probability β and its
    label weighs 1/β; costs never observed are estimated from ĉ. `labels="full"` (replay): every
    label of the calibration is shown, and nothing is verified for it.
    """

    name = "hga"

    def __init__(
        self,
        beta: float,
        *,
        calibration: int = 500,
        strata: int = 4,
        epsilon_h: float = EPSILON_H,
        epsilon_p: float = EPSILON_P,
        warmup: int = T0,
        labels: Labels = "partial",
        on_missing: OnMissing = "uniform",
        seed: int = 0,
    ) -> None:
        if labels not in get_args(Labels):
            raise BadInputError(f"labels={labels!r}: choose 'partial' (live) or 'full' (replay)")
        for name, least in (("epsilon_h", epsilon_h), ("epsilon_p", epsilon_p)):
            if not 0.0 <= least < inf:
                raise BadInputError(f"{name}={least!r}: what the gate asks for is at least 0")
        self.beta = check_beta(beta)
        self.calibration = check_count("calibration", calibration, least=0)
        self.strata = strata
        self.epsilon_h = epsilon_h
        self.epsilon_p = epsilon_p
        self.warmup = warmup
        self.labels: Labels = labels
        self.on_missing = on_missing
        self.seed = seed
        self.evidence: GateEvidence | None = None  # known once the calibration is over
        self._threshold = Threshold(beta, warmup=warmup, on_missing=on_missing, seed=seed)
        self._cst = CST(beta, strata=strata, warmup=warmup, on_missing=on_missing, seed=seed)
        self._rng = np.random.default_rng(seed)
        self._left = calibration
        self._seen: dict[str, Calibrated] = {}
        self._found: dict[str, tuple[int, float]] = {}  # id -> error label, true cost

    @property
    def phase(self) -> str:
        if self._threshold.phase == "warmup":
            return "warmup"
        return "calibration" if self._left else "steady"

    def decide(self, candidate: Candidate) -> Decision:
        phase = self.phase
        if phase == "steady":
            if self.evidence is None:
                self._judge()
            return self._deployed.decide(candidate)
        global_, local = self._threshold.decide(candidate), self._cst.decide(candidate)
        if phase == "warmup":
            return global_
        self._left -= 1
        if global_.reason is Reason.MISSING_SIGNAL:
            return global_
        assert local.stratum is not None
        self._seen[candidate.id] = Calibrated(
            local.score, local.stratum, candidate.cost_estimate, global_.verify, local.verify
        )
        rate = self.beta if self.labels == "partial" else 0.0
        return Decision(
            bool(self._rng.random() < rate),
            Reason.CALIBRATION,
            score=local.score,
            stratum=local.stratum,
            propensity=rate,
            version=local.version,
        )

    def update(self, candidate: Candidate, decision: Decision, outcome: Outcome) -> None:
        if self.evidence is not None:
            self._deployed.update(candidate, decision, outcome)
            return
        self._threshold.update(candidate, decision, outcome)
        self._cst.update(candidate, decision, outcome)
        # What a caller forced was not drawn, and would bias what the draws estimate.
        drawn = decision.reason is Reason.CALIBRATION and candidate.id in self._seen
        if drawn and outcome.error is not None:
            cost = candidate.cost_estimate if outcome.cost is None else outcome.cost
            self._found[candidate.id] = (outcome.error, cost)

    @property
    def _deployed(self) -> Threshold | CST:
        return self._cst if self.evidence and self.evidence.open else self._threshold

    def _judge(self) -> None:
        """Weigh the evidence of the calibration; labels that come later do not change it."""
        ids = list(self._seen)
        rows = list(self._seen.values())
        known = np.array([id_ in self._found for id_ in ids], dtype=bool)
        y = np.array([self._found[i][0] if i in self._found else 0 for i in ids], dtype=np.float64)
        s = np.array([row.score for row in rows], dtype=np.float64)
        k = np.array([row.stratum for row in rows], dtype=np.intp)
        estimate = np.array([row.cost_estimate for row in rows], dtype=np.float64)
        c = np.array([self._found[i][1] if i in self._found else 0.0 for i in ids])
        if known.any():
            c[~known] = estimate[~known] * (c[known].sum() / estimate[known].sum())

        self.evidence = weigh(
            s,
            k,
            np.array([row.threshold for row in rows], dtype=bool),
            np.array([row.cst for row in rows], dtype=bool),
            y,
            c,
            known,
            beta=self.beta,
            strata=self.strata,
            epsilon_h=self.epsilon_h,
            epsilon_p=self.epsilon_p,
        )
        self._seen, self._found = {}, {}

    def state(self) -> dict[str, Any]:
        return {
            "left": self._left,
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
        self.evidence = None if evidence is None else GateEvidence(**evidence)
        self._seen = {id_: Calibrated(*row) for id_, row in state["seen"].items()}
        self._found = {id_: tuple(found) for id_, found in state["found"].items()}
        self._rng.bit_generator.state = state["rng"]
        self._threshold.restore(state["threshold"])
        self._cst.restore(state["cst"])


def weigh(
    score: FloatArray,
    stratum: NDArray[np.intp],
    threshold: NDArray[np.bool_],
    cst: NDArray[np.bool_],
    error: FloatArray,
    cost: FloatArray,
    known: NDArray[np.bool_],
    *,
    beta: float,
    strata: int = 4,
    epsilon_h: float = EPSILON_H,
    epsilon_p: float = EPSILON_P,
) -> GateEvidence:
    """The gate's evidence from calibration candidates that have a score; arrays of shape (n,).

    `threshold` and `cst` are what each wanted to verify; `error` and `stratum` count only where
    the label is `known`, `cost` everywhere.
    """

    def hit_rate(wanted: NDArray[np.bool_]) -> float:
        verified = affordable(wanted, cost, beta * cost.sum()) & known
        # every label was drawn with the same probability, so that 1/propensity cancels
        return float(error[verified].mean()) if verified.any() else float("nan")

    hit_threshold, hit_cst = hit_rate(threshold), hit_rate(cst)
    rho, p = [], []
    for k in range(strata):
        mine = known & (stratum == k)
        if mine.any():
            p.append(float(error[mine].mean()))
        wrong = int(error[mine].sum())
        if min(wrong, int(mine.sum()) - wrong) >= 2:
            constant = np.ptp(score[mine]) == 0.0
            rho.append(0.0 if constant else float(np.corrcoef(score[mine], error[mine])[0, 1]))
    dispersion = float(np.var(rho)) if rho else 0.0
    spread = max(p) - min(p) if p else 0.0
    return GateEvidence(
        hit_threshold,
        hit_cst,
        dispersion,
        spread,
        labels=int(known.sum()),
        open=bool(hit_cst >= hit_threshold and dispersion >= epsilon_h and spread >= epsilon_p),
    )
