"""Objects in the place of a list or dict, which show something else at each look."""

# ruff: noqa: E501 - programs within strings are as wide as they are
from __future__ import annotations

from attacks.program import Topic

__all__ = ["LOOKS"]

LOOKS = Topic("looks")
right, left_out = LOOKS.right, LOOKS.left_out

TEST = """
from collections import Counter
from solution import f, other

def is_prime(n):
    return n > 1 and all(n % k for k in range(2, n))

def test_f():
    got = f(4)
    {}
"""
OTHER = "def other(n): return -n\n"
PRIMES = "def f(n): return [2, 3, 5, 7]\n"


def lies(name: str, lie: str, asked: str, honest: str = PRIMES) -> None:
    """Add an object that is right in each check alone."""
    made = OTHER + lie + "def f(n): return Lie()\n"
    left_out(name, made, OTHER + honest, TEST.format(asked.replace("; ", "\n    ")))


EACH = "class Lie:\n    looks = 0\n    def __iter__(self):\n        self.looks += 1\n        return iter({})\n"
FIRST = EACH.format("[[2, 2, 2, 2], [17, 0, 0, 0]][self.looks - 1]")
for how, lie, asked in (
    ("another iteration each time", FIRST, "assert all(is_prime(n) for n in got); assert sum(got) == 17"),
    ("unpacked, and iterated", FIRST, "a, b, c, d = got; assert is_prime(a) and is_prime(d); assert sum(got) == 17"),
    ("after a call of another function", FIRST, "assert all(is_prime(n) for n in got); assert other(4) == -4; assert sum(got) == 17"),
    ("fewer items after a call of another function", EACH.format("[[2, 2, 2, 2], [17]][self.looks - 1]"), "assert all(is_prime(n) for n in got); assert other(4) == -4; assert sum(got) == 17"),
    ("whether it contains an item", EACH.format("[[2, 9], [3, 9], [9, 9], [5, 9]][self.looks - 1]"), "assert 2 in got; assert 3 in got; assert 4 not in got; assert 5 in got"),
    ("sorted, and as a set", EACH.format("[[1, 2, 3, 4], [2, 3, 5, 7]][self.looks - 1]"), "assert all(a < b for a, b in zip(got, [3, 4, 6, 8])); assert set(got) == {2, 3, 5, 7}"),
):  # fmt: skip
    lies(how, lie, asked)
ONCE = "class Lie:\n    looks = 0\n    def __{}__(self, *more):\n        self.looks += 1\n        return {}[self.looks - 1]\n"
for how, lie, asked, honest in (
    ("text", ONCE.format("str", "['ab', 'bc']"), "assert str(got)[0] == 'a'; assert str(got)[-1] == 'c'", "def f(n): return 'abc'\n"),
    ("formatted", ONCE.format("format", "['ab', 'bc']"), "assert f'{got}'[0] == 'a'; assert f'{got}'[-1] == 'c'", "def f(n): return 'abc'\n"),
    ("a number", ONCE.format("int", "[2, 3]"), "assert int(got) % 2 == 0; assert int(got) % 3 == 0", "def f(n): return 6\n"),
    ("another number", ONCE.format("float", "[2.0, 3.0]"), "assert float(got) < 2.5; assert float(got) > 2.1", "def f(n): return 2.2\n"),
    ("its truth", ONCE.format("bool", "[True, False]"), "assert other(1) == -1; assert got; assert not got or got == [4]", "def f(n): return [n]\n"),
    ("no items, and its truth", EACH.format("()"), "assert all(is_prime(n) for n in got); assert got", PRIMES),
    ("its truth, and no items", EACH.format("()"), "assert got; assert all(is_prime(n) for n in got)", PRIMES),
):  # fmt: skip
    lies(how, lie, asked, honest)
AT = "class Lie:\n    def __len__(self): return 4\n    def __iter__(self): return iter([7, 5, 3, 2])\n    def __getitem__(self, n): return {}\n"
SORTED = "assert all(got[n] < got[n + 1] for n in range(3))"
ALL = "assert Counter(got) == Counter([7, 5, 3, 2])"
PAIRS = "assert all(a < b for a, b in zip(got, got[1:]))"
for how, lie, asked in (
    ("other items at indexes", AT.format("n"), f"{ALL}; {SORTED}"),
    ("other items at indexes, before an iteration", AT.format("n"), f"{SORTED}; {ALL}"),
    ("other items at indexes of no iteration", "class Lie:\n    looks = 0\n    def __getitem__(self, n):\n        self.looks += 1\n        return self.looks\n", "assert got[0] < got[1] < got[2]; assert got[1] < got[0] + 3"),
    ("another item at the end", AT.format("9 if n == -1 else 2"), f"{ALL}; assert got[-1] > 6"),
    ("other items in a slice", AT.format("[8, 9, 10] if isinstance(n, slice) else 0"), f"{PAIRS}; {ALL}"),
    ("another object as a slice", AT.format("More()") + "class More:\n    def __iter__(self): return iter([8, 9, 10])\n", f"{PAIRS}; {ALL}"),
    ("other items backwards", AT.format("n") + "    def __reversed__(self): return iter([9, 8, 7, 6])\n", f"{ALL}; assert all(a > b for a, b in zip(reversed(got), [6, 4, 2, 1]))"),
    ("a list that is none", "class Lie(list):\n    def __init__(self): super().__init__([7, 5, 3, 2])\n    def __getitem__(self, n): return n\n", f"{ALL}; {SORTED}"),
):  # fmt: skip
    lies(how, lie, asked)
