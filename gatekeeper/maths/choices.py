"""The letter of a multiple choice."""

from __future__ import annotations

import re

__all__ = ["same_choice"]

_TEXT = re.compile(r"\\text\{([^{}]*)\}")
_CHOICE = re.compile(
    r"\\text\{\(?([a-j])(?:[).:]\s*[^{}]*)?\}.*|\(([A-Ja-j])\).*|([A-J])(?:\).*|[.:].*)?"
)
# With words in capitals. "(A) or (B)", "C) 5, D) 6", "(C)(D)", but not "(B) f(a)=(a+b)(c)"
_ANOTHER_CHOICE = re.compile(
    r"(?<![A-Za-z)}])\(([A-Ja-j])\)|\s([A-J])[).]"
    r"|(?:(?<=[,;/.:)&])\s*|\\lor ?|\b(?:OR|AND|NOT)\s+)\(?([A-J])(?=[).:,;/&]|\s*$)"
)
_SEVERAL = re.compile(r"[A-H]{2,}|\(?[A-H]\)?(?:, ?\(?[A-H]\)?)+")  # "ABD", "A, B, D"
_OPTION = re.compile(r"\\text\{(?:option|choice)(?:\}| (?=\(?[a-j]\W))")
_EXPLICIT_CHOICE = re.compile(r"\\text\{\(?[a-j][).]?\}|\([A-J]\)")
_LABELLED = re.compile(  # "(B) 5", "B. 5": the choice with its text, in a reference
    r"(?:\(([A-J])\)(?=\d|\\[a-z$])|([A-J])[.)]|\\text\{\(?([a-j])[).:]\}?(?!\}|$))(?!.*,).+"
)


def same_choice(gold: str, answer: str) -> bool | None:
    """Whether an answer chooses the letter of the reference; None where that is no letter."""
    answer = _OPTION.sub(lambda m: "" if m[0][-1] == "}" else r"\text{", answer)
    several = [_SEVERAL.fullmatch(_TEXT.sub(lambda m: m[1].upper(), x)) for x in (gold, answer)]
    if all(several) and ("," in gold) != ("," in answer):
        return sorted(re.findall("[A-H]", gold)) == sorted(re.findall("[A-H]", answer))
    wanted, given = _CHOICE.fullmatch(gold), _CHOICE.fullmatch(answer)
    explicit = _EXPLICIT_CHOICE.fullmatch(gold) is not None
    labelled = _LABELLED.fullmatch(gold)
    if labelled and (len(answer) == 1 or _EXPLICIT_CHOICE.fullmatch(answer)):
        return _letter(labelled) == (_letter(given) if given else answer.lower())
    if not wanted or not (explicit or len(gold) == 1):
        return None
    if len(answer) == 1:
        return _letter(wanted) == answer.lower()
    if not given:
        return False if explicit else None
    plain = _TEXT.sub(lambda m: f" {m[1].upper()} ", answer)
    chosen = {_letter(match) for match in (given, *_ANOTHER_CHOICE.finditer(plain))}
    return chosen == {_letter(wanted)}


def _letter(match: re.Match[str]) -> str:
    return next(group for group in match.groups() if group).lower()
