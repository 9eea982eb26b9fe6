"""The bundled tiny model, run by onnxruntime on the CPU.

    model = BundledModel()
    generations = model.generate(["What is 12 + 30?"], ids=["a"])

Log-probabilities are always those of the raw distribution (temperature 1).
"""

import hashlib
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

import gatekeeper.bundled
from gatekeeper.arguments import as_path, check_count, check_finite
from gatekeeper.errors import BadInputError, MissingDependencyError
from gatekeeper.types import FloatArray, Generation, IntArray
from gatekeeper.types.values import check_text
from gatekeeper.wording import counted

__all__ = ["END", "BundledModel", "Decoding"]

TASK, ANSWER, END, PAD = "<|task|>", "<|answer|>", "<|end|>", "<|pad|>"


class BundledModel:
    """The bundled model: batched, greedy or sampled.

    Each item has its own seed, so that no output depends on the rest of its batch.

    Parameters
    ----------
    folder : Path
        With model.onnx and tokenizer.json.
    threads : int
        Threads of onnxruntime.
    batch_size : int
        Items decoded together.

    Raises
    ------
    MissingDependencyError
        Without the extra "demo".
    BadInputError
        For impossible numbers, and for a folder without the two files.
    """

    name = "gatekeeper-bundled"

    def __init__(
        self,
        folder: Path = gatekeeper.bundled.MODEL,
        *,
        threads: int = 2,
        batch_size: int = 32,
    ) -> None:
        check_count("threads", threads)
        self._batch_size = check_count("batch_size", batch_size)
        folder = as_path("folder", folder)
        for needed in (folder / "model.onnx", folder / "tokenizer.json"):
            if not needed.is_file():
                raise BadInputError(f"folder={str(folder)!r}: it has no file {needed.name}")
        try:
            import onnxruntime
        except ImportError as error:
            raise MissingDependencyError(
                "onnxruntime", extra="demo", needed_for="the bundled model"
            ) from error
        try:
            import tokenizers
        except ImportError as error:
            raise MissingDependencyError(
                "tokenizers", extra="demo", needed_for="the bundled model"
            ) from error
        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads = threads
        # Threads that spin while they wait would use the cores of the verifier.
        options.add_session_config_entry("session.intra_op.allow_spinning", "0")
        self._session = onnxruntime.InferenceSession(
            str(folder / "model.onnx"), options, providers=["CPUExecutionProvider"]
        )
        self.tokenizer = tokenizers.Tokenizer.from_file(str(folder / "tokenizer.json"))
        self._end = self.tokenizer.token_to_id(END)
        self._pad = self.tokenizer.token_to_id(PAD)
        # Keys and values of each layer, (B, H, S, D).
        self._past = {given.name: given.shape for given in self._session.get_inputs()[3:]}
        self.context_length = gatekeeper.bundled.CONTEXT_LENGTH

    def encode(self, prompt: str) -> list[int]:
        """Token ids of the prompt in the form of the training data."""
        ids: list[int] = self.tokenizer.encode(f"{TASK}{prompt}{ANSWER}").ids
        return ids

    def generate(
        self,
        prompts: Sequence[str],
        *,
        ids: Sequence[str],
        max_new_tokens: int = 200,
        temperature: float = 0.0,
        seed: int = 0,
        truncate: bool = False,
    ) -> list[Generation]:
        """One generation per prompt, in order.

        Parameters
        ----------
        prompts, ids : sequences of str
            Prompts and their ids, of equal length.
        max_new_tokens : int
            Most tokens of each output, at least 1.
        temperature : float
            0 is greedy; above 0, `seed` and the item's id determine the sample.
        seed : int
            At least 0.
        truncate : bool
            Whether a prompt that leaves no room for the output keeps its end; otherwise it is
            refused.

        Raises
        ------
        BadInputError
            For impossible arguments, and for a prompt that is too long.
        """
        for name, texts in (("prompts", prompts), ("ids", ids)):
            if isinstance(texts, str) or not isinstance(texts, Sequence):
                raise BadInputError(f"{name}={texts!r:.80}: give a list of strings")
            for text in texts:
                check_text(f"one of {name}", text)
        if len(ids) != len(prompts):
            raise BadInputError(
                f"{counted(len(prompts), 'prompt')} but {len(ids)} ids: give one id per prompt"
            )
        check_finite("temperature", temperature, least=0.0)
        check_count("seed", seed, least=0)
        check_count("max_new_tokens", max_new_tokens, most=self.context_length - 1)
        encoded = [self.encode(prompt) for prompt in prompts]
        limit = self.context_length - max_new_tokens
        if truncate:
            encoded = [tokens[-limit:] for tokens in encoded]
        for name, tokens in zip(ids, encoded, strict=True):
            if len(tokens) > limit:
                raise BadInputError(
                    f"prompt of id={name!r} has {counted(len(tokens), 'token')}; with "
                    f"{max_new_tokens=} the bundled model has room for {limit}: shorten the prompt "
                    "or lower that"
                )
        items = [
            Decoding(name, tokens, temperature=temperature, seed=seed)
            for name, tokens in zip(ids, encoded, strict=True)
        ]
        self.decode(items, max_new_tokens)
        return [self._generation(item) for item in items]

    def decode(self, items: Sequence["Decoding"], max_new_tokens: int) -> None:
        """Continue every item up to the end token, or by `max_new_tokens`.

        Prompt and new tokens together must fit into `context_length`.
        """
        for _ in self.steps(items, max_new_tokens):
            pass

    def steps(self, items: Sequence["Decoding"], max_new_tokens: int) -> Iterator[list["Decoding"]]:
        """`decode`, one token at a time.

        Yields
        ------
        list of Decoding
            Those that have a new token. An item whose `ended` is set gets no further one.
        """
        # Prompts of similar length need little padding.
        order = sorted(items, key=lambda item: len(item.prompt))
        for start in range(0, len(order), self._batch_size):
            yield from self._run(order[start : start + self._batch_size], max_new_tokens)

    def _run(self, items: list["Decoding"], max_new_tokens: int) -> Iterator[list["Decoding"]]:
        """Decode one batch; an item that has ended leaves it."""
        width = max(len(item.prompt) for item in items)
        tokens = np.full((len(items), width), self._pad, np.int64)
        mask = np.zeros((len(items), width), np.int64)
        for row, item in enumerate(items):
            tokens[row, width - len(item.prompt) :] = item.prompt
            mask[row, width - len(item.prompt) :] = 1
        positions = np.maximum(mask.cumsum(1) - 1, 0)
        past = [
            np.zeros((len(items), heads, 0, width), np.float32)
            for _, heads, _, width in self._past.values()
        ]
        active = items
        for _ in range(max_new_tokens):
            logits, *past = self._session.run(
                None,
                {
                    "input_ids": tokens,
                    "position_ids": positions,
                    "attention_mask": mask,
                    **dict(zip(self._past, past, strict=True)),
                },
            )
            logprobs = _log_softmax(logits.astype(np.float64))
            chosen = [item.choose(row) for item, row in zip(active, logprobs, strict=True)]
            for item, token in zip(active, chosen, strict=True):
                item.ended = token == self._end
            yield active
            going = np.array([not item.ended for item in active])
            if not going.any():
                return
            active = [item for item, go in zip(active, going, strict=True) if go]
            if not going.all():
                past = [part[going] for part in past]
            tokens = np.array(chosen, np.int64)[going, None]
            positions = positions[going, -1:] + 1
            mask = np.hstack((mask[going], np.ones_like(tokens)))

    def _generation(self, item: "Decoding") -> Generation:
        stopped = item.tokens[-1] == self._end
        top1, top2 = np.array([logprobs for _, logprobs in item.best]).T
        return Generation(
            id=item.id,
            text=self.tokenizer.decode(item.tokens),
            logprob=np.array(item.logprobs),
            top1=top1,
            top2=top2,
            prompt_tokens=len(item.prompt),
            output_tokens=len(item.tokens),
            model=self.name,
            finish_reason="stop" if stopped else "length",
            k_seen=2,
        )


