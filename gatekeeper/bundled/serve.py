"""The bundled model behind OpenAI's HTTP API, on loopback, for tests of clients and harnesses.

    python -m gatekeeper.bundled.serve --port 8011

`GET /v1/models`, `POST /v1/chat/completions` and `POST /v1/completions`, with log-probabilities:
of the raw distribution and with the end token, as vLLM returns them. Other parameters (tools,
penalties, keys) are ignored, and streams are refused. A chat prompt is the last user message; a
prompt that exceeds the model's context of 512 tokens keeps its end. The same request with the same
`seed` gets the same answer. `connections` handles broken, slow and many clients.
"""

from __future__ import annotations

import argparse
import secrets
import sys
import time
from collections.abc import Mapping, Sequence
from http import HTTPStatus
from typing import Any, NamedTuple

from gatekeeper.adapters.bundled import END, BundledModel, Decoding
from gatekeeper.bundled.connections import Json, JsonHandler, JsonServer, RefusalError
from gatekeeper.errors import GatekeeperError

__all__ = ["Server", "main"]

MOST_CHOICES = 64
MOST_OUTPUTS = 256  # of a request
MOST_STOPS = 16
MOST_CHARACTERS = 1 << 15  # of a prompt, from its end: more than any context's worth of tokens
HOTTEST = 100.0
COLDEST = 1e-6  # a temperature below is 0
MOST_ALTERNATIVES = 20
DEFAULT_TOKENS = 200


class Server(JsonServer):
    """Listens as soon as it is made; `serve_forever` answers.

    Parameters
    ----------
    port : int
        0 picks a free one.
    refuse_logprobs : bool
        Answer requests for log-probabilities with HTTP 400, as models without them do.
    **limits
        Those of `JsonServer`.
    """

    def __init__(self, port: int = 0, *, refuse_logprobs: bool = False, **limits: Any) -> None:
        self.model = BundledModel(threads=1)  # each request has its own thread
        self.refuse_logprobs = refuse_logprobs
        super().__init__(port, _Handler, **limits)

    @property
    def base_url(self) -> str:
        return f"http://127.0.0.1:{self.server_address[1]}/v1"


class _Handler(JsonHandler):
    server: Server

    def get(self, path: str) -> Json:
        if path != "/v1/models":
            raise _no_such(path)
        model = {"id": BundledModel.name, "object": "model", "created": 0, "owned_by": "bundled"}
        return {"object": "list", "data": [model]}

    def post(self, path: str, request: Json) -> Json:
        routes = {"/v1/chat/completions": _chat, "/v1/completions": _completions}
        if path not in routes:
            raise _no_such(path)
        if request.get("model") != BundledModel.name:
            wanted = f"The model {request.get('model')!r:.80} does not exist"
            raise RefusalError(f"{wanted}: here is {BundledModel.name}", HTTPStatus.NOT_FOUND)
        if request.get("stream"):
            raise RefusalError("stream=true: this server answers in one piece")
        if self.server.refuse_logprobs and request.get("logprobs") not in (None, False):
            raise RefusalError("You are not allowed to request logprobs from this model")
        return routes[path](self.server.model, request)


def _no_such(path: str) -> RefusalError:
    return RefusalError(f"no such path: {path:.80}", HTTPStatus.NOT_FOUND)


def _chat(model: BundledModel, request: Json) -> Json:
    wants = bool(request.get("logprobs"))
    if request.get("top_logprobs") is not None and not wants:
        raise RefusalError("top_logprobs needs logprobs=true")
    k = _number(request, "top_logprobs", 0, most=MOST_ALTERNATIVES)
    prompt = model.encode(_last_user_message(request))
    newer = request.get("max_completion_tokens") is not None
    limit = "max_completion_tokens" if newer else "max_tokens"
    outputs = _outputs(model, request, [prompt], k=k, limit=limit)

    def choice(index: int, output: _Output) -> Json:
        return {
            "index": index,
            "message": {"role": "assistant", "content": output.text, "refusal": None},
            "logprobs": {"content": _entries(model, output), "refusal": None} if wants else None,
            "finish_reason": output.finish_reason,
        }

    choices = [choice(i, output) for i, output in enumerate(outputs)]
    return _response("chat.completion", choices, outputs)


def _completions(model: BundledModel, request: Json) -> Json:
    if request.get("echo"):
        raise RefusalError("echo=true: this server does not give the prompt back")
    wants = request.get("logprobs") is not None
    k = _number(request, "logprobs", 0, most=MOST_ALTERNATIVES)
    prompts = _raw_prompts(model, request.get("prompt"))
    outputs = _outputs(model, request, prompts, k=k, limit="max_tokens")
    choices = [
        {
            "index": i,
            "text": output.text,
            "logprobs": _arrays(model, output) if wants else None,
            "finish_reason": output.finish_reason,
        }
        for i, output in enumerate(outputs)
    ]
    return _response("text_completion", choices, outputs)


