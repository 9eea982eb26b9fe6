"""The input of a sink: an output's result, and facts about its gate."""

from __future__ import annotations

from msgspec import Struct

from gatekeeper.types.as_dataclass import as_dataclass
from gatekeeper.types.outcome import GateResult

__all__ = ["GateFacts", "Observation"]


@as_dataclass
class GateFacts(Struct, frozen=True):
    """Facts that are the same for all outputs of a gate.

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


@as_dataclass
class Observation(Struct, frozen=True):
    """A decision, or the outcome that followed.

    Attributes
    ----------
    result
        Its `outcome` is None for a decision.
    gate
        The gate that decided.
    response_id
        The id of the provider's response, in most cases; `result.id` is the output's id in the
        gate. "" if unknown: the response had none, or an earlier process decided.
    external
        The outcome came from outside for an output that was not selected (`report_outcome`).
    """

    result: GateResult
    gate: GateFacts
    response_id: str = ""
    external: bool = False
