"""Outputs that could not be verified: which a process tries again when it resumes."""

from __future__ import annotations

import asyncio
from typing import Any
from unittest.mock import Mock

import pytest

from gatekeeper import Budget, Generation, Outcome, Verdict, VerificationGate
from gatekeeper.adapters.openai.call_settings import CallSettings
from gatekeeper.gateway import outputs as module
from gatekeeper.gateway.outputs import Outputs, ended
from gatekeeper.gateway.tasks import Tasks


@pytest.mark.parametrize(("room", "again"), [(None, []), (2, ["a"])])
def test_what_could_not_be_verified_is_tried_once(
    monkeypatch: pytest.MonkeyPatch, room: int | None, again: list[str]
) -> None:
    """The ids are kept up to a limit; those from longer ago are tried again."""
    if room is not None:
        monkeypatch.setattr(module, "TRIED", room)
    tried: list[str] = []

    class Down:
        async def averify(self, generation: Generation, task: Any) -> Outcome:
            tried.append(generation.id)
            return Outcome(Verdict.INFRA_ERROR)

    async def run(gate: VerificationGate) -> None:
        tasks = [{"id": id_, "prompt": "", "kind": "math", "gold": "7"} for id_ in "abc"]
        outputs = Outputs(gate, Mock())
        for id_ in "abc":
            output = Generation(id_, "7")
            decided = await ended(
                outputs.decide(lambda output=output: [output], CallSettings("t", id_))  # type: ignore[misc]
            )
            await outputs.verdicts(decided)
        assert tried == ["a", "b", "c"]
        await outputs.resume(Tasks(tasks, kinds=["math"]))
        await outputs.drain(5.0)
        assert tried[3:] == again

    options: dict[str, Any] = {"verifier": Down(), "on_unavailable": "pass"}
    with VerificationGate("cst", budget=Budget(fraction=1.0), **options) as gate:
        asyncio.run(run(gate))
