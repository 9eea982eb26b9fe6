"""Partly verified runs: as columns, quickly, and as a real gate's log."""

from dataclasses import replace
from math import nan
from pathlib import Path

import numpy as np

from gatekeeper import Budget, VerificationGate
from gatekeeper.io.records import RecordTable
from gatekeeper.policies import T0
from gatekeeper.protocols import Policy
from gatekeeper.testing import ScriptedVerifier, make_generation
from gatekeeper.types import Label


def log_of(table: RecordTable, *, chance: float, seed: int, rate: float = 0.2) -> RecordTable:
    """Records of a gate whose policy proposes the highest h1 and that explores at rate `chance`."""
    h1 = table.h[:, 0]
    p = np.where(h1 > np.nanquantile(h1, 1 - rate), 1.0, chance)
    p[:T0] = 1.0
    verified = np.random.default_rng((seed, 9)).random(len(table)) < p
    return replace(
        table,
        cost=np.where(verified, 1.0, nan),
        error=np.where(verified, table.error, nan),
        propensity=p,
        verified=verified.astype(float),
    )


def run_gate(
    log: Path,
    *,
    explore: float,
    n: int = 700,
    policy: str | Policy = "threshold",
    budget: Budget | None = None,
) -> None:
    """A gate over n outputs, 40 % of them wrong, with a budget of 40 % or this one.

    A verification costs 1, in any unit.
    """
    rng = np.random.default_rng(0)
    tokens = rng.integers(20, 90, n).tolist()
    outputs = [make_generation(f"g{i}", seed=i, prompt_tokens=t) for i, t in enumerate(tokens)]
    labels: dict[str, Label | Exception | None] = {
        output.id: 1 if rng.random() < 0.4 else 0 for output in outputs
    }
    with VerificationGate(
        policy,
        budget=budget or Budget(fraction=0.4, horizon=n),
        verifier=ScriptedVerifier(labels, cost=1.0),
        log=log,
        explore=explore,
    ) as gate:
        for output in outputs:
            gate.maybe_verify(output)
