"""Your own policy and verifier: neither inherits from anything.

    python examples/own_parts.py

The policy selects outputs with many tokens; the verifier checks that an output is valid JSON.
"""

import json
from typing import Any

from gatekeeper import Budget, Candidate, Decision, Generation, Outcome, Reason, VerificationGate
from gatekeeper.testing import check_policy, check_verifier, make_generation
from gatekeeper.types import Verdict


class LongFirst:
    """Verify outputs with more than `tokens` tokens. It learns nothing, so its state is empty."""

    phase = "steady"

    def __init__(self, tokens: int) -> None:
        self.tokens = tokens

    def decide(self, candidate: Candidate) -> Decision:
        verify = candidate.signals.n_tokens > self.tokens
        return Decision(verify, Reason.POLICY, propensity=float(verify))

    def update(self, candidate: Candidate, decision: Decision, outcome: Outcome) -> None:
        pass

    def state(self) -> dict[str, Any]:
        return {}

    def restore(self, state: dict[str, Any]) -> None:
        pass


class IsJson:
    """Passes an output that `json` can read."""

    def verify(self, generation: Generation, task: object) -> Outcome:
        try:
            json.loads(generation.text)
        except ValueError as e:
            return Outcome(Verdict.FAILED, detail=str(e))
        return Outcome(Verdict.PASSED)


def main() -> None:
    check_policy(lambda: LongFirst(20))
    right, wrong = make_generation("right", text="[1, 2]"), make_generation("wrong", text="[1, 2")
    check_verifier(IsJson(), [(right, None, Verdict.PASSED), (wrong, None, Verdict.FAILED)])

    outputs = [
        make_generation("short", text="{}", tokens=3),
        make_generation("long", text='{"a": [1, 2', tokens=30),
        make_generation("longer", text='{"a": [1, 2]}', tokens=40),
        make_generation("longest", text='{"a": [', tokens=50),
    ]
    with VerificationGate(LongFirst(20), budget=Budget(total=2), verifier=IsJson()) as gate:
        for output in outputs:
            result = gate.maybe_verify(output)
            verdict = result.outcome.verdict if result.outcome else "unchecked"
            print(f"{result.id}: {verdict} ({result.decision.reason})")


if __name__ == "__main__":
    main()
