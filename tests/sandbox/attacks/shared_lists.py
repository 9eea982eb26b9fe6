"""A list that the candidate hands to the tests, and that either of them changes later."""

# ruff: noqa: E501 - programs within strings are as wide as they are
from __future__ import annotations

from attacks.program import Topic

__all__ = ["SHARED_LISTS"]

SHARED_LISTS = Topic("shared list")
forged, right = SHARED_LISTS.forged, SHARED_LISTS.right

# --- one list, handed over each time and changed in between: the copy is missing ---

WALK = """
def walk(items, emit):
    path = []
    def step(rest):
        if not rest:
            {emit}
        for n, item in enumerate(rest):
            path.append(item)
            step(rest[:n] + rest[n + 1:])
            path.pop()
    step(items)
"""
SEEN = "assert seen == [[1, 2], [2, 1]]"
for name, lie, honest, body in (
    ("a method of a list", "emit(path)", "emit(path[:])", f"seen = []\n    walk([1, 2], seen.append)\n    {SEEN}"),
    ("a function", "emit(path)", "emit(list(path))", f"seen = []\n    def emit(found):\n        seen.append(found)\n    walk([1, 2], emit)\n    {SEEN}"),
    ("in a tuple", "emit((len(path), path))", "emit((len(path), path[:]))", "seen = []\n    walk([1, 2], seen.append)\n    assert seen == [(2, [1, 2]), (2, [2, 1])]"),
    ("in a dict", "emit({'path': path})", "emit({'path': path[:]})", "seen = []\n    walk([1, 2], seen.append)\n    assert seen == [{'path': [1, 2]}, {'path': [2, 1]}]"),
    ("by name", "emit(path=path)", "emit(path=path[:])", "seen = []\n    walk([1, 2], lambda path: seen.append(path))\n    assert seen == [[1, 2], [2, 1]]"),
    ("a mock", "emit(path)", "emit(path[:])", "from unittest.mock import Mock, call\n    emit = Mock()\n    walk([1, 2], emit)\n    assert emit.call_args_list == [call([1, 2]), call([2, 1])]"),
    ("a class", "emit(path)", "emit(path[:])", "made = []\n    class Path:\n        def __init__(self, steps):\n            self.steps = steps\n            made.append(self)\n    walk([1, 2], Path)\n    assert [path.steps for path in made] == [[1, 2], [2, 1]]"),
    ("an item", "emit[tuple(path)] = path", "emit[tuple(path)] = path[:]", "class Paths:\n        def __init__(self):\n            self.known = {}\n        def __setitem__(self, key, path):\n            self.known[key] = path\n    paths = Paths()\n    walk([1, 2], paths)\n    assert paths.known == {(1, 2): [1, 2], (2, 1): [2, 1]}"),
    ("an attribute", "emit.last = path", "emit.last = path[:]", "class Walker:\n        last = None\n    walker = Walker()\n    walk([1, 2], walker)\n    assert walker.last == [2, 1]"),
    ("a generator", "emit.send(path)", "emit.send(path[:])", f"seen = []\n    def take():\n        while True:\n            seen.append((yield))\n    taker = take()\n    next(taker)\n    walk([1, 2], taker)\n    {SEEN}"),
    ("an exception that is caught", "try:\n                emit(path)\n            except KeyError:\n                pass", "try:\n                emit(path[:])\n            except KeyError:\n                pass", f"seen = []\n    def emit(found):\n        seen.append(found)\n        raise KeyError(len(seen))\n    walk([1, 2], emit)\n    {SEEN}"),
):  # fmt: skip
    forged(
        f"one for each step, {name}",
        WALK.format(emit=lie),
        WALK.format(emit=honest),
        f"from solution import walk\n\ndef test_walk():\n    {body}\n",
    )
BOARD = "def fill(n, show):\n    board = [[0] * n for _ in range(n)]\n    for k in range(n):\n        board[k][k] = 1\n        show({shown})\n"
forged(
    "rows that are one board's, a copy of the outer list alone",
    BOARD.format(shown="board[:]"),
    BOARD.format(shown="[row[:] for row in board]"),
    """
    from solution import fill

    def test_fill():
        seen = []
        fill(2, seen.append)
        assert seen == [[[1, 0], [0, 0]], [[1, 0], [0, 1]]]
    """,
)
YIELD = "def growing(n):\n    items = []\n    for k in range(n):\n        items.append(k)\n        yield {items}\n"
for name, test in {
    "a loop": "seen = []\n    for items in growing(3):\n        seen.append(items)\n    assert seen == [[0], [0, 1], [0, 1, 2]]",
    "list": "assert list(growing(3)) == [[0], [0, 1], [0, 1, 2]]",
}.items():
    forged(
        f"one that a generator yields each time, {name}",
        YIELD.format(items="items"),
        YIELD.format(items="items[:]"),
        f"from solution import growing\n\ndef test_growing():\n    {test}\n",
    )
