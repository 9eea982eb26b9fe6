"""The trace of a call, from its header `traceparent`."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager

__all__ = ["callers_span"]


@contextmanager
def callers_span(headers: Mapping[str, str]) -> Iterator[None]:
    """Make the caller's span the current one.

    A span that is current already, of an instrumented server, stays: the caller's is its parent.

    Parameters
    ----------
    headers : mapping
        Headers of the request. Without a valid `traceparent` there is no current span.

    References
    ----------
    W3C Trace Context. The variable OTEL_PROPAGATORS names other headers.
    """
    from opentelemetry import context, propagate, trace  # only where telemetry is on

    if trace.get_current_span().get_span_context().is_valid:
        yield
        return
    token = context.attach(propagate.extract(headers))
    try:
        yield
    finally:
        context.detach(token)
