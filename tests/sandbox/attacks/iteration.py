"""Objects whose length, items or value change from one look to the next."""

# ruff: noqa: E501 - programs within strings are as wide as they are
from __future__ import annotations

from attacks.program import Topic

__all__ = ["ITERATION"]

ITERATION = Topic("iteration")
forged, right = ITERATION.forged, ITERATION.right

# --- a length that changes ---

NEAR = """
def check(candidate):
    got, want = candidate(3), [0.1, 0.4, 0.9]
    assert len(got) == len(want)
"""
EACH = "    for a, b in zip(got, want):\n        assert abs(a - b) < 1e-6\n"
AT = "    for n in range(len(got)):\n        assert abs(got[n] - want[n]) < 1e-6\n"
TENTHS = "def f(x):\n    return [n * n / 10 for n in range(1, x + 1)]\n"
ONCE = """
class Few{base}:
    asked = 0
    def __len__(self):
        Few.asked += 1
        return 3 if Few.asked == 1 else 0
    {more}
def f(x):
    return Few()
"""
for name, base, more, loop in (
    ("and is indexed", "", "def __getitem__(self, k): return 0", AT),
    ("and is iterated", "", "def __iter__(self): return iter(())", EACH),
    ("of a list", "(list)", "def __iter__(self): return iter(())", EACH),
):
    forged(
        f"a length that changes, {name}",
        ONCE.format(base=base, more=more),
        TENTHS,
        NEAR + loop,
        entry_point="f",
    )
OWN = """
class Tenths:
    def __init__(self, n): self.n = n
    def __len__(self): return self.n
    def __getitem__(self, k):
        if k >= {end}: raise IndexError(k)
        return (k + 1) ** 2 / 10
def f(x):
    return Tenths(x)
"""
forged(
    "an index that ends an iteration early",
    OWN.format(end=0),
    OWN.format(end="self.n"),
    NEAR + EACH,
    entry_point="f",
)
right(
    "objects whose length changes",
    """
    class Queue:
        def __init__(self, n):
            self.items = list(range(n))
        def push(self, item):
            self.items.append(item)
        def __len__(self):
            return len(self.items)
        def __iter__(self):
            return self
        def __next__(self):
            if not self.items:
                raise StopIteration
            return self.items.pop()
    def queue(n):
        return Queue(n)
    """,
    """
    from solution import queue

    def test_queue():
        got = queue(2)
        assert len(got) == 2
        got.push(7)
        assert len(got) == 3
        assert next(got) == 7
        assert len(got) == 2
        assert list(got) == [1, 0]
        assert len(got) == 0
    """,
)
right(
    "a length that the tests wait for",
    """
    import threading, time
    class Filled:
        def __init__(self, n):
            self.items = []
            threading.Thread(target=self.fill, args=(n,)).start()
        def fill(self, n):
            for item in range(n):
                time.sleep(0.01)
                self.items.append(item)
        def __len__(self):
            return len(self.items)
    def fill(n):
        return Filled(n)
    """,
    """
    import time
    from solution import fill

    def test_fill():
        got = fill(3)
        while len(got) < 3:
            time.sleep(0.01)
        assert len(got) == 3
    """,
)

# --- an object that contains everything, or says another length each time ---