ASYNC = "import asyncio\nasync def stream(send):\n    batch = []\n    for k in range(3):\n        batch.append(k)\n        await send({batch})\n        await asyncio.sleep(0)\n"
forged(
    "one that a coroutine sends",
    ASYNC.format(batch="batch"),
    ASYNC.format(batch="batch[:]"),
    """
    import asyncio
    from solution import stream

    def test_stream():
        seen = []
        async def send(batch):
            seen.append(batch)
        asyncio.run(stream(send))
        assert seen == [[0], [0, 1], [0, 1, 2]]
    """,
)
THREAD = "import threading\ndef run(report, done):\n    lines = []\n    report({lines})\n    def work():\n        lines.append('late')\n        done()\n    threading.Thread(target=work).start()\n"
forged(
    "one that a thread changes",
    THREAD.format(lines="lines"),
    THREAD.format(lines="lines[:]"),
    """
    import threading
    from solution import run

    def test_run():
        seen, event = [], threading.Event()
        run(seen.append, event.set)
        assert event.wait(5)
        assert seen == [[]]
    """,
)

# --- one list that both use ---

right(
    "a log that the candidate registers",
    """
    LOG = []
    def setup(register):
        register(log=LOG)
    def work(n):
        LOG.append(n)
        return len(LOG)
    """,
    """
    from solution import setup, work

    def test_log():
        known = {}
        setup(known.update)
        assert (work(1), work(2)) == (1, 2)
        assert known["log"] == [1, 2]
        known["log"].append(3)
        assert work(4) == 4
        assert known["log"] == [1, 2, 3, 4]
        known["log"].clear()
        assert work(5) == 1
        assert known == {"log": [5]}
    """,
)
right(
    "the same one, twice",
    """
    def twice(use):
        items, more = [1], {"x": [2]}
        use(items, more["x"])
        items.append(3)
        use(items, more=more)
        use(items[:], more["x"])
        return items
    """,
    """
    from unittest.mock import Mock, call
    from solution import twice

    def test_twice():
        seen = []
        items = twice(lambda items, part=None, more=None: seen.append((items, part or more["x"])))
        assert seen[0][0] is seen[1][0] is items and seen[2][0] is not items
        assert seen[0][1] is seen[1][1] is seen[2][1]
        assert [first for first, _ in seen] == [[1, 3]] * 3

    def test_mock():
        use = Mock()
        twice(use)
        assert use.call_args_list[0] == call([1, 3], [2])
        first, second, _ = use.call_args_list
        assert second.kwargs["more"]["x"] is first.args[1]
    """,
)
right(
    "one that both change, one after the other",
    """
    class Queue:
        def __init__(self):
            self.items = []
        def each(self, use):
            for n in range(3):
                self.items.append(n)
                use(self.items)
        def is_own(self, items):
            return items is self.items
    class Grid:
        def __init__(self):
            self.rows = [[1], [2]]
        def turn(self):
            self.rows.reverse()
        def put(self, item):
            self.rows[0].append(item)
    """,
    """
    from solution import Grid, Queue

    def test_queue():
        queue = Queue()
        items, sizes = queue.items, []
        def use(given):
            assert given is items
            sizes.append(len(items))
            items.append("t")
        queue.each(use)
        assert sizes == [1, 3, 5] and items == [0, "t", 1, "t", 2, "t"]
        assert queue.is_own(items) and not queue.is_own(items[:])

    def test_grid():
        grid = Grid()
        rows = grid.rows
        one, two = rows
        grid.turn()
        assert rows[0] is two and rows[1] is one
        grid.put(5)
        assert two == [2, 5] and one == [1]
        rows.append(one)
        grid.turn()
        grid.put(6)
        assert rows == [[1, 6], [1, 6], [2, 5]] and rows[0] is rows[1]
    """,
)
right(
    "of other kinds",
    """
    from collections import Counter, OrderedDict, defaultdict, deque
    def change(use):
        words, last, groups, order = Counter(), deque([], 2), defaultdict(list), OrderedDict()
        data, known = bytearray(), set()
        use(words, last, groups, order, data, known)
        words["x"] += 1
        last.extend([1, 2, 3])
        groups["k"].append(1)
        order["z"], order["a"] = 1, 2
        order.move_to_end("z")
        data.extend(b"xy")
        known.add(3)
    """,
    """
    from collections import Counter, OrderedDict, deque
    from solution import change

    def test_change():
        seen = []
        change(lambda *given: seen.extend(given))
        order = OrderedDict(a=2, z=1)
        assert seen == [Counter("x"), deque([2, 3], 2), {"k": [1]}, order, bytearray(b"xy"), {3}]
    """,
)
right(
    "of the tests, that the candidate keeps although it returns another",
    """
    class Keeper:
        def keep(self, items):
            self.items = items
            return []
        def keep_pair(self, pair):
            self.pair, self.items = pair, pair[0]
        def add(self, item):
            self.items.append(item)
            if item < 0:
                raise ValueError(item)
    """,
    """
    from solution import Keeper

    def test_keeper():
        keeper, one, two = Keeper(), [], []
        keeper.keep(one)
        keeper.add(1)
        keeper.keep_pair((two, 1))
        keeper.add(2)
        try:
            keeper.add(-1)
            assert False
        except ValueError:
            pass
        assert (one, two) == ([1], [2, -1])
    """,
)
right(
    "many, each of them kept",
    """
    import itertools
    def orders(items, emit):
        known = []
        for order in itertools.permutations(items):
            known.append(list(order))
            emit(known[-1])
        return known
    """,
    """
    from solution import orders

    def test_orders():
        seen = []
        assert orders(range(5), seen.append) == seen
        assert len(set(map(tuple, seen))) == 120
    """,
)

