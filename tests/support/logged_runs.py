"""Results in the log of `gatekeeper run`."""

from __future__ import annotations

import json
import sqlite3
from collections import Counter
from contextlib import closing
from pathlib import Path
from typing import Any

from gatekeeper import Budget, GateStatus, VerificationGate
from gatekeeper.log import SQLiteLog


def events(log: Path) -> int:
    """How many events the log holds; 0 while there is none."""
    try:
        with closing(sqlite3.connect(f"{log.as_uri()}?mode=ro", uri=True)) as db:
            return int(db.execute("SELECT count(*) FROM events").fetchone()[0])
    except sqlite3.OperationalError:
        return 0


def final_state(
    log: Path, policy: str, n: int
) -> tuple[str, GateStatus, list[Any], dict[str, Any]]:
    """Policy state, gate status, decisions in order, and verdict and charge of each output."""
    with SQLiteLog(log, read_only=True) as opened:
        settings, logged = opened.settings(), list(opened.rows())
    budget = Budget(fraction=0.3, horizon=n)
    with VerificationGate(
        policy, budget=budget, log=log, seed=3, settings=settings["more"]
    ) as gate:
        state, status = json.dumps(gate.policy.state()), gate.status()  # as text NaN equals NaN
    decisions = [(e.id, e.data) for e in logged if e.kind == "decided"]
    outcomes = [e for e in logged if e.kind == "outcome"]
    assert max(Counter(e.id for e in outcomes).values()) == 1, "an output was charged twice"
    verdicts = {e.id: (e.data["verdict"], e.data["cost"]) for e in outcomes}
    return state, status, decisions, verdicts
