r"""What stands around a box: a denial, a minus, or the rest of a larger term.

"It is not \boxed{5}" denies it, and in "2\boxed{5}" it is a part.
"""

from __future__ import annotations

import re

from gatekeeper.maths import units
from gatekeeper.maths.vocabulary import CHANGES, FUNCTIONS, MULTIPLES, PARTS, PRECISION

__all__ = ["SPACES", "begins_sum", "denial", "has_minus", "is_bracketed", "is_part"]

MAX_AROUND = 60  # characters before and after a box
MAX_FORMULA = 2000  # characters of a formula before its box

_FRAME_OF_LINE = " $*([\\_\"'"
_FRAME = _FRAME_OF_LINE + "\n\t"
# The ends of a denial, and of what changes the number after it: a fast test before the patterns.
_NEGATIVES = ("cannot", "not", "never", "neither", "nor")
_OF_NEGATIVES = ("be", "equal", "equals", "equal to", "simply", "just", "merely", "only")
_EXCHANGES = ("rather than", "instead of")
_UNEQUAL = (r"\ne", r"\neq", r"\not=", r"\not =", "≠")
_DENIALS = (*_NEGATIVES, "n't", *_OF_NEGATIVES, "the answer", *_EXCHANGES, *_UNEQUAL)
_DENIED = re.compile(  # "not \boxed{5}", "is not equal to \boxed{5}", x \neq \boxed{5}
    rf"(?:(?:\b(?:{'|'.join(_NEGATIVES)})|n't)(?: (?:{'|'.join(_OF_NEGATIVES)}|the answer))*"
    rf"|\b(?:{'|'.join(_EXCHANGES)})|({'|'.join(map(re.escape, _UNEQUAL))}))\Z",
    re.IGNORECASE,
)
_MINUS = re.compile(r"(?:[$=]|\\[(\[])\s*-\s*\Z")  # $-\boxed{5}$, but no bullet of a list
_FACTORS = ("minus", "negative", "twice", "double", "thrice", "triple", "half", "than")
_CHANGES_BEFORE = (*_FACTORS, "of", "and", "or")
_CHANGED_BEFORE = re.compile(  # "minus \boxed{5}", "half of \boxed{5}", "$x=3$ or $x=\boxed{5}$"
    rf"(?:\b(?:{'|'.join(_FACTORS)})"
    r"|\b(?:half|third|quarter|root|square|cube|reciprocal|inverse|opposite|negative) of"
    r"|(?:\A|[,.:;(] |(?<![\\a-z])[a-z]+ )\$?-?\d[\d./]*[$)]* (?:and|or)"
    r"|\b[a-z]\s*=\s*[^ $]+[$)\]\\ ]*\bor)\Z",
    re.IGNORECASE,
)
_DELIMITER = re.compile(r"(?<!\\)(?:\$\$?|\\[()\[\]]|\\(?:begin|end)\{|\n\s*\n)")
_OPENING = (r"\(", r"\[", r"\begin{")
_ROWS = re.compile(r"\\(begin|end)\{(?:[bpvBV]?matrix|smallmatrix|cases)\}")
_SIGN = r"(?:[-+/×·]|\\(?:cdot|times|div|pm|mp)(?![a-z]))"
_RELATION = r"(?:[<>≤≥≠]|\\(?:le|ge|lt|gt|leq|geq|neq?|leqslant|geqslant)(?![a-z]))"
_FUNCTION = rf"\\(?:{'|'.join(FUNCTIONS)})"
_FACTOR = (  # a command that begins or ends an operand
    r"\\(?:pi|theta|phi|alpha|beta|gamma|delta|lambda|rho|sigma|tau|omega|infty|[dt]?frac|[dt]?binom"
    r"|vec|hat|bar|overline|overrightarrow|mathbf)(?![a-z])"
)
_THIN = tuple(
    "\\" + name for name in ("", ",", ";", ":", "!", "quad", "qquad", "big", "Big", "bigl", "Bigl")
)
_ENTERED = (  # the part of a term whose brace opens before the box
    r"[\^_]\{|\\(?:[dt]?frac|[dt]?binom)(?:\{[^{}]*\})?\{|\\sqrt(?:\[[^\[\]]*\])?\{"
    r"|\\(?:overline|bar|dot|hat)\{"
)
_TERM_BEFORE = re.compile(  # 2\boxed{5}, 3+\boxed{5}, [-\boxed{5}, \ln\boxed{5}, \sqrt{\boxed{5}}
    rf"(?:\d\(?|\\pi|[)\]}}\w!'|]\s*{_SIGN}\s*|(?<!\\)[(\[:,{{] ?-|\\pm|\\mp|\^|{_ENTERED}"
    rf"|{_FUNCTION}(?:_(?:\w|\{{[^{{}}]*\}}))?\(?|\||\\[lr]?[vV]ert|\\l(?:floor|ceil|angle))\Z"
)
_NEUTRAL = ("", "$", "=", " ", "\n")
_JOINED_BEFORE = re.compile(r"\d(?:[.,]|\{,\})\Z")  # 0.\boxed{5}, but "It costs $5. \boxed{5}"
_FORMULA_BEFORE = re.compile(  # x>\boxed{5}, f(\boxed{5}), (3,\boxed{5}, 2:\boxed{5}
    rf"(?:{_RELATION}|{_FACTOR}|(?<!\\)\)|[\w)}}]\(|\d\s?[:;,]|(?<![\\A-Za-z])[A-Za-z])\Z"
)
_TERM_AFTER = re.compile(  # \boxed{5}^2, \boxed{5}.5, \boxed{5}(x+1), but not \boxed{5}^\circ
    r"\^(?!\{?\\(?:circ|text|mathrm))|\^\{?\\circ\}?\s?\d|_\{?\w|(?:[.,]|\{,\})?\d|'{1,2}\s?\d"
    rf"|{_FACTOR}|{_FUNCTION}(?![a-z])|(?:\\left)?\([\da-z]{{1,3}}\s?[-+]"
    rf"|(?:[xyz]{{1,3}}|[a-fijkn-rt-w])(?!\w)|{_SIGN}\s*(?:[\w(]|\\[a-zA-Z]+)"
)
_FORMULA_AFTER = re.compile(  # \boxed{5}<x, (\boxed{5},3), (\boxed{5})^2, \boxed{5}:3, \boxed{5}&1
    rf"!|(?:\s|\\[,;:! ])*(?:{_RELATION}|[:;,&](?:\s|\\[,;:! ])*-?(?:\d|\\(?:[dt]?frac|sqrt|infty))"
    rf"|(?:\\right)?[)\]]\s?[\^!]|{_FACTOR}|{_SIGN}\s*(?:[\w(]|\\[a-zA-Z]+))"
)
SPACES = r"[ ~$*{}]|\\[ ,;:!()\[\]]|\\(?:q?quad|text|mathrm|mbox|textbf)(?![a-z])"
_GAP = rf"(?:\s|{SPACES})*"
_OF_NUMBER = rf"and|or|to(?! {PRECISION})|out of|(?:more|less|fewer) than|times|over"
_WORDS_AFTER = re.compile(  # \boxed{5} million, $\boxed{5}$ or more, \boxed{5} or $6$
    rf"{_GAP}\(?(?:(?:(?:{MULTIPLES}|lakh|crore|[mb]n|mil|k)s?|(?:{PARTS})s|{CHANGES}"
    rf"|and (?:an?|one|two|three|four|five)[- ](?:half|{PARTS})s?"
    rf"|(?:(?:more|less|fewer) than|times){_GAP}[b-z])\b"
    rf"|(?:{_OF_NUMBER})\b{_GAP}(?:[a-z]\s?=\s?)?-?(?:\d|\\[dt]?frac|\\sqrt|\\pi))",
    re.IGNORECASE,
)
_CHAINED = re.compile(  # \boxed{2} to \boxed{3}
    r"\\boxed\s?\{[^{}]*\}[ $]*(?:\\text\{)?(?: ?[:–-]|\.(?! )| ?(?:to|out of|remainder|times"
    r"|plus|minus|over|divided by|(?:more|less|fewer) than)\b)[ $}]*\Z"
)
_UNIT_BEFORE = re.compile(r"\\boxed\s?\{[^{}]*\}[ $]*(?:\\text\{)?\s*([a-z]+)\}?,?(?: and)?[ $]*\Z")
_UNIT = re.compile(rf"{_GAP}([A-Za-z]+)")
_TWO_UNITS = re.compile(  # \boxed{5} hours and 30 minutes
    rf"{_GAP}([A-Za-z]+){_GAP},?\s?(?:and\b)?{_GAP}\d+(?:\.\d+)?{_GAP}([A-Za-z]+)"
)
_CLOSING = re.compile(r"\s?(?:\\right)?[)\]]")
_WORDS = re.compile(  # a choice beside its value
    r"\\text|\A(?:\\math[a-z]+\{)?\(?[A-J]\)?\}?\Z"
)


