r"""Whether an answer chooses the letter of a multiple choice that the reference chooses.

"(C)" and "C. five apples" choose C; "(A) or (C)" does not.
"""

from __future__ import annotations

import re

from gatekeeper.maths.counted import is_affirmed
from gatekeeper.maths.normalise import normalise

__all__ = ["is_denied", "labelled", "same_choice"]

_TEXT = re.compile(r"\\text\{([^{}]*)\}")
_CHOICE = re.compile(
    r"\\text\{\(?([a-j])(?:[).:]\s*[^{}]*)?\}.*|\(([A-Ja-j])\).*|([A-J])(?:\).*|[.:].*|\\text\{\(.*)?"
)
# With words in capitals. "(A) or (B)", "C) 5, D) 6", "(C)(D)", but not "(B) f(a)=(a+b)(c)"
_ANOTHER_CHOICE = re.compile(
    r"(?<![A-Za-z)}])\(([A-Ja-j])\)|\s([A-J])[).]"
    r"|(?:(?<=[,;/.:)&])\s*|\\lor ?|\b(?:OR|AND|NOT)\s+)\(?([A-J])(?=[).:,;/&]|\s*$)"
)
_SEVERAL = re.compile(r"[A-H]{2,}|\(?[A-H]\)?(?:(?:[,;] ?| AND )\(?[A-H]\)?)+")  # "ABD", "A, B, D"
_KIND = re.compile(  # of thing that a letter names
    r"\\text\{(?:option|choice|graph|figure|diagram|picture|store|shop|plan|player|team|group|bag|box"
    r"|jar|machine|car|train|statement|point|line|case|method|class)(?:\}| (?=\(?[a-j]\W))"
)
_EXPLICIT_CHOICE = re.compile(r"\\text\{\(?[a-j][).]?\}|\([A-J]\)")
_LABELLED = re.compile(  # "(B) 5", "B. 5": the choice with its text, in a reference
    r"(?:\(([A-J])\)(?=\d|\\[a-z$])|([A-J])[.)]|\\text\{\(?([a-j])[).:]\}?(?!\}|$))(?!.*,).+"
)

_SAID = re.compile(
    r"(?:\\text\{)?\(?[A-Ja-j]\)?\}?(?:\\text\{)? ?((?:is|was|isn't|wasn't) [a-z ]+)"
)
_WORDED = re.compile(r"\\text\{\(?[a-j][).:]\s*([^{}]*)\}")


def same_choice(gold: str, answer: str) -> bool | None:
    """Whether an answer chooses the letter of the reference; None where that is no letter."""
    if len(_bare_letter(answer)) == 1:
        gold = _without_kind(gold)
    if len(_bare_letter(gold)) == 1:
        answer = _without_kind(answer)
    several = [_SEVERAL.fullmatch(_TEXT.sub(lambda m: m[1].upper(), x)) for x in (gold, answer)]
    mine, its = (match and sorted(match[0].replace("AND", "")) for match in several)
    if mine and its and re.search(r"[,;]|\band\b", gold + answer):
        return list(filter(str.isalpha, mine)) == list(filter(str.isalpha, its))
    wanted, given = _CHOICE.fullmatch(gold), _CHOICE.fullmatch(answer)
    explicit = _EXPLICIT_CHOICE.fullmatch(gold) is not None
    label = _LABELLED.fullmatch(gold)
    if label and (re.fullmatch("[A-Za-z]", answer) or _EXPLICIT_CHOICE.fullmatch(answer)):
        return _letter(label) == (_letter(given) if given else answer.lower())
    if not wanted or not (explicit or len(gold) == 1):
        return None
    if len(answer) == 1:
        return _letter(wanted) == answer.lower()
    if not given:
        return False if explicit else None
    plain = _TEXT.sub(lambda m: f" {m[1].upper()} ", answer)
    chosen = {_letter(match) for match in (given, *_ANOTHER_CHOICE.finditer(plain))}
    return chosen == {_letter(wanted)}


def _without_kind(text: str) -> str:
    r"""\text{store b} as \text{b}."""
    return _KIND.sub(lambda m: "" if m[0][-1] == "}" else r"\text{", text)


def _bare_letter(text: str) -> str:
    return text.removeprefix(r"\text{").removesuffix("}").strip("()")


def is_denied(answer: str) -> bool:
    """Whether the words after a letter say of it what does not affirm it, as "is wrong" does."""
    said = _SAID.match(answer)
    return said is not None and not is_affirmed(said[1].split())


def labelled(text: str) -> tuple[str, str] | None:
    """The letter of a choice and its canonical text, of "(B) 5" and its spellings."""
    match = _LABELLED.fullmatch(text)
    if not match:
        return None
    words = _WORDED.match(text)
    if words:
        content = (normalise(rf"\text{{{words[1]}}}") or "") + text[words.end() :]
    else:
        content = text[match.end(match.lastindex or 0) :].lstrip("). ")
    return _letter(match), content


def _letter(match: re.Match[str]) -> str:
    return next(group for group in match.groups() if group).lower()
