"""Inspect AI: a scorer that passes the samples that a gate selects to the scorer that you name.

    GATEKEEPER_LOGPROBS=1 inspect eval task.py --no-score --model openai/gpt-4o-mini
    inspect score logs/FILE.eval --scorer gatekeeper/gated -S scorer=match -S budget=0.3 \
        -S log=run.db --action overwrite --overwrite
    python -m gatekeeper.adapters.inspect_ai report run.db

Inspect finds this module by its entry point. A sample that was not selected gets `Score.unscored`,
with the decision in its metadata; the metrics are estimates for all samples, with intervals.
"""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from math import isnan
from pathlib import Path
from typing import Any

from inspect_ai._util.error import PrerequisiteError
from inspect_ai.hooks import BeforeModelGenerate, Hooks, hooks
from inspect_ai.model import ModelOutput
from inspect_ai.scorer import (
    NOANSWER,
    Metric,
    SampleScore,
    Score,
    Scorer,
    Target,
    Value,
    metric,
    value_to_float,
)
from inspect_ai.scorer import scorer as as_scorer
from inspect_ai.solver import TaskState
from inspect_ai.util import registry_create, registry_info
from rich.markup import escape

from gatekeeper.adapters.harness.ordered_queue import OrderedQueue
from gatekeeper.adapters.openai import ALTERNATIVES, generation_of
from gatekeeper.analysis.estimates import estimate, show
from gatekeeper.budget import Budget
from gatekeeper.errors import BadInputError, GatekeeperError
from gatekeeper.gate import VerificationGate
from gatekeeper.io.records import records_of_log
from gatekeeper.types import GateResult, Generation, Outcome, Verdict

__all__ = ["AskForLogprobs", "gated", "main", "whole_set"]

LOGPROBS = "GATEKEEPER_LOGPROBS"  # the environment variable that turns the hook on


@contextmanager
def _one_line() -> Iterator[None]:
    """Raise errors of the gate as the kind that Inspect prints in one line."""
    try:
        yield
    except GatekeeperError as e:
        raise PrerequisiteError(escape(f"gatekeeper: {e}")) from e


def _named(decorate: Any, name: str, **options: Any) -> Any:
    """Register as `gatekeeper/name`, which Inspect itself does only for wheels."""

    def register(made: Any) -> Any:
        registered = decorate(name=name, **options)(made)
        if registry_info(registered).name == name:
            registered = decorate(name=f"gatekeeper/{name}", **options)(made)
        return registered

    return register


@hooks(name="logprobs", description="requests log-probabilities from every model")
class AskForLogprobs(Hooks):  # type: ignore[misc]  # untyped where it is not installed
    """Enabled by the environment variable GATEKEEPER_LOGPROBS; keeps `logprobs=False`."""

    def enabled(self) -> bool:
        return os.environ.get(LOGPROBS, "0") not in ("", "0")

    async def on_before_model_generate(self, data: BeforeModelGenerate) -> None:
        if data.config.logprobs is not False:
            data.config.logprobs = True
            data.config.top_logprobs = max(data.config.top_logprobs or 0, ALTERNATIVES)


# -- the gate ----------------------------------------------------------------------------------

_open: dict[Path, tuple[Any, OrderedQueue]] = {}  # by log, with its settings


def _queue(log: Path, settings: dict[str, Any]) -> OrderedQueue:
    """The queue of the gate with this log: one per process, also where a program scores twice."""
    known, queue = _open.get(log, (None, None))
    if queue is not None and known != settings:
        if not queue.idle:
            raise BadInputError(
                f"log={str(log)!r}: another scorer uses it: give each scorer its own log"
            )
        queue.gate.close()
        queue = None
    if queue is None:
        queue = OrderedQueue(_gate(log=log, **settings))
        _open[log] = (settings, queue)
    return queue


def _gate(
    *,
    log: Path | None,
    policy: str,
    budget: float,
    horizon: int | None,
    explore: float,
    seed: int,
    scoring: dict[str, Any],
) -> VerificationGate:
    """A gate without a verifier: Inspect runs the scorer, and its verdicts are reported."""
    return VerificationGate(
        policy,
        budget=Budget(fraction=budget, horizon=horizon),
        log=log,
        seed=seed,
        explore=explore,
        settings=scoring,
    )


