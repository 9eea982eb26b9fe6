"""A router: the answers of a cheap model that deserve it are asked of a dear one, within a budget.

    python examples/routing.py --compare                 # offline: the bundled model, twice
    python examples/routing.py tasks.jsonl --base-url http://127.0.0.1:8000/v1 \\
        --cheap small-model --dear large-model --log routing.db

The gate is used as it is. Its verifier asks the dear model, so a verification is a call to it, and
the budget is a share of calls. What teaches the policy is whether the call was worth it: the dear
model is right where the cheap one is wrong (--teach gold, by the reference answers), or it says
something else (--teach differ, which needs none). See docs/routing.md.
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

SAMPLES = 4  # of the bundled model where it is the dear one


class AskTheDearOne:
    """A verifier that asks the dear model. "Wrong" means: it was worth asking."""

    def __init__(self, generate: Generate, checker: MathChecker, *, teach: str) -> None:
        self._generate, self._checker, self._teach = generate, checker, teach

    def verify(self, generation: Generation, task: Task) -> Outcome:
        (dear,) = self._generate([task["prompt"]], [task["id"]])
        verdict = Verdict.FAILED if self._is_better(dear.text, generation, task) else Verdict.PASSED
        return Outcome(verdict, meta={"text": dear.text})

    def _is_better(self, dear: str, cheap: Generation, task: Task) -> bool:
        answer = extract(dear)
        if answer is None:
            return False
        wanted = task["gold"] if self._teach == "gold" else answer
        return self.is_right(dear, wanted) and not self.is_right(cheap.text, wanted)

    def is_right(self, text: str, gold: str) -> bool:
        return self._checker.check(gold, text).verdict is Verdict.PASSED


def least_doubtful_of(n: int, generate: Generate) -> Generate:
    """Draw n answers and keep the likeliest per token: what one model can do with n calls."""

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
        later = "the same command goes on" if args.log else "without --log all is lost"
        print(f"routing: interrupted; {later}", file=sys.stderr)
        return 130


def arguments(argv: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("tasks", type=Path, nargs="?", default=TASKS, help="its maths tasks count")
    parser.add_argument("--base-url", help="of an OpenAI-compatible endpoint with --cheap, --dear")
    parser.add_argument("--cheap", metavar="MODEL", help="default: the bundled one, one sample")
    parser.add_argument(
        "--dear", metavar="MODEL", help=f"default: the bundled one, the best of {SAMPLES} samples"
    )
    parser.add_argument("--dear-base-url", help="where it is another endpoint")
    parser.add_argument("--policy", default="calibrated")
    parser.add_argument("--budget", type=float, default=0.2, help="share of calls to --dear")
    parser.add_argument("--teach", choices=["gold", "differ"], default="gold")
    parser.add_argument("--log", type=Path, help="file to write or to resume")
    parser.add_argument(
        "--compare", action="store_true", help="afterwards ask --dear everything, beside the budget"
    )
    parser.add_argument("--records", type=Path, help="with --compare: for `gatekeeper replay`")
    return parser.parse_args(argv)


def route(args: argparse.Namespace) -> int:
    tasks = [task for task in read_tasks(args.tasks) if task["kind"] == "math"]
    if not tasks:
        raise BadInputError(f"{args.tasks} has no maths task: only such answers can be compared")
    if args.records and not args.compare:
        raise BadInputError("--records needs --compare: a record has the answers of both models")
    key = os.environ.get("OPENAI_API_KEY", "none")
    if args.cheap:
        cheap = openai_generator(args.cheap, base_url=args.base_url, api_key=key)
    else:
        cheap = bundled_generator(temperature=1.0)
    if args.dear:
        url = args.dear_base_url or args.base_url
        dear = openai_generator(args.dear, base_url=url, api_key=key)
    else:
        dear = least_doubtful_of(SAMPLES, bundled_generator(temperature=0.7))

    with MathChecker(workers=1) as checker:
        asking = AskTheDearOne(dear, checker, teach=args.teach)
        with VerificationGate(
            args.policy,
            budget=Budget(fraction=args.budget, horizon=len(tasks)),
            verifier=asking,
            log=args.log,
            workers=2,
            settings={
                "tasks": hashlib.sha256(json.dumps(tasks, sort_keys=True).encode()).hexdigest(),
                "models": [args.cheap, args.dear],
                "teach": args.teach,
            },
        ) as gate:
            run_tasks(gate, tasks, cheap)
            if args.compare:
                check_the_rest(gate, tasks, asking, workers=2)
            report(gate, tasks, asking, args)
    return 0


def report(
    gate: VerificationGate, tasks: Sequence[Task], asking: AskTheDearOne, args: argparse.Namespace
) -> None:
    """What came of the tasks after the warm-up, whose answers all went to the dear model."""
    routed: list[bool] = []
    cheap_right: list[bool] = []
    dear_right: list[bool] = []
    records: list[Record] = []
    for task in tasks:
        result, output = gate.find(task["id"]), gate.output(task["id"])
        assert result is not None
        first = asking.is_right(output.text, task["gold"])
        second = first
        if result.outcome is not None and "text" in result.outcome.meta:
            text = result.outcome.meta["text"]
            second = first if extract(text) is None else asking.is_right(text, task["gold"])
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
        dear_right.append(second)
    n, status = len(routed), gate.status()
    print(
        f"{len(tasks)} tasks; the warm-up sent the first {status.warmup_verified} to the dear model"
    )
    if not n:
        print("nothing is left after the warm-up: more tasks are needed")
        return
    calls = status.verified
    rows = [
        ("the cheap model alone", 0, f"{np.mean(cheap_right):.1%}"),
        (f"routed by {args.policy}", calls, f"{np.mean(routed):.1%}"),
    ]
    if args.compare:
        gains = np.subtract(dear_right, cheap_right, dtype=float)
        best = min(calls, int((gains > 0).sum()))
        lucky = 1.96 * gains.std(ddof=1) * sqrt(calls * (1 - calls / n)) / n
        at_random = np.mean(cheap_right) + gains.mean() * calls / n
        rows += [
            ("at random, as many calls", calls, f"{at_random:.1%} ± {lucky:.1%}"),
            ("the best choice of as many", calls, f"{np.mean(cheap_right) + best / n:.1%}"),
            ("the dear model alone", n, f"{np.mean(dear_right):.1%}"),
        ]
    print(f"{f'the other {n}':28}{'dear calls':>12}  right")
    for name, number, right in rows:
        print(f"{name:28}{number:>12}  {right}")
    if args.records:
        write_records(args.records, records)


if __name__ == "__main__":
    sys.exit(main())