def denial(text: str, start: int) -> re.Match[str] | None:
    r"""The denial right before a box; its first group is a sign such as \neq."""
    stem = text[max(0, start - MAX_AROUND) : start].rstrip(_FRAME)
    return _DENIED.search(stem) if stem.lower().endswith(_DENIALS) else None


def has_minus(text: str, start: int) -> bool:
    r"""Whether a minus that stands alone belongs to the box: $-\boxed{5}$, x = -\boxed{5}."""
    before = text[max(0, start - MAX_AROUND) : start]
    minus = _MINUS.search(before) if before.rstrip().endswith("-") else None
    if not minus:
        return False
    return minus[0][0] == "=" or _is_formula(text[max(0, start - MAX_FORMULA) : start])


def is_part(text: str, begin: int, start: int, end: int, content: str) -> bool:
    r"""Whether the box from start to end is a part of a larger term, as in 2\boxed{5}.

    Text before `begin` does not count.

    The answer may be the whole of it: the missing 6 of x^2+\boxed{6}x+9 is the answer, in another
    solution the whole may be, as may \boxed{5} million, and x \neq \boxed{5}.
    """
    before, after = text[max(begin, start - MAX_AROUND) : start], text[end : end + MAX_AROUND]
    stem = before.rstrip(_FRAME_OF_LINE)
    if stem.endswith("="):
        stem = stem[:-1].rstrip()[:-1].rstrip(_FRAME_OF_LINE)  # its name
    if stem.lower().endswith(_CHANGES_BEFORE) and _CHANGED_BEFORE.search(stem):
        return True
    if _WORDS_AFTER.match(after) or denial(text, start):
        return True
    if r"\boxed" in before and (_CHAINED.search(before) or _continues_sum(before, after)):
        return True
    if begins_sum(after):
        return True
    if _WORDS.search(content):
        return False
    before = before.replace(r"\left", "")
    if _TERM_AFTER.match(after) or _is_operand(before):
        return True
    formula = text[max(0, start - MAX_FORMULA) : start]
    if _FORMULA_AFTER.match(after) or _is_operand(_without_space(before), in_formula=True):
        return _is_formula(formula)
    return ("matrix}" in formula or "cases}" in formula) and _is_cell(formula)