# -- the metric --------------------------------------------------------------------------------


def _whole_set() -> Metric:
    """The accuracy of all samples, estimated from those that were verified.

    `estimate`, `low` and `high` are the estimate and its 95 % interval, `verified` is the share
    of verified samples, and `accuracy_verified` the share of right samples among these. The last
    one estimates nothing: the gate selects uncertain samples.
    """

    def compute(scores: list[SampleScore]) -> Value:
        gates = [(score.score.metadata or {}).get("gate", {}) for score in scores]
        logs = {gate["log"] for gate in gates if "log" in gate}
        if len(logs) != 1 or not Path(log := logs.pop()).exists():
            return {}
        records = list(records_of_log(log))
        found = estimate(records)
        best = found.assisted or found.weighted
        values = {"verified": sum(r.verified is True for r in records) / len(records)}
        if found.naive is not None:
            values["accuracy_verified"] = 1 - found.naive.value
        if best is not None:
            values |= {"estimate": 1 - best.value, "low": 1 - best.high, "high": 1 - best.low}
        return dict(sorted(values.items(), key=lambda item: SHOWN.index(item[0])))

    return compute


SHOWN = ("estimate", "low", "high", "verified", "accuracy_verified")
whole_set = _named(metric, "whole_set")(_whole_set)


# -- the scorer --------------------------------------------------------------------------------


def _gated(
    scorer: str | None = None,
    *,
    log: str | None = None,
    budget: float = 0.2,
    policy: str = "cst",
    explore: float = 0.1,
    horizon: int | None = None,
    seed: int = 0,
    passing: float = 1.0,
    **arguments: Any,
) -> Scorer:
    """A registered scorer, for the samples that a gate selects within a budget.

    Parameters
    ----------
    scorer : str
        "match", "mypackage/mine", or a scorer in the task's own file.
    log : str
        SQLite file of the gate, resumed with the same settings; one for each eval log.
    budget : float
        Share of the samples after the warm-up, in (0, 1]; 1 scores all of them.
    policy, explore, seed
        As for `VerificationGate`.
    horizon : int or None
        How many samples (times epochs) there will be, if known.
    passing : float
        The least value that is right; "C" is 1, "P" 0.5, "I" and "N" 0.
    **arguments
        Of the scorer.
    """
    settings: dict[str, Any] = {
        "policy": policy,
        "budget": budget,
        "horizon": horizon,
        "explore": explore,
        "seed": seed,
        "scoring": {"scorer": scorer, "arguments": arguments, "passing": passing},
    }
    with _one_line():
        if not (isinstance(scorer, str) and scorer):
            raise BadInputError(f"scorer={scorer!r}: give its name, for example -S scorer=match")
        if not (isinstance(log, str) and log):
            raise BadInputError(f"log={log!r}: give a file name, for example -S log=run.db")
        if isinstance(passing, bool) or not isinstance(passing, int | float):
            raise BadInputError(f"passing={passing!r}: a number is needed")
        _gate(log=None, **settings).close()  # raises for wrong settings before anything is scored
    wrapped, path = _wrapped(scorer, arguments), Path(log).resolve()

    async def score(state: TaskState, target: Target) -> Score | None:
        if budget == 1:  # every sample has a score: the scorer's own metrics hold
            own = registry_info(wrapped).metadata["metrics"]
            if isinstance(own, Sequence):
                registry_info(score).metadata["metrics"] = [*own, whole_set()]
        with _one_line():
            queue = _queue(path, settings)
            order = (state.epoch, isinstance(state.sample_id, str), state.sample_id)
            async with queue.decided(order, _generation(state)) as queued:
                assert queued.result is not None
                given = _known(queued.result)
                if given is None and queued.result.decision.verify:
                    given = await wrapped(state, target)
                    queued.outcome = _outcome(given, scorer, float(passing))
        return _annotated(given, queued.result, path)

    return score


gated = _named(as_scorer, "gated", metrics=[whole_set()])(_gated)


_unknown: set[str] = set()  # scorers that the task's file may define