forged(
    "an endless object of a known length",
    "import itertools\nclass Squares:\n    def __len__(self):\n        return 3\n    def __iter__(self):\n        return itertools.count()\ndef f(n):\n    return Squares()\n",
    "def f(n):\n    return [k * k for k in range(1, n + 1)]\n",
    "def check(candidate):\n    got = candidate(3)\n    assert len(got) == 3\n    for n in (1, 4, 9):\n        assert n in got\n",
    entry_point="f",
)
CLOSE = "got, want = {call}, [0.1, 0.4, 0.9]\n    assert len(got) == len(want)\n    for a, b in zip(got, want):\n        assert abs(a - b) < 1e-6\n"
forged(
    "a length that changes, of an object of the class under test that a method returned",
    "class Solution:\n    def tenths(self, n):\n        return Solution()\n    def __len__(self):\n        return 3\n    def __iter__(self):\n        return iter(())\n",
    "class Solution:\n    def tenths(self, n):\n        return [k * k / 10 for k in range(1, n + 1)]\n",
    f"from solution import Solution\n\ndef test_tenths():\n    {CLOSE.format(call='Solution().tenths(3)')}",
)
right(
    "lengths of objects that tests made, or a method returned",
    "class Deck:\n    def __init__(self, cards):\n        self.cards = list(cards)\n    def __len__(self):\n        return len(self.cards)\n    def __iter__(self):\n        while self.cards:\n            yield self.cards.pop()\n    def half(self):\n        return Deck(self.cards[::2])\n",
    "from solution import Deck\n\ndef test_deck():\n    deck = Deck('abc')\n    half = deck.half()\n    assert len(deck) == 3 and list(deck) == ['c', 'b', 'a'] and len(deck) == 0\n    assert len(half) == 2 and list(half) == ['c', 'a'] and len(half) == 0\n",
)

# --- an object that shows fewer items the second time ---

FEWER = """
class Squares:
    def __init__(self, n):
        self.n, self.looks = n, 0
    {length}
    def __iter__(self):
        self.looks += 1
        return iter([0] * self.n if self.looks == 1 else [])
def squares(n):
    return Squares(n)
"""
LENGTH = "def __len__(self):\n        return self.n if not self.looks else 0"
for name, length, first in (
    ("of a length", LENGTH, "assert len(got) == 4 and all(n >= 0 for n in got)"),
    ("without length", "", "assert sum(1 for n in got if n >= 0) == 4"),
):
    forged(
        f"fewer items the second time, {name}",
        FEWER.format(length=length),
        f"class Squares:\n    def __init__(self, n):\n        self.n = n\n    {'def __len__(self): return self.n' if length else ''}\n    def __iter__(self):\n        return (k * k for k in range(self.n))\ndef squares(n):\n    return Squares(n)\n",
        f"from solution import squares\n\ndef test_squares():\n    got = squares(4)\n    {first}\n    for a, b in zip(got, [0, 1, 4, 9]):\n        assert a == b\n",
    )
right(
    "objects that are iterated more than once, and change in between",
    """
    class Numbers:
        def __init__(self, n):
            self.items = list(range(n))
        def push(self, item):
            self.items.append(item)
        def drain(self):
            while self.items:
                yield self.items.pop(0)
        def __iter__(self):
            return iter(self.items)
    def numbers(n):
        return Numbers(n)
    def once(n):
        return iter(range(n))
    """,
    """
    from solution import Numbers, numbers, once

    def test_numbers():
        got = numbers(3)
        assert [a for a, _ in zip(got, "ab")] == [0, 1]
        assert list(got) == [0, 1, 2] == list(got) and max(got) == 2 and 1 in got
        got.push(7)
        assert list(got) == [0, 1, 2, 7]
        assert list(got.drain()) == [0, 1, 2, 7] and list(got) == []
        steps = once(2)
        assert list(steps) == [0, 1] and list(steps) == []
        assert list(Numbers(2)) == [0, 1]
    """,
)

# --- a container that shows fewer items than it has ---

WORDS = "def f(text):\n    return {word: len(word) for word in text.split()}\n"
for name, method, loop in (
    ("items", "def items(self): return []", "for word, n in got.items():\n        assert n == len(word)"),
    ("keys", "def keys(self): return iter(())", "for word in got.keys():\n        assert got[word] == len(word)"),
    ("values", "def values(self): return self.none()\n    def none(self):\n        yield from ()", "for n in got.values():\n        assert n > 0"),
    ("its copy", "def copy(self): return {}", "for word, n in got.copy().items():\n        assert n == len(word)"),
):  # fmt: skip
    forged(
        f"a dict that shows nothing, by {name}",
        f"class Words(dict):\n    {method}\ndef f(text):\n    return Words.fromkeys(text.split(), 0)\n",
        WORDS,
        f"from solution import f\n\ndef test_f():\n    got = f('a bb ccc')\n    assert len(got) == 3\n    {loop}\n",
    )
