"""A router from a cheap model to an expensive one, within a budget of calls.

    python examples/routing.py --compare                 # offline: the bundled model, twice
    python examples/routing.py tasks.jsonl --base-url http://127.0.0.1:8000/v1 \\
        --cheap small-model --expensive large-model --log routing.db

The verifier of the gate calls the expensive model, so a verification is such a call, and the budget
is a share of calls. The policy learns the benefit of a call: the expensive model is right and the
cheap one wrong (--teach gold, by the reference answers), or the two differ (--teach differ, which
needs no reference answers). See docs/routing.md.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import os
import sys
from collections.abc import Sequence
from dataclasses import replace
from math import sqrt
from pathlib import Path

import numpy as np

from gatekeeper import (
    BadInputError,
    Budget,
    GatekeeperError,
    Generation,
    Outcome,
    Reason,
    Record,
    Verdict,
    VerificationGate,
)
from gatekeeper.adapters.generate import bundled_generator, openai_generator
from gatekeeper.bundled import TASKS
from gatekeeper.costs import prompt_length
from gatekeeper.gate.runner import Generate, check_the_rest, run_tasks
from gatekeeper.io.records import write_records
from gatekeeper.io.tasks import Task, read_tasks
from gatekeeper.maths import MathChecker
from gatekeeper.maths.extract import extract
from gatekeeper.signals import signals_of

SAMPLES = 4  # of the bundled model in the place of the expensive one


class ExpensiveModel:
    """A verifier that calls the expensive model. "Wrong" means that the call had a benefit."""

    def __init__(self, generate: Generate, checker: MathChecker, *, teach: str) -> None:
        self._generate, self._checker, self._teach = generate, checker, teach

    def verify(self, generation: Generation, task: Task) -> Outcome:
        (expensive,) = self._generate([task["prompt"]], [task["id"]])
        verdict = (
            Verdict.FAILED if self._is_better(expensive.text, generation, task) else Verdict.PASSED
        )
        return Outcome(verdict, meta={"text": expensive.text})

    def _is_better(self, expensive: str, cheap: Generation, task: Task) -> bool:
        answer = extract(expensive)
        if answer is None:
            return False
        wanted = task["gold"] if self._teach == "gold" else answer
        return self.is_right(expensive, wanted) and not self.is_right(cheap.text, wanted)

    def is_right(self, text: str, gold: str) -> bool:
        return self._checker.check(gold, text).verdict is Verdict.PASSED


def most_certain_of(n: int, generate: Generate) -> Generate:
    """Draw n answers and keep the one that is most probable per token."""

    def best(prompts: Sequence[str], ids: Sequence[str]) -> list[Generation]:
        chosen = []
        for prompt, id_ in zip(prompts, ids, strict=True):
            drawn = generate([prompt] * n, [f"{id_}#{i}" for i in range(n)])
            chosen.append(replace(min(drawn, key=lambda g: signals_of(g).h1), id=id_))
        return chosen

    return best


def main(argv: Sequence[str] | None = None) -> int:
    args = arguments(argv)
    try:
        return route(args)
    except GatekeeperError as error:
        print(f"routing: {error}", file=sys.stderr)
        return 2
    except KeyboardInterrupt:
        later = "the same command continues" if args.log else "without --log nothing is kept"
        print(f"routing: interrupted; {later}", file=sys.stderr)
        return 130


def arguments(argv: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument(
        "tasks",
        type=Path,
        nargs="?",
        default=TASKS,
        help="task file; its maths tasks are used (default: %(default)s)",
    )
    parser.add_argument("--base-url", help="endpoint of OpenAI's API for --cheap and --expensive")
    parser.add_argument("--cheap", metavar="MODEL", help="default: the bundled model, one sample")
    parser.add_argument(
        "--expensive",
        metavar="MODEL",
        help=f"default: the bundled model, the best of {SAMPLES} samples",
    )
    parser.add_argument("--expensive-base-url", help="its endpoint, if it is another one")
    parser.add_argument(
        "--policy", default="calibrated", help="what decides (default: %(default)s)"
    )
    parser.add_argument(
        "--budget",
        type=float,
        default=0.2,
        help="share of the tasks for --expensive (default: %(default)s)",
    )
    parser.add_argument(
        "--teach",
        choices=["gold", "differ"],
        default="gold",
        help="a cheap answer is judged by the task's, or by the expensive one "
        "(default: %(default)s)",
    )
    parser.add_argument("--log", type=Path, help="file to write or to resume")
    parser.add_argument(
        "--compare", action="store_true", help="afterwards call --expensive for all tasks"
    )
    parser.add_argument(
        "--records", type=Path, help="with --compare: file to write for `gatekeeper replay`"
    )
    return parser.parse_args(argv)


def route(args: argparse.Namespace) -> int:
    tasks = [task for task in read_tasks(args.tasks) if task["kind"] == "math"]
    if not tasks:
        raise BadInputError(
            f"{args.tasks} has no maths task: only answers to those can be compared"
        )
    if args.records and not args.compare:
        raise BadInputError("--records needs --compare: a record has the answers of both models")
    key = os.environ.get("OPENAI_API_KEY", "none")
    if args.cheap:
        cheap: Generate = openai_generator(args.cheap, base_url=args.base_url, api_key=key)
    else:
        cheap = bundled_generator(temperature=1.0)
    if args.expensive:
        url = args.expensive_base_url or args.base_url
        expensive: Generate = openai_generator(args.expensive, base_url=url, api_key=key)
    else:
        expensive = most_certain_of(SAMPLES, bundled_generator(temperature=0.7))

    with MathChecker(workers=1) as checker:
        verifier = ExpensiveModel(expensive, checker, teach=args.teach)
        with VerificationGate(
            args.policy,
            budget=Budget(fraction=args.budget, horizon=len(tasks)),
            verifier=verifier,
            log=args.log,
            workers=2,
            settings={
                "tasks": hashlib.sha256(json.dumps(tasks, sort_keys=True).encode()).hexdigest(),
                "models": [args.cheap, args.expensive],
                "teach": args.teach,
            },
        ) as gate:
            run_tasks(gate, tasks, cheap)
            if args.compare:
                check_the_rest(gate, tasks, verifier, workers=2)
            report(gate, tasks, verifier, args)
    return 0


def report(
    gate: VerificationGate,
    tasks: Sequence[Task],
    verifier: ExpensiveModel,
    args: argparse.Namespace,
) -> None:
    """Print the results after the warm-up, whose tasks all went to the expensive model."""
    routed: list[bool] = []
    cheap_right: list[bool] = []
    expensive_right: list[bool] = []
    records: list[Record] = []
    for task in tasks:
        result, output = gate.find(task["id"]), gate.output(task["id"])
        assert result is not None
        first = verifier.is_right(output.text, task["gold"])
        second = first
        if result.outcome is not None and "text" in result.outcome.meta:
            text = result.outcome.meta["text"]
            second = first if extract(text) is None else verifier.is_right(text, task["gold"])
        if args.compare:
            estimate = prompt_length(output, task)
            records.append(
                Record(
                    task["id"],
                    result.signals,
                    cost_estimate=estimate,
                    cost=1.0,
                    error=0 if first else 1,
                    benefit=1 if second and not first else 0,
                )
            )
        if result.decision.reason is Reason.WARMUP:
            continue
        routed.append(second if result.decision.verify else first)
        cheap_right.append(first)
        expensive_right.append(second)
    n, status = len(routed), gate.status()
    print(
        f"{len(tasks)} tasks; the warm-up sent the first {status.warmup_verified} to "
        "the expensive model"
    )
    if not n:
        print("no task is left after the warm-up: give more tasks")
        return
    calls = status.verified
    rows = [
        ("the cheap model alone", 0, f"{np.mean(cheap_right):.1%}"),
        (f"routed by {args.policy}", calls, f"{np.mean(routed):.1%}"),
    ]
    if args.compare:
        gains = np.subtract(expensive_right, cheap_right, dtype=float)
        best = min(calls, int((gains > 0).sum()))
        margin = 1.96 * gains.std(ddof=1) * sqrt(calls * (1 - calls / n)) / n
        at_random = np.mean(cheap_right) + gains.mean() * calls / n
        rows += [
            ("at random, as many calls", calls, f"{at_random:.1%} ± {margin:.1%}"),
            ("the best choice of as many", calls, f"{np.mean(cheap_right) + best / n:.1%}"),
            ("the expensive model alone", n, f"{np.mean(expensive_right):.1%}"),
        ]
    print(f"{f'the other {n}':28}{'calls':>12}  right")
    for name, number, right in rows:
        print(f"{name:28}{number:>12}  {right}")
    if args.records:
        write_records(args.records, records)


if __name__ == "__main__":
    sys.exit(main())
