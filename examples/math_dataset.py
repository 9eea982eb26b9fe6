"""MATH through the gate: a model solves the problems, and the uncertain answers are checked.

    python examples/math_dataset.py --data math_500.jsonl --log math.db \\
        --model my-model --base-url http://127.0.0.1:8000/v1

`--dataset HuggingFaceH4/MATH-500` takes the test split from the Hugging Face hub instead
(pip install datasets), `--vllm MODEL` runs vLLM in this process, and without a
model the bundled one answers: wrongly, since it knows other tasks, but the loop is the same. After
an interruption the same command with the same log continues. docs/datasets.md has more.

    python examples/math_dataset.py --data math_500.jsonl --check-references

needs no model: the checker compares the data set's own solutions with its own answers, and should
pass all of them. Exits with 1 if it does not.
"""

import argparse
import sys
from collections.abc import Sequence

from gatekeeper.io.datasets import math_task
from gatekeeper.io.tasks import Task
from gatekeeper.maths import MathChecker
from gatekeeper.programs import dataset_run
from gatekeeper.programs.exit_code import exit_code_of
from gatekeeper.programs.parser import Parser


def main(argv: Sequence[str] | None = None) -> int:
    parser = Parser(description="MATH through the gate.")
    dataset_run.add_arguments(
        parser,
        name="HuggingFaceH4/MATH-500",
        fields="unique_id, problem, solution, answer, subject, level",
    )
    parser.add_argument(
        "--check-references",
        action="store_true",
        help="judge the data set's own solutions against its own answers",
    )

    def program() -> int:
        args = parser.parse_args(argv)
        tasks = dataset_run.tasks_of(args, math_task)
        return (
            check_references(tasks, args) if args.check_references else dataset_run.run(tasks, args)
        )

    return exit_code_of(program)


def check_references(tasks: Sequence[Task], args: argparse.Namespace) -> int:
    with MathChecker(workers=args.threads) as checker:
        outcomes = list(checker.check_many((task["gold"], task["reference"]) for task in tasks))
    judged = list(zip(tasks, outcomes, strict=True))
    wrong = [(task, outcome) for task, outcome in judged if outcome.error != 0]
    print(f"solutions: {len(tasks) - len(wrong)} of {len(tasks)} agree with their answers")
    for task, outcome in wrong:
        found = outcome.meta.get("extracted")
        print(f"  {task['id']}: {outcome.verdict}, found {found!r}, gold {task['gold']!r}")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
