"""Tool calls of a model that knows no tools: the server makes one of its answer.

The call is of the function that `tool_choice` names, else of the first one. Its arguments follow
the function's JSON Schema: a string is the model's text, a number the last one in that text, and
any other value the simplest of its type. After a tool's result the answer is text, so that a loop
ends. It shows how a client handles calls, and nothing of what a model does with tools.
"""

from __future__ import annotations

import json
import re
import secrets
from collections.abc import Iterator
from typing import Any

from gatekeeper.bundled.connections import Json, RefusalError

__all__ = ["Function", "function_to_call", "parts_of"]

MOST_VALUES = 256  # in the arguments of a call
DEEPEST = 16
PART = 16  # characters of the arguments in one event of a stream
NUMBER = re.compile(r"-?\d{1,15}(?:\.\d{1,15})?")


class Function:
    """A function that a request offers."""

    def __init__(self, name: str, parameters: Json) -> None:
        self.name = name
        self._parameters = parameters
        self.arguments("")  # raises now, before any answer, for a schema that cannot be

    def arguments(self, text: str) -> str:
        """JSON that fits the function's parameters. Raises RefusalError for too many."""
        return json.dumps(_Values(self._parameters, text).of(self._parameters))

    def new_id(self) -> str:
        return f"call_{secrets.token_hex(12)}"


def function_to_call(request: Json, *, after_result: bool) -> Function | None:
    """The function that the answer is to call; None where it is to be text.

    Parameters
    ----------
    request
        Request of chat completions, with {"type", "function": {"name", "parameters"}}, or of the
        Responses API, with {"type", "name", "parameters"}.
    after_result
        Whether the last message is a tool's result: then only a choice by name forces a call.

    Raises
    ------
    RefusalError
        For tools, or a choice, of another form.
    """
    tools = request.get("tools") or []
    if not isinstance(tools, list):
        raise RefusalError(f"tools={tools!r:.80}: a list of functions is needed")
    offered = dict(_read(tool) for tool in tools if _is_function(tool))
    choice = request.get("tool_choice")
    if isinstance(choice, dict):
        name = choice.get("function", choice)
        name = name.get("name") if isinstance(name, dict) else None
        if name not in offered:
            raise RefusalError(f"tool_choice={choice!r:.80}: it names none of the tools")
        return Function(name, offered[name])
    if choice not in (None, "none", "auto", "required"):
        raise RefusalError(f"tool_choice={choice!r:.80}: none, auto, required or a function")
    if choice == "required" and not offered:
        raise RefusalError("tool_choice='required' needs tools")
    if choice == "none" or not offered or (after_result and choice != "required"):
        return None
    return Function(*next(iter(offered.items())))


def parts_of(arguments: str) -> Iterator[str]:
    """The arguments of a call in the parts in which a stream has them."""
    for start in range(0, len(arguments), PART):
        yield arguments[start : start + PART]


def _is_function(tool: object) -> bool:
    if not isinstance(tool, dict):
        raise RefusalError(f"tools: {tool!r:.80}: an object is needed")
    return bool(tool.get("type", "function") == "function")


def _read(tool: Json) -> tuple[str, Json]:
    function = tool.get("function", tool)
    name = function.get("name") if isinstance(function, dict) else None
    parameters = (function.get("parameters") or {}) if isinstance(function, dict) else None
    if not (isinstance(name, str) and name and isinstance(parameters, dict)):
        raise RefusalError(f"tools: {tool!r:.80}: a function with name and parameters is needed")
    return name, parameters


class _Values:
    """Values that fit the parts of one JSON Schema."""

    def __init__(self, root: Json, text: str) -> None:
        self._root, self._text = root, text
        self._made = 0

    def of(self, schema: Any, depth: int = 0) -> Any:
        """The simplest value, or the model's text."""
        self._made += 1
        if self._made > MOST_VALUES or depth > DEEPEST:
            raise RefusalError(
                f"tools: parameters of at most {MOST_VALUES} values in {DEEPEST} levels are needed"
            )
        schema = self._resolved(schema)
        for name in ("anyOf", "oneOf", "allOf", "enum"):
            options = schema.get(name)
            if isinstance(options, list) and options:
                return options[0] if name == "enum" else self.of(options[0], depth + 1)
        if "const" in schema:
            return schema["const"]
        kind = schema.get("type", "object" if "properties" in schema or depth == 0 else "string")
        if isinstance(kind, list):
            kind = next(iter(kind), None)
        if kind == "object":
            properties = schema.get("properties")
            named = properties.items() if isinstance(properties, dict) else ()
            return {name: self.of(inner, depth + 1) for name, inner in named}
        return self._leaf(kind)

    def _leaf(self, kind: object) -> Any:
        if kind in ("integer", "number"):
            found = NUMBER.findall(self._text) or ["0"]
            return int(float(found[-1])) if kind == "integer" else float(found[-1])
        simplest: dict[object, Any] = {"boolean": False, "array": [], "null": None}
        return simplest.get(kind, self._text) if isinstance(kind, str) else self._text

    def _resolved(self, schema: Any) -> Json:
        """The schema, or the one of the root's definitions that it refers to."""
        path = schema.get("$ref") if isinstance(schema, dict) else None
        if isinstance(path, str):
            schema = self._root
            for name in path.removeprefix("#").split("/")[1:]:
                schema = schema.get(name) if isinstance(schema, dict) else None
        return schema if isinstance(schema, dict) else {}
