"""EvalPlus's code generation over an OpenAI endpoint, with the log-probabilities that it drops."""

from __future__ import annotations

import contextlib
import json
import os
import sys
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import openai
from evalplus.gen.util import openai_request
from evalplus.provider.openai import OpenAIChatDecoder
from evalplus.sanitize import sanitize

from gatekeeper.adapters.evalplus.samples import Dataset
from gatekeeper.adapters.harness.generation import ARRAYS
from gatekeeper.adapters.openai import ALTERNATIVES, REFUSALS, generations_of
from gatekeeper.adapters.openai.base_url import check_client_url
from gatekeeper.errors import BadInputError
from gatekeeper.io.jsonl import field, read_jsonl
from gatekeeper.types import MASKED, FloatArray, Generation

__all__ = ["GatedDecoder", "codegen"]

AT_ONCE = 32  # samples in one request: EvalPlus's own limit
PIECE = 1 << 20  # bytes of the file read at once
INSTRUCTION = (  # EvalPlus's own
    "Please provide a self-contained Python script that solves the following problem in a "
    "markdown code block:"
)


class GatedDecoder(OpenAIChatDecoder):  # type: ignore[misc]
    """EvalPlus's chat decoder; `outputs` returns the texts with their log-probabilities.

    After a refusal of log-probabilities, this and all later requests go without them.
    """

    logprob_parameters: Mapping[str, Any] = {"logprobs": True, "top_logprobs": ALTERNATIVES}

    def outputs(self, prompt: str, n: int) -> list[Generation]:
        """Up to n complete outputs for a prompt.

        Raises BadInputError if the endpoint does not answer.
        """
        message = f"{self.instruction_prefix}\n```python\n{prompt.strip()}\n```"
        try:
            try:
                response = self._request(message, n, **self.logprob_parameters)
            except openai.APIStatusError as error:
                if error.status_code not in REFUSALS or not self.logprob_parameters:
                    raise
                response = self._request(message, n)
                self.logprob_parameters = {}
                print("gatekeeper: the server gives no log-probabilities", file=sys.stderr)
        except openai.OpenAIError as error:
            raise BadInputError(
                f"the model {self.name!r} at {self.client.base_url} did not answer: {error}"
            ) from error
        return [output for output in generations_of(response) if not output.broke_off]

    def codegen(self, prompt: str, do_sample: bool = True, num_samples: int = 200) -> list[str]:
        n = min(self.batch_size, num_samples)
        return [output.text for output in self.outputs(prompt, n)]

    def _request(self, message: str, n: int, **parameters: Any) -> Any:
        # One attempt: EvalPlus's own `make_auto_request` repeats without end.
        return openai_request.make_request(
            self.client,
            message=message,
            model=self.name,
            max_tokens=self.max_new_tokens,
            temperature=self.temperature,
            n=n,
            **parameters,
        )


def codegen(
    path: Path,
    dataset: Dataset,
    *,
    model: str,
    base_url: str | None = None,
    n_samples: int = 1,
    temperature: float = 0.0,
    on_progress: Callable[[int], None] = lambda done: None,
) -> None:
    """Append the missing samples to a file, up to `n_samples` for each problem.

    Parameters
    ----------
    path : Path
        The file of samples; it is made if it does not exist.
    dataset : Dataset
    model : str
        Name of the model at the endpoint.
    base_url : str or None
        URL of the endpoint; None: OpenAI's.
    n_samples : int
        Samples for each problem.
    temperature : float
        0 is greedy.
    on_progress : callable
        Called with 1 after each problem.

    Raises
    ------
    BadInputError
        For a file with bad lines, for a URL that no endpoint has, and if the endpoint does not
        answer or gives no output.
    """
    check_client_url(base_url)
    there = _count(path)
    with contextlib.redirect_stdout(sys.stderr):  # it prints a greeting
        decoder = GatedDecoder(
            model,
            base_url=base_url,
            batch_size=min(n_samples, AT_ONCE),
            temperature=temperature,
            instruction_prefix=INSTRUCTION,
        )
    with decoder.client, path.open("a", encoding="utf-8") as out:
        for task_id, problem in dataset.problems.items():
            missing = n_samples - there[task_id]
            while missing > 0:
                prompt = problem["prompt"].strip() + "\n"
                outputs = decoder.outputs(prompt, min(missing, decoder.batch_size))
                if not outputs:  # the same request again could repeat this without end
                    raise BadInputError(
                        f"{task_id}: the model {model!r} at {decoder.client.base_url} gave no "
                        "complete output: see the server's log, then run the same command "
                        "again, which makes only the missing samples"
                    )
                for output in outputs:
                    solution = sanitize(output.text, entrypoint=problem["entry_point"])
                    line = {"task_id": task_id, "solution": solution, "logprobs": _arrays(output)}
                    out.write(json.dumps(line) + "\n")
                    out.flush()
                    missing -= 1
            on_progress(1)


def _count(path: Path) -> Counter[str]:
    """Samples in the file by problem; the half line that an interruption left is cut off.

    Raises BadInputError for what no line can be appended to, and leaves it as it is.
    """
    if path.suffix != ".jsonl" or (path.exists() and not path.is_file()):
        raise BadInputError(
            f"--samples {path}: --model appends samples to a plain file, whose name ends in .jsonl"
        )
    if not path.exists():
        return Counter()
    with path.open("rb+") as file:
        begin = file.seek(0, os.SEEK_END)
        at = -1
        while begin and at < 0:
            begin, end = max(0, begin - PIECE), begin
            file.seek(begin)
            at = file.read(end - begin).rfind(b"\n")
        file.seek(begin + at + 1)
        if _is_whole(file.read()):  # the last line of a file that another program wrote
            file.write(b"\n")
        else:
            file.truncate(begin + at + 1)
    return Counter(read_jsonl(path, lambda line: field(line, "task_id", str)))


def _is_whole(line: bytes) -> bool:
    try:
        return isinstance(json.loads(line), dict)
    except (ValueError, RecursionError):
        return False


def _arrays(output: Generation) -> dict[str, list[float | None]] | None:
    """The field `logprobs` of a sample; None without log-probabilities."""
    if not output.logprob.size:
        return None
    return {name: list(_rounded(getattr(output, name))) for name in ARRAYS}


def _rounded(values: FloatArray) -> Iterator[float | None]:
    for value in np.maximum(values, MASKED).round(6).tolist():
        yield None if value != value else value
