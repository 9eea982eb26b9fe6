"""EvalPlus: HumanEval+ and MBPP+ within a budget, from a file of samples.

`gatekeeper evalplus` is the command line: docs/evalplus.md. The samples are EvalPlus's own, one
JSON object per line, `task_id` and `solution` or `completion`. What the gate reads besides is
`logprobs`: what `evalplus_codegen` writes, or `logprobs` of a choice as OpenAI's APIs return it.
"""

from __future__ import annotations

import contextlib
import importlib
import inspect
import os
import sys
import threading
import time
from collections import Counter
from collections.abc import Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Literal, Protocol

import numpy as np

from gatekeeper.errors import BadInputError, MissingDependencyError
from gatekeeper.io.jsonl import field, read_jsonl
from gatekeeper.io.responses import as_generation
from gatekeeper.types import Generation, Outcome, Verdict

__all__ = [
    "Checker",
    "Dataset",
    "EvalPlusChecker",
    "Sample",
    "SandboxChecker",
    "check_program",
    "pass_at_1",
    "read_samples",
]

ARRAYS = ("logprob", "top1", "top2")
NOTHING = np.empty(0)
SANDBOX_SECONDS = 60.0  # for all inputs together, as EvalPlus has it

Name = Literal["humaneval", "mbpp"]


class Dataset:
    """The problems of HumanEval+ or MBPP+ with their expected outputs, as EvalPlus has them.

    It downloads and caches them; HUMANEVAL_OVERRIDE_PATH and MBPP_OVERRIDE_PATH name local files.
    """

    def __init__(self, name: Name) -> None:
        """Raises BadInputError where they cannot be had."""
        data, evaluate = _evalplus("data"), _evalplus("evaluate")
        self.name = name
        try:
            with contextlib.redirect_stdout(sys.stderr):
                if name == "humaneval":
                    self.problems: dict[str, Any] = data.get_human_eval_plus()
                    self.hash: str = data.get_human_eval_plus_hash()
                else:
                    self.problems = data.get_mbpp_plus()
                    self.hash = data.get_mbpp_plus_hash()
                if not self.problems:
                    raise ValueError("it holds no problem")
                not_none = [] if name == "humaneval" else evaluate.MBPP_OUTPUT_NOT_NONE_TASKS
                self.expected: dict[str, Any] = evaluate.get_groundtruth(
                    self.problems, self.hash, not_none
                )
        except Exception as e:  # of a download, of a file: EvalPlus does not say which
            reason = " ".join(f"{type(e).__name__}: {e}".split())
            raise BadInputError(
                f"dataset={name!r} cannot be had: {reason}. {name.upper()}_OVERRIDE_PATH may name "
                "a local file"
            ) from e


@dataclass(frozen=True, slots=True, eq=False)
class Sample:
    """One line of a file of samples. `generation.text` is the whole solution."""

    task_id: str
    generation: Generation


def read_samples(path: str | Path, dataset: Dataset) -> list[Sample]:
    """All samples of problems of the dataset, in order; of others EvalPlus takes no notice either.

    The k-th sample for a problem is named `task_id/k`. Raises BadInputError for a bad line, and
    for a file without samples.
    """
    counts: Counter[str] = Counter()

    def parse(line: Mapping[str, Any]) -> Sample | None:
        task_id = field(line, "task_id", str)
        if task_id not in dataset.problems:
            return None
        prompt = dataset.problems[task_id]["prompt"]
        if "solution" in line:
            solution = field(line, "solution", str)
        elif "completion" in line:
            solution = prompt + field(line, "completion", str)
        else:
            raise BadInputError("field 'solution' is missing, and so is 'completion'")
        id_ = f"{task_id}/{counts[task_id]}"
        counts[task_id] += 1
        return Sample(task_id, _generation(id_, solution, prompt, line.get("logprobs")))

    samples = [sample for sample in read_jsonl(path, parse) if sample is not None]
    if not samples:
        raise BadInputError(f"{path} holds no sample for a problem of {dataset.name}")
    return samples


def pass_at_1(samples: Sequence[Sample], passed: Sequence[bool]) -> float:
    """EvalPlus's own: the mean over problems of the share of their samples that pass."""
    total: Counter[str] = Counter(sample.task_id for sample in samples)
    right: Counter[str] = Counter()
    for sample, ok in zip(samples, passed, strict=True):
        right[sample.task_id] += ok
    estimated = _evalplus("eval").estimate_pass_at_k(
        np.array(list(total.values())), np.array([right[task] for task in total]), 1
    )
    return float(estimated.mean())


class Checker(Protocol):
    """Says whether a sample passes."""

    def check(self, sample: Sample) -> Outcome: ...

    def close(self) -> None: ...


