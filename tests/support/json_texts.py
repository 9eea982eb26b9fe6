"""JSON as text, of the kinds that reading and writing it again would change."""

from __future__ import annotations

import json
from collections.abc import Iterable

from hypothesis import strategies as st

__all__ = ["MEMBERS", "SPACES", "VALUES", "array_of", "member", "object_of"]

SPACE = st.sampled_from(["", "", "", " ", "\r\n\t", "  "])
SPACES = st.lists(SPACE, min_size=4, max_size=4)
NUMBERS = st.one_of(
    st.sampled_from(["0", "-0", "0.1", "0.10", "1e400", "-1e400", "1E+2", "1e-400", "1.0", "1e0"]),
    st.sampled_from(["3.140000000000000000001", "0.30000000000000004", "9007199254740993"]),
    st.sampled_from(["18446744073709551616", "-9223372036854775809", "9" * 400]),
)
STRINGS = st.one_of(
    st.text(max_size=6).map(json.dumps),
    st.text(st.characters(codec="utf-8"), max_size=6).map(
        lambda text: json.dumps(text, ensure_ascii=False)
    ),
    st.sampled_from(
        [r'"\u00e9"', r'"\/"', r'"\ud83d\ude00"', r'"\ud800"', r'"\"gatekeeper\": 1"', r'"}{]["']
    ),
)
LITERALS = st.sampled_from(["null", "true", "false", "{}", "[]", '""', "NaN", "-Infinity"])
DEEP = st.integers(1, 300).map(lambda depth: "[" * depth + "1e400" + "]" * depth)
# Of parameters and similar ones, but none that the gateway reads or edits.
NAMES = st.one_of(
    STRINGS,
    st.sampled_from(["model", "stream", "n", "messages", "usage"]).map('"{}"'.format),
    st.sampled_from(["x-unknown", "Gatekeeper", "LOGPROBS", "gatekeeper ", ""]).map('"{}"'.format),
)


def array_of(items: Iterable[str], spaces: list[str]) -> str:
    return "[" + ",".join(spaces[3] + item for item in items) + "]"


def object_of(members: Iterable[tuple[str, str]], spaces: list[str]) -> str:
    return "{" + ",".join(member(name, each, spaces) for name, each in members) + spaces[0] + "}"


def member(name: str, value: str, spaces: list[str]) -> str:
    return f"{name}{spaces[1]}:{spaces[2]}{value}"


VALUES = st.recursive(
    st.one_of(NUMBERS, STRINGS, LITERALS, DEEP),
    lambda inner: st.one_of(
        st.builds(array_of, st.lists(inner, max_size=4), SPACES),
        st.builds(object_of, st.lists(st.tuples(NAMES, inner), max_size=4), SPACES),
    ),
    max_leaves=8,
)
MEMBERS = st.lists(st.tuples(NAMES, VALUES), min_size=1, max_size=6)
