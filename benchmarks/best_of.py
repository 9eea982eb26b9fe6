"""Does verification help to choose among several answers? `gate.best_of` on the bundled model.

    python benchmarks/best_of.py [--n 4] [--temperature 0.7] [--seeds 10]

The model draws n answers to each maths task of its task file; MathChecker judges them all, once.
Then a real gate spends its budget on them, over shuffles of the tasks, and "right" is the share of
the tasks after the warm-up whose chosen answer is right. Beside it stand the least uncertain answer
of each task, which needs no verification, and a gate that gets the least uncertain answer first.
"""

from __future__ import annotations

import argparse
from collections.abc import Mapping, Sequence
from itertools import permutations

import numpy as np
from rich.console import Console
from rich.table import Table

from gatekeeper import Budget, Generation, Outcome, Verdict, VerificationGate
from gatekeeper.adapters.bundled import BundledModel
from gatekeeper.bundled import TASKS
from gatekeeper.io.tasks import read_tasks
from gatekeeper.maths import MathChecker
from gatekeeper.signals import signals_of

Outputs = Sequence[Sequence[Generation]]
POLICIES = ("random", "threshold", "cst", "calibrated")
BUDGETS = (0.1, 0.2, 0.3)


class Known:
    """A verifier that looks up MathChecker's verdicts."""

    def __init__(self, errors: Mapping[str, int]) -> None:
        self._errors = errors

    def verify(self, generation: Generation, task: object) -> Outcome:
        return Outcome(Verdict.FAILED if self._errors[generation.id] else Verdict.PASSED)


def draw(n: int, temperature: float) -> tuple[Outputs, dict[str, int]]:
    """n outputs of each task, the least uncertain first, and which are wrong."""
    tasks = [task for task in read_tasks(TASKS) if task["kind"] == "math"]
    prompts = [task["prompt"] for task in tasks for _ in range(n)]
    ids = [f"{task['id']}/{i}" for task in tasks for i in range(n)]
    outputs = BundledModel().generate(prompts, ids=ids, temperature=temperature)
    golds = [task["gold"] for task in tasks for _ in range(n)]
    with MathChecker() as checker:
        pairs = zip(golds, (output.text for output in outputs), strict=True)
        errors = [int(outcome.error != 0) for outcome in checker.check_many(pairs)]
    each = [
        sorted(outputs[i : i + n], key=lambda output: signals_of(output).h1)
        for i in range(0, len(outputs), n)
    ]
    return each, dict(zip(ids, errors, strict=True))


def concordance(each: Outputs, errors: Mapping[str, int], name: str) -> float:
    """Share of pairs of a wrong and a right answer in which the wrong one's signal is larger."""
    wins = []
    for outputs in each:
        signal = {output.id: getattr(signals_of(output), name) for output in outputs}
        for a, b in permutations(signal, 2):
            if errors[a] > errors[b]:
                wins.append((signal[a] > signal[b]) + (signal[a] == signal[b]) / 2)
    return float(np.mean(wins))


def likely_first(gate: VerificationGate, outputs: Sequence[Generation]) -> Generation:
    """Verify the most likely answer first, until one passes; else the first that did not fail."""
    errors: dict[str, int | None] = {}
    for output in outputs:
        if output.text not in errors:
            outcome = gate.maybe_verify(output).outcome
            errors[output.text] = outcome.error if outcome else None
            if errors[output.text] == 0:
                return output
    return min(outputs, key=lambda output: errors[output.text] == 1)


def spend(
    each: Outputs,
    errors: Mapping[str, int],
    policy: str,
    beta: float,
    seed: int,
    *,
    likely: bool,
) -> tuple[float, float, float]:
    """Shares of right choices with the gate and without it, and verifications per task."""
    rng = np.random.default_rng(seed)
    gained: list[tuple[int, int]] = []
    budget = Budget(fraction=beta)
    with VerificationGate(policy, budget=budget, verifier=Known(errors), seed=seed) as gate:
        for i in rng.permutation(len(each)):
            steady = gate.policy.phase != "warmup"
            if likely:
                chosen = likely_first(gate, each[i])
            else:
                choice = gate.best_of(each[i])
                chosen = choice.outputs[choice.index]
            if steady:
                gained.append((1 - errors[chosen.id], 1 - errors[each[i][0].id]))
        right, without = np.mean(gained, axis=0)
        return right, without, gate.status().verified / len(gained)


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--n", type=int, default=4, help="answers to each task")
    parser.add_argument("--temperature", type=float, default=0.7)
    parser.add_argument("--seeds", type=int, default=10, help="shuffles of the tasks")
    args = parser.parse_args()
    each, errors = draw(args.n, args.temperature)
    right = 1 - np.mean(list(errors.values()))
    hopeful = np.mean([min(errors[o.id] for o in outputs) == 0 for outputs in each])
    without = 1 - np.mean([errors[outputs[0].id] for outputs in each])
    console = Console()
    console.print(
        f"{len(each)} tasks, {args.n} answers each at temperature {args.temperature:g}: right are "
        f"{right:.1%} of the answers and {without:.1%} of the least uncertain ones; {hopeful:.1%} "
        "of the tasks have a right one."
    )
    for name in ("h1", "h2", "h3"):
        console.print(
            f"{name} is larger for the wrong one of two answers to one task in "
            f"{concordance(each, errors, name):.1%}."
        )
    table = Table(title="right, in points above the least uncertain answer (± 95 % over shuffles)")
    for name in ("policy", "budget", "verified per task", "most uncertain first", "least first"):
        table.add_column(name, justify="right")
    for policy in POLICIES:
        for beta in BUDGETS:
            runs = {
                likely: np.array(
                    [
                        spend(each, errors, policy, beta, seed, likely=likely)
                        for seed in range(args.seeds)
                    ]
                )
                for likely in (False, True)
            }
            cells = []
            for run in runs.values():
                gain = 100 * (run[:, 0] - run[:, 1])
                half = 1.96 * gain.std(ddof=1) / np.sqrt(gain.size)
                cells.append(f"{gain.mean():+.1f} ± {half:.1f}")
            table.add_row(policy, f"{beta:.0%}", f"{runs[False][:, 2].mean():.2f}", *cells)
    console.print(table)


if __name__ == "__main__":
    main()
