"""Gateways on one run: what they share, and what only the gateway that decided does."""

from __future__ import annotations

import json
import re
import signal
from contextlib import ExitStack
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from gateway_processes import PATIENCE, TASK, Serving, answered, serving
from scripted_upstream import ScriptedUpstream
from shared_runs import check_every_moment, reclaim, until

from gatekeeper.log.run import read_run

if TYPE_CHECKING:
    from postgres import Server


def test_gateways_on_one_run(postgres: Server, tmp_path: Path) -> None:
    place, tasks = postgres.new_run(), tmp_path / "tasks.jsonl"
    tasks.write_text(json.dumps(TASK | {"id": "q"}))

    def is_verified(id_: str) -> bool:
        result = read_run(place).results.get(id_)
        return result is not None and result.outcome is not None

    with ExitStack() as stack:
        upstream = stack.enter_context(ScriptedUpstream(answered))
        options = ("--upstream", upstream.url, "--tasks", tasks, "--budget", 1, "--threads", 1)
        one, two = (stack.enter_context(serving(place, *options)) for _ in range(2))

        # A task that was put to one is known to the other, as it was put last.
        assert two.call(x_gatekeeper_task="new")[0] == 400
        for gold, status in ((TASK["gold"], 201), ("7", 204)):
            body = json.dumps(TASK | {"gold": gold})
            assert one.ask("PUT", "/gatekeeper/tasks/new", body)[0] == status
            for gateway in (one, two):
                answer, id_ = gateway.call(x_gatekeeper_task="new")
                assert answer == 200
                until(partial(is_verified, id_))
                assert read_run(place).results[id_].outcome.error == int(gold == "7")
        status, _, why = two.ask("PUT", "/gatekeeper/tasks/q", json.dumps(TASK))
        assert (status, "is in the task file" in why) == (400, True)

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
