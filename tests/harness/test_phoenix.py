"""docs/telemetry.md with a Phoenix server: `make test-harness-phoenix`."""

from __future__ import annotations

import sys
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.util import find_spec
from pathlib import Path

import pytest
from httpx import HTTPStatusError

if find_spec("phoenix") is None:
    pytest.skip("phoenix is not installed: run `make test-harness`", allow_module_level=True)

with warnings.catch_warnings(action="ignore"):  # of its own imports
    from phoenix.client import Client
    from phoenix.otel import register
from opentelemetry import propagate, trace
from verdicts_in_spans import VALUES, free_port, gateway, hand_in, server, until

from gatekeeper.telemetry.phoenix import PhoenixAnnotations
from gatekeeper.telemetry.scores import Place, Score

pytestmark = pytest.mark.filterwarnings("ignore")  # Phoenix's own

SERVER = Path(sys.prefix).with_name("phoenix-server") / "bin" / "python"  # as in the Makefile


def test_verdicts_are_annotations_of_spans(tmp_path: Path) -> None:
    url = f"http://127.0.0.1:{(port := free_port())}"
    environment = {
        "PHOENIX_HOST": "127.0.0.1",
        "PHOENIX_PORT": str(port),
        "PHOENIX_GRPC_PORT": str(free_port()),
        "PHOENIX_WORKING_DIR": str(tmp_path),
        "PHOENIX_TELEMETRY_ENABLED": "false",
    }
    command = [str(SERVER), "-m", "phoenix.server.main", "serve"]
    spans: dict[str, str] = {}
    with server(command, f"{url}/healthz", tmp_path, environment):
        provider = register(
            endpoint=f"{url}/v1/traces",
            batch=False,
            verbose=False,
            set_global_tracer_provider=False,
        )
        tracer = provider.get_tracer("test")

        @contextmanager
        def span(name: str) -> Iterator[None]:
            with tracer.start_as_current_span(name) as current:
                spans[name] = trace.format_span_id(current.get_span_context().span_id)
                yield

        client = Client(base_url=url)
        sink = PhoenixAnnotations(client)
        hand_in(sink, span)

        def shown() -> dict[str, dict[str, object]]:
            try:
                found = client.spans.get_span_annotations(
                    span_ids=list(spans.values()), project_identifier="default"
                )
            except HTTPStatusError as error:
                if error.response.status_code == 404:  # it has not stored the spans yet
                    return {}
                raise
            by_id = {each["identifier"]: each for each in found}
            assert len(by_id) == len(found)
            return by_id

        until(lambda: shown().keys() >= VALUES.keys())
        for name, each in shown().items():
            assert each["span_id"] == spans[name]
            assert each["name"] == "correctness"
            assert each["annotator_kind"] == "CODE"
            assert each["metadata"]["propensity"] == 1.0
            assert each["result"]["score"] == VALUES[name]
            assert each["result"]["label"] == ("pass" if name == "right" else "fail")
        # Sent again, a score replaces the first.
        again = Score(Place("", spans["wrong"]), "wrong", 1.0, "pass", "", {"propensity": 0.5})
        sink.send([again])
        until(lambda: shown()["wrong"]["result"]["score"] == 1.0)
        assert shown().keys() == VALUES.keys()
        # The gateway's belong to the caller's span.
        headers: dict[str, str] = {}
        with gateway("phoenix", {"PHOENIX_ENDPOINT": url}) as call, span("called"):
            propagate.inject(headers)
            output = call(headers)
        until(lambda: output in shown())
        assert shown()[output]["span_id"] == spans["called"]
        assert shown()[output]["result"].get("explanation") is None
