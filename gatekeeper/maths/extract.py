r"""Where the final answer of a solution stands, in linear time.

It is 5 in "so \boxed{5}" and in "The answer is 5, since 2 + 3 = 5."; "n = 7 failed" has none: a
number in a refusal is not an answer. The order of places: the last box, with the boxes joined to
it; the last "final answer is", "answer:" or "####"; the whole text where it is a short bare answer.
"""

from __future__ import annotations

import re
from collections import deque
from dataclasses import dataclass, replace

from gatekeeper.maths import boxes, exact
from gatekeeper.maths.aftermath import is_retracted
from gatekeeper.maths.normalise import normalise
from gatekeeper.maths.surroundings import begins_sum
from gatekeeper.maths.vocabulary import (
    CHANGES,
    COUNTS,
    DOUBTFUL,
    MULTIPLES,
    PARTS,
    PRECISION,
    REJECTED,
    TENS,
)

__all__ = ["Found", "extract", "find"]

RETRACTED = "the text takes the answer back"
TWO = "the answer has one number in digits and another one in words"
MAX_BARE = 100  # characters of a bare answer
MOST_CUES = 100  # of a text, from its end

_BUT = r"[^;,.\n]{1,40}?[;,.]?\s?\b(?:but|rather|it(?:'s| is))(?=\s[\d$\\(*-])"  # (not) 5 but 6
CUE = re.compile(
    r"(?<!cannot )(?<!can't )(?<!no )(?<!not )(?:answers?|\bans"
    r"|(?:correct|right|best|my|final) (?:option|choice))"
    r"(?: to (?:the|this|that|your) (?:question|problem))?(?:, (?:then|thus|therefore),)?"
    r"[*\"]*\s{0,3}(?:(?:is|are|was|=|equals|(?:should|must|will) be)\b(?:, [a-z ]{2,15},)?"
    r"\**\s{0,3}:?|[:=]|[-–—](?=\s[$\\]{0,2}\d))\**"
    rf"(?:\s?not {_BUT})?|answer (?:is|was)n't {_BUT}"
    r"|\bans\.(?=\s)|####|<answer>|^[#* ]{0,8}(?:final )?answer[* ]{0,4}$",
    re.IGNORECASE | re.MULTILINE,
)
# "The answer is not 6", and what a text says of an answer that it has given.
DENIED = re.compile(
    rf"\s*(?:not|{'|'.join(REJECTED)}|(?:[a-z]+ly |indeed |therefore |thus )?(?:correct|right|valid"
    r"|verified|confirmed|consistent|reasonable|plausible|unique|obvious|clear|sensible))\b"
    r"|\s*(?:expressed |given |measured |rounded )?(?:in|to) [a-z ]+(?=[.,;\n]|\Z)",
    re.IGNORECASE,
)
# Read only where no cue is: "if the order mattered, the answer would be 36", "I would choose B".
CONDITIONAL_CUE = re.compile(
    r"\banswer would be\b:?|\bI(?: would|'d|'ll| will)? (?:choose|pick|select|go with)"
    r"(?= (?:the )?(?:option|choice|answer|[*$(]{0,3}[A-J])\b)",
    re.IGNORECASE,
)
_FORMULA = (
    r"(?:\$\$[^$]+\$\$|\$[^$]+\$(?!\d)|\\\([^\\]*(?:\\[^)\\][^\\]*)*\\\)"
    r"|\\\[[^\\]*(?:\\[^\]\\][^\\]*)*\\\])"
)
FORMULAS = re.compile(  # "$5$ and $6$", "$5$ (or maybe $6$)", "$5$ / $6$"
    rf"{_FORMULA}(?:\s*\(?(?:[,;/]|,?\s?(?:and|or)(?:\s(?:else|also|maybe|perhaps|possibly))?)\s*"
    rf"{_FORMULA}\)?)*"
)
_NUMBER = rf"(?:an?|\$?\d|{'|'.join([*COUNTS, *TENS])})"
CHANGED = re.compile(  # what makes another answer of a formula before it: "$5$ thousand", "$5$x"
    r"[^\W_]|[/^+%√]|\s*%|\s?[-+*/^×]\s?[\d$]|\s?[π√∞]|\s*\((?:mod|(?:in )?base)\b"
    rf"|\s(?:(?:{MULTIPLES}|{PARTS}|score|pair|ten|gros)s?|percent|per cent|{CHANGES}"
    rf"|to(?! {PRECISION})|{'|'.join(sorted(DOUBTFUL - {'a', 'by', 'i', 'or', 'over', 'to'}))}|k|pi"
    rf"|(?:and|by|in|over|out of) {_NUMBER}|or(?!,? (?:equivalently|simply|about))|times"
    r"|raised|multiplied|(?:less|more|fewer|greater) than (?:[$\d]|[b-z]\b)"
    r"|at (?:least|most)|\w+ below|and (?:up|above|over|under|below|counting))\b",
    re.IGNORECASE,
)
SENTENCE_END = re.compile(
    r"[.?](?=\s|$)|</[a-z]+>|<\||[\r\n]|\s\((?=option|choice)"
    r"|,?\s(?:\(?(?:because|since)|so|as|for|which|or,? equivalently)\b"
    r"|,?\s(?:rather than|instead of|or rather|i\.e|that is|making|giving|leaving|bringing)\b"
    r"|\s?(?:->|→)\s?(?=[$\\]{0,2}\d)"
    r"|\s[(\[](?=\d+ [a-z]{3,}[^()]*\)|[\d\s$.+*/×·-]+="
    r"|(?!(?:mod|(?:in )?base|or|and|with)\b)(?:[a-z]{2,}|i mean)\b[^()\[\]]*\d)"
    r"|[,;]\s(?!(?:and|or|maybe|perhaps|possibly|alternatively)\b"
    r"|(?:but|though)\b.{0,20}\b(?:could|might|may|maybe|perhaps|possibly)\b)(?=(?:[a-z]{2,}|I)\b)"
    r"|\s[-–—]\s(?=[A-Za-z]{4})|\"(?=\s*[,}])|\s\(?(?:and )?not (?=\(?[A-J]\b|[\\$\d])"
)
CHOICE = re.compile(  # B. 12, to the end of its line
    r"\**\(?[A-J][.)]\**\s+\$?-?[\d\\][^\n]{0,40}?(?=[.*\s]*(?:\n|\Z))"
)
EXCLAIMED = re.compile(r"-?\d[\d.,/]*!(?=\s+[A-Za-z]|\Z)")
_LETTER = r"(?:(?:(?:answer )?(?:option|choice)|answer) [*$]{0,2}\(?([A-J])\)?|\(([A-J])\))"
_IS = r"(?:which (?:is|equals|gives|matches|corresponds to)|i\.e\.,?|corresponding to)"
CHOSEN = re.compile(  # 4, which is (B); 4 (option B)
    rf"[*$\s]{{0,3}},?\s?\(?(?:{_IS}\s)?(?:the )?(?:correct )?[*$]{{0,2}}{_LETTER}"
    r"[*$]{0,2}\)?[*$]{0,2}(?=\.?\s*(?:\n|\Z)|[.;]\s)",
    re.IGNORECASE,
)
LETTER = re.compile(r"(?:(?:option|choice) )?\(?([A-J])\)?")
VALUE = re.compile(  # (C), which is 12
    rf",?\s{_IS}\s({_FORMULA}|-?\\?\$?\d[\d.,/]*?)(?=\.?\s*(?:\n|\Z)|[.;]\s)"
)
LEAD = re.compile(r"[ \t*:]*(?:\n\s*[-•+]\s+)?[\s*:\"]*(?:<[a-z]+>)*")  # a bullet, <b>
WITHHELD = re.compile(  # I cannot find the answer
    r"(?:can(?:'t|not)|could(?:n't| not)|unable to|do(?:n't| not)|did(?:n't| not)) (?:\w+ ){1,2}"
    r"(?:the |an? |any )?(?:final |correct )?\Z",
    re.IGNORECASE,
)
SUPPOSED = re.compile(  # if the answer is 6; I doubt that the answer is 6; a tempting answer is 6
    r"\b(?:(?:if|suppos(?:e|ing)|assum(?:e|ing)|doubt|false|untrue|no way|not (?:think|believe)"
    r"|(?<=n't )(?:think|believe)"
    r"|(?:students?|people|some|many|others?|they|you)(?: \w+)? (?:think|say|believe|claim|guess))"
    r"(?: that)?(?: (?:the|my|this|an?|our)(?: final| correct)?)?"
    r"|wrong|incorrect|naive|tempting|common|old|first|initial|original|previous|earlier"
    r"|(?<!here)(?<!that)(?<!it)(?<!let)'s)\s?\Z",
    re.IGNORECASE,
)
CHECKED = re.compile(  # we check our answer: 2 + 16 = 18
    r"(?:check|verify|confirm|test)(?:ing)? (?:our|my|this|that|the|your) (?:final )?\Z",
    re.IGNORECASE,
)
WORD = re.compile(r"(?<![\\A-Za-z])[A-Za-z]{2,}")
_DIGITS, _WORDS = r"\d[\d,]*(?:\.\d+)?", r"[A-Za-z]{3,}(?:[- ][A-Za-z]+){0,9}"
RESTATED = re.compile(
    rf"(?<![\w.\\])({_DIGITS}|{_WORDS})\s?\(({_DIGITS}|{_WORDS})\)"
)  # 36 (thirty-six) jars
AFTER_BOX = re.compile(rf"[\s$]{{0,3}}\(({_WORDS})\)")
QUOTED = re.compile(r"('|_{1,2})(.+)\1|“(.+)”", re.DOTALL)
REFUSAL = re.compile(
    r"\b(?:no (?:final )?answer|not? (?:known|sure)|don'?t know|unknown|fail(?:s|ed)?|sorry"
    r"|cannot|can'?t|unable|n/a|no idea|give up|nobody|no one)\b",
    re.IGNORECASE,
)


