"""A server like OpenAI's, a client of it, and a gate."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from loopback import PATIENCE
from openai import OpenAI
from openai_server import Server
from wrapped_calls import make_gate

from gatekeeper import VerificationGate


@pytest.fixture(scope="module")
def server() -> Iterator[Server]:
    with Server() as server:
        yield server


@pytest.fixture
def gate() -> Iterator[VerificationGate]:
    with make_gate() as gate:
        yield gate


@pytest.fixture
def client(server: Server) -> Iterator[OpenAI]:
    with OpenAI(base_url=server.url, api_key="k", timeout=PATIENCE) as client:
        yield client
