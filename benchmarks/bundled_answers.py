"""Answers of the bundled model to its own tasks, with the values of two metrics, as records.

    python benchmarks/bundled_answers.py [--samples 10] [--temperature 0.8]

Writes ~/.cache/gatekeeper/bundled-answers.jsonl.gz (below XDG_CACHE_HOME where that is set), which
`scores.py` reads beside other records. Each of the 600 tasks is answered `--samples` times. An
answer is right or wrong; its value is graded: of code, the share of the tests that pass; of maths,
1 - |answer - gold| / max(|gold|, 1), not below 0, and 0 where there is no number in \\boxed{}.
Some minutes.
"""

from __future__ import annotations

import argparse
import re
from contextlib import closing
from fractions import Fraction
from time import perf_counter
from typing import Any

from _machine import CACHE

from gatekeeper.adapters.bundled import BundledModel
from gatekeeper.bundled import TASKS
from gatekeeper.io.records import write_records
from gatekeeper.io.tasks import Task, read_tasks
from gatekeeper.sandbox import LocalSandbox
from gatekeeper.signals import batch_signals
from gatekeeper.types import Generation, Label, Record, Verdict

ANSWERS = CACHE / "bundled-answers.jsonl.gz"
FRACTION = re.compile(r"(-?)\\frac\{(-?\d+)\}\{(\d+)\}")


def share_of_tests(answer: Generation, task: Task, sandbox: LocalSandbox) -> float:
    def passes(tests: list[str]) -> bool:
        return sandbox.verify(answer, {**task, "tests": tests}).verdict is Verdict.PASSED

    tests: list[str] = task["tests"]
    return 1.0 if passes(tests) else sum(passes([test]) for test in tests) / len(tests)


def closeness(answer: Generation, task: Task) -> float:
    found, gold = number(answer.text.rpartition("\\boxed{")[2][:-1]), number(task["gold"])
    assert gold is not None
    if found is None:
        return 0.0
    off = abs(found - gold) / max(abs(gold), Fraction(1))
    return float(max(Fraction(1) - off, Fraction(0)))


def number(text: str) -> Fraction | None:
    try:
        return Fraction(FRACTION.sub(r"\1\2/\3", text))
    except (ValueError, ZeroDivisionError):
        return None


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--samples", type=int, default=10, help="of each task")
    parser.add_argument("--temperature", type=float, default=0.8)
    args = parser.parse_args()
    start, tasks = perf_counter(), read_tasks(TASKS) * args.samples
    answers = BundledModel(threads=1).generate(
        [task["prompt"] for task in tasks],
        ids=[f"{task['id']}/{i // (len(tasks) // args.samples)}" for i, task in enumerate(tasks)],
        temperature=args.temperature,
    )
    known: dict[tuple[Any, str], float] = {}  # many answers to a task are the same
    records = []
    with closing(LocalSandbox()) as sandbox:
        for task, answer, signals in zip(tasks, answers, batch_signals(answers), strict=True):
            key = task["id"], answer.text
            if key not in known:
                code = task["kind"] == "code"
                known[key] = (
                    share_of_tests(answer, task, sandbox) if code else closeness(answer, task)
                )
            value, cost = known[key], float(answer.prompt_tokens or 1)
            error: Label = 0 if value == 1.0 else 1
            records.append(
                Record(answer.id, signals, cost, cost, error, group=task["kind"], value=value)
            )
    ANSWERS.parent.mkdir(parents=True, exist_ok=True)
    write_records(ANSWERS, records)
    print(f"{ANSWERS}: {len(records):,} records in {perf_counter() - start:.0f} s")


if __name__ == "__main__":
    main()
