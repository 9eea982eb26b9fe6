"""One command with several processes: one port, one budget, one page."""

from __future__ import annotations

import asyncio
import json
import os
import re
import signal
from collections import Counter
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

import aiohttp
import pytest
from gateway_processes import PATIENCE, TASK, Serving, answered, serving, started
from scripted_upstream import ScriptedUpstream
from serving import running
from shared_runs import check_every_moment, reclaim, until, writers

from gatekeeper.bundled import TASKS
from gatekeeper.cli import main
from gatekeeper.log import Decided, Released, Settled, open_log
from gatekeeper.log.run import read_run

if TYPE_CHECKING:
    from postgres import Server

CAP = 60  # verifications


async def calls(
    url: str, count: int, body: dict[str, Any], **headers: str
) -> list[tuple[int, str]]:
    """Status and id of each answer, of as many calls at once, each on a connection of its own;
    status 0 where a connection was lost."""
    connector = aiohttp.TCPConnector(limit=0, force_close=True)
    async with aiohttp.ClientSession(connector=connector) as session:

        async def one() -> tuple[int, str]:
            path = f"{url}/v1/chat/completions"
            with suppress(aiohttp.ClientError, ConnectionError):
                async with session.post(path, json=body, headers=headers) as answer:
                    await answer.read()
                    return answer.status, answer.headers.get("x-gatekeeper-id", "")
            return 0, ""

        return await asyncio.gather(*(one() for _ in range(count)))


BODY: dict[str, Any] = {"model": "m", "messages": [{"role": "user", "content": "q"}]}
OF_Q = {"x-gatekeeper-task": "q"}


def answered_by(gateway: Serving) -> dict[str, int]:
    """Answers of each process, as far as their figures were met so far."""
    text = gateway.ask("GET", "/gatekeeper/metrics")[2]
    found = re.findall(r'gatekeeper_requests_total\{.*worker="(\d)"} ([0-9.]+)', text)
    return {number: int(float(count)) for number, count in found}


@pytest.fixture
def task_file(tmp_path: Path) -> Path:
    path = tmp_path / "tasks.jsonl"
    path.write_text(json.dumps(TASK | {"id": "q"}))
    return path


def test_a_process_is_killed_and_all_are_terminated_under_load(
    postgres: Server, task_file: Path
) -> None:
    """Both serve. The one that is killed is started again, and what it had selected is verified by
    another; at SIGTERM every answer is delivered. The cap holds at every moment."""
    place = postgres.new_run()
    with (
        ScriptedUpstream(answered) as upstream,
        serving(
            place,
            *("--upstream", upstream.url, "--tasks", task_file, "--warmup", 5),
            *("--budget", 1, "--total", CAP, "--threads", 1, "--workers", 2),
        ) as gateway,
    ):
        served: dict[str, int] = {}

        def both_served() -> bool:
            gateway.call()
            served.update(answered_by(gateway))
            return len(served) == 2

        until(both_served)
        first = writers(place)
        assert len(first) == 2

        async def load(count: int, number: int, pid: int) -> list[tuple[int, str]]:
            before = len(upstream.requests)
            under_way = asyncio.create_task(calls(gateway.url, count, BODY, **OF_Q))
            while len(upstream.requests) < before + count // 2:
                await asyncio.sleep(0.005)
            os.kill(pid, number)
            return await under_way

        killed = min(first)
        found = asyncio.run(load(60, signal.SIGKILL, killed))
        assert {status for status, _ in found} <= {200, 0}
        until(lambda: len(writers(place)) == 3)  # the new one has looked for what is left
        reclaim(place, killed)
        assert killed not in writers(place)

        def none_is_left() -> bool:
            results = read_run(place).results.values()
            return all(r.outcome is not None for r in results if r.decision.verify and "~" in r.id)

        until(none_is_left)
        found += asyncio.run(load(60, signal.SIGTERM, gateway.process.pid))
        assert {status for status, _ in found[60:]} == {200}
        assert gateway.process.wait(PATIENCE) == 0
        assert gateway.process.stderr is not None
        words = gateway.process.stderr.read()
        assert re.search(rf"worker \d \(process {killed}\) has ended by signal 9; .* again", words)
        assert words.count("ended after") == 1
    state = check_every_moment(place)
    assert state.ledger.held == 0
    assert not writers(place)
    known = read_run(place).results
    assert {id_ for _, id_ in found if id_} <= set(known)
    with open_log(place, read_only=True) as log:
        kinds: dict[str, Counter[type]] = {}
        for event in log.events():
            kinds.setdefault(event.id, Counter())[type(event)] += 1
    for id_, result in known.items():
        if result.decision.verify:
            assert kinds[id_][Decided] == 1
            assert kinds[id_][Settled] or kinds[id_][Released], id_


def test_the_page_has_one_token(postgres: Server) -> None:
    """Printed once; in front of the bundled model, whose outputs wait for a person here."""
    task = json.loads(TASKS.read_text().splitlines()[0])
    body = {
        "model": "gatekeeper-bundled",
        "messages": [{"role": "user", "content": task["prompt"]}],
    }
    with (
        running() as upstream,
        serving(postgres.new_run(), "--upstream", upstream.base_url, "--workers", 2) as gateway,
    ):
        found = asyncio.run(calls(gateway.url, 8, body))
        assert {status for status, _ in found} == {200}
        cookie = gateway.cookie()
        for _ in range(12):  # each on a connection of its own
            status, _, page = gateway.ask("GET", "/gatekeeper/", cookie=cookie)
            assert (status, "Verdicts can be given with the link" in page) == (200, False)


def test_they_end_with_the_one_that_started_them(postgres: Server) -> None:
    place = postgres.new_run()
    with ScriptedUpstream(answered) as upstream:
        with serving(place, "--upstream", upstream.url, "--workers", 2) as gateway:
            pids = list(writers(place))
            gateway.process.kill()
            gateway.process.wait(PATIENCE)
            until(lambda: not any(map(is_running, pids)))
        assert not writers(place)  # nothing is left to reclaim
        with serving(place, "--upstream", upstream.url, "--workers", 2) as gateway:
            gateway.process.send_signal(signal.SIGINT)
            assert gateway.process.wait(PATIENCE) == 130
            until(lambda: not writers(place))


def test_a_log_of_their_own_is_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    command = ["serve", "--upstream", "http://127.0.0.1:9/v1", "--workers", "3"]
    for more in ((), ("--log", str(tmp_path / "run.db"))):
        assert main([*command, *more]) == 2
        error = capsys.readouterr().err
        assert "--workers 3: several processes need a log that they can share" in error
        assert "--log postgresql://USER@HOST/DATABASE --run NAME --shared" in error


def test_an_error_of_the_run_is_printed_once(postgres: Server) -> None:
    """By the first process, before others start."""
    place = postgres.new_run()
    with ScriptedUpstream(answered) as upstream:
        options = ("--upstream", upstream.url, "--workers", 3)
        with serving(place, *options, "--budget", 0.5) as gateway:
            gateway.process.send_signal(signal.SIGTERM)
            assert gateway.process.wait(PATIENCE) == 0
        with started(place, *options, "--budget", 0.25) as process:
            _, words = process.communicate(timeout=PATIENCE)
        assert process.returncode == 2
        assert words.count("gatekeeper: ") == 1, words


def is_running(pid: int) -> bool:
    with suppress(ProcessLookupError):
        os.kill(pid, 0)
        return True
    return False
