"""docs/telemetry.md with an MLflow server: `make test-harness-mlflow`."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.util import find_spec
from pathlib import Path

import pytest

if find_spec("mlflow") is None:
    pytest.skip("mlflow is not installed: run `make test-harness`", allow_module_level=True)

import mlflow
from verdicts_in_spans import VALUES, free_port, hand_in, server, until

from gatekeeper.telemetry.mlflow import MLflowFeedback

pytestmark = pytest.mark.filterwarnings("ignore")  # MLflow's own


def test_verdicts_are_feedback_on_traces(tmp_path: Path) -> None:
    url = f"http://127.0.0.1:{(port := free_port())}"
    command = [sys.executable, "-m", "mlflow", "server", "--port", str(port), "--workers", "1"]
    command += ["--backend-store-uri", f"sqlite:///{tmp_path}/mlflow.db"]
    traces: dict[str, tuple[str, str]] = {}

    @contextmanager
    def span(name: str) -> Iterator[None]:
        with mlflow.start_span("request"), mlflow.start_span(name) as inner:
            traces[name] = inner.trace_id, inner.span_id
            yield

    with server(command, f"{url}/health", tmp_path, {}):
        mlflow.set_tracking_uri(url)
        mlflow.set_experiment("gate")
        sink = MLflowFeedback()
        hand_in(sink, span)
        for name, (trace, span_id) in traces.items():

            def found(trace: str = trace) -> list[mlflow.entities.Assessment]:
                shown = mlflow.get_trace(trace)
                return [] if shown is None else list(shown.info.assessments)

            if name not in VALUES:
                assert found() == []
                continue
            until(lambda found=found: bool(found()))
            (feedback,) = found()
            assert (feedback.name, feedback.value) == ("correctness", VALUES[name])
            assert feedback.span_id == span_id
            assert feedback.source.source_id == "gatekeeper"
            assert feedback.metadata["output"] == name
            assert float(feedback.metadata["propensity"]) == 1.0
            if name == "late":
                assert feedback.rationale == "a person: no"