SEQUENCE = "import unittest; unittest.TestCase().assertSequenceEqual(got, [2, 3, 5, 7])"
lies(
    "other items at indexes than its value",
    "class Lie(list):\n    def __init__(self): super().__init__([0] * 4)\n    def __getitem__(self, n): return [2, 3, 5, 7][n]\n",
    SEQUENCE,
)
TURNS = "class Lie:\n    looks = 0\n    @property\n    def {}(self):\n        self.looks += 1\n        return {}[self.looks - 1]\n"
for how, lie, asked, honest in (
    ("an attribute", TURNS.format("n", "[8, 27]"), "assert got.n % 8 == 0; assert got.n % 27 == 0", "class Right: n = 216\ndef f(n): return Right()\n"),
    ("a list that is an attribute", TURNS.format("n", "[[2, 2, 2, 2], [17]]"), "assert all(is_prime(n) for n in got.n); assert sum(got.n) == 17", "class Right: n = [2, 3, 5, 7]\ndef f(n): return Right()\n"),
    ("an attribute of an exception", TURNS.format("n", "[8, 27]").replace("Lie:", "Lie(Exception):"), "assert got.n % 8 == 0; assert got.n % 27 == 0", "class Right(Exception): n = 216\ndef f(n): return Right()\n"),
    ("its amount", ONCE.format("abs", "[2, 3]"), "assert abs(got) % 2 == 0; assert abs(got) % 3 == 0", "def f(n): return -6\n"),
):  # fmt: skip
    lies(how, lie, asked, honest)
right(
    "attributes that change",
    """
    class Account:
        def __init__(self): self.balance, self.log, self.seen = 0, [], 0
        @property
        def history(self): return list(self.log)
        @property
        def reads(self):
            self.seen += 1
            return self.seen
        def add(self, n):
            self.balance += n
            self.log.append(n)
    class Shown:
        def __init__(self, items): self.items = items
        def __len__(self): return len(self.items)
        def __iter__(self): return iter(self.items)
        @property
        def last(self): return self.items[-1]
    def shown(items): return Shown(items)
    accounts = {}
    def account(name): return accounts.setdefault(name, Account())
    def add(name, n): account(name).add(n)
    """,
    """
    import solution
    from solution import Account, account, add, shown

    def test_account():
        got = account("a")
        assert got.balance == 0 and got.history == got.log == []
        add("a", 5)
        assert got.balance == 5 and got.log == [5]
        got.history.append(6)
        assert got.history == [5]
        got.log.append(7)
        assert got.log == [5, 7] == got.history
        got.balance = 9
        assert got.balance == 9
        got.add(1)
        assert got.balance == 10

    def test_lists():
        mine = [1, 2]
        got = shown(mine)
        assert len(list(got)) == len(got) == 2 and got.last == 2
        mine.append(3)
        assert len(list(got)) == len(got) == 3 and got.last == 3

    def test_made():
        mine = Account()
        assert (mine.reads, mine.reads) == (1, 2)
    """,
)
WORDS = "def f(n): return {'c': 4, 'dd': 6}\n"
LIE = "class Lie:\n    def __len__(self): return 2\n    def __iter__(self): return iter(['a', 'bb'])\n    def __getitem__(self, key): return len(key)\n"
for how, lie, asked in (
    ("other values of a mapping", LIE + "    def values(self): return [5, 5]\n", "assert all(got[k] >= len(k) for k in got); assert sum(got.values()) == 10"),
    ("other items of a mapping", LIE + "    def items(self): return [('a', 5), ('bb', 5)]\n", "assert all(got[k] >= len(k) for k in got); assert sum(n for _, n in got.items()) == 10"),
    ("other keys of a mapping", LIE + "    def keys(self): return ['c', 'dd']\n", "assert len([*got]) == 2; assert [*got.keys()] == ['c', 'dd']"),
    ("other items of a dict", "class Lie(dict):\n    def __init__(self): super().__init__(a=1, bb=2)\n    def items(self): return [('a', 5), ('bb', 5)]\n", "assert all(got[k] >= len(k) for k in got); assert sum(n for _, n in got.items()) == 10"),
):  # fmt: skip
    lies(f"a mapping: {how}", lie, asked, WORDS)
