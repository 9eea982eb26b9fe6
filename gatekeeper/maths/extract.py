"""Find the final answer in a model's solution, in linear time.

The order of places: the last box, with the boxes joined to it by "and", "or" or a comma; the last
"final answer is", "answer:" or "####"; the whole text where it is a short bare answer. There is no
last-number fallback: a number in a refusal is not an answer.
"""

from __future__ import annotations

import re
from collections import deque
from dataclasses import dataclass

import numpy as np

__all__ = ["extract"]

MAX_BOXES = 32  # only the last box and its neighbours matter; bounds the work
MAX_GAP = 60  # characters between joined boxes
MAX_BARE = 100  # characters of a bare answer

BOX = re.compile(r"\\(?:boxed|fbox)(?![a-zA-Z])")
UNBRACED = re.compile(r"\s*(-?[\d.,/]*\d|-?\\frac\s?\d\s?\d|[A-Za-z](?![A-Za-z]))")
# What may stand between joined boxes: mathematics delimiters, spacing, a name such as "x =".
FILLER = re.compile(
    r"\\[()\[\]]|\\(?:q?quad|(?:thin|med|thick|en)?space)(?![a-z])|\\[hm]space\*?\{[^{}]*\}|\\text"
    r"|\\[,;:!>& ]|[\s~$&{}]|[A-Za-z]\s*="
)
JOINT = re.compile(  # "or", "(or", ", or else", "/"
    r"(?=.*[a-z,;/|])[-,;/|(]*"
    r"(?:(?:and|or|else|vs\.?|versus|also|maybe|perhaps|possibly|alternatively)[-,;/|(]*)*",
    re.IGNORECASE,
)
MINUS = re.compile(r"(?:[$=]|\\[(\[])\s*-\s*\Z")  # $-\boxed{5}$, but no bullet of a list
CUE = re.compile(
    r"(?<!cannot )(?<!can't )(?<!no )(?<!not )(?:answers?|correct (?:option|choice))\**\s{0,3}"
    r"(?:(?:is|are|=)\b\**\s{0,3}:?|[:=])\**|####|<answer>"
    r"|^[#* ]{0,8}(?:final )?answer[* ]{0,4}$",
    re.IGNORECASE | re.MULTILINE,
)
_FORMULA = (
    r"(?:\$\$[^$]+\$\$|\$[^$]+\$|\\\([^\\]*(?:\\[^)\\][^\\]*)*\\\)"
    r"|\\\[[^\\]*(?:\\[^\]\\][^\\]*)*\\\])"
)
FORMULAS = re.compile(  # "$5$ and $6$", "$5$ (or maybe $6$)", "$5$ / $6$"
    rf"{_FORMULA}(?:\s*\(?(?:,|/|,?\s?(?:and|or)(?:\s(?:else|also|maybe|perhaps|possibly))?)\s*"
    rf"{_FORMULA}\)?)*"
)
SENTENCE_END = re.compile(
    r"\.(?=\s|$)|</answer>|[\r\n]|,?\s(?:because|since|so|as|for|which)\b"
    r"|,\s(?!(?:and|or|maybe|perhaps|possibly|alternatively)\b|(?:but|though)\b.{0,20}\b(?:could|might|may)\b)"
    r"(?=[a-z]{2,}\b)"
)
WORD = re.compile(r"(?<![\\A-Za-z])[A-Za-z]{2,}")
REFUSAL = re.compile(
    r"\b(?:no (?:final )?answer|not? (?:known|sure)|don'?t know|unknown|fail(?:s|ed)?|sorry"
    r"|cannot|can'?t|unable|n/a|no idea|give up)\b",
    re.IGNORECASE,
)


@dataclass(frozen=True, slots=True)
class _Box:
    start: int  # of the backslash
    end: int  # one past the closing brace
    content: str | None  # None: never closed


def extract(response: str) -> str | None:
    """The final answer as written, stripped, or None where there is none.

    An unclosed `<think>`, and an unclosed or empty last box, are no answer. Joined boxes come back
    as one list, "a, b".
    """
    _, mark, text = response.rpartition("</think>")
    if not mark and response.lstrip().startswith("<think>"):
        return None  # the reasoning has no end
    boxes = _boxes(text)
    if boxes:
        return _join(text, boxes)
    return _after_cue(text) or _bare(text)


def _boxes(text: str) -> list[_Box]:
    """The last outermost boxes, in order of appearance."""
    found = deque(BOX.finditer(text), maxlen=MAX_BOXES)
    if not found:
        return []
    offset = found[0].start()
    depth = _depth(text[offset:])
    boxes: list[_Box] = []
    for match in found:
        start = match.start()
        if boxes and boxes[-1].content is not None and start < boxes[-1].end:
            continue  # inside the previous box
        opening = match.end()
        while opening < len(text) and text[opening].isspace():
            opening += 1
        if opening < len(text) and text[opening] == "{":
            tail = depth[opening - offset :]
            closing = int(np.argmax(tail < tail[0]))  # 0 where the brace is never closed
            end = opening + closing
            content = text[opening + 1 : end].strip() if closing else None
            if content and MINUS.search(text[max(0, start - MAX_GAP) : start]):
                content = f"-({content})"
            boxes.append(_Box(start, end + 1, content))
        elif token := UNBRACED.match(text, match.end()):
            boxes.append(_Box(start, token.end(), token[1]))
        # Otherwise it is no box: prose that mentions the command.
    return boxes


def _depth(text: str) -> np.ndarray[tuple[int], np.dtype[np.int32]]:
    """Brace depth after each character, escaped braces not counted; shape (len(text),)."""
    masked = text.replace("\\\\", "  ").replace("\\{", "  ").replace("\\}", "  ")
    code = np.frombuffer(masked.encode("utf-32-le", "surrogatepass"), dtype=np.uint32)
    step = (code == ord("{")).astype(np.int32) - (code == ord("}"))
    return np.cumsum(step, dtype=np.int32)


def _join(text: str, boxes: list[_Box]) -> str | None:
    last = boxes[-1]
    if not last.content:
        return None
    parts = [last.content]
    for box, following in zip(boxes[-2::-1], boxes[:0:-1], strict=True):
        gap = text[box.end : following.start]
        words = FILLER.sub("", gap)
        beside = not words and "\n" not in gap  # two boxes on one line
        if not box.content or len(gap) > MAX_GAP or not (beside or JOINT.fullmatch(words)):
            break
        parts.append(box.content)
    return ", ".join(reversed(parts))


def _after_cue(text: str) -> str | None:
    cues = deque(CUE.finditer(text), maxlen=1)
    if not cues:
        return None
    end = cues[0].end()
    rest = text[end : end + 4 * MAX_BARE].lstrip(" \t\r\n*:")
    formulas = FORMULAS.match(rest)
    if formulas:
        answer = formulas[0]
    else:
        stop = SENTENCE_END.search(rest)
        answer = rest[: stop.start()] if stop else rest
    answer = answer.strip(" *\t\r\n")
    return answer if answer and not REFUSAL.search(answer) else None


def _bare(text: str) -> str | None:
    """The text itself, if it is one short line with no more than two words of prose."""
    answer = text[: 4 * MAX_BARE].strip() if len(text) <= 4 * MAX_BARE else ""
    if not answer or len(answer) > MAX_BARE or "\n" in answer or REFUSAL.search(answer):
        return None
    return answer if len(WORD.findall(answer)) <= 2 else None
