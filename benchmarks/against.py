"""The gate of this tree beside that of another one, by turns in one run.

    git worktree add --detach /tmp/before v0.1.0
    python benchmarks/against.py /tmp/before             half a minute
    python benchmarks/against.py /tmp/before --rounds 40

Two processes, one for each tree, take turns: in each round both do the same, in alternating order.
Other load on the machine affects both alike, so ratios are reliable where times are not. `ratio` is
the median over rounds of this tree's figure divided by the other's, with the least and the most.

A gate: without a verifier, CST, outputs of 128 tokens; the median of the wall-clock times of its
calls, and the processor time of the thread per call. The latter includes what happens once in many
calls: tests for drift, checkpoints of the database, garbage collection. Reading: processor time per
output of a log with verdicts. A wrapped client: processor time that `gate.wrap` adds to a call of
the OpenAI client, the median of the differences of pairs (a call of the bare client, and one of the
wrapped one) without a network and without garbage collection; the gate decides on every output and
verifies none.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
from pathlib import Path
from statistics import median

from _machine import machine
from rich.console import Console
from rich.table import Table

# It uses only what older trees have, too.
PROGRAM = """
import gc, importlib, itertools, json, sys, tempfile, time
from pathlib import Path
from statistics import median
import openai
from wrap import CALL, make_gate, plain
from gatekeeper import Budget, VerificationGate
from gatekeeper.testing import ScriptedVerifier, make_generation

def first(*names):
    for name in names:
        try:
            return importlib.import_module(name)
        except ImportError:
            pass

N = 2000
outputs = [make_generation(str(i), tokens=128, seed=i, text="x" * 400) for i in range(N)]
folder = tempfile.TemporaryDirectory()
made = 0

def gate(kind, verifier=None):
    global made
    made += 1
    path = Path(folder.name) / f"{made}.db"
    log = path if kind == "SQLite" else None
    times = []
    with VerificationGate("cst", budget=Budget(fraction=0.2), verifier=verifier, log=log) as gate:
        begin = time.thread_time_ns()
        for output in outputs:
            start = time.perf_counter_ns()
            gate.maybe_verify(output)
            times.append(time.perf_counter_ns() - start)
        took = time.thread_time_ns() - begin
    if verifier is None:
        path.unlink(missing_ok=True)
    return path, sorted(times)[N // 2], took / N

log, _, _ = gate("SQLite", ScriptedVerifier({str(i): i % 3 == 0 for i in range(N)}))
records = first("gatekeeper.io.records", "gatekeeper.records").records_of_log
read_run = first("gatekeeper.log.run", "gatekeeper._run").read_run

def timed(call):
    begin = time.thread_time_ns()
    call(log)
    return [(time.thread_time_ns() - begin) / N]

# The package that this release of openai sends its requests with.
http = sys.modules.get("httpx2") or sys.modules["httpx"]
number = itertools.count()

class Wrapped:
    def __init__(self, tokens, pairs):
        answer, self.pairs = plain(tokens), pairs
        def respond(request):
            body = answer.replace(b'"ID"', b'"id-%d"' % next(number))
            return http.Response(200, content=body, headers={"content-type": "application/json"})
        self.gate = make_gate(None)
        inner = http.Client(transport=http.MockTransport(respond))
        bare = openai.OpenAI(api_key="k", base_url="http://x/v1", http_client=inner)
        self.clients = [bare, self.gate.wrap(bare)]
        self.call = CALL | {"max_tokens": tokens}

    def added(self):
        differences = []
        gc.disable()  # a collection in one call of a pair takes longer than what the gate adds
        for i in range(self.pairs):
            took = [0, 0]
            for k in (0, 1) if i % 2 else (1, 0):
                start = time.thread_time_ns()
                self.clients[k].chat.completions.create(**self.call)
                took[k] = time.thread_time_ns() - start
            differences.append(took[1] - took[0])
        gc.enable()
        return [median(differences)]

wrapped = {"wrapped, 32": Wrapped(32, 200), "wrapped, 512": Wrapped(512, 100)}

for line in sys.stdin:
    what = line.strip()
    gc.collect()
    if what in ("memory", "SQLite"):
        found = gate(what)[1:]
    elif what in wrapped:
        found = wrapped[what].added()
    else:
        found = timed(records if what == "records_of_log" else read_run)
    print(json.dumps(found), flush=True)
"""
FIGURES = {
    "memory": ("gate, log in memory: median of calls", "gate, log in memory: processor time"),
    "SQLite": ("gate, log in SQLite: median of calls", "gate, log in SQLite: processor time"),
    "read_run": ("read_run",),
    "records_of_log": ("records_of_log",),
    "wrapped, 32": ("wrapped client, 32 tokens: added",),
    "wrapped, 512": ("wrapped client, 512 tokens: added",),
}


class Tree:
    """A process that measures the package of one tree."""

    def __init__(self, root: Path) -> None:
        here = str(Path(__file__).resolve().parent)  # wrap.py of this tree, for both
        self._process = subprocess.Popen(
            [sys.executable, "-c", PROGRAM],
            env=os.environ | {"PYTHONPATH": f"{root}{os.pathsep}{here}"},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            cwd=root,
        )

    def measure(self, what: str) -> list[float]:
        """Nanoseconds, as `FIGURES` names them."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(f"{what}\n")
        self._process.stdin.flush()
        line = self._process.stdout.readline()
        if not line:
            sys.exit("the process of a tree has ended: see above")
        return list(json.loads(line))

    def close(self) -> None:
        self._process.kill()
        self._process.wait()


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("tree", type=Path, help="the root of the other checkout")
    parser.add_argument("--rounds", type=int, default=15)
    args = parser.parse_args()
    if not (args.tree / "gatekeeper" / "__init__.py").is_file():
        parser.error(f"tree={str(args.tree)!r}: give the root of a checkout of gatekeeper")
    other, this = Tree(args.tree.resolve()), Tree(Path(__file__).resolve().parents[1])
    table = Table(title=f"µs per output, {args.rounds} rounds in turns")
    for heading in ("", "the other tree", "this tree", "ratio", "least to most"):
        table.add_column(heading, justify="right" if heading else "left")
    try:
        for what, names in FIGURES.items():
            pairs = []
            for i in range(args.rounds + 1):
                order = (other, this) if i % 2 else (this, other)
                found = {tree: tree.measure(what) for tree in order}
                pairs.append((found[other], found[this]))
            for k, name in enumerate(names):  # without the first round, which has late imports
                before, now = (
                    [each[k] / 1000 for each in side] for side in zip(*pairs[1:], strict=True)
                )
                ratios = [b / a for a, b in zip(before, now, strict=True)]
                table.add_row(
                    name,
                    f"{median(before):.1f}",
                    f"{median(now):.1f}",
                    f"{median(ratios):.2f}",
                    f"{min(ratios):.2f} to {max(ratios):.2f}",
                )
    finally:
        other.close()
        this.close()
    console = Console(width=None if sys.stdout.isatty() else 110)
    console.print(machine(), highlight=False)
    console.print(table)


if __name__ == "__main__":
    main()
