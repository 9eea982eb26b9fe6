"""What is one list for the candidate, and two: copies, arguments that it keeps, changes in place."""

# ruff: noqa: E501 - programs within strings are as wide as they are
from __future__ import annotations

from attacks.program import Topic

__all__ = ["COPIES"]

COPIES = Topic("copy")
forged, right = COPIES.forged, COPIES.right

# --- a copy that is none, of a part of an argument ---

DEEP = "import copy\ndef clone(a):\n    return copy.deepcopy(a)\n"
for name, code, body in (
    ("changed", "a[:]", "a = [[1, 2], [3]]\n    b = clone(a)\n    b[0][0] = 9\n    assert a == [[1, 2], [3]]\n    assert b == [[9, 2], [3]]"),
    ("compared", "list(a)", "a = [[1, 2], [3]]\n    b = clone(a)\n    assert a == b\n    assert b is not a and b[0] is not a[0]"),
    ("of a dict", "dict(a)", "a = {'x': {'y': 1}}\n    clone(a)['x']['y'] = 2\n    assert a == {'x': {'y': 1}}"),
    ("of a tuple", "a + ()", "a = ([1], [2])\n    clone(a)[1].append(3)\n    assert a == ([1], [2])"),
    ("of a deque", "a.copy()", "from collections import deque\n    a = deque([{1}])\n    clone(a)[0].add(2)\n    assert a == deque([{1}])"),
    ("of a list of deques", "a[:]", "from collections import Counter, deque\n    a = [deque([1]), Counter('a')]\n    b = clone(a)\n    b[0].append(2)\n    b[1]['b'] = 1\n    assert a == [deque([1]), Counter('a')]"),
):  # fmt: skip
    forged(
        f"a shallow one, {name}",
        f"def clone(a):\n    return {code}\n",
        DEEP,
        f"from solution import clone\n\ndef test_clone():\n    {body}\n",
    )
GRID = """
import copy
class Grid:
    def __init__(self, rows):
        self.rows = {copied}
    def get(self, row, column):
        return self.rows[row][column]
"""
for name, copied in {
    "a list": "list(rows)",
    "a dict": "{n: r for n, r in enumerate(rows)}",
}.items():
    forged(
        f"parts of an argument that an object keeps, in {name}",
        GRID.format(copied=copied),
        GRID.format(copied="copy.deepcopy(rows)"),
        """
        from solution import Grid

        def test_grid():
            rows = [[1, 2], [3, 4]]
            grid = Grid(rows)
            rows[0][0] = 9
            assert grid.get(0, 0) == 1
        """,
    )
right(
    "parts of arguments that are the same",
    """
    class Team:
        def __init__(self, members):
            self.members = dict(members)
        def join(self, name, group):
            self.members[group].append(name)
        def groups(self):
            return self.members
    def copied(rows):
        return rows[:]
    def first(rows):
        return rows[0]
    def longer(rows):
        return [row for row in rows if len(row) > 1]
    def each(rows, function):
        return [function(row) for row in rows]
    def inner(function):
        rows = [[1], [2]]
        got = function(rows)
        return got is rows[1], got is rows
    """,
    """
    from solution import Team, copied, each, first, inner, longer

    def test_parts():
        rows = [[1], [2, 3]]
        got = copied(rows)
        assert got is not rows and got[0] is rows[0]
        assert first(rows) is rows[0] and longer(rows)[0] is rows[1]
        first(rows).append(5)
        assert rows == [[1, 5], [2, 3]] == got
        assert each(rows, lambda row: row) == rows
        each(rows, list.clear)
        assert rows == [[], []]

    def test_kept():
        red, blue = ["ann"], []
        team = Team({"red": red, "blue": blue})
        team.join("bob", "blue")
        assert (red, blue) == (["ann"], ["bob"])
        red.append("cid")
        assert team.groups() == {"red": ["ann", "cid"], "blue": ["bob"]}

    def test_answers_of_the_tests():
        assert inner(lambda rows: rows[1]) == (True, False)
        assert inner(lambda rows: rows) == (False, True)
        assert inner(lambda rows: rows[1][:]) == (False, False)
    """,
)
right(
    "arguments that are changed in place",
    """
    def order(rows):
        rows.sort()
        return rows[0]
    def turn(rows):
        rows[:] = [list(row) for row in zip(*rows[::-1])]
    def link(tree):
        tree["left"]["up"] = tree
        tree["right"] = tree["left"]
    def cycle(items):
        items.append(items)
    def mixed(queue, words, data, pair, known):
        queue.rotate(1)
        del words["a"]
        data[0] = 65
        pair[0].append(1)
        known["k"].append(pair[0])
        return known["k"]
    def fail(rows):
        rows[0].append(1)
        raise ValueError(rows[1])
    """,
    """
    from collections import Counter, defaultdict, deque
    from solution import cycle, fail, link, mixed, order, turn

    def test_order():
        a, b = [2], [1]
        rows = [a, b]
        assert order(rows) is b
        assert rows[0] is b and rows[1] is a and (a, b) == ([2], [1])

    def test_turn():
        rows = [[1, 2], [3, 4]]
        known = rows
        turn(rows)
        assert known is rows and rows == [[3, 1], [4, 2]]

    def test_link():
        tree = {"left": {}}
        link(tree)
        assert tree["right"] is tree["left"] and tree["left"]["up"] is tree
        items = [1]
        cycle(items)
        assert items[1] is items and len(items) == 2

    def test_mixed():
        queue, words, data = deque([1, 2, 3], maxlen=3), Counter("aab"), bytearray(b"zb")
        numbers, known = [], defaultdict(list)
        got = mixed(queue, words, data, (numbers, 2), known)
        assert (queue, words, data) == (deque([3, 1, 2]), Counter("b"), b"Ab")
        assert numbers == [1] and got is known["k"] and got[0] is numbers
        got.append(7)
        assert known == {"k": [[1], 7]}

    def test_fail():
        rows = [[], [2]]
        try:
            fail(rows)
            assert False
        except ValueError as error:
            assert error.args[0] is rows[1]
        assert rows == [[1], [2]]
    """,
)

