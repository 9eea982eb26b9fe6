r"""The last boxes of a solution, \boxed{5}, and what stands around them, in linear time."""

from __future__ import annotations

import re
from collections import deque
from dataclasses import dataclass

import numpy as np

from gatekeeper.maths.vocabulary import FUNCTIONS, MULTIPLES, PARTS

__all__ = ["Box", "find", "is_term", "join"]

MAX_BOXES = 32  # only the last box and its neighbours matter; bounds the work
MAX_GAP = 60  # characters between joined boxes, and around a box
MAX_FORMULA = 2000  # characters of a formula before its box

_BOX = re.compile(r"\\(?:boxed|fbox)(?![a-zA-Z])")
_UNBRACED = re.compile(r"\s*(-?[\d.,/]*\d|-?\\frac\s?\d\s?\d|[A-Za-z](?![A-Za-z]))")
# What may stand between joined boxes: mathematics delimiters, spacing, a name such as "x =".
_FILLER = re.compile(
    r"\\[()\[\]]|\\(?:q?quad|(?:thin|med|thick|en)?space)(?![a-z])|\\[hm]space\*?\{[^{}]*\}|\\text"
    r"|\\[,;:!>& ]|[\s~$&{}]|[A-Za-z]\s*="
)
_JOINT = re.compile(  # "or", "(or", ", or else", "/"
    r"(?=.*[a-z,;/|])[-,;/|(]*"
    r"(?:(?:and|or|else|vs\.?|versus|also|maybe|perhaps|possibly|alternatively)[-,;/|(]*)*",
    re.IGNORECASE,
)
_MINUS = re.compile(r"(?:[$=]|\\[(\[])\s*-\s*\Z")  # $-\boxed{5}$, but no bullet of a list
_NAME = re.compile(r"(?<![A-Za-z])([A-Za-z])\s*=\s*\Z")
_DENIED = re.compile(  # "not \boxed{5}", x \neq \boxed{5}
    r"(?:(?:\bnot|n't)(?: be)?|\b(?:never|rather than|instead of)|(\\neq?|\\not\s?=|≠))"
    r"[\s*]*(?:\$\$?|\\[(\[])?\s*\Z"
)
_FRAME = " \n\t$*([\\"
_DENIALS = ("not", "n't", "be", "never", "than", "of", "ne", "neq", "=", "≠")
_DELIMITER = re.compile(r"(?<!\\)(?:\$\$?|\\[()\[\]]|\\(?:begin|end)\{|\n\s*\n)")
_OPENING = (r"\(", r"\[", r"\begin{")
_SIGN = r"(?:[-+/×·]|\\(?:cdot|times|div|pm|mp)(?![a-z]))"
_FUNCTION = rf"\\(?:{'|'.join(FUNCTIONS)})"
# \\cdot, \\times, \\div, \\pm, \\mp, \\pi, and functions
_OPERAND_ENDS = frozenset("0123456789{^+-/×·tsvmpi").union(name[-1] for name in FUNCTIONS)
_THIN = ("\\,", "\\;", "\\:", "\\!", "\\", "\\left")
_TERM_BEFORE = re.compile(  # 2\boxed{5}, 3+\boxed{5}, [-\boxed{5}, \ln\boxed{5}, \sqrt{\boxed{5}}
    rf"(?:\d|\\pi|[)\]}}\w!'|]\s*{_SIGN}\s*|(?<!\\)[(\[:,{{] ?-|{_FUNCTION}|\\pm|\^|[\^_]\{{"
    r"|\\[dt]?frac(?:\{[^{}]*\})?\{|\\sqrt(?:\[[^\[\]]*\])?\{)\Z"
)
_TERM_AFTER = re.compile(  # \boxed{5}^2, \boxed{5}.5, \boxed{5}(x+1), but not \boxed{5}^\circ
    r"!|\^(?!\{?\\(?:circ|text|mathrm))|_\{?\w|(?:[.,]|\{,\})?\d"
    r"|\\(?:pi|theta|alpha|beta|lambda|[dt]?frac|binom)(?![a-z])"
    rf"|{_FUNCTION}(?![a-z])|(?:\\left)?\([\da-z]{{1,3}}\s?[-+]"
    rf"|[xyznkabite](?!\w)|\s*{_SIGN}\s*(?:[\w(]|\\[a-zA-Z]+)"
)
_WORDS_AFTER = re.compile(  # \boxed{5} million, $\boxed{5}$ or more, \boxed{5} or $6$
    rf"\s*(?:\$\$?|\\[)\]])?(?:\\text\{{)?\s*(?:(?:(?:{MULTIPLES})s?|(?:{PARTS}|hundredth)s"
    r"|squared|cubed|and a (?:half|third|quarter)|or (?:more|less|fewer))\b|(?:and|or) \$?-?\d)",
    re.IGNORECASE,
)
_SIGN_BEFORE = re.compile(r"(?:minus|negative)[ $*]*(?:\\[(\[])?\Z", re.IGNORECASE)
_WORDS = re.compile(  # a choice beside its value
    r"\\text|\A(?:\\math[a-z]+\{)?\(?[A-J]\)?\}?\Z"
)


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
        start = match.start()
        if start < end:
            continue  # inside the previous box
        before = text[max(0, start - MAX_GAP) : start]
        opening = match.end()
        while opening < len(text) and text[opening].isspace():
            opening += 1
        if opening < len(text) and text[opening] == "{":
            tail = depth[opening - offset :]
            closing = int(np.argmax(tail < tail[0]))  # 0 where the brace is never closed
            content = text[opening + 1 : opening + closing].strip() if closing else None
            if content and _has_minus(text, start):
                content = f"-({content})"
            box = Box(start, opening + closing + 1, content)
        elif token := _UNBRACED.match(text, match.end()):
            box = Box(start, token.end(), token[1])
        else:
            continue  # prose that mentions the command
        end = box.end if box.content is not None else 0
        denied = _denied(before)
        if not denied:
            boxes.append(box)
        elif denied[1]:
            excluded.append(box)
    return boxes or excluded


