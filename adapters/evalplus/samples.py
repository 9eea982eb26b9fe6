"""The problems of EvalPlus, and the samples of a file for them."""

from __future__ import annotations

import contextlib
import re
import sys
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Any, Literal

from gatekeeper.adapters.evalplus.harness import evalplus_module
from gatekeeper.adapters.harness.generation import generation_of
from gatekeeper.errors import BadInputError
from gatekeeper.io.jsonl import field, read_jsonl
from gatekeeper.types import Generation
from gatekeeper.wording import counted, one_line

__all__ = ["Dataset", "Sample", "read_samples"]

Name = Literal["humaneval", "mbpp"]


class Dataset:
    """The problems of HumanEval+ or MBPP+ with their expected outputs.

    EvalPlus downloads and caches them; HUMANEVAL_OVERRIDE_PATH and MBPP_OVERRIDE_PATH name local
    files.

    Parameters
    ----------
    name : {"humaneval", "mbpp"}
    limit : int or None
        Only the first so many problems; None: all.

    Raises
    ------
    BadInputError
        If EvalPlus cannot load them.
    """

    def __init__(self, name: Name, *, limit: int | None = None) -> None:
        data, evaluate = evalplus_module("data"), evalplus_module("evaluate")
        self.name, self.limit = name, limit
        try:
            with contextlib.redirect_stdout(sys.stderr):
                if name == "humaneval":
                    self.problems: dict[str, Any] = data.get_human_eval_plus()
                    self.hash: str = data.get_human_eval_plus_hash()
                else:
                    self.problems = data.get_mbpp_plus()
                    self.hash = data.get_mbpp_plus_hash()
                if not self.problems:
                    raise ValueError("it has no problems")
                not_none = [] if name == "humaneval" else evaluate.MBPP_OUTPUT_NOT_NONE_TASKS
                self.expected: dict[str, Any] = evaluate.get_groundtruth(
                    self.problems, self.hash, not_none
                )
                if limit is not None:  # EvalPlus caches the outputs of all
                    self.problems = dict(islice(self.problems.items(), limit))
        except Exception as e:  # of a download or a file: EvalPlus documents none
            raise BadInputError(
                f"dataset={name!r} cannot be loaded: {one_line(e)}. "
                f"{name.upper()}_OVERRIDE_PATH may name a local file"
            ) from e


@dataclass(frozen=True, slots=True, eq=False)
class Sample:
    """One line of a file of samples. `generation.text` is the whole solution."""

    task_id: str
    generation: Generation


def read_samples(path: str | Path, dataset: Dataset) -> list[Sample]:
    """The samples of a file, in order.

    Parameters
    ----------
    path : path
        JSONL, one sample per line, or a folder with a folder of `.py` files for each problem, as
        EvalPlus has them (without log-probabilities). Samples of problems outside the data set
        are ignored, as EvalPlus ignores them.
    dataset : Dataset

    Returns
    -------
    list of Sample
        The id of the k-th sample of a problem is `task_id/k`.

    Raises
    ------
    BadInputError
        For a bad line or file, and for a file without samples.
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
        return made(task_id, solution, line.get("logprobs"))

    def made(task_id: str, solution: str, logprobs: Any = None) -> Sample:
        id_ = f"{task_id}/{counts[task_id]}"
        counts[task_id] += 1
        prompt = dataset.problems[task_id]["prompt"]
        # The prompt's tokens, estimated at four characters each for samples of every source.
        about = max(len(prompt) // 4, 1)
        return Sample(task_id, generation_of(id_, solution, logprobs, prompt_tokens=about))

    if Path(path).is_dir():
        files = _of_folder(Path(path))
        samples = [made(task, text) for task, text in files if task in dataset.problems]
    else:
        samples = [sample for sample in read_jsonl(path, parse) if sample is not None]
    if not samples:
        those = (
            "a problem"
            if dataset.limit is None
            else f"the first {counted(dataset.limit, 'problem')}"
        )
        raise BadInputError(f"{path} has no sample for {those} of {dataset.name}")
    return samples


def _of_folder(folder: Path) -> Iterator[tuple[str, str]]:
    """Problem and solution of each file of a folder `HumanEval_0/0.py`, in the order of numbers."""
    files = [file for file in folder.glob("*/*.py") if file.is_file()]

    def order(file: Path) -> tuple[list[str | int], ...]:
        return tuple(
            [int(part) if part.isdigit() else part for part in re.split(r"(\d+)", name)]
            for name in (file.parent.name, file.stem)
        )

    for file in sorted(files, key=order):
        try:
            solution = file.read_text(encoding="utf-8")
        except (OSError, UnicodeDecodeError) as e:
            raise BadInputError(f"{file} cannot be read: {e}") from e
        yield file.parent.name.replace("_", "/"), solution
