"""The gate: decides after generation and before verification, and never overspends."""

from gatekeeper.gate.gate import VerificationGate

__all__ = ["VerificationGate"]