def join(text: str, boxes: list[Box]) -> str | None:
    r"""The content of the last box with those that belong to it: "2, 3", or "x=2, y=3"."""
    last = boxes[-1]
    if not last.content:
        return None
    parts = [last]
    for box, following in zip(boxes[-2::-1], boxes[:0:-1], strict=True):
        gap = text[box.end : following.start]
        words = _FILLER.sub("", gap)
        beside = not words and "\n" not in gap  # two boxes on one line
        if not box.content or len(gap) > MAX_GAP or not (beside or _JOINT.fullmatch(words)):
            break
        parts.append(box)
    if len(parts) == 1:
        return last.content
    contents = list(dict.fromkeys(box.content or "" for box in reversed(parts)))
    names = [_NAME.search(text, max(0, box.start - MAX_GAP), box.start) for box in reversed(parts)]
    if len(contents) == len(parts) == len({name[1] for name in names if name}) > 1:
        contents = [f"{name[1]}={x}" for name, x in zip(names, contents, strict=True) if name]
    return ", ".join(contents)


def is_term(text: str, box: Box) -> bool:
    r"""Whether a box is a term of a formula, as in 2\boxed{5}: the answer may be the whole of it.

    The missing 6 of x^2+\boxed{6}x+9 is the answer, in another solution the whole may be, as may
    \boxed{5} million, and x \neq \boxed{5}.
    """
    before, after = text[max(0, box.start - MAX_GAP) : box.start], text[box.end : box.end + MAX_GAP]
    if _WORDS_AFTER.match(after) or _SIGN_BEFORE.search(before) or _denied(before):
        return True
    near = before.rstrip()
    while near.endswith(_THIN) and not near.endswith(r"\\"):
        near = near[: near.rindex("\\")].rstrip()
    if near[-1:] in _OPERAND_ENDS and _TERM_BEFORE.search(near):
        touches = near == before
    elif match := _TERM_AFTER.match(after):
        touches = not match[0][0].isspace() and match[0] != "!"
    else:
        return False
    if _WORDS.search(box.content or ""):
        return False
    return touches or _is_formula(text[max(0, box.start - MAX_FORMULA) : box.start])


def _denied(before: str) -> re.Match[str] | None:
    r"""The denial at the end of a text; its first group is a sign such as \neq."""
    return _DENIED.search(before) if before.rstrip(_FRAME).endswith(_DENIALS) else None


def _has_minus(text: str, start: int) -> bool:
    r"""Whether a minus that stands alone belongs to the box: $-\boxed{5}$, x = -\boxed{5}."""
    before = text[max(0, start - MAX_GAP) : start]
    minus = _MINUS.search(before) if before.rstrip().endswith("-") else None
    if not minus:
        return False
    return minus[0][0] == "=" or _is_formula(text[max(0, start - MAX_FORMULA) : start])


def _is_formula(before: str) -> bool:
    """Whether a text ends within mathematics delimiters."""
    inside = False
    for match in _DELIMITER.finditer(before):
        inside = match[0] in _OPENING or (match[0][0] == "$" and not inside)
    return inside


def _depth(text: str) -> np.ndarray[tuple[int], np.dtype[np.int32]]:
    """Brace depth after each character, escaped braces not counted; shape (len(text),)."""
    masked = text.replace("\\\\", "  ").replace("\\{", "  ").replace("\\}", "  ")
    code = np.frombuffer(masked.encode("utf-32-le", "surrogatepass"), dtype=np.uint32)
    step = (code == ord("{")).astype(np.int32) - (code == ord("}"))
    return np.cumsum(step, dtype=np.int32)
