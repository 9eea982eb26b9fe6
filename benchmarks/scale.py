"""Decisions per second of 1, 2 and 4 processes that share one budget and one log in PostgreSQL.

    PYTHONPATH=.:tests/support python benchmarks/scale.py

Measured in turns, each with the same number of callers (threads) in each process:

- one row that every decision updates, and a row of the log, in one transaction; each caller has a
  connection of its own;
- gates with `shared=True`: whole calls of `maybe_verify` on a thousand outputs in turns, of which a
  fifth is verified, with a verifier that answers at once: one in four is wrong. Every process
  follows the others meanwhile;
- what a gate does instead of the hot row, without the rest of its work: from its lease it reserves
  for a fifth of a batch of decisions, and it writes the batch to the log, in one commit;
- the leases alone: one reservation at a time, and in batches.

Then the processor time in which a process applies one decision of another one, without the time to
open a run: 30 us are 15 % of a process at 5,000 decisions per second. The script starts its own
server, with fsync.
"""

from __future__ import annotations

import argparse
import multiprocessing
import time
from collections.abc import Callable
from contextlib import closing
from dataclasses import replace
from functools import partial
from itertools import count as numbers
from multiprocessing.synchronize import Barrier
from threading import Thread
from typing import Any
from zlib import crc32

import psycopg
from postgres import Server, missing, start

from gatekeeper import Budget, Generation, VerificationGate
from gatekeeper.budget import SharedLedger
from gatekeeper.budget.leases import Leases
from gatekeeper.log import Decided, MemoryLog, PostgresRun, open_log
from gatekeeper.log.postgres_leases import PostgresLeases
from gatekeeper.log.postgres_shared import SharedLog
from gatekeeper.log.run import read_run
from gatekeeper.testing import make_generation

FORK = multiprocessing.get_context("fork")
PROCESSES = (1, 2, 4)
CALLERS = (1, 12)
BATCHES = (1, 8, 64)
LOGGED = (32, 256)  # decisions in a commit
SHARE = 0.2
FOLLOWED = ("random", "cst")
CAP = 10**7
EVENT = '{"text": "%s"}' % ("x" * 700)  # as long as a decision's row


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=float, default=2.0, help="of each measurement")
    seconds = parser.parse_args().seconds
    if why := missing():
        raise SystemExit(why)
    print(f"{'processes':>10} {'callers':>8} {'way':>14} {'per second':>12} {'of hot row':>12}")
    with start() as server:
        for count in PROCESSES:
            for callers in CALLERS:
                hot = _rate(server, partial(_hot_row, callers=callers), count, seconds)
                _row(count, callers, "hot row", hot, hot)
                ways = {"gates": partial(_gates, callers=callers)}
                if callers == 1:
                    ways |= {f"with log, {n}": partial(_logged, batch=n) for n in LOGGED}
                    ways |= {f"leases, {n}": partial(_leases, batch=n) for n in BATCHES}
                for name, way in ways.items():
                    _row(count, callers, name, _rate(server, way, count, seconds), hot)
        for policy in FOLLOWED:
            took = _following(server, policy, seconds)
            print(f"following, {policy}: {1e6 * took:.0f} us of processor time for each decision")


def _row(count: int, callers: int, way: str, rate: float, hot: float) -> None:
    print(f"{count:>10} {callers:>8} {way:>14} {rate:>12,.0f} {rate / hot:>12.1f}")


def _rate(server: Server, way: Callable[..., int], count: int, seconds: float) -> float:
    """Decisions or admissions per second of all processes."""
    place = server.new_run()
    with psycopg.connect(server.dsn, autocommit=True) as db:
        db.execute("CREATE TABLE IF NOT EXISTS hot (run text PRIMARY KEY, cap int, used int)")
        db.execute("CREATE TABLE IF NOT EXISTS said (run text, at serial, data json)")
        db.execute("INSERT INTO hot VALUES (%s, %s, 0)", (place.name, CAP))
    barrier, found = FORK.Barrier(count), FORK.SimpleQueue()
    arguments = (way, place, barrier, seconds, found)
    processes = [FORK.Process(target=_process, args=arguments) for _ in range(count)]
    for process in processes:
        process.start()
    rate = float(sum(found.get() for _ in processes))
    for process in processes:
        process.join()
    return rate


def _process(
    way: Callable[..., int], place: PostgresRun, barrier: Barrier, seconds: float, found: Any
) -> None:
    found.put(way(place, barrier, seconds) / seconds)


