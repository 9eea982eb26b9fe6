"""Functions of the tests that assert something, given in any way, and candidates that run none."""

# ruff: noqa: E501 - programs within strings are as wide as they are
from __future__ import annotations

from attacks.program import SQUARE, ZERO, Topic

__all__ = ["UNRUN_CHECKS"]

UNRUN_CHECKS = Topic("not run")
right, left_out = UNRUN_CHECKS.right, UNRUN_CHECKS.left_out

# --- in lists, in objects, as attributes ---

TEST = "import contextlib, functools, queue, types, unittest\nfrom dataclasses import dataclass\nfrom unittest.mock import Mock\nfrom solution import f, run\n\ndef same(n):\n    assert f(n) == n * n\ndef make(n):\n    def again():\n        same(n)\n    return again\n@dataclass\nclass Job:\n    n: int\n    work: object\nclass Fake:\n    def work(self, n):\n        assert f(n) == n * n\nclass Slots:\n    __slots__ = ('work',)\n    def __init__(self, work):\n        self.work = work\nclass Seen:\n    @property\n    def seen(self):\n        assert f(3) == 9\n@contextlib.contextmanager\ndef around(n):\n    yield\n    assert f(n) == n * n\n\ndef test_f():\n    assert f(0) == 0\n    {call}\n"
ALL = "def run(given):\n    return [one() for one in given]\n"
NONE = "def run(given, *a):\n    return [None] * 3\n"
FIRST = "def run(given):\n    return [given[0]() for one in given]\n"
WORKS = "def run(given):\n    return given.work(3)\n"
DICT = "def run(given):\n    return [one() for group in given['a'] for one in group.values()]\n"
for name, lie, honest, call in (
    ("a list", NONE, ALL, "run([lambda: same(0), lambda: same(3)])"),
    ("a list, and only the first is run", FIRST, ALL, "run([make(n) for n in range(4)])"),
    ("a tuple", NONE, ALL, "run((make(0), make(3)))"),
    ("a set", NONE, ALL, "run(frozenset([make(3)]))"),
    ("a dict in a list in a dict", NONE, DICT, "run({'a': [{'b': make(3)}]})"),
    ("pairs", NONE, "def run(given):\n    return [one(n) for n, one in given]\n", "run([(0, same), (3, same)])"),
    ("a partial function", NONE, ALL, "run([functools.partial(same, 3)])"),
    ("a method", NONE, "def run(given):\n    given(3)\n", "run(Fake().work)"),
    ("a namespace", NONE, WORKS, "run(types.SimpleNamespace(work=same))"),
    ("a dataclass", NONE, "def run(given):\n    return given.work(given.n)\n", "run(Job(3, same))"),
    ("a list of a dataclass", NONE, "def run(given):\n    return given.work[0]()\n", "run(Job(3, [make(3)]))"),
    ("a class of the tests", NONE, WORKS, "run(Fake())"),
    ("a mock", NONE, WORKS, "run(Mock(work=Mock(side_effect=same)))"),
    ("what a callback returns", "def run(given):\n    given()\n", "def run(given):\n    given()()\n", "run(lambda: make(3))"),
    ("an argument alone", NONE, "def run(given, n):\n    given(n)\n", "run(same, 3)"),
    ("an attribute that the tests set", "class Button:\n    def press(self):\n        pass\ndef run():\n    return Button()\n", "class Button:\n    def press(self):\n        self.work(3)\ndef run():\n    return Button()\n", "button = run()\n    button.work = same\n    button.press()"),
    ("an object that runs it", "class Task:\n    def __init__(self, work):\n        pass\n    def run(self, n):\n        pass\nrun = Task\n", "class Task:\n    def __init__(self, work):\n        self.run = work\nrun = Task\n", "run(same).run(3)"),
    ("a mapping", NONE, "def run(given):\n    return given['a']()\n", "run(types.MappingProxyType({'a': make(3)}))"),
    ("an iterator", NONE, ALL, "run(iter([make(3)]))"),
    ("an iterator that runs it", NONE, "def run(given):\n    return [*given]\n", "run(map(same, [3]))"),
    ("a generator expression", NONE, "def run(given):\n    return [*given]\n", "run(same(n) for n in [3])"),
    ("slots", NONE, WORKS, "run(Slots(same))"),
    ("a property", NONE, "def run(given):\n    return given.seen\n", "run(Seen())"),
    ("a context manager", NONE, "def run(given):\n    with given:\n        pass\n", "run(around(3))"),
    ("a queue", NONE, "def run(given):\n    return given.get()()\n", "tasks = queue.Queue()\n    tasks.put(make(3))\n    run(tasks)"),
    ("an assertion itself", NONE, "def run(given):\n    return given()\n", "run(functools.partial(unittest.TestCase().assertEqual, f(3), 9))"),
    ("a generator", NONE, "def run(given):\n    return [*given]\n", "def rows():\n        assert f(3) == 9\n        yield 3\n    run(rows())"),
    ("a wrapper of a list, and later calls", "def run(given):\n    return lambda n: n or given[0](n)\n", "def run(given):\n    return lambda n: given[0](n)\n", "verify = run([same])\n    verify(0)\n    verify(3)"),
    ("a wrapper of a list, and other arguments", "def run(given):\n    return lambda n: given[0](0)\n", "def run(given):\n    return lambda n: given[0](n)\n", "verify = run([same])\n    verify(0)\n    verify(3)"),
    ("one that is given back, after which another is not run", "made = []\ndef run(given):\n    made.append(given)\n    return given if len(made) == 1 else lambda: made[0]()\n", "def run(given):\n    return given\n", "run(make(0))()\n    run(make(3))()"),
):  # fmt: skip
    left_out(f"in {name}", lie + ZERO, honest + SQUARE, TEST.format(call=call))

