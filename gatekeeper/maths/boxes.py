r"""Which boxes of a solution hold its answer: the last, and those joined to it.

It is 5 in "\boxed{3} is too small, so \boxed{5}", and "2, 3" in "\boxed{2} and \boxed{3}". In
linear time.
"""

from __future__ import annotations

import re
from collections import deque
from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from gatekeeper.maths import surroundings

__all__ = ["Box", "content", "find", "is_part", "joined"]

MAX_BOXES = 32  # only the last box and its neighbours matter; bounds the work
MAX_GAP = 60  # characters between joined boxes

_BOX = re.compile(r"\\(?:boxed|fbox)(?![a-zA-Z])")
_UNBRACED = re.compile(r"\s*(-?[\d.,/]*\d|-?\\frac\s?\d\s?\d|[A-Za-z](?![A-Za-z]))")
# What may stand between joined boxes: mathematics delimiters, spacing, a name such as "x =".
_FILLER = re.compile(
    r"\\[()\[\]]|\\(?:q?quad|(?:thin|med|thick|en)?space)(?![a-z])|\\[hm]space\*?\{[^{}]*\}|\\text"
    r"|\\[,;:!>& ]|[\s~$&{}]|[A-Za-z][\s$]*="
)
_JOINT = re.compile(  # "or", "(or", ", or else", "/"
    r"(?=.*[a-z,;/|])[-,;/|(]*"
    r"(?:(?:and|or|else|vs\.?|versus|also|maybe|perhaps|possibly|alternatively)[-,;/|(]*)*",
    re.IGNORECASE,
)
_OR = re.compile(r"(?<![a-z])or(?![a-z])", re.IGNORECASE)
_NAME = re.compile(r"(?<![A-Za-z])([A-Za-z])[\s$]*=[\s$]*\Z")

Depths = np.ndarray[tuple[int], np.dtype[np.int32]]


@dataclass(frozen=True, slots=True)
class Box:
    """A box in a text; `content` is None where it is never closed."""

    start: int  # of the backslash
    end: int  # one past the closing brace
    content: str | None


def find(text: str) -> list[Box]:
    r"""The last outermost boxes, in order of appearance, without those that the text denies.

    Where there is no other, one that x \neq \boxed{3} excludes: this may be the question.
    """
    found = deque(_BOX.finditer(text), maxlen=MAX_BOXES)
    if not found:
        return []
    offset = found[0].start()
    depth = _depth(text[offset:])
    boxes: list[Box] = []
    excluded: list[Box] = []
    end = 0
    for match in found:
        if match.start() < end:
            continue  # inside the previous box
        box = _read(text, match, depth, offset)
        if box is None:
            continue  # prose that mentions the command
        end = box.end if box.content is not None else 0
        denied = surroundings.denial(text, box.start)
        if not denied:
            boxes.append(box)
        elif denied[1]:
            excluded.append(box)
    return boxes or excluded


def _read(text: str, command: re.Match[str], depth: Depths, offset: int) -> Box | None:
    """The box of a command; `depth` has the brace depths from `offset` on."""
    start, opening = command.span()
    while opening < len(text) and text[opening].isspace():
        opening += 1
    if text[opening : opening + 1] == "{":
        tail = depth[opening - offset :]
        closing = int(np.argmax(tail < tail[0]))  # 0 where the brace is never closed
        content = text[opening + 1 : opening + closing].strip() if closing else None
        if content and surroundings.has_minus(text, start):
            content = f"-({content})"
        return Box(start, opening + closing + 1, content)
    token = _UNBRACED.match(text, command.end())
    return Box(start, token.end(), token[1]) if token else None


def joined(text: str, boxes: list[Box]) -> list[Box]:
    """The last box with those right before it that belong to it, in order of appearance."""
    parts = [boxes[-1]]
    for box, following in zip(boxes[-2::-1], boxes[:0:-1], strict=True):
        gap = text[box.end : following.start]
        words = _FILLER.sub("", gap)
        beside = not words and "\n" not in gap  # two boxes on one line
        if not box.content or len(gap) > MAX_GAP or not (beside or _JOINT.fullmatch(words)):
            break
        parts.append(box)
    return parts[::-1]


def content(text: str, parts: list[Box]) -> str | None:
    r"""What stands in the boxes: "2, 3", or "x=2, y=3"; None where the last has no content.

    Boxes between which "or" stands keep it, because A or B is not A, B.
    """
    last = parts[-1]
    if not last.content or len(parts) == 1:
        return last.content or None
    contents = list(dict.fromkeys(box.content or "" for box in parts))
    names = [_NAME.search(text, max(0, box.start - MAX_GAP), box.start) for box in parts]
    if len(contents) == len(parts) == len({name[1] for name in names if name}) > 1:
        contents = [f"{name[1]}={x}" for name, x in zip(names, contents, strict=True) if name]
    gaps = [text[box.end : following.start] for box, following in pairwise(parts)]
    return (r"\text{ or }" if any(map(_OR.search, gaps)) else ", ").join(contents)


def is_part(text: str, parts: list[Box]) -> bool:
    r"""Whether one box is a part of a larger term, or all are, as in (\boxed{1},\boxed{2})."""
    begin = 0
    for box in parts:
        if surroundings.is_part(text, begin, box.start, box.end, box.content or ""):
            return True
        begin = box.end
    return len(parts) > 1 and surroundings.is_bracketed(text, parts[0].start, begin)


def _depth(text: str) -> Depths:
    """Brace depth after each character, escaped braces not counted; shape (len(text),)."""
    masked = text.replace("\\\\", "  ").replace("\\{", "  ").replace("\\}", "  ")
    code = np.frombuffer(masked.encode("utf-32-le", "surrogatepass"), dtype=np.uint32)
    step = (code == ord("{")).astype(np.int32) - (code == ord("}"))
    return np.cumsum(step, dtype=np.int32)
