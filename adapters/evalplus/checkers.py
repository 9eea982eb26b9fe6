"""The tests of EvalPlus on one sample: EvalPlus's own check, or a sandbox of gatekeeper."""

from __future__ import annotations

import importlib
import inspect
import os
import re
import signal
import threading
import time
from collections.abc import Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from dataclasses import replace
from multiprocessing import active_children, get_context
from typing import Any, Literal, Protocol

from gatekeeper.adapters.evalplus.harness import evalplus_module
from gatekeeper.adapters.evalplus.samples import Dataset, Sample
from gatekeeper.types import Generation, Outcome, Verdict

__all__ = ["PASS", "Checker", "EvalPlusChecker", "SandboxChecker", "check_program"]

PASS = "pass"  # a status of EvalPlus
SANDBOX_SECONDS = 60.0  # for all inputs of a problem together, as in EvalPlus


class Checker(Protocol):
    """Decides whether a sample passes."""

    def check(self, sample: Sample) -> Outcome:
        """Run the tests on one sample. Called from several threads."""
        ...

    def close(self) -> None:
        """Free processes and containers."""
        ...


class EvalPlusChecker:
    """EvalPlus's own check, in separate processes. It does not contain hostile code.

    A sample that ends its process takes those at work beside it along. Each of these is checked
    again in a process of its own; a sample that ends that too has no verdict.

    Parameters
    ----------
    dataset : Dataset
    base_only : bool
        Run only the original tests, without those that EvalPlus added.
    workers : int
        Checks at the same time.
    """

    def __init__(self, dataset: Dataset, *, base_only: bool, workers: int) -> None:
        self._dataset = dataset
        self._base_only = base_only
        self._workers = workers
        self._pool = self._new_pool(workers, "fork")
        self._pool.submit(int).result()  # forks the processes before there are threads
        self._replacing = threading.Lock()

    def check(self, sample: Sample) -> Outcome:
        """Raises BrokenProcessPool where the sample ends its process."""
        pool = self._pool
        try:
            found = self._run(pool, sample)
        except BrokenProcessPool:
            with self._replacing:
                if self._pool is pool:
                    # no fork: there are threads now
                    self._pool = self._new_pool(self._workers, "spawn")
            with self._new_pool(1, "spawn") as alone:
                found = self._run(alone, sample)
        status = {name: str(found[name][0]) for name in ("base", "plus") if name in found}
        # The last test that ran is the one that failed: the check stops there.
        ran = {name: len(found[name][1] or ()) for name in status if status[name] != PASS}
        detail = ", ".join(f"{name}: {value}" for name, value in status.items())
        verdict = Verdict.FAILED
        if all(value == PASS for value in status.values()):
            verdict = Verdict.PASSED
        elif "fail" not in status.values():
            verdict = Verdict.TIMEOUT
        return Outcome(verdict, detail=detail, meta={**status, "ran": ran})

    def close(self) -> None:
        self._pool.shutdown(cancel_futures=True)

    def _run(self, pool: ProcessPoolExecutor, sample: Sample) -> Any:
        return pool.submit(_check, sample.task_id, sample.generation.text).result()

    def _new_pool(self, workers: int, method: str) -> ProcessPoolExecutor:
        return ProcessPoolExecutor(
            workers,
            get_context(method),
            initializer=_begin,
            initargs=(os.getpid(), self._dataset, self._base_only),
        )


class SandboxChecker:
    """EvalPlus's inputs and expected outputs, in a sandbox of gatekeeper (docs/sandbox.md).

    The whole solution runs and nothing else, as in EvalPlus: without the prompt's imports, which
    the sandbox gives to answers that complete a prompt.
    """

    def __init__(
        self,
        dataset: Dataset,
        sandbox: Literal["docker", "local"],
        *,
        base_only: bool,
        workers: int,
    ) -> None:
        from gatekeeper.sandbox import DockerSandbox, LocalSandbox

        make = DockerSandbox if sandbox == "docker" else LocalSandbox
        self._sandbox = make(timeout=SANDBOX_SECONDS, workers=workers)
        self._dataset = dataset
        self._inputs = ("base",) if base_only else ("base", "plus")

    def check(self, sample: Sample) -> Outcome:
        problem = self._dataset.problems[sample.task_id]
        expected = self._dataset.expected[sample.task_id]
        cases = [
            case
            for name in self._inputs
            for case in zip(problem[f"{name}_input"], expected[name], strict=True)
        ]
        task = {
            "entry_point": problem["entry_point"],
            "test": check_program(self._dataset.name, problem, cases),
        }
        return self._sandbox.verify(_as_answer(sample.generation), task)

    def close(self) -> None:
        self._sandbox.close()


