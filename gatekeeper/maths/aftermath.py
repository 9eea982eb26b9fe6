"""Whether a text takes back the answer that it has given.

"Wait, that is wrong." and ", but it should be 6." take it back, as do steps to another result;
"This is the smallest such number." and "The other root is rejected." do not. An answer that is
stated again is judged by what follows its last statement.
"""

from __future__ import annotations

import re

from gatekeeper.maths import units
from gatekeeper.maths.counted import goes_on, is_affirmed
from gatekeeper.maths.results import (
    NUMBER,
    SIGNS,
    after_statements,
    ends_elsewhere,
    is_answer,
    sentence_start,
    without_others,
)
from gatekeeper.maths.surroundings import SPACES
from gatekeeper.maths.vocabulary import REJECTED

__all__ = ["is_retracted"]

MAX_REMARK = 300  # characters after an answer in which it may be taken back
MAX_AFTER = 3000  # characters after an answer that are read
MAX_BEFORE = 60  # characters before an answer that may name it

_ENDING = " \n$.*\\)]"  # of most texts
_NEXT_QUESTION = re.compile(r"\n[#*\s]{0,9}(?:question|problem|exercise|q)\b")
_WRONG = (
    rf"(?:{'|'.join(REJECTED)}|impossible(?! to)|mistaken|not (?:quite )?(?:(?:the|an?) )?"
    r"(?:right|correct|answer|solution|valid|possible|sure|certain))\b"
)
_REMARKED = re.compile(  # "\boxed{5} (too small)", "\boxed{5}. No, that is too small"
    rf"(?:[ $*)\]\\(\[{{}}:,>–—-]|\\text)*(?:too [a-z]+|{_WRONG}|(?:just |only )?"
    r"(?:an? |my )?guess\b|no[,!]|not(?:[.!]| the answer)|to be (?:checked|verified)|\?|[❌✗✘])"
    r"|[\s$*)\]\\]{0,9}[,(]? ?\?|[\s$*.)?!\]\\–—-]*no(?:pe)?\s?[,.!:…–—-]",
)
_OTHER = (
    r"(?:other|another|second|negative|positive)"
    r" (?:root|solution|value|answer|option|choice|candidate|number|case is)s?"
)
_CONTRAST = re.compile(  # ", but it is 6", ". However, we need half of it", ", or maybe 6"
    r"[\s$*)\]\\}]*[,;.(–—-]+\s*(?:(?:but|however|yet|though|although)\b"
    rf"(?!.{{0,40}}\b(?:{_OTHER}|(?<!only )if|would|note|check|verify|reject(?:ed)?)\b)"
    r"|or,? (?:maybe|perhaps|possibly|is it|rather|actually)\b)"
    # ", or 41 if it is excluded", "(41 if it is excluded)"
    rf"|[\s$*)\]\\}}]*(?:,\s*or|\((?:or)?)\s*{SIGNS}{NUMBER}[^.\n]{{0,20}}?\b(?:if|when|unless)\b"
    r"|[\s$*)\]\\}]*,\s*(?:unless|if|provided|assuming|otherwise|else|except|no,)",
)
_PREDICATE = re.compile(  # ", which is too large", ". This is not an integer"
    r"[\s$*)\]\\}.,;:!–—-]*(?:which|that|this|it|the above|something|(?:this|that|the|my|above)"
    r" (?:(?!other|negative|second)\w+ )?(?:answer|value|result|solution|number|guess))"
    r"((?: (?:is|was|seems|looks)|'s)(?:n't)? [^.!?:;\n]{1,80}"
    r"| (?:exceeds|contradicts|violates|fails|overcounts)\b"
    r"| can(?:'t|not) be(?! (?:larger|smaller|greater|less|more|improved|simplified|reduced)\b))"
)
_COMPARED = re.compile(  # says nothing against it
    r"\b(?:less|greater|larger|smaller|more|fewer|bigger) than (?=[\d$])"
    r"|not (?:hard|difficult|necessary|needed|approximate|surprising|an? (?:coincidence|trick))\b"
    r"|not (?=[$\d\\]|\(?[b-j]\b)"
)
_SUPPORTED = re.compile(  # "this seems right", "this was found by adding", but not "at first"
    r" (?:was|seems|looks)(?: to be)? (?:right|correct|reasonable|plausible|consistent|expected"
    r"|shown|(?:obtained|found|computed|calculated) (?:by|as|from|using))\b(?!.*\b(?:but|first)\b)"
)
_OF_OTHERS = re.compile(
    r"\b(?:other|another|second|negative|remaining|all|any|common|typical|avoid|rounding|no"
    r"|if|would|could|without|options|choices|questions|problems)\b"
)
_SUBJECT = re.compile(  # "The option (B) is", ", as (B) is", but not "As 6 is even, that"
    r"(?:,? (?:as|because|since) )?[\s$*-]*(?!(?:as|because|if|since|when)\b)(?:[a-z]+[,:]? ){0,3}"
    rf"{SIGNS}(?:({NUMBER})|((?:\(?\b[a-hj]\b\)?(?:,? and |,? or |, )?)+)){SIGNS}"
    r"(?:is|was|are|has|have)\b"
)
_THIS = (
    r"(?:that|this|it|(?:this|that|the|my|above) (?:\w+ )?"
    r"(?:answer|value|result|solution|number|guess|choice))"
)
_LINK = (
    r"(?: is|'s| was| seems| looks| appears| feels|(?: turn(?:s|ed) out| prove[sd])(?: to be)?"
    r"| (?:can(?:not|'t)|can not|could(?:n't| not)) be)"
)
_EARLIER = re.compile(r"\b(?:at first|initially|originally)\b")
_OF_ANOTHER = re.compile(rf"\b{_OTHER}\b")
_CLAUSE = re.compile(  # the words up to the next sign or number
    rf"(?:{SPACES})*([a-z][a-z'-]*(?: [A-Za-z][a-z'-]*)*)"
)
_POLAR = re.compile(r"\W*(?:text\W)?(?:yes|no|true|false)\W*", re.IGNORECASE)
_REASON = re.compile(  # No, it is not possible
    r"[\s$*)\]\\}]*,\s(?:it|this|that|there|the|such|we|they|he|she)\b[^.!?\n]*"
)
_BY_CASES = re.compile(  # $5$ when n is even and $6$ when n is odd
    r"[\s$*)\]\\]*(when|if|for|where)\b[^.\n]{1,60}?\b(?:and|but|or) [$\\(]*-?\d[^.\n]{0,20}?\1\b"
)
_RETRACTED = re.compile(
    # "That turned out to be too small", "this isn't right", "it overcounts"
    rf"\b(?:{_THIS}(?:{_LINK} (?:[a-z]+ly |also |still |just |only )?"
    rf"(?:{_WRONG}|too (?!\w+ to\b)[a-z]+|an? (?:upper|lower) bound|off by)"
    r"| (?:can(?:not|'t)|can not|could(?:n't| not)) be (?:right|correct|true|possible|it)\b"
    r"|(?: is|'s| was)(?:n't| not) right"
    r"|(?: does| did)(?:n't| not) (?:seem|look|work|satisf|make sense|match|fit|hold|add up)"
    r"| (?:fails|(?:contradict|violate)s|(?:over|under)(?:counts|estimates|shoots))\b)"
    # "Wait, ...", "Oops", "I doubt this", "not sure whether"
    r"|(?:wait|hmm+|sorry|hold on)\s?[,.!:…–—-]"
    r"|i apologi[sz]e(?! if| for any)|(?:scratch|strike) that|on second thought|correction:|oops"
    rf"|(?:i|we) (?:doubt|do(?:n't| not) (?:think|believe))(?: that)? {_THIS}"
    r"|(?:not|nobody|no one) (?:sure|certain|knows?|say|tell) (?:if|whether)\b"
    r"|\b(?:off|short) by\b|\b(?:double|halve|triple|twice) (?:it|that|this)\b"
    r"|i(?:'m| am) not (?:sure|certain)|i should have|(?:check|verification) fails"
    # "Let me correct this", "we must still subtract 2"
    r"|correct (?:my|the|this|that) "
    r"|(?:we|i|you) (?:must|need to|have to|should) (?:also |still |then |now )"
    r"(?:subtract|add|divide|multiply|double|halve|exclude|remove|adjust|count))"
    # "But actually", "Edit: 6", "Is it? No", "can't say whether"
    rf"|[.!?;:,(\n–—-]{SIGNS}(?:(?:but|no|oh|ah|hmm+),? )*"
    r"(?:wait|actually|apologies|my (?:mistake|bad)|(?:edit|update)(?=:)|not (?:sure|certain|quite)"
    r"|i mean|on reflection|doubled|halved|tripled|times two|(?:multiply|divide) by|never mind)\b"
    r"|\? ?no\b|n't (?:sure|certain|knows?|say|tell) (?:if|whether)\b",
)
_REJECTED = re.compile(
    r"\b(?:wrong(?! (?:answers|questions))|incorrect|mistaken?|errors?|miscalculated|mixed up)\b"
)
_ADMITTED = re.compile(  # to its end, where "at first" may stand
    r"\b(?:i|we)(?:'ve| have)? (?:[a-z]+ )?"
    r"(?:forgot|missed|misread|overlooked|mis(?:counted|calculated)"
    r"|(?:over|under|double[- ])counted|(?:was|were) (?:wrong|off)"
    r"|made an? (?:\w+ )?(?:mistake|error))\b"
    r"[^.!?\n]*",
)
# Remarks against the answer, and what shows that they speak of something else.
_REMARKS = ((_RETRACTED, _OF_ANOTHER), (_REJECTED, _OF_OTHERS), (_ADMITTED, _EARLIER))


