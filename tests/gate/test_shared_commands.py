"""`run --shared` and `serve --shared`: several commands on one run, and one of them is killed."""

from __future__ import annotations

import json
import re
import signal
import subprocess
import sys
import time
import urllib.request
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING

import psycopg
import pytest
from scripted_upstream import Request, ScriptedUpstream, completion, reply
from shared_runs import accounts, asked, check_every_moment, reclaim, writers
from ticks import ticks

from gatekeeper.budget.leases import AHEAD
from gatekeeper.cli import main
from gatekeeper.gate.runner import BLOCK
from gatekeeper.log import PostgresRun, Settled

if TYPE_CHECKING:
    from postgres import Server

ROOT = Path(__file__).parents[2]
PATIENCE = 120.0
TASKS = 4 * BLOCK


@pytest.fixture
def place(postgres: Server) -> PostgresRun:
    return postgres.new_run()


def command(name: str, place: PostgresRun, *options: object) -> list[str]:
    log = ("--log", place.dsn, "--run", place.name, "--shared")
    return [sys.executable, "-m", "gatekeeper", name, *map(str, options), *log]


def blocks(place: PostgresRun) -> list[tuple[int | None, bool]]:
    """The process that has each block, and whether the block is done."""
    return asked(
        place,
        "SELECT b.writer, done FROM gatekeeper.runs JOIN gatekeeper.blocks b USING (run)"
        " WHERE name = %s ORDER BY block",
    )


