"""A long log: how long a resume and a report take, and in how much memory.

    python benchmarks/big_log.py [EVENTS] [--log FILE|DSN [--run NAME]] [--keep]

A gate decides on 25,000 outputs with signals and texts, a fifth of them verified, and now and then
a verifier fails, so that a reservation is released. It is an ordinary gate, except that its
verifier knows the verdicts. It would need hours for a log of EVENTS events (default 1,000,000), so
its later events are copied into its log until there are that many: the same rows, with an id and a
text of its own for each output, and the snapshot that a gate would have left, with the account, the
counts and the open outputs of all. The first copy is read and encoded again by gatekeeper, and each
row must come out the same; so must the account. The log is a temporary file, or with --log a new
file or a new run in a PostgreSQL database.

Then, each in a process of its own: a gate is opened on the log and closed again (resume, through
the snapshot), and `gatekeeper report` makes its page. It prints seconds, processor seconds and the
peak memory of the process.
"""

from __future__ import annotations

import argparse
import json
import multiprocessing
import resource
import sqlite3
import tempfile
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import closing
from copy import deepcopy
from itertools import chain, islice
from pathlib import Path
from typing import Any

import numpy as np
from _machine import machine

from gatekeeper import Budget, Generation, VerificationGate
from gatekeeper.cli import main as command
from gatekeeper.log import Decided, Event, PostgresRun, open_log
from gatekeeper.log.decoding import decode
from gatekeeper.log.encoding import encoded
from gatekeeper.log.fold import LogState
from gatekeeper.log.run import fresh_ledger
from gatekeeper.log.snapshot import Snapshot
from gatekeeper.policies import DEFAULT_POLICY
from gatekeeper.types import Outcome, Verdict

FRESH = multiprocessing.get_context("spawn")  # a fork would share this process's memory
EVENTS = 1_000_000
AT_ONCE = 10_000
OUTPUTS = 25_000  # that the gate decides on
SHAPES = 5_000  # outputs that differ in their signals; ids and texts all differ
FRACTION = 0.2  # share of the outputs that the gate may verify
FAILS = 0.003  # share of verifications that end without a verdict
DETAILS = {Verdict.FAILED: "expected 17, got 19", Verdict.INFRA_ERROR: "no container started"}
SENTENCE = (
    "so then we have that both sides of the equation by adding which gives a value for each term "
    "in this sum where x is at most half of it and therefore the answer must be an even number"
)

Place = Path | PostgresRun


class NotedLog:
    """A log that also keeps in memory what its gate gives it to store."""

    def __init__(self, place: Place) -> None:
        self._log = open_log(place)
        self.made: list[Event] = []
        self.snapshots: list[tuple[int, str, Any]] = []  # how many events it is after, key, state

    def append(self, events: Iterable[Event]) -> None:
        events = list(events)
        self._log.append(events)
        self.made += events

    def keep_snapshot(self, key: str, state: Mapping[str, Any]) -> None:
        self._log.keep_snapshot(key, state)
        self.snapshots.append((len(self.made), key, json.loads(json.dumps(state))))

    def settings(self) -> dict[str, Any]:
        return self._log.settings()

    def configure(self, settings: Mapping[str, Any]) -> None:
        self._log.configure(settings)

    def events(self, id_: str | None = None) -> Iterator[Event]:
        return self._log.events(id_)

    def snapshot(self, key: str) -> Snapshot | None:
        return self._log.snapshot(key)

    def events_after(self, seq: int) -> Iterator[Event]:
        return self._log.events_after(seq)

    def decided_ids(self, seq: int) -> Iterator[str]:
        return self._log.decided_ids(seq)

    def close(self) -> None:
        self._log.close()


def verifier(generation: Generation, task: object) -> Outcome:
    """The task is the verdict."""
    assert isinstance(task, Verdict)
    return Outcome(task, seconds=0.012, detail=DETAILS.get(task, ""))


def gate(log: Any) -> VerificationGate:
    return VerificationGate(
        DEFAULT_POLICY,
        budget=Budget(fraction=FRACTION),
        verifier=verifier,
        log=log,
        on_unavailable="pass",
    )


