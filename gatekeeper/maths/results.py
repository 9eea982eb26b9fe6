"""Values that a text states after an answer: the answer again, or another one.

"So the answer is 18." states the answer 18 again; "Subtracting 2, we get 16." and "Therefore, she
has 16 left." go on to another. A check, a hypothesis, a value of another variable, and steps that
reach the answer, which explain it, do not.
"""

from __future__ import annotations

import re
from fractions import Fraction

from gatekeeper.maths import exact, units
from gatekeeper.maths.choices import same_choice
from gatekeeper.maths.normalise import normalise
from gatekeeper.maths.structure import read
from gatekeeper.maths.vocabulary import PRECISION

__all__ = [
    "NUMBER",
    "SIGNS",
    "after_statements",
    "ends_elsewhere",
    "is_answer",
    "sentence_start",
    "without_others",
]

MAX_STEP = 150  # characters after an answer in which a further step begins

SIGNS = r"[\s$*\\()\[\]{}]{0,9}"
NUMBER = (
    r"-?(?:\\?\$)?-?(?:\d(?:[\d,]|\\! ?){0,24}(?:\.\d{1,20})?(?:/\d{1,20})?"
    r"|\\[dt]?frac\{?-?\d+\}?\{?\d+\}?)"
)
_NUMBER_END = (
    r"(?![\d/%{]|\^(?!\{?\\circ)|\\(?!text|mathrm|[)\],;:! ])|[.,]\d|\s\\[dt]?frac"
    r"|\s?[-+*×·^/]\s?[\d$\\(]"
    r"| (?:times|more|less|fewer|percent)\b)"
)
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
    rf"{SIGNS}(?:({NUMBER}){_NUMBER_END}|\(?([a-j])\)?[*$]{{0,3}}(?=[.\n]|\Z))",
)
_AFFIRMED = re.compile(  # "I think 6 is right"
    r"(?:\b(?:think|believe|guess|say|that|maybe|perhaps|so|but)\b|[.!?,;:\n])[\s$*(\\]{0,9}"
    rf"(?:({NUMBER})|\(?\b([a-j])\)?){SIGNS}\b(?:is|seems|looks)"
    r" (?:(?:also|actually|indeed|much|the) )*(?:right|correct|better|answer)\b"
    rf"|={SIGNS}({NUMBER}){SIGNS}[.,!;:]?\s?(?:yes\b|correct\b|[✓✔✅])"  # 2 + 4 = 6. Yes
    rf"|\b(?:is|gives?|get|so) {SIGNS}({NUMBER}){SIGNS}instead\b(?! of)"
)
_ALONE = re.compile(  # on a line of its own: "6", "Better: 6", but not "Confidence: 6"
    r"[\s$*)\]\\}.!]{0,20}[.\n][\s$*]{0,9}(?:(?!confidence|certainty|difficulty|level|rating|score)"
    rf"[a-z][a-z ]{{0,30}}[:,][\s*]{{0,9}}|so |=)?{SIGNS}(?:({NUMBER}){_NUMBER_END}|([a-j])\b)"
    r"(?=[\s$*.!)\]\\]*(?:\n|\Z))"
)
_ASSIGNED = re.compile(r"(?<![\w\\{(+*/^-])([a-z])[\s$*]*=[^.,;\n]*")
_WHERE = re.compile(rf"\b(?:at|for|when|where|with)[\s$\\(]*{_ASSIGNED.pattern}")
_NAME = re.compile(r"(?<![a-z\\])([a-z])[\s$*]*=[\s$*\\(\[]*\Z", re.IGNORECASE)
_MARKS = re.compile(r"[$,]|\\! ?|\\\$|(?<=\\)[dt](?=frac)")
_SENTENCE = re.compile(r"(?:[^.!?\n]|\.(?=\d)|!(?=[\\=\d]))+")
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
_CONCLUSION = re.compile(
    r"[\s$*)\]\\]*(?:therefore|thus|hence|so|consequently|as a result|in (?:conclusion|summary))\b"
)
_CONCLUDING = re.compile(rf"[.!?\n]{_CONCLUSION.pattern}|, so we (?:get|obtain|find)\b")
_BECAUSE = re.compile(r"[\s$*)\]\\}]*,?\s*(?:because|since|as)\b")
_REDONE = (
    r"re-?(?:check|comput|calculat|count|do\b|doing|consider|think|evaluat|examin|view\b)\w*"
    r"|tr(?:y|ying) again|start(?:ing)? over"
)
_STEP = re.compile(
    r"\b(?:subtract|add(?:ing)?\b|multipl[yi]|divid(?:e\b|ing)|doubl(?:ed?|ing)\b|halv|remov|exclud(?:e|ing)"
    r"|round(?:s|ed|ing)?\b[^.\n]{0,20} (?:up|down|off|to)\b"
    rf"|tak(?:e|ing) away|of (?:these|those|them|which)\b|(?:half of|twice) (?:it|this|that)\b"
    rf"|{_REDONE})",
)
_AGAIN = re.compile(  # "On closer inspection, it is 6"
    r"\b(?:closer (?:look|inspection|examination|reading)|(?:second|another|fresh) (?:look|reading)"
    r"|look(?:ed|ing)? [^.\n]{0,20}\bagain|re-?(?:read|inspect)\w*)\b"
)
_REDO = re.compile(rf"\b(?:let(?:'s| me| us)|i'll|i will) (?:\w+ )?(?:{_REDONE})")
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
    rf"{SIGNS}({NUMBER})|({NUMBER}){SIGNS}(?:remain|are left|left)\b"
    rf"|\bround(?:s|ed|ing)?\b[^.\n]{{0,20}} to(?! {PRECISION}){SIGNS}({NUMBER})",
)
_CONCLUDED = re.compile(  # and "it takes 6"
    rf"(?:{_RESULT.pattern}|\b[a-z]{{2,}}(?:[a-z]s| to(?! {PRECISION})) {NUMBER}){_NUMBER_END}"
)
_VALUE = re.compile(rf"(?<![\w.^{{\\-])({NUMBER}){_NUMBER_END}")  # the 6 of 8 - 2 = 6