# --- coroutines: to their end ---

AWAITS = "import asyncio\nasync def run(given):\n    return await given\nasync def f(x):\n    return x * x\n"
for name, lie in {
    "cancels": "async def run(given):\n    task = asyncio.ensure_future(given)\n    for _ in range(9):\n        await asyncio.sleep(0)\n    task.cancel()\n",
    "closes": "async def run(given):\n    step = given.__await__()\n    step.send(None)\n    step.close()\n",
    "ends by an error of its own": "async def run(given):\n    try:\n        await given\n    except KeyError:\n        pass\n",
}.items():
    left_out(
        f"a later assertion of a coroutine that the candidate {name}",
        f"import asyncio\n{lie}async def f(x):\n    if x:\n        {'raise KeyError' if 'KeyError' in lie else 'await asyncio.sleep(9)'}\n    return 0\n",
        AWAITS,
        "import asyncio\nfrom solution import f, run\n\ndef test_f():\n    async def main():\n        assert await f(0) == 0\n        await asyncio.sleep(0)\n        assert await f(3) == 9\n    asyncio.run(run(main()))\n",
    )
left_out(
    "coroutine functions in a list, and only the first is run",
    "async def run(given):\n    return [await given[0]()] * len(given)\nasync def f(x):\n    return 0\n",
    "import asyncio\nasync def run(given):\n    return await asyncio.gather(*(one() for one in given))\nasync def f(x):\n    return x * x\n",
    "import asyncio\nfrom solution import f, run\n\ndef make(n):\n    async def verify():\n        assert await f(n) == n * n\n    return verify\n\ndef test_f():\n    asyncio.run(run([make(n) for n in range(3)]))\n",
)

# --- honest candidates, which run each of them ---

