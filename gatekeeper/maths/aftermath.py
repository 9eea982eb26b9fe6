"""What a text says after an answer: that it is wrong, or that the computation goes on.

An answer that is stated again is judged by what follows its last statement.
"""

from __future__ import annotations

import re
from fractions import Fraction

from gatekeeper.maths import exact, units
from gatekeeper.maths.choices import same_choice
from gatekeeper.maths.counted import goes_on, is_affirmed
from gatekeeper.maths.normalise import normalise
from gatekeeper.maths.structure import read
from gatekeeper.maths.surroundings import SPACES
from gatekeeper.maths.vocabulary import REJECTED

__all__ = ["is_retracted"]

MAX_REMARK = 300  # characters after an answer in which it may be taken back
MAX_STEP = 150  # characters after an answer in which a further step begins
MAX_STEPS = 3000  # characters of further steps; longer ones are not read

_ENDING = " \n$.*\\)]"  # of most texts
_SIGNS = r"[\s$*\\()\[\]{}]{0,9}"
_NUMBER = (
    r"-?(?:\\?\$)?-?(?:\d(?:[\d,]|\\! ?){0,24}(?:\.\d{1,20})?(?:/\d{1,20})?"
    r"|\\[dt]?frac\{?-?\d+\}?\{?\d+\}?)"
)
_NUMBER_END = (
    r"(?![\d/^%\\{]|[.,]\d|\s\\[dt]?frac|\s?[-+*×·^/]\s?[\d$\\(]"
    r"| (?:times|more|less|fewer|percent)\b)"
)
_NEXT_QUESTION = re.compile(r"\n[#*\s]{0,9}(?:question|problem|exercise|q)\b")
_STATED = re.compile(  # "the answer is 6", "#### 6", "so the total is 8 - 2 = 6", "it should be 6"
    r"(?:answer(?<!wrong answer)(?<!incorrect answer)(?<!naive answer)(?<!other answer)"
    r"|final (?:result|value|count|total)|(?:required|desired) [a-z]+"
    r"|(?:correct|true) (?:value|option|choice|result|number)"
    r"|total(?:(?<=so the total)|(?<=thus the total)|(?<=hence the total)"
    r"|(?<=therefore the total)|(?<=new total))(?: number of [a-z]+)?"
    r"|should (?:actually |really |instead )?(?:be|have been)\b|####)"
    r"(?:\**(?: (?:is|equals|(?:should|must) be)\b(?: (?:therefore|thus|then|now|actually))?|:)"
    r"|(?<=be)|(?<=been)|(?<=####))[:\s*]{0,9}"
    r"(?:(?:[^=.\n]|\.\d){1,40}=)?"
    rf"{_SIGNS}(?:({_NUMBER}){_NUMBER_END}|\(?([a-j])\)?[*$]{{0,3}}(?=[.\n]|\Z))",
)
_STATEMENTS = (
    "answer",
    "final ",
    "required ",
    "desired ",
    " total",
    "correct ",
    "true ",
    "####",
    "should ",
)  # a fast test before the pattern
_MARKS = re.compile(r"[$,]|\\! ?|\\\$|(?<=\\)[dt](?=frac)")
_SENTENCE = re.compile(r"(?:[^.!?\n]|\.(?=\d))+")
_HYPOTHESIS = re.compile(
    r"\b(?:if|unless|had (?:we|not|it)|without|suppose|assuming|would|wrong|mistakes?|errors?"
    r"|(?:might|may|could) (?:think|expect|guess|say)"
    r"|(?:double-?)?check|verif\w+|confirm|part \W?\w)\b",
)
# From there on, numbers belong to a check or to an explanation.
_CHECK = re.compile(
    r"(?:check(?<!recheck)(?<!re-check)|verif|confirm|explanation|explained"
    r"|here(?:'s| is) (?:why|how)"
    r"|step|proof|reason|alternativ|substitut|plug|test|note\b|remark|indeed\b)",
)
_VERIFICATION = re.compile(r"check|verif|confirm|test|\bback\b|original")
_CONCLUSION = re.compile(r"\s*(?:therefore|thus|hence|so)\b")
_BECAUSE = re.compile(r"[\s$*)\]\\}]*,?\s*(?:because|since|as)\b")
_REDONE = (
    r"re-?(?:check|comput|calculat|count|do\b|doing|consider|think|evaluat|examin|view\b)\w*"
    r"|tr(?:y|ying) again|start(?:ing)? over"
)
_STEP = re.compile(
    r"\b(?:subtract|add(?:ing)?\b|multipl[yi]|divid(?:e\b|ing)|doubl(?:ed?|ing)\b|halv|remov|exclud(?:e|ing)"
    rf"|tak(?:e|ing) away|of (?:these|those|them|which)\b|(?:half of|twice) (?:it|this|that)\b"
    rf"|{_REDONE})",
)
_FIRST_STEP = re.compile(  # right after the answer
    r"[\s$*)\]\\}.,;:]{1,9}(?:(?:so|and) )?"
    r"(?:(?:after )?(?!during|interesting)[a-z]{2,}ing"
    r"|(?:(?:she|he|it|we|they) )?then|next|after (?:that|this)|finally"
    r"|in (?:the end|total)|plus|minus|times|less|rounded"
    r"|the (?:question|problem) (?:asks|wants))\b"
)
_RESULT = re.compile(
    r"(?:\b(?:get|gives?(?: us)?|giving|obtain|yields?|leav(?:es?|ing)|have|has|find|is|it's"
    r"|that's|are|remain|so|makes|equals|total|total of|only|finally|find that)\b|\\equiv|[=:])"
    rf"{_SIGNS}({_NUMBER})|({_NUMBER}){_SIGNS}(?:remain|are left|left)\b",
)
_WRONG = (
    rf"(?:{'|'.join(REJECTED)}|impossible(?! to)|mistaken|not (?:quite )?(?:(?:the|an?) )?"
    r"(?:right|correct|answer|solution|valid|possible|sure|certain))\b"
)
_REMARKED = re.compile(  # "\boxed{5} (too small)", "\boxed{5}. No, that is too small"
    rf"(?:[ $*)\]\\(\[{{}}:,>–—-]|\\text)*(?:too [a-z]+|{_WRONG}|(?:just |only )?"
    r"(?:an? |my )?guess\b|no[,!]|not the answer|to be (?:checked|verified)|\?|[❌✗✘])"
    r"|[\s$*)\]\\]{0,9}[,(]? ?\?|[\s$*.)?!\]\\–—-]*no(?:pe)?\s?[,.!:…–—-]",
)
_OTHER = (
    r"(?:other|another|second|negative|positive)"
    r" (?:root|solution|value|answer|option|choice|candidate|number|case is)s?"
)
_CONTRAST = re.compile(  # ", but it is 6", ". However, we need half of it", ", or maybe 6"
    r"[\s$*)\]\\}]*[,;.(–—-]+\s*(?:(?:but|however|yet|though|although)\b"
    rf"(?!.{{0,40}}\b(?:{_OTHER}|if|would|note|check|verify|reject(?:ed)?)\b)"
    r"|or,? (?:maybe|perhaps|possibly|is it|rather|actually)\b)"
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
    r"|not (?=[$\d\\])"
)
_SUPPORTED = re.compile(  # "this seems right", "this was found by adding", but not "at first"
    r" (?:was|seems|looks)(?: to be)? (?:right|correct|reasonable|plausible|consistent|expected"
    r"|shown|(?:obtained|found|computed|calculated) (?:by|as|from|using))\b(?!.*\b(?:but|first)\b)"
)
_REJECTED = re.compile(
    r"\b(?:wrong(?! (?:answers|questions))|incorrect|mistaken?|errors?|miscalculated|mixed up)\b"
)
_OF_OTHERS = re.compile(
    r"\b(?:other|another|second|negative|remaining|all|any|common|typical|avoid|rounding|no"
    r"|if|would|could|without|options|choices|questions|problems)\b"
    rf"|{_NUMBER}{_SIGNS}(?:is|was|are)\b"
)
_THIS = (
    r"\b(?:that|this|it|(?:this|that|the|my|above) (?:\w+ )?"
    r"(?:answer|value|result|solution|number|guess|choice))"
)
_LINK = (
    r"(?: is|'s| was| seems| looks| appears| feels|(?: turn(?:s|ed) out| prove[sd])(?: to be)?"
    r"| (?:can(?:not|'t)|can not|could(?:n't| not)) be)"
)
_RETRACTED = re.compile(  # "Wait, it should be 6", anywhere
    rf"{_THIS}(?:{_LINK} (?:[a-z]+ly |also |still |just |only )?(?:{_WRONG}|too (?!\w+ to\b)[a-z]+"
    r"|an? (?:upper|lower) bound|off by)"
    r"| (?:can(?:not|'t)|can not|could(?:n't| not)) be (?:right|correct|true|possible|it)\b"
    r"|(?: is|'s| was)(?:n't| not) right"
    r"|(?: does| did)(?:n't| not) (?:seem|look|work|satisf|make sense|match|fit|hold|add up)"
    r"| (?:fails|(?:contradict|violate)s|(?:over|under)(?:counts|estimates|shoots))\b)"
    r"|\b(?:wait|hmm+|sorry|hold on)\s?[,.!:…–—-]"
    rf"|(?:[.!?;:,(\n–—-]{_SIGNS})(?:(?:but|no|oh|ah|hmm+),? )*"
    r"(?:wait|actually|apologies|my (?:mistake|bad)|(?:edit|update)(?=:)|not (?:sure|certain|quite)"
    r"|i mean|on reflection|never mind)\b"
    r"|\b(?:(?:scratch|strike) that|on second thought|correction:|oops)"
    rf"|\b(?:i|we) (?:doubt|do(?:n't| not) (?:think|believe))(?: that)? {_THIS}|\? ?no\b"
    r"|(?:n't|\b(?:not|nobody|no one)) (?:sure|certain|knows?|say|tell) (?:if|whether)\b"
    r"|\b(?:check|verification) fails|\bi should have|\bcorrect (?:my|the|this|that) "
    r"|\bi(?:'m| am) not (?:sure|certain)"
    r"|\b(?:i|we)(?:'ve| have)? (?:[a-z]+ )?"
    r"(?:forgot|missed|misread|overlooked|mis(?:counted|calculated)"
    r"|(?:over|under|double[- ])counted|(?:was|were) wrong|made an? (?:\w+ )?(?:mistake|error))\b"
    r"|\b(?:we|i|you) (?:must|need to|have to|should) (?:also |still |then |now )"
    r"(?:subtract|add|divide|multiply|double|halve|exclude|remove|adjust|count)",
)
_RETRACTIONS = (  # a fast test before the patterns
    *REJECTED,
    *("impossible", "mistake", "not ", "n't", "too ", "bound", "off by", "fails", "contradicts"),
    *("violates", "counts", "counted", "estimates", "shoots", "wait", "hm", "sorry", "hold on"),
    *("actually", "apologies", "my bad", "edit:", "i mean", "reflection", "never mind", "scratch"),
    *("strike", "second thought", "correction:", "oops", "forgot", "missed", "misread", "mixed"),
    *("overlooked", "miscalculated", "error", "should have", "correct ", "also ", "still "),
    *("doubt", "?", "update", "whether", " if "),
    *("then ", "now "),
)
_OF_ANOTHER = re.compile(rf"\b{_OTHER}\b")
_REDO = re.compile(rf"\b(?:let(?:'s| me| us)|i'll|i will) (?:\w+ )?(?:{_REDONE})")
_CLAUSE = re.compile(  # the words up to the next sign or number
    rf"(?:{SPACES})*([a-z][a-z'-]*(?: [A-Za-z][a-z'-]*)*)"
)
_BY_CASES = re.compile(  # $5$ when n is even and $6$ when n is odd
    r"[\s$*)\]\\]*(when|if|for|where)\b[^.\n]{1,60}?\b(?:and|but|or) [$\\(]*-?\d[^.\n]{0,20}?\1\b"
)


