"""The bundled model's code tasks as a data set of EvalPlus's, and its answers as samples.

python tests/harness/bundled_humaneval.py FOLDER N    writes problems.jsonl and samples.jsonl
"""

from __future__ import annotations

import ast
import json
import sys
from pathlib import Path
from typing import Any

from gatekeeper.adapters.bundled import BundledModel
from gatekeeper.io.tasks import Task, read_tasks

TASKS = Path(__file__).parents[2] / "gatekeeper" / "bundled" / "tasks.jsonl"


def problem(task: Task, number: int) -> dict[str, Any]:
    """A problem whose reference solution looks up the results that the task's tests expect."""
    inputs, answers = [], {}
    for test in task["tests"]:
        compared = ast.parse(test).body[0].test
        call = compared.left
        inputs.append([ast.literal_eval(argument) for argument in call.args])
        answers[repr(tuple(inputs[-1]))] = ast.literal_eval(compared.comparators[0])
    return {
        "task_id": f"HumanEval/{number}",
        "prompt": f'def {call.func.id}(*given):\n    """{task["prompt"]}"""\n',
        "entry_point": call.func.id,
        "canonical_solution": f"    return {answers!r}[repr(given)]\n",
        "contract": "",
        "base_input": inputs[:2],
        "plus_input": inputs[2:],
        "atol": 0,
    }


def main(folder: Path, n: int) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    tasks = [task for task in read_tasks(TASKS) if task["kind"] == "code"][:n]
    answers = BundledModel().generate([t["prompt"] for t in tasks], ids=[t["id"] for t in tasks])
    with (folder / "problems.jsonl").open("w") as problems:
        for number, task in enumerate(tasks):
            problems.write(json.dumps(problem(task, number)) + "\n")
    with (folder / "samples.jsonl").open("w") as samples:
        for number, answer in enumerate(answers):
            arrays = {k: getattr(answer, k).tolist() for k in ("logprob", "top1", "top2")}
            line = {"task_id": f"HumanEval/{number}", "solution": answer.text, "logprobs": arrays}
            samples.write(json.dumps(line) + "\n")


if __name__ == "__main__":
    main(Path(sys.argv[1]), int(sys.argv[2]))
