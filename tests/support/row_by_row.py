"""A plain, slow reading of a log: output by output from its stored rows, without the package."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable
from contextlib import closing
from math import inf, nan
from pathlib import Path
from typing import Any

__all__ = ["stored", "wanted"]

LABELS = {"passed": 0.0, "failed": 1.0, "timeout": 1.0, "resource_exceeded": 1.0, "no_answer": 1.0}


def stored(path: Path) -> list[tuple[str, str, str]]:
    """Kind, id and JSON text of each event in a file."""
    with closing(sqlite3.connect(f"{path.as_uri()}?mode=ro", uri=True)) as db:
        return db.execute("SELECT kind, id, data FROM events ORDER BY seq").fetchall()


def wanted(events: Iterable[tuple[str, str, dict[str, Any]]], unit: str) -> list[dict[str, Any]]:
    """What the columns have to hold of each output, by the names of a `RunTable` and of records.

    Parameters
    ----------
    events
        Kind, id and JSON value of each, in order.
    unit
        Of the budget.
    """
    outputs: dict[str, dict[str, Any]] = {}
    for kind, id_, data in events:
        if kind == "decided":
            outputs[id_] = {"decided": data, "verdict": None, "failure": None, "external": False}
        elif kind in ("outcome", "audited"):
            outputs[id_]["verdict"] = data
            outputs[id_]["external"] |= kind == "audited"
        elif kind == "released" and data["outcome"] is not None:
            outputs[id_]["failure"] = data["outcome"]
    return [_output(id_, unit, **output) for id_, output in outputs.items()]


def _output(
    id_: str,
    unit: str,
    decided: dict[str, Any],
    verdict: dict[str, Any] | None,
    failure: dict[str, Any] | None,
    *,
    external: bool,
) -> dict[str, Any]:
    shown = verdict or failure
    error = LABELS.get(verdict["verdict"], nan) if verdict else nan
    cost = value = nan
    if verdict and error == error:
        value = _number(verdict.get("value"))
        cost = _number(verdict["cost"])
        if external and unit == "verifications":
            cost = 1.0
        elif external and unit == "seconds":
            cost = _number(verdict["cost"] or verdict["seconds"])
    h = tuple(_number(decided[name]) for name in ("h1", "h2", "h3"))
    stratum = decided["stratum"]
    why = None
    if decided["verify"] and shown and shown["verdict"] == "infra_error":
        why = shown["detail"] or "it did not say why"
    return {
        "id": id_,
        "h": h,
        "cost_estimate": _number(decided["cost_estimate"]),
        "propensity": _number(decided["propensity"]),
        "stratum": -1 if stratum is None else stratum,
        "features": decided.get("features", {}),
        "reason": decided["reason"],
        "selected": decided["verify"],
        "scored": decided["score"] is not None,
        "missing": h[0] != h[0] and h[1] != h[1] and h[2] != h[2],
        "verdict": shown and shown["verdict"],
        "external": external,
        "error": error,
        "value": value,
        "cost": cost,
        "paid": cost if 0.0 < cost < inf else nan,
        "verified": verdict is not None and not external,
        "why": why,
    }


def _number(value: float | str | None) -> float:
    return nan if value is None else float(value)
