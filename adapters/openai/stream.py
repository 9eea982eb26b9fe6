"""Streams: chunks of chat completions and of text completions, events of the Responses API."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from dataclasses import field as made
from typing import Any

from gatekeeper.adapters.fields import count_of, field, fields, has, list_of, text_of
from gatekeeper.adapters.openai.chat import VLLM_FIELDS, chat_generations
from gatekeeper.adapters.openai.completions import completion_generations
from gatekeeper.adapters.openai.content import answer_and_reasoning
from gatekeeper.adapters.openai.entries import Entries
from gatekeeper.adapters.openai.responses import response_generation
from gatekeeper.adapters.positions import Scope, check_scope
from gatekeeper.arguments import check_flag
from gatekeeper.errors import BadInputError
from gatekeeper.types import Generation

__all__ = ["LAST_EVENTS", "StreamReader", "is_chunk"]


TEXTS = ("content", "refusal", "reasoning", "reasoning_content")
LISTS = ("tokens", "token_logprobs", "top_logprobs")  # of text completions
LAST_EVENTS = ("response.completed", "response.incomplete", "response.failed")


def is_chunk(value: Any) -> bool:
    """Whether a value has the shape of a chunk or an event of a stream."""
    known = fields(value)
    kind = str(known.get("type"))
    return isinstance(known.get("choices"), list) or "response." in kind or _is_helpers(known)


def _is_helpers(known: Mapping[str, Any]) -> bool:
    """Whether it is an event of the package's `chat.completions.stream()` that has a chunk; its
    other events repeat what the chunks have.
    """
    return known.get("type") == "chunk" and known.get("chunk") is not None


@dataclass(slots=True)
class _Choice:
    """One choice so far: pieces of its texts, its log-probabilities, and its other fields."""

    texts: dict[str, list[str]] = made(default_factory=dict)
    entries: dict[str, Entries] = made(default_factory=dict)
    lists: dict[str, list[Any]] = made(default_factory=dict)
    rest: dict[str, Any] = made(default_factory=dict)
    unreadable: BadInputError | None = None  # a part of the content

    def add_text(self, name: str, piece: str) -> None:
        self.texts.setdefault(name, []).append(piece)

    def add_parts(self, content: Any) -> None:
        """Add a content that is not text."""
        try:
            answer, thoughts = answer_and_reasoning(content)
        except BadInputError as error:
            self.unreadable = error
            return
        self.add_text("content", answer)
        self.add_text("reasoning", thoughts)

    def assembled(self, index: int) -> dict[str, Any]:
        """The choice as a whole response has it. Raises BadInputError if its text is unreadable."""
        if self.unreadable is not None:
            raise self.unreadable
        texts = {name: "".join(pieces) for name, pieces in self.texts.items()}
        whole = {"index": index, "logprobs": {**self.entries, **self.lists}, **self.rest}
        return whole | (texts if "text" in texts else {"message": texts})


class StreamReader:
    """Collects the chunks of a stream and reads them as one response.

    Chunks may be objects or dicts, or the events of the helper `chat.completions.stream()`; they
    are not changed, and their objects are not kept. A chunk may lack choices, a delta or
    log-probabilities. An interrupted stream has `finish_reason` None; one that lost token entries
    has a `token_coverage` below 1 if the stream has a usage.

    Parameters
    ----------
    scope : {"content", "reasoning", "all"}
        Which tokens count where the stream has reasoning beside the answer.
    skip_forced : bool
        Leave out the tokens that a grammar forced.
    strict : bool
        Whether a value that is not a chunk raises BadInputError; otherwise it is ignored.

    Raises
    ------
    BadInputError
        For another scope, and for what is neither True nor False.
    """

    def __init__(
        self, *, scope: Scope = "content", skip_forced: bool = False, strict: bool = False
    ) -> None:
        check_scope(scope)
        self._scope: Scope = scope
        self._skip_forced = check_flag("skip_forced", skip_forced)
        self._strict = check_flag("strict", strict)
        self._head: dict[str, Any] = {}  # id, model
        self._usage: Any = None
        self._choices: dict[int, _Choice] = {}
        self._parts: dict[tuple[int, int], dict[str, Any]] = {}  # of a message (Responses API)
        self._response: Any = None  # as its last event has it
        self.finished: set[int | None] = set()  # choices; None: the Response

    @property
    def id(self) -> Any:
        """The id of the response; None before a chunk has it."""
        return self._head.get("id")

    @property
    def response(self) -> Any:
        """The Response as the last event that has it; None in other streams."""
        return self._response

    def is_complete(self, n: int) -> bool:
        """Whether at least n outputs are complete, and none is incomplete."""
        return len(self.finished) >= n and self.finished >= self._choices.keys()

    def add(self, chunk: Any) -> None:
        """Add the next chunk or event. Raises BadInputError only if strict."""
        try:
            if self._add_common(chunk):
                return
            known = fields(chunk)
            if _is_helpers(known):
                self.add(known["chunk"])
            elif isinstance(known.get("type"), str):
                self._add_event(known)
            elif isinstance(known.get("choices"), list):
                self._add_chunk(known)
            else:
                raise BadInputError(
                    f"chunk={chunk!r:.80}: not a chunk of a stream of OpenAI's APIs"
                )
        except BadInputError:
            if self._strict:
                raise
        except Exception as e:
            if self._strict:
                raise BadInputError(f"chunk={chunk!r:.80}: {e}") from e

    def generations(self) -> list[Generation]:
        """One Generation per choice, in the order of the indices; none before the first choice.

        Raises
        ------
        BadInputError
            If the content of a choice has a part that is not text. If strict: for other invalid
            values, such as log-probabilities that are not numbers. If not strict, such a stream
            gives its texts only.
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

    def _add_common(self, chunk: Any) -> bool:
        """The fast path for most chunks: an object with a piece of one text and its entries.

        Returns False, and changes nothing, for any other chunk; `_add_chunk` is the plain reading.
        `benchmarks/adapters.py` measures this path; tests/adapters/test_openai_streams.py compares
        it with the definition.
        """
        try:
            (part,) = chunk.choices
            delta, logprobs = part.delta, part.logprobs
            text, entries = delta.content, logprobs.content
            choice = self._choices[part.index]
            texts, collected = choice.texts["content"], choice.entries["content"]
            if (
                len(self._head) < 2
                or part.finish_reason is not None
                or chunk.usage is not None
                or delta.refusal is not None
                or logprobs.refusal is not None
                or part.__pydantic_extra__
                or delta.__pydantic_extra__
                or not isinstance(text, str)
                or not isinstance(entries, list)
            ):
                return False
        except (AttributeError, KeyError, TypeError, ValueError):
            return False
        texts.append(text)
        collected.add(entries)
        return True

    def _add_chunk(self, chunk: Mapping[str, Any]) -> None:
        if len(self._head) < 2:
            found = {name: text_of(chunk, name) for name in ("id", "model")}
            self._head = {name: text for name, text in found.items() if text} | self._head
        if chunk.get("usage") is not None:
            self._usage = chunk["usage"]
        for part in chunk["choices"]:
            if part is None:
                raise BadInputError("choice=None: a part of a choice is needed")
            self._add_choice(fields(part))

    def _add_choice(self, part: Mapping[str, Any]) -> None:
        index = part.get("index") or 0
        choice = self._choices.get(index)
        if choice is None:
            index = count_of(part, "index") or 0
            choice = self._choices.setdefault(index, _Choice())
        if isinstance(part.get("text"), str):
            choice.add_text("text", part["text"])
        for name, piece in fields(part.get("delta")).items():
            if name in TEXTS and isinstance(piece, str):
                choice.add_text(name, piece)
            elif name == "content" and piece is not None:
                choice.add_parts(piece)
        if reason := text_of(part, "finish_reason"):  # some servers send "" until they have one
            choice.rest["finish_reason"] = reason
            self.finished.add(index)
        for name in VLLM_FIELDS:
            if name in part:
                choice.rest[name] = None
        for name, found in fields(part.get("logprobs")).items():
            if not isinstance(found, list):
                continue
            if name in LISTS:
                choice.lists.setdefault(name, []).extend(found)
            elif name in TEXTS:
                if name not in choice.entries:
                    choice.entries[name] = Entries()
                choice.entries[name].add(found)

    # -- events ---------------------------------------------------------------------------------

    def _add_event(self, event: Mapping[str, Any]) -> None:
        kind = event["type"]
        if event.get("response") is not None:
            self._response = event["response"]
        if kind in LAST_EVENTS:
            self.finished.add(None)
        if kind in _PARTS:
            part_type, name = _PARTS[kind]
            key = count_of(event, "output_index") or 0, count_of(event, "content_index") or 0
            text, entries = text_of(event, "delta") or "", list_of(event, "logprobs")
            part = self._parts.setdefault(key, {"type": part_type, name: "", "logprobs": Entries()})
            part[name] += text
            part["logprobs"].add(entries)

    # -- the whole ------------------------------------------------------------------------------

    def _assembled(self) -> Iterator[dict[str, Any]]:
        if self._choices:
            choices = [choice.assembled(i) for i, choice in sorted(self._choices.items())]
            yield {**self._head, "usage": self._usage, "choices": choices}
        if self._response is not None or self._parts:
            yield self._assembled_response()

    def _assembled_response(self) -> dict[str, Any]:
        """The last state of the response, with the streamed parts where those have more entries."""
        last = self._response
        names = ("id", "model", "status", "incomplete_details", "usage", "output")
        response = {name: field(last, name) for name in names}
        if has(last, "kv_transfer_params"):
            response["kv_transfer_params"] = None
        response["streamed"] = parts = [self._parts[key] for key in sorted(self._parts)]
        streamed = {"output": [{"content": parts}]}
        try:
            complete = response["output"] and _entries(response) >= _entries(streamed)
        except (BadInputError, TypeError):
            complete = True  # the reader of the response raises the error
        return response if complete else response | streamed


