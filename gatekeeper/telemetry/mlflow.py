"""MLflow: verdicts as feedback on traces."""

from __future__ import annotations

from collections.abc import Sequence

from gatekeeper.errors import MissingDependencyError
from gatekeeper.telemetry.scores import Place, Score, ScoreSink

__all__ = ["MLflowFeedback"]


class MLflowFeedback(ScoreSink):
    """Sends verdicts to the tracking server that `mlflow` is set to.

    Parameters
    ----------
    name, most, explanations
        As of `ScoreSink`.

    Raises
    ------
    MissingDependencyError
        Without the package mlflow.
    """

    def __init__(
        self, name: str = "correctness", *, most: int = 10_000, explanations: bool = True
    ) -> None:
        super().__init__(name, most=most, explanations=explanations)
        try:
            import mlflow
            from mlflow.entities import AssessmentSource
        except ImportError:
            raise MissingDependencyError(
                "mlflow", extra="mlflow", needed_for="MLflowFeedback()"
            ) from None
        self._mlflow = mlflow
        self._source = AssessmentSource(source_type="CODE", source_id="gatekeeper")
        self._done: set[tuple[Place, str]] = set()  # of a batch that failed halfway

    def place(self) -> Place | None:
        """The current span of MLflow's own tracing."""
        span = self._mlflow.get_current_active_span()
        return None if span is None else Place(span.trace_id, span.span_id)

    def send(self, scores: Sequence[Score]) -> None:
        """One by one; those of a batch that were sent before are left out."""
        for score in scores:
            if (score.place, score.output) in self._done:
                continue
            self._mlflow.log_feedback(
                trace_id=score.place.trace,
                span_id=score.place.span,
                name=self.name,
                value=score.value,
                rationale=score.explanation or None,
                source=self._source,
                metadata={"output": score.output, **score.metadata},
            )
            self._done.add((score.place, score.output))
        self._done.clear()
