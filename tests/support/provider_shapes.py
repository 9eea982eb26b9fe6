"""The bundled model's answers in the shapes of other providers, and a server that speaks them.

Shapes follow the providers' own types: the packages ollama 0.6.3, anthropic 2.12 and google-genai
3.4, and the README of llama.cpp's server. Where a test names a package, that is what it stands
in for.
"""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from math import exp
from typing import Any

from gatekeeper.adapters.bundled import BundledModel, Decoding

Json = dict[str, Any]
K = 5


class Answer:
    """The model's greedy answer to a prompt: its text, and entries as OpenAI's API has them."""

    def __init__(self, model: BundledModel, prompt: str, *, k: int = K) -> None:
        item = Decoding("0", model.encode(prompt), temperature=0.0, seed=0, k=max(k, 1))
        model.decode([item], 200)
        self.text: str = model.tokenizer.decode(item.tokens)
        self.prompt_tokens, self.tokens = len(item.prompt), len(item.tokens)

        def entry(token: int, logprob: float) -> Json:
            text = model.tokenizer.decode([token])
            return {"token": text, "logprob": logprob, "bytes": list(text.encode())}

        self.entries = [
            entry(token, own)
            | {
                "top_logprobs": [
                    entry(int(t), float(p)) for t, p in zip(tokens, values, strict=True)
                ][:k]
            }
            for token, own, (tokens, values) in zip(
                item.tokens, item.logprobs, item.best, strict=True
            )
        ]

    def pieces(self) -> Iterator[tuple[str, list[Json]]]:
        """The text and the entries in parts, as streams have them."""
        for i, entry in enumerate(self.entries):
            yield entry["token"] if i < len(self.entries) - 1 else "", [entry]


# -- Ollama ----------------------------------------------------------------------------------------


def ollama(answer: Answer, *, chat: bool, thinking: str = "") -> Json:
    message: Json = {"role": "assistant", "content": answer.text}
    held: Json = {"message": message} if chat else {"response": answer.text}
    if thinking:
        (message if chat else held)["thinking"] = thinking
    return {
        "model": "gatekeeper-bundled",
        "created_at": "2026-11-23T00:00:00.000000Z",
        "done": True,
        "done_reason": "stop",
        "total_duration": 1,
        "prompt_eval_count": answer.prompt_tokens,
        "eval_count": answer.tokens,
        "logprobs": answer.entries,
        **held,
    }


def ollama_stream(answer: Answer, *, chat: bool) -> list[Json]:
    chunks = []
    for text, entries in answer.pieces():
        held: Json = {"message": {"role": "assistant", "content": text}} if chat else {}
        head = {"model": "gatekeeper-bundled", "created_at": "2026-11-23T00:00:00Z", "done": False}
        chunks.append({**head, "response": text, "logprobs": entries, **held})
        if chat:
            del chunks[-1]["response"]
    last = ollama(answer, chat=chat)
    del last["logprobs"]
    if chat:
        last["message"] = {"role": "assistant", "content": ""}
    else:
        last["response"] = ""
    return [*chunks, last]


# -- llama-server ----------------------------------------------------------------------------------


def llama(
    answer: Answer, *, entries: str = "logprobs", key: str = "completion_probabilities"
) -> Json:
    """`entries`: "logprobs" of today, "probs" after sampling, "old" before December 2024."""
    found: Json = {
        "index": 0,
        "content": answer.text,
        "tokens": [],
        "id_slot": 0,
        "stop": True,
        "model": "gatekeeper-bundled",
        "tokens_predicted": answer.tokens,
        "tokens_evaluated": answer.prompt_tokens,
        "prompt": "",
        "truncated": False,
        "stopping_word": "",
        key: [_LLAMA[entries](entry) for entry in answer.entries],
    }
    old = {"stopped_eos": True, "stopped_word": False, "stopped_limit": False}
    return found | (old if entries == "old" else {"stop_type": "eos"})


def llama_stream(answer: Answer) -> list[Json]:
    chunks: list[Json] = [
        {
            "index": 0,
            "content": text,
            "tokens": [1],
            "stop": False,
            "completion_probabilities": rows,
        }
        for text, rows in answer.pieces()
    ]
    last = llama(answer) | {"content": ""}
    del last["completion_probabilities"]
    return [*chunks, last]


