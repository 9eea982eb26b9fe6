"""The data types of gatekeeper: frozen, slotted dataclasses.

- audit rate: verified ÷ seen
- hit rate: errors found ÷ verified (precision)
- recall: errors found ÷ all errors
- coverage: accepted without verification ÷ seen
- residual risk: error rate among the outputs accepted without verification
- utilisation: spent ÷ budget
- propensity: probability with which this decision was to verify
- yield: errors found per unit of spent cost

Units: log-probabilities are natural logarithms (nats); margins and signals are nats unless stated
otherwise; costs are in the budget's unit; `seconds` are wall-clock seconds. An error label is 1 for
a wrong output, 0 for a right one, None if unknown.
"""

from __future__ import annotations

from gatekeeper.types.candidate import Candidate, Decision, Signals
from gatekeeper.types.gate_status import GateStatus, GroupAccount
from gatekeeper.types.generation import Generation
from gatekeeper.types.observation import GateFacts, Observation
from gatekeeper.types.outcome import GateResult, Outcome, Undecided
from gatekeeper.types.record import Record
from gatekeeper.types.shared_status import SharedProcess, SharedStatus
from gatekeeper.types.states import (
    Label,
    PolicyHealth,
    Reason,
    SignalState,
    UndecidedState,
    Verdict,
)
from gatekeeper.types.values import MASKED, BoolArray, FloatArray, IntArray

__all__ = [
    "MASKED",
    "BoolArray",
    "Candidate",
    "Decision",
    "FloatArray",
    "GateFacts",
    "GateResult",
    "GateStatus",
    "Generation",
    "GroupAccount",
    "IntArray",
    "Label",
    "Observation",
    "Outcome",
    "PolicyHealth",
    "Reason",
    "Record",
    "SharedProcess",
    "SharedStatus",
    "SignalState",
    "Signals",
    "Undecided",
    "UndecidedState",
    "Verdict",
]