def _gate(place: PostgresRun, policy: str) -> VerificationGate:
    def verifier(generation: Generation, task: object) -> bool:
        return crc32(generation.id.encode()) % 4 != 0

    budget = Budget(fraction=SHARE)
    return VerificationGate(policy, budget=budget, verifier=verifier, log=place, shared=True)


def _gates(
    place: PostgresRun,
    barrier: Barrier,
    seconds: float,
    *,
    callers: int,
    policy: str = "random",
) -> int:
    # Of one output alone a gate would suspect drift: no two are alike in a real stream.
    outputs = [make_generation("g", tokens=20, seed=seed) for seed in range(1000)]
    name, number = multiprocessing.current_process().name, numbers()

    def call() -> None:
        i = next(number)
        gate.maybe_verify(outputs[i % len(outputs)], id=f"{name} {i}")

    with _gate(place, policy) as gate:
        return _called(call, barrier, seconds, callers)


def _following(server: Server, policy: str, seconds: float) -> float:
    """Processor time in which this process follows one decision of another one."""
    place = server.new_run()
    made = FORK.SimpleQueue()
    way = partial(_gates, callers=CALLERS[-1], policy=policy)
    other = FORK.Process(target=_process, args=(way, place, FORK.Barrier(1), seconds, made))
    other.start()
    made.get()
    other.join()
    decisions = len(read_run(place, texts=False).outputs)
    _opening(place, policy)  # imports what a first fit needs
    fixed, _ = _opening(server.new_run(), policy)
    took, seen = _opening(place, policy)  # applies events by the code that follows
    assert seen == decisions
    return (took - fixed) / decisions


def _opening(place: PostgresRun, policy: str) -> tuple[float, int]:
    """Processor time in which a gate opens a run, and how many decisions it then knows of."""
    before = time.process_time()
    with _gate(place, policy) as gate:
        return time.process_time() - before, gate.status().seen


def _hot_row(place: PostgresRun, barrier: Barrier, seconds: float, *, callers: int) -> int:
    databases = [psycopg.connect(place.dsn, autocommit=True) for _ in range(callers)]
    free = list(databases)

    def decide() -> None:
        db = free.pop()
        with db.transaction(), db.pipeline():
            db.execute(
                "UPDATE hot SET used = used + 1 WHERE run = %s AND used < cap", (place.name,)
            )
            db.execute("INSERT INTO said (run, data) VALUES (%s, %s)", (place.name, EVENT))
        free.append(db)

    found = _called(decide, barrier, seconds, callers)
    for db in databases:
        db.close()
    return found


def _called(call: Callable[[], object], barrier: Barrier, seconds: float, callers: int) -> int:
    """How many calls `callers` threads made within the time."""
    done = [0] * callers

    def caller(number: int) -> None:
        while time.perf_counter() < end:
            call()
            done[number] += 1

    threads = [Thread(target=caller, args=(i,)) for i in range(callers)]
    barrier.wait()
    end = time.perf_counter() + seconds
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return sum(done)


def _logged(place: PostgresRun, barrier: Barrier, seconds: float, *, batch: int) -> int:
    account, written = ("total",), 0
    ledger, decisions = SharedLedger(Budget(total=CAP), 1.0), _decisions(batch)
    chosen = sum(event.decision.verify for event in decisions)
    with closing(SharedLog(place, ledger)) as log:
        barrier.wait()
        end = time.perf_counter() + seconds
        while time.perf_counter() < end:
            assert log.leases.reserve(account, chosen) == chosen
            log.append(decisions)
            log.sync()
            written += batch
            for _ in range(chosen):
                log.leases.settle(account, ledger.price)
    return written


def _decisions(count: int) -> list[Decided]:
    """Decisions of a gate, changed so that every fifth one is to verify, and the last one."""
    log = MemoryLog()
    with VerificationGate("random", budget=Budget(fraction=SHARE), log=log) as gate:
        for i in range(count):
            gate.maybe_verify(make_generation(f"g {i}", tokens=20, seed=i))
    found = [event for event in log.events() if isinstance(event, Decided)]
    return [
        replace(event, decision=replace(event.decision, verify=left % 5 == 0))
        for left, event in zip(range(count - 1, -1, -1), found, strict=True)
    ]


def _leases(place: PostgresRun, barrier: Barrier, seconds: float, *, batch: int) -> int:
    open_log(place).close()
    store = PostgresLeases(place, {"total": CAP}, 1)
    leases = Leases(store, 1, {"total": None})
    barrier.wait()
    end, admitted = time.perf_counter() + seconds, 0
    while time.perf_counter() < end:
        held = leases.reserve(("total",), batch)
        for _ in range(held):
            leases.settle(("total",), 1)
        admitted += held
    return admitted


if __name__ == "__main__":
    main()
