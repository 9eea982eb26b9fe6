"""Inspect's metric for all samples of an evaluation, from those that were verified."""

from __future__ import annotations

from collections.abc import Container
from dataclasses import replace
from math import isfinite
from pathlib import Path

from inspect_ai.scorer import Metric, SampleScore, Value, metric

from gatekeeper.adapters.inspect_ai.outputs import METADATA, numbers
from gatekeeper.adapters.inspect_ai.registry import named
from gatekeeper.analysis.score import estimate_score, range_of
from gatekeeper.io.records import records_of_log
from gatekeeper.types import Record

__all__ = ["question_of", "whole_set"]


def _whole_set() -> Metric:
    """The mean score of all samples, estimated from those that were verified.

    `estimate`, `low` and `high` are the estimate and its 95 % interval for this run's samples;
    without an estimate `low` and `high` are what is possible. `low_questions` and `high_questions`
    are the interval with the sampling of questions in it. `verified` is the share of verified
    samples. A scorer of several values has these for each, after its key.
    """

    def compute(scores: list[SampleScore]) -> Value:
        if not scores:  # Inspect leaves the unscored ones out
            return {**_rows("", [], {}), "verified": 0.0}
        gates = [(score.score.metadata or {}).get(METADATA, {}) for score in scores]
        logs = {gate["log"] for gate in gates if "log" in gate}
        if len(logs) != 1 or not Path(log := logs.pop()).exists():
            return {}
        values: dict[str, dict[str, float]] = {}
        for gate, score in zip(gates, scores, strict=True):
            for key, value in numbers(score.score.value).items():
                if isfinite(value) and gate.get("verify"):
                    values.setdefault(key, {})[gate["id"]] = value
        scored = {id_ for of_key in values.values() for id_ in of_key}
        records = [_with_verdict(record, scored) for record in records_of_log(log)]
        found: dict[str, float] = {}
        for key, of_key in (values or {"": {}}).items():
            found |= _rows(f"{key}_" if key else "", records, of_key)
        verified = sum(record.verified is True for record in records)
        return {**found, "verified": verified / len(records)}

    return compute


def _with_verdict(record: Record, scored: Container[str]) -> Record:
    """A killed evaluation may have kept a score that the gate's log does not have yet; a retry
    takes it over. The score's content is in the values.
    """
    if record.error is not None or record.id not in scored:
        return record
    return replace(record, error=0, verified=True)


def _rows(prefix: str, records: list[Record], values: dict[str, float]) -> dict[str, float]:
    if not values:  # every score is possible
        low, high = range_of(())
        return {f"{prefix}low": low, f"{prefix}high": high}
    score = estimate_score(
        records,
        values=values,
        bounds=range_of(list(values.values())),
        questions={record.id: question_of(record.id) for record in records},
    )
    rows = {} if score.point is None else {f"{prefix}estimate": score.point}
    rows |= {f"{prefix}low": score.low, f"{prefix}high": score.high}
    if score.both is not None:
        rows[f"{prefix}low_questions"] = score.both.low
        rows[f"{prefix}high_questions"] = score.both.high
    return rows


def question_of(id_: str) -> str:
    """The sample of an output: epochs answer the same question again."""
    return id_.rpartition("/")[0]


# Of each epoch by itself: the mean over epochs of those that were selected is no score.
whole_set = named(metric, "whole_set", scores="unreduced")(_whole_set)
