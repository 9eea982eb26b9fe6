"""Langfuse: verdicts as scores of observations."""

from __future__ import annotations

from collections.abc import Sequence

from gatekeeper.telemetry.scores import ClientSink, Score

__all__ = ["LangfuseScores"]


class LangfuseScores(ClientSink):
    """Sends verdicts to Langfuse.

    A score's id is made of the trace's and the output's: sent again, it replaces the first.

    Parameters
    ----------
    client : Langfuse
        It stays the caller's to shut down. The output must be handed in inside one of its
        observations.
    name, most, explanations
        As of `ScoreSink`.
    """

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
