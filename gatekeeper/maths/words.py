"""Whether answers in words, names, dates and times of day are the same.

"an ellipse" is "ellipse", and 18:30 is 6:30 PM; ABC is not ACB.
"""

from __future__ import annotations

import re
import string
from collections import Counter
from math import gcd

from gatekeeper.maths import exact
from gatekeeper.maths.numerals import roman
from gatekeeper.maths.vocabulary import CHANGES, COUNTS, MULTIPLES, PARTS

__all__ = [
    "Date",
    "date",
    "half_day_apart",
    "is_in_sentence",
    "may_be_product",
    "same_date",
    "same_items",
    "same_name",
    "same_numeral",
    "same_text",
    "same_time",
    "says_in_words",
    "says_more",
]

Date = tuple[frozenset[str], frozenset[str]]

_TEXT = re.compile(r"\\text\{([^{}]*)\}")
_NAMES = re.compile(r"(?:\\text\{[^{}]*\}|[A-Za-z])+")
_LETTERS = re.compile(r"(?:\\(angle|triangle)|\\text\{([^{}]*)\})?\s?([A-Za-z]{2,})")
_FIGURES = frozenset(("angle", "triangle", "quadrant", "segment", "line"))  # ABC is triangle ABC
# Points (ABC), numerals (IV), names (Amy), and words of three letters around a vowel (cat).
_NAME = re.compile(
    r"[A-Z]{3,}|(?=.*[IVX])[IVXLCDM]{2}|[A-Z][a-z]{2}|[b-df-hj-np-tv-z][aeiou][b-df-hj-np-tv-z]"
)
_SEGMENT = re.compile(r"\\overline\{([A-Z]{2})\}|\|([A-Z]{2})\||([A-Z]{2})")
_CHANGING = re.compile(
    r"\b(?:not?|non|neither|nor|never|none|or|and|but|except|unless|maybe|perhaps|possibly|if|t|counter|anti)\b"
)
_SECOND = re.compile(r"[,;&]")
_ENUMERATION = re.compile(r",\s*and\b|\band\b|[,;&]")
_BRIEF = frozenset(("ye", "no", "neither"))  # each stands for a whole sentence
_POLAR = {"true": "ye", "false": "no"}  # as the answer to a question: without its -s, "yes"
_FILLER_WORDS = frozenset(("a", "an", "the"))
_WORDED = re.compile(r"\\text\{[^{}]*[a-z]{3}")
_SENTENCE = re.compile(  # 18 integers divisible by 3, but not 18 apples, 3 pears
    r"(-?(?:\d+(?:\.\d+)?|\\frac\{\d+\}\{\d+\})) +"
    rf"(?!.*\b(?:(?:{MULTIPLES}|{PARTS}|half)s?|{'|'.join(COUNTS)}|(?<!to )(?:{CHANGES})|but"
    r"|(?:times|over) \d+)\b)(?!.*, ?\d+ [a-z])[a-z]+ [a-z]+[\w ,.'-]+"
)
_BESIDE_WORD = re.compile(r"(?<=[a-z])(?=\d)|(?<=\d)(?=[a-z])")
_RANGE = re.compile(r"\\(?:setminus|cup)(?![a-z])|[<>]|\\[lg]eq|\A[(\[].*,.*[)\]]\Z")
_NUMBER = re.compile(r"\d+(?:\.\d+)?")
_MONTHS = frozenset((
    "january", "february", "march", "april", "may", "june", "july", "august", "september",
    "october", "november", "december",
))  # fmt: skip
_SHORT_MONTHS = {month[:3]: month for month in _MONTHS} | {"sept": "september"}
_MORE_OF_DATE = re.compile(r"\d{4}|(?:mon|tues|wednes|thurs|fri|satur|sun)day")
_FILLER_OF_DATE = frozenset(("st", "nd", "rd", "th", "of", "the", "on"))
_DATE = re.compile(r"[\w\s,.{}\\]{4,60}")
_TIME = re.compile(r"([01]?\d|2[0-3])(?::([0-5]\d))?(?:\s?(?:\\text\{)?([APap])\.?\s?[Mm]\.?\}?)?")
_HALF_DAY = 12 * 60  # minutes


