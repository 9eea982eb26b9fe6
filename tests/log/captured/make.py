"""Writes the captured logs: small runs with every kind of event, and what a gate reports of them.

    python tests/log/captured/make.py NAME      writes NAME.db.gz and NAME.json.gz beside it

The files in this folder were written by commit 5775efd, before events had types. They stay as they
are: `test_captured.py` opens them with the code of today. Run this for a new name only.
"""

from __future__ import annotations

import gzip
import json
import sys
import tempfile
from collections.abc import Callable
from contextlib import suppress
from dataclasses import asdict
from enum import Enum
from math import isfinite
from pathlib import Path
from typing import Any, NamedTuple

from gatekeeper import (
    HGA,
    BadInputError,
    Budget,
    Generation,
    Outcome,
    Verdict,
    VerificationGate,
)
from gatekeeper.io.records import records_of_log
from gatekeeper.log.run import read_run
from gatekeeper.testing import ScriptedVerifier, make_generation

__all__ = ["SCENARIOS", "described", "read"]

HERE = Path(__file__).parent
N = 200
FURTHER = 25  # outputs that a resumed gate decides on, to compare its decisions


class Scenario(NamedTuple):
    settings: Callable[[], dict[str, Any]]  # of the gate
    play: Callable[[VerificationGate], None]


