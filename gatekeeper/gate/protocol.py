"""The methods of a gate that its loops use."""

from __future__ import annotations

from contextlib import AbstractContextManager
from typing import Protocol

from gatekeeper.types import GateResult, Generation

__all__ = ["Gate"]


class Gate(Protocol):
    """The methods of `VerificationGate` that take an output and look it up."""

    def maybe_verify(
        self, response: object, task: object = None, *, id: str | None = None
    ) -> GateResult: ...

    async def amaybe_verify(
        self, response: object, task: object = None, *, id: str | None = None
    ) -> GateResult: ...

    def find(self, id: str) -> GateResult | None: ...

    def output(self, id: str) -> Generation: ...

    def task(
        self, task: object = None, *, id: str | None = None
    ) -> AbstractContextManager[None]: ...