# --- a list of the tests, handed back to them while the candidate still works on it ---

SORT = "def sort(items, show):\n    for end in range(len(items), 1, -1):\n        for n in range(end - 1):\n            if items[n] > items[n + 1]:\n                items[n], items[n + 1] = items[n + 1], items[n]\n                show({items})\n"
forged(
    "an argument, handed to a function of the tests at each step",
    SORT.format(items="items"),
    SORT.format(items="items[:]"),
    """
    from solution import sort

    def test_sort():
        seen = []
        sort([3, 2, 1], seen.append)
        assert seen == [[2, 3, 1], [2, 1, 3], [1, 2, 3]]
    """,
)
right(
    "an argument that a function of the tests gets, looks at and changes",
    """
    def walk(tree, visit):
        visit(tree)
        for child in tree["children"]:
            walk(child, visit)
    def count(items, step):
        for n in range(3):
            items.append(n)
            step()
    def wide(rows, visit):
        rows.reverse()
        for row in rows:
            visit(row)
    """,
    """
    from solution import count, walk, wide

    def test_walk():
        leaf = {"children": []}
        tree = {"children": [leaf, {"children": []}]}
        seen = []
        def visit(node):
            node["seen"] = len(seen)
            seen.append(node)
        walk(tree, visit)
        assert seen[0] is tree and seen[1] is leaf
        assert [node["seen"] for node in seen] == [0, 1, 2] and tree["children"][1]["seen"] == 2

    def test_count():
        items, lengths = [], []
        count(items, lambda: lengths.append(len(items)) or items.append("t"))
        assert lengths == [1, 3, 5] and items == [0, "t", 1, "t", 2, "t"]

    def test_wide():
        rows, seen = [[1], [2]], []
        one, two = rows
        wide(rows, seen.append)
        assert seen[0] is two and seen[1] is one and rows == [two, one]
    """,
)

# --- one that is only in another, or comes another way than as an argument or a value ---

