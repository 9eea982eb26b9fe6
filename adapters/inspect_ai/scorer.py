"""Inspect's scorer `gatekeeper/gated`: another scorer, for the samples that a gate selects."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from inspect_ai._util.error import PrerequisiteError
from inspect_ai.scorer import Score, Scorer, Target
from inspect_ai.scorer import scorer as as_scorer
from inspect_ai.solver import TaskState
from inspect_ai.util import registry_create, registry_info
from rich.markup import escape

from gatekeeper.adapters.inspect_ai.gates import checked_options, log_of, one_line, queue_of
from gatekeeper.adapters.inspect_ai.hooks import this_run
from gatekeeper.adapters.inspect_ai.metric import whole_set
from gatekeeper.adapters.inspect_ai.outputs import (
    annotated,
    generation_of_state,
    known_score,
    outcome_of,
    the_logs,
)
from gatekeeper.adapters.inspect_ai.registry import named
from gatekeeper.arguments import check_finite
from gatekeeper.errors import BadInputError
from gatekeeper.policies import T0, Goal

__all__ = ["gated"]


def _gated(
    scorer: str | None = None,
    *,
    log: str | None = None,
    goal: Goal = "score",
    budget: float | None = None,
    total: int | None = None,
    policy: str | None = None,
    warmup: int = T0,
    explore: float = 0.1,
    horizon: int | None = None,
    seed: int = 0,
    passing: float = 1.0,
    key: str | None = None,
    **arguments: Any,
) -> Scorer:
    """A registered scorer, for the samples that a gate selects within a budget.

    Parameters
    ----------
    scorer : str
        "match", "mypackage/mine", or a scorer in the task's own file.
    log : str or None
        SQLite file of the gate (`.db`), or a folder with one for each evaluation; None: in the
        folder of Inspect's log. `inspect score` needs a file.
    goal : {"score", "errors"}
        Estimate the score of all samples, or find wrong ones.
    budget : float or None
        Share of the samples, in (0, 1]; 1 scores all of them. None: 0.2, unless there is a total.
    total : int or None
        Most samples to score, the warm-up included; beside the budget, or alone with a horizon.
    policy, warmup, explore, seed
        As for `VerificationGate`.
    horizon : int or None
        Number of samples (times epochs) to come; None: taken from the running evaluation.
    passing : float
        The least value that is right; "C" is 1, "P" 0.5, "I" and "N" 0.
    key : str or None
        The value that decides what is right, if a score has several; None: the first.
    **arguments
        Arguments of the scorer.
    """
    scoring = {"scorer": scorer, "arguments": arguments, "passing": passing, "key": key}
    with one_line():
        if not (isinstance(scorer, str) and scorer):
            raise BadInputError(f"-S scorer={scorer!r}: give its name, as -S scorer=match")
        if log is not None and not (isinstance(log, str) and log):
            raise BadInputError(f"-S log={log!r}: give a file name, as -S log=run.db")
        check_finite("-S passing", passing)
        options = checked_options(
            scoring,
            goal=goal,
            policy=policy,
            budget=budget,
            total=total,
            warmup=warmup,
            explore=explore,
            seed=seed,
        )
    wrapped = _wrapped(scorer, arguments)
    own = registry_info(wrapped).metadata["metrics"]

    async def score(state: TaskState, target: Target) -> Score | None:
        if budget == 1:  # every sample has a score: the scorer's own metrics hold
            mine = [own] if isinstance(own, Mapping) else [*own]
            registry_info(score).metadata["metrics"] = [*mine, whole_set()]
        with one_line():
            run = this_run()
            path = log_of(log, run)
            expected = horizon or (None if run is None else run.horizon)
            of_run = scoring | ({} if run is None else {"task": run.task_id})
            queue = queue_of(replace(options, log=path), of_run, expected)
            generation = the_logs(
                queue.gate, generation_of_state(state), state, running=run is not None
            )
            order = (state.epoch, isinstance(state.sample_id, str), state.sample_id)
            async with queue.decided(order, generation) as queued:
                assert queued.result is not None
                given = known_score(queued.result)
                if given is None and queued.result.decision.verify:
                    given = await wrapped(state, target)
                    queued.outcome = outcome_of(given, scorer, float(passing), key)
        return annotated(given, queued.result, path)

    return score


gated = named(as_scorer, "gated", metrics=[whole_set()])(_gated)


_unknown: set[str] = set()  # scorers that the task's file may define


def _wrapped(name: str, arguments: dict[str, Any]) -> Scorer:
    """The scorer. Raises ValueError the first time: Inspect loads the task's file and retries."""
    try:
        return registry_create("scorer", name, **arguments)
    except LookupError:
        message = f"-S scorer={name}: no scorer of that name is registered or in the task's file"
        if name in _unknown:
            raise PrerequisiteError(escape(f"gatekeeper: {message}")) from None
        _unknown.add(name)
        raise BadInputError(message) from None
    except TypeError as e:
        raise PrerequisiteError(escape(f"gatekeeper: -S scorer={name}: {e}")) from None
