"""MBPP through the gate: a model writes the programs, and the uncertain ones are run.

    python examples/mbpp.py --data mbpp.jsonl --sandbox docker --log mbpp.db \\
        --model my-model --base-url http://127.0.0.1:8000/v1

`--dataset google-research-datasets/mbpp` takes the test split from the Hugging Face hub instead
(pip install datasets), `--vllm MODEL` runs vLLM in this process, and without a
model the bundled one answers: wrongly, since it knows other tasks, but the loop is the same. After
an interruption the same command with the same log continues. docs/datasets.md has more.

    python examples/mbpp.py --data mbpp.jsonl --sandbox docker --check-references

needs no model: the sandbox judges the data set's own solutions, and wrong programs made of them,
and each verdict is compared with that of a plain run. Exits with 1 if a verdict differs.
"""

import argparse
import sys
from collections import Counter
from collections.abc import Iterable, Sequence

from mutants import (
    Judged,
    Mutant,
    agreed,
    compare,
    mutants,
    reference_of,
    trusted_verdicts,
)

from gatekeeper.errors import BadInputError
from gatekeeper.io.datasets import mbpp_task
from gatekeeper.io.tasks import Task
from gatekeeper.programs import dataset_run
from gatekeeper.programs.exit_code import exit_code_of
from gatekeeper.programs.parser import Parser
from gatekeeper.sandbox import DockerSandbox, LocalSandbox

SANDBOXES = {"docker": DockerSandbox, "local": LocalSandbox}
REFERENCE_SECONDS = 30.0  # three of MBPP's own solutions take seconds
MUTANT_SECONDS = 2.0
QUICK_SECONDS = 0.5


def main(argv: Sequence[str] | None = None) -> int:
    parser = Parser(description="MBPP through the gate.")
    dataset_run.add_arguments(
        parser,
        name="google-research-datasets/mbpp",
        fields="task_id, text, code, test_list, test_setup_code",
    )
    parser.add_argument(
        "--check-references",
        action="store_true",
        help="compare the sandbox with a plain run, on the data set's own solutions and mutants",
    )
    parser.add_argument(
        "--mutants", type=int, default=1, help="mutants of each solution (default: 1)"
    )
    parser.add_argument(
        "--judge", action="store_true", help="let the sandbox's judge evaluate every assert"
    )

    def program() -> int:
        args = parser.parse_args(argv)
        tasks = dataset_run.tasks_of(args, mbpp_task)
        return (
            check_references(tasks, args) if args.check_references else dataset_run.run(tasks, args)
        )

    return exit_code_of(program)


def check_references(tasks: Sequence[Task], args: argparse.Namespace) -> int:
    if args.sandbox not in SANDBOXES:
        raise BadInputError(f"sandbox={args.sandbox!r}: choose one of {', '.join(SANDBOXES)}")

    def agree(name: str, candidates: Iterable[Mutant], seconds: float) -> bool:
        with SANDBOXES[args.sandbox](timeout=seconds, workers=args.threads) as sandbox:
            judged = list(trusted_verdicts(candidates, workers=args.threads, seconds=seconds))
            return show(name, list(compare(sandbox, judged, judge=args.judge)))

    right = agree("solutions", map(reference_of, tasks), REFERENCE_SECONDS)
    # Mutants of quick solutions only: for slow ones a timeout would depend on the machine's load.
    within = trusted_verdicts(map(reference_of, tasks), workers=args.threads, seconds=QUICK_SECONDS)
    quick = [task for task, (_, verdict) in zip(tasks, within, strict=True) if verdict == "passed"]
    wrong_programs = mutants(quick, per_task=args.mutants, seed=args.seed)
    wrong = agree("mutants", wrong_programs, MUTANT_SECONDS)
    return 0 if right and wrong else 1


def show(name: str, judged: Sequence[Judged]) -> bool:
    """Print how far the verdicts agree; whether they do.

    A program on which plain runs under other hash seeds disagree among themselves decides nothing.
    """
    different = [each for each in judged if not each.agree]
    real = [each for each in different if agreed(each.mutant)]
    undecided = len(different) - len(real)
    total = len(judged) - undecided
    print(f"{name}: {total - len(real)} of {total} verdicts agree with a plain run's")
    if undecided:
        print(f"  {undecided} more: plain runs do not agree among themselves")
    cells = Counter((each.trusted, each.outcome.verdict.value) for each in judged)
    for (plain, verdict), number in sorted(cells.items()):
        print(f"  {plain} in the plain run, {verdict} in the sandbox: {number}")
    for mutant, trusted, outcome in real:
        print(f"\n{mutant.task_id}: {trusted} in the plain run, in the sandbox {outcome}")
        print(mutant.code, *mutant.tests, sep="\n")
    return not real


if __name__ == "__main__":
    sys.exit(main())
