"""The names that the page shows for reasons, verdicts, policies and partitions."""

from __future__ import annotations

from gatekeeper.types import PolicyHealth, Reason, Verdict

__all__ = ["DRIFTED", "LEARNERS", "PARTITIONS", "POLICIES", "POLICY_HEALTH", "REASONS", "VERDICTS"]

REASONS = {
    Reason.WARMUP: "warm-up: the first outputs, all verified",
    Reason.POLICY: "policy: score compared with a threshold",
    Reason.EXPLORE: "exploration: drawn at random",
    Reason.CALIBRATION: "calibration: drawn at random, for labels that the policy needs first",
    Reason.BUDGET_EXHAUSTED: "budget exhausted: selected by the policy, no budget left",
    Reason.MISSING_SIGNAL: "missing signal: no log-probabilities, so drawn at random",
    Reason.FORCED: "forced: requested by the caller",
}
VERDICTS = {
    Verdict.PASSED: "correct",
    Verdict.FAILED: "wrong: a check failed",
    Verdict.TIMEOUT: "wrong: time limit exceeded",
    Verdict.RESOURCE_EXCEEDED: "wrong: memory, output or another limit exceeded",
    Verdict.NO_ANSWER: "wrong: no answer to check",
    Verdict.INFRA_ERROR: "no verdict: the verifier failed; not counted as wrong",
}
POLICY_HEALTH = {
    PolicyHealth.COLD: "cold: too few labels so far",
    PolicyHealth.VALID: "valid: labels agree with predictions",
    PolicyHealth.DRIFTED: "drifted: labels or their conditions changed",
}
DRIFTED = {
    "relearn": " The policy then learned from scratch, from outputs drawn at random within the "
    "budget.",
    "report": " The policy kept what it had learned (on_drift='report').",
}
POLICIES = {
    "random": "Random: drawn by lot",
    "threshold": "Threshold: one for all",
    "cst": "CST: one per cost stratum",
    "hga": "HGA: Threshold or CST, as the first half advises",
    "split-conformal": "Split conformal: one per stratum, fixed after the first half",
    "oracle": "Best possible: knows all labels",
}
LEARNERS = {
    "cst-memory": "CST with memory: similar outputs that were wrong count too",
    "mp-adapt": "MP-Adapt: learns from every label what to look at",
    "mp-strat": "MP-Strat: the same in each cost stratum",
}
PARTITIONS = {
    "none": "Threshold: one threshold for all",
    "cost": "CST: one threshold per cost stratum",
    "random": "control: one threshold per random group; no gain expected",
    "signal": "control: one threshold per level of the score; no gain expected",
    "oracle": "best possible selection: all labels known",
}