def _today(entry: Json) -> Json:
    top = [{"id": 7, **each} for each in entry["top_logprobs"]]
    return {"id": 7, **entry, "top_logprobs": top}


def _after_sampling(entry: Json) -> Json:
    def prob(each: Json) -> Json:
        found = {name: each[name] for name in ("token", "bytes")}
        return {"id": 7, **found, "prob": exp(each["logprob"])}

    return prob(entry) | {"top_probs": [prob(each) for each in entry["top_logprobs"]]}


def _old(entry: Json) -> Json:
    probs = [
        {"tok_str": each["token"], "prob": exp(each["logprob"])} for each in entry["top_logprobs"]
    ]
    return {"content": entry["token"], "probs": probs}


_LLAMA: dict[str, Callable[[Json], Json]] = {
    "logprobs": _today,
    "probs": _after_sampling,
    "old": _old,
}


def llama_openai(answer: Answer) -> Json:
    """A text completion of llama-server's OpenAI-compatible API: with the entries of chats."""
    logprobs = {"content": [_today(entry) for entry in answer.entries]}
    choice = {"index": 0, "text": answer.text, "logprobs": logprobs, "finish_reason": "stop"}
    return _openai("text_completion", choice, answer)


def llama_cpp_python(answer: Answer) -> Json:
    """A chat completion of the package llama-cpp-python: a dict, alternatives by their text."""
    entries = []
    for entry in answer.entries:
        top = {each["token"]: each["logprob"] for each in entry["top_logprobs"]}
        top |= {entry["token"]: entry["logprob"]}
        alternatives = [{"token": t, "logprob": p, "bytes": None} for t, p in top.items()]
        entries.append({**entry, "bytes": None, "top_logprobs": alternatives})
    choice = {
        "index": 0,
        "message": {"role": "assistant", "content": answer.text},
        "logprobs": {"content": entries, "refusal": None},
        "finish_reason": "stop",
    }
    return _openai("chat.completion", choice, answer)


def _openai(kind: str, choice: Json, answer: Answer) -> Json:
    total = answer.prompt_tokens + answer.tokens
    usage = {
        "prompt_tokens": answer.prompt_tokens,
        "completion_tokens": answer.tokens,
        "total_tokens": total,
    }
    head = {"id": "chatcmpl-1", "object": kind, "created": 1, "model": "gatekeeper-bundled"}
    return {**head, "choices": [choice], "usage": usage}


# -- Anthropic -------------------------------------------------------------------------------------


def anthropic(answer: Answer, *, tool: bool = False) -> Json:
    blocks: list[Json] = [{"type": "thinking", "thinking": "It adds.", "signature": "s"}]
    blocks.append({"type": "text", "text": answer.text, "citations": None})
    if tool:
        call = {"type": "tool_use", "id": "toolu_1", "name": "add", "input": {"a": 12, "b": 30}}
        blocks.append(call)
    return {
        "id": "msg_1",
        "type": "message",
        "role": "assistant",
        "model": "claude-1",
        "content": blocks,
        "stop_reason": "tool_use" if tool else "end_turn",
        "stop_sequence": None,
        "usage": {
            "input_tokens": answer.prompt_tokens - 4,
            "cache_creation_input_tokens": 1,
            "cache_read_input_tokens": 3,
            "output_tokens": answer.tokens,
        },
    }


def anthropic_stream(answer: Answer) -> list[Json]:
    whole = anthropic(answer)
    usage = {**whole["usage"], "output_tokens": 1}
    begun = {**whole, "content": [], "stop_reason": None, "usage": usage}
    events: list[Json] = [{"type": "message_start", "message": begun}]
    for index, block in enumerate(whole["content"]):
        kind = block["type"]
        empty = block | {"text": ""} if kind == "text" else block | {"thinking": ""}
        events.append({"type": "content_block_start", "index": index, "content_block": empty})
        name = {"text": "text_delta", "thinking": "thinking_delta"}[kind]
        for start in range(0, len(block[kind]), 7):
            delta = {"type": name, kind: block[kind][start : start + 7]}
            events.append({"type": "content_block_delta", "index": index, "delta": delta})
        events.append({"type": "content_block_stop", "index": index})
    ended = {"stop_reason": whole["stop_reason"], "stop_sequence": None}
    tokens = {"output_tokens": answer.tokens}
    events.append({"type": "message_delta", "delta": ended, "usage": tokens})
    return [*events, {"type": "message_stop"}]