def is_retracted(text: str, end: int, answer: str) -> bool:
    """Whether the text after an answer takes it back, as in "Wait, that is wrong"."""
    after = text[end : end + MAX_STEPS]
    if not after.strip(_ENDING):
        return False
    clause = _CLAUSE.match(after)
    if clause and not goes_on(clause[1].lower(), units.is_known):
        return True
    after = after.lower()
    if question := _NEXT_QUESTION.search(after):
        after = after[: question.start()]
    if _REMARKED.match(after) or _CONTRAST.match(after) or _BY_CASES.match(after):
        return True
    rest = after
    for stated in _STATED.finditer(after) if _has(after, _STATEMENTS) else ():
        if not _differ(answer, stated[1] or stated[2]):
            rest = after[stated.end() :]
        elif not _HYPOTHESIS.search(after, _sentence_start(after, stated.start()), stated.start()):
            return True
    return _is_rejected(rest[:MAX_REMARK]) or _is_changed(rest, answer)


def _is_rejected(text: str) -> bool:
    """Whether a sentence says of the answer before it that it is wrong."""
    said = _PREDICATE.match(text)
    if said and not _SUPPORTED.match(said[1]) and not is_affirmed(_words(said[1])):
        return True
    if not _has(text, _RETRACTIONS):
        return False
    for pattern, others in ((_RETRACTED, _OF_ANOTHER), (_REJECTED, _OF_OTHERS)):
        for remark in pattern.finditer(text):
            start = _sentence_start(text, remark.start())
            if not others.search(text, start, remark.end()):
                return True
    return False


