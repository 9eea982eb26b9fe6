"""Answers in words and names, and the time of day."""

from __future__ import annotations

import re
from math import gcd

from gatekeeper.maths import exact

__all__ = ["same_name", "same_text", "same_time", "says_more"]

_TEXT = re.compile(r"\\text\{([^{}]*)\}")
_LETTERS = re.compile(r"(\\angle|\\text\{[^{}]*\})?\s?([A-Za-z]{2,})")
# Points (ABC), numerals (IV), names (Amy), and words of three letters around a vowel (cat).
_NAME = re.compile(
    r"[A-Z]{3,}|(?=.*[IVX])[IVXLCDM]{2}|[A-Z][a-z]{2}|[b-df-hj-np-tv-z][aeiou][b-df-hj-np-tv-z]"
)
_SEGMENT = re.compile(r"\\overline\{([A-Z]{2})\}|\|([A-Z]{2})\||([A-Z]{2})")
_CHANGING = re.compile(
    r"\b(?:not?|non|neither|nor|never|none|or|and|but|except|unless|maybe|perhaps|possibly|if|t)\b"
)
_SECOND = re.compile(r"[,;&]")
_FILLER_WORDS = frozenset(("a", "an", "the"))
_TIME = re.compile(r"([01]?\d|2[0-3])(?::([0-5]\d))?(?:\s?(?:\\text\{)?([APap])\.?\s?[Mm]\.?\}?)?")
_HALF_DAY = 12 * 60  # minutes


def same_text(gold: str, answer: str) -> bool | None:
    """Whether the words are the same; None where neither side has words alone."""
    wanted, given = _TEXT.fullmatch(gold), _TEXT.fullmatch(answer)
    if wanted is None and given is None:
        return None
    if given is None and "\\" in answer and exact.value(answer) is None:
        return None
    # A short word, such as "up", may lack its \text.
    return _words(wanted[1] if wanted else gold) == _words(given[1] if given else answer)


def says_more(gold: str, answer: str) -> bool:
    """Whether the answer has all words of the reference in a row, and others that deny none."""
    wanted, given = (_words(text.replace(r"\text", "")) for text in (gold, answer))
    if not any(len(word) > 1 for word in wanted) or _SECOND.search(answer):
        return False
    size = len(wanted)
    return any(
        given[i : i + size] == wanted
        and not _CHANGING.search(" ".join(given[:i] + given[i + size :]))
        for i in range(len(given) - size + 1)
    )


def _words(text: str) -> list[str]:
    words = re.findall(r"[^\W_]+|[<>/]", text.lower())
    articles = [word in _FILLER_WORDS for word in words[:-1]] + [False]  # but player A
    kept = [w.removesuffix("s") for w, article in zip(words, articles, strict=False) if not article]
    return kept if any(len(word) > 1 for word in kept) else words  # "b, a" has no article


def same_name(gold: str, answer: str) -> bool | None:
    """ABC is not ACB, nor IV VI, as products would be; None where the letters are no name.

    An angle may be read from either side.
    """
    segment, its = _SEGMENT.fullmatch(gold), _SEGMENT.fullmatch(answer)
    if segment and its and not (segment[3] and its[3]):  # AB, its length and \overline{AB}
        ends, other = (match[1] or match[2] or match[3] for match in (segment, its))
        return other in (ends, ends[::-1])
    wanted, given = _LETTERS.fullmatch(gold), _LETTERS.fullmatch(answer)
    if wanted is None or given is None or wanted[1] != given[1]:
        return None
    if not (wanted[1] or _NAME.fullmatch(wanted[2]) or _NAME.fullmatch(given[2])):
        return None
    if wanted[1] == r"\angle" and wanted[2] == given[2][::-1]:
        return True
    if wanted[2].isupper() or given[2].isupper():
        return wanted[2] == given[2]
    return wanted[2].lower() == given[2].lower()


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
    same = x == y and (None in halves or halves[0] == halves[1])
    return None if is_ratio and not given[3] and not same else same


def _half(time: re.Match[str]) -> str | None:
    """The half of the day, "a" or "p", if it is known."""
    if time[3]:
        return time[3].lower()
    return "p" if int(time[1]) > 12 else None
