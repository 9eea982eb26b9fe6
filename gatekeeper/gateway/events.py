"""Streams of server-sent events: their frames, and the JSON in a frame."""

from __future__ import annotations

import re
from itertools import pairwise

from gatekeeper.adapters.openai.stream import LAST_EVENTS
from gatekeeper.gateway.answer_edit import Edits, object_of
from gatekeeper.limits import MAX_LINE

__all__ = ["TOO_LONG", "Frames", "is_last", "read_frame"]

TOO_LONG = f"an event of the stream is longer than {MAX_LINE >> 20} MiB"

END = re.compile(rb"\r\n\r\n|\n\n|\r\r|\n\r\n|\r\n\n")  # a line may end in CRLF, LF or CR
SPLIT = 3  # bytes of an end, at most, that may come in an earlier piece
# A line of data and what ends it; a stream may begin with a BOM.
DATA = re.compile(
    rb"(?:(?<=[\r\n])|^(?:\xef\xbb\xbf)?)(data(?:: ?|(?=[\r\n])))([^\r\n]*)(\r?\n|\r)"
)
ID = re.compile(rb"(?:^|[\r\n])id:")
PLAIN = b"data: "
DONE = b"[DONE]"
LAST = re.compile(b'"(?:%s)"' % b"|".join(re.escape(name.encode()) for name in LAST_EVENTS))


class Frames:
    """Cuts a stream of bytes into frames, each with the empty line that ends it.

    Attributes
    ----------
    have_ids
        Whether an event had an id. From then on openai's client takes every empty line for the end
        of an event, also the one after a comment.
    given_up
        Whether a frame was longer than `MAX_LINE`. It and all after it are no frames but pieces as
        they came, so that a frame without an end takes no more memory than that.
    """

    def __init__(self) -> None:
        self.have_ids = self.given_up = False
        self._length = 0  # of `_before`
        self._before: list[bytes] = []  # of the incomplete frame, but for its tail
        self._tail = b""  # which may have the beginning of an end

    @property
    def rest(self) -> bytes:
        """What came of a frame that is not complete."""
        return b"".join([*self._before, self._tail])

    def add(self, piece: bytes) -> list[bytes]:
        """The frames that are complete with the next piece."""
        if self.given_up:
            return [piece]
        text = self._tail + piece if self._tail else piece
        if b"id:" in text and ID.search(text):
            self.have_ids = True
        if b"\r" in text:
            ends = [end.end() for end in END.finditer(text)]
            *frames, last = [text[i:j] for i, j in pairwise([0, *ends, len(text)])]
        else:  # as most servers write; a stream's first frame waits for this: benchmarks/gateway.py
            *complete, last = text.split(b"\n\n")
            frames = [frame + b"\n\n" for frame in complete]
        if self._before and frames:
            frames[0] = b"".join([*self._before, frames[0]])
            self._before, self._length = [], 0
        self._tail = last and last[-SPLIT:]
        if len(last) > SPLIT:
            self._before.append(last[:-SPLIT])
            self._length += len(last)
            if self._length > MAX_LINE:
                self.given_up = True
                frames.append(self.rest)
                self._before, self._tail = [], b""
        return frames


def read_frame(frame: bytes, edits: Edits) -> tuple[bytes, bytes]:
    """The data of a frame as they are written, and the frame after the edits.

    A comment has no data. Data of several lines are one text; edited ones are written in place of
    the first line.
    """
    length = len(frame) - 2
    if frame.startswith(PLAIN) and frame.find(b"\n") == length and b"\r" not in frame:  # mostly
        text = frame[len(PLAIN) : length]
        new = _edited(text, edits)
        return text, frame if new == text else PLAIN + new + frame[length:]
    lines = [*DATA.finditer(frame)]
    if not lines:
        return b"", frame
    text = b"\n".join(line[2] for line in lines)
    new = _edited(text, edits)
    if new == text:
        return text, frame
    name, _, end = lines[0].groups()
    name = PLAIN if b":" not in name else name
    written = end.join(name + part for part in new.split(b"\n")) + lines[-1][3]
    between = (frame[i.end() : j.start()] for i, j in pairwise(lines))
    return text, b"".join([frame[: lines[0].start(1)], written, *between, frame[lines[-1].end() :]])


def _edited(text: bytes, edits: Edits) -> bytes:
    if text.startswith(DONE):
        return text
    try:
        return edits.text(text)
    except ValueError:
        return text


def is_last(data: bytes) -> bool:
    """Whether nothing of the output follows these data."""
    if data.startswith(DONE):  # where clients stop reading
        return True
    if not LAST.search(data):  # of most frames, without reading them
        return False
    value = object_of(data)
    return value is not None and value.get("type") in LAST_EVENTS
