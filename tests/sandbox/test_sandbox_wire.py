"""Plain data through the wire, and what hostile bytes can do (nothing)."""

from __future__ import annotations

import contextlib
import math
import time
from collections import Counter, OrderedDict, defaultdict
from decimal import Decimal
from enum import IntEnum
from fractions import Fraction
from typing import Any, NamedTuple

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gatekeeper.sandbox import child
from gatekeeper.sandbox.child import TooLargeError, encode
from gatekeeper.sandbox.wire import MalformedError, Opaque, decode, frames, show

scalars = (
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats(allow_nan=False)
    | st.complex_numbers(allow_nan=False)
    | st.text(st.characters(exclude_categories=()))  # lone surrogates too
    | st.binary()
)
keys = scalars | st.tuples(scalars, scalars) | st.frozensets(scalars, max_size=3)
plain = st.recursive(
    keys | st.sets(keys, max_size=3),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(scalars, inner, max_size=4),
    max_leaves=10,
)


def same(a: Any, b: Any) -> bool:
    """Equal, and of the same built-in types throughout."""
    return bool(a == b) and repr(type(a)) == repr(type(b)) and len(repr(a)) == len(repr(b))


@given(plain)
def test_round_trip(value: Any) -> None:
    assert same(decode(encode(value)), value)


@pytest.mark.parametrize(
    "value",
    [
        10**5000,
        -(10**5000),
        -0.0,
        math.inf,
        "\ud800\udc00",  # a pair of lone surrogates is not the character it would spell in UTF-16
        "\x00é🙂",
        (1, [2], {3: frozenset({4})}),
        {"b": 1, "a": 2},
        Ellipsis,
    ],
    ids=lambda value: show(value, 20),
)
def test_traps(value: Any) -> None:
    decoded = decode(encode(value))
    assert decoded == value
    assert show(decoded) == show(value)


def test_negative_zero_and_nan_keep_their_signs() -> None:
    assert math.copysign(1, decode(encode(-0.0))) == -1
    assert math.isnan(decode(encode(math.nan)))
    assert decode(encode([math.nan])) != [math.nan]


class Liar(int):
    def __eq__(self, other: object) -> bool:
        return True

    def __hash__(self) -> int:
        return 0


class Point(NamedTuple):
    x: int
    y: int


class Colour(IntEnum):
    RED = 1


@pytest.mark.parametrize(
    ("value", "data"),
    [
        (Liar(5), 5),
        (Colour.RED, 1),
        (Counter("aab"), {"a": 2, "b": 1}),
        (defaultdict(list, {1: [2]}), {1: [2]}),
        (OrderedDict(a=1), {"a": 1}),
        (Point(1, 2), (1, 2)),
        ({1: 2}.keys(), {1}),
        ({1: 2}.items(), {(1, 2)}),
        (bytearray(b"x"), b"x"),
        (Fraction(1, 2), 0.5),
        (Decimal(3), 3),
    ],
)
def test_subclasses_travel_as_their_built_in_base(value: Any, data: Any) -> None:
    decoded = decode(encode(value))
    assert decoded == data
    assert type(decoded) in (type(data), Fraction)


@pytest.mark.parametrize("value", [object(), iter([1]), range(3), len, Decimal("nan")])
def test_anything_else_equals_nothing(value: Any) -> None:
    decoded = decode(encode(value))
    assert isinstance(decoded, Opaque)
    assert decoded
    assert decoded != value
    assert type(value).__name__ in repr(decoded)


def test_depth_and_cycles_and_size() -> None:
    deep: list[Any] = []
    for _ in range(200_000):
        deep = [deep]
    assert isinstance(decode(encode(deep)), Opaque)
    while deep:  # or freeing it takes Python's stack
        deep = deep[0]
    cycle: list[Any] = []
    cycle.append(cycle)
    assert isinstance(decode(encode(cycle)), Opaque)
    cycle.append(cycle)
    assert isinstance(decode(encode(cycle)), Opaque)
    with pytest.raises(TooLargeError):
        encode(1 << 8 * child.MAX_BYTES)
    with pytest.raises(TooLargeError):
        encode(["x" * 1000] * 10_000)
    assert isinstance(decode(encode(set(range(child.MAX_HASHED + 1)))), Opaque)


@given(st.binary(max_size=200) | st.lists(st.sampled_from(b"NTifcsbltSZdqo\0\1\2")).map(bytes))
def test_hostile_bytes_are_data_or_malformed(data: bytes) -> None:
    with contextlib.suppress(MalformedError):
        decode(data)
    frames(data)


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"NN",
        b"?",
        b"i\xff\xff\xff\xff",
        b"l\xff\xff\xff\xff",
        b"t\1\0\0\0" * 100_000 + b"N",
        b"S\1\0\0\0l\0\0\0\0",
        b"qNN",
        b"q" + encode(1) + encode(0),
        b"q" + encode(1 << 100_000) + encode(3),
    ],
    ids=lambda data: show(data, 20),
)
def test_malformed(data: bytes) -> None:
    with pytest.raises(MalformedError):
        decode(data)


def test_colliding_keys_are_refused_soon() -> None:
    modulus = 2**61 - 1  # all these integers have the hash 0
    data = b"S" + (200_000).to_bytes(4, "little")
    data += b"".join(encode(n * modulus) for n in range(200_000))
    started = time.monotonic()
    with pytest.raises(MalformedError):
        decode(data)
    assert time.monotonic() - started < 2


def test_show_is_bounded_and_cannot_fail() -> None:
    assert show(10**5000) == "<int too long to show>"
    assert len(show("x" * 1000)) == 200
