"""From a model's scores over the whole vocabulary to log-probabilities of the chosen tokens."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from math import log
from operator import index
from typing import Any

import numpy as np

from gatekeeper.arguments import check_count
from gatekeeper.errors import BadInputError
from gatekeeper.types.values import FloatArray, as_floats
from gatekeeper.wording import counted

__all__ = ["log_probabilities_of_scores"]

BEAMS = "beam search keeps sums over whole beams, not scores of tokens: generate with num_beams=1"


def log_probabilities_of_scores(
    result: Any, sequences: Any, *, row: int, end: int | Iterable[int] | None
) -> tuple[FloatArray, FloatArray, FloatArray, int]:
    """The arguments of `Generation.from_scores` as arrays.

    Returns
    -------
    logprob, top1, top2 : arrays of shape (L,)
        See Generation.
    vocabulary : int
        Its size; 0 for no token.

    Raises
    ------
    BadInputError
        For shapes that do not fit each other, and for beam search.
    """
    scores, sequences = _parts(result, sequences)
    try:
        ids = np.asarray(_on_host(sequences))
    except ValueError:  # rows of several lengths
        raise BadInputError(f"sequences={sequences!r:.80}: rows of one length are needed") from None
    ids = ids[None] if ids.ndim == 1 else ids
    if ids.ndim != 2 or ids.dtype.kind not in "iu":
        raise BadInputError(
            f"sequences of shape {ids.shape} and type {ids.dtype}: token ids are needed, one row "
            "per output"
        )
    row = check_count("row", row, least=0)
    if row >= len(ids):
        raise BadInputError(f"row={row}: sequences has {counted(len(ids), 'row')}, from 0")
    if len(scores) > ids.shape[1]:
        raise BadInputError(
            f"scores of {counted(len(scores), 'step')} and sequences of "
            f"{counted(ids.shape[1], 'token')}: give those of one call"
        )
    if end is None and len(ids) > 1:
        raise BadInputError(
            f"sequences has {counted(len(ids), 'row')}: give end=tokenizer.eos_token_id, so that "
            "the padding after an output's end does not count, or end=() where nothing ends it"
        )
    tokens: list[int] = ids[row, ids.shape[1] - len(scores) :].tolist()
    tokens = tokens[: _length(tokens, end)]
    rows = [
        _position(_row_of(step, row, len(ids)), token)
        for step, token in zip(scores, tokens, strict=False)
    ]
    sizes = {size for *_, size in rows}
    table = np.array([values for *values, _ in rows], dtype=np.float64).reshape(-1, 3)
    return table[:, 0].copy(), table[:, 1].copy(), table[:, 2].copy(), max(sizes, default=0)


def _parts(result: Any, sequences: Any) -> tuple[Sequence[Any], Any]:
    """The scores of each step and the token ids."""
    named = result if isinstance(result, dict) or hasattr(result, "sequences") else None
    if named is None:
        if sequences is None:
            raise BadInputError(
                "sequences=None: give the token ids too, or the whole result of generate(..., "
                "return_dict_in_generate=True, output_logits=True)"
            )
        return _steps(result), sequences

    def get(name: str) -> Any:
        return named.get(name) if isinstance(named, dict) else getattr(named, name, None)

    if get("beam_indices") is not None or get("sequences_scores") is not None:
        raise BadInputError(f"result of beam search: {BEAMS}")
    scores = get("logits") if get("logits") is not None else get("scores")
    if scores is None or get("sequences") is None:
        raise BadInputError(
            "result has no scores: call generate(..., return_dict_in_generate=True, "
            "output_logits=True)"
        )
    return _steps(scores), get("sequences")


def _steps(scores: Any) -> Sequence[Any]:
    if not hasattr(scores, "__len__") or not hasattr(scores, "__getitem__"):
        raise BadInputError(f"scores={scores!r:.80}: one array (rows, vocabulary) per step")
    found: Sequence[Any] = scores
    return found


def _length(tokens: list[int], end: int | Iterable[int] | None) -> int:
    """How many tokens there are, the one that ends the output included."""
    try:
        listed = [] if end is None else list(end) if isinstance(end, Iterable) else [end]
        ends = {index(each) for each in listed}
    except TypeError:
        raise BadInputError(f"end={end!r:.80}: give a token id, or a list of them") from None
    return next((i + 1 for i, token in enumerate(tokens) if token in ends), len(tokens))


def _row_of(step: Any, row: int, rows: int) -> FloatArray:
    """One output's scores at one step, (V,)."""
    shape = tuple(np.shape(step))
    if len(shape) == 2:
        if shape[0] != rows:
            raise BadInputError(
                f"scores has {counted(shape[0], 'row')} and sequences {rows}: give those of one "
                f"call; {BEAMS}"
            )
        step = step[row]
    elif len(shape) != 1 or rows != 1:
        raise BadInputError(
            f"scores has a step of shape {shape}: ({rows}, vocabulary) is needed at each step"
        )
    return as_floats("scores", _on_host(step))


def _on_host(value: Any) -> Any:
    """A tensor of torch as an array, wherever it is and whatever its type; others as they are."""
    if hasattr(value, "detach"):
        value = value.detach().cpu()
        if value.is_floating_point():
            value = value.double()  # numpy has no bfloat16
        return value.numpy()
    return value


def _position(scores: FloatArray, token: int) -> tuple[float, float, float, int]:
    """ln P of the token and of the two most probable ones; -inf for a token that is masked."""
    if not 0 <= token < scores.size:
        raise BadInputError(
            f"token {token} in sequences: scores has {counted(scores.size, 'token')}, from 0"
        )
    best = int(scores.argmax())
    first = float(scores[best])
    if not np.isfinite(first):  # NaN, or all tokens are masked
        return np.nan, np.nan, np.nan, scores.size
    total = first + log(float(np.exp(scores - first).sum()))
    others = np.delete(scores, best)
    second = float(others.max()) if others.size else -np.inf
    return float(scores[token]) - total, first - total, second - total, scores.size