# -- Gemini ----------------------------------------------------------------------------------------


def gemini(answer: Answer, *, logprobs: bool = True, thoughts: str = "") -> Json:
    def candidate(entry: Json) -> Json:
        return {"token": entry["token"], "tokenId": 7, "logProbability": entry["logprob"]}

    parts: list[Json] = [{"text": thoughts, "thought": True}] if thoughts else []
    found: Json = {
        "content": {"parts": [*parts, {"text": answer.text}], "role": "model"},
        "finishReason": "STOP",
        "index": 0,
        "avgLogprobs": sum(entry["logprob"] for entry in answer.entries) / answer.tokens,
    }
    if logprobs:
        found["logprobsResult"] = {
            "chosenCandidates": [candidate(entry) for entry in answer.entries],
            "topCandidates": [
                {"candidates": [candidate(each) for each in entry["top_logprobs"]]}
                for entry in answer.entries
            ],
        }
    usage = {"promptTokenCount": answer.prompt_tokens, "candidatesTokenCount": answer.tokens}
    usage["totalTokenCount"] = answer.prompt_tokens + answer.tokens
    head = {"modelVersion": "gemini-1", "responseId": "r1"}
    return {"candidates": [found], "usageMetadata": usage, **head}


def gemini_stream(answer: Answer) -> list[Json]:
    whole = gemini(answer)
    (last,) = whole["candidates"]
    result = last["logprobsResult"]
    chunks = []
    for i, (text, _) in enumerate(answer.pieces()):
        part = {name: result[name][i : i + 1] for name in result}
        one: Json = {"content": {"parts": [{"text": text}]}, "index": 0, "logprobsResult": part}
        chunks.append({**whole, "candidates": [one], "usageMetadata": {"promptTokenCount": 1}})
    chunks[-1]["candidates"][0]["finishReason"] = "STOP"
    chunks[-1]["usageMetadata"] = whole["usageMetadata"]
    return chunks


def in_snake_case(value: Any) -> Any:
    """As `model_dump()` of google-genai's objects has it."""
    if isinstance(value, dict):
        return {_snake(name): in_snake_case(each) for name, each in value.items()}
    return [in_snake_case(each) for each in value] if isinstance(value, list) else value


def _snake(name: str) -> str:
    return "".join(f"_{c.lower()}" if c.isupper() else c for c in name)


# -- a server --------------------------------------------------------------------------------------


@contextmanager
def provider_server() -> Iterator[str]:
    """Speaks the own APIs of Ollama, llama-server, Anthropic and Gemini; its URL."""
    model = BundledModel(threads=1)

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            request = json.loads(self.rfile.read(int(self.headers["content-length"])))
            lines = map(json.dumps, self.answers(request))  # of a stream one for each chunk
            body = "\n".join(lines).encode()
            self.send_response(200)
            self.send_header("content-type", "application/json")
            self.send_header("content-length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def answers(self, request: Json) -> list[Json]:
            if self.path == "/api/chat":
                k = request["top_logprobs"] if request["logprobs"] else 0
                answer = Answer(model, request["messages"][-1]["content"], k=k)
                stream = request.get("stream", True)
                return ollama_stream(answer, chat=True) if stream else [ollama(answer, chat=True)]
            return [self.answer(request)]

        def answer(self, request: Json) -> Json:
            """The log-probabilities that were asked for, and no others."""
            path = self.path.partition("?")[0]
            if path == "/completion":
                return llama(Answer(model, request["prompt"], k=request["n_probs"]))
            if path == "/v1/messages":
                assert self.headers["anthropic-version"]
                assert request["max_tokens"]
                return anthropic(Answer(model, request["messages"][-1]["content"]))
            assert path.endswith(":generateContent")
            config = request["generationConfig"]
            k = config["logprobs"] if config["responseLogprobs"] else 0
            return gemini(Answer(model, request["contents"][-1]["parts"][0]["text"], k=k))

        def log_message(self, *args: object) -> None:
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        thread = threading.Thread(target=server.serve_forever, args=(0.05,))
        thread.start()
        try:
            yield f"http://127.0.0.1:{server.server_port}"
        finally:
            server.shutdown()
            thread.join()
