"""What a sink gets of an output: its result, and the gate that it comes from."""

from __future__ import annotations

from dataclasses import dataclass

from gatekeeper.types.outcome import GateResult

__all__ = ["GateFacts", "Observation"]


@dataclass(frozen=True, slots=True)
class GateFacts:
    """What stays the same for all outputs of a gate.

    Attributes
    ----------
    policy
        The policy's name.
    unit
        Unit of the budget, and so of every cost.
    verifier
        A hash of the verifier's type and settings; "" where there is no verifier.
    """

    policy: str
    unit: str
    verifier: str = ""


@dataclass(frozen=True, slots=True)
class Observation:
    """A decision, or the outcome that followed.

    Attributes
    ----------
    result
        Its `outcome` is None for a decision.
    gate
        The gate that decided.
    response_id
        The id that the output came with, mostly the provider's; `result.id` is its id in the gate.
        "" where it is not known: it came with none, or an earlier process decided.
    external
        The outcome came from outside for an output that was not selected (`report_outcome`).
    """

    result: GateResult
    gate: GateFacts
    response_id: str = ""
    external: bool = False
