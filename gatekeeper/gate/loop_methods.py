"""Loops around a gate, as methods of it."""

from __future__ import annotations

from collections.abc import Sequence

from gatekeeper.gate.best_of import Choice, abest_of, best_of
from gatekeeper.gate.loop import AsyncGenerate, Generate, LoopResult, arun_loop, run_loop
from gatekeeper.gate.protocol import Gate

__all__ = ["LoopMethods"]


class LoopMethods:
    """The methods of `VerificationGate` for several outputs of one task."""

    def run_loop(
        self: Gate, generate: Generate, task: object = None, *, id: str, max_attempts: int = 3
    ) -> LoopResult:
        """Generate an output and pass it to the gate; while it is found wrong, generate another.

        It ends with an output that passed, that the policy did not select, that the budget has no
        room for or that the verifier cannot judge, and after `max_attempts`.

        Parameters
        ----------
        generate
            Called with the task and the earlier attempts, whose `feedback()` is meant for the next
            prompt; returns one output, in any shape that `maybe_verify` takes. It may call a
            wrapped client: the gate decides on the output once.
        task
            What the verifier needs besides the output, and `generate` too.
        id
            Id of the task; its outputs are `id/1`, `id/2`, ... Called again with the same id, also
            after a crash, the loop continues.
        max_attempts
            Outputs at most, this call's and earlier ones' together.

        Raises
        ------
        Exception
            What `maybe_verify` and `generate` raise.
        """
        return run_loop(self, generate, task, id=id, max_attempts=max_attempts)

    async def arun_loop(
        self: Gate, generate: AsyncGenerate, task: object = None, *, id: str, max_attempts: int = 3
    ) -> LoopResult:
        """`run_loop` for asyncio; `generate` is a coroutine function."""
        return await arun_loop(self, generate, task, id=id, max_attempts=max_attempts)

    def best_of(
        self: Gate, responses: Sequence[object], task: object = None, *, id: str | None = None
    ) -> Choice:
        """Choose one of several outputs to one prompt.

        They pass through the gate one after the other, the most uncertain (largest h1) first, until
        one is verified and passes: that one is chosen. Otherwise the least uncertain that did not
        fail is chosen, otherwise the least uncertain. Equal texts pass once.

        Parameters
        ----------
        responses
            A list, of any shapes that `maybe_verify` takes, with one or several outputs each.
        task
            What the verifier needs besides an output.
        id
            Id of the task: the outputs are named `id/0`, `id/1`, ... instead of their own ids.

        Raises
        ------
        Exception
            What `maybe_verify` raises.
        """
        return best_of(self, responses, task, id=id)

    async def abest_of(
        self: Gate, responses: Sequence[object], task: object = None, *, id: str | None = None
    ) -> Choice:
        """`best_of` for asyncio."""
        return await abest_of(self, responses, task, id=id)
