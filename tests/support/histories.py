"""Histories of a gate: calls, verdicts and reports in any order."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable, Sequence
from typing import Any

from hypothesis import strategies as st
from ticks import ticks

from gatekeeper import BadInputError, Budget, Generation, Outcome, Verdict, VerificationGate
from gatekeeper.testing import ScriptedVerifier

Step = tuple[str, Any, int, float]  # what happens, the verdict, to which output, its cost

steps = st.lists(
    st.tuples(
        st.sampled_from(
            ["new", "new", "new", "forced", "retry", "report", "audit", "batch", "broken batch"]
        ),
        st.sampled_from([0, 1, None, ConnectionError(), KeyboardInterrupt()]),
        st.integers(0, 30),
        st.floats(0.0, 1.5),
    ),
    max_size=40,
)
UNITS = {
    "verifications": Budget(total=12),
    "seconds": Budget(total=9.0, unit="seconds", max_cost=1.0),
    "fraction": Budget(fraction=0.4, unit="seconds", max_cost=1.0, startup=2.0),
}


class SetVerifier(ScriptedVerifier):
    """Gives the verdict and cost of the current step."""

    now: Any = 0
    cost = 0.0

    def _outcome(self, id_: str) -> Outcome:
        if isinstance(self.now, BaseException):
            raise self.now
        verdict = {0: Verdict.PASSED, 1: Verdict.FAILED, None: Verdict.INFRA_ERROR}[self.now]
        return Outcome(verdict, cost=self.cost, seconds=self.cost)


def attempt(call: Callable[[], object]) -> None:
    with contextlib.suppress(BadInputError, KeyboardInterrupt):
        call()


def play(
    gate: VerificationGate,
    verifier: SetVerifier,
    history: Sequence[Step],
    outputs: Sequence[Generation],
) -> list[Generation]:
    """Carry out the history; returns the outputs passed to the gate, at most two per step."""
    fresh = iter(outputs)
    seen: list[Generation] = []

    def some(n: int) -> list[Generation]:
        seen.extend(next(fresh) for _ in range(n))
        return seen[-n:]

    for kind, verdict, i, cost in history:
        verifier.now, verifier.cost = verdict, cost
        old = seen[i % len(seen)] if seen else outputs[-1]
        if kind in ("new", "forced"):
            new = some(1)[0]
            attempt(lambda: gate.maybe_verify(new, force=kind == "forced"))  # noqa: B023
        elif kind == "retry":
            attempt(lambda: gate.maybe_verify(old) if seen else None)  # noqa: B023
        elif kind in ("report", "audit"):
            label = verdict if verdict in (0, 1) else None
            outcome = Outcome(
                {0: Verdict.PASSED, 1: Verdict.FAILED, None: Verdict.INFRA_ERROR}[label],
                cost=cost,
                seconds=cost,
            )
            attempt(lambda: gate.report_outcome(old.id, outcome))  # noqa: B023
        else:
            pairs: list[tuple[object, None]] = [(g, None) for g in some(2)]
            if kind == "broken batch":
                pairs.append(("not a response", None))
            attempt(lambda: gate.verify_batch(pairs))  # noqa: B023
            while gate.status().verifying:  # what a broken batch had begun
                time.sleep(0.001)
        status = gate.status()
        assert ticks(status.spent) + ticks(status.held) <= ticks(status.cap)
    return seen
