r"""Whether two expressions are equal by math-verify, after guards and with a second check.

(x+1)^2 equals x^2+2x+1; 9^{9^{9}} is refused, as it would exhaust SymPy. It runs in worker
processes only, and never evaluates text as code.
"""

from __future__ import annotations

import re
from fractions import Fraction
from itertools import zip_longest
from typing import Any

import sympy
from math_verify import LatexExtractionConfig, parse, verify
from math_verify.parser import NormalizationConfig
from sympy.core.relational import Relational

from gatekeeper.maths import exact
from gatekeeper.maths.logic import every
from gatekeeper.maths.normalise import MAX_LENGTH, MAX_NESTING

__all__ = ["TooComplexError", "equal", "near"]

MAX_EXPONENT = 3_000
MAX_DIGITS = 1_000  # of one number
MAX_FACTORIAL = 10_000
MAX_EVALUATED = 30  # digits

# Only the whole box: math-verify would read a fraction inside a text that it cannot read.
# Without its normalisation: the text is canonical, and it would take the t of 2t for a unit.
_LATEX = [
    LatexExtractionConfig(
        boxed_match_priority=0,
        try_extract_without_anchor=False,
        normalization_config=NormalizationConfig(basic_latex=False),
    )
]
_FORBIDDEN = re.compile(
    r"__|\*\*|!!|!\^|[\d)}|]_\{|[A-Za-z]\^\{\(\d\)\}|\^\{\\top\}|\\(?:int|iint|oint|sum|prod|lim|det|dots|begin\{[vV]matrix)(?![a-z])"
    r"|\\(?:gcd|lcm)[^a-zA-Z)]*[a-zA-Z]"  # 1 of any two variables
)
_SIDE_BY_SIDE = re.compile(r"\d \d+(?![\d/])")  # math-verify reads 2 3 as 2 + 3
_BIG_NUMBER = re.compile(rf"\d{{{MAX_DIGITS + 1}}}")
# A number, a variable, or a short sum with a variable in parentheses; else the operand is empty.
_FACTORIAL = re.compile(r"(\((?=[^()]*[a-zA-Z])[a-zA-Z\d+-]{1,8}\)|\d+|[a-zA-Z])?!")
_BINOMIAL = re.compile(r"\\binom\{[^{}]*\d{4}")
_LETTER = re.compile(  # of a name, and a command: the T of \frac{T}{2}, not the R of \mathbb{R}
    r"\\(?:text|math[a-z]+|operatorname|begin|end)\{[a-zA-Z]+\}|\\[a-zA-Z]+|[A-Za-z]"
)
_DEGREES = re.compile(r"(\d+(?:\.\d+)?|[A-Za-z]|\\frac\{\w+\}\{\w+\})\^\{\\circ\}")
_DECIMAL = re.compile(r"(\d+)\.(\d+)")
_REPEATING = re.compile(r"\d+\.\d*\\overline\{\d+\}")
_PRIMED = re.compile(r"[\w)}]'+")
_WORDS = re.compile(r"(\\text\{[^{}]*\})")
_DERIVATIVE = re.compile(r"\\frac\{d[^{}]?\}\{d[a-zA-Z]\}")
_DIGITS = 30  # of the numerical second check


class TooComplexError(Exception):
    """A guard refused the comparison: whether the answer is right is not known."""


def equal(gold: str, answer: str) -> bool | None:
    """Whether two canonical answers are equal; None if they are for positive variables only.

    Raises
    ------
    TooComplexError
        If a guard refuses the comparison.
    """
    halves = exact.half_unit(gold), exact.half_unit(answer)
    gold, answer = _evaluated(gold), _evaluated(answer)
    for text in (gold, answer):
        _guard(text)
    if _SIDE_BY_SIDE.search(gold + answer):
        return gold == answer
    # math-verify ignores primes and words: to it f' is f, and "x if y" is "y if x".
    if sorted(_PRIMED.findall(gold)) != sorted(_PRIMED.findall(answer)):
        return False
    if _WORDS.search(gold + answer):
        pairs = list(zip_longest(_WORDS.split(gold), _WORDS.split(answer), fillvalue=""))
        if any(x != y for x, y in pairs[1::2]):
            return False
        return every(x == y or (x != "" and y != "" and equal(x, y)) for x, y in pairs[::2])
    gold, answer = _separate_cases(gold, answer)
    x, y = _parse(gold), _parse(answer)
    if x is None:
        raise TooComplexError("the reference answer is not understood")
    if y is None:
        return False
    if getattr(x, "is_Matrix", False) != getattr(y, "is_Matrix", False):
        return False
    if (halves[0] is None) != (halves[1] is None) and _differ_by(x, y, halves[0] or halves[1]):
        return True
    if isinstance(x, Relational) and isinstance(y, sympy.Set):
        x, y = y, x  # math-verify compares a set with a relation, but not the other way round
    accepted = verify(x, y, timeout_seconds=None, allow_set_relation_comp=True)
    return _agree(x, y) if accepted else _equal_by_our_rules(x, y)