def same_text(gold: str, answer: str) -> bool | None:
    """Whether the words are the same; None where neither side has words alone."""
    wanted, given = _TEXT.fullmatch(gold), _TEXT.fullmatch(answer)
    if wanted is None and given is None:
        return None
    is_formula = given is None and "\\" in answer and not _NAMES.fullmatch(answer)
    if is_formula and exact.value(answer) is None:
        return None
    # A short word, such as "up", may lack its \text, and the A of "Player A".
    return _words(_plain(gold)) == _words(_plain(answer))


def _plain(text: str) -> str:
    return text.replace(r"\text", " ") if _NAMES.fullmatch(text) else text


def says_more(gold: str, answer: str) -> bool:
    """Whether the answer may say the same as the reference, with more words or in another order.

    It has all its words in a row, and others that deny none; or "Yes, it is" stands beside "Yes".
    """
    wanted, given = (_words(text.replace(r"\text", "")) for text in (gold, answer))
    if same_items(gold, answer) or (
        len(wanted) == 1 and given[:1] == wanted and given[0] in _BRIEF
    ):
        return True
    if not any(len(word) > 1 for word in wanted) or _SECOND.search(answer):
        return False
    size = len(wanted)
    return any(
        given[i : i + size] == wanted
        and not _CHANGING.search(" ".join(given[:i] + given[i + size :]))
        for i in range(len(given) - size + 1)
    )


def same_items(gold: str, answer: str) -> bool:
    """Whether both enumerate the same words, as in "Amy and Bob", in any order."""
    mine, its = (_ENUMERATION.split(text.replace(r"\text", "")) for text in (gold, answer))
    if not 1 < len(mine) == len(its) or not re.search("[a-z]{2}", gold):
        return False
    return Counter(" ".join(_words(x)) for x in mine) == Counter(" ".join(_words(x)) for x in its)


def _words(text: str) -> list[str]:
    words = re.findall(r"[^\W_]+|[<>/]", text.lower())
    articles = [word in _FILLER_WORDS for word in words[:-1]] + [False]  # but player A
    if len(words) == 1 and words[0] in _POLAR:
        return [_POLAR[words[0]]]
    kept = [w.removesuffix("s") for w, article in zip(words, articles, strict=False) if not article]
    return kept if any(len(word) > 1 for word in kept) else words  # "b, a" has no article


def date(text: str) -> Date | None:
    """The month and the day of a date, and what more it says: its year, its day of the week."""
    if not _DATE.fullmatch(text):
        return None
    words = _words_of_date(text)
    month, number = words & _MONTHS, {word for word in words if re.fullmatch(r"\d\d?", word)}
    more = words - month - number
    if not len(month) == len(number) == 1 or not all(map(_MORE_OF_DATE.fullmatch, more)):
        return None
    return frozenset(month | number), frozenset(more)


def same_date(gold: Date, answer: str) -> bool | None:
    """Whether the answer is this date; None where one of them says more."""
    day, more = gold
    its = date(answer)
    if its is None:
        says_all = day <= _words_of_date(answer) and r"\lor" not in answer
        return None if says_all and not _CHANGING.search(answer) else False
    if day != its[0] or not (more <= its[1] or its[1] <= more):
        return False
    return True if more == its[1] else None


def _words_of_date(text: str) -> set[str]:
    words = re.findall(r"\d+|[a-z]+", text.replace(r"\text", "").lower())
    return {_SHORT_MONTHS.get(word, word).lstrip("0") for word in words} - _FILLER_OF_DATE


def says_in_words(gold: str, answer: str) -> bool:
    """Whether an answer in words has the numbers of an interval, as in "from 1 to 4"."""
    if not _WORDED.search(answer) or r"\text" in gold or not _RANGE.search(gold):
        return False
    return sorted(_NUMBER.findall(gold)) == sorted(_NUMBER.findall(answer))


