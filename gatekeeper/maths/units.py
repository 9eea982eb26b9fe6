"""Units at the end of an answer (and a currency sign at its start).

A unit on one side only does not make the answer wrong; two physical units are converted and need
the same dimension. Words that are not known units (apples, ways) are kept as words.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from fractions import Fraction

from gatekeeper.maths import exact

__all__ = [
    "CENT",
    "DEGREE",
    "PERCENT",
    "QUARTER",
    "RADIAN",
    "Quantity",
    "Unit",
    "is_sum",
    "split",
    "without",
]


@dataclass(frozen=True, slots=True)
class Unit:
    """`dimension` maps base dimensions to powers, sorted; `factor` converts to the base unit.

    Words that are no known unit have no dimension.
    """

    dimension: tuple[tuple[str, int], ...]
    factor: Fraction
    words: frozenset[str] = field(default=frozenset(), compare=False)


_TABLE = {
    "length": "mm:1/1000 millimeter:1/1000 cm:1/100 centimeter:1/100 m:1 meter:1 km:1000 "
    "kilometer:1000 in:127/5000 inch:127/5000 ft:381/1250 foot:381/1250 feet:381/1250 "
    "yd:1143/1250 yard:1143/1250 mi:201168/125 mile:201168/125",
    "time": "s:1 sec:1 second:1 min:60 minute:60 h:3600 hr:3600 hour:3600 day:86400 week:604800",
    "mass": "mg:1/1000 g:1 gram:1 kg:1000 kilogram:1000 oz:45359237/1600000 "
    "ounce:45359237/1600000 lb:45359237/100000 pound:45359237/100000",
    "money": "cent:1 dollar:100",
    "volume": "ml:1/1000 milliliter:1/1000 l:1 liter:1 gallon:473176473/125000000",
    "angle": "degree:1",
    "radian": "radian:1 rad:1",
    "percent": "percent:1",
}
_KNOWN = {
    name: (dimension, Fraction(factor))
    for dimension, entries in _TABLE.items()
    for name, _, factor in (entry.partition(":") for entry in entries.split())
}
_SPELLING = str.maketrans({"-": " ", ".": None})
_ALIASES = {
    "mph": "mile/hour",
    "kmh": "km/hour",
    "kph": "km/hour",
    "fps": "foot/second",
    "per cent": "percent",
}
PERCENT = Unit((("percent", 1),), Fraction(1), frozenset(("percent",)))
DEGREE = Unit((("angle", 1),), Fraction(1), frozenset(("degree", "circ")))
RADIAN = Unit((("radian", 1),), Fraction(1), frozenset(("radian",)))
QUARTER = frozenset(("quarter",))  # a coin, or a fourth part
CENT = Unit((("money", 1),), Fraction(1), frozenset(("cent",)))
_DOLLAR = Unit((("money", 1),), Fraction(100), frozenset(("dollar",)))

_WORD = r"\\text\{[^{}]*\}(?:\^\{\d\})?"
_TRAILING = re.compile(
    rf"(?:\^\{{\\circ\}}(?:[CFK]|\\text\{{[cfk]\}})?|\\%|{_WORD}(?:(?:/|\\cdot)?{_WORD})*)$"
)
_CURRENCY = re.compile(r"\\\$|\\text\{([a-z ]+ sign)\}")
_QUANTITY = re.compile(rf"\d+(?:\.\d+)?{_WORD}")
_COMPOUND = re.compile(rf"{_QUANTITY.pattern}(?:{_QUANTITY.pattern})+")
_SCALES = {
    "dozen": "12", "hundred": "100", "thousand": "1000", "million": "10^{6}", "billion": "10^{9}",
    "trillion": "10^{12}", "tenth": "10^{-1}", "hundredth": "10^{-2}", "thousandth": "10^{-3}",
    "millionth": "10^{-6}", "billionth": "10^{-9}", "lakh": "10^{5}", "crore": "10^{7}",
}  # fmt: skip
_ORDINALS = ("third", "fourth", "fifth", "sixth", "seventh", "eighth", "ninth")
_PARTS = {name: rf"\frac{{1}}{{{n}}}" for n, name in enumerate(_ORDINALS, start=3)}
_SCALED = re.compile(  # million, million cm; 5 thirds, but not 5 third graders
    rf"\\text\{{(?:({'|'.join(_SCALES)})s?|({'|'.join(_PARTS)})(?:s|(?=\}})))(?: (?=\w)|(?=\}}))"
)
# 5 or more, 5 and a half, 5 minus one, 5 but maybe six: not 5 of anything
_CHANGED = re.compile(
    r"\\text\{[^{}]*\b(?:but|not|maybe|perhaps|possibly|unless|wrong|incorrect)\b"
    r"|\\text\{(?:and|or|minus|plus|over|mod|base|hal(?:f|ves)|squared|cubed|factorial"
    r"|at (?:least|most)|is)\b"
)
_FUNCTION = re.compile(r"\\(?:sin|cos|tan|cot|sec|csc)(?![a-z])")
_VALUE_END = re.compile(r"[0-9A-Za-z})|\]]$")


Quantity = tuple[str, Unit | None]  # (value, unit)


def split(text: str) -> Quantity:
    """(value, unit) of a canonical answer; the unit is None if it has no word at its end."""
    sign = "-" if text.startswith("-") else ""
    body = text.removeprefix("-")
    if currency := _CURRENCY.match(body):
        amount = body[currency.end() :]
        value = split(amount)[0] if _SCALED.search(amount) else amount
        return sign + value, _DOLLAR if currency[1] is None else _unknown(currency[1])
    if _COMPOUND.fullmatch(body):
        return _sum(sign, [split(part[0]) for part in _QUANTITY.finditer(body)]) or (text, None)
    match = _TRAILING.search(text)
    if not match or not _VALUE_END.search(text[: match.start()]) or _CHANGED.match(match[0]):
        return text, None
    value, suffix = text[: match.start()], match[0]
    while scale := _SCALED.match(suffix):  # 5 hundred thousand
        value = rf"({value})\cdot{_SCALES[scale[1]] if scale[1] else _PARTS[scale[2]]}"
        suffix = rf"\text{{{suffix[scale.end() :]}"
    if suffix.startswith("^"):  # but sin 30° is not an angle
        unit = DEGREE if suffix.endswith(r"\circ}") else _unknown(f"degree {suffix[-2:].lower()}")
        return (text, None) if _FUNCTION.search(value) else (value, unit)
    return value, PERCENT if suffix == r"\%" else _parse(suffix)


def is_sum(text: str) -> bool:
    """Whether the text adds quantities of one dimension, as 6 h 30 min does."""
    return _COMPOUND.fullmatch(text) is not None and split(text)[1] is not None


def without(unit: Unit | None, text: str) -> str:
    """The text without this unit, where its letters stand at the end as if for variables."""
    word = "".join(unit.words) if unit and unit.dimension and len(unit.words) == 1 else ""
    return text.removesuffix(word) if word and re.search(rf"[\d}}]{word}$", text) else text


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
    words = re.findall(r"[^\W\d_]+", text)
    singular = (word.removesuffix("s") if len(word) > 2 else word for word in words)
    return Unit((), Fraction(1), frozenset(singular))


def _parse(suffix: str) -> Unit | None:
    plain = suffix.replace(r"\text{", "").replace(r"\cdot", " ")
    plain = re.sub(r"\}?\^\{(\d)\}", r"^\1", plain).replace("}", "").translate(_SPELLING)
    plain = plain.removesuffix(" and")  # 1 hour and 30 minutes
    plain = _ALIASES.get(plain.strip(), plain)
    unknown = _unknown(plain)
    above, *below = re.split(r"/|\bper\b", plain)
    dimension: dict[str, int] = {}
    factor = Fraction(1)
    for sign, part in [(1, above), *((-1, part) for part in below)]:
        known = _single(part.split())
        if known is None:
            return unknown
        name, power, unit_factor = known
        dimension[name] = dimension.get(name, 0) + sign * power
        factor *= unit_factor ** (sign * power)
    return Unit(tuple(sorted(dimension.items())), factor, unknown.words)


def _single(words: list[str]) -> tuple[str, int, Fraction] | None:
    """(dimension, power, factor) of one unit such as "square inches" or "cm^2"."""
    power = 1
    if words and words[0] in ("square", "sq", "cubic", "cu"):
        power = 2 if words[0] in ("square", "sq") else 3
        words = words[1:]
    if len(words) != 1:
        return None
    name, _, exponent = words[0].partition("^")
    power *= int(exponent or 1)
    singular = (name.removesuffix("s"), name.removesuffix("es")) if len(name) > 2 else ()
    for candidate in (name, *singular):  # but ms are no metres
        candidate = candidate.replace("metre", "meter").replace("litre", "liter")
        if candidate in _KNOWN:
            dimension, factor = _KNOWN[candidate]
            return dimension, power, factor
    return None
