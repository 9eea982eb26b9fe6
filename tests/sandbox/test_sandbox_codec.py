"""Plain data as bytes and back, and what hostile bytes can do (nothing)."""

from __future__ import annotations

import contextlib
import math
import sys
import time
from collections import Counter, OrderedDict, defaultdict, deque
from datetime import date, datetime, timedelta, timezone
from datetime import time as clock
from decimal import Decimal
from enum import IntEnum
from fractions import Fraction
from itertools import islice, product
from typing import Any, NamedTuple

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gatekeeper.sandbox.inside.codec import Opaque, again, encode, opaque
from gatekeeper.sandbox.inside.decoding import decode
from gatekeeper.sandbox.inside.places import Places
from gatekeeper.sandbox.inside.wire import (
    MAX_BYTES,
    MAX_DEPTH,
    MAX_HASHED,
    MalformedError,
    TooLargeError,
    head,
)
from gatekeeper.sandbox.reprs import short_repr

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
    ids=lambda value: short_repr(value, 20),
)
def test_traps(value: Any) -> None:
    decoded = decode(encode(value))
    assert decoded == value
    assert short_repr(decoded) == short_repr(value)


def test_what_is_at_two_places_is_one_for_a_peer_alone() -> None:
    row, pairs = [1], {2: {3}}
    rows: list[Any] = [row, (row, pairs), [[]] * 2, pairs, [pairs[2]]]
    queue, words = deque([row]), Counter("aa")
    rows += [rows, queue, [queue, words], words]
    places = Places()
    made = Places()
    data = encode(rows, other=lambda item: (b"N", ()), places=places)
    got = decode(data, other=lambda number, description: None, places=made)
    assert got[6] is got[7][0]
    assert got[6][0] is got[0]
    assert got[8] is got[7][1]
    assert (got[6], got[8]) == (queue, words)
    assert made.keys() == places.keys()
    assert made[0] is got
    assert [repr(made[place]) for place in made] == [repr(places[place]) for place in made]
    assert got[5] is got
    assert (got[:5], got[0], got[3]) == (rows[:5], got[1][0], got[1][1])
    assert got[0] is got[1][0]
    assert got[2][0] is got[2][1]
    assert got[3] is got[1][1]
    assert got[4][0] is got[3][2]
    with pytest.raises(MalformedError, match="at two places"):
        decode(data)
    with pytest.raises(MalformedError, match="an item of a question"):
        decode(again(1, 0), other=lambda number, description: None)
    asked = {1: places}
    found = decode(again(1, 0), asked=lambda number, place: asked[number][place])
    assert found is rows
    with pytest.raises(MalformedError):
        decode(again(1, 1), asked=lambda number, place: asked[number][place])
    with pytest.raises(MalformedError):  # no list, set or dict begins there
        decode(b"l\1\0\0\0r\1\0\0\0", other=lambda number, description: None)


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


class Names(str):
    pass


@pytest.mark.parametrize(
    ("value", "data"),
    [(Liar(5), 5), (Colour.RED, 1), (Names("x"), "x"), (True, True)],
)
def test_subclasses_travel_as_their_built_in_base(value: Any, data: Any) -> None:
    decoded = decode(encode(value))
    assert decoded == data
    assert type(decoded) is type(data)


@pytest.mark.parametrize(
    "value",
    [
        Counter("aab"),
        defaultdict(None, {1: [2]}),
        OrderedDict(b=1, a=2),
        deque([1, (2,)], 5),
        bytearray(b"x"),
        range(3, 10**20, 7),
        Fraction(-1, 3),
        Decimal("1.50"),
        Decimal("-Infinity"),
        date(2024, 2, 29),
        datetime(2024, 2, 29, 1, 2, 3, 4),
        datetime(2024, 2, 29, tzinfo=timezone(timedelta(hours=-3))),
        clock(1, 2, 3, 4),
        timedelta(-1, 2, 3),
        {1: 2}.keys(),
        {1: (2,)}.items(),
    ],
    ids=lambda value: type(value).__name__,
)
def test_values_of_the_standard_library_keep_their_type(value: Any) -> None:
    for whole in (value, [value], {"k": (value,)}):
        decoded = decode(encode(whole))
        assert decoded == whole
    decoded = decode(encode(value))
    assert (type(decoded), repr(decoded)) == (type(value), repr(value))


