r"""The exact value of rational arithmetic: numbers, fractions, mixed numbers, powers, roots.

1\frac{1}{2} and 2^{-1}+1 have the value 3/2; x and \sqrt{2} have none. Without floats. The length
of the text and the size of every intermediate result are bounded, so that it may run in the
caller's process. The parser is a small recursive descent, without `eval`.
"""

from __future__ import annotations

import math
import re
from fractions import Fraction
from functools import lru_cache

__all__ = ["equal", "half_unit", "last_place", "shows", "value"]

MAX_TEXT = 300  # characters
MAX_BITS = 20_000  # of numerator and denominator together
MAX_FACTORIAL = 2_000
MAX_ROOT_BITS = 1_000  # of the number under a root above the square root

_TOKEN = re.compile(
    r"(?P<repeating>\d+\.\d*\\overline\{\d+\})|(?P<number>\d+(?:\.\d+)?)|\\[a-zA-Z]+|."
)
_PROPER_FRACTION = re.compile(
    r"\\frac\{(?P<p>\d+)\}\{(?P<q>\d+)\}| (?P<r>\d+)/(?P<s>\d+)(?![\d.])", re.ASCII
)
_DECIMAL = re.compile(r"-?(\d+)\.(\d+)")
_ROUNDED_DIGITS = 6  # significant digits from which a decimal may equal the number that it rounds


class _NotRationalError(Exception):
    """The text is not rational arithmetic, or its value is too large."""


def equal(a: str, b: str) -> bool | None:
    """Whether two answers are the same number; None where one is not a plain number.

    A decimal of at least six significant digits equals the fraction that it correctly rounds.
    """
    x, y = value(a), value(b)
    if x is None or y is None:
        return None
    if x == y:
        return True
    half_a, half_b = half_unit(a), half_unit(b)
    if (half_a is None) == (half_b is None):
        return False
    return abs(x - y) <= (half_a or half_b or 0)


@lru_cache(maxsize=4096)
def value(text: str) -> Fraction | None:
    """The value of rational arithmetic, None for anything else."""
    if not text or len(text) > MAX_TEXT:
        return None
    try:
        return _Reader(text).read()
    except _NotRationalError:
        return None


def half_unit(text: str) -> Fraction | None:
    """Half a unit in the last place of a decimal that has enough digits, else None."""
    match = _DECIMAL.fullmatch(text)
    if not match or len((match[1] + match[2]).lstrip("0")) < _ROUNDED_DIGITS:
        return None
    return Fraction(1, 2 * 10 ** len(match[2]))


def last_place(text: str) -> Fraction | None:
    """The unit of the last place of a decimal or a whole number, None for anything else."""
    match = re.fullmatch(r"-?\d+(?:\.(\d+))?", text)
    return Fraction(1, 10 ** len(match[1] or "")) if match else None


def shows(rounded: Fraction, x: Fraction, place: Fraction) -> bool:
    """Whether the first number is the second, rounded to this place or cut off there."""
    error = abs(x - rounded)
    return error <= place / 2 or (error < place and abs(x) > abs(rounded))


def _bounded(x: Fraction) -> Fraction:
    if x.numerator.bit_length() + x.denominator.bit_length() > MAX_BITS:
        raise _NotRationalError
    return x


