"""The time of replay: the paper's grid, and a million records.

    python benchmarks/replay.py

The grid is 5 settings × 8 budgets × 10 seeds × 9 policies at the paper's N, on two processes
(target: under 60 s). The million goes through the command line, file included: Threshold and CST
with random and oracle, one seed, one budget (targets: under 20 s, under 1 GB). Beside each stands
the time of the same decisions step by step, by the classes that run live.
"""

from __future__ import annotations

import json
import resource
import subprocess
import sys
import tempfile
from pathlib import Path
from time import perf_counter

import numpy as np

from gatekeeper.analysis.experiment import Protocol, compare
from gatekeeper.analysis.policy_run import Contender
from gatekeeper.analysis.vectorised import Stream
from gatekeeper.paper.settings import SETTINGS
from gatekeeper.paper.streams import draw
from gatekeeper.policies import CST, Calibrated, Threshold, replay_names

BETAS = (0.05, 0.10, 0.15, 0.20, 0.25, 0.30, 0.40, 0.50)
SEEDS, WORKERS = 10, 2
MILLION = 1_000_000
STEPS = 100_000  # decisions of the step-by-step figure


def grid() -> None:
    """The main table's whole grid."""
    contenders = [Contender(name) for name in replay_names() if name != Calibrated.name]
    whole = 0.0
    for setting in SETTINGS.values():
        table = draw(setting, seed=0)
        start = perf_counter()
        compare(table, contenders, BETAS, Protocol(seeds=SEEDS), workers=WORKERS)
        seconds = perf_counter() - start
        whole += seconds
        print(f"{setting.name:18} N = {len(table):5}  {seconds:6.1f} s")
    decisions = len(BETAS) * SEEDS * len(contenders) * sum(s.n for s in SETTINGS.values())
    print(
        f"grid: {len(SETTINGS)} settings × {len(BETAS)} budgets × {SEEDS} seeds × "
        f"{len(contenders)} policies: {whole:.1f} s on {WORKERS} processes (target 60), "
        f"{1e6 * whole / decisions:.2f} µs per candidate, policy and budget"
    )


def million() -> None:
    """`gatekeeper replay` on a file of a million records, in a process of its own."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "million.jsonl"
        h, cost_estimate, cost, error = _write(path)
        command = [sys.executable, "-m", "gatekeeper", "replay", str(path), "--json"]
        command += ["--policy", "threshold", "--policy", "cst", "--beta", "0.2", "--seeds", "1"]
        start = perf_counter()
        subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
        seconds = perf_counter() - start
    peak = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss * 1024 / 1e9
    print(
        f"{MILLION:,} records, threshold and cst: {seconds:.1f} s (target 20), {peak:.2f} GB peak"
    )

    stream = Stream(h, cost_estimate, cost, error)
    start = perf_counter()
    for rule in (Threshold, CST):
        stream.decide(rule, 0.2)
    columns = (perf_counter() - start) / MILLION
    few = Stream(h[:STEPS], cost_estimate[:STEPS], cost[:STEPS], error[:STEPS])
    start = perf_counter()
    for policy in (Threshold(0.2), CST(0.2)):
        few.step(policy, 0.2)
    steps = (perf_counter() - start) / STEPS
    print(
        f"both policies, per record: {1e6 * columns:.2f} µs over columns, {1e6 * steps:.1f} µs "
        f"step by step ({steps / columns:.0f} ×)"
    )


def _write(path: Path) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """Random records; returns their h, ĉ, c and y."""
    rng = np.random.default_rng(0)
    y = (rng.random(MILLION) < 0.4).astype(float)
    h = np.stack(
        [
            rng.gamma(2.0, 0.2, MILLION) + 0.3 * y,
            -rng.exponential(0.5, MILLION),
            rng.beta(2.0, 3.0, MILLION),
        ],
        axis=1,
    )
    cost_estimate = rng.lognormal(0.0, 0.6, MILLION)
    cost = cost_estimate * rng.lognormal(0.0, 0.4, MILLION)
    rows = zip(h.tolist(), cost_estimate.tolist(), cost.tolist(), y.tolist(), strict=True)
    with path.open("w", encoding="utf-8") as out:
        for i, ((h1, h2, h3), estimate, true, label) in enumerate(rows):
            line = {"id": f"r{i}", "h1": h1, "h2": h2, "h3": h3, "cost_estimate": estimate}
            out.write(json.dumps(line | {"cost": true, "error": int(label)}) + "\n")
    return h, cost_estimate, cost, y


if __name__ == "__main__":
    grid()
    million()
