"""Values that a text states after an answer: the answer again, or another one.

"So the answer is 18." states the answer 18 again; "There are 2 more, making 20." goes on to
another. The words of such sentences are too many to list, so each number after an answer counts,
except those that cannot be a result: an operand, what is compared or counted, a reason, a check, a
hypothesis. The last one decides; steps that reach the answer explain it.
"""

from __future__ import annotations

import re
from fractions import Fraction
from functools import lru_cache

from gatekeeper.maths import exact, units
from gatekeeper.maths.choices import same_choice
from gatekeeper.maths.normalise import normalise
from gatekeeper.maths.structure import read
from gatekeeper.maths.vocabulary import COUNTS, TENS

__all__ = [
    "NUMBER",
    "SIGNS",
    "after_statements",
    "ends_elsewhere",
    "is_answer",
    "sentence_start",
    "without_others",
]

SIGNS = r"[\s$*\\()\[\]{}]{0,9}"
NUMBER = (
    r"-?(?:\\?\$)?-?(?:\d(?:[\d,]|\\! ?){0,24}(?:\.\d{1,20})?(?:/\d{1,20})?"
    r"|\\[dt]?frac\{?-?\d+\}?\{?\d+\}?)"
)
_NUMBER_END = (
    r"(?![\d/%{]|\^(?!\{?\\circ)|\\(?!text|mathrm|[)\],;:! ])|[.,]\d|\s\\[dt]?frac"
    r"|\s?[-+*×·^/]\s?[\d$\\(]"
    r"|[$\\)]* (?:times|more|less|fewer|percent)\b)"
)
_STATED = re.compile(  # "the answer is 6", "#### 6", "the correct value is 8 - 2 = 6"
    r"(?:answer(?<!wrong answer)(?<!incorrect answer)(?<!naive answer)(?<!other answer)"
    r"|(?:correct|true) (?:value|option|choice|result|number)|should (?:have )?be(?:en)?\b|####)"
    r"(?:\**(?: (?:is|equals|(?:should|must) be)\b(?: (?:therefore|thus|then|now|actually))?|:)"
    r"|(?<=be)|(?<=been)|(?<=####))[:\s*]{0,9}"
    r"(?:(?:[^=.\n]|\.\d){1,40}=)?"
    rf"{SIGNS}(?:({NUMBER}){_NUMBER_END}|\(?([a-j])\)?[*$]{{0,3}}(?=[.\n]|\Z))",
)
_AFFIRMED = re.compile(  # "2 + 4 = 6. Yes", "gives 6 instead"
    rf"={SIGNS}({NUMBER}){SIGNS}[.,!;:]?\s?(?:yes\b|correct\b|[✓✔✅])"
    rf"|\b(?:is|gives?|get|so) {SIGNS}({NUMBER}){SIGNS}instead\b(?! of)"
)
_CHOSEN = re.compile(  # "Therefore C", "I think (B) is right", a letter on a line of its own
    r"(?:\b(?:therefore|thus|hence|so|but|choose|pick|select|go with|making it|it is|it's|i mean"
    r"|actually|final|think|believe|guess|say|that|maybe|perhaps|no|rather)[,:]?(?=[\s*$(])|[.\n])[\s*$]{0,9}"
    r"(?:(?:the )?(?:(?:right|correct|better|best|final) )?(?:option|choice|answer)(?: is)? )?"
    r"[*$]{0,2}\(?\b([a-hj])\)?[*$]{0,2}(?=[\s.!]*(?:\n|\Z)|[.!;]\s"
    r"| (?:is|seems|looks) (?:(?:also|indeed|much|the) )*(?:right|correct|better|answer)\b)"
)
_FIGURE = re.compile(
    r"\[asy\].*?(?:\[/asy\]|\Z)|```[a-z].*?(?:```|\Z)"
    r"|\\begin\{([bpv]?matrix|array|cases|tikzpicture)\}.*?(?:\\end\{\1\}|\Z)",
    re.DOTALL,
)
_FONT = re.compile(
    r"\\(?:text|math)(?:bf|it|rm|sf|tt)?\{([^{}]*)\}|__(.{1,40}?)__|<([biu])>(.{1,40}?)</\3>"
)
_ASSIGNED = re.compile(r"(?<![\w\\{(+*/^-])([a-z])[\s$*]*=[^.,;\n]*")
_WHERE = re.compile(rf"\b(?:at|for|when|where|with|here|let)[\s$\\(]*{_ASSIGNED.pattern}")
_NAME = re.compile(r"(?<![a-z\\])([a-z])[\s$*]*=[\s$*\\(\[]*\Z", re.IGNORECASE)
_MARKS = re.compile(r"[$,]|\\! ?|\\\$|(?<=\\)[dt](?=frac)")
_SENTENCE = re.compile(r"(?:[^.!?\n]|\.(?=\d)|!(?=\s?[\\=\d]))+")
_HYPOTHESIS = re.compile(
    r"\b(?:if|unless|had (?:we|not|it)|without|suppose|assuming|would|wrong|mistakes?|errors?"
    r"|(?:might|may|could) (?:also )?(?:have|think|expect|guess|say)|part \W?\w)\b"
    r"|\b(?:confidence|certainty|difficulty|level|rating|score|source)\b[^.\n]{0,10}[:=]",
)
# From there on, numbers belong to a check or to an explanation.
_CHECK = re.compile(
    r"(?:check(?<!recheck)(?<!re-check)|verif|confirm|explanation|explained"
    r"|here(?:'s| is) (?:why|how)|(?<!\d )step|proof|reason|alternativ|substitut|plug|test|\nor\n)",
)
_VERIFICATION = re.compile(r"check|verif|confirm|proof|test|\bback\b|original|\nor\n")
_CONCLUSION = re.compile(
    r"[\s$*)\]\\]*"
    r"(?:therefore|thus|hence|so|consequently|as a result|in (?:conclusion|summary)|but|however)\b"
)
_DENIED = re.compile(rf"\bnot {SIGNS}({NUMBER}){_NUMBER_END}")
_MATCHED = re.compile(r"\b(?:match(?:es)?|agrees?|consistent|as (?:given|stated|we can see))\b")
_DIGITS = re.compile(r"-?\d[\d,]*(?:\.\d+)?")
_REDO = re.compile(
    r"\b(?:let(?:'s| me| us)|i'll|i will) (?:\w+ )?"
    r"(?:re-?(?:check|comput|calculat|count|do\b|doing|consider|think|evaluat|examin|view\b)\w*"
    r"|tr(?:y|ying) again|start(?:ing)? over)"
)
_WORDED = (  # not "one", a pronoun
    rf"(?:{'|'.join(TENS)})(?:[- ](?:{'|'.join(COUNTS[1:10])}))?|{'|'.join(COUNTS[2:])}"
)
_VALUE = re.compile(  # the 6 of 8 - 2 = 6, the 7 of "6 rows of 7"
    rf"(?<![\w.,^{{\\-])(?:({NUMBER}(?:\\?%)?)(?!(?:st|nd|rd|th|[b-z])\b|\\?%|-[a-z])(?:(?<=%)|{_NUMBER_END})"
    rf"|\b({_WORDED})\b(?!-| (?:hundred|thousand|more|less|fewer|times)))"
    r"(?!\s?[<>≤≥]| (?:by|x|and) \d| [a-z]+s of \d| (?:is|was)(?:n't| not)\b"
    r"| (?:steps?|conditions?|cases|equations?|digits?|divisors|decimal|significant)\b"
    r"|(?<=%) (?:of|sure|certain|confident)\b)"
)
_FORMULA = re.compile(  # with a number
    r"\$[^$\d]*\d[^$]*\$|\\\(.{1,200}?\\\)|[(\[][^()\[\]$\n]*\d[^()\[\]$\n]*[)\]]|[^\s$]*\d[^\s$]*"
)
_NUMERIC = re.compile(r"[-+.\d\s]|\\cdot")
_ORDERED = re.compile(r"[(\[,]")  # its order counts
_OPERAND = re.compile(  # what stands before a number that is no result
    rf"(?:(?:[\d)}}\]]|(?<![a-z])[a-z])\s?[-+*/×·÷^]|(?<![-=])>|[<≤≥≠±]"
    r"|\\(?:cdot|times|div|pm|mp|leq?|geq?|neq?|lt|gt)(?![a-z]))[\s$\\({]*\Z|\d\s?\Z"
    r"|(?:n't|\b(?:than|by|between|from|per|times|over|under|below|above|beyond|exceeds?|within"
    r"|during|after|before|until|not|the|these|those|all|both|each|every|another|other"
    r"|theorem|equation|example|problem|page|section|steps?|lemma|figure|part|to choose|p?mod"
    r"|(?<!result )(?<!results )(?<!resulting )in"
    r"|(?:\w*[a-z]s|\d|out|instead|product|multiple|factor|divisor|power|root|half|third|quarter"
    r"|each|all|group|set|pair|one) of))[\s$\\(*]*\Z"
    rf"|\b(?:between|of|from|by|multiply|add|subtract|divide|multiplying|adding)\s{SIGNS}"
    rf"(?:(?:{NUMBER},?\s)+(?:(?:and|or)\s)?|{NUMBER}[^.;,\d]{{0,20}} (?:and|to|by|with|from)\s)"
    r"[$\\(]*\Z",
)
_LEADS = (  # to a result
    r"so|thus|hence|therefore|also|too|plus|making|giving|leaving|bringing|yielding|resulting"
    r"|totall?ing|which (?:makes|gives|leaves|brings)|becomes?|total|drops?|rises?"
)
_OWN = re.compile(  # the end of the answer's sentence, "5 daps are equal to 7 yaps"
    r"(?:[ $*)}\]]|\\[ )\],;:!]|\\text\{)*"
    r"(?!(?:and|minus|less|then|or|vs|versus|should|must|is|are|was|were|to|makes?|gives?|equals?)\b)"
    rf"(?=[a-z])(?:(?!\b(?:{_LEADS}|and(?! \d)|more|extra)\b)[^.,;:!?\n(→]|\.(?=\d)"
    r"|\(which[^()]*\)|(?<=\d),(?= (?:or |and )?\d))*"
)
_LEADING = re.compile(rf"\b(?:{_LEADS})\b|[:;]\s*\d")
_ASIDE = re.compile(
    r"\A\W*(?:each|every)\b|\bthe other [a-z]+(?:,| is\b| was\b)"
    r"|\b(?:note that|remark|indeed|recall|observe|remember|extraneous|reject(?:ed)?)\b"
)
_CLAUSES = re.compile(  # a reason, a way, "(which sum to 19)"
    r"\A\W*(?:since|because|as|when|after)\b[^,]*,"
    r"|\b(?:because|since)\b.*?(?=,? (?:so|hence|thus|therefore|which)\b|\Z)"
    r"|\b(?:by|using|from) [a-z]+ing\b(?:(?!\b(?:we|you|he|she|it|i|there)\b)[^,;])*"
    r"|\(which\b(?! (?:makes?|gives?|leaves?|brings?)\b)[^()]*\)",
    re.DOTALL,
)
_ITEM = re.compile(r"(?:\A|(?<=\n)|(?<=[.:!]\s))[ \t*#]{0,5}\d[.)](?=\s[*$\\]{0,3}[a-z\d])")


