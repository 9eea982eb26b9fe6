r"""Whether letters around a number are words, and no products of variables.

In "18 years old" they are words, in "18 abc" a product.
"""

from __future__ import annotations

import re

from gatekeeper.maths.vocabulary import COUNTS, FUNCTIONS, GREEK, PARTS, PRECISION, WORDS

__all__ = ["in_text"]

_END = r"(?=(?:[.,~\s]|\\(?:[,;:! ]|q?quad)|\\text\{[.,\s]*\})*\Z)"
# "18 years old", "18 integers divisible by 3", "5 more than x"
_OBJECT = r"(?:[a-z]+s\b[a-z' -]*|more|less|fewer) (?:by|than|from) (?:\d+|[b-z])"
_AFTER = re.compile(rf"(?<=[\d}})%])\s+({_OBJECT}|[A-Za-z][A-Za-z' -]*[a-z]){_END}")
_FRACTION = re.compile(rf"\s*(?:{'|'.join(COUNTS)})[ -](?:{PARTS})s\.?\s*", re.IGNORECASE)
_PLAIN = re.compile(r"\s*([A-Za-z][A-Za-z'-]*(?: [A-Za-z][A-Za-z'-]*){2,})[.\s]*")
_CARDINAL = re.compile(rf"(?:{'|'.join(COUNTS)}) (?:hundred|thousand|million) and ", re.IGNORECASE)
_BEFORE = re.compile(  # but not "even and 4", a list
    r"\A\s*([A-Za-z][a-z' -]*[a-z])(?<!\band)(?<!\bor):?\s+(?=[\\\d(-])"
)
_BETWEEN = re.compile(r"(?<=\d)\s+([A-Za-z][A-Za-z' -]*[a-z])\s+(?=\d)")  # 5 out of 8
_OBJECT_END = re.compile(r" (?:by|than|from) (?:\d+|[b-z])\Z")
_WITH_NUMBER = re.compile(r"\\text\{((?=[^{}\d]*\d)[^{}]* [^{}]*)\}")  # \text{there are 18}
_GLUED = re.compile(rf"(?:{'|'.join(FUNCTIONS)}|pi)[a-z]")  # sinx
_ROUNDED = re.compile(  # to 2 decimal places; (rounded to the nearest tenth)
    rf",?\s*\(?(?:(?:when |if )?(?:correct|rounded|accurate) )?to {PRECISION}\.?"
    r"(?: [a-z]+){0,2}(?: of an? [a-z]+)?\)?"
    r"(?=\}|[.\s]*\Z)"
)
_NAMES = re.compile(r"\b[b-z](?= (?:is|equals)\b)")  # the value of x is 5
_WORD = re.compile(r"[A-Za-z][a-z]+(?:[-'][a-z]+)*")
# Words with which no noun begins, and words that are symbols.
_SYMBOLS = frozenset((*WORDS, "times", "choose", "mod", "to", "over", "plus", "minus"))
_MATHS = frozenset((*FUNCTIONS, *GREEK, "pi", "mod", "frac"))
_SURE = re.compile(  # too long or too frequent for a product of variables, or "yen"
    r"[A-Za-z'-]{4,}|is|are|it|we|the|of|off|so|[b-df-hj-np-tv-wy][aeiou][b-df-hj-np-tv-wy]"
)


def in_text(text: str) -> str:
    r"""18 years old as 18\text{ years old}, and there are 18 as \text{there are} 18."""
    if _FRACTION.fullmatch(text):
        return rf"\text{{{text.strip(' .')}}}"  # three quarters
    if " " not in text:
        return text
    if (plain := _PLAIN.fullmatch(text)) and _is_prose(plain[1]):
        is_number = _CARDINAL.match(plain[1]) is not None
        if is_number or _SYMBOLS.isdisjoint(plain[1].lower().split()):
            return rf"\text{{{plain[1]}}}"  # there are no solutions
    if r"\text" in text:
        text = _WITH_NUMBER.sub(lambda m: m[0] if in_text(m[1]) == m[1] else in_text(m[1]), text)
    if "to " in text:
        text = _ROUNDED.sub("", text)
    if (
        (found := _BETWEEN.search(text))
        and _is_prose(found[1])
        and _SYMBOLS.isdisjoint(found[1].lower().split())
    ):
        text = rf"{text[: found.start()]}\text{{ {found[1]} }}{text[found.end() :]}"
    if (
        (found := _AFTER.search(text))
        and _is_prose(found[1])
        and found[1].split()[0] not in _SYMBOLS
    ):
        text = rf"{text[: found.start(1)]}\text{{ {found[1]}}}{text[found.end(1) :]}"
    if (found := _BEFORE.match(text)) and _is_prose(_NAMES.sub("", found[1].lower())):
        text = rf"\text{{{found[1]} }}{text[found.end() :]}"
    return text


def _is_prose(text: str) -> bool:
    """Whether all are words, and one is surely no product of variables."""
    words = text.split()
    if _OBJECT_END.search(text):
        del words[-1]
    if len(words) == 1 and _GLUED.fullmatch(text):
        return False
    return any(map(_SURE.fullmatch, words)) and all(
        word == "a" or (_WORD.fullmatch(word) and word not in _MATHS) for word in words
    )