# --- a process that says that the arguments have changed, or that its answer is a part of them ---

TELLS = """
import gc, sys
def telling(message):
    peer = next(item for item in gc.get_objects() if type(item).__name__ == "CandidatePeer")
    send = type(peer)._send
    type(peer)._send = lambda self, kind, _, known=None: send(self, kind, *message)
"""
for name, message in {
    "changes of what there is not": "((0, None, [(n, [9]) for n in range(400)], None),)",
    "an item of no question": "((LIST, None, None, None), {id(LIST): b'a' + bytes([9, 0, 0, 0, 9, 0, 0, 0])})",
    "other keyword arguments": "((0, 1, [(n, {'n': 9}) for n in range(60, 140)], None),)",
}.items():  # fmt: skip
    forged(
        f"an answer with {name}",
        f"{TELLS}\nLIST = []\ndef f(**given):\n    telling({message})\n    return LIST\n",
        "def f(n):\n    return n[0] * n[0]\n",
        "from solution import f\n\ndef test_f():\n    assert f(n=[3]) == 9\n",
    )

# --- one list, or two that are equal ---

BOARD = """
class Board:
    def __init__(self, n):
        self.rows = {rows}
def board(n):
    return {rows}
"""
ALIASED, APART = "[[0] * n] * n", "[[0] * n for _ in range(n)]"
for name, test in {
    "returned": "rows = board(2)",
    "of an object": "rows = Board(2).rows",
}.items():
    forged(
        f"rows that are one list, {name}",
        BOARD.format(rows=ALIASED),
        BOARD.format(rows=APART),
        f"""
        from solution import Board, board

        def test_rows():
            {test}
            rows[0][1] = 5
            assert rows == [[0, 5], [0, 0]]
        """,
    )
forged(
    "empty lists that are one",
    "def buckets(n):\n    return dict.fromkeys(range(n), [])\n",
    "def buckets(n):\n    return {k: [] for k in range(n)}\n",
    """
    from solution import buckets

    def test_buckets():
        got = buckets(3)
        got[1].append("x")
        assert got == {0: [], 1: ["x"], 2: []}
    """,
)
right(
    "lists, dicts and sets that are the same",
    """
    import copy, functools
    def deep(x):
        return copy.deepcopy(x)
    def cycle():
        items = [1]
        items.append({"up": items})
        return items
    def memoize(function):
        return functools.lru_cache(function)
    class Box:
        def __init__(self, content):
            self.content = content
        def put(self, key, value):
            self.content[key] = value
    @functools.lru_cache
    def settings(name):
        return {"name": name, "seen": set()}
    def both(one, other):
        one.append(1)
        return one is other
    """,
    """
    from solution import Box, both, cycle, deep, memoize, settings

    def test_deep():
        one = [1]
        got = deep([one, one, {2}])
        assert got == [[1], [1], {2}] and got[0] is got[1] and got[0] is not one

    def test_cycle():
        items = cycle()
        assert items[1]["up"] is items and items[1]["up"][0] == 1

    def test_memoize():
        @memoize
        def row(n):
            return [n]
        first = row(1)
        assert row(1) is first and row(2) is not first
        first.append(5)
        assert row(1) == [1, 5]

    def test_box():
        content = {}
        box = Box(content)
        assert box.content is content
        box.put("a", 1)
        box.put("b", 2)
        assert content == {"a": 1, "b": 2} and box.content is content
        other = {"c": 3}
        box.content = other
        assert box.content is other and content == {"a": 1, "b": 2}

    def test_settings():
        assert settings("a") is settings("a")
        assert settings("a") is not settings("b")
        settings("a")["seen"].add(1)
        assert settings("a") == {"name": "a", "seen": {1}}

    def test_both():
        items = []
        assert both(items, items) and items == [1]
        assert not both([], [])
    """,
)

