"""Logs written by earlier code, in `captured/`: they open, resume and read the same today."""

from __future__ import annotations

import gzip
import json
import runpy
from math import isclose
from pathlib import Path
from typing import Any

import pytest

from gatekeeper import VerificationGate
from gatekeeper.errors import LogMismatchError

FOLDER = Path(__file__).parent / "captured"
made = runpy.run_path(str(FOLDER / "make.py"))
SCENARIOS, described, read = made["SCENARIOS"], made["described"], made["read"]
CHANGED = "seconds-calibrated"  # its policy has another way to pace the budget since then


def _rename(said: dict[str, Any]) -> None:
    """Fields that have another name or place since the logs were captured."""
    if status := said.get("status"):
        status["health"] = status.pop("calibration")
        status["external_verdicts"] = status.pop("audited")
    run = said["run"]
    run["external"] = run.pop("audited")
    run["health_changes"] = run.pop("standings")
    run["fingerprint"] |= {"tests": 1}
    for change in run["health_changes"]:
        change["health"] = change.pop("calibration")


@pytest.mark.parametrize("name", sorted(SCENARIOS.keys() - {CHANGED}))
def test_a_captured_log_reads_as_it_did(name: str, tmp_path: Path) -> None:
    """Status, every output, what is pending, records, the account, and the decisions that follow.

    Field by field: the JSON file has the results of the code that wrote the log.
    """
    path = tmp_path / "run.db"
    path.write_bytes(gzip.decompress((FOLDER / f"{name}.db.gz").read_bytes()))
    then: dict[str, Any] = json.loads(gzip.decompress((FOLDER / f"{name}.json.gz").read_bytes()))
    now = described(path, SCENARIOS[name].settings())
    _rename(then)
    assert now.keys() == then.keys()
    new = {"verifying", "reserved", "warmup_held", "notes", "pace", "shift"}
    new |= {"decisions", "verdicts", "seconds", "durations", "shared", "groups"}
    assert now["status"].keys() - then["status"].keys() == new
    assert not any(record.pop("features") for record in now["records"])  # of later logs
    _drop_value(now)
    now["status"] = {k: v for k, v in now["status"].items() if k not in new}
    for part in then:
        assert _alike(now[part], then[part]), part
    assert then["status"]["seen"] == 200
    assert len(then["further"]) == 25
    with VerificationGate(**SCENARIOS[name].settings(), log=path) as gate:
        assert gate.status().seen == 225


def _alike(now: Any, then: Any) -> bool:
    """Whether two JSON values are equal, numbers but for the last digits, which depend on the
    processor: numpy's `exp` with and without AVX-512.
    """
    if isinstance(now, float) and isinstance(then, float):
        return isclose(now, then, rel_tol=1e-12)
    if isinstance(now, dict) and isinstance(then, dict):
        return now.keys() == then.keys() and all(_alike(now[key], then[key]) for key in then)
    if isinstance(now, list) and isinstance(then, list):
        return len(now) == len(then) and all(map(_alike, now, then))
    return bool(now == then)


def _drop_value(data: Any) -> None:
    """Remove the metric's value, which outcomes and records of later logs have."""
    if isinstance(data, dict):
        assert data.pop("value", None) is None
    for part in data.values() if isinstance(data, dict) else data if isinstance(data, list) else ():
        _drop_value(part)


def test_a_log_whose_policy_has_changed_is_read_but_not_continued(tmp_path: Path) -> None:
    path = tmp_path / "run.db"
    path.write_bytes(gzip.decompress((FOLDER / f"{CHANGED}.db.gz").read_bytes()))
    then = json.loads(gzip.decompress((FOLDER / f"{CHANGED}.json.gz").read_bytes()))
    _rename(then)
    now = read(path)
    assert not any(record.pop("features") for record in now["records"])  # of later logs
    _drop_value(now)
    assert now == {part: then[part] for part in now}
    with pytest.raises(LogMismatchError, match="start a new log"):
        VerificationGate(**SCENARIOS[CHANGED].settings(), log=path)