class Decoding:
    """One prompt (token ids) and its continuation, with its own random generator.

    Parameters
    ----------
    id : str
        Determines the sample, together with `seed`.
    prompt : list of int
        Token ids.
    temperature : float
        0 is greedy.
    seed : int
        Seed of the sample.
    k : int
        Number of alternatives to keep at each position.

    Attributes
    ----------
    tokens, logprobs : list
        The new tokens and their log-probabilities.
    best : list
        The `k` most probable tokens at each position, in descending order, with theirs.
    ended : bool
        Set by the end token, or by a caller that needs no more tokens.
    """

    def __init__(
        self, id: str, prompt: Sequence[int], *, temperature: float, seed: int, k: int = 2
    ) -> None:
        self.id = id
        self.prompt = prompt
        self.tokens: list[int] = []
        self.logprobs: list[float] = []
        self.best: list[tuple[IntArray, FloatArray]] = []
        self.ended = False
        self._k = k
        self._temperature = temperature
        digest = hashlib.sha256(id.encode()).digest()
        self._rng = np.random.default_rng([seed, int.from_bytes(digest[:8])])

    def choose(self, logprobs: FloatArray) -> int:
        """Choose a token from log-probabilities of shape (V,) and keep what the signals need."""
        if self._temperature == 0:
            token = int(logprobs.argmax())
        else:
            # Gumbel's trick: the largest of log p / T + noise is a sample at temperature T.
            noise = self._rng.gumbel(size=logprobs.size)
            token = int((logprobs / self._temperature + noise).argmax())
        best = np.argpartition(logprobs, -self._k)[-self._k :]
        best = best[np.argsort(-logprobs[best])]
        self.tokens.append(token)
        self.logprobs.append(float(logprobs[token]))
        self.best.append((best, logprobs[best]))
        return token


def _log_softmax(logits: NDArray[Any]) -> FloatArray:
    """Natural-log probabilities over the last axis, float64."""
    shifted = logits - logits.max(-1, keepdims=True)
    result: FloatArray = shifted - np.log(np.exp(shifted).sum(-1, keepdims=True))
    return result
