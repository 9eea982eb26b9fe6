"""lm-evaluation-harness: what decides on an answer, and which metrics have a value per document."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, fields
from math import isclose
from numbers import Real
from typing import Any, TypeGuard

import numpy as np

from gatekeeper.arguments import check_finite
from gatekeeper.errors import BadInputError

__all__ = ["Grading", "filters_of", "grading_of", "is_number", "is_real", "mean_of_documents"]

PROBES = ((0.0, 1.0, 1.0, 0.25, 1.0), (1.0, 0.0, 0.0, 0.0, 0.5, 0.0, 0.0))


@dataclass(frozen=True, slots=True, kw_only=True)
class Grading:
    """The metric that decides whether the answer to a document is right.

    Parameters
    ----------
    metric : str or None
        A metric of the task; None: its first.
    filter : str or None
        The pipeline of filters whose metric counts; None: the task's first.
    passing : float or None
        The value from which on an answer is right, in the metric's own direction; None: 1 where
        higher is better, 0 where lower is.
    verifier : str or None
        Name of a verifier of gatekeeper, in place of the task's metrics: it gets the response, the
        document's fields and, as `gold`, the document's target.

    Raises
    ------
    BadInputError
        For a `passing` that is no finite number: every answer would be wrong, or right.
    """

    metric: str | None = None
    filter: str | None = None
    passing: float | None = None
    verifier: str | None = None

    def __post_init__(self) -> None:
        if self.passing is not None:
            check_finite("passing", self.passing)

    def is_right(self, value: float, *, higher_is_better: bool) -> bool:
        """Whether a value of the metric is that of a right answer."""
        if higher_is_better:
            return value >= (1.0 if self.passing is None else self.passing)
        return value <= (0.0 if self.passing is None else self.passing)


def grading_of(name: str, task: Any, default: Grading) -> Grading:
    """The grading in the task's own YAML, from its filter `gatekeeper`; else the default.

    Raises BadInputError for arguments of that filter that do not exist, and for a pipeline of
    filters that the task does not have.
    """
    for pipeline in task.get_config("filter_list") or ():
        for step in pipeline["filter"]:
            if step["function"] == "gatekeeper":
                wanted = {key: value for key, value in step.items() if key != "function"}
                allowed = {f.name for f in fields(Grading)} - {"filter"}
                if odd := wanted.keys() - allowed:
                    raise BadInputError(
                        f"task {name!r}: the filter 'gatekeeper' takes {', '.join(sorted(allowed))}"
                        f", not {sorted(odd)[0]!r}"
                    )
                return Grading(filter=pipeline["name"], **wanted)
    pipelines = filters_of(task)
    if default.filter is not None and default.filter not in pipelines:
        raise BadInputError(
            f"--gate_filter {default.filter}: task {name!r} has {', '.join(pipelines)}"
        )
    return default


def filters_of(task: Any) -> list[str]:
    """The names of the task's pipelines of filters, in order."""
    listed = [pipeline["name"] for pipeline in task.get_config("filter_list") or ()]
    return listed or ["none"]


def mean_of_documents(aggregate: Callable[[Sequence[float]], Any] | None) -> bool:
    """Whether an aggregation of the harness depends on the mean of the documents' values alone.

    `mean` and its multiples do; BLEU, F1 over all documents and the median do not. Decided by
    trying it, since a task may bring any function of its own; None is the harness's default, mean.
    """
    if aggregate is None:
        return True
    for probe in PROBES:
        middle = float(np.mean(probe))
        try:
            whole, one = float(aggregate(list(probe))), float(aggregate([middle]))
        except Exception:  # of a function that is for something else than numbers
            return False
        if not isclose(whole, one, rel_tol=1e-9, abs_tol=1e-12):
            return False
    return True


def is_real(value: object) -> bool:
    """Whether a document's value of a metric is one number, NaN and infinity among them."""
    return isinstance(value, Real | np.bool_)


def is_number(value: object) -> TypeGuard[float]:
    """Whether a document's value of a metric is one finite number."""
    return is_real(value) and bool(np.isfinite(float(value)))  # type: ignore[arg-type]
