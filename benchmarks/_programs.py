"""The programs that the runners of `sandbox.py` judge."""

from __future__ import annotations

import ast
import builtins
import itertools
import json
import random
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import numpy as np

MBPP = Path(__file__).resolve().parents[2] / "shared" / "data" / "mbpp.jsonl"
SLOW = {123, 765, 922}  # MBPP tasks whose solutions take seconds
RIGHT, WRONG = 200, 20


class Program(NamedTuple):
    """A candidate and three tests; `cases` are the tests as texts of (arguments, expected)."""

    code: str
    entry_point: str
    tests: tuple[str, ...]
    cases: tuple[str, ...]
    right: bool


def mbpp_programs(rng: random.Random) -> Iterator[tuple[str, str, list[str], list[str]]]:
    tasks = [json.loads(line) for line in MBPP.read_text().splitlines()]
    rng.shuffle(tasks)
    for task in tasks:
        cut = [cut_test(test) for test in task["test_list"]]
        name, *others = {name for name, _ in cut}
        if task["task_id"] in SLOW or len(cut) != 3 or others or not name:
            continue
        if not hasattr(builtins, name):  # the tests of such a name are always the judge's
            yield task["code"], name, task["test_list"], [case for _, case in cut]


def cut_test(test: str) -> tuple[str, str]:
    """The function a test calls, and (arguments, expected); empty if it has another form."""
    match ast.parse(test).body:
        case [ast.Assert(ast.Compare(ast.Call(ast.Name(name), args, []), [ast.Eq()], [expected]))]:
            case = ast.unparse(ast.Tuple([ast.Tuple(args, ast.Load()), expected], ast.Load()))
            try:
                ast.literal_eval(case)
            except ValueError:
                return "", ""
            return name, case
    return "", ""


def made_up_programs(rng: random.Random) -> Iterator[tuple[str, str, list[str], list[str]]]:
    bodies = (
        ("return sorted(x * {k} for x in xs)", lambda xs, k: sorted(x * k for x in xs)),
        ("import math\n    return math.prod(xs) % {k}", lambda xs, k: int(np.prod(xs)) % k),
        ("return {{x: x % {k} for x in xs}}", lambda xs, k: {x: x % k for x in xs}),
        ("return ''.join(chr(65 + x % {k}) for x in xs)",
         lambda xs, k: "".join(chr(65 + x % k) for x in xs)),
    )  # fmt: skip
    for number in itertools.count():
        body, solve = rng.choice(bodies)
        k, name = rng.randint(2, 20), f"solve_{number}"
        inputs = [[rng.randint(1, 30) for _ in range(rng.randint(1, 8))] for _ in range(3)]
        tests = [f"assert {name}({xs}) == {solve(xs, k)!r}" for xs in inputs]
        cases = [cut_test(test)[1] for test in tests]
        yield f"def {name}(xs):\n    {body.format(k=k)}\n", name, tests, cases


def make_programs(seed: int) -> list[Program]:
    rng = random.Random(seed)
    source = mbpp_programs(rng) if MBPP.exists() else made_up_programs(rng)
    programs = []
    for n, (code, name, tests, cases) in enumerate(itertools.islice(source, RIGHT + WRONG)):
        right = n >= WRONG
        if not right:
            code += f"\n\nright = {name}\n\ndef {name}(*args):\n    return [right(*args)]\n"
        programs.append(Program(code, name, tuple(tests), tuple(cases), right))
    rng.shuffle(programs)
    return programs
