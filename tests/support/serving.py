"""The bundled model behind OpenAI's client."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from openai import OpenAI

from gatekeeper.bundled.serve import Server


@contextmanager
def running(**options: Any) -> Iterator[Server]:
    """The server, in a thread of its own."""
    with Server(**options) as server:
        thread = threading.Thread(target=server.serve_forever, args=(0.05,))
        thread.start()
        try:
            yield server
        finally:
            server.shutdown()
            thread.join()


@contextmanager
def serving(**options: Any) -> Iterator[OpenAI]:
    with (
        running(**options) as server,
        OpenAI(base_url=server.base_url, api_key="none", max_retries=0) as client,
    ):
        yield client
