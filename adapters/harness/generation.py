"""An output of a harness's file, with the log-probabilities that stand beside it."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from gatekeeper.errors import BadInputError
from gatekeeper.io.responses import as_generation
from gatekeeper.types import Generation

__all__ = ["ARRAYS", "generation_of"]

ARRAYS = ("logprob", "top1", "top2")


def generation_of(id_: str, text: str, logprobs: Any, **more: Any) -> Generation:
    """An output; without `logprobs` it has no signals.

    Parameters
    ----------
    id_, text : str
        Id and text of the output.
    logprobs
        The field of its line: an object of arrays `logprob, top1, top2`, or `logprobs` of a choice
        of OpenAI's APIs. None: there are none.
    **more
        Other fields of a Generation.

    Raises
    ------
    BadInputError
        For anything else.
    """
    if logprobs is None:
        return Generation(id_, text, **more)
    if not isinstance(logprobs, dict):
        raise BadInputError(f"field 'logprobs' is {logprobs!r:.80}: an object is needed")
    if set(ARRAYS) <= logprobs.keys():
        return Generation(id_, text, **{name: logprobs[name] for name in ARRAYS}, **more)
    if "token_logprobs" in logprobs:
        choice: dict[str, Any] = {"index": 0, "text": text, "logprobs": logprobs}
    else:
        choice = {"index": 0, "message": {"content": text}, "logprobs": logprobs}
    return replace(as_generation({"choices": [choice]}, id=id_), text=text, **more)