PAIRS = {
    "moved out of an argument": (
        "class Box:\n    def take(self, rows):\n        self.row = {0}\n    def add(self, item):\n        self.row.append(item)\n",
        "rows.pop()",
        "rows.pop()[:]",
        "row = [2]\n    rows = [[1], row]\n    box = Box()\n    box.take(rows)\n    box.add(3)\n    assert rows == [[1]] and row == [2]",
    ),
    "moved out of an argument by the tests": (
        "def each(use):\n    row = [2]\n    use([[1], {0}])\n    row.append(3)\n    use([[4], row])\n",
        "row",
        "row[:]",
        "seen = []\n    def use(rows):\n        seen.append(rows.pop())\n    each(use)\n    assert seen == [[2], [2, 3]]",
    ),
    "a new one, put into an argument": (
        "class Log:\n    def open(self, lines):\n        self.line = []\n        lines.append({0})\n    def write(self, word):\n        self.line.append(word)\n",
        "self.line",
        "self.line[:]",
        "lines = []\n    log = Log()\n    log.open(lines)\n    log.write('x')\n    assert lines == [[]]",
    ),
    "in a tuple that the tests keep": (
        "X = [1]\ndef pairs():\n    return [({0}, 'x')]\ndef add(n):\n    X.append(n)\n    return len(X)\n",
        "X",
        "X[:]",
        "pair = pairs()[0]\n    assert (add(2), add(3)) == (2, 3)\n    assert pair == ([1], 'x')",
    ),
    "one that a function of the tests returns": (
        "def total(numbers, more):\n    found = {0}\n    found.append(more)\n    return sum(found)\n",
        "numbers()",
        "list(numbers())",
        "numbers = [1, 2]\n    assert total(lambda: numbers, 3) == 6 == total(lambda: numbers, 3)\n    assert numbers == [1, 2]",
    ),
    "one that an object of the tests has": (
        "def order(basket):\n    items = {0}\n    items.sort()\n    return items\n",
        "basket.items",
        "basket.items[:]",
        "class Basket:\n        def __init__(self):\n            self.items = [2, 1]\n    basket = Basket()\n    assert order(basket) == [1, 2]\n    assert basket.items == [2, 1]",
    ),
    "one that an exception has": (
        "class Invalid(Exception):\n    def __init__(self, found):\n        super().__init__(found)\n        self.found = found\nclass Checker:\n    def __init__(self):\n        self.found = []\n    def check(self, item):\n        self.found.append(item)\n        raise Invalid({0})\n",
        "self.found",
        "self.found[:]",
        "checker, errors = Checker(), []\n    for n in range(2):\n        try:\n            checker.check(n)\n        except Invalid as error:\n            errors.append(error)\n    assert [error.found for error in errors] == [[0], [0, 1]] == [error.args[0] for error in errors]",
    ),
    "one that an exception of the tests has": (
        "def run(step):\n    try:\n        step()\n    except ValueError as error:\n        found = {0}\n        found.append('seen')\n        return found\n",
        "error.args[0]",
        "error.args[0][:]",
        "items = [1]\n    def step():\n        raise ValueError(items)\n    assert run(step) == [1, 'seen']\n    assert items == [1]",
    ),
    "one that a handed exception has": (
        "def report(use):\n    lines = []\n    use(ValueError({0}))\n    lines.append('late')\n",
        "lines",
        "lines[:]",
        "seen = []\n    report(seen.append)\n    assert seen[0].args == ([],)",
    ),
    "an argument that the tests look at meanwhile": (
        "def fill(items, step):\n    for n in range(3):\n        {0}\n        step()\n    items[:] = range(3)\n",
        "items.append(n)",
        "pass",
        "items, sizes = [], []\n    fill(items, lambda: sizes.append(len(items)))\n    assert sizes == [0, 0, 0] and items == [0, 1, 2]",
    ),
    "one of a hundred": (
        "def rows(n, emit):\n    known = [[k] for k in range(n)]\n    for row in known:\n        emit({0})\n    for row in known:\n        row.append('late')\n",
        "row",
        "row[:]",
        "seen = []\n    rows(100, seen.append)\n    assert seen == [[k] for k in range(100)]",
    ),
    "a long one": (
        "def numbers(n, emit):\n    known = list(range(n))\n    emit({0})\n    known.append('late')\n",
        "known",
        "known[:]",
        "seen = []\n    numbers(20_000, seen.append)\n    assert seen == [list(range(20_000))]",
    ),
}  # fmt: skip
for name, (code, lie, honest, body) in PAIRS.items():
    forged(
        name,
        code.format(lie),
        code.format(honest),
        f"from solution import *\n\ndef test_shared():\n    {body}\n",
    )