def shapes(rng: np.random.Generator) -> list[tuple[Generation, float]]:
    """Outputs that differ in length and uncertainty, each with its probability of an error."""
    made = []
    for _ in range(SHAPES):
        tokens, certainty = int(rng.integers(8, 40)), rng.random()
        p = np.sort(rng.dirichlet((1.0 + 6.0 * certainty, 1.0, 0.5), size=tokens), axis=1)
        logp = np.log(np.maximum(p[:, ::-1], 1e-12))
        made.append(
            (
                Generation(
                    "shape", "", logp[:, 0], logp[:, 0], logp[:, 1],
                    40, tokens, "model", "stop", 2,
                ),
                0.5 * (1.0 - certainty),
            )
        )  # fmt: skip
    return made


def write(place: Place, count: int) -> int:
    """Write a log of at least `count` events; returns how many it has."""
    log = NotedLog(place)
    settings = decide(log)
    # Copies of a block that leaves no less room than it found never need more than there is.
    first, _, before = min(log.snapshots[:-1], key=lambda snapshot: room(snapshot[2]))
    last, key, after = log.snapshots[-1]
    assert last == len(log.made)
    assert room(before) <= room(after)
    block = [event for event in log.made[first:] if event.id]
    copies = max(-(-(count - last) // len(block)), 0)
    if copies:
        check(settings, log.made, block, before, after)
        store(place, last, copied(block, copies))
        with open_log(place) as written:
            written.keep_snapshot(key, grown(before, after, copies))
    return last + copies * len(block)


def decide(log: NotedLog) -> dict[str, Any]:
    """Open a gate on an empty log, let it decide, and close it; returns its settings."""
    rng = np.random.default_rng(0)
    of, vocabulary = shapes(rng), SENTENCE.split()
    with gate(log) as opened:
        for i in range(OUTPUTS):
            output, wrong = of[rng.integers(SHAPES)]
            text = " ".join([vocabulary[word] for word in rng.integers(len(vocabulary), size=60)])
            made = Generation(
                f"output-{i}", text, output.logprob, output.top1, output.top2,
                output.prompt_tokens, output.output_tokens, output.model,
                output.finish_reason, output.k_seen,
            )  # fmt: skip
            draw, fails = rng.random(2)
            verdict = Verdict.FAILED if draw < wrong else Verdict.PASSED
            opened.maybe_verify(made, Verdict.INFRA_ERROR if fails < FAILS else verdict)
        return log.settings()


def room(state: Any) -> float:
    """What the budget leaves, in its ledger's unit."""
    ledger = state["gate"]["ledger"]
    return float(FRACTION * ledger["base"] - ledger["spent"][0] - ledger["held"][0])


def id_in(copy: int, number: int) -> str:
    """The id, in the copy of this number, from 1, of an output that the gate decided on."""
    return f"output-{number + copy * OUTPUTS}"


def number_of(id_: str) -> int:
    return int(id_.removeprefix("output-"))


def copied(block: Sequence[Event], copies: int) -> Iterator[tuple[str, str, str]]:
    """Kind, id and JSON of copies of the events, with other ids and texts."""
    rng = np.random.default_rng(1)
    texts = " ".join(rng.choice(SENTENCE.split(), size=200_000).tolist())
    rows = []
    for event, (kind, id_, data) in zip(block, encoded(block, "big log"), strict=True):
        size = len(event.generation.text) if isinstance(event, Decided) else 0
        rows.append((kind, number_of(id_), data[: -size - 2] if size else data, size))
    for copy in range(1, copies + 1):
        starts = rng.integers(len(texts) - 1000, size=len(rows)).tolist()
        for (kind, number, data, size), start in zip(rows, starts, strict=True):
            row = f'{data}{texts[start : start + size]}"}}' if size else data
            yield kind, id_in(copy, number), row


def store(place: Place, last: int, rows: Iterator[tuple[str, str, str]]) -> None:
    """Append rows as the log of this kind does, but many at a time."""
    if isinstance(place, PostgresRun):
        import psycopg  # the extra `postgres`

        with psycopg.connect(place.dsn) as db, db.cursor() as cursor:
            query = "SELECT run FROM gatekeeper.runs WHERE name = %s"
            (run,) = cursor.execute(query, (place.name,)).fetchone() or (0,)
            with cursor.copy("COPY gatekeeper.events (run, n, kind, id, data) FROM STDIN") as copy:
                for n, row in enumerate(rows, last + 1):
                    copy.write_row((run, n, *row))
        return
    with closing(sqlite3.connect(place, isolation_level=None)) as file:
        statement = "INSERT INTO events (at, kind, id, data) VALUES (?, ?, ?, ?)"
        while part := [(time.time(), *row) for row in islice(rows, AT_ONCE)]:
            file.execute("BEGIN")
            file.executemany(statement, part)
            file.execute("COMMIT")


def grown(before: Any, after: Any, copies: int) -> dict[str, Any]:
    """The state after the copies: numbers have grown by as much as in the events copied, and
    outputs are open in each."""
    state: dict[str, Any] = deepcopy(after)
    new, then, now = state["gate"], before["gate"], after["gate"]
    for name in ("counts", "decisions", "verdicts"):
        new[name] = {key: n + copies * (n - then[name][key]) for key, n in now[name].items()}
    for name in ("seen", "spent", "known"):
        of = zip(now["ledger"][name], then["ledger"][name], strict=True)
        new["ledger"][name] = [n + copies * (n - m) for n, m in of]
    known = new["ledger"]["known"]
    known[2] = now["ledger"]["known"][2]  # the costliest
    new["ledger"]["base"] += copies * (now["ledger"]["base"] - then["ledger"]["base"])
    released = new["ledger"]["released"]
    opened = [output for output in now["open"] if output[0] not in then["ledger"]["released"]]
    for copy in range(1, copies + 1):
        for id_, *more in opened:
            new_id = id_in(copy, number_of(id_))
            new["open"].append([new_id, *more])
            released[new_id] = released[id_]
    return state


def check(
    settings: Mapping[str, Any],
    made: Sequence[Event],
    block: Sequence[Event],
    before: Any,
    after: Any,
) -> None:
    """A copy is what gatekeeper would have written, and what follows from it."""
    rows = list(copied(block, 1))
    copy = [decode(kind, id_, data) for kind, id_, data in rows]
    assert encoded(copy, "copy") == rows
    state = LogState(fresh_ledger(settings, "big log"))
    for event in chain(made, copy):
        state.apply(event)
    expected = grown(before, after, 1)["gate"]
    assert expected["ledger"] == json.loads(json.dumps(state.ledger.state()))
    assert expected["counts"] == {name: getattr(state, name) for name in state.COUNTS}
    assert (expected["decisions"], expected["verdicts"]) == (state.decisions, state.verdicts)


def resume(place: Place) -> str:
    with gate(place) as opened:
        return f"{opened.status().seen:,} outputs"


def report(place: Place) -> str:
    with tempfile.TemporaryDirectory() as folder:
        page = Path(folder) / "report.html"
        where = [str(place)] if isinstance(place, Path) else [place.dsn, "--run", place.name]
        command(["report", *where, "--out", str(page)])
        return f"{page.stat().st_size / 1e3:,.0f} kB"


def measured(do: Callable[[Place], str], place: Place) -> None:
    """Do it in a process of its own and print what that took."""
    found = FRESH.SimpleQueue()
    process = FRESH.Process(target=_measured, args=(do, place, found))
    process.start()
    process.join()
    if process.exitcode:
        raise SystemExit(f"{do.__name__} failed")
    print(f"{do.__name__}: {found.get()}", flush=True)


def _measured(do: Callable[[Place], str], place: Place, found: Any) -> None:
    begun = time.perf_counter()
    said = do(place)
    took = time.perf_counter() - begun
    used = resource.getrusage(resource.RUSAGE_SELF)
    found.put(
        f"{took:.1f} s, {used.ru_utime + used.ru_stime:.1f} s of the processor, "
        f"{used.ru_maxrss / 1e6:.2f} GB ({said})"
    )


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("events", type=int, nargs="?", default=EVENTS)
    parser.add_argument("--log", help="a new file, or the address of a PostgreSQL database")
    parser.add_argument("--run", default="big log", help="its name in the database")
    parser.add_argument("--keep", action="store_true", help="measure the log that is there")
    args = parser.parse_args()
    print(machine())
    with tempfile.TemporaryDirectory() as folder:
        place: Place = Path(args.log or Path(folder) / "big.db")
        if args.log and "://" in args.log:
            place = PostgresRun(args.log, args.run)
        begun = time.process_time()
        if not args.keep:
            count = write(place, args.events)
            print(f"{count:,} events, in {time.process_time() - begun:.0f} s of the processor")
        if isinstance(place, Path):
            print(f"{place.stat().st_size / 1e6:,.0f} MB", flush=True)
        for do in (resume, report):
            measured(do, place)


if __name__ == "__main__":
    main()