def is_retracted(text: str, start: int, end: int, answer: str) -> bool:
    """Whether the text after an answer, from start to end, takes it back."""
    after = text[end : end + MAX_AFTER]
    if not after.strip(_ENDING):
        return False
    clause = _CLAUSE.match(after)
    if clause and not goes_on(clause[1].lower(), units.is_known):
        return True
    after = after.lower()
    if question := _NEXT_QUESTION.search(after):
        after = after[: question.start()]
    if _POLAR.fullmatch(answer):
        after = _REASON.sub("", after, count=1)
    if _REMARKED.match(after) or _CONTRAST.match(after) or _BY_CASES.match(after):
        return True
    after = without_others(after, text[max(0, start - MAX_BEFORE) : start], answer)
    rest = after_statements(after, answer)
    return rest is None or _is_rejected(rest[:MAX_REMARK], answer) or ends_elsewhere(rest, answer)


def _is_rejected(text: str, answer: str) -> bool:
    """Whether a sentence says of the answer before it that it is wrong."""
    said = _PREDICATE.match(text)
    if said and not _SUPPORTED.match(said[1]) and not is_affirmed(_words(said[1])):
        return True
    for pattern, others in _REMARKS:
        for remark in pattern.finditer(text):
            start = sentence_start(text, remark.start())
            of_other = others.search(text, start, remark.end())
            if not of_other and not _has_other_subject(text, start, answer):
                return True
    return False


def _has_other_subject(text: str, start: int, answer: str) -> bool:
    """Whether a sentence speaks of another number, or of another choice: "(B) is wrong"."""
    subject = _SUBJECT.match(text, start)
    if subject is None:
        return False
    number, letters = subject.groups()
    if number:
        return not is_answer(number, answer)
    return all(is_answer(letter, answer) is False for letter in re.findall(r"\b\w\b", letters))


def _words(predicate: str) -> list[str]:
    """The words of "'s less than 20", without a comparison that says nothing against the answer."""
    plain = predicate.replace("'s", " is", 1).replace("n't", " not", 1)
    return _COMPARED.sub("", plain).split()