REVERSED = re.compile(  # 12 is the answer, (B) is correct
    r"(?:\A|[.,:;!\n]|\b(?i:so|thus|hence|therefore|that|think|believe))[\s*$\\]{0,5}"
    r"(?:(?:option|choice|only) )?(\(?\b[A-J]\b\)?|-?\\?\$?\d(?:[\d.,/]*\d)?)[\s*$\\)]{0,5}is "
    r"(?:(?:the|our|my) (?:final |correct |right |best )?(?:answer|option|choice)\b(?! to\b)"
    r"|(?<=\b[A-J] is )(?:correct|right)\b|(?<=\b[A-J]\) is )(?:correct|right)\b)",
)


@dataclass(frozen=True, slots=True)
class Found:
    """A final answer as written; `doubt`, if there is any, says why it may not be the answer.

    `choice` is the letter of a multiple choice that the sentence joins to it.
    """

    text: str
    doubt: str = ""
    choice: str = ""


def extract(response: str) -> str | None:
    """The final answer as written, stripped, or None where there is none.

    An unclosed `<think>`, and an unclosed or empty last box, are no answer. Joined boxes come back
    as one text, with commas, or with "or" where that joins them.
    """
    found = find(response)
    return found.text if found else None


def find(response: str) -> Found | None:
    """`extract`, with what is known of the place of the answer."""
    _, mark, text = response.rpartition("</think>")
    if not mark and response.lstrip().startswith("<think>"):
        return None  # the reasoning has no end
    found = boxes.find(text)
    if found:
        return _boxed(text, found)
    if said := _after_cue(text) or _before_cue(text):
        return _once(said)
    answer = _bare(text)
    return _once(Found(answer)) if answer else None


