"""Langfuse: verdicts as scores of observations."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from gatekeeper.telemetry.scores import Place, Score, ScoreSink, current_span

__all__ = ["LangfuseScores"]


class LangfuseScores(ScoreSink):
    """Sends verdicts to Langfuse.

    A score's id is made of the trace's and the output's: sent again, it replaces the first.

    Parameters
    ----------
    client : Langfuse
        It stays the caller's to shut down. The output must be handed in inside one of its
        observations.
    name, most
        As of `ScoreSink`.
    """

    def __init__(self, client: Any, name: str = "correctness", *, most: int = 10_000) -> None:
        super().__init__(name, most=most)
        self._client = client

    def place(self) -> Place | None:
        """The current observation."""
        return current_span()

    def send(self, scores: Sequence[Score]) -> None:
        """Hand them to the client, which sends them in its own time."""
        for score in scores:
            self._client.create_score(
                name=self.name,
                value=score.value,
                data_type="NUMERIC",
                trace_id=score.place.trace,
                observation_id=score.place.span,
                score_id=f"gatekeeper-{score.place.trace}-{score.output}",
                comment=score.explanation or None,
                metadata=score.metadata,
            )