def near(exactly: str, nearly: str) -> bool:
    """Whether the second is the first, rounded or cut off, where both are numbers."""
    for text in (exactly, nearly):
        _guard(text)
    x, y = _parse(exactly), _parse(nearly)
    if not _are_numbers(x, y):
        return True
    place = exact.last_place(nearly)
    if not place:
        return _is_zero(x - y)
    is_cut = bool(sympy.Abs(x.doit()).evalf(_DIGITS) >= sympy.Abs(y.doit()))
    return _differ_by(x, y, place if is_cut else place / 2)


def _evaluated(text: str) -> str:
    """A short rational number in place of its arithmetic, such as 0.333... or a binomial."""
    value = exact.value(text)
    if value is None or max(abs(value.numerator), value.denominator) >= 10**MAX_EVALUATED:
        return text
    return rf"\frac{{{value.numerator}}}{{{value.denominator}}}"


def _separate_cases(gold: str, answer: str) -> tuple[str, str]:
    """Give capitals another letter where both cases occur: math-verify reads R as r.

    The same for d where there is no derivative, and for T: math-verify reads d m as a differential,
    and takes A^T, the transpose of a variable, for A.
    """
    letters = {m[0] for text in (gold, answer) for m in _LETTER.finditer(text)}
    free = (c for c in "qwzkhsuvtabcfgjlmnoprxy" if c not in letters and c.upper() not in letters)
    special = "EI" if _DERIVATIVE.search(gold + answer) else "EId"
    if r"\end{" not in gold + answer:  # but of a matrix
        special += "T"
    renamed = {
        letter: next(free, letter)
        for letter in sorted(letters)
        if letter in special or (letter != letter.lower() and letter.lower() in letters)
    }

    def rename(match: re.Match[str]) -> str:
        letter = renamed.get(match[0])
        return f" {letter}" if letter else match[0]

    return _LETTER.sub(rename, gold), _LETTER.sub(rename, answer)


def _parse(text: str) -> Any:
    """The SymPy object, with real variables; None for a text that math-verify cannot read."""
    latex = _REPEATING.sub(_rational, _DEGREES.sub(r"(\1\\cdot\\frac{\\pi}{180})", text))
    latex = _DECIMAL.sub(_fraction, latex).replace(r"\overrightarrow", "v_")
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


def _fraction(decimal: re.Match[str]) -> str:
    return rf"(\frac{{{decimal[1]}{decimal[2]}}}{{1{'0' * len(decimal[2])}}})"


def _rational(number: re.Match[str]) -> str:
    value = exact.value(number[0])
    return number[0] if value is None else rf"(\frac{{{value.numerator}}}{{{value.denominator}}})"


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


def _agree(gold: Any, answer: Any) -> bool:
    """The second check, as math-verify takes a small difference for none."""
    if isinstance(gold, sympy.Eq) and isinstance(answer, sympy.Eq):
        return _equations_agree(gold, answer)
    if isinstance(gold, Relational) and isinstance(answer, Relational):
        if _same_difference(gold, answer):
            return True
        solved = _solved(gold)
        return bool(solved) and solved == _solved(answer)
    if isinstance(gold, sympy.And) and isinstance(answer, sympy.And):
        pairs = zip(gold._unsorted_args, answer._unsorted_args, strict=True)
        return all(_agree(x, y) for x, y in pairs)
    if isinstance(gold, sympy.Expr) and isinstance(answer, sympy.Expr):
        return gold == answer or _is_zero(gold - answer)
    return True


