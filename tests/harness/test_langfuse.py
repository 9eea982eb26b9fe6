"""docs/telemetry.md with Langfuse's own client: `make test-harness-langfuse`.

Its server is not on the package index; what arrives on the wire is compared instead.
"""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from importlib.util import find_spec
from typing import Any

import pytest

if find_spec("langfuse") is None:
    pytest.skip("langfuse is not installed: run `make test-harness`", allow_module_level=True)

from langfuse import Langfuse
from opentelemetry import propagate
from verdicts_in_spans import VALUES, gateway, hand_in

from gatekeeper.telemetry.langfuse import LangfuseScores
from gatekeeper.telemetry.scores import Place, Score

pytestmark = pytest.mark.filterwarnings("ignore")  # Langfuse's own


class Recorder(BaseHTTPRequestHandler):
    bodies: list[tuple[str, Any]] = []  # noqa: RUF012

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers["content-length"]))
        if self.headers.get("content-type", "").startswith("application/json"):
            self.bodies.append((self.path, json.loads(body)))
        answer = b'{"successes": [], "errors": []}'
        self.send_response(207 if "ingestion" in self.path else 200)
        self.send_header("content-type", "application/json")
        self.send_header("content-length", str(len(answer)))
        self.end_headers()
        self.wfile.write(answer)

    def log_message(self, *args: object) -> None:
        pass


def scores() -> list[dict[str, Any]]:
    """All that arrived, whichever of its ways the client took."""
    return [
        each.get("body", each)
        for path, body in Recorder.bodies
        for each in (body if isinstance(body, list) else body.get("batch", [body]))
        if "scores" in path or each.get("type") == "score-create"
    ]


def test_verdicts_are_scores_of_observations() -> None:
    listener = ThreadingHTTPServer(("127.0.0.1", 0), Recorder)
    threading.Thread(target=listener.serve_forever, daemon=True).start()
    client = Langfuse(
        public_key="pk-lf-1",
        secret_key="sk-lf-1",
        base_url=f"http://127.0.0.1:{listener.server_port}",
    )
    places: dict[str, tuple[str, str]] = {}

    @contextmanager
    def span(name: str) -> Iterator[None]:
        with client.start_as_current_observation(name=name) as current:
            places[name] = current.trace_id, current.id
            yield

    sink = LangfuseScores(client)
    hand_in(sink, span)
    client.flush()
    found = {score["observationId"]: score for score in scores()}
    assert len(found) == len(scores()) == len(VALUES)
    for name, value in VALUES.items():
        trace, observation = places[name]
        score = found[observation]
        assert score["traceId"] == trace
        assert (score["name"], score["value"], score["dataType"]) == (
            "correctness",
            value,
            "NUMERIC",
        )
        assert score["metadata"]["propensity"] == 1.0
        assert score["id"] == f"gatekeeper-{trace}-{name}"
    # Sent again, a score has the id of the first, by which Langfuse replaces it.
    trace, observation = places["right"]
    sink.send([Score(Place(trace, observation), "right", 0.0, "fail", "", {})])
    client.flush()
    assert len({score["id"] for score in scores()}) == len(VALUES)
    client.shutdown()
    listener.shutdown()
    listener.server_close()


def test_the_gateways_verdicts_are_scores_of_the_callers_observations() -> None:
    Recorder.bodies.clear()
    listener = ThreadingHTTPServer(("127.0.0.1", 0), Recorder)
    threading.Thread(target=listener.serve_forever, daemon=True).start()
    url = f"http://127.0.0.1:{listener.server_port}"
    client = Langfuse(public_key="pk-lf-1", secret_key="sk-lf-1", base_url=url)
    keys = {"LANGFUSE_PUBLIC_KEY": "pk-lf-1", "LANGFUSE_SECRET_KEY": "sk-lf-1"}
    with (
        gateway("langfuse", {"LANGFUSE_BASE_URL": url, **keys}) as call,
        client.start_as_current_observation(name="answer") as current,
    ):
        headers: dict[str, str] = {}
        propagate.inject(headers)
        output = call(headers)
    (score,) = scores()
    assert (score["traceId"], score["observationId"]) == (current.trace_id, current.id)
    assert (score["value"], score["id"]) == (1.0, f"gatekeeper-{current.trace_id}-{output}")
    assert not score.get("comment")
    listener.shutdown()
