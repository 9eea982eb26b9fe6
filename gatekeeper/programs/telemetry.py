"""The sinks of `--telemetry`."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager

from gatekeeper.errors import BadInputError, MissingDependencyError
from gatekeeper.protocols import Sink
from gatekeeper.telemetry.scores import ScoreSink

__all__ = ["EVENTS", "TELEMETRY", "sinks_of"]

EVENTS = "opentelemetry"


@contextmanager
def sinks_of(name: str | None) -> Iterator[tuple[Sink, ...]]:
    """The sinks of a gate, which get what is queued out at the end.

    Each is set up by the environment variables of its own client. The verifier's `detail`, which
    may quote the task, is not sent.

    Parameters
    ----------
    name : str or None
        One of `TELEMETRY`; None: no sink, and nothing is imported.

    Raises
    ------
    BadInputError
        Without an SDK, or a variable that a client needs.
    MissingDependencyError
        Without the client's package.
    """
    if name is None:
        yield ()
        return
    if name == EVENTS:
        with _events() as sink:
            yield (sink,)
        return
    try:
        scores, flush = _TOOLS[name]()
    except ImportError:
        package = _PACKAGES.get(name, name)
        raise MissingDependencyError(
            package, extra=name, needed_for=f"--telemetry {name}"
        ) from None
    try:
        yield (scores,)
    finally:
        scores.close()
        flush()


@contextmanager
def _events() -> Iterator[Sink]:
    """Verdicts as events, by the SDK that `opentelemetry-instrument` has set up, or by OTLP."""
    try:
        from opentelemetry._logs import get_logger_provider
        from opentelemetry.exporter.otlp.proto.http._log_exporter import OTLPLogExporter
        from opentelemetry.sdk._logs import LoggerProvider
        from opentelemetry.sdk._logs.export import BatchLogRecordProcessor
        from opentelemetry.sdk.resources import OTELResourceDetector, Resource
    except ImportError as error:
        raise BadInputError(
            f"--telemetry {EVENTS}: {error}; pip install opentelemetry-sdk "
            "opentelemetry-exporter-otlp-proto-http"
        ) from None
    from gatekeeper.telemetry.opentelemetry import OpenTelemetry

    if isinstance(get_logger_provider(), LoggerProvider):
        yield OpenTelemetry(explanations=False)
        return
    named = Resource({"service.name": "gatekeeper"}).merge(OTELResourceDetector().detect())
    provider = LoggerProvider(named)
    provider.add_log_record_processor(BatchLogRecordProcessor(OTLPLogExporter()))
    try:
        yield OpenTelemetry(explanations=False, logger_provider=provider)
    finally:
        provider.shutdown()


# -- tools that keep scores ------------------------------------------------------------------------

Opened = tuple[ScoreSink, Callable[[], object]]
"""A sink, and what sends the rest of its client's own queue."""


def _langfuse() -> Opened:
    from langfuse import Langfuse

    from gatekeeper.telemetry.langfuse import LangfuseScores

    for variable in ("LANGFUSE_PUBLIC_KEY", "LANGFUSE_SECRET_KEY"):
        if not os.environ.get(variable):
            raise BadInputError(f"--telemetry langfuse: the variable {variable} is not set")
    client = Langfuse()
    return LangfuseScores(client, explanations=False), client.flush


def _phoenix() -> Opened:
    from phoenix.client import Client

    from gatekeeper.telemetry.phoenix import PhoenixAnnotations

    return PhoenixAnnotations(Client(), explanations=False), lambda: None


# Not MLflow: its server has a trace when the caller's first span has ended, which may be long after
# the verdict.
_TOOLS: Mapping[str, Callable[[], Opened]] = {"langfuse": _langfuse, "phoenix": _phoenix}
_PACKAGES = {"phoenix": "arize-phoenix-client"}
TELEMETRY = (EVENTS, *_TOOLS)