def _once(found: Found) -> Found:
    """The answer without a number that it gives again: "36 (thirty-six) jars", "six (6) jars"."""
    twice = RESTATED.search(found.text)
    if not twice or twice[1][0].isdigit() == twice[2][0].isdigit():
        return found
    same = _same_number(twice[1], twice[2])
    if same is None:
        return found
    digits = twice[1] if twice[1][0].isdigit() else twice[2]
    text = f"{found.text[: twice.start()]}{digits}{found.text[twice.end() :]}"
    return replace(found, text=text) if same else replace(found, doubt=TWO)


def _same_number(text: str, other: str) -> bool | None:
    """Whether two numbers, one in words, are equal; None where one is no number."""
    x, y = (exact.value(normalise(each) or "") for each in (text, other))
    return None if x is None or y is None else x == y


def _boxed(text: str, found: list[boxes.Box]) -> Found | None:
    joined = boxes.joined(text, found)
    answer = boxes.content(text, joined)
    if not answer:
        return None
    if is_retracted(text, joined[0].start, joined[-1].end, answer):
        return Found(answer, RETRACTED)
    said = AFTER_BOX.match(text, joined[-1].end)
    if said and _same_number(answer, said[1]) is False:
        return Found(answer, TWO)
    if boxes.is_part(text, joined):
        return Found(answer, "the box is a term of a formula, and may be a part of the answer")
    return _once(_with_choice(Found(answer), text, joined[-1].end))