def test_a_run_of_three_commands_of_which_one_is_killed(place: PostgresRun, tmp_path: Path) -> None:
    """Each task is answered once, the cap holds at every moment, and the others end with the report
    of the whole run. So does the same command later, which finds nothing left to do."""
    tasks = tmp_path / "tasks.jsonl"
    lines = (ROOT / "gatekeeper/bundled/tasks.jsonl").read_text().splitlines(keepends=True)
    tasks.write_text("".join(lines[:TASKS]))
    options = ("--policy", "cst", "--budget", 0.3, "--warmup", 20, "--sandbox", "local", "--json")
    started = command("run", place, tasks, *options)
    first = subprocess.Popen(started, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    deadline = time.monotonic() + PATIENCE
    while not place_has(place, Settled.kind):  # in the midst of a block
        assert first.poll() is None
        assert time.monotonic() < deadline
        time.sleep(0.02)
    others = [
        subprocess.Popen(started, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        for _ in range(2)
    ]
    first.kill()
    first.wait()
    reclaim(place, first.pid)
    begun = [n for n, (writer, done) in enumerate(blocks(place)) if writer == 1 and not done]
    found = []
    for process in others:
        out, err = process.communicate(timeout=PATIENCE)
        assert process.returncode == 0, err
        found.append(json.loads(out))
    again = subprocess.run(started, capture_output=True, timeout=PATIENCE)
    found.append(json.loads(again.stdout))
    state = check_every_moment(place)
    assert len(state.outputs) == TASKS
    assert not any(output.reserved for output in state.outputs.values())
    for report in found:
        assert report["outputs"] == TASKS
        assert report["spent"] == state.ledger.spent
        assert report["verified"] == state.verified
        assert report["warmup_verified"] == state.warmup_verified
    assert all(done for _, done in blocks(place))
    assert all(blocks(place)[n][0] != 1 for n in begun)  # of the one that was killed


def test_a_run_that_is_told_to_end(place: PostgresRun, tmp_path: Path) -> None:
    """SIGTERM: its lease returns at once, the log has what it has done, and another one goes on
    without taking it for dead."""
    tasks = tmp_path / "tasks.jsonl"
    lines = (ROOT / "gatekeeper/bundled/tasks.jsonl").read_text().splitlines(keepends=True)
    tasks.write_text("".join(lines[:TASKS]))
    options = ("--policy", "cst", "--budget", 1, "--total", TASKS, "--sandbox", "local", "--json")
    started = command("run", place, tasks, *options)
    first = subprocess.Popen(started, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    deadline = time.monotonic() + PATIENCE
    while not place_has(place, Settled.kind):
        assert first.poll() is None
        assert time.monotonic() < deadline
        time.sleep(0.02)
    first.send_signal(signal.SIGTERM)
    out, err = first.communicate(timeout=PATIENCE)
    assert (first.returncode, out) == (143, ""), err
    assert re.search(
        rf"interrupted by SIGTERM after \d+ of {TASKS} outputs; the same command continues\n$", err
    )
    assert not writers(place)
    ledger = check_every_moment(place).ledger
    spent, held = ledger.spent + ledger.warmup_spent, ledger.held + ledger.warmup_held
    assert 0 < spent < TASKS
    # In the middle of a decision, its reservation is charged and not in the log yet.
    interrupted = accounts(place)["total"] - ticks(spent) - ticks(held)
    assert interrupted in (0, ticks(1))
    again = subprocess.run(started, capture_output=True, timeout=PATIENCE)
    assert json.loads(again.stdout)["outputs"] == TASKS
    ledger = check_every_moment(place).ledger
    assert accounts(place)["total"] == ticks(ledger.spent + ledger.warmup_spent) + interrupted


def place_has(place: PostgresRun, kind: str) -> bool:
    with psycopg.connect(place.dsn) as db:
        found = db.execute("SELECT to_regclass('gatekeeper.blocks')").fetchone()
        return found != (None,) and bool(
            db.execute(
                "SELECT 1 FROM gatekeeper.runs JOIN gatekeeper.events USING (run)"
                " WHERE name = %s AND kind = %s LIMIT 1",
                (place.name, kind),
            ).fetchone()
        )


def answer(request: Request) -> list[bytes | float | str]:
    return [reply(json.dumps(completion("So it is \\boxed{7}")).encode())]


def call(url: str) -> None:
    body = {"model": "m", "messages": [{"role": "user", "content": "q"}]}
    request = urllib.request.Request(
        f"{url}/v1/chat/completions",
        json.dumps(body).encode(),
        {"content-type": "application/json", "x-gatekeeper-task": "q"},
    )
    with urllib.request.urlopen(request, timeout=PATIENCE) as answered:
        answered.read()


def test_two_gateways_of_which_one_is_killed(place: PostgresRun, tmp_path: Path) -> None:
    """Together they spend the total, except for what the killed one may have used; the other one
    goes on serving."""
    tasks, total = tmp_path / "tasks.jsonl", 30
    tasks.write_text(json.dumps({"id": "q", "prompt": "p", "kind": "math", "gold": "7"}))
    with ExitStack() as stack:
        upstream = stack.enter_context(ScriptedUpstream(answer))
        options = ("--upstream", upstream.url, "--port", 0, "--tasks", tasks, "--wait", "verdict")
        budget = ("--budget", 1, "--total", total, "--policy", "cst")
        gateways, urls = [], []
        for _ in range(2):
            gateway = subprocess.Popen(
                command("serve", place, *options, *budget), stderr=subprocess.PIPE, text=True
            )
            stack.callback(gateway.communicate)
            stack.callback(gateway.kill)
            assert gateway.stderr is not None
            ready = re.search(r"http://127\.0\.0\.1:\d+", gateway.stderr.readline())
            assert ready is not None
            gateways.append(gateway)
            urls.append(ready[0])
        with ThreadPoolExecutor(4) as pool:
            list(pool.map(call, urls * 6))
            gateways[0].kill()
            gateways[0].wait()
            reclaim(place, gateways[0].pid)
            list(pool.map(call, urls[1:] * 24))
        gateways[1].send_signal(signal.SIGTERM)
        assert gateways[1].wait(PATIENCE) == 0
    state = check_every_moment(place)
    assert len(state.outputs) == 36
    spent = state.ledger.spent + state.ledger.warmup_spent
    assert ticks(spent) <= accounts(place)["total"] <= ticks(total)
    assert spent >= total - AHEAD - 1  # less than one is left where a lease was not in whole ones


def test_options_that_cannot_be_shared(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    tasks = tmp_path / "tasks.jsonl"
    tasks.write_text(json.dumps({"id": "q", "prompt": "p", "kind": "math", "gold": "7"}))
    serve = ["serve", "--upstream", "http://127.0.0.1:9/v1"]
    database = ["--log", "postgresql://h/d", "--run", "x"]
    for arguments, says in (
        (["run", str(tasks)], "--shared with no --log: "),
        (["run", str(tasks), "--log", "run.db"], "--shared with --log run.db: "),
        (["run", str(tasks), *database, "--check-all"], "--check-all with --shared: "),
        ([*serve, "--log", "run.db"], "--shared with --log run.db: "),
    ):
        assert main([*arguments, "--shared"]) == 2
        assert says in capfd.readouterr().err
