"""Streams of server-sent events: their frames, and the JSON in a frame."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

from gatekeeper.adapters.openai.stream import LAST_EVENTS
from gatekeeper.gateway.answer_edit import Edits

__all__ = ["Frames", "is_last", "read_frame"]

END = re.compile(rb"\r\n\r\n|\n\n|\r\r")
DATA = re.compile(rb"(?m)^data: ?([^\r\n]*)")
DONE = "[DONE]"


class Frames:
    """Cuts a stream of bytes into frames, each with the empty line that ends it."""

    def __init__(self) -> None:
        self.rest = b""  # of a frame that is not complete

    def add(self, piece: bytes) -> Iterator[bytes]:
        """The frames that are complete with the next piece."""
        text = self.rest + piece if self.rest else piece
        start = 0
        for end in END.finditer(text, max(len(self.rest) - 3, 0) if self.rest else 0):
            yield text[start : end.end()]
            start = end.end()
        self.rest = text[start:]


def read_frame(frame: bytes, edits: Edits) -> tuple[Any, bytes]:
    """The JSON value of a frame, "[DONE]", or None; and the frame after the edits."""
    lines = list(DATA.finditer(frame))
    if len(lines) != 1:  # a comment, or something that these APIs do not send
        return None, frame
    (data,) = lines
    if data[1] == DONE.encode():
        return DONE, frame
    try:
        value, new = edits.apply(data[1])
    except ValueError:
        return None, frame
    if new == data[1]:
        return value, frame
    return value, frame[: data.start(1)] + new + frame[data.end(1) :]


def is_last(value: Any) -> bool:
    """Whether nothing of the output follows this value."""
    return value == DONE or (isinstance(value, dict) and value.get("type") in LAST_EVENTS)
