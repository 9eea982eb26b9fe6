"""Phrases and notations that stand for other symbols, in a canonical spelling."""

from __future__ import annotations

import re
from collections.abc import Callable

from gatekeeper.maths.vocabulary import WORDS

__all__ = ["in_symbols"]

Replacement = str | Callable[[re.Match[str]], str]

_REWRITES: tuple[tuple[re.Pattern[str], Replacement], ...] = (
    (re.compile(r"\\text\{(?:minus|negative)\}(?=[\d\\])"), "-"),
    (  # 1010 (base 2), 1010_{base two}
        re.compile(r"(?<=[0-9A-Za-z)}])(?:_\{|\()?\\text\{(?:in )?base ?([a-z]*)\}(\d*)[})]?"),
        lambda m: f"_{{{WORDS.get(m[1], m[1]) or m[2]}}}",
    ),
    (re.compile(r"(?<![A-Za-z\\])C\((\d+),(\d+)\)"), r"\\binom{\1}{\2}"),
    (
        re.compile(r"(?:(?<![\w})])|(?<=\\cdot))[_^]\{(\d+)\}C_\{(\d+)\}"),  # 5 over 2
        r"\\binom{\1}{\2}",
    ),
    (
        re.compile(r"(?<=[\d}])(?:\\text\{([ckm]m|ft|mi)\}/(s|h|hr|min)|m/s)(?![A-Za-z])"),
        lambda m: rf"\text{{{m[1] or 'm'}/{m[2] or 's'}}}",
    ),
    (  # 30^o, and 22 degrees 30 minutes
        re.compile(r"(?<=\d)\^\{(?:o|\\text\{(?:o|deg)\})\}(?![A-Za-z(])"),
        r"^{\\circ}",
    ),
    (
        re.compile(r"(?<![\d.])(\d{1,9})\^\{\\circ\}(\d\d?)'(?:(\d\d?)'')?\Z"),
        lambda m: (
            rf"\frac{{{int(m[1]) * 3600 + int(m[2]) * 60 + int(m[3] or 0)}}}{{3600}}^{{\circ}}"
        ),
    ),
    (  # 10 \mu\text{m}
        re.compile(r"(?<=[\d})])\\mu(?:\\text\{([a-z]+)\}| ([msgl]))\Z"),
        lambda m: rf"\text{{micro{m[1] or m[2]}}}",
    ),
    (
        re.compile(r"(?<=[\d})])(?:\\text\{(k|mega)\}|([kM]))?\\Omega\Z"),
        lambda m: rf"\text{{{'mega' if m[2] == 'M' else m[1] or m[2] or ''}ohm}}",
    ),
    (re.compile(r"\A(?:US|\\text\{us\})(?=\\\$)|\\text\{(?=\\text\{pound)"), ""),  # US$5
    (re.compile(r"\ARs\.?\s?(?=\d)"), r"\\text{rs}"),
    (re.compile(r"(?<=\\mathbb\{[CNQRZ]\})-(?=\\\{)"), r"\\setminus"),  # R - {0}
    (  # f(x)=x for all x
        re.compile(
            r"(?<=[\w)}]),?(?:\\text\{for (?:all|every|any)(?: real)?\}|\\forall\s?)"
            r"[a-z](?:\\in\s?\\mathbb\{R\})?\Z"
        ),
        "",
    ),
    (  # about 5, the answer is 5
        re.compile(
            r"\A(?:\\approx|\\sim|=|\\text\{(?:about|approximately"
            r"|(?:the )?(?:final )?answer(?: is)?)\})+\s?(?=[\d\\-])"
        ),
        "",
    ),
    (  # 17th, but not 2th
        re.compile(
            r"\A(\d*(?:(?<!1)(?:1(?=st)|2(?=nd)|3(?=rd))|(?:1\d|[04-9])(?=th)))[snrt][tdh]\Z"
        ),
        r"\1\\text{th}",
    ),
)


def in_symbols(text: str) -> str:
    """The text with each phrase in its usual symbols."""
    for pattern, replacement in _REWRITES:
        text = pattern.sub(replacement, text)
    return text
