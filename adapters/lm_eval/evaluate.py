"""One evaluation of the harness, with the gate in front of its metrics."""

from __future__ import annotations

import importlib
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict
from typing import Any

from gatekeeper.adapters.harness.gate import GateOptions
from gatekeeper.adapters.harness.release import unusable
from gatekeeper.adapters.lm_eval.grading import Grading
from gatekeeper.adapters.lm_eval.session import RunReport, Session
from gatekeeper.errors import BadInputError
from gatekeeper.wording import one_line

__all__ = ["evaluate", "load_harness", "replaced", "simple_evaluate"]

CHAT = "gated-chat"


def simple_evaluate(
    model: Any, *, gate: GateOptions, grading: Grading | None = None, **kwargs: Any
) -> Any:
    """`lm_eval.simple_evaluate`, with the metrics of generating tasks computed within a budget.

    Parameters
    ----------
    model : str or lm_eval.api.model.LM
        `gated-chat` and `gated-completions` keep log-probabilities; with any other model the
        documents to verify are drawn at random.
    gate : GateOptions
    grading : Grading or None
        What decides whether an answer is right; None: the first metric of each task.
    **kwargs
        The other arguments of `lm_eval.simple_evaluate`.

    Returns
    -------
    dict
        The harness's results. `gatekeeper` has for the run, for each task and for each group the
        verified documents and the scores of all documents.

    Raises
    ------
    GatekeeperError
        And every error that the harness raises.
    """
    if not isinstance(gate, GateOptions):
        raise BadInputError(f"gate={gate!r:.80}: give GateOptions, such as GateOptions(budget=0.2)")
    if not isinstance(grading, Grading | None):
        raise BadInputError(f"grading={grading!r:.80}: give a Grading, or None")
    gate.check_goal("gate.{}={!r}")
    return evaluate(model, gate, grading or Grading(), kwargs)[0]


def evaluate(
    model: Any, options: GateOptions, grading: Grading, kwargs: dict[str, Any]
) -> tuple[Any, RunReport]:
    """The harness's results, and the report of the run."""
    load_harness()
    from lm_eval.evaluator import simple_evaluate as harness_evaluate
    from lm_eval.tasks import TaskManager
    from lm_eval.utils import simple_parse_args_string

    if model == CHAT and not kwargs.get("apply_chat_template"):
        raise BadInputError(f"model={CHAT!r} needs a chat endpoint: add --apply_chat_template")
    if kwargs.get("predict_only"):
        raise BadInputError("predict_only=True computes no metrics: there is nothing to gate")
    given = kwargs.get("model_args") or {}
    given = simple_parse_args_string(given) if isinstance(given, str) else given
    manager = kwargs.pop("task_manager", None) or TaskManager(
        metadata=given | (kwargs.get("metadata") or {})
    )
    if options.log is not None and kwargs.get("use_cache") is None:
        # A resumed run does not generate, and pay for, its outputs again.
        kwargs["use_cache"] = f"{options.log}.responses"
    name = model if isinstance(model, str) else type(model).__name__
    settings = {"model": [name, given.get("model")], "grading": asdict(grading)}
    session = Session(options, grading, settings=settings)
    load = manager.load

    def adopting(tasks: Any) -> Any:
        try:
            loaded = load(tasks)
        except Exception as e:
            raise BadInputError(f"tasks={tasks!r} cannot be loaded: {one_line(e)}") from e
        session.adopt(loaded["tasks"], loaded.get("groups"))
        return loaded

    try:
        with replaced(manager, "load", adopting):
            results = harness_evaluate(model, task_manager=manager, **kwargs)
        report = session.conclude(results)
    finally:
        session.close()
    return results, report


def load_harness() -> tuple[Any, tuple[type[Exception], ...]]:
    """The harness, with the gated models registered, and the errors of an unreachable endpoint."""
    try:
        harness = importlib.import_module("lm_eval")
        importlib.import_module("gatekeeper.adapters.lm_eval.models")
        manager = importlib.import_module("lm_eval.tasks").TaskManager
        _ = manager.load  # what the gate is put into
        from aiohttp import ClientError
        from requests import RequestException
    except (ImportError, AttributeError) as e:
        raise unusable("lm-eval", "0.4.13", extra="lm-eval", error=e) from e
    return harness, (ClientError, RequestException, TimeoutError)


@contextmanager
def replaced(owner: Any, name: str, value: Any) -> Iterator[None]:
    """Replace an attribute for the time of a `with` block."""
    before = vars(owner).get(name)
    setattr(owner, name, value)
    try:
        yield
    finally:
        if before is None:
            delattr(owner, name)
        else:
            setattr(owner, name, before)
