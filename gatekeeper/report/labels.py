"""The names that the page shows for reasons, verdicts and partitions."""

from __future__ import annotations

from gatekeeper.analysis.diagnosis import Partition
from gatekeeper.types import PolicyHealth, Reason, Verdict

__all__ = ["DRAWN", "DRIFTED", "PARTITIONS", "POLICY_HEALTH", "REASONS", "VERDICTS"]

REASONS = {
    Reason.WARMUP: "warm-up: the first outputs, all verified",
    Reason.POLICY: "policy: score compared with a threshold",
    Reason.EXPLORE: "exploration: drawn at random",
    Reason.CALIBRATION: "calibration: drawn at random, for labels that the policy needs first",
    Reason.BUDGET_EXHAUSTED: "budget exhausted: selected by the policy, no budget left",
    Reason.GROUP_EXHAUSTED: "group exhausted: selected by the policy, no budget left for its group",
    Reason.BUDGET_UNAVAILABLE: "budget unavailable: selected by the policy, no database to ask",
    Reason.MISSING_SIGNAL: "missing signal: no log-probabilities, so drawn at random",
    Reason.FORCED: "forced: requested by the caller",
}
DRAWN = "policy: drawn with a known probability, for the score"  # with the goal "score"
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
    PolicyHealth.VALID: "valid: outputs and labels are as before",
    PolicyHealth.DRIFTED: "drifted: outputs, labels or their conditions changed",
}
DRIFTED = {
    "relearn": " The policy then learned from scratch, from outputs drawn at random within the "
    "budget.",
    "report": " The policy kept what it had learned (on_drift='report').",
}
PARTITIONS: dict[str, str] = {
    Partition.NONE: "Threshold: one threshold for all",
    Partition.COST: "CST: one threshold per cost stratum",
    Partition.RANDOM: "control: one threshold per random group; no gain expected",
    Partition.SIGNAL: "control: one threshold per level of the score; no gain expected",
    Partition.LABEL: "best possible selection: all labels known",
}