def _equal_by_our_rules(gold: Any, answer: Any) -> bool | None:
    """A second look at what math-verify rejects."""
    if isinstance(gold, Relational) and isinstance(answer, Relational):
        return _multiples(gold, answer)
    if not (isinstance(gold, sympy.Expr) and isinstance(answer, sympy.Expr)):
        return False
    symbols = sorted(gold.free_symbols, key=str)
    difference = (gold - answer).doit()  # math-verify leaves sqrt(x^2) as it is
    if difference == 0:
        return True
    if set(symbols) != answer.free_symbols or not _has_a_domain(difference):
        return False
    if not all(_vanishes(difference, _sample(symbols, shift)) for shift in (0, 1)):
        return False
    real = difference.replace(_is_odd_root, _real_root)
    below_zero = ({x: -value for x, value in _sample(symbols, n).items()} for n in (0, 1))
    if all(_vanishes(real, sample) for sample in below_zero):
        return True
    return False if difference.has(sympy.Abs) else None  # |x| is not x


def _multiples(gold: Any, answer: Any) -> bool:
    """Whether two equations, or two inequalities, differ by a factor only."""
    kinds = {sympy.Gt: sympy.Lt, sympy.Ge: sympy.Le}
    if kinds.get(gold.func, gold.func) != kinds.get(answer.func, answer.func):
        return False
    turned = gold.func != answer.func
    try:
        ratio = sympy.cancel(_difference(gold) / _difference(answer))
    except (sympy.PolynomialError, ZeroDivisionError):
        return False
    if not ratio.is_number or not ratio.is_real or ratio.is_zero is not False:
        return False
    return isinstance(gold, (sympy.Eq, sympy.Ne)) or bool(ratio < 0) == turned


def _has_a_domain(expression: Any) -> bool:
    """Whether it has a logarithm, or a power that is not whole."""
    return any(
        isinstance(part, sympy.log) or (part.is_Pow and not part.exp.is_integer)
        for part in sympy.preorder_traversal(expression)
    )


def _is_odd_root(part: Any) -> bool:
    return bool(part.is_Pow and part.exp.is_Rational and part.exp.q > 1 and part.exp.q % 2)


def _real_root(power: Any) -> Any:
    return sympy.sign(power.base) ** power.exp.p * sympy.Abs(power.base) ** power.exp


def _equations_agree(gold: Any, answer: Any) -> bool:
    """Whether the sides differ by the same, or each solution of one solves the other."""
    if _same_difference(gold, answer):
        return True
    pairs = [(gold, _difference(answer)), (answer, _difference(gold))]
    return all(
        bool(solutions := _solved(equation)) and all(_is_zero(other.subs(s)) for s in solutions)
        for equation, other in pairs
    )


def _same_difference(gold: Any, answer: Any) -> bool:
    """Whether the sides of both relations differ by the same, up to the sign."""
    x, y = _difference(gold), _difference(answer)
    return any(_is_zero(x + sign * y) for sign in (1, -1))


def _difference(relation: Any) -> Any:
    return relation.lhs - relation.rhs


def _solved(relation: Any) -> Any:
    """Its solutions, in the form in which math-verify compares them; empty if not known."""
    try:
        return sympy.solve(relation, relation.free_symbols)
    except (NotImplementedError, ValueError):
        return []


def _is_zero(difference: Any) -> bool:
    """Whether no digit of the value is certain, at a sample of its variables."""
    vanishes = _vanishes(difference, _sample(sorted(difference.free_symbols, key=str)))
    return bool(sympy.simplify(difference) == 0) if vanishes is None else vanishes


def _sample(symbols: list[Any], shift: int = 0) -> dict[Any, Any]:
    """A positive value of each variable."""
    return {x: sympy.Rational(17 + 7 * (i + shift), 10 + 3 * i) for i, x in enumerate(symbols)}


def _vanishes(difference: Any, sample: dict[Any, Any]) -> bool | None:
    """Whether no digit of its value there is certain; None where it has none."""
    value = difference.subs(sample).evalf(_DIGITS)
    if not (value.is_number and value.is_finite):
        return None
    return not any(part != 0 and part._prec > 1 for part in value.atoms(sympy.Float))


def _are_numbers(x: Any, y: Any) -> bool:
    return all(isinstance(side, sympy.Expr) and side.is_number for side in (x, y))


def _differ_by(x: Any, y: Any, limit: Fraction | None) -> bool:
    """Whether both are numbers that differ by less than this."""
    if not _are_numbers(x, y):
        return False
    difference = sympy.Abs((x - y).doit()).evalf(_DIGITS)
    return bool(difference.is_finite and difference < sympy.Rational(limit))