forged(
    "a part of an array",
    "class Grid:\n    def __init__(self, cells):\n        self.row = cells[0]\n    def add(self):\n        self.row += 1\n",
    "class Grid:\n    def __init__(self, cells):\n        self.row = cells[0].copy()\n    def add(self):\n        self.row += 1\n",
    """
    import numpy
    from solution import Grid

    def test_grid():
        cells = numpy.zeros((2, 2))
        Grid(cells).add()
        assert cells.tolist() == [[0, 0], [0, 0]]
    """,
    needs=("numpy",),
)
right(
    "with keys that are asked for their hash",
    """
    import dataclasses
    @dataclasses.dataclass(frozen=True)
    class Key:
        n: int
    class Memo:
        def __init__(self):
            self.known, self.keys = {}, set()
        def add(self, n):
            self.known[Key(n)] = n
            self.keys.add(Key(n))
            return len(self.known), len(self.keys)
    """,
    """
    from solution import Key, Memo

    def test_memo():
        memo = Memo()
        known, keys = memo.known, memo.keys
        for n in range(1, 4):
            assert memo.add(n) == (n, n)
            assert len(known) == len(keys) == n
        assert known[Key(2)] == 2 and Key(3) in keys
        known[Key(4)] = 4
        keys.add(Key(5))
        assert memo.add(6) == (5, 5)
        assert list(known.values()) == [1, 2, 3, 4, 6]
    """,
)
right(
    "that either changes while the other iterates over it",
    """
    from collections import deque
    KNOWN = {n: n for n in range(6)}
    del KNOWN[0], KNOWN[3]
    LAST = deque([1, 2])
    def known():
        return KNOWN
    def last():
        return LAST
    def raise_known(n):
        KNOWN[n] += 10
    def raise_last(n):
        LAST[n] += 10
    def each(change):
        found = []
        for n in KNOWN:
            change(n)
            found.append(KNOWN[n])
        return found
    """,
    """
    from solution import each, known, last, raise_known, raise_last

    def test_dict():
        seen = known()
        seen.pop(1)
        for n in seen:
            raise_known(n)
        assert list(seen.items()) == [(2, 12), (4, 14), (5, 15)]
        assert each(lambda n: seen.update({n: n})) == [2, 4, 5]

    def test_deque():
        seen = last()
        for n, _ in enumerate(seen):
            raise_last(n)
        assert list(seen) == [11, 12]
    """,
)
right(
    "in a long loop",
    """
    class Log:
        def __init__(self):
            self.rows, self.count = [], 0
        def add(self, n):
            self.rows.append(n)
            self.count += 1
            return n
    def put(rows, n):
        rows.append(n)
        return len(rows)
    """,
    """
    from solution import Log, put

    def test_argument():
        rows = []
        for n in range(200):
            assert put(rows, n) == n + 1
        assert rows == list(range(200))

    def test_argument_that_is_looked_at():
        rows = []
        for n in range(200):
            assert put(rows, n) == n + 1
            assert rows[-1] == n

    def test_what_the_candidate_has():
        log = Log()
        rows = log.rows
        for n in range(200):
            assert log.add(n) == n
            assert rows[-1] == n
        for n in range(200):
            assert log.add(n) == n
            assert log.count == n + 201
    """,
)
right(
    "that is long, and changed at each step",
    "def each(items, change):\n    for n, item in enumerate(items):\n        items[n] = change(item)\n",
    """
    from solution import each

    def test_each():
        items = [*range(1000)]
        each(items, lambda item: item + 1)
        assert items == [*range(1, 1001)]
    """,
)
right(
    "that a copied iterator yields",
    "def growing(n):\n    items = []\n    for k in range(n):\n        items.append(k)\n        yield items\n",
    """
    import itertools
    from solution import growing

    def test_tee():
        one, other = itertools.tee(growing(3))
        assert list(zip(one, other)) == [([0, 1, 2], [0, 1, 2])] * 3
    """,
)

# --- a process that names lists which it never got ---

