"""gatekeeper: decides which LLM outputs deserve verification, within a budget.

gate = VerificationGate(budget=Budget(fraction=0.2), verifier=..., log="run.db")
result = gate.maybe_verify(response, task)
"""

from gatekeeper import limits as limits  # first: what follows needs room
from gatekeeper.budget import Budget
from gatekeeper.errors import (
    BadInputError,
    GatekeeperError,
    LogError,
    MissingDependencyError,
    VerifierUnavailableError,
)
from gatekeeper.gate import VerificationGate
from gatekeeper.gate.best_of import Choice
from gatekeeper.gate.loop import Attempt, LoopResult, Stopped
from gatekeeper.policies import (
    CST,
    HGA,
    Calibrated,
    CSTMemory,
    MPAdapt,
    MPStrat,
    Random,
    SplitConformal,
    Threshold,
)
from gatekeeper.protocols import AsyncVerifier, Policy, Verifier
from gatekeeper.signals import batch_signals, signals_from_arrays, signals_of
from gatekeeper.types import (
    Candidate,
    Decision,
    GateResult,
    GateStatus,
    Generation,
    Outcome,
    PolicyHealth,
    Reason,
    Record,
    Signals,
    SignalState,
    Undecided,
    UndecidedState,
    Verdict,
)

__all__ = [
    "CST",
    "HGA",
    "AsyncVerifier",
    "Attempt",
    "BadInputError",
    "Budget",
    "CSTMemory",
    "Calibrated",
    "Candidate",
    "Choice",
    "Decision",
    "GateResult",
    "GateStatus",
    "GatekeeperError",
    "Generation",
    "LogError",
    "LoopResult",
    "MPAdapt",
    "MPStrat",
    "MissingDependencyError",
    "Outcome",
    "Policy",
    "PolicyHealth",
    "Random",
    "Reason",
    "Record",
    "SignalState",
    "Signals",
    "SplitConformal",
    "Stopped",
    "Threshold",
    "Undecided",
    "UndecidedState",
    "Verdict",
    "VerificationGate",
    "Verifier",
    "VerifierUnavailableError",
    "batch_signals",
    "signals_from_arrays",
    "signals_of",
]