def test_dict_values_and_named_tuples_keep_what_tests_look_at() -> None:
    assert sorted(decode(encode({1: 5, 2: 4}.values()))) == [4, 5]
    assert decode(encode([Point(1, 2), Point(3, 4)])) == [(1, 2), (3, 4)]
    sent = encode([Point(1, 2), Point(3, 4)], other=lambda item: opaque(item))
    with pytest.raises(MalformedError):  # no class is made where nothing could look at it
        decode(sent)
    points = decode(sent, other=lambda number, description: None)
    assert points[1].x == 3
    assert points[1]._replace(y=5) == (3, 5)
    assert repr(points[0]) == "Point(x=1, y=2)"
    assert decode(encode(deque([1], 5))).maxlen == 5


@pytest.mark.parametrize(
    "value", [object(), iter([1]), len, Liar], ids=lambda value: type(value).__name__
)
def test_anything_else_equals_nothing(value: Any) -> None:
    decoded = decode(encode(value))
    assert isinstance(decoded, Opaque)
    assert decoded
    assert decoded != value
    assert type(value).__name__ in repr(decoded)


@given(plain)
def test_an_object_that_is_not_sent_is_referred_to(value: Any) -> None:
    """With `other`, an object is sent as an id, and decoded as the same object."""
    kept: list[object] = []

    def leave(item: object) -> tuple[bytes, tuple[Any, ...]]:
        kept.append(item)
        return b"h" + len(kept).to_bytes(8, "little", signed=True), ("an object",)

    data = encode([value, stranger, (value, stranger)], other=leave)
    found = decode(data, other=lambda number, described: kept[number - 1])
    assert found[1] is found[2][1] is stranger
    assert same(found[0], value)
    with pytest.raises(MalformedError):
        decode(data)  # nobody here knows ids


stranger = object()


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
        encode(1 << 8 * MAX_BYTES)
    with pytest.raises(TooLargeError):
        encode(["x" * 1000] * 10_000)
    nested: list[Any] = []
    for _ in range(MAX_DEPTH):
        nested = [nested]
    assert decode(encode(nested)) == nested
    assert isinstance(decode(encode([nested])), Opaque)
    assert isinstance(decode(encode(set(range(MAX_HASHED + 1)))), Opaque)


@given(st.binary(max_size=200) | st.lists(st.sampled_from(b"NTifcsbltSZdqo\0\1\2")).map(bytes))
def test_hostile_bytes_are_data_or_malformed(data: bytes) -> None:
    with contextlib.suppress(MalformedError):
        decode(data)


def known(name: str, *parts: Any) -> bytes:
    """A value of the standard library as its bytes say it, of any parts."""
    inner = b"".join(part if type(part) is bytes else encode(part) for part in parts)
    return head(b"k", len(name)) + name.encode() + head(b"t", len(parts)) + inner