def _is_operand(before: str, *, in_formula: bool = False) -> bool:
    """Whether a text ends in an operand, or in a sign that takes one."""
    if before[-1:] in _NEUTRAL:
        return False
    other = _FORMULA_BEFORE if in_formula else _JOINED_BEFORE
    return bool(_TERM_BEFORE.search(before) or other.search(before))


def _without_space(text: str) -> str:
    text = text.rstrip()
    while text.endswith(_THIN) and not text.endswith(r"\\"):
        text = text[: text.rindex("\\")].rstrip()
    return text


def _continues_sum(before: str, after: str) -> bool:
    r"""Whether the box is the 3 of \boxed{2} hours and \boxed{3} minutes."""
    first, second = _UNIT_BEFORE.search(before), _UNIT.match(after)
    return (
        first is not None
        and second is not None
        and units.is_sum(rf"1\text{{{first[1]}}}1\text{{{second[1]}}}")
    )


def begins_sum(after: str) -> bool:
    """Whether a number goes on with its unit and a second quantity: 5 hours and 30 minutes."""
    two = _TWO_UNITS.match(after)
    return two is not None and units.is_sum(rf"1\text{{{two[1]}}}1\text{{{two[2]}}}")


def is_bracketed(text: str, start: int, end: int) -> bool:
    """Whether several boxes from start to end stand in the brackets of a point or an interval."""
    after = _CLOSING.match(text, end)
    before = text[max(0, start - MAX_AROUND) : start].rstrip().removesuffix(r"\left")
    is_opened = before.endswith(("(", "[")) and not before.endswith((r"\(", r"\["))
    return bool(after) and is_opened and _is_formula(text[max(0, start - MAX_FORMULA) : start])


def _is_formula(before: str) -> bool:
    """Whether a text ends within mathematics delimiters."""
    inside = False
    for match in _DELIMITER.finditer(before):
        inside = match[0] in _OPENING or (match[0][0] == "$" and not inside)
    return inside


def _is_cell(before: str) -> bool:
    """Whether a text ends within a matrix or a system."""
    rows = [match[1] for match in _ROWS.finditer(before)]
    return rows[-1:] == ["begin"]
