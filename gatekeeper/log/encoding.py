"""Candidates, decisions and outcomes as JSON values, for the log.

NaN becomes null and infinities strings, so that every line is JSON that any reader takes.
"""

from __future__ import annotations

from collections.abc import Mapping
from math import isfinite, nan
from typing import Any

import numpy as np

from gatekeeper.types import (
    Candidate,
    Decision,
    Generation,
    Outcome,
    Reason,
    Signals,
    Verdict,
)

__all__ = [
    "candidate_of",
    "decided",
    "decision_of",
    "generation_of",
    "outcome_data",
    "outcome_of",
]

_NO_POSITIONS = np.empty(0)


def decided(
    generation: Generation,
    candidate: Candidate,
    decision: Decision,
    *,
    phase: str,
    forced: bool,
) -> dict[str, Any]:
    """One candidate with its decision. The token arrays are not kept, their signals are."""
    signals = candidate.signals
    return {
        "h1": _encode(signals.h1),
        "h2": _encode(signals.h2),
        "h3": _encode(signals.h3),
        "signal": signals.state,
        "n_tokens": signals.n_tokens,
        "n_margins": signals.n_margins,
        "token_coverage": generation.token_coverage,
        "k_seen": generation.k_seen,
        "cost_estimate": candidate.cost_estimate,
        "phase": phase,
        "forced": forced,
        "verify": decision.verify,
        "reason": decision.reason,
        "score": _encode(decision.score),
        "threshold": _encode(decision.threshold),
        "stratum": decision.stratum,
        "propensity": decision.propensity,
        "version": decision.version,
        "model": generation.model,
        "finish_reason": generation.finish_reason,
        "prompt_tokens": generation.prompt_tokens,
        "output_tokens": generation.output_tokens,
        "text": generation.text,
    }


def candidate_of(id_: str, data: Mapping[str, Any]) -> Candidate:
    signals = Signals(
        _decode(data["h1"]),
        _decode(data["h2"]),
        _decode(data["h3"]),
        data["n_tokens"],
        data["n_margins"],
    )
    return Candidate(id_, signals, data["cost_estimate"])


def decision_of(data: Mapping[str, Any]) -> Decision:
    return Decision(
        data["verify"],
        Reason(data["reason"]),
        _decode(data["score"]),
        _decode(data["threshold"]),
        data["stratum"],
        data["propensity"],
        data["version"],
    )


def generation_of(id_: str, data: Mapping[str, Any]) -> Generation:
    """The output as a verifier needs it: without token arrays."""
    return Generation(
        id_,
        data["text"],
        _NO_POSITIONS,
        _NO_POSITIONS,
        _NO_POSITIONS,
        prompt_tokens=data["prompt_tokens"],
        output_tokens=data["output_tokens"],
        model=data["model"],
        finish_reason=data["finish_reason"],
        k_seen=data["k_seen"],
    )


def outcome_data(outcome: Outcome) -> dict[str, Any]:
    return {
        "verdict": outcome.verdict,
        "error": outcome.error,
        "cost": outcome.cost,
        "seconds": outcome.seconds,
        "detail": outcome.detail,
        "meta": dict(outcome.meta),
    }


def outcome_of(data: Mapping[str, Any]) -> Outcome:
    return Outcome(
        Verdict(data["verdict"]), data["cost"], data["seconds"], data["detail"], data["meta"]
    )


def _encode(value: float) -> float | str | None:
    if isfinite(value):
        return value
    return None if value != value else str(value)


def _decode(value: float | str | None) -> float:
    return nan if value is None else float(value)
