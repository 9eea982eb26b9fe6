r"""Numbers as they are written: in groups, with periods, with powers of ten, in words.

"1,234" is 1234, "0.1666..." is 0.1\overline{6}, and "twenty-one" is 21.
"""

from __future__ import annotations

import re
from fractions import Fraction

from gatekeeper.maths.vocabulary import COUNTS, ORDINALS, TENS, WORDS

__all__ = ["in_words", "join_commas", "join_groups", "repeat", "roman", "scientific"]

_GROUPED = re.compile(  # 10,\!080 and its spellings, one separator throughout
    r"(?<![\d.])[1-9]\d{0,2}(?:(?:,\s?\\!\s?\d{3})+|(?:\{,\}\d{3})+|(?:\\[,;:! ]\s?\d{3})+"
    r"|(?:~\d{3})+|(?: \d{3})+(?!\s*/)|(?:'\d{3})+(?!')|(?:\.\d{3}){2,}(?!\.\d))(?!\d)"
)
_DECIMAL_COMMA = re.compile(r"(?<=\d)\{,\}(?=\d)")
_COMMAS = re.compile(r"\\[{}]|[()\[\]]|(?<![\d.])(?<!(?<!\\),)[1-9]\d{0,2}(?:,\d{3})+(?!,?\d)")
_SCIENTIFIC = re.compile(  # but 2e-1 and 2e+1 are sums
    r"(?<![\w.])(?:(\d+\.\d+)[eE]\+?(-?\d{1,3})|(\d+)[eE](\d{1,3}))(?!\w|\.\d)"
)
_TIMES = re.compile(r"(?<=\d)\s?x\s?(?=10\s?\^)")
_DOTS = r"(?:\.{3,}|\\[lc]?dots(?![a-z]))"
_CONTINUED = re.compile(rf"(?<![\d.])(\d*)\.(\d+){_DOTS}(?!\s*\d)")  # 0.1666..., 3.14159...
_PERIOD = re.compile(r"(\d{0,9}?)(?:(\d)\2{2,}|(\d{2,9}?)\3+)")
_BARRED = re.compile(r"(\d\.\d*)\\(?:bar|dot)\s?\{?(\d+)(?:\}|(?!\d))")
_PERIODS = (  # 0.\dot{3}\dot{6}, 0.(36), .\overline{36}, 0.\overline{36}...
    (
        re.compile(r"(?<=[\d.])\\dot\s?\{?(\d)\}?\s?(\d*)\s?\\dot\s?\{?(\d)\}?"),
        r"\\overline{\1\2\3}",
    ),
    (re.compile(r"(?<=\d\.)\((\d{1,30})\)"), r"\\overline{\1}"),
    (re.compile(r"\\overline\s?(\d)"), r"\\overline{\1}"),
    (re.compile(r"(?<![\d.])(?=\.\d*\\overline\s?\{\d)"), "0"),
    (re.compile(rf"(\.\d*\\overline\s?\{{\d+\}}){_DOTS}"), r"\1"),
)
MAX_WORDS = 12  # of a number before its unit

_CARDINALS = {word: int(digits) for word, digits in WORDS.items() if digits.isdigit()} | {"a": 1}
_CARDINALS |= {word: 10 * number for number, word in enumerate(TENS, start=2)}

_SCALES = {"hundred": 100, "thousand": 1000, "million": 10**6, "billion": 10**9}
_PARTS = {"half": 2, "halve": 2, "quarter": 4} | ORDINALS
_AND_PART = re.compile(  # 3 and a half, 3 and a half hours
    rf"(-?\d+)(?:\\text\{{and |,(?:\\text\{{)?)(a|one|two|three|\d+)[- ]?(?:\\text\{{)?"
    rf"({'|'.join(_PARTS)})s?(?: ([a-z ]+))?\}}"
)
_APPROXIMATE = re.compile(r"\\text\{(?:about|exactly|approximately|only|just) ")
_DOZEN = re.compile(r"\\text\{(half )?a dozen\}|a\\text\{dozen\}")
_DIGITS = "|".join(COUNTS[:10])
_POINT = re.compile(  # one point two million, where only the whole part is read yet
    rf"(-?\d+)\\text\{{point((?: (?:{_DIGITS}))*)(?: ([a-z ]+))?\}}((?: ?\d)*)\Z"
)
_ROMAN = re.compile(
    r"(?=..)(m{0,3})(cm|cd|d?c{0,3})(xc|xl|l?x{0,3})(ix|iv|v?i{0,3})", re.IGNORECASE
)
_ROMAN_DIGITS = {"i": 1, "v": 5, "x": 10, "l": 50, "c": 100, "d": 500, "m": 1000}
_IN_WORDS = re.compile(  # "twenty-one", and the same where the speller has read a part of it
    r"(?:1-?)?\\text\{([a-z]+(?:[- ][a-z]+)*)\}(?:-?\d)?"
)
_COUNTED = re.compile(r"\\text\{([a-z]+(?:[- ][a-z]+)+)\}(?=\d)")  # three packs of 12


def repeat(text: str) -> str:
    r"""0.1666... and 0.1\bar{6} as 0.1\overline{6}."""
    if "." not in text:
        return text
    for pattern, replacement in _PERIODS:
        text = pattern.sub(replacement, text)
    return _CONTINUED.sub(_continue, _BARRED.sub(r"\1\\overline{\2}", text))