def _whole_root(n: int, index: int) -> int:
    """The root, rounded down, digit by digit in base 2."""
    if index == 2:
        return math.isqrt(n)
    root = 0
    for bit in range(n.bit_length() // index, -1, -1):
        if (root | 1 << bit) ** index <= n:
            root |= 1 << bit
    return root


class _Reader:
    """Recursive descent; nesting is bounded by the normaliser."""

    def __init__(self, text: str) -> None:
        self.tokens = [m[0] for m in _TOKEN.finditer(text)]
        self.at = 0

    def read(self) -> Fraction:
        result = self.sum()
        if self.at < len(self.tokens):
            raise _NotRationalError
        return result

    def peek(self, ahead: int = 0) -> str:
        at = self.at + ahead
        return self.tokens[at] if at < len(self.tokens) else ""

    def take(self, token: str) -> bool:
        if self.peek() != token:
            return False
        self.at += 1
        return True

    def expect(self, token: str) -> None:
        if not self.take(token):
            raise _NotRationalError

    def sum(self) -> Fraction:
        total = self.product()
        while self.peek() in ("+", "-"):
            sign = 1 if self.peek() == "+" else -1
            self.at += 1
            total = _bounded(total + sign * self.product())
        return total

    def product(self) -> Fraction:
        result = self.signed()
        divided = False
        while True:
            if self.take(r"\cdot"):
                result = _bounded(result * self.signed())
            elif self.take("/"):
                result = self.quotient(result, self.signed())
                divided = True
            elif self.peek() in (r"\frac", "(", r"\sqrt", r"\binom"):
                if divided:
                    raise _NotRationalError  # 1/2(3) is ambiguous
                result = _bounded(result * self.power())
            else:
                return result

    def signed(self) -> Fraction:
        sign = 1
        while self.peek() in ("+", "-"):
            sign = -sign if self.peek() == "-" else sign
            self.at += 1
        return sign * self.power()

    def power(self) -> Fraction:
        base = self.atom()
        if self.take("!"):
            if base.denominator != 1 or not 0 <= base <= MAX_FACTORIAL or self.peek() == "!":
                raise _NotRationalError
            base = _bounded(Fraction(math.factorial(base.numerator)))
        if not self.take("^"):
            return base
        exponent = self.braced()
        if exponent.denominator != 1:
            base, exponent = self.root(base, exponent.denominator), Fraction(exponent.numerator)
        if base == 0 and exponent <= 0:
            raise _NotRationalError
        size = max(base.numerator.bit_length(), base.denominator.bit_length())
        if abs(exponent) * size > MAX_BITS:
            raise _NotRationalError
        return _bounded(base**exponent.numerator)

    def braced(self) -> Fraction:
        self.expect("{")
        inside = self.sum()
        self.expect("}")
        return inside

    def quotient(self, x: Fraction, y: Fraction) -> Fraction:
        if y == 0:
            raise _NotRationalError
        return _bounded(x / y)

    def atom(self) -> Fraction:
        token = self.peek()
        if token == "{":
            return self.braced()
        self.at += 1
        if token == "(":
            inside = self.sum()
            self.expect(")")
            return inside
        if token == r"\frac":
            return self.quotient(self.braced(), self.braced())
        if token == r"\binom":
            return self.binomial(self.braced(), self.braced())
        if token == r"\sqrt":
            index = self.index() if self.take("[") else 2
            return self.root(self.braced(), index)
        if token[:1].isdecimal() and token.isascii():
            return self.number(token)
        raise _NotRationalError

    def binomial(self, n: Fraction, k: Fraction) -> Fraction:
        if n.denominator != 1 or k.denominator != 1 or not 0 <= k <= n:
            raise _NotRationalError
        if min(k, n - k) * n.numerator.bit_length() > MAX_BITS:
            raise _NotRationalError
        return _bounded(Fraction(math.comb(n.numerator, k.numerator)))

    def index(self) -> int:
        index = self.sum()
        self.expect("]")
        if index.denominator != 1 or index < 2:
            raise _NotRationalError
        return index.numerator

    def root(self, x: Fraction, index: int = 2) -> Fraction:
        """The real root, if it is rational."""
        sign = -1 if x < 0 else 1
        if sign < 0 and index % 2 == 0:
            raise _NotRationalError
        size = x.numerator.bit_length() + x.denominator.bit_length()
        if index > 2 and (size > MAX_ROOT_BITS or index > MAX_ROOT_BITS):
            raise _NotRationalError
        p, q = _whole_root(abs(x.numerator), index), _whole_root(x.denominator, index)
        if p**index != abs(x.numerator) or q**index != x.denominator:
            raise _NotRationalError
        return sign * Fraction(p, q)

    def number(self, token: str) -> Fraction:
        """A number, and the proper fraction after it in a mixed number."""
        if r"\overline" in token:
            whole, _, rest = token.partition(".")
            fixed, _, period = rest.partition(r"\overline{")
            period = period[:-1]
            scale = 10 ** len(fixed)
            tail = Fraction(int(period), (10 ** len(period) - 1) * scale)
            return Fraction(int(whole + fixed), scale) + tail
        x = Fraction(token)
        following = "".join(self.tokens[self.at : self.at + 7])
        fraction = _PROPER_FRACTION.match(following)
        if not fraction or x.denominator != 1 or not x:
            return x
        p, q = int(fraction["p"] or fraction["r"]), int(fraction["q"] or fraction["s"])
        if not 0 < p < q:
            return x
        self.at += 7 if fraction["p"] else 4
        return x + Fraction(p, q)
