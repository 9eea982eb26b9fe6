"""Gateways on one run: what each knows of the others, and what only the one that decided does."""

from __future__ import annotations

import http.client
import json
import re
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from scripted_upstream import Request, ScriptedUpstream, completion, reply
from shared_runs import check_every_moment, reclaim, until

from gatekeeper.log import PostgresRun
from gatekeeper.log.run import read_run

if TYPE_CHECKING:
    from postgres import Server

PATIENCE = 60.0
ASKED = json.dumps({"model": "m", "messages": [{"role": "user", "content": "q"}]})
TASK = {"prompt": "p", "kind": "math", "gold": "x + 0"}


def answered(request: Request) -> Any:
    """Right, spelt so that only algebra knows it, which takes its time."""
    return [reply(json.dumps(completion("So it is \\boxed{(x^2 + 0)/x}")).encode())]


@dataclass
class Serving:
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


@contextmanager
def serving(place: PostgresRun, *options: object) -> Iterator[Serving]:
    command = [sys.executable, "-m", "gatekeeper", "serve", "--port", "0", *map(str, options)]
    command += ["--log", place.dsn, "--run", place.name, "--shared"]
    process = subprocess.Popen(command, stderr=subprocess.PIPE, text=True)
    try:
        assert process.stderr is not None
        urls = [re.findall(r"http://\S+", process.stderr.readline()) for _ in range(2)]
        yield Serving(process, urls[0][0].removesuffix("/v1"), urls[1][-1])
    finally:
        process.kill()
        process.communicate()


def test_gateways_on_one_run(postgres: Server, tmp_path: Path) -> None:
    place, tasks = postgres.new_run(), tmp_path / "tasks.jsonl"
    tasks.write_text(json.dumps(TASK | {"id": "q"}))
    with ExitStack() as stack:
        upstream = stack.enter_context(ScriptedUpstream(answered))
        options = ("--upstream", upstream.url, "--tasks", tasks, "--budget", 1, "--workers", 1)
        one, two = (stack.enter_context(serving(place, *options)) for _ in range(2))

        # A task that was put is in one process.
        assert one.ask("PUT", "/gatekeeper/tasks/new", json.dumps(TASK))[0] == 201
        assert one.call(x_gatekeeper_task="new")[0] == 200
        assert two.call(x_gatekeeper_task="new")[0] == 400

        # What one decides the other knows; a verdict by hand is for the one that decided.
        status, waiting = one.call()
        assert status == 200
        until(lambda: two.knows(waiting))
        cookies = {gateway.url: gateway.cookie() for gateway in (one, two)}

        def page(gateway: Serving) -> str:
            return gateway.ask("GET", "/gatekeeper/", cookie=cookies[gateway.url])[2]

        until(lambda: 'name="output"' in page(two) and "Processes on this run" in page(two))
        (seq,) = set(re.findall(r'name="output" value="(\d+)"', page(two)))

        def verdict(gateway: Serving) -> tuple[int, str]:
            status, _, text = gateway.ask(
                "POST",
                "/gatekeeper/verdicts",
                f"output={seq}&verdict=passed",
                cookie=cookies[gateway.url],
                origin=gateway.url,
                content_type="application/x-www-form-urlencoded",
            )
            return status, text

        status, why = verdict(two)
        assert (status, "another process" in why) == (409, True), why
        until(lambda: 'name="output"' in page(one))
        assert verdict(one) == (303, "")

        # What a killed one has left is verified by the next that starts.
        ids = [one.call(x_gatekeeper_task="q")[1] for _ in range(12)]
        one.process.kill()
        one.process.wait(PATIENCE)
        until(lambda: all(map(two.knows, ids)))
        reclaim(place, one.process.pid)
        three = stack.enter_context(serving(place, *options))
        until(lambda: all(read_run(place).results[id_].outcome for id_ in ids))
        for gateway in (two, three):
            gateway.process.send_signal(signal.SIGTERM)
            assert gateway.process.wait(PATIENCE) == 0
    check_every_moment(place)
    assert {read_run(place).results[id_].outcome.error for id_ in (waiting, *ids)} == {0}
