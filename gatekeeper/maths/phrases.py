r"""Which symbols a phrase or a notation stands for, in a canonical spelling.

"3 (mod 5)" is 3\pmod{5}, and "the number of ways is 5" is 5.
"""

from __future__ import annotations

import re
from collections.abc import Callable

from gatekeeper.maths.vocabulary import NEGATIONS, TENTATIVE, WORDS, words_of

__all__ = ["Replacement", "arrangements", "in_symbols"]

Replacement = str | Callable[[re.Match[str]], str]

# The words after which a number is not the answer: "the value is not", "it is more than".
_NO_NEGATION = rf"(?![^}}]*\b(?:{NEGATIONS}|{TENTATIVE})\b)"
_NO_HYPOTHESIS = r"(?![^}]*\b(?:first|initially|originally|almost|nearly|would|could|might|may)\b)"
_NO_NEGATED_LABEL = rf"(?![^}}:]*\b(?:{NEGATIONS}|{TENTATIVE})\b[^}}:]*:)"

_ARGUMENT = (  # of a function
    r"\((?:[^()]|\([^()]*\))*\)|(?:\\frac\{[^{}]*\}\{[^{}]*\}|\d+(?:\.\d+)?|\\[a-z]+\s?|/"
    r"|\^\{\\circ\}|[a-z])+"
)

_QUADRANTS = {"1": "I", "2": "II", "3": "III", "4": "IV"} | dict(
    zip(words_of("first second third fourth"), words_of("I II III IV"), strict=True)
)
_QUANTITY = r"\d+(?:\.\d+)?\\text\{[a-z ]+\}"
_VERB = (
    r"has|have|had|makes?|made|gets?|got|needs?|takes?|took|costs?|earn(?:s|ed)?|pays?|paid"
    r"|spends?|spent|sells?|sold|buys?|bought|saves?d?|walk(?:s|ed)?|travel(?:s|l?ed)?|runs?|ran"
    r"|drives?|drove|eats?|ate|reads?|uses?d?|finds?|owes?d?|weigh(?:s|ed)?|contains?|holds?"
    r"|receives?d?|collect(?:s|ed)?|works?|worked|obtain|loses?|lost|wins?|won|were|was|gives?|gave"
)