_PARTS = {  # event -> type of the part that it continues, and field of the part's text
    "response.output_text.delta": ("output_text", "text"),
    "response.refusal.delta": ("refusal", "refusal"),
    "response.reasoning_text.delta": ("reasoning_text", "text"),
}


def _entries(response: Any) -> int:
    parts = [part for item in list_of(response, "output") for part in list_of(item, "content")]
    return sum(len(field(part, "logprobs") or ()) for part in parts)


def _bare(response: dict[str, Any]) -> dict[str, Any]:
    """The response with its texts and finish reasons only."""
    names = ("index", "message", "text", "finish_reason")
    if "choices" in response:
        choices = [{k: c[k] for k in names if k in c} for c in response["choices"]]
        return {name: response.get(name) for name in ("id", "model")} | {"choices": choices}
    known = {k: v for k in ("id", "model", "status") if isinstance(v := response[k], str)}
    details = {"incomplete_details": response["incomplete_details"]}
    parts = _readable_parts(response) or response["streamed"]
    return {**known, **details, "output": [{"content": [p | {"logprobs": None} for p in parts]}]}


def _readable_parts(response: dict[str, Any]) -> list[dict[str, Any]]:
    """The parts of the response's messages whose text can be read."""
    items = response["output"] if isinstance(response["output"], list) else []
    contents = [found for item in items if isinstance(found := field(item, "content"), list)]
    parts = [dict(fields(part)) for content in contents for part in content]
    names = ("type", "text", "refusal")
    return [p for p in parts if all(isinstance(p.get(name), str | None) for name in names)]
