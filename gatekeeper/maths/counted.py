"""Words after a number that only say what it counts, as in "18 ways to choose".

They begin with a counted noun: a plural or a unit, with adjectives before it. Nouns and adjectives
are too many to list, but the words of grammar are few, and none of those may stand before the noun;
verbs, negations and comparisons among them may not stand after it, either.
"""

from __future__ import annotations

import re

from gatekeeper.maths.vocabulary import words_of

__all__ = ["is_counted"]

_WORD = re.compile(r"[a-z]+(?:[-'][a-z]+)*")
_VERBS = frozenset(  # auxiliaries, and those in -s that are no counted noun
    words_of(
        "is are was were am be been being isn't aren't wasn't has have had do does did will "
        "would can could shall should may might must cannot seems appears looks sounds fails "
        "works exceeds equals remains becomes gives makes gets contradicts violates satisfies "
        "divides"
    )
)
_CHANGING = _VERBS | frozenset(  # in every place
    words_of(
        "not no never nor neither none but yet though although however then so if unless except "
        "too enough almost nearly maybe perhaps possibly probably instead otherwise initially "
        "originally wrong wrongly incorrect guess guessed mistake short shy"
    )
)
_GRAMMAR = _CHANGING | frozenset(
    words_of(
        "a an the this that these those my your our his her its their i we you he she it they "
        "them who which what there here and or as at by for from in into of off on onto out "
        "over than through to toward towards under until up upon via with within without about "
        "above after against along among around before behind below beneath beside between "
        "beyond despite down during near since per each every all both either some any such "
        "very quite rather just only also even still again already always often now"
    )
)
# Words of grammar with which the words may begin, "18 in total", and adjectives without a noun.
_OPENING = frozenset(words_of("of in per each every a an for"))
_ALONE = frozenset(words_of("left remaining total altogether overall together combined"))
_PLURAL = re.compile(
    r"(?!.*(?:ss|us|is)\Z).*(?:[a-z]s|men|people|children|feet|teeth|geese|mice|dice|fish|sheep"
    r"|deer|yen|yuan|euro|baht|kelvin|celsius|fahrenheit|calorie|radii|foci|nuclei|cacti"
    r"|minima|maxima|extrema|data|criteria|bacteria|aircraft)"
)
_SYMBOL = re.compile(r"[b-df-hj-np-tv-xz]+|bar|atm|mol|[km]?cal|au|[kmgt]?i?b|[km]ah")


def is_counted(phrase: str, *, is_one: bool) -> bool:
    """Whether the words leave the number before them as it is.

    `is_one`: the number is no more than one, and its noun a singular, as in "1 way".
    """
    words = _WORD.findall(phrase)
    if not words:
        return True
    for at, word in enumerate(words):
        before, after = words[:at], words[at + 1 :]
        if word in _GRAMMAR:
            is_complete = is_one if before else word in _OPENING
            return (is_complete or _ALONE.issuperset(before or "-")) and _is_neutral(words[at:])
        if _PLURAL.fullmatch(word) or _SYMBOL.fullmatch(word):
            return _is_neutral(after)
    return is_one or _ALONE.issuperset(words)


def _is_neutral(words: list[str]) -> bool:
    return _CHANGING.isdisjoint(words) and words[-2:] != ["at", "first"]
