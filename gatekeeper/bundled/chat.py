"""Chat completions of the bundled server."""

from __future__ import annotations

import secrets
import time
from typing import Any

from gatekeeper.adapters.bundled import BundledModel
from gatekeeper.bundled.connections import DONE, Json, RefusalError, Stream
from gatekeeper.bundled.fields import flag, last_user_message, number
from gatekeeper.bundled.outputs import (
    MOST_ALTERNATIVES,
    Asked,
    Piece,
    Usage,
    asked_of,
    outputs,
    pieces,
)
from gatekeeper.bundled.token_entries import entries
from gatekeeper.bundled.tool_calls import Function, function_to_call, parts_of

__all__ = ["chat", "head_of", "usage_wanted"]


def chat(model: BundledModel, request: Json) -> Json | Stream:
    """Answer a request to /v1/chat/completions. Raises RefusalError."""
    wants = bool(request.get("logprobs"))
    if request.get("top_logprobs") is not None and not wants:
        raise RefusalError("top_logprobs needs logprobs=true")
    k = number(request, "top_logprobs", 0, most=MOST_ALTERNATIVES)
    prompt = model.encode(last_user_message(request, "messages"))
    newer = request.get("max_completion_tokens") is not None
    limit = "max_completion_tokens" if newer else "max_tokens"
    asked = asked_of(request, [prompt], k=k, limit=limit)
    last = request["messages"][-1]
    after_result = isinstance(last, dict) and last.get("role") == "tool"
    function = function_to_call(request, after_result=after_result)
    answer = _Answer(model, request["model"], wants, function)
    if flag(request, "stream"):
        return answer.chunks(asked, with_usage=usage_wanted(request))
    return answer.whole(asked)


def usage_wanted(request: Json) -> bool:
    """Whether a stream is to end with a chunk of the usage."""
    options = request.get("stream_options") or {}
    if not isinstance(options, dict):
        raise RefusalError(f"stream_options={options!r:.80}: an object is needed")
    return flag(options, "include_usage")


def head_of(kind: str, name: str) -> Json:
    """The first members of a response, or of each chunk of one stream; `name` is the model's."""
    prefix = "chatcmpl" if kind.startswith("chat") else "cmpl"
    return {
        "id": f"{prefix}-{secrets.token_hex(12)}",
        "object": kind,
        "created": int(time.time()),
        "model": name,
    }


class _Answer:
    def __init__(
        self, model: BundledModel, name: str, wants: bool, function: Function | None
    ) -> None:
        self._model, self._name = model, name
        self._wants, self._function = wants, function

    def whole(self, asked: Asked) -> Json:
        usage, choices = Usage(), []
        for piece in outputs(self._model, asked):
            usage.add(piece)
            choices.append(
                {
                    "index": piece.choice,
                    "message": self._message(piece),
                    "logprobs": self._logprobs(piece),
                    "finish_reason": self._reason(piece),
                }
            )
        return {**head_of("chat.completion", self._name), "choices": choices, "usage": usage.json()}

    def _message(self, piece: Piece) -> Json:
        message: Json = {"role": "assistant", "content": piece.text, "refusal": None}
        if self._function is not None:
            arguments = self._function.arguments(piece.text)
            message |= {"content": None, "tool_calls": [self._call(arguments)]}
        return message

    def _call(self, arguments: str) -> Json:
        assert self._function is not None
        named = {"name": self._function.name, "arguments": arguments}
        return {"id": self._function.new_id(), "type": "function", "function": named}

    def _logprobs(self, piece: Piece) -> Json | None:
        found = self._wants and piece.tokens
        return {"content": entries(self._model, piece), "refusal": None} if found else None

    def _reason(self, piece: Piece) -> str | None:
        """A call is made of whatever the model wrote, so none is cut off."""
        return piece.finish_reason if self._function is None else "tool_calls"

    def chunks(self, asked: Asked, *, with_usage: bool) -> Stream:
        head, usage = head_of("chat.completion.chunk", self._name), Usage()
        last = {"usage": None} if with_usage else {}

        def chunk(index: int, delta: Json, logprobs: Any = None, reason: Any = None) -> Json:
            choice = {"index": index, "delta": delta, "logprobs": logprobs, "finish_reason": reason}
            return {**head, "choices": [choice], **last}

        opening = {"role": "assistant", "content": "", "refusal": None}
        if self._function is None:
            for index in range(asked.n):
                yield chunk(index, opening)
        found = (
            pieces(self._model, asked) if self._function is None else outputs(self._model, asked)
        )
        for piece in found:
            usage.add(piece)
            logprobs = self._logprobs(piece)
            if self._function is None:
                yield chunk(piece.choice, {"content": piece.text}, logprobs)
            else:
                call = self._call("")
                yield chunk(
                    piece.choice, opening | {"content": None, "tool_calls": [{"index": 0, **call}]}
                )
                for part in parts_of(self._function.arguments(piece.text)):
                    more = [{"index": 0, "function": {"arguments": part}}]
                    yield chunk(piece.choice, {"tool_calls": more}, logprobs)
                    logprobs = None  # with the first part: they are of the model's text
            if piece.finish_reason:
                yield chunk(piece.choice, {}, None, self._reason(piece))
        if with_usage:
            yield {**head, "choices": [], "usage": usage.json()}
        yield DONE