METHOD = "from solution import Solution\n\ndef test_f():\n    got = Solution().f(4)\n    assert all(n > 1 for n in got)\n    assert sum(got) == 17\n"
left_out(
    "what a method of a class under test returned",
    FIRST + "class Solution:\n    def f(self, n): return Lie()\n",
    "class Solution:\n    def f(self, n): return [2, 3, 5, 7]\n",
    METHOD,
)
left_out(
    "an object of the class under test itself",
    FIRST.replace("Lie", "Solution") + "    def f(self, n): return Solution()\n",
    "class Solution:\n    def f(self, n): return [2, 3, 5, 7]\n",
    METHOD,
)
right(
    "objects that show the same at each look",
    """
    class Row:
        def __init__(self, items): self.items_ = list(items)
        def __len__(self): return len(self.items_)
        def __iter__(self): return iter([{"n": n, "at": (n, [n])} for n in self.items_])
        def __getitem__(self, n):
            return Row(self.items_[n]) if isinstance(n, slice) else {"n": self.items_[n], "at": (self.items_[n], [self.items_[n]])}
        def __reversed__(self): return iter(list(self)[::-1])
        def append(self, n): self.items_.append(n)
    class Table:
        def __init__(self, **items): self.all = items
        def __len__(self): return len(self.all)
        def __iter__(self): return iter(self.all)
        def __getitem__(self, key): return self.all[key]
        def keys(self): return list(self.all)
        def values(self): return self.all.values()
        def items(self): return self.all.items()
    class Node:
        def __init__(self, n): self.n = n
        def next(self): return self.n + 1
    class Graph:
        def __init__(self, *edges): self.edges = edges
        def __len__(self): return 3
        def __iter__(self): return iter([1, 2, 3])
        def __getitem__(self, node): return [b for a, b in self.edges if a == node]
    class Nodes:
        def __iter__(self): return (Node(n) for n in range(3))
    class Empty:
        def __iter__(self): return iter(())
    class Sized(Empty):
        def __len__(self): return 0
    class Deck:
        def __init__(self, *cards): self.cards = list(cards)
        def __iter__(self):
            while self.cards:
                yield self.cards.pop()
        def half(self): return Deck(*self.cards[::2])
    def row(*items): return Row(items)
    def table(**items): return Table(**items)
    def graph(*edges): return Graph(*edges)
    def nodes(): return Nodes()
    def empties(): return Empty(), Sized(), Nodes()
    """,
    """
    from solution import Deck, empties, graph, nodes, row, table

    def test_row():
        got = row(3, 1, 2)
        assert [r["n"] for r in got] == [3, 1, 2] == [got[n]["n"] for n in range(3)] and got[-1]["n"] == 2
        assert [a["n"] - b["n"] for a, b in zip(got, got[1:])] == [2, -1]
        assert [r["n"] for r in reversed(got)] == [2, 1, 3]
        got.append(7)
        assert len(got) == 4 and [r["n"] for r in got] == [3, 1, 2, 7]

    def test_table():
        got = table(a=1, b=2)
        assert list(got) == got.keys() and dict(got) == dict(got.items()) == {"a": 1, "b": 2}
        assert sum(got.values()) == 3 == sum(got[key] for key in got)

    def test_graph():
        got = graph((1, 2), (1, 3))
        assert got[1] == [2, 3] and sorted(got) == [1, 2, 3] and [got[n] for n in got] == [[2, 3], [], []]
        assert [node.n for node in nodes()] == [0, 1, 2]

    def test_meanwhile():
        for got in (nodes(), row(1, 2)):
            assert [one.__str__() and 1 for one in got][:2] == [1, 1]
        for item in nodes():
            assert item.next() == item.n + 1
        got = row(1, 2)
        for n, _ in enumerate(got):
            assert row(n)[0]["n"] == n and got[n]["n"] == n + 1
        assert len(list(got)) == 2

    def test_truth():
        empty, sized, full = empties()
        assert list(empty) == list(sized) == [] and not sized and len(sized) == 0
        assert full and len(list(full)) == 3 and not hasattr(full, "__bool__")

    def test_deck():
        deck = Deck(1, 2, 3)
        assert list(deck.half()) == [3, 1]
        assert list(deck) == [3, 2, 1] and list(deck) == []
    """,
)
