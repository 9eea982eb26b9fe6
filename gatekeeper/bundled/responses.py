"""The Responses API of the bundled server. It keeps no responses."""

from __future__ import annotations

import secrets
import time
from collections.abc import Iterator
from typing import Any

from gatekeeper.adapters.bundled import BundledModel
from gatekeeper.bundled.connections import Json, RefusalError, Stream
from gatekeeper.bundled.fields import end_of, flag, last_user_message, number
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

__all__ = ["LOGPROBS", "responses"]

LOGPROBS = "message.output_text.logprobs"  # in `include`
KEPT = ("previous_response_id", "conversation", "background")


def responses(model: BundledModel, request: Json) -> Json | Stream:
    """Answer a request to /v1/responses. Raises RefusalError."""
    for name in KEPT:
        if request.get(name):
            raise RefusalError(f"{name}: this server keeps no responses: send the whole input")
    include = request.get("include") or []
    if not isinstance(include, list):
        raise RefusalError(f"include={include!r:.80}: a list is needed")
    k = number(request, "top_logprobs", 0, most=MOST_ALTERNATIVES)
    given = request.get("input")
    text = end_of(given, "input") if isinstance(given, str) else last_user_message(request, "input")
    settings = {**request, "n": None, "stop": None}  # which this API does not have
    asked = asked_of(settings, [model.encode(text)], k=k, limit="max_output_tokens")
    last = given[-1] if isinstance(given, list) else None
    after_result = isinstance(last, dict) and last.get("type") == "function_call_output"
    function = function_to_call(request, after_result=after_result)
    answer = _Answer(model, request, asked, LOGPROBS in include, function)
    return answer.events() if flag(request, "stream") else answer.whole()


class _Answer:
    def __init__(
        self,
        model: BundledModel,
        request: Json,
        asked: Asked,
        wants: bool,
        function: Function | None,
    ) -> None:
        self._model, self._request, self._asked = model, request, asked
        self._wants, self._function = wants, function
        self._id, self._created = f"resp_{secrets.token_hex(12)}", int(time.time())
        self._item_id = f"{'msg' if function is None else 'fc'}_{secrets.token_hex(12)}"
        self._call_id = None if function is None else function.new_id()

    def whole(self) -> Json:
        (piece,) = outputs(self._model, self._asked)
        usage = Usage()
        usage.add(piece)
        item = self._item(piece.text, self._entries(piece), self._status(piece))
        return self._response([item], piece, usage)

    # -- objects --------------------------------------------------------------------------------

    def _response(
        self, output: list[Json], piece: Piece | None = None, usage: Usage | None = None
    ) -> Json:
        """The response: done if its last piece is there, else in progress."""
        status = self._status(piece)
        cut = {"reason": "max_output_tokens"} if status == "incomplete" else None
        echoed: Json = {
            "instructions": None,
            "max_output_tokens": None,
            "metadata": {},
            "parallel_tool_calls": True,
            "temperature": 1.0,
            "text": {"format": {"type": "text"}},
            "tool_choice": "auto",
            "tools": [],
            "top_p": 1.0,
        }
        for name in echoed.keys() & self._request.keys():
            if self._request[name] is not None:
                echoed[name] = self._request[name]
        return {
            "id": self._id,
            "object": "response",
            "created_at": self._created,
            "model": self._request["model"],
            "status": status,
            "error": None,
            "incomplete_details": cut,
            "output": output,
            "usage": None if usage is None else _usage(usage),
            "previous_response_id": None,
            **echoed,
        }

    def _status(self, piece: Piece | None) -> str:
        """A call is made of whatever the model wrote, so none is cut off."""
        if piece is None:
            return "in_progress"
        cut = piece.finish_reason == "length" and self._function is None
        return "incomplete" if cut else "completed"

    def _item(self, text: str | None, logprobs: list[Json], status: str) -> Json:
        """The one item of the output; with None for the text it is only begun."""
        if self._function is None:
            content = [] if text is None else [_part(text, logprobs)]
            kind: Json = {"type": "message", "role": "assistant", "content": content}
        else:
            arguments = "" if text is None else self._function.arguments(text)
            named = {"name": self._function.name, "arguments": arguments}
            kind = {"type": "function_call", "call_id": self._call_id, **named}
        return {"id": self._item_id, "status": status, **kind}

    def _entries(self, piece: Piece) -> list[Json]:
        return entries(self._model, piece) if self._wants else []

    # -- streams --------------------------------------------------------------------------------

    def events(self) -> Stream:
        """The events, numbered."""
        for number_of, (kind, fields) in enumerate(self._unnumbered()):
            yield {"type": f"response.{kind}", "sequence_number": number_of, **fields}

    def _unnumbered(self) -> Iterator[tuple[str, Json]]:
        begun, item = self._response([]), self._item(None, [], "in_progress")
        yield "created", {"response": begun}
        yield "in_progress", {"response": begun}
        yield "output_item.added", {"output_index": 0, "item": item}
        usage, text = Usage(), ""
        logprobs: list[Json] = []
        where: Json = {"item_id": self._item_id, "output_index": 0}
        if self._function is None:
            where |= {"content_index": 0}
            yield "content_part.added", {**where, "part": _part("", [])}
        piece: Piece | None = None
        for piece in pieces(self._model, self._asked):
            usage.add(piece)
            text, found = text + piece.text, self._entries(piece)
            logprobs += found
            if self._function is None:
                delta = {"delta": piece.text, "logprobs": [_streamed(entry) for entry in found]}
                yield "output_text.delta", {**where, **delta}
        if self._function is None:
            listed = [_streamed(entry) for entry in logprobs]
            yield "output_text.done", {**where, "text": text, "logprobs": listed}
            yield "content_part.done", {**where, "part": _part(text, logprobs)}
        else:
            arguments = self._function.arguments(text)
            for part in parts_of(arguments):
                yield "function_call_arguments.delta", {**where, "delta": part}
            named = {"name": self._function.name, "arguments": arguments}
            yield "function_call_arguments.done", {**where, **named}
        item = self._item(text, logprobs, self._status(piece))
        yield "output_item.done", {"output_index": 0, "item": item}
        response = self._response([item], piece, usage)
        yield response["status"], {"response": response}


def _part(text: str, logprobs: list[Json]) -> Json:
    return {"type": "output_text", "text": text, "annotations": [], "logprobs": logprobs}


def _streamed(entry: Json) -> Json:
    """A token's entry as events have it: without bytes."""
    alternatives = [_streamed(each) for each in entry.get("top_logprobs", ())]
    found: dict[str, Any] = {"token": entry["token"], "logprob": entry["logprob"]}
    return found | ({"top_logprobs": alternatives} if "top_logprobs" in entry else {})


def _usage(usage: Usage) -> Json:
    return {
        "input_tokens": usage.prompt,
        "input_tokens_details": {"cached_tokens": 0, "cache_write_tokens": 0},
        "output_tokens": usage.completion,
        "output_tokens_details": {"reasoning_tokens": 0},
        "total_tokens": usage.prompt + usage.completion,
    }
