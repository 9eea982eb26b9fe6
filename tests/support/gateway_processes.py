"""`gatekeeper serve --shared` in processes of its own, and requests to it."""

from __future__ import annotations

import http.client
import json
import re
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlsplit

from scripted_upstream import Request, completion, reply

from gatekeeper.log import PostgresRun

__all__ = ["ASKED", "PATIENCE", "TASK", "Serving", "answered", "serving", "started"]

PATIENCE = 60.0
ASKED = json.dumps({"model": "m", "messages": [{"role": "user", "content": "q"}]})
TASK = {"prompt": "p", "kind": "math", "gold": "x + 0"}


def answered(request: Request) -> Any:
    """A right answer, written so that its check needs algebra, which takes a while."""
    return [reply(json.dumps(completion("So it is \\boxed{(x^2 + 0)/x}")).encode())]


@dataclass
class Serving:
    """A gateway that serves."""

    process: subprocess.Popen[str]
    url: str
    page: str  # its link, with the token

    def ask(
        self, method: str, path: str, body: str | None = None, **headers: str
    ) -> tuple[int, http.client.HTTPMessage, str]:
        connection = http.client.HTTPConnection(urlsplit(self.url).netloc, timeout=PATIENCE)
        try:
            sent = {name.replace("_", "-"): value for name, value in headers.items()}
            connection.request(method, path, body, sent)
            found = connection.getresponse()
            return found.status, found.headers, found.read().decode()
        finally:
            connection.close()

    def call(self, **headers: str) -> tuple[int, str]:
        """Status, and the output's id."""
        status, found, _ = self.ask("POST", "/v1/chat/completions", ASKED, **headers)
        return status, found.get("x-gatekeeper-id", "")

    def knows(self, id_: str) -> bool:
        return self.ask("GET", f"/gatekeeper/results/{id_}")[0] == 200

    def cookie(self) -> str:
        _, headers, _ = self.ask("GET", self.page.removeprefix(self.url))
        return headers["set-cookie"].partition(";")[0]


def started(place: PostgresRun, *options: object) -> subprocess.Popen[str]:
    """`gatekeeper serve --shared` on this run."""
    command = [sys.executable, "-m", "gatekeeper", "serve", "--port", "0", *map(str, options)]
    command += ["--log", place.dsn, "--run", place.name, "--shared"]
    return subprocess.Popen(command, stderr=subprocess.PIPE, text=True)


@contextmanager
def serving(place: PostgresRun, *options: object) -> Iterator[Serving]:
    """The same, when it serves; killed at the end."""
    process = started(place, *options)
    try:
        assert process.stderr is not None
        urls = [re.findall(r"http://\S+", process.stderr.readline()) for _ in range(2)]
        yield Serving(process, urls[0][0].removesuffix("/v1"), urls[1][-1])
    finally:
        process.kill()
        process.communicate()
