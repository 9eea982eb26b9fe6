"""lm-evaluation-harness: the rows of its results, with the scores of all documents.

A metric that was computed for some documents only is renamed to `metric@verified`, since its value
is not the task's score. `metric@all` is the score by estimate, `metric@low` and `metric@high` are
the ends of its interval, or what it lies between in any case.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from math import isclose, isnan
from typing import Any

from gatekeeper.adapters.harness.scores import score_of
from gatekeeper.adapters.lm_eval.task import GatedTask, Key
from gatekeeper.analysis.score import ScoreEstimate
from gatekeeper.stats.interval import Interval

__all__ = ["add_row", "group_scores", "mark_verified", "task_scores"]

VERIFIED = "@verified"


def task_scores(task: GatedTask) -> dict[Key, ScoreEstimate]:
    """The task's scores by metric and filter."""
    found = {}
    for key, values in task.values().items():
        score = score_of(task.results, values)
        found[key] = _through(task, key[0], score)
    return found


def group_scores(
    group: Any, gated: Mapping[str, GatedTask], rows: Mapping[str, Mapping[str, Any]]
) -> dict[Key, ScoreEstimate]:
    """The scores of a group of the harness, with the group's own weights.

    Parameters
    ----------
    group : lm_eval.api.group.Group
    gated : mapping
        By name, the gated tasks of the run; others have every document's score.
    rows : mapping
        The harness's results, by task.
    """
    found = {}
    leaves = [task.task_name for task in group.get_all_tasks()]
    for wanted in group.aggregate_metric_list or ():
        values = {name: gated[name].values() for name in leaves if name in gated}
        pipelines = wanted.filter_list or sorted(
            {
                pipeline
                for of in values.values()
                for metric, pipeline in of
                if metric == wanted.metric
            }
        )
        for pipeline in pipelines:
            key = (wanted.metric, pipeline)
            among = [gated[name] for name in leaves if name in gated and key in values[name]]
            if not among or not all(_is_linear(task, wanted.metric) for task in among):
                continue
            found[key] = _of_group(
                among,
                [_aggregated(task, wanted.metric, values[task.name][key]) for task in among],
                _others(key, [name for name in leaves if name not in gated], rows),
                by_size=wanted.weight_by_size,
            )
    return found


def add_row(rows: dict[str, Any], higher: dict[str, Any], key: Key, score: ScoreEstimate) -> None:
    """Add a score to a task's or a group's rows, and its direction to those of its metrics."""
    metric, pipeline = key
    ends = {"low": score.low, "high": score.high}
    values = ends if score.point is None else {"all": score.point, **ends}
    for name, value in values.items():
        rows[f"{metric}@{name},{pipeline}"] = value
        if metric in higher:
            higher[f"{metric}@{name}"] = higher[metric]


def mark_verified(rows: dict[str, Any], higher: dict[str, Any]) -> None:
    """Rename the metrics of some documents, and drop their standard errors.

    The verified documents need not be a random sample.
    """
    for key in [key for key in rows if "," in key]:
        metric, _, pipeline = key.rpartition(",")
        value = rows.pop(key)
        if not metric.endswith("_stderr"):
            rows[f"{metric}{VERIFIED},{pipeline}"] = value
            if metric in higher:
                higher[metric + VERIFIED] = higher[metric]
    if "sample_count" in rows:
        counts = rows["sample_count"]
        rows["sample_count"] = {
            f"{key.rpartition(',')[0]}{VERIFIED},{key.rpartition(',')[2]}": n
            for key, n in counts.items()
        }


def _through(task: GatedTask, metric: str, score: ScoreEstimate) -> ScoreEstimate:
    """The score after the task's aggregation, which may for example be a percentage of the mean."""
    if _is_mean(task, metric):
        return score
    return _mapped(score, lambda mean: task.aggregate(metric, mean))


def _mapped(score: ScoreEstimate, change: Callable[[float], float]) -> ScoreEstimate:
    """A monotone function of a score."""

    def of(found: Interval | None) -> Interval | None:
        if found is None:
            return None
        low, high = sorted((change(found.low), change(found.high)))
        value = found.value if isnan(found.value) else change(found.value)
        return Interval(value, low, high, found.n)

    return replace(
        score,
        bounds=of(score.bounds) or score.bounds,
        unchecked=of(score.unchecked),
        questions=of(score.questions),
        both=of(score.both),
    )


def _is_mean(task: GatedTask, metric: str) -> bool:
    return all(isclose(task.aggregate(metric, x), x, abs_tol=1e-12) for x in (0.0, 0.3, 1.0))


def _is_linear(task: GatedTask, metric: str) -> bool:
    """Whether the mean of aggregated values is the aggregate of the mean, as for percentages."""
    zero, half, one = (task.aggregate(metric, x) for x in (0.0, 0.5, 1.0))
    return isclose(2.0 * half, zero + one, abs_tol=1e-12)


def _aggregated(task: GatedTask, metric: str, values: Sequence[float | None]) -> list[float | None]:
    return [None if value is None else task.aggregate(metric, value) for value in values]


def _others(
    key: Key, names: Iterable[str], rows: Mapping[str, Mapping[str, Any]]
) -> list[tuple[float, int]]:
    """Value and size of the tasks that were left as they are."""
    name = ",".join(key)
    return [(rows[n][name], rows[n].get("sample_len", 0)) for n in names if name in rows.get(n, {})]


def _of_group(
    tasks: Sequence[GatedTask],
    values: Sequence[Sequence[float | None]],
    others: Sequence[tuple[float, int]],
    *,
    by_size: bool,
) -> ScoreEstimate:
    weights = [1.0 if by_size else 1.0 / len(of) for of in values for _ in of]
    score = score_of(
        [result for task in tasks for result in task.results],
        [value for of in values for value in of],
        weights=weights,
    )
    if not others:
        return score
    sizes = [size if by_size else 1.0 for _, size in others]
    whole = sum(weights) + sum(sizes)
    rest = sum(value * size for (value, _), size in zip(others, sizes, strict=True)) / whole
    found = _mapped(score, lambda mean: mean * sum(weights) / whole + rest)
    return replace(found, questions=None, both=None)  # the questions of the others are unknown