def is_in_sentence(gold: str, answer: str) -> bool:
    """Whether an answer is the number and words of which nobody knows what they say of it."""
    plain = _BESIDE_WORD.sub(" ", _TEXT.sub(r" \1 ", answer))
    found = _SENTENCE.fullmatch(" ".join(plain.split()))
    return found is not None and exact.equal(gold, found[1]) is True


def same_name(gold: str, answer: str) -> bool | None:
    """ABC is not ACB, nor IV VI, as products would be; None where the letters are no name.

    An angle may be read from either side.
    """
    segment, its = _SEGMENT.fullmatch(gold), _SEGMENT.fullmatch(answer)
    if segment and its and not (segment[3] and its[3]):  # AB, its length and \overline{AB}
        ends, other = (match[1] or match[2] or match[3] for match in (segment, its))
        return other in (ends, ends[::-1])
    wanted, given = _LETTERS.fullmatch(gold), _LETTERS.fullmatch(answer)
    if wanted is None or given is None:
        return None
    labels = {match[1] or match[2] for match in (wanted, given)}
    x, y = wanted[3], given[3]
    if len(labels) > 1 and not (None in labels and labels & _FIGURES):
        return None
    if labels == {None} and not (_NAME.fullmatch(x) or _NAME.fullmatch(y)):
        return None
    if "angle" in labels and x == y[::-1]:
        return True
    return x == y if x.isupper() or y.isupper() else x.lower() == y.lower()


def same_numeral(gold: str, answer: str) -> bool | None:
    """Whether one is the Roman numeral of the other; None where it may be something else."""
    for number, text in ((gold, answer), (answer, gold)):
        if number.isdecimal() and roman(_plain(text).strip(" {}")) == int(number):
            return True
    return None


def same_time(gold: str, answer: str) -> bool | None:
    """Whether two times of day are the same; None where the reference is none, or may be a ratio.

    10:15 is a time, as a ratio in a reference would be 2:3. A half of the day may be left out.
    """
    wanted, given = _TIME.fullmatch(gold), _TIME.fullmatch(answer)
    for time, number in ((wanted, answer), (given, gold)):
        if time and time[3] and number.isdecimal():  # 10 AM beside 10
            return int(number) == int(time[1]) and not int(time[2] or 0)
    if wanted is None or not (wanted[2] or wanted[3]):
        return None
    is_ratio = not wanted[3] and gcd(int(wanted[1]), int(wanted[2])) == 1
    if given is None or not (given[2] or given[3]):
        return False if wanted[2] and not is_ratio else None
    x, y = (60 * int(time[1]) % _HALF_DAY + int(time[2] or 0) for time in (wanted, given))
    halves = [_half(wanted), _half(given)]
    if int(wanted[1]) > 12 and not halves[1]:
        return False  # beside 18:30, 6:30 is in the morning
    if half_day_apart(gold, answer):
        return False
    same = x == y and (None in halves or halves[0] == halves[1])
    return None if is_ratio and not given[3] and not same else same


def may_be_product(gold: str, answer: str) -> bool:
    """Whether an answer that looks like a word has the letters of a product: cab beside abc."""
    letters = "".join(sorted(gold))
    if letters != "".join(sorted(answer)) or not gold.islower():
        return False
    return letters in string.ascii_lowercase or not _NAME.fullmatch(gold)


def half_day_apart(gold: str, answer: str) -> bool:
    """15:45 beside 3:45, which may be in the morning, or three hours and 45 minutes."""
    wanted, given = _TIME.fullmatch(gold), _TIME.fullmatch(answer)
    if not (wanted and given and wanted[2] == given[2]) or wanted[3] or given[3]:
        return False
    return abs(int(wanted[1]) - int(given[1])) == _HALF_DAY // 60 and int(wanted[1]) <= 12


def _half(time: re.Match[str]) -> str | None:
    """The half of the day, "a" or "p", if it is known."""
    if time[3]:
        return time[3].lower()
    return "p" if int(time[1]) > 12 else None
