"""vLLM without a server: outputs of `LLM.generate`, `LLM.chat` and `AsyncLLM`.

    outputs = llm.generate(prompts, prepared(SamplingParams(max_tokens=64)))
    for output in outputs: gate.maybe_verify(output, task)

It reads dicts per position, FlatLogprobs, and their JSON:
{"request_id", "prompt_token_ids", "outputs": [{"index", "text", "token_ids", "finish_reason",
"logprobs": [{"123": {"logprob": -0.1, "rank": 1, "decoded_token": "a"}, …}, …]}]}.
vLLM itself is not imported.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from math import nan
from typing import Any, NamedTuple

import numpy as np

from gatekeeper.adapters.fields import count_of, field, has, list_of, text_of
from gatekeeper.adapters.positions import Positions, Scope, make_generation, numbers
from gatekeeper.arguments import check_count, check_flag
from gatekeeper.errors import BadInputError
from gatekeeper.io.providers import attribute
from gatekeeper.types import FloatArray, Generation

__all__ = ["StreamReader", "generation_of", "generations_of", "prepared", "read", "recognises"]


def recognises(response: Any) -> bool:
    """Whether the response is a RequestOutput, or a list of them."""
    first = response[0] if isinstance(response, list) and response else response
    return attribute(first, "outputs") is not None


def read(response: Any, *, scope: Scope, skip_forced: bool) -> list[Generation]:
    """Every output. vLLM does not separate reasoning from the answer here: all tokens count.

    Parameters and errors are those of `gatekeeper.io.providers.Reader.read`.
    """
    return generations_of(response, skip_forced=skip_forced)


def prepared(params: Any, k: int = 2) -> Any:
    """A clone of `SamplingParams` with at least `k` log-probabilities per token.

    Parameters
    ----------
    params : vllm.SamplingParams
        Never changed. Its own number is kept if it is larger (-1 is the whole vocabulary), and so
        are `logprobs=False` and `logprob_token_ids`, which excludes a number.
    k : int
        Log-probabilities per token, at least 2: fewer give no margins.

    Raises
    ------
    BadInputError
        For anything else.
    """
    if not callable(getattr(params, "clone", None)):
        raise BadInputError(f"params={params!r:.80}: give a SamplingParams of vLLM")
    check_count("k", k, least=2)
    clone = params.clone()
    asked = clone.logprobs
    if asked is not False and asked != -1 and not getattr(clone, "logprob_token_ids", None):
        clone.logprobs = max(int(asked or 0), k)
    return clone


def generations_of(output: Any, *, skip_forced: bool = False) -> list[Generation]:
    """One Generation per completion of a RequestOutput, or of a list of them, in order.

    Parameters
    ----------
    output : RequestOutput, dict or list
    skip_forced : bool
        Leave out the tokens that a grammar forced.

    Raises
    ------
    BadInputError
        For anything else.
    """
    if isinstance(output, list):
        return [g for each in output for g in generations_of(each, skip_forced=skip_forced)]
    if not isinstance(field(output, "outputs"), list):
        raise BadInputError(f"output={output!r:.80}: not a RequestOutput of vLLM")
    return [
        _generation(output, completion, skip_forced=skip_forced)
        for completion in list_of(output, "outputs")
    ]


def generation_of(output: Any, *, skip_forced: bool = False) -> Generation:
    """The only completion of an output. Raises BadInputError if it has none or several."""
    found = generations_of(output, skip_forced=skip_forced)
    if len(found) != 1:
        raise BadInputError(
            f"output {field(output, 'request_id')!r} has {len(found)} completions: exactly one "
            "is needed, since each decision is about one output; generations_of returns all"
        )
    return found[0]


def _generation(output: Any, completion: Any, *, skip_forced: bool) -> Generation:
    tokens, prompt = field(completion, "token_ids"), field(output, "prompt_token_ids")
    if not isinstance(tokens, Sequence) or not _are_whole(tokens):
        raise BadInputError(f"token_ids={tokens!r:.80}: a list of whole numbers is needed")
    id_ = text_of(output, "request_id") or ""
    if len(list_of(output, "outputs")) > 1:
        id_ = f"{id_}/{count_of(completion, 'index') or 0}"
    return make_generation(
        _read(field(completion, "logprobs"), tokens),
        id=id_,
        text=text_of(completion, "text") or "",
        prompt_tokens=len(prompt) if isinstance(prompt, Sequence) else None,
        output_tokens=len(tokens),
        finish_reason=text_of(completion, "finish_reason"),
        skip_forced=skip_forced,
    )


def _are_whole(values: Sequence[object]) -> bool:
    return all(issubclass(kind, int | np.integer) for kind in set(map(type, values)))


def _read(logprobs: Any, tokens: Sequence[int]) -> Positions:
    if logprobs is None:
        nothing = np.empty(0)
        return Positions(nothing, nothing, nothing)
    if has(logprobs, "start_indices"):
        return _read_flat(logprobs, tokens)
    return _read_dicts(logprobs, tokens)


def _read_dicts(logprobs: Any, tokens: Sequence[int]) -> Positions:
    """One dict per position, by token id: the sampled token and ranks 1 to k, each once."""
    try:
        chosen, top1, top2 = _columns(logprobs, tokens)
    except (AttributeError, LookupError, TypeError, ValueError):  # JSON, or something is missing
        logprobs = _completed(logprobs, tokens)
        chosen, top1, top2 = _columns(logprobs, tokens[: len(logprobs)])
    lengths = list(map(len, logprobs))
    k = max(lengths, default=0)
    if k == 2:
        # Perhaps k = 1 without the sampled token: it is the second only if its rank is 2.
        ranks = numbers([each[t].rank for each, t in zip(logprobs, tokens, strict=False)])
        top2[(chosen < top1) & ((ranks > 2) | (np.isnan(ranks) & (min(lengths) == 1)))] = np.nan
    return Positions(chosen, top1, top2, k)


def _columns(dicts: Any, tokens: Sequence[int]) -> Iterator[FloatArray]:
    """The log-probabilities of the sampled tokens, and the two largest.

    One pass, which `benchmarks/adapters.py` compares with the plain definition.
    """
    chosen, top1, top2 = [], [], []
    for entries, token in zip(dicts, tokens, strict=True):
        chosen.append(entries[token].logprob)
        first = second = nan
        for entry in entries.values():
            value = entry.logprob
            if value <= second:
                continue
            if value <= first:
                second = value
            elif value == value:  # the first value, or a larger one; NaN is neither
                first, second = value, first
        top1.append(first)
        top2.append(second)
    return map(numbers, (chosen, top1, top2))


class _Entry(NamedTuple):
    """The fields of vLLM's Logprob that are read."""

    logprob: float
    rank: float


