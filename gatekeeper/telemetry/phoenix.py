"""Phoenix: verdicts as annotations of spans."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from gatekeeper.telemetry.scores import ClientSink, Score

__all__ = ["PhoenixAnnotations"]


class PhoenixAnnotations(ClientSink):
    """Sends verdicts to Phoenix.

    An annotation's identifier is the output's id, so sending it again replaces the first.

    Parameters
    ----------
    client : phoenix.client.Client
    name, most, explanations
        As of `ScoreSink`.
    """

    calls = "spans.log_span_annotations"
    clients = "a phoenix.client.Client"

    def send(self, scores: Sequence[Score]) -> None:
        """Send the scores in one request."""
        self._client.spans.log_span_annotations(
            span_annotations=[
                {
                    "name": self.name,
                    "annotator_kind": "CODE",
                    "span_id": score.place.span,
                    "identifier": score.output,
                    "result": _result(score),
                    "metadata": score.metadata,
                }
                for score in scores
            ]
        )


def _result(score: Score) -> dict[str, Any]:
    explanation = {"explanation": score.explanation} if score.explanation else {}
    return {"score": score.value, "label": score.label, **explanation}
