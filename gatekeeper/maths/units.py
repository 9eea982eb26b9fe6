r"""Which quantity an answer is: its value, and the unit at its end or the currency before it.

"5 km" and "5000 m" are one quantity; "5 apples" has words that are no known unit, which are kept. A
unit on one side only does not make the answer wrong; two physical units need the same dimension.
"""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import dataclass, field, replace
from fractions import Fraction
from itertools import product, zip_longest

from gatekeeper.maths import exact
from gatekeeper.maths.counted import is_counted
from gatekeeper.maths.vocabulary import COUNTS, DOUBTFUL, ORDINALS, PARTS, TENS

__all__ = [
    "AMBIGUOUS",
    "CENT",
    "DEGREE",
    "PERCENT",
    "RADIAN",
    "Quantity",
    "Unit",
    "are_money",
    "in_least_unit",
    "in_letters",
    "is_doubtful",
    "is_known",
    "is_neutral",
    "is_sum",
    "spelled",
    "split",
    "split_both",
    "symbol",
]


@dataclass(frozen=True, slots=True)
class Unit:
    """`dimension` maps base dimensions to powers, sorted; `factor` converts to the base unit.

    Words that are no known unit have no dimension. `phrase` has such words, as written.
    """

    dimension: tuple[tuple[str, int], ...]
    factor: Fraction
    words: frozenset[str] = field(default=frozenset(), compare=False)
    phrase: str = field(default="", compare=False)


_BASE = {
    "length": "m:1 meter:1 in:127/5000 inch:127/5000 ft:381/1250 foot:381/1250 feet:381/1250 "
    "yd:1143/1250 yard:1143/1250 mi:201168/125 mile:201168/125",
    "time": "s:1 sec:1 second:1 min:60 minute:60 h:3600 hr:3600 hour:3600 day:86400 week:604800",
    "calendar": "month:1 year:12 decade:120",
    "mass": "g:1 gram:1 oz:45359237/1600000 ounce:45359237/1600000 "
    "lb:45359237/100000 pound:45359237/100000",
    "current": "a:1 ampere:1 amp:1",
    "amount": "mol:1 mole:1",
    "money": "cent:1 dollar:100 usd:100 buck:100",
    "angle": "degree:1 deg:1",
    "radian": "radian:1 rad:1",
    "percent": "percent:1",
}
_DERIVED = {  # from the units above them
    "l liter": "1/1000 m^3", "gallon": "473176473/125000000 l", "quart": "1/4 gallon",
    "pint": "1/8 gallon", "cup": "1/16 gallon", "cc": "1/1000 l", "ha hectare": "10000 m^2",
    "acre": "4840 yd^2", "n newton": "1000 g m/s^2", "j joule": "1 n m", "w watt": "1 j/s",
    "pa pascal": "1 n/m^2", "hz hertz": "1 s^-1", "coulomb": "1 amp s", "v volt": "1 w/amp",
    "ohm": "1 v/amp", "farad": "1 coulomb/v", "tesla": "1 v s/m^2", "mph": "1 mi/h",
    "ev electronvolt": "1602176634/10000000000000000000000000000 j",
    "kmh kph kmph": "1000 m/h", "fps": "1 ft/s",
}  # fmt: skip
_PREFIXES = {  # of symbols, and of names; "mega" and "micro" of both, as M and m read alike
    "m s g l n j w v ev pa hz ohm mol a": "k:1000 g:1000000000 d:1/10 c:1/100 m:1/1000 "
    "n:1/1000000000 p:1/1000000000000 mega:1000000 micro:1/1000000",
    "meter second gram liter newton joule watt pascal hertz volt ohm ampere amp mole": "kilo:1000"
    " mega:1000000 giga:1000000000 deci:1/10 centi:1/100 milli:1/1000 micro:1/1000000 "
    "nano:1/1000000000",
}
_UNITS: dict[str, Unit] = {}  # by name, with and without a prefix
_POWERS = {"square": 2, "sq": 2, "squared": 2, "cubic": 3, "cu": 3, "cubed": 3}
PERCENT = Unit((("percent", 1),), Fraction(1), frozenset(("percent",)))
DEGREE = Unit((("angle", 1),), Fraction(1), frozenset(("degree", "circ")))
RADIAN = Unit((("radian", 1),), Fraction(1), frozenset(("radian",)))
# A coin or a fourth part, kelvin or thousand, molar or million, two or one.
AMBIGUOUS = {
    frozenset((word,)): factor
    for word, factor in (
        ("quarter", Fraction(1, 4)), ("k", Fraction(1000)), ("mega", Fraction(10**6)),
        ("pair", Fraction(2)), ("ten", Fraction(10)), ("score", Fraction(20)),
        ("gros", Fraction(144)), ("mn", Fraction(10**6)), ("mil", Fraction(10**6)),
        ("bn", Fraction(10**9)),
    )
}  # fmt: skip
CENT = Unit((("money", 1),), Fraction(1), frozenset(("cent",)))
_DOLLAR = Unit((("money", 1),), Fraction(100), frozenset(("dollar",)))