def _completed(logprobs: Any, tokens: Sequence[int]) -> list[dict[int, _Entry]]:
    """JSON as vLLM's own dicts, for as many positions as there are tokens.

    JSON has text for keys and dicts for entries. A sampled token without an entry gets NaN.
    """
    rows = logprobs if isinstance(logprobs, Sequence) else [logprobs]
    if not all(isinstance(row, dict | None) for row in rows):
        raise BadInputError(f"logprobs={logprobs!r:.80}: a dict at each position is needed")
    result = []
    for row, token in zip(rows, tokens, strict=False):
        entries = {token: _Entry(nan, nan)}
        for key, entry in (row or {}).items():
            own = str(key) == str(token)
            pair = numbers([field(entry, "logprob"), field(entry, "rank")])
            entries[token if own else key] = _Entry(*pair.tolist())
        result.append(entries)
    return result


def _read_flat(logprobs: Any, tokens: Sequence[int]) -> Positions:
    """FlatLogprobs: the sampled token, then ranks 1 to k with the sampled token once more."""
    values, ids = list_of(logprobs, "logprobs"), list_of(logprobs, "token_ids")
    starts, ends = list_of(logprobs, "start_indices"), list_of(logprobs, "end_indices")
    ranks = list_of(logprobs, "ranks")
    n = len(starts)
    width = len(values) // n if n else 0
    # With ranks 1 and 2 there, columns 1 and 2 are the two most probable: no search is needed.
    if (
        width >= 3
        and n == len(tokens)
        and starts == list(range(0, n * width, width))
        and ends == list(range(width, (n + 1) * width, width))
        and ids[::width] == list(tokens)
        and ranks[1::width] == [1] * n
        and ranks[2::width] == [2] * n
    ):
        chosen, first, second = (numbers(values[i::width]) for i in range(3))
        return Positions(chosen, first, second, width - 1)
    if not (len(values) == len(ids) == len(ranks) and _are_whole(starts + ends + ids)):
        raise BadInputError(
            f"FlatLogprobs with {len(values)} logprobs, {len(ids)} token_ids and {len(ranks)} "
            "ranks: whole numbers and one length are needed"
        )
    entries = list(map(_Entry, numbers(values).tolist(), numbers(ranks).tolist()))
    return _read_dicts(
        [
            dict(zip(ids[start:end], entries[start:end], strict=True))
            for start, end in zip(starts, ends, strict=False)
        ],
        tokens,
    )


class StreamReader:
    """Collects what `AsyncLLM.generate` yields.

    Parameters
    ----------
    delta : bool
        Whether each output holds only what is new (RequestOutputKind.DELTA); otherwise it holds
        the whole so far (CUMULATIVE, the default of vLLM). The outputs do not show which.
    skip_forced : bool
        Leave out the tokens that a grammar forced.

    Raises
    ------
    BadInputError
        For what is neither True nor False.
    """

    def __init__(self, *, delta: bool = False, skip_forced: bool = False) -> None:
        self._delta = check_flag("delta", delta)
        self._skip_forced = check_flag("skip_forced", skip_forced)
        self._head: dict[str, Any] = {}  # request_id, prompt_token_ids
        self._completions: dict[int, Any] = {}

    def add(self, output: Any) -> None:
        """Add the next RequestOutput. Raises BadInputError for anything else."""
        if not has(output, "outputs"):
            raise BadInputError(f"output={output!r:.80}: not a RequestOutput of vLLM")
        for name in ("request_id", "prompt_token_ids"):
            if field(output, name) is not None:
                self._head[name] = field(output, name)
        for part in list_of(output, "outputs"):
            index = count_of(part, "index") or 0
            if self._delta:
                whole = {"index": index, "text": "", "token_ids": [], "logprobs": []}
                _extend(self._completions.setdefault(index, whole), part)
            else:
                self._completions[index] = part

    def generations(self) -> list[Generation]:
        """One Generation per completion, in the order of the indices."""
        completions = [self._completions[i] for i in sorted(self._completions)]
        return generations_of({**self._head, "outputs": completions}, skip_forced=self._skip_forced)


def _extend(whole: dict[str, Any], part: Any) -> None:
    whole["text"] += text_of(part, "text") or ""
    whole["token_ids"] += field(part, "token_ids") or []
    whole["logprobs"] += field(part, "logprobs") or []
    whole["finish_reason"] = field(part, "finish_reason")