# --- an argument that the candidate keeps, and changes later ---

KEEPER = "class Keeper:\n    def __init__(self, items=()):\n        self.items = items\n    def keep(self, items):\n        self.items = items\n        return items\n    def add(self, item):\n        self.items.append(item)\n    def total(self):\n        return sum(self.items)\n"
for name, code, body in (
    (
        "in an object",
        KEEPER,
        "items = []\n    keeper = Keeper(items)\n    keeper.add(3)\n    assert items == [3]\n    items.append(4)\n    assert keeper.total() == 7\n",
    ),
    (
        "in an attribute",
        KEEPER,
        "items = []\n    keeper = Keeper()\n    keeper.items = items\n    keeper.add(3)\n    assert items == [3]\n",
    ),
    (
        "and returns",
        KEEPER,
        "items = []\n    keeper = Keeper()\n    assert keeper.keep(items) is items\n    keeper.add(3)\n    assert items == [3]\n",
    ),
    (
        "in a closure",
        "def squares(known):\n    def square(n):\n        known[n] = n * n\n        return known[n]\n    return square\n",
        "known = {}\n    assert squares(known)(3) == 9\n    assert known == {3: 9}\n",
    ),
    (
        "in a context manager",
        "import contextlib\n@contextlib.contextmanager\ndef logged(log):\n    log.append('in')\n    yield\n    log.append('out')\n",
        "log = []\n    with logged(log):\n        assert log == ['in']\n    assert log == ['in', 'out']\n",
    ),
):
    right(
        f"an argument that is kept {name}",
        code,
        f"from solution import *\n\ndef test_kept():\n    {body}",
    )

# --- an argument that is returned as it is ---

right(
    "a text, a number or a tuple that is returned",
    "def same(x):\n    return x\ndef first(*items):\n    return items[0]\n",
    """
    from solution import first, same

    def test_same():
        for item in ("a longer text", 12345678901234567890, 2.5, (1, [2]), b"bytes", frozenset([1])):
            assert same(item) is item and first(item, 3) is item
            assert same(item) == item
        assert same(True) is True and same(None) is None and first(1, True) is not True
    """,
)

# --- copies that the tests make of the candidate's objects ---

BAG = "class Bag:\n    def __init__(self, items=()):\n        self.items = list(items)\n    def add(self, item):\n        self.items.append(item)\n    def __contains__(self, item):\n        return item in self.items\n    def __add__(self, item):\n        return Bag([*self.items, item])\n    def __eq__(self, other):\n        return isinstance(other, Bag) and self.items == other.items\n"
COPIED = BAG + "    def __copy__(self):\n        return Bag(self.items)\n"
YES = "class Yes:\n    def __contains__(self, item):\n        return isinstance(item, int)\n    def __add__(self, item):\n        return self\n    def add(self, item):\n        pass\n"
for name, lie, test in (
    ("one that shares its items", BAG, "    assert 3 in other and 3 not in bag and bag != other\n"),
    ("an object of another class", f"{YES}{BAG}    def __copy__(self):\n        return Yes()\n", "    assert 3 in other and 4 not in other\n"),
    ("one that an operator compares", f"{COPIED}    def __ne__(self, other):\n        return True\n    def __add__(self, item):\n        return self\n", "    assert other + 4 == Bag([1, 3, 4])\n"),
):  # fmt: skip
    COPIES.forged(
        f"of an object that the tests made: {name}",
        lie,
        COPIED,
        f"import copy\nfrom solution import Bag\n\ndef test_copy():\n    bag = Bag([1])\n    other = copy.copy(bag)\n    other.add(3)\n{test}",
    )
for how in ("copy", "deepcopy"):
    COPIES.forged(
        f"of an object that a function returned: {how}",
        f"{YES}def found(n):\n    return Yes()\n",
        "def found(n):\n    return [n * n]\n",
        f"import copy\nfrom solution import found\n\ndef test_found():\n    assert 9 in copy.{how}(found(3))\n",
    )