def without_others(after: str, before: str, answer: str) -> str:
    """The text after an answer without figures, fonts, and the values of other variables."""
    after = _FONT.sub(lambda m: m[1] or m[2] or m[4] or "", _FIGURE.sub("", after))
    named = _NAME.search(before) or re.match(r"[\s$]*([A-Za-z])\s*=", answer)
    if not named:
        return after
    name = named[1].lower()
    return _ASSIGNED.sub(lambda m: m[0] if m[1] == name else "", after)


def after_statements(text: str, answer: str) -> str | None:
    """What follows the last statement of the answer; None where a statement differs from it."""
    found = [match for pattern in (_STATED, _AFFIRMED, _CHOSEN) for match in pattern.finditer(text)]
    rest = text
    for stated in sorted(found, key=lambda match: match.start()):
        before = (text, sentence_start(text, stated.start()), stated.start())
        is_same = is_answer(next(filter(None, stated.groups())), answer)
        if is_same:
            rest = text[stated.end() :]
        if is_same is False and not any(x.search(*before) for x in (_HYPOTHESIS, _VERIFICATION)):
            return None
    return rest


def ends_elsewhere(text: str, answer: str) -> bool:
    """Whether the last result after an answer is another one: "Subtracting 2, we get 16"."""
    if any(is_answer(denied[1], answer) for denied in _DENIED.finditer(text)):
        return True
    text = _ITEM.sub("", text)
    check = _CHECK.search(text)
    stop = check.start() if check else len(text)
    own = _OWN.match(text, 0, stop)
    steps = _SENTENCE.findall(text, own.end() if own else 0, stop)
    is_same = _ends_in([*steps, *_checked(text, stop, answer)], answer)
    return _REDO.search(text, 0, stop) is not None if is_same is None else not is_same