class EvalPlusChecker:
    """EvalPlus's own check, in processes of its own: no fence against hostile code.

    base_only   only the original tests, without those that EvalPlus added
    """

    def __init__(self, dataset: Dataset, *, base_only: bool, workers: int) -> None:
        self._dataset = dataset
        self._base_only = base_only
        self._pool = ProcessPoolExecutor(workers, initializer=_end_with, initargs=(os.getpid(),))
        self._pool.submit(int).result()  # the processes are forked before there are threads

    def check(self, sample: Sample) -> Outcome:
        found = self._pool.submit(
            _evalplus("evaluate").check_correctness,
            self._dataset.name,
            0,  # of this problem's samples: only handed back
            self._dataset.problems[sample.task_id],
            sample.generation.text,
            self._dataset.expected[sample.task_id],
            self._base_only,
            True,  # stop at the first failure
        ).result()
        status = {name: str(found[name][0]) for name in ("base", "plus") if name in found}
        detail = ", ".join(f"{name}: {value}" for name, value in status.items())
        verdict = Verdict.FAILED
        if all(value == "pass" for value in status.values()):
            verdict = Verdict.PASSED
        elif "fail" not in status.values():
            verdict = Verdict.TIMEOUT
        return Outcome(verdict, detail=detail, meta=status)

    def close(self) -> None:
        self._pool.shutdown(cancel_futures=True)


class SandboxChecker:
    """EvalPlus's inputs and expected outputs, in a sandbox of gatekeeper's (docs/sandbox.md)."""

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
            "prompt": problem["prompt"],
            "entry_point": problem["entry_point"],
            "test": check_program(self._dataset.name, problem, cases),
        }
        return self._sandbox.verify(sample.generation, task)

    def close(self) -> None:
        self._sandbox.close()


def check_program(dataset: str, problem: Mapping[str, Any], cases: Sequence[Any]) -> str:
    """EvalPlus's comparison of outputs, as a test program that needs nothing but Python.

    cases   (inputs, expected output) pairs
    """
    entry, atol = problem["entry_point"], problem["atol"]
    same = "same(out, expected)"
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
                atol=atol, cases=list(cases), same=f"{same} or same(out, _{entry}(*inputs))"
            )
            + other
        )
    elif dataset == "mbpp" and entry in special.MBPP_OUTPUT_SET_EQ_TASKS:
        same = "set(out) == set(expected)"
    elif dataset == "mbpp" and entry in special.MBPP_OUTPUT_NOT_NONE_TASKS:
        same = "out == expected if isinstance(out, bool) else expected == (out is not None)"
    return _PROGRAM.format(atol=atol, cases=list(cases), same=same)


# As `evalplus.eval.unsafe_execute` compares, without numpy.
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


def same(out, expected):
    atol = {atol!r} or (1e-6 if floats(expected) else 0)
    if out == expected:
        return True
    return atol != 0 and type(out) is type(expected) and close(out, expected, atol)


def check(candidate):
    for inputs, expected in {cases!r}:
        out = candidate(*inputs)
        assert {same}
"""


def _generation(id_: str, solution: str, prompt: str, logprobs: Any) -> Generation:
    """With what the sample says of its tokens: our arrays, or `logprobs` of a choice of OpenAI's.

    Raises BadInputError for anything else; without any it has no signals.
    """
    # An estimate of the prompt's tokens, four characters each: of all samples, from any source.
    about: dict[str, Any] = {"text": solution, "prompt_tokens": max(len(prompt) // 4, 1)}
    if logprobs is None:
        return Generation(id_, logprob=NOTHING, top1=NOTHING, top2=NOTHING, **about)
    if not isinstance(logprobs, dict):
        raise BadInputError(f"field 'logprobs' is {logprobs!r:.80}: an object is needed")
    if set(ARRAYS) <= logprobs.keys():
        return Generation(id_, **{name: logprobs[name] for name in ARRAYS}, **about)
    if "token_logprobs" in logprobs:
        choice: dict[str, Any] = {"index": 0, "text": solution, "logprobs": logprobs}
    else:
        choice = {"index": 0, "message": {"content": solution}, "logprobs": logprobs}
    return replace(as_generation({"choices": [choice]}, id=id_), **about)


def _evalplus(module: str) -> Any:
    try:
        return importlib.import_module(f"evalplus.{module}")
    except ImportError as e:
        raise MissingDependencyError(
            e.name or "evalplus", extra="evalplus", needed_for="the adapter for EvalPlus"
        ) from e


def _end_with(parent: int) -> None:
    """A process whose parent was killed goes too, instead of waiting for work for ever."""

    def watch() -> None:
        while os.getppid() == parent:
            time.sleep(1.0)
        os._exit(1)

    threading.Thread(target=watch, daemon=True).start()