def _after_cue(text: str) -> Found | None:
    cue = _last_cue(text)
    if cue is None:
        return None
    start, end = cue.span()
    if WITHHELD.search(text, max(0, start - 40), start):
        return None
    if lead := LEAD.match(text, end):
        end = lead.end()
    rest = text[end : end + 4 * MAX_BARE]
    stop = _stop(rest)
    answer = rest[:stop].strip(" *\t\r\n")
    if answer.count("**") == 1:
        answer = answer.replace("**", "")  # of **5** apples
    answer = _unquoted(answer)
    if not answer or REFUSAL.search(answer):
        return None
    if EXCLAIMED.match(answer):
        return Found(answer, "the mark after the number may be a factorial")
    supposed = SUPPOSED.search(text, max(0, start - 40), start)
    doubt = RETRACTED if supposed or is_retracted(text, end, end + stop, answer) else ""
    return _with_choice(Found(answer, doubt), text, end + stop)


def _before_cue(text: str) -> Found | None:
    """The answer of "12 is the answer", where no other words introduce one."""
    said = None if CUE.search(text) else next(iter(deque(REVERSED.finditer(text), maxlen=1)), None)
    if said is None:
        return None
    before = (text, max(0, said.start(1) - 40), said.start(1))
    doubtful = SUPPOSED.search(*before) or is_retracted(text, said.start(1), said.end(), said[1])
    return Found(said[1], RETRACTED if doubtful else "")


def _with_choice(found: Found, text: str, end: int) -> Found:
    """The answer with the letter, or the value, that the text goes on to give it."""
    if letter := LETTER.fullmatch(found.text):
        value = VALUE.match(text, end)
        return replace(found, text=value[1], choice=letter[1]) if value else found
    chosen = CHOSEN.match(text, end)
    return replace(found, choice=(chosen[1] or chosen[2]).upper()) if chosen else found


def _stop(rest: str) -> int:
    """Where the answer ends that a text begins with: formulas, a choice, or a sentence."""
    formulas = FORMULAS.match(rest)
    if formulas and not _is_part(rest, formulas.end()):
        return formulas.end()
    if choice := CHOICE.match(rest):
        return choice.end()
    sentence_end = SENTENCE_END.search(rest)
    return sentence_end.start() if sentence_end else len(rest)


def _last_cue(text: str) -> re.Match[str] | None:
    """The last cue, if possible one without a denial: "the answer is 5; the answer is not 6"."""
    cues = deque(CUE.finditer(text), maxlen=MOST_CUES)
    for cue in reversed(cues):
        start, end = cue.span()
        before = (text, max(0, start - 40), start)
        if not (DENIED.match(text, end) or CHECKED.search(*before) or SUPPOSED.search(*before)):
            return cue
    cues = cues or deque(CONDITIONAL_CUE.finditer(text), maxlen=1)
    return cues[-1] if cues else None


def _is_part(text: str, end: int) -> bool:
    """Whether the text goes on with the answer after a formula."""
    return CHANGED.match(text, end) is not None or begins_sum(text[end : end + MAX_BARE])


def _bare(text: str) -> str | None:
    """The text itself, if it is one short line with no more than two words of prose, and no box."""
    answer = _unquoted(text.strip().strip("`")) if len(text) <= 4 * MAX_BARE else ""
    if not answer or len(answer) > MAX_BARE or "\n" in answer or REFUSAL.search(answer):
        return None
    if r"\boxed{" in answer:
        return None  # and the text denies it
    return answer if len(WORD.findall(answer)) <= 2 else None


def _unquoted(answer: str) -> str:
    answer = answer.strip()
    quoted = QUOTED.fullmatch(answer)
    return (quoted[2] or quoted[3]).strip() if quoted else answer
