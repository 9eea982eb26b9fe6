"""What an agent gains by its checks: right answers, by policy and budget, on the bundled model.

    python examples/agent_gain.py                    # about a minute on a quiet core
    python examples/agent_gain.py --budget 0.1 --policy calibrated

Every answer that any agent could get is drawn and checked first, outside all budgets. Then agents
with each policy work through the tasks in shuffled orders: what they are told, and what they are
charged, is as in `examples/agent.py`. Counted are the tasks after the warm-up: the share with a
right answer, and with a wrong one that no check has found. See docs/agent.md.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from gatekeeper import (
    Attempt,
    BadInputError,
    Budget,
    GatekeeperError,
    Generation,
    Outcome,
    VerificationGate,
)
from gatekeeper.adapters.bundled import BundledModel
from gatekeeper.bundled import TASKS
from gatekeeper.io.tasks import read_tasks
from gatekeeper.policies import T0
from gatekeeper.verifiers import ByKind, make_verifier

Answers = Mapping[str, tuple[Generation, Outcome]]


class Gain(NamedTuple):
    """The results of one agent on one order of the tasks."""

    checks: float  # per task
    answers: float  # generated per task
    right: float  # share of the tasks
    accepted: float  # share of the tasks whose final answer is wrong and was not found wrong


def draw(tasks: Sequence[Any], attempts: int, sandbox: str) -> Answers:
    """Every attempt at every task, by its id, and whether it is right."""
    model, names = BundledModel(), {"code": sandbox, "math": "math"}
    verifier = ByKind({kind: make_verifier(names[kind]) for kind in {t["kind"] for t in tasks}})
    found = {}
    with ThreadPoolExecutor(2) as crew:
        for number in range(attempts):
            outputs = model.generate(
                [task["prompt"] for task in tasks],
                ids=[f"{task['id']}/{number}" for task in tasks],
                temperature=0.7 if number else 0.0,
            )
            outcomes = crew.map(verifier.verify, outputs, tasks)
            for task, output, outcome in zip(tasks, outputs, outcomes, strict=True):
                found[f"{task['id']}/{number + 1}"] = output, outcome
    verifier.close()
    return found


def agent(
    tasks: Sequence[Any], answers: Answers, attempts: int, policy: str, budget: float, seed: int
) -> Gain:
    """One agent's work on the tasks, in an order that the seed makes."""

    def generate(task: Any, earlier: tuple[Attempt, ...]) -> Generation:
        return answers[f"{task['id']}/{len(earlier) + 1}"][0]

    order = np.random.default_rng(seed).permutation(len(tasks))
    right = accepted = n = 0
    with VerificationGate(
        policy,
        budget=Budget(fraction=budget),
        verifier=lambda output, task: answers[output.id][1],
        seed=seed,
        on_unavailable="pass",
    ) as gate:
        for task in (tasks[i] for i in order):
            begun = gate.status()
            result = gate.run_loop(generate, task, id=task["id"], max_attempts=attempts)
            if begun.phase != "warmup":
                n += 1
                is_right = answers[f"{task['id']}/{len(result.attempts)}"][1].error == 0
                right += is_right
                accepted += not (is_right or result.verified)
            else:
                before = gate.status()
        after = gate.status()
    checks, drawn = after.verified - before.verified, after.seen - before.seen
    return Gain(checks / n, drawn / n, right / n, accepted / n)


def show(name: str, gain: Gain) -> None:
    checks, drawn, right, accepted = gain
    print(f"{name:<28}{checks:>10.2f}{drawn:>9.2f}{right:>9.1%}{accepted:>19.1%}", flush=True)


def main(argv: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument(
        "tasks", type=Path, nargs="?", default=TASKS, help="task file (default: %(default)s)"
    )
    parser.add_argument(
        "--policy", default="cst", help="compared with random (default: %(default)s)"
    )
    parser.add_argument(
        "--budget",
        type=float,
        default=0.3,
        help="share of the outputs to verify (default: %(default)s)",
    )
    parser.add_argument(
        "--attempts", type=int, default=3, help="most outputs of one task (default: %(default)s)"
    )
    parser.add_argument(
        "--orders", type=int, default=10, help="shuffles of the tasks (default: %(default)s)"
    )
    parser.add_argument(
        "--sandbox", default="local", help="what runs code: local or docker (default: %(default)s)"
    )
    args = parser.parse_args(argv)
    try:
        tasks = read_tasks(args.tasks)
        if len(tasks) <= T0:
            raise BadInputError(f"tasks={len(tasks)}: give more than the warm-up's {T0}")
        if args.attempts < 1:
            raise BadInputError(f"attempts={args.attempts}: give at least 1")
        answers = draw(tasks, args.attempts, args.sandbox)
        first = float(np.mean([answers[f"{task['id']}/1"][1].error == 0 for task in tasks]))
        print(f"{len(tasks)} tasks; {first:.1%} of the first answers are right\n")
        print("checks                        per task  answers    right  wrong and unknown")
        rows = [
            (f"at random, budget {args.budget:.0%}", "random", args.budget),
            (f"{args.policy}, budget {args.budget:.0%}", args.policy, args.budget),
            ("of every answer", "random", 1.0),
        ]
        show("none", Gain(0.0, 1.0, first, 1 - first))
        for name, policy, budget in rows:
            found = [
                agent(tasks, answers, args.attempts, policy, budget, seed)
                for seed in range(args.orders)
            ]
            show(name, Gain(*np.mean(found, axis=0)))
    except GatekeeperError as error:
        print(f"agent_gain: {error}", file=sys.stderr)
        return 2
    return 0


if __name__ == "__main__":
    sys.exit(main())
