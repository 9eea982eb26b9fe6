"""Decisions and verdicts of a gate in the tools that a team already has.

opentelemetry   events and span attributes
prometheus      a collector for the user's own registry
error_rate      the error rate of all outputs, estimated while a gate runs
scores          what a tracing tool gets of a verdict, and the queue to it
langfuse        scores of traces
phoenix         annotations of spans
mlflow          feedback on traces

`VerificationGate(telemetry=...)` takes any `gatekeeper.protocols.Sink`; a collector reads a gate's
status. Nothing here is imported by a gate without telemetry.
"""