_WORD = r"\\text\{[^{}]*\}(?:\^\{-?\d\})?"
_WORDS = rf"{_WORD}(?:(?:/|\\cdot)?{_WORD})*"
_TRAILING = re.compile(
    rf"(?:\^\{{\\circ\}}(?:[CFK]|\\text\{{(?:[cfk]|celsius|fahrenheit)\}})?|\\%(?:{_WORD})?"
    rf"|\\frac\{{{_WORDS}\}}\{{{_WORDS}\}}|/?{_WORDS})$"
)
_LETTERS = re.compile(
    r"(?<=[\d}])(?:\\frac\{[A-Za-z]+\}\{[A-Za-z]+(?:\^\{\d\})?\}"
    r"|[A-Za-z]+(?:/[A-Za-z]+)?(?:\^\{-?\d\})?)$"
)
_CURRENCY = re.compile(r"\\\$|\\text\{(usd|eur|gbp|inr|jpy|cny|rmb|cad|aud|rs|[a-z ]+ sign)\}")
_CURRENCIES = {
    None: "dollar", "usd": "dollar", "rs": "rupee sign", "inr": "rupee sign", "eur": "euro sign",
    "gbp": "pound sign", "jpy": "yen sign",
}  # fmt: skip
_ABBREVIATED = re.compile(  # $5k, $5M; but 5k may be 5 of a variable
    r"(?<=\d)(?:\\text\{([kmbt]|mega|[bmt]n)\}|([kKMBT]))\Z"
)
_ABBREVIATIONS = {"k": "1000", "m": "10^{6}", "b": "10^{9}", "t": "10^{12}"}
_QUANTITY = re.compile(rf"\d+(?:\.\d+)?{_WORD}")
_COMPOUND = re.compile(rf"{_QUANTITY.pattern}(?:{_QUANTITY.pattern})+")
_SCALES = {
    "dozen": "12", "hundred": "100", "thousand": "1000", "million": "10^{6}", "billion": "10^{9}",
    "trillion": "10^{12}", "lakh": "10^{5}", "crore": "10^{7}",
}  # fmt: skip
_PARTS = {name: rf"\frac{{1}}{{{n}}}" for name, n in ORDINALS.items()}
_SCALED = re.compile(  # million, million cm; 5 thirds, but not 5 third graders
    rf"\\text\{{(?:({'|'.join(_SCALES)})s?|({'|'.join(_PARTS)})(?:s|(?=\}})))(?: (?=\w)|(?=\}}))"
)
# 5 or more, 5 and a half, 5 minus one, 5 but maybe six, 5 below zero: not 5 of anything
_CHANGED = re.compile(
    r"\\text\{[^{}]*\b(?:(?:but|not|maybe|perhaps|possibly|unless|except"
    r"|below zero|up to sign)\b|(?:negative|repeating|recurring|less|fewer|pi"
    r"|point (?:zero|one|two|three|four|five|six|seven|eight|nine))\W?\})"
    rf"|\\text\{{an? (?:{PARTS})\b"  # 5 a third
    r"|\\text\{(?:and|or|minus|plus|over|mod|base|hal(?:f|ves)(?!-)|squared|cubed|factorial"
    r"|at (?:least|most))\b"
)
_MEGA = re.compile(
    r"(?<![A-Za-z])M(?=(?:[NJWVgms]|eV|Pa|Hz)(?![A-Za-z]))|(?<![A-Za-z.])M(?![A-Za-z])"
)
# Symbols of one capital: the same letter in lower case is a variable.
_CAPITALS = {
    "A": "ampere", "C": "celsius", "F": "fahrenheit", "J": "joule", "N": "newton", "T": "tesla",
    "V": "volt", "W": "watt",
}  # fmt: skip
_CAPITAL = re.compile(r"(?<![A-Za-z])(?:[ACFJNTVW](?![A-Za-z])|N(?=m(?![A-Za-z])))")
_PRODUCT = re.compile(r"(?:[A-Za-z](?:\^\{?-?\d\}?)?|[/ ~]|\\(?:cdot|times|[,;:! ]))+")
_GAP = re.compile(r"~|\\(?:cdot|times|[,;:! ])")
_POWER = re.compile(r"\^\{?(-?\d)\}?")
_ARTICLE = re.compile(r"\b(?:an?|the) (?=[a-z])")
_COUNTED = frozenset(
    ("roots", "powers", "inverses", "reciprocals", "zeros")
)  # 5 roots, but \text{5 root }2
_COMPLEMENT = re.compile(  # of a plural: 5 ways to choose, but not 5 times to, 5 points to two
    r"\b(?!(?:time|plu|minu|les|equal|exceed|divide)s\b)([a-z]{3,}s) "
    rf"(?:than|to (?!(?:the|an?|{'|'.join(COUNTS + TENS)})\b))[a-z ]*"
)
_FRACTION = re.compile(  # twenty-fifths, one-half, half-hours, but not half-hour lessons
    rf"\b(?:[a-z]+-(?:(?:{PARTS})s\b|(?:half|dozen|{PARTS})\s*\Z)|(?:half|quarter)-[a-z]+\s*\Z)"
)
_NOUN_PHRASE = re.compile(r"\b(?:double|triple|root|power) (?=[a-z]{3,}s\b)|\bover\b(?<=left over)")
_FUNCTION = re.compile(r"\\(?:sin|cos|tan|cot|sec|csc)(?![a-z])")
_VALUE_END = re.compile(r"[0-9A-Za-z})|\]]$")


