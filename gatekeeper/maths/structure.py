r"""What a canonical answer is: a list, set, tuple, interval, union, matrix or scalar.

"1, 2" is a list of two scalars, and "x > 2" the interval (2, \infty) named x.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from enum import Enum
from itertools import product

from gatekeeper.maths import units

__all__ = ["Kind", "Node", "read", "split"]


MAX_SIGNS = 4  # of \pm in one value: 16 values


class Kind(Enum):
    """The structure of an answer."""

    SCALAR = "scalar"  # every other answer
    LIST = "list"  # a, b, c: in any order, as the roots of an equation are given
    SET = "set"  # the same in braces
    TUPLE = "tuple"  # in order; with two parts, also an interval or a point
    UNION = "union"  # of intervals, in any order
    MATRIX = "matrix"  # parts are rows: tuples with brackets "&"
    PIECEWISE = "piecewise"  # parts are rows of a value and its condition, in any order


@dataclass(frozen=True, slots=True)
class Node:
    """`text` is the node without its name, `whole` with it: "5" and "x=5"."""

    kind: Kind
    text: str
    whole: str
    parts: tuple[Node, ...] = ()
    brackets: str = ""
    name: str | None = None


_TOKEN = re.compile(r"\\begin\{[a-zA-Z*]*\}|\\end\{[a-zA-Z*]*\}|\\[a-zA-Z]+|\\.|.", re.DOTALL)
_OPEN = {"(", "[", "{", r"\{", r"\langle"}
_CLOSE = {")", "]", "}", r"\}", r"\rangle"}
_SEPARATORS = frozenset((",", ";", r"\lor", r"\\"))
_VARIABLE = r"(?:[A-Za-z]|\\[a-z]+)"
_SYMBOL = rf"{_VARIABLE}(?:_\{{[^{{}}=]*\}})?'?"
_NAME = re.compile(
    rf"({_SYMBOL}|[A-Za-z](?:'{{1,3}}|\^\{{-1\}})?\({_SYMBOL}(?:,{_SYMBOL})*\)"
    rf"|\({_SYMBOL}(?:,{_SYMBOL})*\)|[f-hA-Z]\(-?\d+\)|[A-Z]\^\{{(?:-1|T|n|\d)\}}"
    rf"|P\((?:[A-Z](?:=|<|>|\\[gl]eq\s?)\d+|\\text\{{[^{{}}]*\}})\)"
    rf"|\\frac\{{d[a-z]\}}\{{d[a-z]\}}|m\\angle\s?[A-Z]{{1,3}}|\|[A-Za-z]\||\\(?:sin|cos|tan)\s?{_SYMBOL}|[A-Za-z]'{{2,3}}"
    rf"|\|?[A-Z]{{2,3}}\|?|\\(?:overline|angle)\s?\{{?[A-Z]{{1,3}}\}}?|\\text\{{[^{{}}]*\}}[A-Z]*"
    rf")(?:=|\\in(?![a-z]))"
)
_NAMED_LAST = re.compile(rf"((?:\\(?:frac|sqrt|pi)(?![a-z])|[^=<>A-Za-z\\])+)=({_SYMBOL})")
_MATRIX = re.compile(
    r"(?P<bracket>[(\[])?\\begin\{(?:pmatrix|array)\}(?P<inside>.*)\\end\{(?:pmatrix|array)\}"
    r"(?(bracket)[)\]])",
    re.DOTALL,
)
_POINT = re.compile(  # A(1,2), but not the binomial coefficient C(5,2)
    r"[ABD-Z]\((?:[^A-Za-z,()]|\\[a-z]+)+(?:,(?:[^A-Za-z,()]|\\[a-z]+)+)+\)"
)
_SYSTEM = re.compile(  # with a brace, an array is one too
    r"(\\\{)?\\begin\{(cases|aligned|gathered|(?(1)array))\}((?:(?!\\begin).)*)\\end\{\2\}",
    re.DOTALL,
)
_ALIGNED = re.compile(r"&(?=[=<>]|\\[lg]eq)")
_CONDITION = re.compile(r"(&|\A)\\text\{(?:if|for|when|where)(?:\}\s?| )")
_OTHERWISE = re.compile(r"\\text\{(?:else|elsewhere|in all other cases)\}")
_REAL = (  # x is any real number
    r"(?:\\mathbb\{R\}|[a-z]?\\text\{(?:is |can be )?(?:the )?(?:set of )?(?:all |any )?"
    r"reals?(?: numbers?)?\})"
)
_ALL, _NUMBERS = "(?:the )?(?:set of )?(?:all )?", "real(?:s| numbers)"
_RANGES = [  # of real numbers
    (re.compile(_REAL), r"(-\infty,\infty)"),
    (re.compile(r"\\mathbb\{R\}(?:\^\{\+\}|_\{>0\})"), r"(0,\infty)"),
    (re.compile(r"\\mathbb\{R\}(?:\^\{-\}|_\{<0\})"), r"(-\infty,0)"),
    (re.compile(r"\\mathbb\{R\}_\{\\geq\s?0\}"), r"[0,\infty)"),
    (re.compile(rf"\\text\{{{_ALL}integers\}}"), r"\mathbb{Z}"),
    (re.compile(rf"\\text\{{{_ALL}positive {_NUMBERS}\}}"), r"(0,\infty)"),
    (re.compile(rf"\\text\{{{_ALL}negative {_NUMBERS}\}}"), r"(-\infty,0)"),
    (re.compile(rf"\\text\{{{_ALL}non-?negative {_NUMBERS}\}}"), r"[0,\infty)"),
    (
        re.compile(
            r"\\text\{(?:(?:the )?empty set|none"
            r"|(?:there (?:is|are) )?no (?:real )?solutions?(?: exists?)?)\}"
        ),
        r"\emptyset",
    ),
]
_TRANSPOSED = re.compile(r"[(\[]([^()\[\]&]+,[^()\[\]&]+)[)\]]\^\{(?:T|\\top)\}")  # a column
_OUTWARD = re.compile(  # ]0,1[, [0,1[
    r"(?:\A|(?<=\\cup))([\[\]])([^\[\],;]+[,;][^\[\],;]+)([\[\]])(?=\\cup|\Z)"
)
_LETTER = re.compile(r"(?<![A-Za-z\\])[A-Za-z]")  # of a variable, not of a command
_RELATION = re.compile(r"(<|>|\\leq(?![a-z])|\\geq(?![a-z]))\s?")
_BUILDER = re.compile(rf"({_VARIABLE})(?:\\in\s?\\mathbb\{{R\}})?[|:](.+)", re.DOTALL)
_FLIPPED = {"<": ">", ">": "<", r"\leq": r"\geq", r"\geq": r"\leq"}


def read(text: str) -> Node:
    """The structure of a canonical answer. Linear for each level of nesting, which is bounded."""
    system = _SYSTEM.fullmatch(text)
    if system and not _is_piecewise(system):
        joined = ",".join(_lines(system)).replace("&", "")
        return read(joined.replace(",=", "="))  # a chain of steps
    parts = split(text, _SEPARATORS)
    if r"\mp" in text:
        parts = [_with_plus_first(part) for part in parts]
        text = parts[0] if len(parts) == 1 else text
    if len(parts) == 1 and (r"\pm" not in text or r"\{" in text):
        return _single(text)
    if r"\lor" not in text and units.is_sum(total := "".join(parts)):
        return _single(total)  # 6 hours and 30 minutes
    nodes = tuple(_single(sign) for part in parts for sign in _both_signs(part))
    ranges = all(node.brackets and node.kind is Kind.TUPLE for node in nodes)
    if r"\lor" in text and ranges and len({node.name for node in nodes} - {None}) < 2:
        union = r"\cup".join(node.text for node in nodes)
        return Node(Kind.UNION, union, text, nodes, name=nodes[0].name)
    return Node(Kind.LIST, text, text, nodes)


def _lines(system: re.Match[str]) -> list[str]:
    lines = system[3].removesuffix(r"\\").split(r"\\")
    return [line.strip().rstrip(",. ") for line in lines]


def _is_piecewise(system: re.Match[str]) -> bool:
    """Whether the lines are values with their conditions, as in |x|."""
    return system[2] in ("cases", "array") and "&" in _ALIGNED.sub("", system[3])


def _piecewise(text: str, system: re.Match[str]) -> Node:
    rows = []
    for line in _lines(system):
        row = _OTHERWISE.sub(r"\\text{otherwise}", _CONDITION.sub(_without_if, line))
        cells = (cell.rstrip(", ") for cell in split(row, frozenset("&")))
        rows.append(Node(Kind.TUPLE, row, row, tuple(_single(cell) for cell in cells), "&"))
    return Node(Kind.PIECEWISE, text, text, tuple(rows))


def _without_if(condition: re.Match[str]) -> str:
    return condition[1] + ("" if "}" in condition[0] else r"\text{")


def _both_signs(text: str) -> tuple[str, ...]:
    r"""Each value of a text with \pm; \mp has the other sign of the one \pm beside it."""
    first, *rest = text.split(r"\pm")
    if len(rest) > MAX_SIGNS:
        return (text,)
    values = []
    for signs in product("+-", repeat=len(rest)):
        value = first + "".join(sign + part for sign, part in zip(signs, rest, strict=True))
        values.append(_tidy(value.replace(r"\mp", "-" if "+" in signs else "+")))
    return tuple(values)


def _with_plus_first(text: str) -> str:
    r"""A number with \mp alone has the values of \pm; in a formula their order counts."""
    return text if r"\pm" in text or _LETTER.search(text) else text.replace(r"\mp", r"\pm")


def _tidy(text: str) -> str:
    return re.sub(r"(^|[(\[{=,])\+", r"\1", text.replace("+ ", "+").replace("- ", "-"))


def _single(text: str) -> Node:
    whole = text
    name = None
    match = _NAME.match(text)
    if match and match.end() < len(text):
        name = match[1]
        text = split(text[match.end() :], frozenset("="))[-1]
    elif found := _NAMED_LAST.fullmatch(text):  # 5=x
        text, name = found[1], found[2]
    elif _POINT.fullmatch(text):
        name, text = text[0], text[1:]
    node = _unnamed(text)
    return Node(
        node.kind, node.text, whole, node.parts, node.brackets, node.name if name is None else name
    )


def _unnamed(text: str) -> Node:
    for pattern, interval in _RANGES:
        if pattern.fullmatch(text):
            text = interval
    text = _OUTWARD.sub(lambda m: "(["[m[1] == "["] + m[2] + ")]"[m[3] == "]"], text)
    text = _TRANSPOSED.sub(r"(\1)", text)
    if (system := _SYSTEM.fullmatch(text)) and _is_piecewise(system):
        return _piecewise(text, system)
    matrix = _MATRIX.fullmatch(text)
    if matrix and r"\begin" not in matrix["inside"]:
        return _matrix(text, matrix["inside"].removesuffix(r"\\"))
    union = split(text, frozenset((r"\cup",)))
    if len(union) > 1:
        return Node(Kind.UNION, text, text, tuple(_single(part) for part in union))
    brackets = _brackets(text)
    if brackets == r"\{\}":
        return _set(text)
    if brackets in ("()", "[]", "(]", "[)", "<>"):
        width = 1 if brackets != "<>" else len(r"\langle")
        inside = text[width:-width].strip()
        parts = split(inside, frozenset(",;"))
        if len(parts) > 1:
            nodes = tuple(_single(part) for part in parts)
            rows = brackets == "[]" and all(node.brackets == "[]" for node in nodes)
            if rows and len({len(node.parts) for node in nodes}) == 1:  # [[1,2],[3,4]]
                return Node(Kind.MATRIX, text, text, tuple(replace(n, brackets="&") for n in nodes))
            return Node(Kind.TUPLE, text, text, nodes, brackets)
        if brackets == "()" and len(inside) > 1:
            return _single(inside)
    return _interval(text) or Node(Kind.SCALAR, text, text)


def _set(text: str) -> Node:
    inside = text[2:-2]
    if not inside:
        return Node(Kind.SCALAR, r"\emptyset", text)
    builder = _BUILDER.fullmatch(inside)
    if builder:
        inside_of = read(builder[2])
        return replace(inside_of, name=None) if inside_of.kind is Kind.TUPLE else inside_of
    parts = split(inside, frozenset(",;"))
    nodes = tuple(_single(sign) for part in parts for sign in _both_signs(part))
    return Node(Kind.SET, text, text, nodes)


def _matrix(text: str, inside: str) -> Node:
    rows = tuple(
        Node(Kind.TUPLE, row, row, tuple(_single(cell) for cell in split(row, frozenset("&"))), "&")
        for row in split(inside, frozenset((r"\\",)))
    )
    return Node(Kind.MATRIX, text, text, rows)


def _interval(text: str) -> Node | None:
    """x > 2 as (2, oo) named x; None for a text that is not such an inequality."""
    sides = _RELATION.split(text)
    if len(sides) == 3:
        left, relation, right = sides
        if not re.fullmatch(_SYMBOL, left):
            left, relation, right = right, _FLIPPED[relation], left
        sides = [r"-\infty", "<", left, relation, right]
        if relation in (">", r"\geq"):
            sides = [right, _FLIPPED[relation], left, "<", r"\infty"]
    elif len(sides) == 5 and sides[1] in (">", r"\geq") and sides[3] in (">", r"\geq"):
        sides = [sides[4], _FLIPPED[sides[3]], sides[2], _FLIPPED[sides[1]], sides[0]]
    if len(sides) != 5 or sides[1] not in ("<", r"\leq") or sides[3] not in ("<", r"\leq"):
        return None
    low, _, name, _, high = sides
    bounds = (low, high)
    if not re.fullmatch(_SYMBOL, name) or not all(bounds):
        return None
    if any(name in re.sub(r"\\infty", "", bound) for bound in bounds):
        return None
    brackets = ("(" if sides[1] == "<" else "[") + (")" if sides[3] == "<" else "]")
    parts = tuple(Node(Kind.SCALAR, side, side) for side in (low, high))
    return Node(Kind.TUPLE, f"{brackets[0]}{low},{high}{brackets[1]}", text, parts, brackets, name)


def _brackets(text: str) -> str:
    """The pair of brackets around the whole text, or an empty string."""
    for opening, closing, pair in (
        (r"\{", r"\}", r"\{\}"),
        (r"\langle", r"\rangle", "<>"),
        ("(", ")", "()"),
        ("(", "]", "(]"),
        ("[", ")", "[)"),
        ("[", "]", "[]"),
    ):
        if text.startswith(opening) and text.endswith(closing):
            depth = 0
            tokens = _TOKEN.findall(text)
            for i, token in enumerate(tokens):
                depth += (token in _OPEN) - (token in _CLOSE)
                if depth == 0:
                    return pair if i == len(tokens) - 1 else ""
    return ""


def split(text: str, separators: frozenset[str]) -> list[str]:
    """Split at separators outside all brackets; a missing part makes the text one part."""
    parts = [""]
    start = depth = 0
    for match in _TOKEN.finditer(text):
        token = match[0]
        if token in _OPEN or token.startswith(r"\begin"):
            depth += 1
        elif token in _CLOSE or token.startswith(r"\end"):
            depth -= 1
        elif depth == 0 and token in separators:
            parts[-1] = text[start : match.start()].strip()
            parts.append("")
            start = match.end()
    parts[-1] = text[start:].strip()
    return parts if all(parts) else [text]
