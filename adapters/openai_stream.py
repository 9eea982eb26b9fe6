"""Streams: chunks of chat completions and of text completions, events of the Responses API."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from gatekeeper.adapters._positions import Scope, count_of, field, has, list_of, text_of
from gatekeeper.adapters.openai_chat import OF_VLLM, chat_generations
from gatekeeper.adapters.openai_completions import completion_generations
from gatekeeper.adapters.openai_responses import response_generation
from gatekeeper.errors import BadInputError
from gatekeeper.types import Generation

__all__ = ["StreamReader"]


class StreamReader:
    """Collects a stream's chunks and reads them as the one response that they are parts of.

    Chunks may be objects or dicts and are not changed. What a chunk lacks (choices, a delta,
    log-probabilities) is no error. A stream that broke off has `finish_reason` None, and one that
    lost token entries a `token_coverage` below 1 where the usage came with it.
    With `strict`, a chunk that is no chunk raises BadInputError; otherwise it is passed over.
    """

    def __init__(
        self, *, scope: Scope = "content", skip_forced: bool = False, strict: bool = False
    ) -> None:
        self._scope: Scope = scope
        self._skip_forced = skip_forced
        self._strict = strict
        self._head: dict[str, Any] = {}  # id, model, usage
        self._choices: dict[int, dict[str, Any]] = {}
        self._parts: dict[tuple[int, int], dict[str, Any]] = {}  # of a Responses message
        self._response: Any = None  # as its last event shows it

    def add(self, chunk: Any) -> None:
        """Take one chunk or event, in order. Raises only if strict."""
        try:
            if isinstance(field(chunk, "type"), str):
                self._add_event(chunk)
            elif isinstance(field(chunk, "choices"), list):
                self._add_chunk(chunk)
            else:
                raise BadInputError(f"chunk={chunk!r:.80}: no chunk of a stream of OpenAI's shape")
        except BadInputError:
            if self._strict:
                raise
        except Exception as e:
            if self._strict:
                raise BadInputError(f"chunk={chunk!r:.80}: {e}") from e

    def generations(self) -> list[Generation]:
        """One per choice, in the order of their indices; none where no choice has come.

        If strict, raises BadInputError for values that no response has, such as
        log-probabilities that are no numbers; otherwise only the texts are taken then.
        """
        try:
            return [g for response in self._assembled() for g in self._read(response)]
        except BadInputError:
            if self._strict:
                raise
        return [g for response in self._assembled() for g in self._read(_bare(response))]

    def _read(self, response: dict[str, Any]) -> list[Generation]:
        if "output" in response:
            return [response_generation(response, scope=self._scope, skip_forced=self._skip_forced)]
        if "message" in response["choices"][0]:
            return chat_generations(response, scope=self._scope, skip_forced=self._skip_forced)
        return completion_generations(response, skip_forced=self._skip_forced)

    # -- chunks ---------------------------------------------------------------------------------

    def _add_chunk(self, chunk: Any) -> None:
        for name in ("id", "model"):
            if text_of(chunk, name):
                self._head[name] = field(chunk, name)
        if field(chunk, "usage") is not None:
            self._head["usage"] = field(chunk, "usage")
        for part in list_of(chunk, "choices"):
            self._add_choice(part)

    def _add_choice(self, part: Any) -> None:
        if part is None:
            raise BadInputError("choice=None: no part of a choice")
        legacy = isinstance(field(part, "text"), str)
        choice = self._choices.setdefault(count_of(part, "index") or 0, {"logprobs": {}})
        delta = field(part, "delta")
        target = choice if legacy else choice.setdefault("message", {})
        for name in ("text", "content", "refusal", "reasoning", "reasoning_content"):
            piece = field(part if legacy else delta, name)
            if isinstance(piece, str):
                target[name] = (target.get(name) or "") + piece
        logprobs = field(part, "logprobs")
        for name in ("content", "refusal", "tokens", "token_logprobs", "top_logprobs"):
            entries = field(logprobs, name)
            if isinstance(entries, list):
                choice["logprobs"].setdefault(name, []).extend(entries)
        if text_of(part, "finish_reason"):
            choice["finish_reason"] = field(part, "finish_reason")
        for name in OF_VLLM:
            if has(part, name):
                choice.setdefault(name, None)

    # -- events ---------------------------------------------------------------------------------

    def _add_event(self, event: Any) -> None:
        kind = field(event, "type")
        if field(event, "response") is not None:
            self._response = field(event, "response")
        if kind in _PARTS:
            part_type, name = _PARTS[kind]
            key = count_of(event, "output_index") or 0, count_of(event, "content_index") or 0
            text, entries = text_of(event, "delta") or "", list_of(event, "logprobs")
            part = self._parts.setdefault(key, {"type": part_type, name: "", "logprobs": []})
            part[name] += text
            part["logprobs"] += entries

    # -- the whole ------------------------------------------------------------------------------

    def _assembled(self) -> Iterator[dict[str, Any]]:
        if self._choices:
            choices = [{"index": i} | choice for i, choice in sorted(self._choices.items())]
            yield {**self._head, "choices": choices}
        if self._response is not None or self._parts:
            yield self._assembled_response()

    def _assembled_response(self) -> dict[str, Any]:
        """The last state of the response, with the streamed parts where those tell more."""
        last = self._response
        names = ("id", "model", "status", "incomplete_details", "usage", "output")
        response = {name: field(last, name) for name in names}
        if has(last, "kv_transfer_params"):
            response["kv_transfer_params"] = None
        response["streamed"] = parts = [self._parts[key] for key in sorted(self._parts)]
        streamed = {"output": [{"content": parts}]}
        try:
            complete = response["output"] and _entries(response) >= _entries(streamed)
        except BadInputError:
            complete = True  # which whoever reads it will find out
        return response if complete else response | streamed


_PARTS = {  # event -> type of the part that it continues, and the field that holds its text
    "response.output_text.delta": ("output_text", "text"),
    "response.refusal.delta": ("refusal", "refusal"),
    "response.reasoning_text.delta": ("reasoning_text", "text"),
}


def _entries(response: Any) -> int:
    parts = [part for item in list_of(response, "output") for part in list_of(item, "content")]
    return sum(len(list_of(part, "logprobs")) for part in parts)


def _bare(response: dict[str, Any]) -> dict[str, Any]:
    """Only the texts and how each choice ended."""
    names = ("index", "message", "text", "finish_reason")
    if "choices" in response:
        choices = [{k: c[k] for k in names if k in c} for c in response["choices"]]
        return {name: response.get(name) for name in ("id", "model")} | {"choices": choices}
    parts = [part | {"logprobs": None} for part in response["streamed"]]
    id_ = response["id"] if isinstance(response["id"], str) else None
    return {"id": id_, "output": [{"content": parts}]}