def _checked(text: str, start: int, answer: str) -> list[str]:
    """The sentences from there on that are no part of a check: an equation, or of the answer."""
    check = _VERIFICATION.search(text, start)
    stop = check.start() if check else len(text)
    sentences = _SENTENCE.findall(text, stop)
    is_check = "=" in text[stop:]
    if is_check or any(is_answer(x, answer) for x in _DIGITS.findall(text, stop)):
        sentences = list(filter(_CONCLUSION.match, sentences))
    return _SENTENCE.findall(text, start, stop) + sentences


def _ends_in(sentences: list[str], answer: str) -> bool | None:
    """Whether the last result is the answer; None where there is none."""
    is_number = _number(answer) is not None
    pattern, compare = (_VALUE, is_answer) if is_number else (_FORMULA, _is_formula)
    for sentence in reversed(sentences):
        is_aside = _ASIDE.search(sentence) and not _LEADING.search(sentence)
        if is_aside or _HYPOTHESIS.search(sentence) or _is_match(sentence, answer):
            continue
        said = _CLAUSES.sub("", _WHERE.sub("", sentence))
        for value in reversed([*pattern.finditer(said)]):
            if not _OPERAND.search(said, max(0, value.start() - 60), value.start()):
                is_same = compare(value[0], answer)
                if is_same is not None:
                    return is_same
    return None