def _wrapped(name: str, arguments: dict[str, Any]) -> Scorer:
    """The scorer. Raises ValueError the first time: Inspect loads the task's file and retries."""
    try:
        return registry_create("scorer", name, **arguments)
    except LookupError:
        message = f"scorer={name!r}: no scorer of that name is registered or in the task's file"
        if name in _unknown:
            raise PrerequisiteError(escape(f"gatekeeper: {message}")) from None
        _unknown.add(name)
        raise BadInputError(message) from None
    except TypeError as e:
        raise PrerequisiteError(escape(f"gatekeeper: scorer={name!r}: {e}")) from None


def _generation(state: TaskState) -> Generation:
    """The sample's last output, read as a chat completion."""
    output: ModelOutput = state.output
    choices: list[Any] = list(output.choices[:1])
    usage = output.usage if len(output.choices) == 1 else None
    parts = (
        []
        if not choices or isinstance(choices[0].message.content, str)
        else choices[0].message.content
    )
    message = {
        "content": output.completion,
        "reasoning": "".join(p.reasoning for p in parts if p.type == "reasoning") or None,
    }
    return generation_of(
        {
            "id": f"{state.sample_id}/{state.epoch}",
            "model": output.model,
            "choices": [
                {
                    "message": message,
                    "logprobs": choices[0].logprobs if choices else None,
                    "finish_reason": choices[0].stop_reason if choices else None,
                }
            ],
            "usage": None
            if usage is None
            else {
                "prompt_tokens": usage.input_tokens,
                "completion_tokens": usage.output_tokens,
                "completion_tokens_details": {"reasoning_tokens": usage.reasoning_tokens},
            },
        }
    )


_to_float = value_to_float()


def _outcome(score: Score | None, scorer: str, passing: float) -> Outcome:
    """The verdict of the wrapped scorer on one sample, with the score itself."""
    if score is None:
        return Outcome(Verdict.INFRA_ERROR, detail=f"{scorer} gave no score")
    if not isinstance(score.value, str | int | float):
        raise BadInputError(
            f"scorer={scorer!r} gives {score.value!r:.80}: a gate needs one value per "
            "sample, to separate right from wrong"
        )
    meta = {"score": score.model_dump_json()}
    value = _to_float(score.value)
    if isnan(value):
        return Outcome(Verdict.INFRA_ERROR, detail=score.explanation or "unscored", meta=meta)
    if score.value == NOANSWER:
        return Outcome(Verdict.NO_ANSWER, meta=meta)
    return Outcome(Verdict.PASSED if value >= passing else Verdict.FAILED, meta=meta)


def _known(result: GateResult) -> Score | None:
    """The score of an earlier run, from the log."""
    kept = result.outcome.meta.get("score") if result.outcome else None
    return Score.model_validate_json(kept) if kept else None


def _annotated(score: Score | None, result: GateResult, log: Path) -> Score | None:
    decision, signals = result.decision, result.signals
    gate = {
        "verify": decision.verify,
        "reason": str(decision.reason),
        "propensity": decision.propensity,
        "score": _finite(decision.score),
        "threshold": _finite(decision.threshold),
        "signal": str(signals.state),
        "log": str(log),
    }
    if decision.verify:
        metadata = {**((score and score.metadata) or {}), "gate": gate}
        return score and score.model_copy(update={"metadata": metadata})
    return Score.unscored(
        explanation=f"not verified: {decision.reason} (propensity {decision.propensity:.3g})",
        metadata={"gate": gate},
    )


def _finite(value: float) -> float | None:
    return None if isnan(value) else value


# -- the report --------------------------------------------------------------------------------


def main(argv: Sequence[str] | None = None) -> int:
    """`report run.db` prints the estimates for all samples. Returns 2 for bad input."""
    parser = argparse.ArgumentParser(prog="python -m gatekeeper.adapters.inspect_ai")
    commands = parser.add_subparsers(required=True, metavar="command")
    report = commands.add_parser("report", help="print the estimated error rate of all samples")
    report.add_argument("log", type=Path, help="the log that `-S log=` named")
    args = parser.parse_args(argv)
    try:
        records = list(records_of_log(args.log))
    except GatekeeperError as e:
        print(f"gatekeeper: {e}", file=sys.stderr)
        return 2
    verified = sum(record.verified is True for record in records)
    print(
        f"{verified} of {len(records)} samples were verified.", *show(estimate(records)), sep="\n"
    )
    return 0


if __name__ == "__main__":
    sys.exit(main())
