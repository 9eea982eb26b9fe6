"""OpenTelemetry: a decision as attributes of the caller's span, a verdict as an event.

The event is `gen_ai.evaluation.result` of the semantic conventions for generative AI (status:
Development), through the Logs API. An output that was not verified has none, because averages would
count it.
"""

from __future__ import annotations

from importlib.metadata import version
from time import time_ns
from typing import TYPE_CHECKING, Any

from gatekeeper.arguments import check_flag, check_printable
from gatekeeper.errors import BadInputError, MissingDependencyError
from gatekeeper.printable import printable
from gatekeeper.types import Observation

if TYPE_CHECKING:
    from opentelemetry._logs import LoggerProvider

__all__ = ["EVENT", "OpenTelemetry"]

EVENT = "gen_ai.evaluation.result"
LONGEST = 1_000  # characters of an explanation


class OpenTelemetry:
    """A sink for OpenTelemetry. Thread-safe; several gates may share it.

    The SDK has the queue, its limits and the count of dropped events. Without an SDK nothing is
    sent.

    Parameters
    ----------
    name : str
        Name of the evaluation, `gen_ai.evaluation.name`.
    explanations : bool
        Whether events have the verifier's `detail`, as `gen_ai.evaluation.explanation`. They may
        quote the output, its tests or its reference answer.
    logger_provider : LoggerProvider or None
        None: the global one, also if it is set later.

    Raises
    ------
    MissingDependencyError
        Without the package opentelemetry-api.
    BadInputError
        For another value.

    References
    ----------
    OpenTelemetry semantic conventions for generative AI, event `gen_ai.evaluation.result`.
    """

    def __init__(
        self,
        name: str = "correctness",
        *,
        explanations: bool = True,
        logger_provider: LoggerProvider | None = None,
    ) -> None:
        try:
            from opentelemetry import trace
            from opentelemetry._logs import SeverityNumber, get_logger
            from opentelemetry.context import Context
        except ImportError:
            raise MissingDependencyError(
                "opentelemetry", extra="telemetry", needed_for="OpenTelemetry()"
            ) from None
        if not (logger_provider is None or hasattr(logger_provider, "get_logger")):
            raise BadInputError(
                f"logger_provider={logger_provider!r:.80}: give an opentelemetry LoggerProvider, "
                "or None for the global one"
            )
        self._name = check_printable("name", name)
        self._explanations = check_flag("explanations", explanations)
        self._trace, self._severity = trace, SeverityNumber.INFO
        self._logger = get_logger(
            "gatekeeper", version("llm-gatekeeper"), logger_provider=logger_provider
        )
        self._enabled = getattr(self._logger, "enabled", None)  # of opentelemetry-api 1.45 on
        # Not an empty one, which the API replaces by the current one: a verdict's span is not that
        # of its reporter.
        self._nowhere = trace.set_span_in_context(trace.INVALID_SPAN, Context())

    def decided(self, seen: Observation) -> object:
        """The decision as attributes of the current span; returns the span's context."""
        span = self._trace.get_current_span()
        if span.is_recording():
            decision = seen.result.decision
            span.set_attributes(_decision(seen) | {"gatekeeper.decision.verify": decision.verify})
        about = span.get_span_context()
        return about if seen.result.decision.verify and about.is_valid else None

    def concluded(self, seen: Observation, kept: Any) -> None:
        """The outcome as an event of the span in which the output reached the gate."""
        trace, context = self._trace, self._nowhere
        if kept is not None:
            context = trace.set_span_in_context(trace.NonRecordingSpan(kept), context)
        elif self._enabled is not None and not self._enabled(event_name=EVENT):
            return  # no SDK, probably; where there is a span, there is one
        self._logger.emit(
            timestamp=time_ns(),
            context=context,
            severity_number=self._severity,
            attributes=self._outcome(seen),
            event_name=EVENT,
        )

    def _outcome(self, seen: Observation) -> dict[str, Any]:
        outcome = seen.result.outcome
        assert outcome is not None
        found = _decision(seen) | {
            "gen_ai.evaluation.name": self._name,
            "gatekeeper.verdict": str(outcome.verdict),
        }
        if outcome.error is None:  # the verifier could not tell: there is no score
            found["error.type"] = str(outcome.verdict)
        else:
            found["gen_ai.evaluation.score.value"] = outcome.grade
            found["gen_ai.evaluation.score.label"] = "fail" if outcome.error else "pass"
        if self._explanations and outcome.detail:
            found["gen_ai.evaluation.explanation"] = printable(outcome.detail[:LONGEST])
        if seen.response_id:
            found["gen_ai.response.id"] = printable(seen.response_id)
        if seen.external:
            found["gatekeeper.verdict.external"] = True
        elif outcome.error is not None and outcome.cost is not None:  # what was charged
            found["gatekeeper.cost.value"] = outcome.cost
            found["gatekeeper.cost.unit"] = seen.gate.unit
        return found


def _decision(seen: Observation) -> dict[str, Any]:
    decision, gate = seen.result.decision, seen.gate
    return {
        "gatekeeper.output.id": printable(seen.result.id),
        "gatekeeper.decision.reason": str(decision.reason),
        "gatekeeper.decision.propensity": decision.propensity,
        "gatekeeper.policy.name": gate.policy,
        "gatekeeper.policy.version": decision.version,
        "gatekeeper.verifier.fingerprint": gate.verifier,
    }