Quantity = tuple[str, Unit | None]  # (value, unit)


def split(text: str) -> Quantity:
    """(value, unit) of a canonical answer; the unit is None if it has no word at its end."""
    sign = "-" if text.startswith("-") else ""
    body = text.removeprefix("-")
    if currency := _CURRENCY.match(body):
        value, unit = _money(currency, body[currency.end() :])
        return sign + value, unit
    if _COMPOUND.fullmatch(body):
        return _sum(sign, [split(part[0]) for part in _QUANTITY.finditer(body)]) or (text, None)
    match = _TRAILING.search(text)
    if not match or not _VALUE_END.search(text[: match.start()]) or _CHANGED.match(match[0]):
        return text, None
    value, suffix = _scaled(text[: match.start()], match[0])
    if suffix.startswith("^"):  # but sin 30° is not an angle
        unit = DEGREE if suffix.endswith(r"\circ}") else _unknown(f"degree {_scale(suffix)}")
        return (text, None) if _FUNCTION.search(value) else (value, unit)
    if suffix.startswith(r"\%"):
        return value, _with(PERCENT, _parse(suffix[2:])) if suffix[2:] else PERCENT
    return value, _parse(suffix)


def _money(currency: re.Match[str], amount: str) -> tuple[str, Unit]:
    """$5, $5k, and $5 per hour."""
    value, each = split(_ABBREVIATED.sub(_in_digits, amount))
    name = _CURRENCIES.get(currency[1], currency[1])
    unit = _DOLLAR if name == "dollar" else _unknown(name)
    return value, _with(unit, each) if each else unit


def _scaled(value: str, suffix: str) -> tuple[str, str]:
    """The value with the scales before its unit, as in 5 hundred thousand km, and the rest."""
    while scale := _SCALED.match(suffix):
        value = rf"({value})\cdot{_SCALES[scale[1]] if scale[1] else _PARTS[scale[2]]}"
        suffix = rf"\text{{{suffix[scale.end() :]}"
    return value, suffix


def _with(unit: Unit, other: Unit) -> Unit:
    """The unit with what follows it: of 5 dollars per hour, 5 dollars left, 5% off."""
    product = _product([(unit, 1), (other, 1)], unit.words | other.words)
    return replace(product, phrase=other.phrase)