def _continue(decimal: re.Match[str]) -> str:
    """0.1666... with the period that its digits show; without one, they are all there is."""
    repeating = _PERIOD.fullmatch(decimal[2])
    if not repeating:
        return f"{decimal[1]}.{decimal[2]}"
    return rf"{decimal[1] or 0}.{repeating[1]}\overline{{{repeating[2] or repeating[3]}}}"


def join_groups(text: str) -> str:
    r"""Read 10\,080 and its spellings as one number."""
    joined = _GROUPED.sub(lambda m: re.sub(r"\D", "", m[0]), text)
    return _DECIMAL_COMMA.sub(",", joined) if "{,}" in joined else joined


def join_commas(text: str) -> str:
    """Read 1,234 as one number, except between brackets, where commas separate."""
    depth = 0

    def replace(match: re.Match[str]) -> str:
        nonlocal depth
        found = match[0]
        if found[0].isdigit():
            return found if depth else found.replace(",", "")
        depth = max(0, depth + (1 if found[-1] in "{([" else -1))
        return found

    return _COMMAS.sub(replace, text)


def scientific(text: str) -> str:
    """Read 6.02e23 and 6.02 x 10^23 as products."""
    return _SCIENTIFIC.sub(r"\1\3\\cdot10^{\2\4}", _TIMES.sub(r"\\cdot ", text))


def in_words(text: str) -> str:
    """A canonical answer that is a number in words, in digits; any other answer as it is."""
    if r"\text{" not in text:
        return text
    text = _in_digits(text)
    return _POINT.sub(_decimal, text) if "{point" in text else text


def roman(text: str) -> int | None:
    """The value of a Roman numeral of two letters or more, None for other texts."""
    if not _ROMAN.fullmatch(text):
        return None
    values = [_ROMAN_DIGITS[letter] for letter in text.lower()]
    following = (*values[1:], 0)
    return sum(-x if x < y else x for x, y in zip(values, following, strict=True))


def _decimal(number: re.Match[str]) -> str:
    """1.2 of "one point two"."""
    digits = "".join(str(COUNTS.index(word)) for word in number[2].split()) + number[4]
    unit = rf"\text{{{number[3]}}}" if number[3] else ""
    return f"{number[1]}.{digits.replace(' ', '')}{unit}" if digits else number[0]


def _in_digits(text: str) -> str:
    if mixed := _AND_PART.fullmatch(text):
        count = _CARDINALS.get(mixed[2]) or int(mixed[2])
        unit = rf"\text{{{mixed[4]}}}" if mixed[4] else ""
        return rf"{mixed[1]}\frac{{{count}}}{{{_PARTS[mixed[3]]}}}{unit}"
    if dozen := _DOZEN.fullmatch(text):
        return "6" if dozen[1] else "12"
    text = _APPROXIMATE.sub(r"\\text{", text)
    if counted := _COUNTED.match(text):
        words = re.findall("[a-z]+", counted[1])
        number = _with_unit(words, "") if words[0] in _CARDINALS and words[0] != "a" else None
        return f"{number}{text[counted.end() :]}" if number else text
    if not _IN_WORDS.fullmatch(text):
        return text
    words = re.findall(r"\d|[a-z]+", text.replace(r"\text", ""))
    sign = "-" if words[0] in ("minus", "negative") else ""
    words = words[len(sign) :]
    number = _number(words)
    if not number and words and words[0] in _CARDINALS and words[0] != "a" and " " in text:
        number = _with_unit(words, "point" if sign else "")
    return sign + number if number else text


def _with_unit(words: list[str], first: str) -> str | None:
    r"""Five dollars as 5\text{dollars}. `first`: the only word that the unit may begin with."""
    for end in range(min(len(words) - 1, MAX_WORDS), 0, -1):
        may_begin = words[end] not in _CARDINALS and words[end] not in _SCALES
        if may_begin and first in ("", words[end]) and (number := _number(words[:end])):
            return rf"{number}\text{{{' '.join(words[end:])}}}"
    return None


def _number(words: list[str]) -> str | None:
    """twenty one as 21, two and a half as 5/2; None for other words."""
    if words in ([], ["a"], ["half"]):
        return r"\frac{1}{2}" if words == ["half"] else None
    *counted, last = words
    part = _PARTS.get(last.removesuffix("s"))
    if not part:
        number = _cardinal(words)
        return None if number is None else str(number)
    at = counted.index("and") if "and" in counted else -1
    whole, count = _cardinal(counted[: max(at, 0)]), _cardinal(counted[at + 1 :])
    if whole is None or not count:
        return None
    value = whole + Fraction(count, part)
    return rf"\frac{{{value.numerator}}}{{{value.denominator}}}"


def _cardinal(words: list[str]) -> int | None:
    """one hundred and twenty one as 121; 0 for no words, None for other words."""
    total = current = 0
    for word in words:
        number = int(word) if word.isdigit() else _CARDINALS.get(word)
        if number is not None:
            room = 10 if current % 100 >= 20 and current % 10 == 0 else 0
            if current % 100 and not 0 < number < room:
                return None
            current += number
        elif word in _SCALES and current:
            current *= _SCALES[word]
            if word != "hundred":
                total, current = total + current, 0
        elif word != "and":
            return None
    return total + current
