"""Outputs and outcomes that are too large for an event of a log: none stops a gate."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from gatekeeper import BadInputError, Budget, Generation, Outcome, Random, Verdict, VerificationGate
from gatekeeper.gate.sizes import ROOM

MIB = 1 << 20
LIMIT = ROOM + 2 * MIB


@pytest.fixture(autouse=True)
def smaller_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    for module in ("gate.sizes", "log.encoding"):
        monkeypatch.setattr(f"gatekeeper.{module}.MAX_LINE", LIMIT)


def open_gate(path: Path | None, verifier: Any) -> VerificationGate:
    return VerificationGate(
        Random(0.5, warmup=9),
        budget=Budget(fraction=0.5),
        verifier=verifier,
        log=path,
        on_unavailable="pass",
    )


@pytest.mark.parametrize("log", ["memory", "file"])
def test_an_output_that_is_too_large_is_refused_before_it_is_decided_on(
    log: str, tmp_path: Path
) -> None:
    path = None if log == "memory" else tmp_path / "run.db"
    with open_gate(path, lambda output, task: True) as gate:
        for text in ("x" * (2 * MIB), "\n" * MIB, "é" * (MIB // 3 + 1)):
            with pytest.raises(BadInputError, match=r"id='a': its text has 2\.0 MiB as JSON"):
                gate.maybe_verify(Generation("a", text))
        assert gate.maybe_verify(Generation("a", "x" * (2 * MIB - 6))).verified
        assert gate.status().seen == 1


@pytest.mark.parametrize("verdict", [Verdict.FAILED, Verdict.INFRA_ERROR])
@pytest.mark.parametrize(
    "given",
    [{"detail": "x" * (3 * MIB)}, {"detail": "why", "meta": {"output": "x" * (3 * MIB)}}],
    ids=("detail", "meta"),
)
def test_of_an_outcome_that_is_too_large_the_verdict_is_kept(
    verdict: Verdict, given: dict[str, Any], tmp_path: Path
) -> None:
    start = given["detail"][:1000]
    with open_gate(tmp_path / "run.db", lambda output, task: Outcome(verdict, **given)) as gate:
        found = gate.maybe_verify(Generation("a", "x"))
    with open_gate(tmp_path / "run.db", lambda output, task: True) as gate:
        again = gate.maybe_verify(Generation("a", "x"))
        if verdict is Verdict.FAILED:
            assert found.outcome == again.outcome
        else:  # its verification is repeated
            assert again.verified
    assert found.outcome is not None
    assert found.outcome.verdict is verdict
    assert found.outcome.meta == {}
    assert found.outcome.detail.startswith(start)
    assert "shortened by gatekeeper" in found.outcome.detail
    assert len(found.outcome.detail) < 20_000


def test_a_verdict_from_outside_is_kept_too() -> None:
    with open_gate(None, None) as gate:
        gate.maybe_verify(Generation("a", "x"))
        found = gate.report_outcome("a", Outcome(Verdict.FAILED, detail="x" * (3 * MIB)))
    assert found.verified
    assert found.outcome is not None
    assert found.outcome.detail.endswith("too much to keep]")


def test_what_fits_is_kept_whole(tmp_path: Path) -> None:
    detail = "x" * (2 * MIB - 100)
    with open_gate(
        tmp_path / "run.db", lambda output, task: Outcome(Verdict.PASSED, detail=detail)
    ) as gate:
        found = gate.maybe_verify(Generation("a", "x"))
    assert found.outcome is not None
    assert found.outcome.detail == detail