def _in_digits(abbreviation: re.Match[str]) -> str:
    name = abbreviation[1] or abbreviation[2]
    return rf"\cdot{_ABBREVIATIONS[name[0].lower()]}"


def are_money(x: Unit, y: Unit) -> bool:
    """Whether both are money, perhaps per hour."""
    return all(("money", 1) in unit.dimension for unit in (x, y))


def is_doubtful(x: Unit | None, y: Unit | None) -> bool:
    """Whether one of two units has a word that the other lacks, and that may change the number."""
    words = (unit.words if unit else frozenset() for unit in (x, y))
    mine, its = words
    return not _DOUBTFUL.isdisjoint(mine ^ its)


def is_neutral(quantity: Quantity, other: Unit | None) -> bool:
    """Whether the unit is known, has no word beyond the other, or only says what is counted."""
    value, unit = quantity
    if unit is None or unit.words <= (other.words if other else frozenset()):
        return True
    number = exact.value(value)
    is_one = number is not None and abs(number) <= 1
    return is_counted(unit.phrase, is_known, is_one=is_one or bool(unit.dimension))  # $5 profit


def is_known(name: str) -> bool:
    """Whether it is the name of a unit."""
    return _known(name) is not None


def in_least_unit(text: str) -> str | None:
    """The number of minutes of 6 h 30 min; None for what is no such sum."""
    value, unit = split(text)
    if not (unit and is_sum(text)):
        return None
    *_, last = _QUANTITY.finditer(text)
    least = split(last[0])[1] or unit
    ratio = unit.factor / least.factor
    return rf"\frac{{{ratio.numerator}}}{{{ratio.denominator}}}\cdot({value})"


def is_sum(text: str) -> bool:
    """Whether the text adds quantities of one dimension, as 6 h 30 min does."""
    return _COMPOUND.fullmatch(text) is not None and split(text)[1] is not None


def split_both(gold: str, answer: str) -> tuple[Quantity, Quantity]:
    r"""`split` of both, where 12\text{ m} shows that the letter in 12m is a unit, too."""
    mine, its = split(gold), split(answer)
    if mine[1] is None:
        mine = _like(its[1], gold)
    if its[1] is None:
        its = _like(mine[1], answer)
    return mine, its


def _like(unit: Unit | None, text: str) -> Quantity:
    """`split` of a text whose last letters stand, as if for variables, for a unit of this kind."""
    value, found = in_letters(text) if unit else (text, None)
    alike = found and unit and found.dimension and unit.dimension == found.dimension
    return (value, found) if alike else (text, None)


def in_letters(text: str) -> Quantity:
    """`split` of a text whose last letters may be variables, or the symbol of a known unit."""
    letters = _LETTERS.search(text)
    unit = _parse(symbol(letters[0])) if letters else None
    if not letters or not unit:
        return text, None
    is_symbol = letters[0].isupper() and unit.words in AMBIGUOUS  # M, but not k
    return (text[: letters.start()], unit) if unit.dimension or is_symbol else (text, None)


def spelled(text: str) -> str | None:
    r"""The canonical spelling of a product of known units, such as kg\,m^2/s^2, else None."""
    if not _PRODUCT.fullmatch(text):
        return None
    plain = symbol(_GAP.sub(" ", text)).strip()
    words = (f"\\text{{{' '.join(part.split())}}}" for part in _POWER.split(plain)[::2] if part)
    powers = [f"^{{{power}}}" for power in _POWER.findall(plain)]
    canonical = "".join(map("".join, zip_longest(words, powers, fillvalue="")))
    return canonical if _parse(canonical).dimension else None


def symbol(text: str) -> str:
    """A unit in lower case, with M as mega, the newton in Nm apart, and the names of capitals."""
    named = _CAPITAL.sub(lambda m: f"{_CAPITALS[m[0]]} ", _MEGA.sub("mega", text))
    return " ".join(named.replace(" /", "/").split()).lower()


def _scale(suffix: str) -> str:
    r"""The scale of ^{\circ}C and ^{\circ}\text{celsius}."""
    letters = suffix.removeprefix(r"^{\circ}").removeprefix(r"\text{").removesuffix("}")
    return symbol(letters.upper() if len(letters) == 1 else letters)


