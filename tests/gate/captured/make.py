"""Writes the captured decisions: what a gate decides for errors, output by output, per policy.

    git worktree add --detach ../before f2e756d
    PYTHONPATH=../before python tests/gate/captured/make.py

`decisions.json.gz` was written so, by the last commit before there was a goal `score`. It stays as
it is: `test_captured_decisions.py` compares it with what the code of today decides. Only those of
`calibrated` were written again, when it got back the budget of verifications without a verdict, of
which the stream has a few.
"""

from __future__ import annotations

import gzip
import json
from pathlib import Path
from typing import Any

import numpy as np

from gatekeeper import Budget, Generation, Outcome, Verdict, VerificationGate
from gatekeeper.testing import ScriptedVerifier, make_generation

__all__ = ["BUDGETS", "CAPTURED", "POLICIES", "decisions"]

CAPTURED = Path(__file__).parent / "decisions.json.gz"
N = 400
POLICIES = (
    "random",
    "threshold",
    "cst",
    "cst-memory",
    "mp-adapt",
    "mp-strat",
    "split-conformal",
    "hga",
    "calibrated",
)
BUDGETS: dict[str, dict[str, Any]] = {
    "verifications": {"fraction": 0.4},
    "seconds": {"fraction": 0.4, "unit": "seconds", "max_cost": 8.0, "startup": 300.0},
    "horizon": {"fraction": 0.4, "horizon": N},
}


class Costly(ScriptedVerifier):
    """Each output has a cost of its own, in seconds."""

    def _outcome(self, id_: str) -> Outcome:
        outcome = super()._outcome(id_)
        cost = 0.5 + int(id_[1:]) * 37 % 71 / 10.0
        return Outcome(outcome.verdict, cost=cost, seconds=cost)


def stream() -> tuple[list[Generation], dict[str, Any]]:
    """Outputs, one in 13 without log-probabilities; uncertain ones are wrong more often."""
    rng = np.random.default_rng(27)
    outputs, labels = [], {}
    for i in range(N):
        tokens = 0 if i % 13 == 5 else int(rng.integers(2, 20))
        outputs.append(
            make_generation(f"g{i}", tokens=tokens, seed=i, prompt_tokens=20 + i * 7 % 90)
        )
        margin = float((outputs[-1].top1 - outputs[-1].top2).mean()) if tokens else 1.0
        labels[f"g{i}"] = None if i % 97 == 60 else int(rng.random() < np.exp(-0.7 * margin))
    return outputs, labels


def decisions(policy: str, budget: str) -> list[list[Any]]:
    """[verify, reason, propensity] of each output; some are forced, one is judged from outside."""
    outputs, labels = stream()
    verifier = (Costly if budget == "seconds" else ScriptedVerifier)(labels)
    found = []
    with VerificationGate(
        policy=policy,
        budget=Budget(**BUDGETS[budget]),
        verifier=verifier,
        on_unavailable="pass",
        seed=3,
    ) as gate:
        for i, output in enumerate(outputs):
            decision = gate.maybe_verify(output, force=i % 50 == 49).decision
            found.append([decision.verify, str(decision.reason), decision.propensity])
            if i == 200:
                skipped = [verify for verify, *_ in found].index(False)
                gate.report_outcome(outputs[skipped].id, Outcome(Verdict.FAILED))
    return found


if __name__ == "__main__":
    every = {
        f"{policy}, {budget}": decisions(policy, budget)
        for policy in POLICIES
        for budget in BUDGETS
    }
    text = json.dumps(every, separators=(",", ":"))
    CAPTURED.write_bytes(gzip.compress(text.encode(), mtime=0))
