"""Inspect's outputs and scores, as the gate has them."""

from __future__ import annotations

from dataclasses import replace
from math import isfinite, isnan
from pathlib import Path
from typing import Any

from inspect_ai.model import ModelOutput
from inspect_ai.scorer import NOANSWER, Score, value_to_float
from inspect_ai.solver import TaskState

from gatekeeper.adapters.openai import generation_of
from gatekeeper.errors import BadInputError
from gatekeeper.gate import VerificationGate
from gatekeeper.types import GateResult, Generation, Outcome, Verdict

__all__ = [
    "METADATA",
    "annotated",
    "generation_of_state",
    "known_score",
    "numbers",
    "outcome_of",
    "the_logs",
]

METADATA = "gate"  # the key of the decision in a score's metadata, beside the scorer's own

_to_float = value_to_float()


def generation_of_state(state: TaskState) -> Generation:
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


def the_logs(
    gate: VerificationGate, generation: Generation, state: TaskState, *, running: bool
) -> Generation:
    """The output that the gate's log has for this sample, in the sample too.

    A retry generates again what an interruption left open. What was decided on, and perhaps
    scored, was the first output: it counts.

    Raises
    ------
    BadInputError
        If a log that was read (not `running`) has another output: it is another evaluation's.
    """
    if gate.find(generation.id) is None:
        return generation
    text = gate.output(generation.id).text
    if text == generation.text:
        return generation
    if not running:
        raise BadInputError(
            f"-S log: it has another output for sample {state.sample_id!r}, epoch {state.epoch}, "
            "so it belongs to another eval log. Give each eval log its own"
        )
    if state.output.choices:
        state.output.choices[0].message.content = text
    state.output.completion = text
    return replace(generation, text=text)


def numbers(value: object) -> dict[str, float]:
    """A score's value as numbers: by key, by place in a list, or one with the key ""."""
    if isinstance(value, dict):
        return {str(key): _number(each) for key, each in value.items()}
    if isinstance(value, list | tuple):
        return {str(place + 1): _number(each) for place, each in enumerate(value)}
    return {"": _number(value)}


def outcome_of(score: Score | None, scorer: str, passing: float, key: str | None) -> Outcome:
    """The verdict of the wrapped scorer on one sample, with the score itself."""
    if score is None:
        return Outcome(Verdict.INFRA_ERROR, detail=f"{scorer} gave no score")
    meta = {"score": score.model_dump_json()}
    found = numbers(score.value)
    if not found:
        return Outcome(Verdict.INFRA_ERROR, detail=f"{scorer} gave no values", meta=meta)
    if key is not None and key not in found and len(found) > 1:
        raise BadInputError(f"-S key={key}: {scorer} gives the values {', '.join(found)}")
    value = found.get(key or "", next(iter(found.values())))
    if not isfinite(value):
        detail = score.explanation or ("unscored" if isnan(value) else f"{scorer} gave {value}")
        return Outcome(Verdict.INFRA_ERROR, detail=detail, meta=meta)
    if score.value == NOANSWER:
        return Outcome(Verdict.NO_ANSWER, meta=meta, value=value)
    verdict = Verdict.PASSED if value >= passing else Verdict.FAILED
    return Outcome(verdict, meta=meta, value=value)


def known_score(result: GateResult) -> Score | None:
    """The score of an earlier run, from the log."""
    kept = result.outcome.meta.get("score") if result.outcome else None
    return Score.model_validate_json(kept) if kept else None


def annotated(score: Score | None, result: GateResult, log: Path) -> Score | None:
    """The score with the gate's decision in its metadata; unscored where it was not selected."""
    decision, signals = result.decision, result.signals
    gate = {
        "id": result.id,
        "verify": decision.verify,
        "reason": str(decision.reason),
        "propensity": decision.propensity,
        "score": _finite(decision.score),
        "threshold": _finite(decision.threshold),
        "signal": str(signals.state),
        "log": str(log),
    }
    if decision.verify:
        metadata = {**((score and score.metadata) or {}), METADATA: gate}
        return score and score.model_copy(update={"metadata": metadata})
    return Score.unscored(
        explanation=f"not verified: {decision.reason} (propensity {decision.propensity:.3g})",
        metadata={METADATA: gate},
    )


def _number(value: Any) -> float:
    if value is None:
        return float("nan")
    return float(_to_float(value))


def _finite(value: float) -> float | None:
    return None if isnan(value) else value
