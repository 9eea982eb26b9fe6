"""What a request asks of the model, and the outputs: each at once, or in pieces as they come."""

from __future__ import annotations

import secrets
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from gatekeeper.adapters.bundled import END, BundledModel, Decoding
from gatekeeper.bundled.connections import Json, RefusalError
from gatekeeper.bundled.fields import number
from gatekeeper.wording import counted

__all__ = ["MOST_ALTERNATIVES", "Asked", "Piece", "Usage", "asked_of", "outputs", "pieces"]

MOST_CHOICES = 64
MOST_OUTPUTS = 256  # of a request
MOST_STOPS = 16
HOTTEST = 100.0
COLDEST = 1e-6  # a temperature below is 0
MOST_ALTERNATIVES = 20
DEFAULT_TOKENS = 200


class Asked(NamedTuple):
    """What a request asks for: `n` outputs for each of the prompts."""

    prompts: Sequence[Sequence[int]]
    n: int
    tokens: int  # of each output, at most
    temperature: float
    seed: int
    stops: Sequence[str]
    k: int  # alternatives at a position


class Piece(NamedTuple):
    """The next part of an output, or all of it."""

    choice: int  # its index
    text: str
    tokens: Sequence[int]
    logprobs: Sequence[float]
    best: Sequence[Sequence[tuple[int, float]]]  # token and log-probability, in descending order
    before: Sequence[int]  # tokens of the parts before
    prompt_tokens: int  # with the last part of the first output of each prompt, else 0
    finish_reason: str | None  # of the last part


class Usage:
    """Counts the tokens of the pieces that it is shown."""

    def __init__(self) -> None:
        self.prompt = self.completion = 0

    def add(self, piece: Piece) -> None:
        self.prompt += piece.prompt_tokens
        self.completion += len(piece.tokens)

    def json(self) -> Json:
        """The usage as chat completions and text completions have it."""
        return {
            "prompt_tokens": self.prompt,
            "completion_tokens": self.completion,
            "total_tokens": self.prompt + self.completion,
        }


def asked_of(request: Json, prompts: Sequence[Sequence[int]], *, k: int, limit: str) -> Asked:
    """Read the settings of a request; `limit` is its field for the length of an output.

    Raises
    ------
    RefusalError
        For a setting that cannot be.
    """
    n = number(request, "n", 1, least=1, most=MOST_CHOICES)
    tokens = number(request, limit, DEFAULT_TOKENS, least=1)
    temperature = request.get("temperature", 1.0)
    temperature = 1.0 if temperature is None else temperature
    if not isinstance(temperature, int | float) or not 0 <= temperature <= HOTTEST:
        raise RefusalError(
            f"temperature={temperature!r:.80}: a number from 0 to {HOTTEST:g} is needed"
        )
    temperature = float(temperature) if temperature >= COLDEST else 0.0
    seed = request.get("seed")
    seed = secrets.randbits(32) if seed is None else number(request, "seed", 0)
    stops = request.get("stop") or []
    stops = [stops] if isinstance(stops, str) else stops
    if not isinstance(stops, list) or not all(stop and isinstance(stop, str) for stop in stops):
        raise RefusalError(f"stop={stops!r:.80}: a string or a list of them is needed")
    if len(stops) > MOST_STOPS:
        raise RefusalError(f"stop: {len(stops)} strings; the most is {MOST_STOPS}")
    if len(prompts) * n > MOST_OUTPUTS:
        raise RefusalError(
            f"prompt: {counted(len(prompts), 'prompt')}, n={n}; the most is "
            f"{counted(MOST_OUTPUTS, 'output')}"
        )
    return Asked(prompts, n, tokens, temperature, seed, stops, k)


def outputs(model: BundledModel, asked: Asked) -> list[Piece]:
    """`n` whole outputs for each prompt, in order."""
    found = []
    for growing, most in _by_prompt(model, asked):
        for active in model.steps([one.item for one in growing.values()], most):
            if asked.stops:
                for item in active:
                    growing[item.id].end_at_stop()
        found += [one.take() for one in growing.values()]
    return [piece for piece in found if piece is not None]


def pieces(model: BundledModel, asked: Asked) -> Iterator[Piece]:
    """The outputs in pieces, as the model goes on; the outputs of one prompt take turns."""
    for growing, most in _by_prompt(model, asked):
        for active in model.steps([one.item for one in growing.values()], most):
            for item in active:
                if (piece := growing[item.id].take()) is not None:
                    yield piece


def _by_prompt(model: BundledModel, asked: Asked) -> Iterator[tuple[dict[str, _Growing], int]]:
    """For each prompt its outputs, none of them begun, and how many tokens they may have."""
    k = max(asked.k, 1)
    for at, prompt in enumerate(asked.prompts):
        # The output gets up to half of the context, and the prompt the rest.
        kept = prompt[-(model.context_length - min(asked.tokens, model.context_length // 2)) :]
        most = min(asked.tokens, model.context_length - len(kept))
        growing = {}
        for i in range(asked.n):
            item = Decoding(f"{i}", kept, temperature=asked.temperature, seed=asked.seed, k=k)
            growing[item.id] = _Growing(model, item, asked, index=at * asked.n + i, most=most)
        yield growing, most


class _Growing:
    """An output that grows, and how much of it has been taken."""

    def __init__(
        self, model: BundledModel, item: Decoding, asked: Asked, *, index: int, most: int
    ) -> None:
        self.item = item
        self._tokenizer = model.tokenizer
        self._end = model.tokenizer.token_to_id(END)
        self._asked, self._index, self._most = asked, index, most
        self._text = self._tokens = 0  # taken: characters, tokens

    def end_at_stop(self) -> tuple[str, bool]:
        """The text up to the first stop string, and whether there is one: then the item ends."""
        text: str = self._tokenizer.decode(self.item.tokens)
        ends = [text.find(stop) for stop in self._asked.stops if stop in text]
        if not ends:
            return text, False
        self.item.ended = True
        return text[: min(ends)], True

    def take(self) -> Piece | None:
        """What is new; None if nothing is certain to be in the output.

        The tokens go up to the one that completes a stop string.
        """
        item = self.item
        text, stopped = self.end_at_stop()
        reason = None
        if stopped or item.tokens[-1] == self._end:
            reason = "stop"
        elif len(item.tokens) == self._most:
            reason = "length"
        else:
            text = text[: _certain(text, self._asked.stops)]
            if len(text) <= self._text:
                return None
        new = slice(self._tokens, len(item.tokens))
        k = self._asked.k
        piece = Piece(
            choice=self._index,
            text=text[self._text :],
            tokens=item.tokens[new],
            logprobs=item.logprobs[new],
            best=[
                [(int(token), float(logprob)) for token, logprob in zip(*pair, strict=True)][:k]
                for pair in item.best[new]
            ],
            before=item.tokens[: self._tokens],
            prompt_tokens=len(item.prompt) if reason and self._index % self._asked.n == 0 else 0,
            finish_reason=reason,
        )
        self._text, self._tokens = len(text), len(item.tokens)
        return piece


def _certain(text: str, stops: Sequence[str]) -> int:
    """How many characters no later token can change: no part of a character or of a stop string."""
    held = len(text) - len(text.rstrip("\ufffd"))
    for stop in stops:
        longest = range(min(len(stop) - 1, len(text)), held, -1)
        held = next((n for n in longest if text.endswith(stop[:n])), held)
    return len(text) - held