def _sum(sign: str, parts: list[Quantity]) -> Quantity | None:
    """6 h 30 min as hours; None where it is no sum, as in 5 m 5 m."""
    total = Fraction(0)
    first = previous = parts[0][1]
    for value, unit in parts:
        number = exact.value(value)
        if number is None or not (first and previous and unit and unit.dimension):
            return None
        if unit.dimension != first.dimension or (total and unit.factor >= previous.factor):
            return None
        total += number * unit.factor / first.factor
        previous = unit
    return rf"{sign}\frac{{{total.numerator}}}{{{total.denominator}}}", first


def _unknown(text: str) -> Unit:
    counted = _NOUN_PHRASE.sub("", _ARTICLE.sub("", _COMPLEMENT.sub(r"\1", text)))
    counted = _FRACTION.sub(r"half \g<0>", counted)  # may be another number
    words = re.findall(r"[^\W\d_]+(?:-[^\W\d_]{2,})*|\^-?\d", counted)  # "two-digit" is one word
    singular = (
        word.removesuffix("s") if len(word) > 2 and word not in _COUNTED else word for word in words
    )
    powers = {2: "^2", 3: "^3"}
    plain = (powers[_POWERS[word]] if word in _POWERS else word for word in singular)
    return Unit((), Fraction(1), frozenset(plain))


def _parse(suffix: str) -> Unit:
    r"""A unit such as "square inches", \text{m/s}^{2} and \frac{m}{s}."""
    plain = re.sub(r"\\frac\{(.*)\}\{(.*)\}", r"\1/\2", suffix).replace(r"\text{", " ")
    plain = plain.replace(r"\cdot", " ").replace("per cent", "percent")
    plain = re.sub(r"\^\{(-?\d)\}", r"^\1", plain).replace("}", "")
    plain = re.sub(r"\band\s*$", "", plain).replace(".", "")  # 1 hour and 30 minutes
    unknown = replace(_unknown(plain), phrase=plain)
    factors: list[tuple[Unit, int]] = []
    sign = power = 1
    for word in re.findall(r"/|\^-?\d|[^\W\d_]+", plain):
        if word in ("/", "per"):
            sign = -1
        elif word[0] == "^" or word in ("squared", "cubed"):
            if not factors:
                return unknown
            base, exponent = factors.pop()
            factors.append((base, exponent * (_POWERS.get(word) or int(word[1:]))))
        elif word in _POWERS:
            power = _POWERS[word]
        elif known := _known(word):
            factors.append((known, sign * power))
            power = 1
        else:
            return unknown
    return _product(factors, unknown.words)


def _product(factors: list[tuple[Unit, int]], words: frozenset[str]) -> Unit:
    dimension: Counter[str] = Counter()
    factor = Fraction(1)
    for unit, power in factors:
        for name, exponent in unit.dimension:
            dimension[name] += exponent * power
        factor *= unit.factor**power
    return Unit(tuple(sorted((n, k) for n, k in dimension.items() if k)), factor, words)


def _known(name: str) -> Unit | None:
    plurals = (name.removesuffix("s"), name.removesuffix("es")) if len(name) > 2 else ()
    for candidate in (name, *plurals):
        if unit := _UNITS.get(candidate.replace("metre", "meter").replace("litre", "liter")):
            return unit
    return None


_DOUBTFUL = DOUBTFUL | {"minu", "plu", "fail"}  # in the singular


def _add_units() -> None:
    for dimension, entries in _BASE.items():
        for entry in entries.split():
            name, _, factor = entry.partition(":")
            _UNITS[name] = Unit(((dimension, 1),), Fraction(factor))
    for names, definition in _DERIVED.items():
        factor, _, base = definition.partition(" ")
        unit = _parse(base)
        for name in names.split():
            _UNITS[name] = Unit(unit.dimension, Fraction(factor) * unit.factor)
    for names, prefixes in _PREFIXES.items():
        for name, entry in product(names.split(), prefixes.split()):
            prefix, _, factor = entry.partition(":")
            unit = _UNITS[name]
            _UNITS.setdefault(prefix + name, Unit(unit.dimension, Fraction(factor) * unit.factor))
    for name in "ajnvw":  # with a prefix, or as a capital that `symbol` has named
        del _UNITS[name]


_add_units()
