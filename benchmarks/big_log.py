"""A long log: how long a resume and a report take, and in how much memory.

    python benchmarks/big_log.py [EVENTS] [--log FILE|DSN [--run NAME]] [--keep]

A gate writes a log of EVENTS events (default 1,000,000): outputs with signals and texts, a fifth of
them verified, verdicts, and now and then a verifier that fails, so that a reservation is released.
It is an ordinary gate, except that its events are stored ten thousand at a time and its verifier
knows the verdicts. The log is a temporary file, or with --log a new file or a new run in a
PostgreSQL database.

Then, each in a process of its own: a gate is opened on the log and closed again (resume, through
the snapshot that the first gate left), and `gatekeeper report` makes its page. It prints seconds,
processor seconds and the peak memory of the process.
"""

from __future__ import annotations

import argparse
import multiprocessing
import resource
import tempfile
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np
from _machine import machine

from gatekeeper import Budget, Generation, VerificationGate
from gatekeeper.cli import main as command
from gatekeeper.log import Event, PostgresRun, open_log
from gatekeeper.log.snapshot import Snapshot
from gatekeeper.policies import DEFAULT_POLICY
from gatekeeper.types import Outcome, Verdict

FRESH = multiprocessing.get_context("spawn")  # a fork would share this process's memory
EVENTS = 1_000_000
AT_ONCE = 10_000
SHAPES = 5_000  # outputs that differ in their signals; ids and texts all differ
FAILS = 0.003  # share of verifications that end without a verdict
DETAILS = {Verdict.FAILED: "expected 17, got 19", Verdict.INFRA_ERROR: "no container started"}
SENTENCE = (
    "so then we have that both sides of the equation by adding which gives a value for each term "
    "in this sum where x is at most half of it and therefore the answer must be an even number"
)

Place = Path | PostgresRun


class BulkLog:
    """A log that stores many events at a time, by means of one that stores each at once."""

    def __init__(self, place: Place) -> None:
        self._log, self._waiting, self.events_made = open_log(place), list[Event](), 0

    def append(self, events: Iterable[Event]) -> None:
        before = len(self._waiting)
        self._waiting.extend(events)
        self.events_made += len(self._waiting) - before
        if len(self._waiting) >= AT_ONCE:
            self._store()

    def _store(self) -> None:
        self._log.append(self._waiting)
        self._waiting.clear()

    def settings(self) -> dict[str, Any]:
        return self._log.settings()

    def configure(self, settings: Mapping[str, Any]) -> None:
        self._log.configure(settings)

    def events(self, id_: str | None = None) -> Iterator[Event]:
        self._store()
        return self._log.events(id_)

    def snapshot(self, key: str) -> Snapshot | None:
        return self._log.snapshot(key)

    def keep_snapshot(self, key: str, state: Mapping[str, Any]) -> None:
        self._store()
        self._log.keep_snapshot(key, state)

    def events_after(self, seq: int) -> Iterator[Event]:
        return self._log.events_after(seq)

    def decided_ids(self, seq: int) -> Iterator[str]:
        return self._log.decided_ids(seq)

    def close(self) -> None:
        self._store()
        self._log.close()


def verifier(generation: Generation, task: object) -> Outcome:
    """The task is the verdict."""
    assert isinstance(task, Verdict)
    return Outcome(task, seconds=0.012, detail=DETAILS.get(task, ""))


def gate(log: Any) -> VerificationGate:
    return VerificationGate(
        DEFAULT_POLICY,
        budget=Budget(fraction=0.2),
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
    rng = np.random.default_rng(0)
    of, vocabulary, i = shapes(rng), SENTENCE.split(), 0
    log = BulkLog(place)
    with gate(log) as opened:
        while log.events_made < count:
            which = rng.integers(SHAPES, size=AT_ONCE).tolist()
            words = rng.integers(len(vocabulary), size=(AT_ONCE, 60)).tolist()
            for shape, chosen, (draw, fails) in zip(
                which, words, rng.random((AT_ONCE, 2)).tolist(), strict=True
            ):
                output, wrong = of[shape]
                text = " ".join([vocabulary[word] for word in chosen])
                made = Generation(
                    f"output-{i}", text, output.logprob, output.top1, output.top2,
                    output.prompt_tokens, output.output_tokens, output.model,
                    output.finish_reason, output.k_seen,
                )  # fmt: skip
                verdict = Verdict.FAILED if draw < wrong else Verdict.PASSED
                opened.maybe_verify(made, Verdict.INFRA_ERROR if fails < FAILS else verdict)
                i += 1
    return log.events_made


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
