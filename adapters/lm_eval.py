"""lm-evaluation-harness with the gate in front of its metrics.

`python -m gatekeeper.adapters.lm_eval` is the harness's own command line with a few options more
(docs/lm-eval.md). In Python, `simple_evaluate` takes what the harness's does, and `gate`.
"""

from __future__ import annotations

import argparse
import importlib
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, fields
from typing import Any

from gatekeeper.adapters._harness import GateOptions, Report, add_options, options_of
from gatekeeper.adapters.lm_eval_gate import Grading, Session
from gatekeeper.errors import BadInputError, GatekeeperError, MissingDependencyError

__all__ = ["GateOptions", "Grading", "main", "simple_evaluate"]

CHAT = "gated-chat"


def simple_evaluate(
    model: Any, *, gate: GateOptions, grading: Grading | None = None, **kwargs: Any
) -> Any:
    """`lm_eval.simple_evaluate`, with the metrics of generating tasks computed within a budget.

    model     `gated-chat` and `gated-completions` keep log-probabilities; with any other the
              documents to verify are drawn at random
    grading   what says that an answer is right

    Returns the harness's results, with `gatekeeper` among them: by task, which documents were
    verified, and the estimates for all. Raises GatekeeperError, and what the harness raises.
    """
    return _evaluate(model, gate, grading or Grading(), kwargs)[0]


def main(argv: Sequence[str] | None = None) -> int:
    """The harness's command line. Returns 0, 1 where a verifier could not tell, 2 for bad input."""
    parser = argparse.ArgumentParser(
        prog="python -m gatekeeper.adapters.lm_eval",
        usage="%(prog)s [--gate_… …] <what lm-eval takes>",
        add_help=False,
        allow_abbrev=False,
    )
    add_options(parser, "--gate_")
    of = parser.add_argument
    of("--gate_metric", metavar="NAME", help="the metric that says what is right (default: first)")
    of("--gate_filter", metavar="NAME", help="the filter whose metric counts (default: the first)")
    of("--gate_passing", type=float, default=1.0, metavar="X", help="right from this value on")
    of("--gate_verifier", metavar="NAME", help="judges instead: math, docker, local or a plug-in")
    args, rest = parser.parse_known_args(argv)
    if not rest or {"-h", "--help"} & set(rest):
        parser.print_help()
        print()
    grading = Grading(**{f.name: getattr(args, f"gate_{f.name}") for f in fields(Grading)})
    reports: dict[str, Report] = {}
    begun = False

    def gated(model: Any, **kwargs: Any) -> Any:
        nonlocal begun
        begun = True
        results, found = _evaluate(model, options_of(args), grading, kwargs)
        reports.update(found)
        return results

    try:
        harness, unreachable = _harness()
        with (
            _in_place_of(harness, "simple_evaluate", gated),
            _in_place_of(sys, "argv", ["lm-eval", *rest]),
        ):
            importlib.import_module("lm_eval.__main__").cli_evaluate()
    except GatekeeperError as e:
        return _say(e)
    except unreachable as e:
        return _say(f"the model did not answer: {e}")
    except (ValueError, TypeError, OSError) as e:
        if begun:
            raise
        return _say(e)  # of the harness, on its arguments
    except KeyboardInterrupt:
        later = "the same command goes on from there" if args.gate_log else "all is lost"
        _say(f"interrupted; {later}")
        return 130
    for name, report in reports.items():
        print(f"gatekeeper, task {name}:")
        print(*(f"  {line}" for line in report.lines()), sep="\n")
    return 1 if any(r.summary.could_not_tell for r in reports.values()) else 0


def _evaluate(
    model: Any, options: GateOptions, grading: Grading, kwargs: dict[str, Any]
) -> tuple[Any, dict[str, Report]]:
    _harness()
    from lm_eval.evaluator import simple_evaluate as evaluate
    from lm_eval.tasks import TaskManager
    from lm_eval.utils import simple_parse_args_string

    if model == CHAT and not kwargs.get("apply_chat_template"):
        raise BadInputError(f"model={CHAT!r} talks to a chat endpoint: add --apply_chat_template")
    if kwargs.get("predict_only"):
        raise BadInputError("predict_only=True computes no metrics: there is nothing to gate")
    given = kwargs.get("model_args") or {}
    given = simple_parse_args_string(given) if isinstance(given, str) else given
    manager = kwargs.pop("task_manager", None) or TaskManager(
        metadata=given | (kwargs.get("metadata") or {})
    )
    if options.log is not None and kwargs.get("use_cache") is None:
        # What was generated before an interruption is not generated, and paid for, again.
        kwargs["use_cache"] = f"{options.log}.responses"
    name = model if isinstance(model, str) else type(model).__name__
    settings = {"model": [name, given.get("model")], "grading": asdict(grading)}
    session = Session(options, grading, settings=settings)
    load = manager.load

    def adopting(tasks: Any) -> Any:
        try:
            loaded = load(tasks)
        except Exception as e:
            raise BadInputError(f"tasks={tasks!r} cannot be loaded: {_one_line(e)}") from e
        session.adopt(loaded["tasks"])
        return loaded

    try:
        with _in_place_of(manager, "load", adopting):
            results = evaluate(model, task_manager=manager, **kwargs)
        reports = session.conclude(results)
    finally:
        session.close()
    return results, reports


def _harness() -> tuple[Any, tuple[type[Exception], ...]]:
    """The harness, with our models in it, and what its models raise without an answer."""
    try:
        harness = importlib.import_module("lm_eval")
        importlib.import_module("gatekeeper.adapters.lm_eval_models")
        from aiohttp import ClientError
        from requests import RequestException
    except ImportError as e:
        raise MissingDependencyError(
            e.name or "lm_eval", extra="lm-eval", needed_for="the adapter for lm-eval"
        ) from e
    return harness, (ClientError, RequestException, TimeoutError)


@contextmanager
def _in_place_of(owner: Any, name: str, value: Any) -> Iterator[None]:
    before = vars(owner).get(name)
    setattr(owner, name, value)
    try:
        yield
    finally:
        if before is None:
            delattr(owner, name)
        else:
            setattr(owner, name, before)


def _one_line(error: Exception) -> str:
    return " ".join(f"{type(error).__name__}: {error}".split())


def _say(what: object) -> int:
    text = (
        _one_line(what)
        if isinstance(what, Exception) and not isinstance(what, GatekeeperError)
        else what
    )
    print(f"gatekeeper: {text}", file=sys.stderr)
    return 2


if __name__ == "__main__":
    # As the module that everybody else imports, not as a second one.
    sys.exit(importlib.import_module("gatekeeper.adapters.lm_eval").main())
