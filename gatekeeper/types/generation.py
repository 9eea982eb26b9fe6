"""One output of a model."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Self

import numpy as np
from msgspec import Struct
from msgspec.structs import force_setattr

from gatekeeper.arguments import check_count
from gatekeeper.types.as_dataclass import as_dataclass
from gatekeeper.types.scores import log_probabilities_of_scores
from gatekeeper.types.values import (
    MASKED,
    MOST_TOKENS,
    NO_POSITIONS,
    FloatArray,
    as_features,
    as_floats,
    as_log_probabilities,
    check_text,
)

__all__ = ["Generation"]

_FLOAT64 = np.dtype(np.float64)

# Finish reasons of an output that broke off: in the Responses API; OpenRouter's; vLLM's.
_BROKEN_OFF = {"failed", "cancelled", "error", "abort"}


@as_dataclass
class Generation(Struct, frozen=True, eq=False):
    """One model output with its token log-probabilities, as far as known.

    Attributes
    ----------
    id, text
        Id and text of the output.
    logprob, top1, top2
        Shape (L,), natural log, float64, NaN where the provider gave none: the chosen token's
        log-probability and the largest and second largest at the position, whether or not the
        chosen token is one of them. L = 0 means no log-probabilities at all.
    prompt_tokens, output_tokens
        As the provider counted them.
    model, finish_reason
        As the provider named them.
    k_seen
        The largest number of alternatives seen at a position.
    features
        Further numbers that may help to predict errors, by name; finite. None and NaN stand for an
        absent value and are left out.
    """

    id: str
    text: str
    logprob: FloatArray = NO_POSITIONS
    top1: FloatArray = NO_POSITIONS
    top2: FloatArray = NO_POSITIONS
    prompt_tokens: int | None = None
    output_tokens: int | None = None
    model: str | None = None
    finish_reason: str | None = None
    k_seen: int = 0
    features: Mapping[str, float] = {}

    def __post_init__(self) -> None:
        """Raises BadInputError for values that are not numbers, or that the log could not store."""
        logprob, top1, top2 = self.logprob, self.top1, self.top2
        # Nearly always they are such arrays, and each output comes through here.
        if not (
            type(logprob) is type(top1) is type(top2) is np.ndarray
            and logprob.dtype is top1.dtype is top2.dtype is _FLOAT64
        ):
            for name in ("logprob", "top1", "top2"):
                force_setattr(self, name, as_floats(name, getattr(self, name)))
        if not type(self.id) is type(self.text) is str:
            check_text("id", self.id)
            check_text("text", self.text)
        if self.model is not None:
            check_text("model", self.model)
        if self.finish_reason is not None:
            check_text("finish_reason", self.finish_reason)
        prompt, output, k = self.prompt_tokens, self.output_tokens, self.k_seen
        if not (prompt is None or (type(prompt) is int and 0 <= prompt <= MOST_TOKENS)):
            self._set_count("prompt_tokens", prompt)
        if not (output is None or (type(output) is int and 0 <= output <= MOST_TOKENS)):
            self._set_count("output_tokens", output)
        if not (type(k) is int and 0 <= k <= MOST_TOKENS):
            self._set_count("k_seen", k)
        if type(self.features) is not dict or self.features:
            force_setattr(self, "features", as_features(self.features))

    def _set_count(self, name: str, value: object) -> None:
        force_setattr(self, name, check_count(name, value, least=0, most=MOST_TOKENS))

    @classmethod
    def from_logprobs(cls, text: str, logprobs: Any, *, id: str = "", **more: Any) -> Self:
        """An output with the log-probabilities of the chosen tokens only: h1 alone.

        Parameters
        ----------
        text
            Text of the output.
        logprobs
            One natural-log probability per token, at most 0; None or NaN where there is none.
        id
            Id of the output, where the gate is not given one.
        **more
            Other fields of a Generation.

        Raises
        ------
        BadInputError
            For a value above 0, which is a probability or a logit, and for one that is not a
            number.
        """
        logprob = as_log_probabilities("logprobs", logprobs)
        unknown = np.full(logprob.shape, np.nan)
        return cls(id, text, logprob, unknown, unknown, **more)

    @classmethod
    def from_scores(
        cls,
        text: str,
        scores: Any,
        sequences: Any = None,
        *,
        row: int = 0,
        end: int | Iterable[int] | None = None,
        id: str = "",
        **more: Any,
    ) -> Self:
        """An output from a model's scores over the whole vocabulary, as transformers gives them.

            out = model.generate(**inputs, return_dict_in_generate=True, output_logits=True)
            text = tokenizer.decode(out.sequences[0, inputs.input_ids.shape[1]:])
            Generation.from_scores(text, out, end=tokenizer.eos_token_id, id="q1")

        Any constant may be added to the scores of a step: ln P is the score minus the logarithm of
        the sum of exp. Scores of -inf are tokens that a processor masked. Of a result with both,
        `logits` are taken, the raw distribution, and not `scores`, which are after the temperature,
        top-k and penalties.

        Parameters
        ----------
        text
            Text of the output.
        scores
            The result of `generate`, an object or a dict with `sequences` and with `logits` or
            `scores`; or the scores alone, one array of shape (rows, V) for each new token (or (V,),
            of a single output): tensors of torch, or anything that numpy takes.
        sequences
            With scores alone: token ids, shape (rows, tokens), or (tokens,). The last are the new
            ones, as many as there are scores.
        row
            Row of the output in its batch.
        end
            The token that ends an output, or several; what follows it is padding. Needed for a
            batch of several rows.
        id
            Id of the output, where the gate is not given one.
        **more
            Other fields of a Generation.

        Raises
        ------
        BadInputError
            For shapes that do not fit each other, and for beam search, whose scores are sums over
            beams.

        References
        ----------
        transformers 5, generation/utils.py: GenerateDecoderOnlyOutput.
        """
        logprob, top1, top2, size = log_probabilities_of_scores(scores, sequences, row=row, end=end)
        known = {"k_seen": size, "output_tokens": logprob.size} | more
        return cls(id, text, logprob, top1, top2, **known)

    @property
    def broke_off(self) -> bool:
        """Whether the server stopped in the middle: this is not the whole answer of the model."""
        return self.finish_reason in _BROKEN_OFF

    @property
    def token_coverage(self) -> float:
        """Share of the output's positions that have a margin, in [0, 1]; 0 for no output."""
        n = max(self.logprob.size, self.output_tokens or 0)
        top1, top2 = self.top1, self.top2
        if not top1.size:
            return 0.0
        # argmin finds a NaN first, which fails the comparison. Nearly every output is complete.
        if n and top1.item(top1.argmin()) > MASKED and top2.item(top2.argmin()) > MASKED:
            return top1.size / n
        has_both = ~(np.isnan(top1) | np.isnan(top2))
        has_margin = has_both & (np.fmax(top1, top2) > MASKED)
        return int(has_margin.sum()) / n if n else 0.0
