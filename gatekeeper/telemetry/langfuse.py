"""Langfuse: verdicts as scores of observations."""

from __future__ import annotations

from collections.abc import Sequence

from gatekeeper.telemetry.scores import ClientSink, Score

__all__ = ["LangfuseScores"]


class LangfuseScores(ClientSink):
    """Sends verdicts to Langfuse.

    A score's id is derived from those of the trace and the output, so sending it again replaces the
    first.

    Parameters
    ----------
    client : Langfuse
        The caller shuts it down. The output must reach the gate inside one of its observations.
    name, most, explanations
        As of `ScoreSink`.
    """

    calls = "create_score"
    clients = "a client of langfuse 3 or later, such as langfuse.get_client()"

    def send(self, scores: Sequence[Score]) -> None:
        """Pass them to the client, which sends them asynchronously."""
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