def _words(predicate: str) -> list[str]:
    """The words of "'s less than 20", without a comparison that says nothing against the answer."""
    plain = predicate.replace("'s", " is", 1).replace("n't", " not", 1)
    return _COMPARED.sub("", plain).split()


def _has(text: str, parts: tuple[str, ...]) -> bool:
    return any(part in text for part in parts)


def _is_changed(text: str, answer: str) -> bool:
    """Whether further steps end in another result: "Subtracting 2, we get 16".

    Not where one of them is the answer: the steps explain it.
    """
    step = _FIRST_STEP.match(text) or _STEP.search(text, 0, MAX_STEP)
    if not step or _BECAUSE.match(text):
        return False
    start = _sentence_start(text, step.start())
    check = _CHECK.search(text)
    stop = check.start() if check else len(text)
    if step.end() > stop:
        return False
    results = _results(_SENTENCE.findall(text, start, stop))
    if not results:
        return _REDO.search(text, 0, stop) is not None
    return all(_differ(answer, result) for result in (*results, *_late_results(text, stop)))


def _late_results(text: str, start: int) -> list[str]:
    """The results from there on that are no part of a check."""
    check = _VERIFICATION.search(text, start)
    stop = check.start() if check else len(text)
    sentences = _SENTENCE.findall(text, stop)
    return _results([*_SENTENCE.findall(text, start, stop), *filter(_CONCLUSION.match, sentences)])


def _results(sentences: list[str]) -> list[str]:
    """The last result of each sentence that is no hypothesis."""
    ends = [
        _RESULT.findall(sentence)[-1:] for sentence in sentences if not _HYPOTHESIS.search(sentence)
    ]
    return ["".join(groups) for last in ends for groups in last]


def _sentence_start(text: str, at: int) -> int:
    return max(text.rfind(mark, 0, at) for mark in ".!?\n") + 1


def _differ(answer: str, stated: str) -> bool:
    """Whether a number, or the letter of a choice, surely differs from the answer."""
    if answer == stated:
        return False
    if stated.isalpha():
        return same_choice(stated.upper(), normalise(answer) or "") is False
    y = exact.value(_MARKS.sub("", stated))
    x = _number(answer)
    if x is None or y is None or x in (y, 100 * y, y / 100):  # 0.5 is 50%
        return False
    place = exact.last_place(stated) if "." in stated else None
    return place is None or abs(x - y) >= place


def _number(text: str) -> Fraction | None:
    """The value of a number, perhaps with a name and a unit."""
    if (plain := exact.value(text)) is not None:
        return plain
    value, _ = units.split(read(normalise(text) or "").text)
    return exact.value(value)
