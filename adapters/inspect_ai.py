"""Inspect AI: a scorer that has a gate choose which samples the scorer you name gets to see.

    GATEKEEPER_LOGPROBS=1 inspect eval task.py --no-score --model openai/gpt-4o-mini
    inspect score logs/FILE.eval --scorer gatekeeper/gated -S scorer=match -S budget=0.3 \
        -S log=run.db --action overwrite --overwrite
    python -m gatekeeper.adapters.inspect_ai report run.db

Inspect finds this module by its entry point. What was not selected is `Score.unscored`, with the
decision in its metadata; the metrics are estimates for all samples, with intervals.
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

from gatekeeper.adapters._turns import Turns
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
    """Inspect prints such an error as one line, any other with its traceback."""
    try:
        yield
    except GatekeeperError as e:
        raise PrerequisiteError(escape(f"gatekeeper: {e}")) from e


def _named(decorate: Any, name: str, **how: Any) -> Any:
    """Register under `gatekeeper/name`, which Inspect does by itself only for wheels."""

    def register(made: Any) -> Any:
        registered = decorate(name=name, **how)(made)
        if registry_info(registered).name == name:
            registered = decorate(name=f"gatekeeper/{name}", **how)(made)
        return registered

    return register


@hooks(name="logprobs", description="asks every model for log-probabilities")
class AskForLogprobs(Hooks):  # type: ignore[misc]  # untyped where it is not installed
    """Turned on by the environment variable GATEKEEPER_LOGPROBS; honours `logprobs=False`."""

    def enabled(self) -> bool:
        return os.environ.get(LOGPROBS, "0") not in ("", "0")

    async def on_before_model_generate(self, data: BeforeModelGenerate) -> None:
        if data.config.logprobs is not False:
            data.config.logprobs = True
            data.config.top_logprobs = max(data.config.top_logprobs or 0, ALTERNATIVES)


# -- the gate ----------------------------------------------------------------------------------

_open: dict[Path, tuple[Any, Turns]] = {}  # by log, with its settings, while the process lives


def _turns(log: Path, settings: dict[str, Any]) -> Turns:
    """One gate for one log, also where a program scores twice."""
    known, turns = _open.get(log, (None, None))
    if turns is not None and known != settings:
        if not turns.idle:
            raise BadInputError(f"log={str(log)!r}: another scorer uses it, give each its own")
        turns.gate.close()
        turns = None
    if turns is None:
        turns = Turns(_gate(log=log, **settings))
        _open[log] = (settings, turns)
    return turns


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
    """It decides; the scorer is run where Inspect wants it, and its verdicts are reported."""
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
    """Of all samples: `accuracy` as estimated from those that were verified, `low` and `high` of
    its 95 % interval, the share `verified`, and `accuracy_verified`, the share of right ones
    among these, which is no estimate of anything: the gate picks the doubtful ones.
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
    """The scorer of that registered name, for the samples that a gate selects within a budget.

    scorer      "match", "mypackage/mine", or one that the task's own file has; `arguments` are its
    log         the gate's log, SQLite: resumed with the same settings; one for each eval log
    budget      share of the samples after the warm-up, in (0, 1]; 1 scores them all
    policy, explore, seed   as for `VerificationGate`
    horizon     how many samples (times epochs) are to come, where that is known
    passing     the least value that counts as right; "C" is 1, "P" 0.5, "I" and "N" 0
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
            raise BadInputError(f"scorer={scorer!r}: name one, for example -S scorer=match")
        if not (isinstance(log, str) and log):
            raise BadInputError(f"log={log!r}: give a file name, for example -S log=run.db")
        if isinstance(passing, bool) or not isinstance(passing, int | float):
            raise BadInputError(f"passing={passing!r}: a number is needed")
        _gate(log=None, **settings).close()  # says what is wrong before anything is scored
    wrapped, path = _wrapped(scorer, arguments), Path(log).resolve()

    async def score(state: TaskState, target: Target) -> Score | None:
        if budget == 1:  # nothing is missing: what the scorer has always measured
            own = registry_info(wrapped).metadata["metrics"]
            if isinstance(own, Sequence):
                registry_info(score).metadata["metrics"] = [*own, whole_set()]
        with _one_line():
            turns = _turns(path, settings)
            order = (state.epoch, isinstance(state.sample_id, str), state.sample_id)
            async with turns.turn(order, _generation(state)) as turn:
                assert turn.result is not None
                given = _known(turn.result)
                if given is None and turn.result.decision.verify:
                    given = await wrapped(state, target)
                    turn.outcome = _outcome(given, scorer, float(passing))
        return _annotated(given, turn.result, path)

    return score


gated = _named(as_scorer, "gated", metrics=[whole_set()])(_gated)


_unknown: set[str] = set()  # scorers that Inspect may find in the task's file


def _wrapped(name: str, arguments: dict[str, Any]) -> Scorer:
    """Raises ValueError the first time, at which Inspect loads the task's file and asks again."""
    try:
        return registry_create("scorer", name, **arguments)
    except LookupError:
        message = f"scorer={name!r}: no scorer of that name is registered, nor in the task's file"
        if name in _unknown:
            raise PrerequisiteError(escape(f"gatekeeper: {message}")) from None
        _unknown.add(name)
        raise BadInputError(message) from None
    except TypeError as e:
        raise PrerequisiteError(escape(f"gatekeeper: scorer={name!r}: {e}")) from None


def _generation(state: TaskState) -> Generation:
    """The sample's last output, as a chat completion is read."""
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
    """What the wrapped scorer says of one sample, with the score itself."""
    if score is None:
        return Outcome(Verdict.INFRA_ERROR, detail=f"{scorer} gave no score")
    if not isinstance(score.value, str | int | float):
        raise BadInputError(
            f"scorer={scorer!r} gives {score.value!r:.80}: a gate needs one value per sample, to "
            "know right from wrong"
        )
    meta = {"score": score.model_dump_json()}
    value = _to_float(score.value)
    if isnan(value):
        return Outcome(Verdict.INFRA_ERROR, detail=score.explanation or "unscored", meta=meta)
    if score.value == NOANSWER:
        return Outcome(Verdict.NO_ANSWER, meta=meta)
    return Outcome(Verdict.PASSED if value >= passing else Verdict.FAILED, meta=meta)


def _known(result: GateResult) -> Score | None:
    """The score that the log has from an earlier run."""
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
    """`report run.db`: the estimates for all samples, in words. 2 for bad input."""
    parser = argparse.ArgumentParser(prog="python -m gatekeeper.adapters.inspect_ai")
    commands = parser.add_subparsers(required=True, metavar="command")
    report = commands.add_parser("report", help="the error rate of all samples, by estimate")
    report.add_argument("log", type=Path, help="what `-S log=` named")
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