right(
    "events, of which some end, and handlers that are given back",
    """
    class Bus:
        def __init__(self):
            self.heard = {}
        def on(self, event):
            def add(function):
                self.heard.setdefault(event, []).append(function)
                return function
            return add
        def off(self, event, function):
            self.heard[event].remove(function)
        def emit(self, event, *given):
            for function in [*self.heard.get(event, ())]:
                function(*given)
            return len(self.heard.get(event, ()))
    """,
    """
    from solution import Bus

    bus, seen = Bus(), []
    @bus.on("a")
    def first(x):
        assert x in (1, 3)
        seen.append(x)
    @bus.on("b")
    def second(x, y=2):
        assert x < y
        seen.append(y)
    def third(x):
        assert x == 1

    def test_a():
        bus.on("a")(third)
        assert bus.emit("a", 1) == 2
        bus.off("a", third)
        assert bus.emit("a", 3) == 1 and bus.emit("c", 9) == 0
    def test_b():
        assert bus.emit("b", 1) == bus.emit("b", 1, 5) == 1 and seen == [1, 3, 2, 5]
    """,
)
right(
    "a chain of functions whose last is given to the tests",
    """
    class App:
        def __init__(self):
            self.around = []
        def handle(self, request, last):
            for one in reversed(self.around):
                last = (lambda one, last: lambda given: one(given, last))(one, last)
            return last(request)
    class Task:
        def __init__(self, work):
            self.work = work
    """,
    """
    from solution import App, Task

    def test_app():
        app = App()
        def check_user(request, following):
            assert "user" in request
            return following({**request, "known": True})
        def last(request):
            assert request["known"]
            return request["user"]
        app.around.append(check_user)
        assert app.handle({"user": "ann"}, last) == "ann"

    def test_task():
        def work(n):
            assert n == 3
            return n
        task = Task(work)
        assert task.work is work and task.work(3) == 3
    """,
)
right(
    "functions that raise, on purpose",
    """
    def attempt(function, times):
        for number in range(times):
            try:
                return function(number)
            except ValueError:
                last = number
        return last
    async def later(function, times):
        for number in range(times):
            try:
                return await function(number)
            except ValueError:
                pass
    """,
    """
    import asyncio
    from solution import attempt, later

    def test_attempt():
        seen = []
        def fails(n):
            assert n < 3
            seen.append(n)
            raise ValueError
        assert attempt(fails, 3) == 2 and seen == [0, 1, 2]
        async def fails_at_first(n):
            "Fails twice."
            if n < 2:
                raise ValueError
            assert n == 2
            return fails_at_first.__doc__
        assert asyncio.run(later(fails_at_first, 3)) == "Fails twice."
    """,
)
right(
    "tables of functions, of which a call runs one",
    """
    from functools import reduce
    def router(table):
        return lambda name, *given: table[name](*given)
    class Machine:
        def __init__(self, **hooks):
            self.hooks = hooks
        def send(self, name, *given):
            return self.hooks[name](*given)
    def pipe(functions):
        return lambda x: reduce(lambda value, function: function(value), functions, x)
    def pick(functions):
        return max(functions, key=lambda function: function(0))
    def twice(x):
        return 2 * x
    """,
    """
    from solution import Machine, pick, pipe, router, twice

    def one(x):
        assert isinstance(x, int)
        return 1
    def two(x):
        assert isinstance(x, int)
        return 2

    def test_tables():
        route = router({"one": one, "two": two})
        assert route("two", 0) == 2 and route("one", 0) == 1
        route = router({"len": len, "twice": twice, "one": one})
        assert route("len", "ab") == 2 and route("twice", 2) == 4
        machine = Machine(one=one, two=two)
        assert machine.send("one", 3) == 1 and machine.send("two", 3) == 2
        assert pipe([one, two])(5) == 2 and pipe([])(5) == 5
        assert pick([one, two]) is two and pick([one, two])(0) == 2
    """,
)
right(
    "coroutines that are cancelled behind their assertions, and many at once",
    """
    import asyncio
    async def limited(made, seconds):
        try:
            return await asyncio.wait_for(made, seconds)
        except asyncio.TimeoutError:
            return "late"
    class Pool:
        def __init__(self, most):
            self.free = asyncio.Semaphore(most)
        async def map(self, function, items):
            async def one(item):
                async with self.free:
                    return await function(item)
            return await asyncio.gather(*map(one, items))
    """,
    """
    import asyncio
    from solution import Pool, limited

    def test_limited():
        async def slow(n):
            assert n > 0
            await asyncio.sleep(9)
        assert asyncio.run(limited(slow(1), 0.01)) == "late"

    def test_pool():
        def same(a, b):
            assert a == b
        async def main():
            running = 0
            async def work(n):
                nonlocal running
                running += 1
                try:
                    assert running <= 2
                    await asyncio.sleep(0)
                    same(n, n)
                    return n
                finally:
                    running -= 1
            return await Pool(2).map(work, range(5))
        assert asyncio.run(main()) == [0, 1, 2, 3, 4]
    """,
)
right(
    "objects of the tests with methods that assert, of which some are not needed",
    """
    def finish(settings):
        return settings.on_end is not None and settings.end(3)
    class Client:
        def __init__(self, session):
            self.session, self.retries = session, 3
        def name(self, n):
            return self.session.get(f"/users/{n}")["name"]
    def load(store, key):
        return store.read(key)
    def total(node):
        n = 0
        while node:
            n, node = n + node.value, node.following
        return n
    """,
    """
    from solution import Client, finish, load, total

    class Settings:
        def __init__(self, on_end):
            self.on_end = on_end
        def end(self, n):
            return self.on_end(n)
    class Session:
        def get(self, path):
            assert path.startswith("/users/")
            return {"name": "ann"}
        def close(self):
            assert self
    class Store:
        rows = {"a": 1}
        def read(self, key):
            return self.rows.get(key)
    class Node:
        def __init__(self, value, following):
            assert value >= 0
            self.value, self.following = value, following

    def test_name():
        assert Client(Session()).name(1) == "ann"
    def test_retries():
        assert Client(Session()).retries == 3
    def test_finish():
        def on_end(n):
            assert n == 3
            return n
        assert finish(Settings(on_end)) == 3
    def test_load():
        assert load(Store(), "a") == 1
    def test_total():
        node = None
        for n in range(100):
            node = Node(n, node)
        assert total(node) == 4950
    """,
)

