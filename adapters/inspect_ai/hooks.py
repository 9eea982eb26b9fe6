"""Inspect's hooks: they request log-probabilities, and record the evaluation of each sample."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path

from inspect_ai.hooks import BeforeModelGenerate, Hooks, TaskStart, hooks
from inspect_ai.log._samples import sample_active

from gatekeeper.adapters.openai import ALTERNATIVES

__all__ = ["AskForLogprobs", "KnowRuns", "Run", "this_run"]

LOGPROBS = "GATEKEEPER_LOGPROBS"  # the environment variable that turns the hook on


@dataclass(frozen=True, slots=True)
class Run:
    """An evaluation: one task with one model. A retry of it has the same `task_id`."""

    task_id: str
    name: str
    log: str  # Inspect's own log: a path or an address
    horizon: int | None  # samples times epochs

    @property
    def folder(self) -> Path | None:
        """The folder of Inspect's log; None if it is not on this machine."""
        location = self.log.removeprefix("file://")
        return None if "://" in location else Path(location).resolve().parent


_tasks: dict[str, tuple[str, str, int | None]] = {}  # by eval_id: task_id, name, samples × epochs


@hooks(name="logprobs", description="requests log-probabilities from every model")
class AskForLogprobs(Hooks):  # type: ignore[misc]  # untyped where it is not installed
    """Enabled by the environment variable GATEKEEPER_LOGPROBS; keeps `logprobs=False`."""

    def enabled(self) -> bool:
        return os.environ.get(LOGPROBS, "0") not in ("", "0")

    async def on_before_model_generate(self, data: BeforeModelGenerate) -> None:
        if data.config.logprobs is not False:
            data.config.logprobs = True
            data.config.top_logprobs = max(data.config.top_logprobs or 0, ALTERNATIVES)


@hooks(name="runs", description="remembers the running evaluations for gatekeeper's scorer")
class KnowRuns(Hooks):  # type: ignore[misc]
    """Keeps the task and the number of outputs of each running evaluation."""

    async def on_task_start(self, data: TaskStart) -> None:
        spec = data.spec
        ids, samples = spec.dataset.sample_ids, spec.dataset.samples
        n = len(ids) if ids else samples
        horizon = n * (spec.config.epochs or 1) if n else None
        _tasks[data.eval_id] = (spec.task_id, spec.task, horizon)


def this_run() -> Run | None:
    """The evaluation whose sample is being scored; None where `inspect score` reads a log."""
    active = sample_active()
    if active is None:
        return None
    task_id, name, horizon = _tasks.get(active.eval_id, (active.eval_id, active.task, None))
    return Run(task_id, name, active.log_location, horizon)