def _response(kind: str, choices: list[Json], outputs: Sequence[_Output]) -> Json:
    prompt = sum(output.prompt_tokens for output in outputs)
    completion = sum(len(output.tokens) for output in outputs)
    return {
        "id": f"{'chatcmpl' if kind.startswith('chat') else 'cmpl'}-{secrets.token_hex(12)}",
        "object": kind,
        "created": int(time.time()),
        "model": BundledModel.name,
        "choices": choices,
        "usage": {
            "prompt_tokens": prompt,
            "completion_tokens": completion,
            "total_tokens": prompt + completion,
        },
    }


class _Output(NamedTuple):
    prompt_tokens: int  # 0 for the second and later outputs of one prompt
    text: str
    tokens: Sequence[int]
    logprobs: Sequence[float]
    best: Sequence[Sequence[tuple[int, float]]]  # token and log-probability, in descending order
    finish_reason: str


def _outputs(
    model: BundledModel, request: Json, prompts: Sequence[Sequence[int]], *, k: int, limit: str
) -> list[_Output]:
    """`n` outputs for each prompt, in order."""
    n = _number(request, "n", 1, least=1, most=MOST_CHOICES)
    asked = _number(request, limit, DEFAULT_TOKENS, least=1)
    temperature = request.get("temperature", 1.0)
    temperature = 1.0 if temperature is None else temperature
    if not isinstance(temperature, int | float) or not 0 <= temperature <= HOTTEST:
        raise RefusalError(
            f"temperature={temperature!r:.80}: a number from 0 to {HOTTEST:g} is needed"
        )
    temperature = float(temperature) if temperature >= COLDEST else 0.0
    seed = request.get("seed")
    seed = secrets.randbits(32) if seed is None else _number(request, "seed", 0)
    stops = request.get("stop") or []
    stops = [stops] if isinstance(stops, str) else stops
    if not isinstance(stops, list) or not all(stop and isinstance(stop, str) for stop in stops):
        raise RefusalError(f"stop={stops!r:.80}: a string or a list of them is needed")
    if len(stops) > MOST_STOPS:
        raise RefusalError(f"stop: {len(stops)} strings; the most is {MOST_STOPS}")
    if len(prompts) * n > MOST_OUTPUTS:
        raise RefusalError(
            f"prompt: {len(prompts)} prompts, n={n}; the most is {MOST_OUTPUTS} outputs"
        )
    outputs = []
    for prompt in prompts:
        # The output gets up to half of the context, and the prompt the rest.
        room = model.context_length - min(asked, model.context_length // 2)
        kept = prompt[-room:]
        items = [
            Decoding(f"{i}", kept, temperature=temperature, seed=seed, k=max(k, 1))
            for i in range(n)
        ]
        model.decode(items, min(asked, model.context_length - len(kept)))
        outputs += [
            _output(model, item, k, stops, 0 if i else len(kept)) for i, item in enumerate(items)
        ]
    return outputs


def _output(
    model: BundledModel, item: Decoding, k: int, stops: Sequence[str], prompt_tokens: int
) -> _Output:
    """The text up to the first stop string, and the tokens up to the one that completes it."""
    decode = model.tokenizer.decode
    text, length = decode(item.tokens), len(item.tokens)
    reason = "stop" if item.tokens[-1] == model.tokenizer.token_to_id(END) else "length"
    ends = [text.find(stop) for stop in stops if stop in text]
    if ends:
        shorter = (n for n in range(1, length) if any(s in decode(item.tokens[:n]) for s in stops))
        text, length, reason = text[: min(ends)], next(shorter, length), "stop"
    best = [
        [(int(token), float(logprob)) for token, logprob in zip(*pair, strict=True)][:k]
        for pair in item.best[:length]
    ]
    return _Output(prompt_tokens, text, item.tokens[:length], item.logprobs[:length], best, reason)


def _entries(model: BundledModel, output: _Output) -> list[Json]:
    """For a chat completion: {token, logprob, bytes, top_logprobs} for each token."""

    def entry(token: int, logprob: float) -> Json:
        raw = _bytes_of(model, token)
        return {
            "token": raw.decode("utf-8", "replace"),
            "logprob": logprob,
            "bytes": list(raw),
        }

    rows = zip(output.tokens, output.logprobs, output.best, strict=True)
    return [
        {**entry(token, logprob), "top_logprobs": [entry(*pair) for pair in best]}
        for token, logprob, best in rows
    ]


def _arrays(model: BundledModel, output: _Output) -> Json:
    """For a text completion: parallel arrays. A piece of a character is named by its bytes."""

    def name(token: int) -> str:
        raw = _bytes_of(model, token)
        try:
            return raw.decode()
        except UnicodeDecodeError:
            return "bytes:" + "".join(f"\\x{byte:02x}" for byte in raw)

    offsets = [len(model.tokenizer.decode(output.tokens[:i])) for i in range(len(output.tokens))]
    return {
        "tokens": [name(token) for token in output.tokens],
        "token_logprobs": output.logprobs,
        "top_logprobs": [{name(token): p for token, p in best} for best in output.best],
        "text_offset": offsets,
    }


def _last_user_message(request: Json) -> str:
    messages = request.get("messages")
    if isinstance(messages, list):
        for message in reversed(messages):
            if isinstance(message, dict) and message.get("role") == "user":
                content = message.get("content")
                if isinstance(content, list):
                    parts = [part for part in content if isinstance(part, dict)]
                    texts = [part.get("text", "") for part in parts]
                    content = "\n".join(text for text in texts if isinstance(text, str))
                if isinstance(content, str):
                    return _end(content, "messages")
    raise RefusalError("messages: a list with at least one user message of text is needed")


def _raw_prompts(model: BundledModel, prompt: Any) -> list[Sequence[int]]:
    """Text or token ids, one prompt or a list of them; text gets no template."""
    prompts = prompt if isinstance(prompt, list) and prompt else [prompt]
    if all(type(each) is int for each in prompts):
        prompts = [prompts]
    size = model.tokenizer.get_vocab_size()
    tokens: list[Sequence[int]] = []
    for each in prompts:
        text = isinstance(each, str)
        found = model.tokenizer.encode(_end(each, "prompt")).ids if text else each
        if not isinstance(found, list) or not all(type(t) is int and 0 <= t < size for t in found):
            raise RefusalError(f"prompt={prompt!r:.80}: text, token ids, or a list of either")
        if not found:
            raise RefusalError("prompt: at least one token is needed")
        tokens.append(found)
    return tokens


def _end(text: str, name: str) -> str:
    """The end of a text that the model can see: the tokenizer blocks all other threads."""
    try:
        text.encode()
    except UnicodeEncodeError as e:
        raise RefusalError(f"{name}: no valid text: {e.reason} at character {e.start}") from None
    return text[-MOST_CHARACTERS:]


def _number(
    request: Mapping[str, Any], name: str, default: int, *, least: int = 0, most: int | None = None
) -> int:
    """A whole number of the request, `default` where it is absent or null."""
    value = request.get(name)
    if value is None or value is False or value is True:
        return default
    if not isinstance(value, int) or value < least or (most is not None and value > most):
        bounds = f"at least {least}" if most is None else f"from {least} to {most}"
        raise RefusalError(f"{name}={value!r:.80}: a whole number {bounds} is needed")
    return value


def _bytes_of(model: BundledModel, token: int) -> bytes:
    """The bytes of a token; of a special token, of its name."""
    return bytes(_BYTE_OF[c] for c in model.tokenizer.id_to_token(token) or "")


def _byte_level() -> dict[str, int]:
    """From the visible characters of byte-level BPE to the bytes that they stand for."""
    visible = [*range(33, 127), *range(161, 173), *range(174, 256)]
    hidden = [byte for byte in range(256) if byte not in visible]
    return {chr(b): b for b in visible} | {chr(256 + i): b for i, b in enumerate(hidden)}


_BYTE_OF = _byte_level()


def main(argv: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(
        prog="python -m gatekeeper.bundled.serve",
        description="The bundled model behind OpenAI's HTTP API, on 127.0.0.1.",
    )
    parser.add_argument("--port", type=int, default=8011, help="0 picks a free one (default: 8011)")
    parser.add_argument(
        "--refuse-logprobs",
        action="store_true",
        help="refuse requests for log-probabilities, as some models do",
    )
    args = parser.parse_args(argv)
    try:
        server = Server(args.port, refuse_logprobs=args.refuse_logprobs)
    except (OSError, OverflowError) as e:
        print(f"port={args.port}: the server cannot listen on it: {e}", file=sys.stderr)
        return 2
    except GatekeeperError as e:
        print(e, file=sys.stderr)
        return 2
    with server:
        print(f"serving on {server.base_url}", flush=True)
        try:
            server.serve_forever()
        except KeyboardInterrupt:
            return 130
    return 0


if __name__ == "__main__":
    sys.exit(main())
