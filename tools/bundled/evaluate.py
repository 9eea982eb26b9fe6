"""Run the bundled model on its held-out tasks, check every answer, print README.md's figures.

python -m tools.bundled.evaluate
"""

import argparse
import json
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from math import prod
from pathlib import Path
from time import perf_counter
from typing import Any

import numpy as np
from numpy.typing import NDArray

import gatekeeper.bundled
from gatekeeper.adapters.bundled import BundledModel
from gatekeeper.io.tasks import read_tasks
from gatekeeper.maths import MathChecker
from gatekeeper.sandbox import LocalSandbox
from gatekeeper.signals import batch_signals
from gatekeeper.types import FloatArray
from gatekeeper.verifiers import ByKind


def parameters(folder: Path) -> int:
    """Number of weights, from the header of model.safetensors."""
    weights = (folder / "model.safetensors").read_bytes()
    end = 8 + int.from_bytes(weights[:8], "little")
    tensors = json.loads(weights[8:end])
    return sum(prod(t["shape"]) for name, t in tensors.items() if name != "__metadata__")


def quartiles(cost: FloatArray) -> NDArray[np.intp]:
    """Which quarter of the distribution each cost (N,) falls in, 0 to 3."""
    return np.searchsorted(np.quantile(cost, [0.25, 0.5, 0.75]), cost)


def point_biserial(score: FloatArray, wrong: FloatArray) -> float:
    """Pearson correlation of a score (N,) with 0/1 labels (N,); NaN where either is constant."""
    if score.std() == 0 or wrong.std() == 0:
        return float("nan")
    return float(np.corrcoef(score, wrong)[0, 1])


def row(name: str, chosen: NDArray[np.bool_], wrong: FloatArray, signals: FloatArray) -> str:
    """A line of the table: how many, error rate, correlation of h1, h2, h3 (N, 3) with error."""
    rho = [point_biserial(h[chosen], wrong[chosen]) for h in signals.T]
    return (
        f"| {name} | {chosen.sum()} | {wrong[chosen].mean():.1%} | "
        + " | ".join(f"{r:.2f}" for r in rho)
        + " |"
    )


def main(argv: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--model", type=Path, default=gatekeeper.bundled.MODEL)
    parser.add_argument("--tasks", type=Path, default=gatekeeper.bundled.TASKS)
    parser.add_argument("--temperature", type=float, default=0.0)
    parser.add_argument("--seed", type=int, default=0)
    args = parser.parse_args(argv)

    tasks = read_tasks(args.tasks)
    model = BundledModel(args.model)
    started = perf_counter()
    generations = model.generate(
        [task["prompt"] for task in tasks],
        ids=[task["id"] for task in tasks],
        temperature=args.temperature,
        seed=args.seed,
    )
    generated = perf_counter()
    with (
        closing(LocalSandbox()) as sandbox,
        MathChecker() as maths,
        ThreadPoolExecutor(2) as threads,
    ):
        verify = ByKind({"code": sandbox, "math": maths}).verify
        outcomes = list(threads.map(verify, generations, tasks))
    checked = perf_counter()
    unknown = [outcome.detail for outcome in outcomes if outcome.error is None]
    if unknown:
        raise SystemExit(f"{len(unknown)} answers could not be checked; the first: {unknown[0]}")

    wrong = np.array([float(bool(outcome.error)) for outcome in outcomes])
    signals = np.array([[s.h1, s.h2, s.h3] for s in batch_signals(generations)])
    kinds = np.array([task["kind"] for task in tasks])
    cost = np.array([float(g.prompt_tokens or 0) for g in generations])
    quarter = quartiles(cost)

    print(f"model: {parameters(args.model):,} parameters")
    training: dict[str, Any] = json.loads((args.model / "training.json").read_text())
    print("training:", ", ".join(f"{name} {value}" for name, value in training.items()))
    tokens = sum(g.output_tokens or 0 for g in generations)
    print(
        f"{len(tasks)} tasks, {tokens} tokens generated in {generated - started:.1f} s, "
        f"checked in {checked - generated:.1f} s\n"
    )
    print(
        "| outputs | n | wrong | rho h1 | rho h2 | rho h3 |\n| --- | --- | --- | --- | --- | --- |"
    )
    print(row("all", np.ones(len(tasks), bool), wrong, signals))
    for kind in ("code", "math"):
        print(row(kind, kinds == kind, wrong, signals))
    for q in range(4):
        chosen = quarter == q
        span = f"{cost[chosen].min():.0f}-{cost[chosen].max():.0f}"
        print(row(f"prompt of {span} tokens", chosen, wrong, signals))


if __name__ == "__main__":
    main()
