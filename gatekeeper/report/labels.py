"""What the page calls reasons, verdicts, states, policies and partitions."""

from __future__ import annotations

from gatekeeper.types import Calibration, Reason, Verdict

__all__ = ["CALIBRATIONS", "DRIFTED", "LEARNERS", "POLICIES", "REASONS", "RULES", "VERDICTS"]

REASONS = {
    Reason.WARMUP: "warm-up: the first ones, all verified to learn what the signals look like",
    Reason.POLICY: "the policy's choice, by score and threshold",
    Reason.EXPLORE: "drawn at random, to keep learning",
    Reason.CALIBRATION: "drawn at random, to measure what the policy needs to know",
    Reason.BUDGET_EXHAUSTED: "wanted, and the budget had no room",
    Reason.MISSING_SIGNAL: "came without log-probabilities: drawn at random",
    Reason.FORCED: "asked for by the caller",
}
VERDICTS = {
    Verdict.PASSED: "right",
    Verdict.FAILED: "wrong: a check failed",
    Verdict.TIMEOUT: "wrong: it ran too long",
    Verdict.RESOURCE_EXCEEDED: "wrong: it took too much memory, output or the like",
    Verdict.NO_ANSWER: "wrong: nothing in it could be checked",
    Verdict.INFRA_ERROR: "could not tell: the verifier itself failed; not counted as wrong",
}
CALIBRATIONS = {
    Calibration.COLD: "cold: too few labels to say",
    Calibration.VALID: "valid: labels were as predicted",
    Calibration.DRIFTED: "drifted: what had been learned no longer held",
}
DRIFTED = {
    "relearn": " The policy then learned anew, from outputs drawn at random within the budget.",
    "report": " The policy went on with what it had learned, as it was told to.",
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
RULES = {
    "none": "Threshold: one for all",
    "cost": "CST: one per cost stratum",
    "random": "one per random group; a control, should bring nothing",
    "signal": "one per level of the score; a control, should bring nothing",
    "oracle": "the best possible choice, which knows all labels",
}
