"""A caller of a gateway before a scripted upstream."""

import http.client
from collections.abc import Iterator

import pytest
from running_gateway import running_gateway
from scripted_upstream import ScriptedUpstream

__all__ = ["caller"]


@pytest.fixture(scope="module")
def caller(upstream: ScriptedUpstream) -> Iterator[http.client.HTTPConnection]:
    """A connection to a gateway in front of the module's own fixture `upstream`."""
    with running_gateway(upstream.url) as gateway:
        connection = http.client.HTTPConnection(gateway.url.removeprefix("http://"), timeout=60)
        yield connection
        connection.close()