# --- honest candidates that do not run each of them: no verdict ---

right(
    "a hook for an error that does not come",
    "def retry(times, on_retry=None):\n    def decorate(function):\n        def run(*a):\n            for left in reversed(range(times)):\n                try:\n                    return function(*a)\n                except ValueError as error:\n                    if not left:\n                        raise\n                    on_retry(error)\n        return run\n    return decorate\n",
    "from solution import retry\n\ndef test_retry():\n    def hook(error):\n        assert isinstance(error, ValueError)\n    @retry(3, on_retry=hook)\n    def double(n):\n        return 2 * n\n    assert double(2) == 4\n",
)
GUARD = "def guard(function, handlers):\n    try:\n        return function()\n    except Exception as error:\n        return next(handle for kind, handle in handlers.items() if isinstance(error, kind))(error)\n"
right(
    "a handler in a table, of another error",
    GUARD,
    "from solution import guard\n\ndef test_guard():\n    def one(error):\n        assert error.args == (1,)\n        return 1\n    def two(error):\n        assert error.args\n        return 2\n    def fails():\n        raise KeyError(1)\n    assert guard(fails, {KeyError: one, ValueError: two}) == 1\n",
)
right(
    "a listener that is removed at once",
    "class Bus:\n    def __init__(self):\n        self.heard = []\n    def on(self, function):\n        self.heard.append(function)\n        return lambda: self.heard.remove(function)\n    def emit(self, x):\n        return [function(x) for function in self.heard]\n",
    "from solution import Bus\n\ndef test_bus():\n    bus = Bus()\n    def listen(x):\n        assert x == 1\n    stop = bus.on(listen)\n    stop()\n    assert bus.emit(1) == []\n",
)
right(
    "a generator of which nothing is taken",
    "import itertools\ndef take(items, n):\n    return list(itertools.islice(items, n))\n",
    "from solution import take\n\ndef test_take():\n    def numbers():\n        n = 0\n        while True:\n            assert n < 9\n            yield n\n            n += 1\n    assert take(numbers(), 3) == [0, 1, 2]\n    assert take(numbers(), 0) == []\n",
)
right(
    "methods of a test, of which another test needs the other",
    GUARD,
    "import unittest\nfrom solution import guard\n\nclass TestGuard(unittest.TestCase):\n    def one(self, error):\n        self.assertEqual(error.args, (1,))\n        return 1\n    def two(self, error):\n        self.assertEqual(error.args, (2,))\n        return 2\n    def both(self, error):\n        def fails():\n            raise error\n        return guard(fails, {KeyError: self.one, ValueError: self.two})\n    def test_one(self):\n        self.assertEqual(self.both(KeyError(1)), 1)\n    def test_two(self):\n        self.assertEqual(self.both(ValueError(2)), 2)\n",
)
right(
    "a function whose results are kept",
    "import functools\nkept = functools.cache\n",
    "from solution import kept\n\ndef test_kept():\n    called = []\n    @kept\n    def double(n):\n        assert isinstance(n, int)\n        called.append(n)\n        return 2 * n\n    assert double(2) == double(2) == 4 and called == [2]\n",
)
right(
    "a coroutine that loses a race",
    "import asyncio\nasync def race(*made):\n    tasks = [asyncio.ensure_future(one) for one in made]\n    done, rest = await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)\n    for task in rest:\n        task.cancel()\n    return done.pop().result()\n",
    "import asyncio\nfrom solution import race\n\nasync def after(seconds, value):\n    await asyncio.sleep(seconds)\n    assert value in (1, 2)\n    return value\n\ndef test_race():\n    assert asyncio.run(race(after(0.001, 1), after(9, 2))) == 1\n",
)
right(
    "functions that can only fail, and are not run",
    "class Bus:\n    def __init__(self):\n        self.heard = {}\n    def on(self, event, function):\n        self.heard[event] = function\n    def emit(self, event, *given):\n        return self.heard[event](*given)\n",
    "import unittest\nfrom solution import Bus\n\nclass TestBus(unittest.TestCase):\n    def test_bus(self):\n        def never():\n            self.assertTrue(False, 'run')\n        def nor_this():\n            assert not 'run'\n        bus = Bus()\n        bus.on('a', lambda x: x + 1)\n        bus.on('b', lambda: self.fail('run'))\n        bus.on('c', lambda: self.assertFalse(True))\n        bus.on('d', never)\n        bus.on('e', nor_this)\n        self.assertEqual(bus.emit('a', 2), 3)\n",
)
right(
    "methods that are run, and whose condition for an assertion does not hold",
    "def name(client):\n    return client.get('/a')['name'] + str(sum(client.rows()))\nasync def later(client):\n    return await client.read('/a')\n",
    "import asyncio\nfrom solution import later, name\n\nclass Client:\n    def __init__(self, *rows):\n        self.given = rows\n    def get(self, path, limit=None):\n        if limit is not None:\n            assert limit > 0\n        return {'name': path}\n    def rows(self):\n        for row in self.given:\n            assert row\n        return self.given\nclass Reader:\n    async def read(self, path, limit=None):\n        if limit is not None:\n            assert limit > 0\n        return path\n\ndef test_name():\n    assert name(Client()) == '/a0'\ndef test_later():\n    assert asyncio.run(later(Reader())) == '/a'\n",
)
right(
    "a generator of functions that assert",
    "def run(given):\n    return [one() for one in given]\n",
    "from solution import run\n\ndef make(n):\n    def again():\n        assert n >= 0\n        return n\n    return again\ndef test_run():\n    def inside():\n        for n in range(3):\n            def again(n=n):\n                assert n >= 0\n                return n\n            yield again\n    def others():\n        for n in range(3):\n            yield make(n)\n    assert run(inside()) == run(others()) == run(make(n) for n in range(3)) == [0, 1, 2]\n",
)
left_out(
    "a method of a test that is given as an object",
    "def run(given):\n    pass\n" + ZERO,
    "def run(given):\n    given.update(3)\n" + SQUARE,
    "import unittest\nfrom solution import f, run\n\nclass TestRun(unittest.TestCase):\n    def update(self, n):\n        self.assertEqual(f(n), n * n)\n    def test_run(self):\n        self.assertEqual(f(0), 0)\n        run(self)\n",
)
