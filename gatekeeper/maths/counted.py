"""Whether words after a number leave it as it is.

"18 ways to choose" and "18 is the answer" do, "18 too many" and "18 exceeds the bound" do not.

They begin with a counted noun: a plural or a unit, with adjectives before it. Nouns and adjectives
are too many to list, but the words of grammar are few, and none of those may stand before the noun;
verbs, negations and comparisons among them may not stand after it, either. A plural with an object
is a verb. Or the words say that the number is the answer.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from itertools import takewhile

from gatekeeper.maths.vocabulary import REJECTED, TENTATIVE, words_of

__all__ = ["goes_on", "is_affirmed", "is_counted"]

_WORD = re.compile(r"[a-z]+(?:[-'][a-z]+)*")
_VERBS = frozenset(  # auxiliaries, and those in -s that need no object
    words_of(
        "is was are were am be been being isn't aren't wasn't has have had do does did will would "
        "can could shall should may might must cannot seems appears looks sounds feels fails works "
        "exceeds equals remains becomes gives makes gets contradicts violates satisfies divides "
        "overcounts undercounts overestimates underestimates overshoots leads lies misses needs "
        "counts ignores omits forgets"
    )
)
_CHANGING = _VERBS | frozenset(  # in every place
    words_of(
        "not no nope never nor neither none but yet though although however then so if unless "
        "except too enough almost nearly maybe perhaps possibly probably instead otherwise "
        "initially originally wrong wrongly incorrect guess guessed mistake short shy"
    )
)
_GRAMMAR = _CHANGING | frozenset(
    words_of(
        "a an the this that these those my your our his her its their i we you he she it they "
        "them who which what there here and or as at by for from in into of off on onto out "
        "over than through to toward towards under until up upon via with within without about "
        "above after against along among around before behind below beneath beside between "
        "beyond despite down during given near since per each every all both either some any such "
        "very quite rather just only also even still again already always often now because while "
        "when where whereas whether thus hence therefore once"
    )
)
# With which a sentence goes on after an answer: another clause, or "18 more than Bob".
_NEUTRAL = (_GRAMMAR - _CHANGING) | {"so", "then", "more", "less", "fewer"}
# Words of grammar with which the words may begin, "18 in total", and adjectives without a noun.
_OPENING = frozenset(words_of("of in per each every a an for"))
_ALONE = frozenset(
    words_of(
        "left remaining total altogether overall together combined exactly precisely respectively "
        "approximately roughly exact approx"
    )
)
_PLURAL = re.compile(
    r"(?!.*(?:ss|us|is)\Z).*(?:[a-z]s|men|people|children|feet|teeth|geese|mice|dice|fish|sheep"
    r"|deer|moose|bison|elk|salmon|trout|tuna|shrimp|squid|cattle|oxen|swine|poultry|police"
    r"|offspring|yen|yuan|euro|baht|rand|kelvin|celsius|fahrenheit|calorie|radii|foci|nuclei"
    r"|cacti|fungi|alumni|minima|maxima|extrema|data|criteria|bacteria|aircraft|spacecraft)"
)
_SYMBOL = re.compile(r"[b-df-hj-np-tv-xz]+|bar|atm|mol|[km]?cal|au|[kmgt]?i?b|[km]ah")
_OBJECTS = frozenset(  # which follow a verb, but no noun
    words_of(
        "the this these those it its my our your his her their them us one two both all any some "
        "no everything something nothing nowhere short"
    )
)
_AFFIRMING = frozenset(
    words_of("is are has have must will equals remains gives makes divides works satisfies")
)
# What is said of a number that is no answer, after a verb.
_DOUBTS = (_CHANGING - _VERBS) | frozenset(
    (
        *REJECTED,
        *words_of(
            "impossible contradiction fail than close just estimate attempt try hardly far partly "
            "partially half twice double negative opposite multiplied divided doubled halved "
            "subtracted naive tempting trap distractor doubtful questionable unlikely unproven "
            "uncertain unclear checked verified proved proven ruled out another before part off"
        ),
    )
)
_MISSED = re.compile(
    rf"\b(?:(?:over|under)[a-z]{{4,}}|{TENTATIVE}"
    r"|what (?!(?:we|you|they|the|was|is|remains)\b)[a-z]+)\b"
)
_LINKS = frozenset(words_of("and that which who such so when where because while since as for"))

_RATES = frozenset(words_of("night morning evening piece person head game trip lesson child"))
_PARTICLES = frozenset(words_of("out up off"))

_LIMIT = re.compile(
    r"(?:at (?:first|most|least)|only (?:when|if|for|in case)|provided|assuming|below zero)\b"
)

IsUnit = Callable[[str], bool]


def is_counted(phrase: str, is_unit: IsUnit, *, is_one: bool) -> bool:
    """Whether the words of an answer leave the number before them as it is.

    `is_one`: its noun may be a singular, as in "1 way".
    """
    words = _WORD.findall(phrase)
    if not words:
        return True
    if words[0] in _VERBS:
        return is_affirmed(words)
    at = _noun(words, is_unit)
    before, after = words[:at], words[at + 1 :]
    if at == len(words):
        return is_one or _ALONE.issuperset(words)
    if words[at] in _GRAMMAR:
        is_complete = is_one if before else words[at] in _OPENING
        return (is_complete or _ALONE.issuperset(before or "-")) and _is_neutral(words[at:])
    return _is_neutral(after) and not _is_verb(words[at], after, is_unit)


def goes_on(phrase: str, is_unit: IsUnit) -> bool:
    """Whether a sentence goes on after an answer without a doubt of it.

    It may say anything of the things counted, as in "18 students did not pass", and of another
    clause, as in "18 because ..."; what it says of the answer itself has to affirm it.
    """
    words = _WORD.findall(phrase)
    if not words or words in (["not"], ["instead", "of"], ["rather", "than"]):  # 5, not 6
        return True
    if words[0] in _NEUTRAL:
        is_vague = words[0] == "or" and len(words) > 1 and not words[1].endswith("ly")
        return not (is_vague or _is_limit(words))
    at = _noun(words, is_unit)
    after = words[at + 1 :]
    if _is_limit(words):
        return False
    if at == len(words) or words[at] in _GRAMMAR:
        is_past = re.match("[a-z]{3,}ed ", f"{phrase} ") is not None  # 5 seemed right
        return not is_past and is_affirmed(words)
    if after[:1] in (["is"], ["was"]):
        return is_affirmed(after)
    if "too" in after[:2] or _is_limit(after):
        return False
    return not _is_verb(words[at], after, is_unit)


def _noun(words: list[str], is_unit: IsUnit) -> int:
    """Where the counted noun stands, or the first word of grammar, or the end."""
    for at, word in enumerate(words):
        if word in _GRAMMAR or _PLURAL.fullmatch(word) or _SYMBOL.fullmatch(word) or is_unit(word):
            return at
    return len(words)


def _is_verb(plural: str, after: list[str], is_unit: IsUnit) -> bool:
    """Whether an object follows what looks like a plural: "exceeds the bound", "leaves gaps".

    Or an article, but not that of a rate ("hours a day"), or a particle ("turns out wrong").
    """
    if not after or not plural.endswith("s") or _SYMBOL.fullmatch(plural):
        return False
    word, following = after[0], after[1:2]
    if word in ("a", "an") and following:
        return following[0] not in _RATES and not is_unit(following[0])
    if word in _PARTICLES and following != ["of"] and not is_unit(plural):
        return True
    return word in _OBJECTS or (
        word not in _GRAMMAR and word.endswith("s") and _PLURAL.fullmatch(word) is not None
    )


def is_affirmed(words: list[str]) -> bool:
    """Whether words that begin with a verb affirm the answer before them: "is the least one"."""
    if words[0] in _VERBS - _AFFIRMING or words[0].endswith("n't"):
        return False
    said = [words[0], *takewhile(lambda word: word not in _LINKS, words[1:])]
    return _DOUBTS.isdisjoint(said) and not _MISSED.search(" ".join(said))


def _is_neutral(words: list[str]) -> bool:
    return _CHANGING.isdisjoint(words) and words[-2:] != ["at", "first"]


def _is_limit(words: list[str]) -> bool:
    """Whether the words bound the answer, or say when it holds: "at most", "only if n is even"."""
    return _LIMIT.match(" ".join(words)) is not None
