"""Whether two answers of one value each are equal: words, numbers, quantities, expressions.

"1.5 hours" equals "90 minutes"; "12 N" beside 12 is not known: newtons, or a variable.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from fractions import Fraction
from itertools import combinations

from gatekeeper.maths import exact, units
from gatekeeper.maths.logic import every, some
from gatekeeper.maths.parameters import without_constant
from gatekeeper.maths.structure import Node, split
from gatekeeper.maths.vocabulary import NEGATIONS, TENTATIVE
from gatekeeper.maths.words import (
    half_day_apart,
    may_be_product,
    same_name,
    same_numeral,
    same_text,
    same_time,
    says_more,
)

__all__ = ["EQUALS", "ScalarComparer", "Symbolic"]

MAX_RATIO = 8  # parts of a ratio
MAX_BASE = 36  # of a numeral, with ten digits and the letters

_RULES = ("string", "text", "choice", "base", "structure", "exact", "symbolic")
_BASE = re.compile(  # FF_{16} has a base, but not A_{1}
    r"\(?([0-9][0-9A-Za-z]*|[0-9A-F]{2,}(?=\)?_\{1\d))\)?_\{\(?(\d+)\)?\}"
)
_DENIED_NAME = re.compile(  # wrong answer = 5, reject x = 5
    rf"\\text\{{(?=[^}}]*\b(?:{NEGATIONS}|{TENTATIVE})\b)[^}}]*\}}[A-Za-z]?="
)
_TEXT = re.compile(r"\\text\{(\w+)\}")
_SMALL = re.compile(r"\A(-?\d+)[eE]-0?(\d{1,2})\Z")  # 3e-5, beside a number
_VARIABLE = re.compile(r"(?<![A-Za-z\\])[A-Za-z](?![A-Za-z])")
EQUALS = frozenset("=")
_COLON = frozenset(":")

Symbolic = Callable[[str, str], bool | None]


class ScalarComparer:
    """Compares one pair of answers; afterwards `rule` is the costliest rule that was needed."""

    def __init__(self, symbolic: Symbolic | None = None, near: Symbolic | None = None) -> None:
        self._symbolic = symbolic
        self._near = near
        self._costliest = 0

    @property
    def rule(self) -> str:
        return _RULES[self._costliest]

    def used(self, rule: str) -> None:
        """Note a rule that was needed."""
        self._costliest = max(self._costliest, _RULES.index(rule))

    def compare(self, gold: Node, answer: Node) -> bool | None:
        """Whether two scalars are equal; None if only symbolic algebra, absent here, can decide."""
        verdict = self._compare(gold, answer)
        return None if verdict and _DENIED_NAME.match(answer.whole) else verdict

    def _compare(self, gold: Node, answer: Node) -> bool | None:
        x, y = gold.text, answer.text
        if x == y:
            return True
        other = answer if gold.name else gold
        if (gold.name is None) != (answer.name is None) and "=" in other.text:
            return self.algebra(gold.whole, answer.whole)  # y = 2x, 2y - 4x = 0
        if "=" in x and "=" not in y and not gold.name:
            self.used("structure")
            return False  # the line x + y = 5 is not 5
        if "=" not in x and len(sides := split(y, EQUALS)) > 1:
            *_, left, y = sides  # a + b = 5 equals 5, but an equation does not equal 0
            if exact.value(y) == 0 and exact.value(left) is None:
                self.used("structure")
                return False
        if "-" in y and exact.value(x) is not None:
            y = _SMALL.sub(r"\1\\cdot10^{-\2}", y)
        if (body := without_constant(x)) and (its := without_constant(y)):
            x, y = body, its
        return self._in_turn(x, y, has_name=bool(gold.name or answer.name))

    def _in_turn(self, gold: str, answer: str, *, has_name: bool) -> bool | None:
        for rule, decide in _DECIDE:
            if decide is same_name and has_name:
                continue  # P = IV is a product
            verdict = decide(gold, answer)
            if verdict is False and (doubt := _DOUBTS.get(decide)) and doubt(gold, answer):
                return None
            if verdict is not None:
                self.used(rule)
                return verdict
        verdict = self._ratio(gold, answer)
        return self._quantities(gold, answer) if verdict is None else verdict

    def _ratio(self, gold: str, answer: str) -> bool | None:
        """1:2:3 is 2:4:6; two parts are a fraction."""
        x, y = split(gold, _COLON), split(answer, _COLON)
        if max(len(x), len(y)) < 3:
            return None
        self.used("structure")
        if len(x) != len(y) or len(x) > MAX_RATIO:
            return False
        return every(
            self._values(rf"({a})\cdot({d})", rf"({b})\cdot({c})")
            for (a, c), (b, d) in combinations(zip(x, y, strict=True), 2)
        )

    def _quantities(self, gold: str, answer: str) -> bool | None:
        mine, its = units.split_both(gold, answer)
        (x, unit_x), (y, unit_y) = mine, its
        if units.is_doubtful(unit_x, unit_y):
            return None
        if not (units.is_neutral(mine, unit_y) and units.is_neutral(its, unit_x)):
            return every((self._values(x, y), None))  # 18 too many
        radians = units.RADIAN in (unit_x, unit_y) or re.search(r"\\(?:pi|arc)", x + y)
        if units.DEGREE in (unit_x, unit_y) and unit_x != unit_y and radians:
            return self.algebra(_radians(mine), _radians(its))
        if unit_x and unit_y:
            return self._in_two_units(x, unit_x, y, unit_y)
        verdict = self._in_one_unit(mine, its)
        least = None if verdict is not False else units.in_least_unit(gold if unit_x else answer)
        if least:
            return self._values(least, y) if unit_x else self._values(x, least)
        return verdict

    def _in_two_units(self, x: str, unit_x: units.Unit, y: str, unit_y: units.Unit) -> bool | None:
        if not (unit_x.dimension and unit_y.dimension):
            # 5 ways are 5 different ways, but 5 pupils may be 5 people, and 5 kJ are not 5 J.
            alike = unit_x.words <= unit_y.words or unit_x.words >= unit_y.words
            alike &= all(word[0] != "^" for word in unit_x.words ^ unit_y.words)
            return every((self._values(x, y), True if alike else None))
        if unit_x == unit_y:
            return self._values(x, y)
        if unit_x.dimension == unit_y.dimension:
            return self._multiple(x, unit_y.factor / unit_x.factor, y)
        self.used("structure")
        wages = units.are_money(unit_x, unit_y)  # $5 beside $5 per hour
        return every((self._values(x, y), None)) if wages else False

    def _in_one_unit(self, gold: units.Quantity, answer: units.Quantity) -> bool | None:
        """Compare two quantities of which one has no unit, or both have none."""
        (x, unit_x), (y, unit_y) = gold, answer
        verdict = self._values(x, y)
        if verdict is not True and unit_y is None and self._equals_in_letters(x, y):
            return None
        unit = unit_x or unit_y
        if unit is None:
            return verdict
        if verdict and unit_y == units.PERCENT:
            number = abs(exact.value(x) or Fraction(0))
            # 0.75% beside 0.75, of a hundred or of one; x% beside x
            return None if 0 < number < 1 or _VARIABLE.search(x) else True
        if factor := units.AMBIGUOUS.get(unit.words):
            scaled = (_times(factor, x), y) if unit_x else (x, _times(factor, y))
            return False if some((verdict, self._values(*scaled))) is False else None
        if verdict is False and unit in (units.PERCENT, units.CENT):
            # 50 cents beside 0.5, of a dollar
            return self._multiple(x, Fraction(100) if unit_x else Fraction(1, 100), y)
        return verdict

    def _equals_in_letters(self, number: str, text: str) -> bool:
        """Whether a text is this number if its last letters are a unit, as those of 12 N may be."""
        if exact.value(number) is None or exact.value(text) is not None:
            return False
        value, unit = units.in_letters(text)
        return unit is not None and self._values(number, value) is True

    def _multiple(self, gold: str, factor: Fraction, answer: str) -> bool | None:
        """Whether the reference is this multiple of the answer; a rounded one stays as it is."""
        if exact.half_unit(answer):
            return self._values(_times(1 / factor, gold), answer)
        return self._values(gold, _times(factor, answer))

    def _values(self, gold: str, answer: str) -> bool | None:
        if gold == answer:
            return True
        verdict = exact.equal(gold, answer)
        if verdict is not None:
            self.used("exact")
            return verdict
        return self.algebra(gold, answer)

    def algebra(self, gold: str, answer: str) -> bool | None:
        """Symbolic equality; None where there is no symbolic algebra."""
        if self._symbolic is None:
            return None
        self.used("symbolic")
        return self._symbolic(gold, answer)

    def agree(self, left: units.Quantity, right: units.Quantity) -> bool | None:
        """Whether 2/3 = 0.67 is one number, not two answers as 5 = 6."""
        (x, unit_x), (y, unit_y) = left, right
        if unit_x and unit_y and unit_x != unit_y:
            if unit_x.dimension != unit_y.dimension:
                return True
            x = _times(unit_x.factor / unit_y.factor, x)
        elif units.PERCENT in (unit_x, unit_y) and unit_x != unit_y:
            hundred = _times(Fraction(1, 100) if unit_x else Fraction(100), x)
            return some((self._shows(x, y), self._shows(hundred, y)))
        return self._shows(x, y)

    def _shows(self, exactly: str, nearly: str) -> bool | None:
        """Whether one number is the other, rounded or cut off."""
        x, y = _number(exactly), _number(nearly)
        if y is None and x is not None:
            return self._shows(nearly, exactly)
        if x is None or y is None:
            return self._near(exactly, nearly) if self._near else None
        if (place := exact.last_place(nearly)) is None:
            (x, y), place = (y, x), exact.last_place(exactly)
        return x == y or (place is not None and exact.shows(y, x, place))


def _numeral(text: str) -> re.Match[str] | None:
    """The digits and the base of 43_5 or FF_{16}; None for another text."""
    return _BASE.fullmatch(_TEXT.sub(lambda m: m[1].upper(), text))


def _number(text: str) -> Fraction | None:
    """The value of a number, in whatever base; None for another text."""
    numeral = _numeral(text)
    if numeral is None:
        return exact.value(text)
    digits, base = numeral[1], int(numeral[2][:3])
    if not 2 <= base <= MAX_BASE or any(int(digit, MAX_BASE) >= base for digit in digits):
        return None
    return Fraction(int(digits, base))


def _same_base(gold: str, answer: str) -> bool | None:
    wanted, given = _numeral(gold), _numeral(answer)
    if wanted is None and given is None:
        return None
    if wanted is None and given and given[2] == "10":
        return exact.equal(gold, given[1]) or False
    if wanted is None or given is None:
        return False
    same_digits = wanted[1].lstrip("0").lower() == given[1].lstrip("0").lower()
    return same_digits and wanted[2] == given[2]


def _lacks_base(gold: str, answer: str) -> bool:
    """1011 beside a reference 1011_2: of the same base, which is left out, or of ten."""
    wanted = _BASE.fullmatch(gold)
    return wanted is not None and wanted[1] == _TEXT.sub(lambda m: m[1].upper(), answer)


_DECIDE: tuple[tuple[str, Callable[[str, str], bool | None]], ...] = (
    ("text", same_numeral),
    ("text", same_time),
    ("text", same_text),
    ("base", _same_base),
    ("text", same_name),
)
_DOUBTS: dict[Callable[[str, str], bool | None], Callable[[str, str], bool]] = {
    same_text: says_more,
    _same_base: _lacks_base,
    same_time: half_day_apart,
    same_name: may_be_product,
}


def _times(factor: Fraction, text: str) -> str:
    return rf"\frac{{{factor.numerator}}}{{{factor.denominator}}}\cdot({text})"


def _radians(quantity: units.Quantity) -> str:
    value, unit = quantity
    return rf"({value})\cdot\frac{{\pi}}{{180}}" if unit == units.DEGREE else value
