"""Other ways in which one answer may be read: a list as an interval, 2i+3j as a vector."""

from __future__ import annotations

import re
from dataclasses import replace
from fractions import Fraction

from gatekeeper.maths import exact
from gatekeeper.maths.structure import Kind, Node, split

__all__ = [
    "RELATION",
    "are_intervals",
    "assignments",
    "components",
    "conjunction",
    "coordinates",
    "in_order",
    "is_condition",
    "rational",
    "reads_as",
    "unnumbered",
]

_AXIS = re.compile(r"(.*?)(?<![A-Za-z\\])([ijk])")
_NUMBERED = re.compile(r"([xz])_\{\d\}")  # roots; but a_1, a_2 have an order
RELATION = re.compile(r"[<>]|\\[lg]eq(?![a-z])")


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
    return is_range or r"\neq" in node.whole


def reads_as(number: Fraction | None, nodes: tuple[Node, ...]) -> bool:
    """Whether two numbers may be this one: 3,5 with a decimal comma, "3 and 1/2"."""
    if number is None or len(nodes) != 2 or not nodes[0].text.isdecimal():
        return False
    whole, part = nodes[0].text, nodes[1].text
    if part.isdecimal():
        return exact.value(f"{whole}.{part}") == number
    rest = rational(nodes[1])
    return rest is not None and 0 < rest < 1 and int(whole) + rest == number


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
