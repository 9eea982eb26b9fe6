r"""Whether letters are names that an answer introduces itself.

2k\pi is 2n\pi, and x^2+C is x^2+c; but 6k+1 beside 6n+1 is not certain.
"""

from __future__ import annotations

import re

from gatekeeper.maths import exact

__all__ = ["align", "letters", "rename", "without_constant"]

_INTEGER = (
    r"(?:\\in\s?(?:\\mathbb\{Z\}|Z)"
    r"|\\text\{(?:is |be )?(?:an |any )?(?:arbitrary )?integers?\})"
)
_FOR = r"(?:\\text\{,? ?(?:for|where|with)(?: (?:all|any|every|some|each))?\}|\\forall)"
_DECLARED = [  # "k\in\mathbb{Z}", "for any integer k", "where k is an integer", at the end
    re.compile(rf"(?<=.)(?:[,;]\(?{_FOR}?|\({_FOR}?|{_FOR})\s?([A-Za-z]){_INTEGER}\)?\Z"),
    re.compile(
        r"(?<=.)[,;]?\(?\\text\{,? ?(?:for|where) (?:(?:all|any|every|some|each|an) )?integers?"
        r"(?: values of)?\}([A-Za-z])\)?\Z"
    ),
    re.compile(
        r"(?<=.)[,;]?\(?\\text\{,? ?(?:for|where|with) ([a-z]) (?:is |be )?(?:an |any )?integers?\}"
        r"\)?\Z"
    ),
]
_RELATION = re.compile(r"[<>]|\\(?:leq|geq|neq)(?![a-z])")
_LETTER = re.compile(r"\\text\{[^{}]*\}|\\[A-Za-z]+|[A-Za-z]")
_USUAL = frozenset("kmn")  # names of an integer that need no declaration
_FACTORS = frozenset("ACcK")  # of any size, in the solution of an equation
_VARIABLES = frozenset("xyt")
_PERIODIC = re.compile(r"\\(?:pi|circ)(?![a-z])")
_CURVED = re.compile(r"\^(?!\{\\circ\})|!|\\(?!(?:frac|pi|circ|cdot|pm|lor)(?![a-z]))")
_CONSTANT = re.compile(
    r"\+(?:([CcK])(?:_\{[01]\})?|\\text\{(c)(?:onst|onstant)?\})\Z|\A([Cc])(?=[-+])"
)


def align(gold: str, answer: str) -> tuple[str, str, bool]:
    """The answer with the reference's names of an integer parameter, both without its declaration.

    Returns
    -------
    gold, answer : str
    certain : bool
        False if the letter may be a variable of the question: 6k+1 beside 6n+1.
    """
    gold, declared = _without_declaration(gold)
    answer, also = _without_declaration(answer)
    if exact.value(gold) is not None:
        return gold, answer, True
    if "c_{" in gold and "C_{" in answer and "C_{" not in gold and "c_{" not in answer:
        answer = answer.replace("C_{", "c_{")
    mine, its = letters(gold), letters(answer)
    names = _USUAL | {declared, also} | (_FACTORS if mine & its & _VARIABLES else set())
    other, wanted = (its - mine) & names, (mine - its) & names
    if len(other) != 1 or len(wanted) != 1:
        return gold, answer, True
    (old,), (new,) = other, wanted
    body = gold.rpartition("=")[2]
    is_linear = letters(body) == {new} and not _CURVED.search(body)  # no 2 pi sqrt(m)
    certain = bool(declared or also or (is_linear and _PERIODIC.search(body)))
    return gold, rename(answer, old, new), certain


def rename(text: str, old: str, new: str) -> str:
    """The text with another letter for a variable."""
    return _LETTER.sub(lambda m: new if m[0] == old else m[0], text)


def without_constant(text: str) -> str | None:
    """An integral without its constant, whatever its name; None where there is none."""
    constant = _CONSTANT.search(text)
    if not constant:
        return None
    body = text[: constant.start()] + text[constant.end() :]
    name = next(group for group in constant.groups() if group)
    return None if name in letters(body) else body


def _without_declaration(text: str) -> tuple[str, str]:
    """The text without "k is an integer" at its end, and k; a range keeps it, as a condition."""
    for pattern in _DECLARED if "integer" in text or r"\in" in text else ():
        if (declared := pattern.search(text)) and not _RELATION.search(text):
            return text[: declared.start()], declared[1]
    return text, ""


def letters(text: str) -> set[str]:
    """The variables of a canonical text, without commands and words."""
    return {m[0] for m in _LETTER.finditer(text) if len(m[0]) == 1}
