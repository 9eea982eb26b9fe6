"""A run as columns says what the same run says as objects."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import Any

import numpy as np
from histories import UNITS, SetVerifier, Step, play, steps
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from gatekeeper import Outcome, Reason, Verdict, VerificationGate
from gatekeeper.log.rows import row_of
from gatekeeper.log.run import read_run
from gatekeeper.log.run_table import NO_VERDICT, read_table
from gatekeeper.policies import CST
from gatekeeper.testing import make_generation

OUTPUTS = [make_generation(f"g{i}", seed=i, prompt_tokens=20 + i) for i in range(90)]


@settings(max_examples=60, deadline=None, suppress_health_check=list(HealthCheck))
@given(
    history=steps,
    unit=st.sampled_from(sorted(UNITS)),
    shown=st.integers(0, 5),
    later=st.lists(st.integers(0, 89), max_size=20),
)
def test_columns_and_objects_agree(
    history: list[Step], unit: str, shown: int, later: list[int]
) -> None:
    """After any history, and then verdicts from outside, in any order."""
    with tempfile.TemporaryDirectory() as folder:
        path, verifier = Path(folder) / "run.db", SetVerifier()
        options: Any = {"budget": UNITS[unit], "log": path, "on_unavailable": "pass"}
        with VerificationGate(CST(0.3, warmup=4), verifier=verifier, **options) as gate:
            play(gate, verifier, history, OUTPUTS)
            for i in later:
                result = gate.find(f"g{i}")
                if result is not None and result.outcome is None and not result.decision.verify:
                    verdict = Verdict.FAILED if i % 3 else Verdict.PASSED
                    gate.report_outcome(f"g{i}", Outcome(verdict, cost=0.5, seconds=0.2))
        run, table = read_run(path), read_table(path, shown=shown)
    assert table.ids == list(run.outputs)
    assert table.ledger.state() == run.ledger.state()
    assert (table.health_changes, table.warmups) == (run.health_changes, run.warmups)
    wrong = []
    for i, (id_, output) in enumerate(run.outputs.items()):
        decision, outcome = output.decision, output.outcome or output.unavailable
        assert table.selected[i] == decision.verify
        assert table.of_reason(decision.reason)[i]
        assert table.external[i] == output.external
        assert table.known[i] == (output.outcome is not None)
        assert table.labelled[i] == (outcome is not None and outcome.error is not None)
        if outcome is None:
            assert table.verdict[i] == NO_VERDICT
        else:
            assert table.of_verdict(outcome.verdict)[i]
        if table.labelled[i] and outcome is not None:
            assert table.error[i] == outcome.error
            assert output.external or table.cost[i] == outcome.cost
        if table.error[i] == 1.0:
            wrong.append(row_of(output, run.generations[id_]))
    assert [row_of(*found) for found in table.wrong] == wrong[:shown]
    counts = [int(table.of_reason(reason).sum()) for reason in Reason]
    assert sum(counts) == len(run.outputs)
    signals = [output.candidate.signals for output in run.outputs.values()]
    h = np.array([(s.h1, s.h2, s.h3) for s in signals]).reshape(-1, 3)
    assert np.array_equal(table.h, h, equal_nan=True)
