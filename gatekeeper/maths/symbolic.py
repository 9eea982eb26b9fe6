"""Symbolic equality by math-verify, after guards and with a second check of what it accepts.

It runs in worker processes only. It never evaluates text as code, and the guards refuse expressions
that would exhaust SymPy.
"""

from __future__ import annotations

import re
from typing import Any

import sympy
from math_verify import LatexExtractionConfig, parse, verify

from gatekeeper.maths import exact
from gatekeeper.maths.normalise import MAX_LENGTH, MAX_NESTING

__all__ = ["TooComplexError", "equal"]

MAX_EXPONENT = 3_000
MAX_DIGITS = 1_000  # of one number
MAX_FACTORIAL = 10_000

# Only the whole box: math-verify would read a fraction inside a text that it cannot read.
_LATEX = [LatexExtractionConfig(boxed_match_priority=0, try_extract_without_anchor=False)]
_FORBIDDEN = re.compile(
    r"__|\*\*|!!|!\^|[\d)}]_\{|\\(?:int|iint|oint|sum|prod|lim|det|dots|begin\{[vV]matrix)(?![a-z])"
)
_BIG_NUMBER = re.compile(rf"\d{{{MAX_DIGITS + 1}}}")
# A number, a variable, or a short sum with a variable in parentheses; else the operand is empty.
_FACTORIAL = re.compile(r"(\((?=[^()]*[a-zA-Z])[a-zA-Z\d+-]{1,8}\)|\d+|[a-zA-Z])?!")
_BINOMIAL = re.compile(r"\\binom\{[^{}]*\d{4}")
_LETTER = re.compile(r"\\[a-zA-Z]+(?:\{[a-zA-Z]+\})?|([A-Za-z])")
_DEGREES = re.compile(r"(\d+(?:\.\d+)?|[A-Za-z]|\\frac\{\w+\}\{\w+\})\^\{\\circ\}")
_DIGITS = 30  # of the numerical second check


class TooComplexError(Exception):
    """A guard refused the comparison: whether the answer is right is not known."""


def equal(gold: str, answer: str) -> bool:
    """Whether two canonical answers are equal.

    Raises
    ------
    TooComplexError
        If a guard refuses the comparison.
    """
    for text in (gold, answer):
        _guard(text)
    if gold.count("'") != answer.count("'"):
        return False  # math-verify does not separate f' from f
    gold, answer = _separate_cases(gold, answer)
    x, y = _parse(gold), _parse(answer)
    if x is None:
        raise TooComplexError("the reference answer is not understood")
    if y is None:
        return False
    accepted = verify(x, y, timeout_seconds=None, allow_set_relation_comp=True)
    return bool(accepted) and _values_agree(x, y)


def _separate_cases(gold: str, answer: str) -> tuple[str, str]:
    """Give capitals another letter where both cases occur: math-verify reads R as r."""
    letters = {m[1] for text in (gold, answer) for m in _LETTER.finditer(text) if m[1]}
    free = (c for c in "qwzkhsuvtabcfgjlmnoprxy" if c not in letters and c.upper() not in letters)
    renamed = {
        capital: next(free, capital)
        for capital in sorted(letters)
        if capital.isupper() and (capital.lower() in letters or capital in "EI")
    }

    def rename(match: re.Match[str]) -> str:
        return renamed.get(match[0], match[0])

    return _LETTER.sub(rename, gold), _LETTER.sub(rename, answer)


def _parse(text: str) -> Any:
    """The SymPy object, with real variables; None for a text that math-verify cannot read."""
    latex = _DEGREES.sub(r"(\1\\cdot\\frac{\\pi}{180})", text)
    found = parse(
        rf"\boxed{{{latex}}}",
        _LATEX,
        fallback_mode="no_fallback",
        extraction_mode="first_match",
        parsing_timeout=None,
    )
    if not found:
        return None
    expression = found[0]
    symbols = {
        symbol: sympy.I if symbol.name == "i" else sympy.Symbol(symbol.name, real=True)
        for symbol in expression.free_symbols
        if symbol.name == "i" or not symbol.is_real
    }
    return expression.xreplace(symbols) if symbols else expression


def _guard(text: str) -> None:
    if len(text) > MAX_LENGTH:
        raise TooComplexError("too long to compare")
    if _FORBIDDEN.search(text):
        raise TooComplexError("too complex to compare: a construct that is never evaluated")
    if _BIG_NUMBER.search(text):
        raise TooComplexError("too complex to compare: a number too long")
    if _BINOMIAL.search(text):
        raise TooComplexError("too complex to compare: a large binomial coefficient")
    for operand in _FACTORIAL.findall(text):
        if not operand or (operand.isdecimal() and int(operand) >= MAX_FACTORIAL):
            raise TooComplexError("too complex to compare: a large factorial")
    _guard_exponents(text)


def _guard_exponents(text: str) -> None:
    """Refuse exponents above MAX_EXPONENT and towers of numbers, whose size is unknown."""
    open_braces: list[int | None] = []  # where an exponent starts; None for other braces
    depth = 0
    for i, char in enumerate(text):
        if char == "{":
            open_braces.append(i + 1 if text[i - 1 : i] == "^" else None)
        elif char == "}" and open_braces:
            start = open_braces.pop()
            if start is not None:
                if text[i + 1 : i + 2] == "^":
                    raise TooComplexError("too complex to compare: an exponent of an exponent")
                _guard_exponent(text[start:i])
        depth = max(depth, len(open_braces))
    if depth > MAX_NESTING:
        raise TooComplexError("too deeply nested to compare")


def _guard_exponent(exponent: str) -> None:
    value = exact.value(exponent)
    if value is not None:
        small = max(abs(value.numerator), value.denominator) <= MAX_EXPONENT
    else:
        numbers = re.findall(r"\d+", exponent)
        small = "^{" not in re.sub(r"[a-z]\^\{\d\}", "", exponent) and all(
            len(number) <= len(str(MAX_EXPONENT)) and int(number) <= MAX_EXPONENT
            for number in numbers
        )
    if not small:
        raise TooComplexError("too complex to compare: a tower of powers or a large exponent")


def _values_agree(gold: Any, answer: Any) -> bool:
    """The second check: values must agree relatively, however small they are."""
    try:
        difference = sympy.Abs(gold - answer).evalf(_DIGITS)
        size = sympy.Abs(gold).evalf(_DIGITS)
        if not (difference.is_number and size.is_number):
            return True  # sets, relations, free symbols
        if getattr(difference, "_prec", 0) == 1:
            return True  # no digit is certain: numerically zero
        has_decimal = gold.has(sympy.Float) or answer.has(sympy.Float)
        tolerance = sympy.Float("1e-6" if has_decimal else "1e-12")
        return bool(difference <= tolerance * size)
    except (AttributeError, TypeError, ValueError):
        return True
