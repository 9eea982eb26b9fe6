"""MLflow: verdicts as feedback on traces."""

from __future__ import annotations

from collections.abc import Sequence

from gatekeeper.errors import MissingDependencyError
from gatekeeper.telemetry.scores import Place, Score, ScoreSink, UnsentError

__all__ = ["MLflowFeedback"]

NO_SUCH_TRACE = "RESOURCE_DOES_NOT_EXIST"  # MLflow's code of the error


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

    def place(self) -> Place | None:
        """The current span of MLflow's own tracing."""
        span = self._mlflow.get_current_active_span()
        return None if span is None else Place(span.trace_id, span.span_id)

    def send(self, scores: Sequence[Score]) -> None:
        """One by one. The trace of a score may not be there yet, as it is sent when its root span
        ends; then the others are sent all the same.
        """
        unsent, cause = list[Score](), Exception()
        for at, score in enumerate(scores):
            try:
                self._log(score)
            except Exception as error:
                cause = error
                unsent.append(score)
                # Any other error is the server's: the others would fail, too.
                if getattr(error, "error_code", "") != NO_SUCH_TRACE:
                    unsent += scores[at + 1 :]
                    break
        if unsent:
            raise UnsentError(unsent) from cause

    def _log(self, score: Score) -> None:
        self._mlflow.log_feedback(
            trace_id=score.place.trace,
            span_id=score.place.span,
            name=self.name,
            value=score.value,
            rationale=score.explanation or None,
            source=self._source,
            metadata={"output": score.output, **score.metadata},
        )
