"""Tokens and their log-probabilities as OpenAI's APIs have them."""

from __future__ import annotations

from gatekeeper.adapters.bundled import BundledModel
from gatekeeper.bundled.connections import Json
from gatekeeper.bundled.outputs import Piece

__all__ = ["arrays", "entries"]


def entries(model: BundledModel, piece: Piece) -> list[Json]:
    """{token, logprob, bytes, top_logprobs} for each token."""

    def entry(token: int, logprob: float) -> Json:
        raw = _bytes_of(model, token)
        return {
            "token": raw.decode("utf-8", "replace"),
            "logprob": logprob,
            "bytes": list(raw),
        }

    rows = zip(piece.tokens, piece.logprobs, piece.best, strict=True)
    return [
        {**entry(token, logprob), "top_logprobs": [entry(*pair) for pair in best]}
        for token, logprob, best in rows
    ]


def arrays(model: BundledModel, piece: Piece) -> Json:
    """For a text completion: parallel arrays. A piece of a character is named by its bytes."""

    def name(token: int) -> str:
        raw = _bytes_of(model, token)
        try:
            return raw.decode()
        except UnicodeDecodeError:
            return "bytes:" + "".join(f"\\x{byte:02x}" for byte in raw)

    decode = model.tokenizer.decode
    lengths = [len(decode([*piece.before, *piece.tokens[:i]])) for i in range(len(piece.tokens))]
    return {
        "tokens": [name(token) for token in piece.tokens],
        "token_logprobs": piece.logprobs,
        "top_logprobs": [{name(token): p for token, p in best} for best in piece.best],
        "text_offset": lengths,
    }


def _bytes_of(model: BundledModel, token: int) -> bytes:
    """The bytes of a token; of a special token, of its name."""
    return bytes(_BYTE_OF[c] for c in model.tokenizer.id_to_token(token) or "")


def _byte_level() -> dict[str, int]:
    """From the visible characters of byte-level BPE to the bytes that they stand for."""
    visible = [*range(33, 127), *range(161, 173), *range(174, 256)]
    hidden = [byte for byte in range(256) if byte not in visible]
    return {chr(b): b for b in visible} | {chr(256 + i): b for i, b in enumerate(hidden)}


_BYTE_OF = _byte_level()