LONG = known("range", 0, 10**12, 1)


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
        b"h" + bytes(8) + b"N",
        head(b"k", 1) + b"?" + encode(()),
        head(b"k", 5) + b"range" + encode(5),
        known("range", 0, 1.5, 1),
        known("Fraction", 1, 0),
        known("Fraction", 1.5, 2.5),
        known("Fraction", 1 << 100_000, 3),
        known("Decimal", "9" * 5000),
        known("Decimal", "x"),
        known("Decimal", 1, 2, 3),
        known("bytearray", 1 << 40),
        known("bytearray", 1 << 62),
        known("bytearray", LONG),
        known("deque", LONG, None),
        known("Counter", LONG),
        known("OrderedDict", LONG),
        known("defaultdict", LONG),
        known("keys", LONG),
        known("items", LONG),
        known("values", LONG),
        known("Counter", [n * (2**61 - 1) for n in range(50_000)]),
        known("keys", [n * (2**61 - 1) for n in range(50_000)]),
        known("namedtuple", "P", ("x", "__import__('os')"), (1, 2)),
        known("namedtuple", "P: 0", ("x",), (1,)),
        known("namedtuple", "P", ("x",), (1, 2)),
        known("namedtuple", "P", LONG, ()),
        known("namedtuple", "P", tuple(f"x{n}" for n in range(50_000)), ()),
        head(b"l", 20_000) + b"".join(known("namedtuple", f"P{n}", (), ()) for n in range(20_000)),
        known("date", 2023, 2, 29),
        known("timedelta", 10**30),
        known("datetime", 2023, 2, 3, 1, 1, 1, 1, timedelta(days=2)),
    ],
    ids=lambda data: short_repr(data, 30),
)
def test_malformed(data: bytes) -> None:
    started = time.process_time()
    with pytest.raises(MalformedError):
        decode(data)
    assert time.process_time() - started < 2


def test_colliding_keys_are_refused_soon() -> None:
    modulus = 2**61 - 1  # all these integers have the hash 0
    data = b"S" + (200_000).to_bytes(4, "little")
    data += b"".join(encode(n * modulus) for n in range(200_000))
    started = time.process_time()
    with pytest.raises(MalformedError):
        decode(data)
    assert time.process_time() - started < 2


def test_show_is_bounded_and_cannot_fail() -> None:
    assert short_repr(10**5000) == "<int too long to show>"
    assert len(short_repr("x" * 1000)) == 200


HONEST_KEYS: dict[str, Any] = {
    "a grid": set(product(range(-2, 3), repeat=5)),
    "sets of points": {frozenset({(-1, n), (-2, n)}) for n in range(100)},
    "numbers": {1, 1.5, -1, -2, 2**61, 2**61 - 2},
    "long keys": {(*range(500), n) for n in (-1, -2)},
    "a table": {(x, y): [x] * 50 for x in range(-30, 30) for y in range(-30, 30)},
}


@pytest.mark.parametrize("value", HONEST_KEYS.values(), ids=HONEST_KEYS.keys())
def test_honest_keys_may_share_a_hash(value: Any) -> None:
    assert decode(encode(value)) == value


def colliding(entries: int, *parts: Any) -> list[tuple[Any, ...]]:
    """Tuples of one hash, which differ at their ends."""
    return [(*parts, *ends) for ends in islice(product((-1, -2), repeat=12), entries)]


COLLIDING: dict[str, Any] = {
    "in a set": set(colliding(1000, *range(40))),
    "in a dict": dict.fromkeys(colliding(1000, *range(40))),
    "numbers": {n * (2**61 - 1) for n in range(1000)},
    "one within another": {frozenset(colliding(100, n % 2 - 2, *"abcdefgh")) for n in range(2)}
    | {frozenset(colliding(100, *ends, *"abcdefgh")) for ends in product((-1, -2), repeat=5)},
    "side by side": [set(colliding(150, n, *range(40))) for n in range(20)],
}


@pytest.mark.parametrize("value", COLLIDING.values(), ids=COLLIDING.keys())
def test_keys_that_are_made_to_collide_are_refused(value: Any) -> None:
    """Comparing them takes time squared, on the host, while others wait."""
    with pytest.raises(MalformedError, match="the same hash"):
        decode(encode(value))
    assert decode(encode(value, max_hashed=sys.maxsize), limited=False) == value


def test_the_cost_of_a_message_does_not_grow_with_the_value() -> None:
    for value in ([0.1], (1, [2, "3"]), deque([1, [2]], 5), {1: [2] * 3}.values(), "'\"" * 9):
        assert short_repr(value) == repr(value)
    long = [5e-324, "x" * 300, (None, b"y")] * 90_000
    for value in (long, tuple(long), deque(long), dict(enumerate(long)).values(), "x" * 10**6):
        assert short_repr(value) == repr(value)[:199] + "…"
