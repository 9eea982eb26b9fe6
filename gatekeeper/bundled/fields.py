"""Fields of requests, checked."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from gatekeeper.bundled.connections import Json, RefusalError

__all__ = ["end_of", "flag", "last_user_message", "number"]

MOST_CHARACTERS = 1 << 15  # of a prompt, from its end: more than any context's worth of tokens


def number(
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


def flag(request: Mapping[str, Any], name: str) -> bool:
    """True or false; false where it is absent or null."""
    value = request.get(name)
    if value is None or isinstance(value, bool):
        return bool(value)
    raise RefusalError(f"{name}={value!r:.80}: true or false is needed")


def last_user_message(request: Json, name: str) -> str:
    """The text of the user's last message in the list of that name."""
    messages = request.get(name)
    if isinstance(messages, list):
        for message in reversed(messages):
            if isinstance(message, dict) and message.get("role") == "user":
                content = message.get("content")
                if isinstance(content, list):
                    parts = [part for part in content if isinstance(part, dict)]
                    texts = [part.get("text", "") for part in parts]
                    content = "\n".join(text for text in texts if isinstance(text, str))
                if isinstance(content, str):
                    return end_of(content, name)
    raise RefusalError(f"{name}: a list with at least one user message of text is needed")


def end_of(text: str, name: str) -> str:
    """The end of a text that the model can see: the tokenizer blocks all other threads."""
    try:
        text.encode()
    except UnicodeEncodeError as e:
        raise RefusalError(f"{name}: no valid text: {e.reason} at character {e.start}") from None
    return text[-MOST_CHARACTERS:]