def _as_answer(solution: Generation) -> Generation:
    """An answer of which the sandbox takes the whole solution for code, Markdown in it too."""
    fences = re.findall("`{3,}|~{3,}", solution.text)
    if not fences:
        return solution
    marks = "`" * (max(map(len, fences)) + 1)
    return replace(solution, text=f"{marks}python\n#\n{solution.text}\n{marks}")


def check_program(dataset: str, problem: Mapping[str, Any], cases: Sequence[Any]) -> str:
    """EvalPlus's comparison of outputs, as a test program that needs only Python.

    Parameters
    ----------
    dataset : str
        "humaneval" or "mbpp".
    problem : mapping
    cases : sequence
        Pairs of inputs and expected output.
    """
    entry, atol = problem["entry_point"], problem["atol"]
    same = "same(out, expected, atol)"
    special = importlib.import_module("evalplus.eval._special_oracle")
    if dataset == "humaneval" and entry == "find_zero":
        same = f"abs(sum(c * out**i for i, c in enumerate(inputs[0]))) <= {atol!r}"
    elif dataset == "mbpp" and entry == "are_equivalent":
        same = "True"
    elif dataset == "mbpp" and entry == "sum_div":
        same += " or out == 0"
    elif dataset == "mbpp" and entry in ("surface_Area", "digit_distance_nums"):
        other = inspect.getsource(getattr(special, f"_{entry}"))
        return (
            _PROGRAM.format(
                atol=atol, cases=list(cases), same=f"{same} or same(out, _{entry}(*inputs), atol)"
            )
            + other
        )
    elif dataset == "mbpp" and entry in special.MBPP_OUTPUT_SET_EQ_TASKS:
        same = "set(out) == set(expected)"
    elif dataset == "mbpp" and entry in special.MBPP_OUTPUT_NOT_NONE_TASKS:
        same = "out == expected if isinstance(out, bool) else expected == (out is not None)"
    return _PROGRAM.format(atol=atol, cases=list(cases), same=same)


# The comparison of `evalplus.eval.unsafe_execute`, without numpy.
_PROGRAM = """\
import math

inf, nan = math.inf, math.nan


def floats(value):
    if isinstance(value, (list, tuple)) and value:
        return all(isinstance(each, float) for each in value)
    return isinstance(value, float)


def close(out, expected, atol):
    if isinstance(expected, (list, tuple)):
        return len(out) == len(expected) and all(map(close, out, expected, [atol] * len(out)))
    return out == expected or abs(out - expected) <= atol + 1e-7 * abs(expected)


def same(out, expected, atol):
    if out == expected:
        return True
    return atol != 0 and type(out) is type(expected) and close(out, expected, atol)


def check(candidate):
    atol = {atol!r}
    for inputs, expected in {cases!r}:
        out = candidate(*inputs)
        atol = atol or (1e-6 if floats(expected) else 0)  # from then on, as in EvalPlus
        assert {same}
"""


# -- in a process of the pool -------------------------------------------------------------------

_given: tuple[Dataset, bool]


def _begin(parent: int, dataset: Dataset, base_only: bool) -> None:
    """Keep what all samples share: before CPython 3.11.5 a pool whose process is killed hangs if
    what it was being sent did not fit into a pipe.
    """
    global _given
    _given = dataset, base_only
    _end_with(parent)


def _check(task_id: str, solution: str) -> Any:
    dataset, base_only = _given
    return evalplus_module("evaluate").check_correctness(
        dataset.name,
        0,  # number of the sample, which the result repeats
        dataset.problems[task_id],
        solution,
        dataset.expected[task_id],
        base_only,
        True,  # stop at the first failure
    )


def _end_with(parent: int) -> None:
    """End this process when its parent was killed, instead of waiting for work for ever; and with
    it, or where the pool ends it, the sample that it checks."""

    def watch() -> None:
        while os.getppid() == parent:
            time.sleep(1.0)
        _end()

    signal.signal(signal.SIGTERM, _end)
    threading.Thread(target=watch, daemon=True).start()


def _end(*_: object) -> None:
    for child in active_children():
        child.kill()
    os._exit(1)