SPEAKS = """
import gc
EMPTY = b"l" + bytes(4)
def number(n):
    return n.to_bytes(4, "little")
def items(tag, *parts):
    return tag + number(len(parts)) + b"".join(parts)
def loan(n, contents=EMPTY, changed=1):
    return b"m" + number(n) + bytes([changed]) + contents
def speak(value, loans=b"N"):
    peer = next(item for item in gc.get_objects() if type(item).__name__ == "CandidatePeer")
    send = type(peer)._send
    def instead(self, *_):
        type(peer)._send = send
        payload = items(b"t", value, b"N", b"N", b"N", loans)
        self._connection.sendall(b"A" + number(len(payload)) + payload)
    type(peer)._send = instead
def all_loans(contents=EMPTY, ended=b"t" + bytes(4)):
    return items(b"t", items(b"t", *(loan(n, contents) for n in range(64))), ended)
"""
ENDED = "items(b't', *(b'i' + number(1) + bytes([n]) for n in range(64)))"
for name, lie in {
    "all emptied": "speak(EMPTY, all_loans())",
    "all made dicts": "speak(EMPTY, all_loans(b'd' + bytes(4)))",
    "all made tuples": "speak(EMPTY, all_loans(b't' + bytes(4)))",
    "all emptied and ended": f"speak(EMPTY, all_loans(ended={ENDED}))",
    "all ended, and all emptied": f"speak(EMPTY, items(b't', b't' + bytes(4), {ENDED}))\n    return order",
    "ends of no numbers": "speak(EMPTY, items(b't', b't' + bytes(4), items(b't', EMPTY, b'N', b'T')))",
    "one that is in itself": "speak(loan(7, items(b'l', loan(7))))",
    "one that is a list and a dict": "speak(items(b'l', loan(7), loan(7, b'd' + bytes(4))))",
    "one as a key": "speak(items(b'd', loan(7)) + b'N')",
    "no list of loans": "speak(EMPTY, EMPTY)",
}.items():  # fmt: skip
    forged(
        f"loans: {name}",
        f"{SPEAKS}\ndef order(numbers):\n    {lie}\n",
        "def order(numbers):\n    return sorted(numbers)\n",
        """
        from solution import order

        def test_order():
            wanted, more = [1, 2, 3], [[3], [4]]
            for numbers in ([3, 1, 2], [2, 3, 1]):
                assert order(numbers) == wanted
            assert order(more) == more == [[3], [4]]
        """,
    )

# --- views of a dict ---

VIEWED = """
from collections import Counter, OrderedDict, defaultdict
class Names:
    def __init__(self, kind):
        self._found = {"dict": {}, "ordered": OrderedDict(), "counter": Counter(), "default": defaultdict(int)}[kind]
    def keys(self):
        return self._found.keys()
    def shown(self):
        return [(self._found.values(), {"all": self._found.items()})]
    def add(self, name, number):
        ADD
    def first(self, view):
        self._view = view
    def again(self):
        return list(self._view)
"""
forged(
    "views of a dict that is changed later",
    VIEWED.replace("ADD", "self._found['a'] = 1"),
    VIEWED.replace("ADD", "self._found[name] = number"),
    """
    from solution import Names

    def test_views():
        for kind in ("dict", "ordered", "counter", "default"):
            names = Names(kind)
            keys = names.keys()
            values, pairs = names.shown()[0]
            names.add("a", 1)
            assert list(keys) == ["a"] and list(values) == [1]
            names.add("b", 2)
            assert "b" in keys and len(keys) == 2 and 2 in values
            assert list(pairs["all"]) == [("a", 1), ("b", 2)]
            own = {1: 2}
            names.first(own.keys())
            own[3] = 4
            assert names.again() == [1, 3]
    """,
)
for name, given, size in (
    ("its keys", "wanted.keys()", 1),
    ("its items, in a list", "[{'wanted': wanted.items()}]", 1),
    ("its values, and it is large", "wanted.values()", 5 << 20),
):
    forged(
        f"a dict of which the candidate got {name}",
        """
        import gc
        kept = []
        def keep(given):
            kept[:] = gc.get_referents(given if type(given) is not list else given[0]["wanted"])
            kept[0].update(dict.fromkeys(kept[0], 0))
        def square(n):
            kept[0].update(dict.fromkeys(kept[0], 0))
            return 0
        """,
        "kept = []\ndef keep(given):\n    kept.append(given)\ndef square(n):\n    return n * n\n",
        f"""
        from solution import keep, square

        def test_squares():
            wanted = {{-1: "x" * {size}, 2: 4, 3: 9}}
            keep({given})
            for n in list(wanted)[-2:]:
                assert square(n) == wanted[n]
        """,
    )
right(
    "a dict that the candidate got, and views of it",
    """
    def put(both, name):
        keys, found = both
        found[name] = len(keys)
        return sorted(keys)
    def fill(values):
        for value in values:
            value.append(1)
    def names(keys):
        return sorted(keys)
    """,
    """
    from solution import fill, names, put

    def test_both():
        found = {}
        assert names(found.keys()) == []
        assert put((found.keys(), found), "a") == ["a"] and found == {"a": 0}
        assert put([found.keys(), found], "b") == ["a", "b"] and found == {"a": 0, "b": 1}
        lists = {"a": [], "b": []}
        fill(lists.values())
        assert lists == {"a": [1], "b": [1]}
    """,
)
