"""The live page on a long log: time to its first byte, time to read it all, memory.

    python benchmarks/live.py [EVENTS]

Writes a log of EVENTS events (default 1,000,000) in a temporary folder, starts `gatekeeper watch`
on it and prints, each beside a limit: the time to the first byte of the page right after the start,
while it still reads, and at the end; the processor time until all events are read, pages and
updates included, beside a bare reading of the same events; the time until an appended event reaches
a listener; memory.
Ends with 1 if a limit is exceeded.
"""

from __future__ import annotations

import argparse
import os
import re
import subprocess
import sys
import tempfile
import time
import urllib.request
from collections.abc import Iterator
from pathlib import Path

import numpy as np

from gatekeeper import Budget, Generation
from gatekeeper.budget import Ledger
from gatekeeper.drift.fingerprint import Fingerprint
from gatekeeper.log import Decided, Event, FingerprintChanged, Learned, Settled, SQLiteLog
from gatekeeper.types import Candidate, Decision, Outcome, Reason, Signals, Verdict

VERIFIER = {"type": "gatekeeper.maths.checker.MathChecker"}
EVENTS = 1_000_000
BUDGET = Budget(fraction=0.2)
WARMUP = 100
TEXT = "Multiplying both sides by x and collecting terms gives x + {}, so the answer is x + {}. "
SETTINGS = {
    "policy": {"type": "gatekeeper.policies.random.Random", "beta": 0.2},
    "budget": {"fraction": 0.2, "total": None, "unit": "verifications"},
    "exploration": {"explore": 0.1, "seed": 0},
    "more": {},
}
FIRST_BYTE, MEGABYTES, FOLLOWS = 0.5, 200.0, 1.0


def events(count: int) -> Iterator[Event]:
    """Events as a gate with the policy `random` writes them; a high score makes errors likelier."""
    rng, ledger = np.random.default_rng(0), Ledger(BUDGET, 1.0)
    nothing = np.empty(0)
    yield FingerprintChanged(Fingerprint(models=("model",), verifier=VERIFIER), "relearn", "")
    made, i = 1, 0
    while made < count:
        score, draw, wrong = rng.random(3).tolist()
        warmup = i < WARMUP
        hold = ledger.see(100.0, warmup=warmup)
        p = 1.0 if warmup else 0.1 + 0.2 * score
        verify = draw < p
        reason = Reason.WARMUP if warmup else Reason.POLICY
        id_ = f"output-{i}"
        if verify and not ledger.reserve(id_, hold):
            verify, p, reason = False, 0.0, Reason.BUDGET_EXHAUSTED
        text = TEXT.format(i, i) * 3
        yield Decided(
            Generation(id_, text, nothing, nothing, nothing, 40, 60, "model", "stop", 5),
            Candidate(id_, Signals(score, 1.0, 0.5, 60, 60), 100.0),
            Decision(verify, reason, score, 0.8, None, p),
            "warmup" if warmup else "threshold",
            False,
            warmup,
            1.0,
        )
        made, i = made + 1, i + 1
        if verify and made + 2 <= count:
            ledger.settle(id_, 1.0)
            verdict = Verdict.FAILED if wrong < 0.5 * score else Verdict.PASSED
            yield Settled(id_, Outcome(verdict, cost=1.0, seconds=0.01), 1.0)
            yield Learned(id_)
            made += 2


def write(path: Path, count: int) -> None:
    """Write a log of `count` events."""
    with SQLiteLog(path) as log:
        log.configure(SETTINGS)
        batch: list[Event] = []
        for event in events(count):
            batch.append(event)
            if len(batch) == 5000:
                log.append(batch)
                batch.clear()
        log.append(batch)


def bare_reading(path: Path) -> float:
    """Processor seconds for decoding all events and nothing else."""
    begun = time.process_time()
    with SQLiteLog(path, read_only=True) as log:
        for _ in log.events():
            pass
    return time.process_time() - begun


def processor_time(pid: int) -> float:
    """Seconds that the process has used."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def first_byte(url: str) -> float:
    begun = time.perf_counter()
    with urllib.request.urlopen(url) as answer:
        answer.read(1)
        took = time.perf_counter() - begun
        answer.read()
    return took


def memory(pid: int) -> float:
    """Peak memory of the process, MB."""
    found = re.search(r"VmHWM:\s+(\d+) kB", Path(f"/proc/{pid}/status").read_text())
    assert found is not None
    return int(found[1]) / 1000


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("events", type=int, nargs="?", default=EVENTS, help="in the log")
    count = parser.parse_args().events
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "run.db"
        write(path, count)
        print(f"{count:,} events, {path.stat().st_size / 1e6:,.0f} MB")
        command = [sys.executable, "-m", "gatekeeper", "watch", str(path), "--port", "0"]
        begun = time.perf_counter()
        with subprocess.Popen(command, stderr=subprocess.PIPE, text=True) as process:
            try:
                return report(process, path, count, begun)
            finally:
                process.terminate()


def report(process: subprocess.Popen[str], path: Path, count: int, begun: float) -> int:
    assert process.stderr is not None
    line = process.stderr.readline()
    url = line.split()[-1]
    print(f"start of the process: {time.perf_counter() - begun:.2f} s")
    first = [first_byte(url)]
    reading, used_before = time.perf_counter(), processor_time(process.pid)
    with urllib.request.urlopen(f"{url}updates") as stream:
        for text in stream:
            if f"outputs, {count:,} events" in text.decode():
                break
            first.append(first_byte(url))
        took = time.perf_counter() - reading
        work = processor_time(process.pid) - used_before
        with SQLiteLog(path) as log:
            log.append(
                [
                    FingerprintChanged(
                        Fingerprint(models=("model", "new"), verifier=VERIFIER), "relearn", ""
                    )
                ]
            )
        appended = time.perf_counter()
        for text in stream:
            if f"outputs, {count + 1:,} events" in text.decode():
                break
        followed = time.perf_counter() - appended
    last = first_byte(url)
    bare = bare_reading(path)
    used = memory(process.pid)
    print(
        f"read in {took:.1f} s; processor time {work:.1f} s, {work / bare:.2f} x the bare reading"
    )
    ok = True
    for name, value, limit, unit in (
        ("first byte after the start", first[0], FIRST_BYTE, "s"),
        ("first byte while it reads, the slowest", max(first), FIRST_BYTE, "s"),
        ("first byte at the end", last, FIRST_BYTE, "s"),
        ("an appended event reaches a listener", followed, FOLLOWS, "s"),
        ("memory at most", used, MEGABYTES, "MB"),
    ):
        ok &= value <= limit
        print(f"{name}: {value:.2f} {unit}, {value / limit:.0%} of the limit of {limit:g} {unit}")
    return 0 if ok else 1


if __name__ == "__main__":
    sys.exit(main())