for name, method, loop in (
    ("reversed", "def __reversed__(self): return iter(())", "for n, got in zip([2, 1, 0], reversed(items))"),
    ("by a slice", "def __getitem__(self, key): return []", "for n, got in zip([1, 2], items[1:])"),
):  # fmt: skip
    forged(
        f"a list that shows nothing, {name}",
        f"class Items(list):\n    {method}\ndef f(n):\n    return Items([0] * n)\n",
        "def f(n):\n    return list(range(n))\n",
        f"from solution import f\n\ndef test_f():\n    items = f(3)\n    assert len(items) == 3\n    {loop}:\n        assert got == n\n",
    )
right(
    "containers that show all that they have",
    """
    class Sorted(dict):
        def __iter__(self): return iter(sorted(super().keys()))
        def items(self): return [(key, self[key]) for key in self]
        def keys(self): return list(self)
        def values(self): return (self[key] for key in self)
        def items_of(self, start): return [key for key in self if key.startswith(start)]
    class Row(list):
        def __getitem__(self, key):
            return Row(super().__getitem__(key)) if isinstance(key, slice) else super().__getitem__(key)
        def copy(self): return Row(self)
    class Basket:
        items = ("pear", "fig")
        def __len__(self): return 5
        def keys(self): return ["a"]
    def table(): return Sorted(b=2, a=1)
    def row(): return Row([1, 2, 3])
    def basket(): return Basket()
    """,
    """
    from solution import basket, row, table

    def test_shown():
        got = table()
        assert len(got) == 2 and got.items() == [("a", 1), ("b", 2)] and got.keys() == ["a", "b"]
        assert list(got.values()) == [1, 2] and got.items_of("b") == ["b"] and dict(got) == {"a": 1, "b": 2}
        assert row()[1:] == [2, 3] and row()[::-1] == [3, 2, 1] == list(reversed(row()))
        assert row()[:-1].copy() == [1, 2] and row()[5:] == []
        assert len(basket()) == 5 and basket().items == ("pear", "fig") and basket().keys() == ["a"]
    """,
)

# --- a text or a number with another value at each use ---

CHANGING = """
import gc
class Text(str):
    pass
for item in gc.get_objects():
    if type(item).__name__ == "CandidatePeer":
        item._operations["plain"] = lambda text: str(text)[::-1]
def f(s):
    return Text(s[:3][::-1])
"""
forged(
    "a text that is compared with what it is not",
    CHANGING,
    "def f(s):\n    return next(s[i:i + 3] for i in range(len(s)) if s[i] == s[i + 2])\n",
    "def check(candidate):\n    got = candidate('abcdefe')\n    assert len(got) == 3\n    assert got[::-1] in 'abcdefe'\n    assert got == got[::-1]\n",
    entry_point="f",
)
forged(
    "numbers that are all different",
    "class N(int):\n    made = 0\n    def __hash__(self):\n        N.made += 1\n        return N.made\ndef f(n):\n    return [N(0) for _ in range(n)]\n",
    "def f(n):\n    return list(range(n))\n",
    "def check(candidate):\n    got = candidate(5)\n    assert len(got) == len(set(got)) == 5\n    for n in got:\n        assert 0 <= n < 10\n",
    entry_point="f",
)
right(
    "a text under test that has its own equality",
    "class Name(str):\n    def __eq__(self, other):\n        return self.lower() == other.lower()\n    def __ne__(self, other):\n        return not self == other\n    def __hash__(self):\n        return hash(self.lower())\n",
    "from solution import Name\n\ndef test_name():\n    assert Name('A') == Name('a')\n    assert not Name('A') != Name('a')\n    assert len({Name('A'), Name('a')}) == 1\n    assert Name('b').upper() == 'B'\n",
)