# A literal part, without which the pattern is not tried; the pattern; its replacement.
_REWRITES: tuple[tuple[str, str, Replacement], ...] = (
    (r"\text{", r"\\text\{(?:minus|negative)\}(?=[\d\\])", "-"),
    (  # 1010 (base 2), 1010_{base two}
        "base",
        r"(?<=[0-9A-Za-z)}])(?:_\{|\()?\\text\{(?:in )?base ?([a-z]*)\}(\d*)[})]?",
        lambda m: f"_{{{WORDS.get(m[1], m[1]) or m[2]}}}",
    ),
    (  # sin^{-1} x
        "^{-1}",
        r"\\(sin|cos|tan)\^\{-1\}(?=([A-Za-z])?)",
        lambda m: rf"\arc{m[1]}{' ' if m[2] else ''}",
    ),
    ("(=", r"\A([^()=]+)\(=([^()=]+)\)\Z", r"\1=\2"),  # 2+40 (=42)
    (  # option (C), 12
        "),",
        r"\A(?:\\text\{(?:option|choice)\})?(\([A-J]\)),(?=-?(?:\d|\\(?:frac|sqrt|pi))[^,]*\Z)",
        r"\1",
    ),
    ("C(", r"(?<![A-Za-z\\])C\((\d+|n),(\d+|[kr])\)", r"\\binom{\1}{\2}"),
    ("C_", r"(?<![A-Za-z\\])C_\{(\d+|n)\}\^\{(\d+|[kr])\}", r"\\binom{\1}{\2}"),
    ("C^", r"(?<![A-Za-z\\])C\^\{(\d+|[kr])\}_\{(\d+|n)\}", r"\\binom{\2}{\1}"),
    ("C", r"(?<![\w}.])(\d+)C(\d+)(?![\w(])", r"\\binom{\1}{\2}"),
    (  # arrangements of 2 of 5
        "_{",
        r"(?<![\w})])(?:[_^]\{(\d{1,3})\}P_\{(\d{1,3})\}|[AP]_\{(\d{1,3})\}\^\{(\d{1,3})\})",
        lambda m: arrangements(m[1] or m[3], m[2] or m[4]) or m[0],
    ),
    # 5 over 2
    ("}C_", r"(?:(?<![\w})])|(?<=\\cdot))[_^]\{(\d+|n)\}C_\{(\d+|[kr])\}", r"\\binom{\1}{\2}"),
    (
        "/",
        r"(?<=[\d}])(?:\\text\{([ckm]m|ft|mi)\}/(s|h|hr|min)|m/s)(?![A-Za-z])",
        lambda m: rf"\text{{{m[1] or 'm'}/{m[2] or 's'}}}",
    ),
    # 30^o, and 22 degrees 30 minutes
    ("^{", r"(?<=\d)\^\{(?:o|\\text\{(?:o|deg)\})\}(?![A-Za-z(])", r"^{\\circ}"),
    (
        "'",
        r"(?<![\d.])(\d{1,9})\^\{\\circ\}(\d\d?)'(?:(\d\d?)'')?\Z",
        lambda m: (
            rf"\frac{{{int(m[1]) * 3600 + int(m[2]) * 60 + int(m[3] or 0)}}}{{3600}}^{{\circ}}"
        ),
    ),
    ("'", r"\A(\d{1,9})'(\d{1,2}(?:\.\d+)?)(?:'')?\Z", r"\1\\text{ft}\2\\text{in}"),  # 5'6"
    (  # 2 cis 60 degrees
        r"\cis",
        rf"\\cis\s?(?:\{{({_ARGUMENT})\}}|\(({_ARGUMENT})\)|({_ARGUMENT}))",
        lambda m: "(\\cos({0})+i\\sin({0}))".format(m[1] or m[2] or m[3]),
    ),
    ("<", r"\A<([^<>=]*,[^<>=]*)>\Z", r"\\langle \1\\rangle"),
    (  # 10 \mu\text{m}
        r"\mu",
        r"(?<=[\d})])\\mu(?:\\text\{([a-z]+)\}| ([msgl]))\Z",
        lambda m: rf"\text{{micro{m[1] or m[2]}}}",
    ),
    (
        r"\Omega",
        r"(?<=[\d})])(?:\\text\{(k|mega)\}|([kM]))?\\Omega\Z",
        lambda m: rf"\text{{{'mega' if m[2] == 'M' else m[1] or m[2] or ''}ohm}}",
    ),
    (r"\$", r"\A(?:US|\\text\{us\})(?=\\\$)", ""),  # US$5
    ("Rs", r"\ARs\.?\s?(?=\d)", r"\\text{rs}"),
    (",", r"(?<=[)\]])(?:U|\\text\{u\})(?=[(\[])", r"\\cup"),
    (r"\mathbb", r"(?<=\\mathbb\{[CNQRZ]\})-(?=\\\{)", r"\\setminus"),  # R - {0}
    (r"\mapsto", r"\A(?:([a-z]):)?([a-z])\\mapsto\s?", lambda m: f"{m[1] or 'f'}({m[2]})="),
    ("C", r"(?<=\+C),\(?C\\in\s?\\mathbb\{R\}\)?\Z", ""),
    (  # f(x)=x for all x
        "for",
        r"(?<=[\w)}]),?(?:\\text\{for (?:all|every|any)(?: real)?\}|\\forall\s?)"
        r"[a-z](?:\\in\s?\\mathbb\{R\})?\Z",
        "",
    ),
    (  # about 5, the answer is 5
        "",
        r"\A(?:\\approx|\\sim|=|\\Rightarrow|\\text\{(?:about|approximately|exactly|only|just"
        r"|probably|(?:most )?likely|roughly|around|precisely|simply|indeed|clearly|definitely"
        r"|equal to|so|thus|hence"
        r"|therefore|we (?:get|have|find|obtain)|a total of|in|(?:in )?(?:the )?year"
        r"|the number)\},?)+\s?(?=[\d\\-])",
        "",
    ),
    (  # the point (1, 2)
        r"\text{",
        r"\A\\text\{(?:at )?(?:the )?(?:points?|vectors?|intervals?|(?:ordered )?pairs?|sets?"
        r"|matrix|coordinates?)\}(?=[(\[]|\\(?:\{|langle|begin))",
        "",
    ),
    (  # the answer is (1, 2), the number of ways is 5
        r"\text{",
        r"\A\\text\{(?:(?:the )?(?:final |correct )?(?:answer|result)(?: is)?"
        rf"|{_NO_NEGATION}[a-z' -]* (?:is|are|equals))\}}[:=]?\s?(?=.)",
        "",
    ),
    (  # she has 18 apples
        r"\text{",
        rf"\A\\text\{{{_NO_NEGATION}{_NO_HYPOTHESIS}[a-z][a-z' -]* (?:{_VERB})"
        r"(?: (?:a total of|exactly|about))?\}"
        r"(?=-?(?:\\\$)?(?:\d|\\frac))",
        "",
    ),
    # domain: all reals
    (r"\text{", rf"\A\\text\{{{_NO_NEGATED_LABEL}[a-z][a-z ]+: (?=[^}}:]+\}}\Z)", r"\\text{"),
    # the answer is east
    (r"\text{", r"\A\\text\{(?:the )?(?:final |correct )?answer(?: is|:)+ (?=[^}])", r"\\text{"),
    (r"\text{", r"\A(?:[A-Za-z])?\\text\{(?:is|equals)\}(?=[\d\\-])", ""),
    # all n > 3
    (r"\text{", r"\A\\text\{(?:for )?(?:all|any|every)(?: real)?\}(?=[a-z](?:[<>]|\\[lg]eq))", ""),
    (  # 3 (mod 5)
        "mod",
        r"\(?(?:\\[pb]?mod|\\text\{\(?mod(?:ulo)?\}|(?<![a-zA-Z])mod)\s?[{(]?(\d{1,9})[})]{0,2}\Z",
        r"\\pmod{\1}",
    ),
    (  # quadrant 3, the third quadrant
        "quadrant",
        r"\A\\text\{(?:in )?(?:the )?(?:quadrant (i{1,3}|iv)\}|quadrant\}(I{1,3}|IV|[1-4])"
        rf"|({'|'.join(_QUADRANTS)}) quadrant\}})\Z",
        lambda m: (m[1] or _QUADRANTS.get(m[3] or m[2]) or m[2]).upper(),
    ),
    (  # 2\sqrt{3} or about 3.46
        "or",
        r"(?:\\lor\s?\\text\{|\\text\{or )(?:about|approximately|roughly)\}(?=\d)",
        r"\\approx ",
    ),
    ("}(", rf"\A({_QUANTITY})\(({_QUANTITY})\)\Z", r"\1\\lor \2"),  # 150 minutes (2.5 hours)
    ("(\\text{", r"\A\(\\text\{([a-j])\}\)", r"\\text{(\1)}"),  # (B), a choice
    ("(", r"\A(-?\d[\d.]*)(\([A-E]\))\Z", r"\2\1"),  # 18 (B), a choice after its value
    ("h", r"\A(\d+)h(\d+)(?:\\text\{min\}|min|m)\Z", r"\1\\text{h}\2\\text{min}"),  # 2h 30min
    ("choose", r"\A(\d+|n)\\text\{choose\}(\d+|[kr])\Z", r"\\binom{\1}{\2}"),
    ("to", r"(?<=\d)(?:\\text\{to\}|to)(?=\d+\Z)", ":"),  # 2 to 3
    (  # 5 R 2
        "",
        r"\A(\d+)(?:[Rr]|\\text\{(?:r|(?:with )?(?:a )?remainder(?: of)?)\})(\d+)\Z",
        r"\1\\text{remainder}\2",
    ),
    (r"(\text{", r"(?<=[\w})])\(\\text\{([a-z ]+)\}\)\Z", r"\\text{(\1)}"),
    ("x", r"(\A\d+)x(?=\d+\Z)", r"\1\\cdot"),  # 3 x 4
    (r"\text{x}", r"(?<=\d)\\text\{x\}(?=\d)", r"\\cdot"),
    (  # the cube root of 2
        "root of",
        r"\\text\{(?:the )?(square|cube) root of\}(\d+)\Z",
        lambda m: rf"\sqrt{'' if m[1] == 'square' else '[3]'}{{{m[2]}}}",
    ),
    ("halves", r"\A(\d+)\\text\{halves\}\Z", r"\\frac{\1}{2}"),
    # 0.3 repeating
    ("r", r"(?<=\d\.)(\d)\\text\{\(?(?:repeating|recurring)\)?\}\Z", r"\\overline{\1}"),
    ("not exist", r"\A\\text\{(?:the )?(?:limit )?does not exist\}\Z", r"\\text{dne}"),
    (
        "real number",
        r"\A(?:[a-z]\\in\s?)?\\text\{(?:the )?(?:set of )?all real numbers"
        r"(?:,)? (?:except|but|other than)(?: for)?\}(-?[\d][^,A-Za-z]*)\Z",
        r"\\mathbb{R}\\setminus\\{\1\\}",
    ),
    (  # 17th, but not 2th
        "",
        r"\A(\d*(?:(?<!1)(?:1(?=\^?\{?st)|2(?=\^?\{?nd)|3(?=\^?\{?rd))"
        r"|(?:1\d|[04-9])(?=\^?\{?th)))(?:\^\{)?[snrt][tdh]\}?\Z",
        r"\1\\text{th}",
    ),
)
_RULES = [(literal, re.compile(pattern), symbols) for literal, pattern, symbols in _REWRITES]


def arrangements(n: str, k: str) -> str | None:
    """n!/(n-k)! in digits; None if k is above n."""
    rest = int(n) - int(k)
    return rf"\frac{{{n}!}}{{{rest}!}}" if rest >= 0 else None


def in_symbols(text: str) -> str:
    """The text with each phrase in its usual symbols."""
    for literal, pattern, replacement in _RULES:
        if literal in text:
            text = pattern.sub(replacement, text)
    return text
