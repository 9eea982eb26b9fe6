"""Sandboxes: verifiers that run code candidates against their tests."""

from gatekeeper.sandbox.local import LocalSandbox

__all__ = ["LocalSandbox"]
