r"""Other ways in which one answer may be read.

2i+3j may be the vector (2, 3), and "3,5" the decimal 3.5.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import replace
from fractions import Fraction

from gatekeeper.maths import exact
from gatekeeper.maths.phrases import Replacement
from gatekeeper.maths.structure import Kind, Node, split
from gatekeeper.maths.vocabulary import COUNTS, NEGATIONS

__all__ = [
    "RELATION",
    "are_intervals",
    "assignments",
    "components",
    "conjunction",
    "coordinates",
    "in_order",
    "is_condition",
    "others",
    "rational",
    "reads_as",
    "says_twice",
    "unnumbered",
]

_AXIS = re.compile(r"(.*?)(?<![A-Za-z\\])([ijk])")
_OUT_OF = r"(?:\\text\{(?:out )?of\}|\\text\{out\}of|outof|of)"
_NUMBERED = re.compile(r"([xz])_\{\d\}")  # roots; but a_1, a_2 have an order
# A literal part, without which the pattern is not tried; the pattern; its replacement.
_OTHERS: tuple[tuple[str, str, Replacement], ...] = (
    (")/(", r"(\d+)\((\d+)\)/\((\d+)\)", r"\1\\frac{\2}{\3}"),  # a mixed number
    ("", r"(?<=\d)[kK]\Z", r"\\cdot1000"),
    ("", r"(?<=\d)(?:M|\\text\{mega\})\Z", r"\\cdot10^{6}"),
    ("e-", r"(-?\d+)e(-\d{1,2})\Z", r"\1\\cdot10^{\2}"),
    (":", r"\A(\d+):(\d\d):(\d\d)\Z", r"\1\\text{h}\2\\text{min}\3\\text{s}"),
    (":", r"\A(\d+):(\d\d)\Z", r"\1\\text{h}\2\\text{min}"),
    (":", r"\A(\d+):(\d\d)\Z", r"\1\\text{min}\2\\text{s}"),
    ("of", rf"\A(\d+){_OUT_OF}(\d+)\Z", r"\\frac{\1}{\2}"),
    ("of", rf"\A(\d+){_OUT_OF}\d+\Z", r"\1"),
    ("in", r"\A(\d+)(?:\\text\{in\}|in)(\d+)\Z", r"\\frac{\1}{\2}"),
    (  # 3 packs of 12, three packs of 12
        "of",
        rf"\A(?:(\d+)\\text\{{|\\text\{{({'|'.join(COUNTS)}) )[a-z ]+(?: of\}}|\}}of)(?=\d)",
        lambda m: rf"{m[1] or COUNTS.index(m[2])}\cdot ",
    ),
    # 1.234,56
    (",", r"\A(\d{1,3}(?:\.\d{3})+),(\d+)\Z", lambda m: f"{m[1].replace('.', '')}.{m[2]}"),
    ("j", r"(?<![A-Za-z\\])j(?![A-Za-z])", "i"),  # of a complex number
    (  # a decrease of 20 per cent
        "%",
        r"\A(\d[\d.]*\\%)\\text\{[a-z ]*\b(?:decrease|reduction|drop|loss|less|discount)\}\Z",
        r"-\1",
    ),
    (r"\mp", r"\\mp(?![a-z])", r"\\pm"),  # the same values, in another order
    (r"\log", r"\\log(?![a-z_])", r"\\ln"),
    (")", r"\A(.+?)\(([a-z](?:[<>]|\\(?:[lg]eq|neq|in)(?![a-z])).*)\)\Z", r"\1,\2"),  # 2n+1 (n > 0)
    (  # 1/x for x > 0
        r"\text{",
        r"\A([^&]+?)\\text\{,? ?(?:for|where|when|if|with)(?: all)?\}"
        r"[a-z](?:[=<>]|\\(?:[lg]eq|neq|in)(?![a-z])).*\Z",
        r"\1",
    ),
    ("{all ", r"\A\\text\{all (?:[a-z]+ )?(?:integers|numbers)\}(?=[a-z](?:[<>]|\\[lg]eq))", ""),
    ("}(", r"\A([^()]+\})\([^()]+\)\Z", r"\1"),  # 150 minutes (2.5 hours)
    ("(\\text{", r"\A([^()]+)\(\\text\{[^()]+\)\Z", r"\1"),  # 2 (multiplicity 3)
    (  # x is not 1, and not 2
        r"\neq",
        r"\A([a-z])\\neq\s?([^,A-Za-z]+)(?:,(?:\1\\neq\s?)?([^,A-Za-z]+))?\Z",
        lambda m: rf"\mathbb{{R}}\setminus\{{{m[2]}{',' + m[3] if m[3] else ''}\}}",
    ),
    # 5 (since 2+3=5)
    (r"\text{", r"\A([^()]+?)\\text\{[,(]? ?(?:since|because|as|from|using|by)\b.*\Z", r"\1"),
    ("{no", r"\A\\text\{no(?:ne|[a-z ]* solutions?)\}\Z", "0"),
    ("{infinitely", r"\A\\text\{infinitely many(?: solutions)?\}\Z", r"\\infty"),
    (",", r"\A(\d{1,2}),(\d\d),(\d{3})\Z", r"\1\2\3"),  # 12 lakh
)
_RULES = [(literal, re.compile(pattern), reading) for literal, pattern, reading in _OTHERS]
_REPEATED = re.compile(r"([^()]+)\(([^()]+)\)(?:\\text\{[^{}]*\})?")
_LED_IN = re.compile(  # surely 5, but not "at least 5"
    rf"\A\\text\{{(?![^}}]*\b(?:{NEGATIONS}|under|over|below|above|root|square|cube|log|power"
    r"|inverse|opposite|negative|reciprocal|multiple|factor|divisible|between|either|to|and|other"
    r"|different|sum|product|from)\b)[a-z ]+\}(?=[\d\\-])"
)
_MEMBER = re.compile(r"[a-z]\\in\s?\\mathbb\{[NZ]\}.{0,9}")
RELATION = re.compile(r"[<>]|\\[lg]eq(?![a-z])")


def says_twice(answer: str) -> tuple[str, ...]:
    """The two answers of "5 (five) jars", of which the second may explain the first."""
    match = _REPEATED.fullmatch(answer)
    return match.groups() if match else ()


def rational(node: Node) -> Fraction | None:
    """The value of a number, None for other nodes."""
    return exact.value(node.text) if node.kind is Kind.SCALAR else None


def are_intervals(nodes: tuple[Node, ...]) -> bool:
    """Whether all have two parts in the brackets of an interval."""
    pairs = all(node.kind is Kind.TUPLE and len(node.parts) == 2 for node in nodes)
    return bool(nodes) and pairs and all(node.brackets != "<>" for node in nodes)


def conjunction(nodes: tuple[Node, ...]) -> Node | None:
    """x > 1, x < 2 as (1, 2)."""
    ranges = [node for node in nodes if node.kind is Kind.TUPLE and is_condition(node)]
    if len(nodes) != 2 or len(ranges) != 2 or not nodes[0].name or nodes[0].name != nodes[1].name:
        return None
    bounded = {node.parts[1].text == r"\infty": node for node in ranges}
    if len(bounded) != 2:
        return None
    low, high = bounded[True], bounded[False]
    if high.parts[0].text != r"-\infty":
        return None
    parts, brackets = (low.parts[0], high.parts[1]), low.brackets[0] + high.brackets[1]
    text = f"{brackets[0]}{parts[0].text},{parts[1].text}{brackets[1]}"
    return Node(Kind.TUPLE, text, text, parts, brackets, low.name)


def is_condition(node: Node) -> bool:
    r"""Whether it is x > 2 or x \neq 2."""
    is_range = node.kind is Kind.TUPLE and RELATION.search(node.whole) is not None
    return is_range or r"\neq" in node.whole or _MEMBER.fullmatch(node.whole) is not None


def reads_as(number: Fraction | None, nodes: tuple[Node, ...]) -> bool:
    """Whether two numbers may be this one: 3,5 with a decimal comma, "3 and 1/2"."""
    if number is None or len(nodes) != 2 or not nodes[0].text.isdecimal():
        return False
    whole, part = nodes[0].text, nodes[1].text
    if whole == part and nodes[0].name is None and exact.value(whole) == number:
        return True  # 5,5 beside 5, given twice or 5.5
    if part.isdecimal():
        return exact.value(f"{whole}.{part}") == number
    rest = rational(nodes[1])
    return rest is not None and 0 < rest < 1 and int(whole) + rest == number


def others(gold: str, answer: str) -> Iterator[tuple[str, str]]:
    """Both answers as somebody else may read them; empty where there is one reading."""
    if (
        r"\text" in answer
        and not gold.startswith(r"\text")
        and (number := _LED_IN.sub("", answer)) != answer
    ):
        yield gold, number
    both = f"{gold} {answer}"
    for literal, pattern, replacement in _RULES:
        if literal not in both:
            continue
        x, y = pattern.sub(replacement, gold), pattern.sub(replacement, answer)
        if x != gold:
            yield x, answer
        if y != answer:
            yield gold, y
        if x != gold and y != answer:
            yield x, y


def components(node: Node, other: Node) -> Node:
    """2i-3j as (2, -3) beside a vector; any other node as it is."""
    if node.kind is not Kind.SCALAR:
        return node
    signed = re.sub(r"([{(])\+-", r"\1-", node.text.replace("-", "+-")).removeprefix("+")
    values: dict[str, str] = {}
    for term in split(signed, frozenset("+")):
        axis = _AXIS.fullmatch(term)
        if not axis or axis[2] in values:
            return node
        values[axis[2]] = f"{axis[1]}1" if axis[1] in ("", "-") else axis[1].rstrip()
    size = len(other.parts)
    if len(values) < 2 or size not in (2, 3) or (size == 2 and "k" in values):
        return node
    parts = tuple(_scalar(values.get(axis, "0")) for axis in "ijk"[:size])
    return Node(Kind.TUPLE, node.text, node.whole, parts, "()", node.name)


def _scalar(text: str) -> Node:
    return Node(Kind.SCALAR, text, text)


def unnumbered(nodes: tuple[Node, ...]) -> tuple[Node, ...]:
    """x_1=2, x_2=-2 as 2, -2; other nodes as they are."""
    names = [_NUMBERED.fullmatch(node.name or "") for node in nodes]
    if not all(names) or len({name[1] for name in names if name}) != 1:
        return nodes
    return tuple(replace(node, name=None, whole=node.text) for node in nodes)


def coordinates(node: Node) -> tuple[Node, ...]:
    """(x,y)=(1,2) as x=1, y=2; empty for other nodes."""
    names = node.name[1:-1].split(",") if node.name and node.name[0] == "(" else []
    if node.kind is not Kind.TUPLE or len(names) != len(node.parts):
        return ()
    pairs = zip(names, node.parts, strict=True)
    return tuple(replace(part, name=name, whole=f"{name}={part.whole}") for name, part in pairs)


def in_order(nodes: tuple[Node, ...]) -> tuple[Node, ...]:
    """y=2, x=1 in the order of a point (x, y)."""
    if not assignments(nodes) or any(len(node.name or "") > 1 for node in nodes):
        return nodes
    return tuple(sorted(nodes, key=lambda node: node.name or ""))


def assignments(nodes: tuple[Node, ...]) -> bool:
    """Whether all are x=..., y=... with different names."""
    names = [node.name for node in nodes]
    return len(names) > 1 and None not in names and len(set(names)) == len(names)