def _is_match(sentence: str, answer: str) -> bool:
    """Whether a sentence says that the answer fits: "15 + 3 is 18, which matches"."""
    numbers = _DIGITS.findall(sentence) if _MATCHED.search(sentence) else []
    return any(is_answer(number, answer) for number in numbers)


def _is_formula(formula: str, answer: str) -> bool | None:
    r"""Whether a formula is the answer; None where it looks unlike: the slope of 2x+1."""
    sides = [_canonical(side.rstrip(".,;")) for side in formula.split("=")]
    wanted = _canonical(answer.lower().rpartition("=")[2])
    if wanted in sides:
        return True
    is_alike = _NUMERIC.sub("", wanted) == _NUMERIC.sub("", sides[-1]) != ""
    is_reordered = not _ORDERED.search(wanted) and sorted(wanted) == sorted(sides[-1])
    return False if is_alike and not is_reordered else None


@lru_cache(maxsize=1024)
def _canonical(text: str) -> str:
    return normalise(text) or ""


def sentence_start(text: str, at: int) -> int:
    return max(text.rfind(mark, 0, at) for mark in ".!?\n") + 1


def is_answer(stated: str, answer: str) -> bool | None:
    """Whether a number, or the letter of a choice, is the answer; None where that is not sure."""
    if answer == stated:
        return True
    if len(stated) == 1 and stated.isalpha():
        choice = normalise(answer) or ""
        return same_choice(stated.upper(), choice) if same_choice(choice, choice) else None
    x, y = _number(answer), _number(_MARKS.sub("", stated))
    if x is None or y is None:
        return None
    place = exact.last_place(stated) if "." in stated else None
    if "%" in stated or "%" in answer or "percent" in answer:  # 0.5 is 50%
        return x in (y, 100 * y, y / 100)
    return abs(x - y) < (place or 0) or x == y


@lru_cache(maxsize=1024)
def _number(text: str) -> Fraction | None:
    """The value of a number, perhaps with a name and a unit."""
    if (plain := exact.value(text)) is not None:
        return plain
    value, _ = units.split(read(normalise(text) or "").text)
    return exact.value(value)