def without_others(after: str, before: str, answer: str) -> str:
    """The text after an answer without the values of other variables than the answer's."""
    named = _NAME.search(before) or re.match(r"[\s$]*([A-Za-z])\s*=", answer)
    if not named:
        return after
    name = named[1].lower()
    return _ASSIGNED.sub(lambda m: m[0] if m[1] == name else "", after)


def after_statements(text: str, answer: str) -> str | None:
    """What follows the last statement of the answer; None where a statement differs from it."""
    alone = _ALONE.match(text)
    found = [*_STATED.finditer(text), *_AFFIRMED.finditer(text), *([alone] if alone else [])]
    rest = text
    for stated in sorted(found, key=lambda match: match.start()):
        if is_answer(next(filter(None, stated.groups())), answer) is not False:
            rest = text[stated.end() :]
        elif not _HYPOTHESIS.search(text, sentence_start(text, stated.start()), stated.start()):
            return None
    return rest


def ends_elsewhere(text: str, answer: str) -> bool:
    """Whether further steps, or a conclusion, end in another result: "Subtracting 2, we get 16".

    Not where one of them is the answer: the steps explain it.
    """
    if again := _AGAIN.search(text, 0, MAX_STEP):
        values = _VALUE.findall(text, sentence_start(text, again.start()))
        return bool(values) and all(is_answer(value, answer) is False for value in values)
    step = _FIRST_STEP.match(text) or _STEP.search(text, 0, MAX_STEP)
    if not (step or _CONCLUDING.search(text, 0, MAX_STEP)) or _BECAUSE.match(text):
        return False
    check = _CHECK.search(text)
    stop = check.start() if check else len(text)
    if step and step.end() <= stop:
        start = sentence_start(text, step.start())
        results = _results(_SENTENCE.findall(text, start, stop))
    else:
        results = _concluded(text[:stop])
    if not results:
        return step is not None and _REDO.search(text, 0, stop) is not None
    results += _late_results(text, stop)
    return all(is_answer(result, answer) is False for result in results)


def _concluded(text: str) -> list[str]:
    """The numbers from the first conclusion with a result on: "Thus Ann is 18 and Tom is 16"."""
    for conclusion in _CONCLUDING.finditer(text, 0, MAX_STEP):
        sentences = _SENTENCE.findall(text, sentence_start(text, conclusion.end()))
        first = _WHERE.sub("", sentences[0])  # "the maximum is at x = 3"
        if _CONCLUDED.search(first) and not _HYPOTHESIS.search(first):
            return _VALUE.findall("\n".join(sentences))
    return []


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


def sentence_start(text: str, at: int) -> int:
    return max(text.rfind(mark, 0, at) for mark in ".!?\n") + 1


def is_answer(stated: str, answer: str) -> bool | None:
    """Whether a number, or the letter of a choice, is the answer; None where that is not sure."""
    if answer == stated:
        return True
    if stated.isalpha():
        choice = normalise(answer) or ""
        return same_choice(stated.upper(), choice) if same_choice(choice, choice) else None
    y = exact.value(_MARKS.sub("", stated))
    x = _number(answer)
    if x is None or y is None:
        return None
    place = exact.last_place(stated) if "." in stated else None
    return x in (y, 100 * y, y / 100) or abs(x - y) < (place or 0)  # 0.5 is 50%


def _number(text: str) -> Fraction | None:
    """The value of a number, perhaps with a name and a unit."""
    if (plain := exact.value(text)) is not None:
        return plain
    value, _ = units.split(read(normalise(text) or "").text)
    return exact.value(value)
