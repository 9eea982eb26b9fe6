"""llama-server's own API: responses of `/completion`, and the chunks of a stream in a list.

    requests.post(f"{url}/completion", json={"prompt": …, "n_predict": 200, "n_probs": 5})

It reads the entries of today's servers, {token, logprob, top_logprobs}, under
`completion_probabilities` or `probs`; those of `post_sampling_probs`, {token, prob, top_probs},
which are of what the samplers left; and those of servers before December 2024,
{content, probs: [{tok_str, prob}]}, likewise. Responses of its OpenAI-compatible API and of the
package llama-cpp-python have OpenAI's shapes and are read by `openai`.

References
----------
llama.cpp, the README of its server, "POST /completion"; pull request 10783 changed the entries.
"""

from __future__ import annotations

from collections.abc import Iterator
from math import inf, log
from typing import Any

from gatekeeper.adapters.fields import count_of, field, fields, list_of, text_of
from gatekeeper.adapters.openai.entries import Entries
from gatekeeper.adapters.positions import Scope, make_generation
from gatekeeper.errors import BadInputError
from gatekeeper.io.providers import attribute
from gatekeeper.types import Generation

__all__ = ["ends", "read", "recognises"]


def recognises(response: Any) -> bool:
    """Whether the response, or one of a list, has a text `content` and the field `stop`."""
    chunks = response if isinstance(response, list) else [response]
    return any(
        isinstance(attribute(chunk, "stop"), bool) and isinstance(attribute(chunk, "content"), str)
        for chunk in chunks
    )


def ends(chunk: Any) -> dict[int, bool]:
    """By index, the output in a chunk: whether it is its last one."""
    return {count_of(chunk, "index") or 0: field(chunk, "stop") is True}


def read(response: Any, *, scope: Scope, skip_forced: bool) -> list[Generation]:
    """Every output. The server does not separate reasoning from the answer here: all count.

    Parameters and errors are those of `gatekeeper.io.providers.Reader.read`.
    """
    outputs = list(_outputs(response if isinstance(response, list) else [response]))
    several = len(outputs) > 1
    return [
        _generation(chunks, f"/{i}" if several else "", skip_forced=skip_forced)
        for i, chunks in enumerate(outputs)
    ]


def _outputs(chunks: list[Any]) -> Iterator[list[Any]]:
    """The chunks of each output: a stream's, by index, up to the one that stopped."""
    growing: dict[int, list[Any]] = {}
    for chunk in chunks:
        index = count_of(chunk, "index") or 0
        growing.setdefault(index, []).append(chunk)
        if field(chunk, "stop"):
            yield growing.pop(index)
    yield from growing.values()


def _generation(chunks: list[Any], suffix: str, *, skip_forced: bool) -> Generation:
    entries = Entries()
    for chunk in chunks:
        rows = list_of(chunk, "completion_probabilities") or list_of(chunk, "probs")
        entries.add([_entry(row) for row in rows])
    last = chunks[-1]
    id_ = text_of(last, "id")
    return make_generation(
        entries.positions(),
        id=f"{id_}{suffix}" if id_ else "",
        text="".join(text_of(chunk, "content") or "" for chunk in chunks),
        prompt_tokens=count_of(last, "tokens_evaluated"),
        output_tokens=count_of(last, "tokens_predicted"),
        model=text_of(last, "model"),
        finish_reason=_finish_reason(last),
        skip_forced=skip_forced,
    )


def _finish_reason(last: Any) -> str | None:
    """As OpenAI's API names it; None for a stream that was cut off."""
    kind = text_of(last, "stop_type")
    if kind in ("eos", "word") or field(last, "stopped_eos") or field(last, "stopped_word"):
        return "stop"
    return "length" if kind == "limit" or field(last, "stopped_limit") else None


def _entry(row: Any) -> Any:
    """A token's entry as OpenAI's API has it."""
    known = fields(row)
    if "logprob" in known or "top_logprobs" in known:
        return row
    if "top_probs" in known:
        alternatives = [_alternative(each, "token") for each in list_of(row, "top_probs")]
        return _alternative(row, "token") | {"top_logprobs": alternatives}
    if "probs" in known:
        token = text_of(row, "content") or ""
        alternatives = [_alternative(each, "tok_str") for each in list_of(row, "probs")]
        own = [each["logprob"] for each in alternatives if each["token"] == token]
        chosen = own[0] if len(own) == 1 else None  # of several with one text it may be any
        found = {"token": token, "bytes": None, "logprob": chosen}
        return found | {"top_logprobs": alternatives}
    raise BadInputError(f"completion_probabilities has {row!r:.80}: no entry of a token")


def _alternative(value: Any, name: str) -> dict[str, Any]:
    prob = field(value, "prob")
    if isinstance(prob, bool) or not isinstance(prob, int | float) or not 0 <= prob <= 1.001:
        raise BadInputError(f"prob={prob!r:.80}: a probability from 0 to 1 is needed")
    logprob = log(prob) if prob > 0 else -inf
    token = text_of(value, name) or ""
    return {"token": token, "bytes": field(value, "bytes"), "logprob": min(logprob, 0.0)}