def outputs(n: int = N + FURTHER, *, models: str = "a", missing: int = 11) -> list[Generation]:
    """Every `missing`-th without log-probabilities; the models take equal parts of the first N."""
    found = []
    for i in range(n):
        tokens = 0 if i % missing == 7 else 4 + i % 9
        output = make_generation(
            f"g{i}", tokens=tokens, seed=i, text=f"answer {i}", prompt_tokens=20 + 13 * i % 170
        )
        model = models[min(i * len(models) // N, len(models) - 1)]
        found.append(
            Generation(
                output.id,
                output.text,
                output.logprob,
                output.top1,
                output.top2,
                output.prompt_tokens,
                output.output_tokens,
                model,
                output.finish_reason,
                output.k_seen,
            )
        )
    return found


def labels() -> dict[str, Any]:
    """One in three wrong; a few that the verifier cannot judge."""
    found: dict[str, Any] = {f"g{i}": int(i * 7 % 3 == 0) for i in range(N + FURTHER)}
    for i in range(20, N, 23):
        found[f"g{i}"] = ConnectionError("no daemon") if i % 2 else None
    return found


def verifications() -> dict[str, Any]:
    return {
        "policy": "cst",
        "budget": Budget(fraction=0.6),
        "verifier": ScriptedVerifier(labels()),
        "on_unavailable": "pass",
        "explore": 0.2,
        "seed": 3,
        "prompt_template": "Q: {}",
        "settings": {"model": "a", "tasks": "captured"},
    }


def play_verifications(gate: VerificationGate) -> None:
    """Warm-up, another model, forced, unavailable and tried again, interrupted, external."""
    verifier = gate.verifier
    assert isinstance(verifier, ScriptedVerifier)
    for i, output in enumerate(outputs(N, models="ab")):
        if i in (33, 133):
            usual, verifier._outcome = verifier._outcome, _interrupted
            with suppress(KeyboardInterrupt):
                gate.maybe_verify(output, force=True)
            verifier._outcome = usual
        else:
            gate.maybe_verify(output, force=i % 10 == 9)
        if i in (50, 120, 150):
            verifier.labels = verifier.labels | {"g20": 1, "g112": 0}
            for pending in gate.pending():
                gate.maybe_verify(pending)
        if i % 19 == 18:
            _external(gate, range(i))


def seconds() -> dict[str, Any]:
    return {
        "policy": "calibrated",
        "budget": Budget(fraction=0.4, total=70.0, unit="seconds", max_cost=2.0, horizon=N),
        "verifier": ScriptedVerifier(labels(), cost=0.75),
        "on_unavailable": "pass",
        "workers": 1,
        "seed": 5,
    }


def play_seconds(gate: VerificationGate) -> None:
    """Batches, one broken in the middle and one at the end: settled and not learned, and open."""
    verifier, stream = gate.verifier, outputs(N)
    assert isinstance(verifier, ScriptedVerifier)
    for start in range(0, N - 8, 8):
        gate.verify_batch([(output, None) for output in stream[start : start + 8]])
        if start % 48 == 40:
            _external(gate, range(start))
    verifier.delay = 0.05
    with suppress(BadInputError):
        pairs: list[tuple[object, object]] = [(output, None) for output in stream[N - 8 :]]
        gate.verify_batch([*pairs, ("not a response", None)])


def usd() -> dict[str, Any]:
    return {
        "policy": HGA(0.5, calibration=40, warmup=20, seed=4),
        "budget": Budget(total=1.2, unit="usd", max_cost=0.02),
        "on_drift": "report",
        "explore": 0.0,
    }


def play_usd(gate: VerificationGate) -> None:
    """Only decides: verdicts come late, some without a cost, some never; nothing is relearned."""
    for i, output in enumerate(outputs(N, models="aab")):
        gate.maybe_verify(output, force=i % 29 == 28)
        if i % 4 == 3:
            for n, pending in enumerate(gate.pending()):
                if n % 5 == 4:
                    gate.report_outcome(pending.id, "infra_error")
                elif n % 5 < 3:
                    cost = (0.01, 0.03, None)[n % 5]
                    verdict = Verdict.FAILED if len(pending.text) % 2 else Verdict.PASSED
                    outcome = Outcome(verdict, cost=cost, detail="review", meta={"n": n})
                    with suppress(BadInputError):
                        gate.report_outcome(pending.id, outcome)
        if i % 31 == 30:
            _external(gate, range(i))


def by_labels() -> dict[str, Any]:
    wrong = {f"g{i}": int(i >= 110) for i in range(N + FURTHER)}
    return {
        "policy": "threshold",
        "budget": Budget(fraction=1.0),
        "verifier": ScriptedVerifier(wrong),
    }


def play_by_labels(gate: VerificationGate) -> None:
    """All right, then all wrong: labels drift without a change of the settings."""
    for output in outputs(N):
        gate.maybe_verify(output)


SCENARIOS = {
    "verifications-cst": Scenario(verifications, play_verifications),
    "seconds-calibrated": Scenario(seconds, play_seconds),
    "usd-hga": Scenario(usd, play_usd),
    "labels-threshold": Scenario(by_labels, play_by_labels),
}


def _interrupted(id_: str) -> Outcome:
    raise KeyboardInterrupt


def _external(gate: VerificationGate, numbers: range) -> None:
    """A verdict from outside on the first output that was not selected and has none."""
    for i in numbers:
        result = gate.find(f"g{i}")
        if result is not None and result.outcome is None and not result.decision.verify:
            verdict = Verdict.FAILED if i % 2 else Verdict.PASSED
            gate.report_outcome(f"g{i}", Outcome(verdict, seconds=0.5, detail="a person"))
            return


def read(path: Path) -> dict[str, Any]:
    """What the log alone shows, whatever its policy would decide today; JSON values."""
    run = read_run(path)
    ledger = ("seen", "spent", "held", "warmup_spent", "warmup_held", "overrun", "cap")
    found: dict[str, Any] = plain(
        {
            "records": [asdict(record) for record in records_of_log(path)],
            "run": {
                "settings": run.settings,
                "results": {id_: asdict(result) for id_, result in run.results.items()},
                "external": sorted(run.external),
                "fingerprint": run.fingerprint and run.fingerprint.row().data,
                "health_changes": [asdict(change) for change in run.health_changes],
                "ledger": {name: getattr(run.ledger, name) for name in ledger},
            },
        }
    )
    return found


def described(path: Path, settings: dict[str, Any]) -> dict[str, Any]:
    """What a gate resumed on this log reports, and what it then decides; JSON values."""
    run = read_run(path)
    about = read(path)
    with VerificationGate(**settings, log=path) as gate:
        about["status"] = asdict(gate.status())
        about["pending"] = [output.id for output in gate.pending()]
        about["found"] = {id_: asdict(gate.find(id_)) for id_ in run.results}  # type: ignore[call-overload]
        about["phases"] = {id_: gate.phase_of(id_) for id_ in run.results}
        about["texts"] = {id_: gate.output(id_).text for id_ in run.results}
        further = [gate.maybe_verify(output) for output in outputs()[N:]]
        about["further"] = [asdict(result.decision) for result in further]
    found: dict[str, Any] = plain(about)
    return found


def plain(value: Any) -> Any:
    """JSON values: NaN as null, infinities and enumerations as strings."""
    if isinstance(value, Enum):
        return str(value)
    if isinstance(value, float) and not isfinite(value):
        return None if value != value else str(value)
    if isinstance(value, dict):
        return {key: plain(part) for key, part in value.items()}
    return [plain(part) for part in value] if isinstance(value, list | tuple) else value


def main() -> None:
    for name in sys.argv[1:]:
        scenario = SCENARIOS[name]
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder, "run.db")
            with VerificationGate(**scenario.settings(), log=path) as gate:
                scenario.play(gate)
            packed = gzip.compress(path.read_bytes(), mtime=0)
            text = json.dumps(described(path, scenario.settings()), separators=(",", ":"))
        (HERE / f"{name}.db.gz").write_bytes(packed)
        (HERE / f"{name}.json.gz").write_bytes(gzip.compress(text.encode(), mtime=0))


if __name__ == "__main__":
    main()
