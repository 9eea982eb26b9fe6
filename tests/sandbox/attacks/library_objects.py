"""Objects of Python's own classes that the tests hand over: tasks, threads, mocks, connections …"""

# ruff: noqa: E501 - programs within strings are as wide as they are
from __future__ import annotations

from attacks.program import SQUARE, ZERO, Topic

__all__ = ["LIBRARY_OBJECTS"]

LIBRARY_OBJECTS = Topic("library")
forged, right, left_out = LIBRARY_OBJECTS.forged, LIBRARY_OBJECTS.right, LIBRARY_OBJECTS.left_out

# --- tasks ---

TASKS = "import asyncio\nfrom solution import run\n\nasync def job(n, seconds=0):\n    await asyncio.sleep(seconds)\n    if n < 0:\n        raise ValueError(f'bad {{n}}')\n    return n\n\ndef test_tasks():\n    async def main():\n        {before}\n        return await run({given})\n    assert asyncio.run(main()) == {wanted}\n"
ALL = "[asyncio.create_task(job(n)) for n in range(3)]"
for name, code, given, wanted in (
    ("awaited", "return await given", "asyncio.create_task(job(3))", "3"),
    ("shielded", "return await asyncio.shield(given)", "asyncio.ensure_future(job(3))", "3"),
    ("gathered", "return await asyncio.gather(*given)", ALL, "[0, 1, 2]"),
    ("as they end", "return [await one for one in asyncio.as_completed(given)]", "[asyncio.create_task(job(n, n / 5)) for n in (2, 0, 1)]", "[0, 1, 2]"),
    ("waited for", "done, rest = await asyncio.wait(given)\n    return sorted(one.result() for one in done), len(rest)", ALL, "([0, 1, 2], 0)"),
    ("that are late", "try:\n        return await asyncio.wait_for(given, 0.05)\n    except asyncio.TimeoutError:\n        return given.cancelled()", "asyncio.create_task(job(1, 9))", "True"),
    ("whose error is looked at", "await asyncio.wait([given])\n    return str(given.exception()), given.done()", "asyncio.create_task(job(-1))", "('bad -1', True)"),
    ("with a callback", "seen = []\n    given.add_done_callback(lambda one: seen.append(one.result()))\n    await given\n    await asyncio.sleep(0.01)\n    return seen", "asyncio.create_task(job(4))", "[4]"),
    ("and futures, told apart", "given.set_result(5)\n    return isinstance(given, asyncio.Future), isinstance(given, asyncio.Task), asyncio.iscoroutine(given), await given", "asyncio.get_running_loop().create_future()", "(True, False, False, 5)"),
    ("that are cancelled", "for one in given:\n        one.cancel()\n    found = await asyncio.gather(*given, return_exceptions=True)\n    return [type(one).__name__ for one in found]", ALL, "['CancelledError'] * 3"),
):  # fmt: skip
    right(
        f"tasks {name}",
        f"import asyncio\nasync def run(given):\n    {code}\n",
        TASKS.format(before="await asyncio.sleep(0)", given=given, wanted=wanted),
    )
right(
    "a task that is cancelled behind its assertions",
    "async def stop(task):\n    task.cancel()\n    try:\n        await task\n    except BaseException:\n        return task.cancelled()\n",
    "import asyncio\nfrom solution import stop\n\nasync def work(n):\n    assert n == 1\n    await asyncio.sleep(9)\n\ndef test_stop():\n    async def main():\n        task = asyncio.create_task(work(1))\n        await asyncio.sleep(0)\n        return await stop(task)\n    assert asyncio.run(main()) is True\n",
)
LOOKS = "import asyncio\nfrom solution import f, run\n\nclass Box:\n    pass\nasync def look(n):\n    await asyncio.sleep(0)\n    assert await f(n) == n * n\n\ndef test_look():\n    async def main():\n        assert await f(0) == 0\n        task = asyncio.create_task(look(3))\n        {call}\n    asyncio.run(main())\n"
AWAITS = "async def run(given):\n    await given\nasync def f(x):\n    return x * x\n"
SLEEPS = "import asyncio\nasync def f(x):\n    return await asyncio.sleep(9 * x, 0)\n"
for name, lie, honest, call in (
    ("cancels", "async def run(given):\n    given.cancel()\n", AWAITS, "await run(task)"),
    ("cancels later", "async def run(given):\n    await asyncio.sleep(0.05)\n    given.cancel()\n", AWAITS, "await run(task)"),
    ("forgets", "async def run(given):\n    pass\n", AWAITS, "await run(task)"),
    ("gets in a list, and forgets", "async def run(given):\n    pass\n", AWAITS.replace("await given", "await given[0]"), "await run([task])"),
    ("gets in an object, and forgets", "async def run(given):\n    pass\n", AWAITS.replace("await given", "await given.task"), "box = Box()\n        box.task = task\n        await run(box)"),
):  # fmt: skip
    left_out(f"a task that the candidate {name}", SLEEPS + lie, honest, LOOKS.format(call=call))
for name, lie in {
    "awaits": "try:\n        await given\n    except BaseException:\n        pass",
    "takes as a value": "await asyncio.wait([given])\n    given.exception()",
    "asks for": "await asyncio.wait([given])\n    try:\n        given.result()\n    except BaseException:\n        pass",
}.items():
    forged(
        f"a failed assertion of a task, which the candidate {name}",
        f"import asyncio\nasync def f(x):\n    return 0\nasync def run(given):\n    {lie}\n",
        AWAITS,
        LOOKS.format(call="await run(task)"),
    )
forged(
    "the frame of a task",
    "async def run(given):\n    return given.get_coro().cr_frame.f_locals['hidden']\n",
    "async def run(given):\n    return 77123\n",
    "import asyncio\nfrom solution import run\n\nasync def job(hidden):\n    await asyncio.sleep(0.1)\n\ndef test_job():\n    async def main():\n        return await run(asyncio.create_task(job(77123)))\n    got = asyncio.run(main())\n    assert got == 77123\n",
)

# --- threads and pools ---

THREADS = "import threading, time\nfrom concurrent.futures import ThreadPoolExecutor\nfrom solution import f, run\n\ndef look(n):\n    assert f(n) == n * n\nclass Look(threading.Thread):\n    def run(self):\n        look(3)\n\ndef test_look():\n    assert f(0) == 0\n    {call}\n"
STARTS = "def run(given):\n    given.start()\n    given.join(timeout=2)\n"
for name, lie, honest, call in (
    ("a thread", "def run(given):\n    pass\n", STARTS, "run(threading.Thread(target=look, args=(3,)))"),
    ("threads in a list", "def run(given):\n    pass\n", "def run(given):\n    for one in given:\n        one.start()\n    for one in given:\n        one.join()\n", "run([threading.Thread(target=look, args=(n,)) for n in (3, 4)])"),
    ("a timer", "def run(given):\n    given.start()\n    given.cancel()\n", STARTS, "run(threading.Timer(0.05, look, [3]))"),
    ("a thread of their class", "def run(given):\n    pass\n", STARTS, "run(Look())"),
):  # fmt: skip
    left_out(f"{name} that is not run", lie + ZERO, honest + SQUARE, THREADS.format(call=call))
forged(
    "a thread whose failure is swallowed",
    "def run(given):\n    try:\n        given.run()\n    except BaseException:\n        pass\n"
    + ZERO,
    STARTS + SQUARE,
    THREADS.format(call="run(threading.Thread(target=look, args=(3,)))"),
)
for name, lie in {
    "takes as a value": "pool.submit(look, 3).exception()",
    "waits for": "pool.submit(look, 3).add_done_callback(lambda one: one.cancelled())",
}.items():
    forged(
        f"a failed assertion of a pool, which the candidate {name}",
        f"def run(pool, look):\n    {lie}\n{ZERO}",
        f"def run(pool, look):\n    pool.submit(look, 3).result()\n{SQUARE}",
        THREADS.format(call="with ThreadPoolExecutor(1) as pool:\n        run(pool, look)"),
    )
forged(
    "the arguments of a timer",
    "def run(given):\n    return given.args[0]\n",
    "def run(given):\n    return 77123\n",
    "import threading\nfrom solution import run\n\ndef test_run():\n    got = run(threading.Timer(9, print, [77123]))\n    assert got == 77123\n",
)
right(
    "threads and timers",
    """
    import threading
    def wait(threads):
        for thread in threads:
            thread.join()
        return [thread.is_alive() for thread in threads], [thread.name for thread in threads]
    def never(timer):
        timer.start()
        timer.cancel()
        timer.join()
        return isinstance(timer, threading.Thread), isinstance(timer, threading.Timer)
    """,
    """
    import threading, time
    from solution import never, wait

    def test_threads():
        threads = [threading.Thread(target=time.sleep, args=(0.01,), name=n) for n in "ab"]
        for thread in threads:
            thread.start()
        assert wait(threads) == ([False, False], ["a", "b"])
        seen = []
        assert never(threading.Timer(9, seen.append, [1])) == (True, True)
        assert seen == []
    """,
)
right(
    "pools and futures",
    """
    def squares(pool, items):
        made = [pool.submit(lambda n: n * n, item) for item in items]
        return [one.result() for one in made], list(pool.map(abs, items))
    def collected(futures):
        return [one.result(timeout=5) for one in futures], all(one.done() for one in futures)
    """,
    """
    from concurrent.futures import ThreadPoolExecutor
    from solution import collected, squares

    def test_pool():
        with ThreadPoolExecutor(2) as pool:
            assert squares(pool, [1, -2]) == ([1, 4], [1, 2])
            assert collected([pool.submit(pow, n, 2) for n in range(3)]) == ([0, 1, 4], True)
    """,
)

# --- what class they have, their texts, and what may be written ---

right(
    "classes of streams, patterns, queues, loggers, generators of numbers, and mocks",
    """
    import io, logging, queue, random, re
    class Client:
        def get(self, path):
            raise OSError(path)
    class Service:
        def __init__(self, client):
            if not isinstance(client, Client):
                raise TypeError("client")
            self.name = client.get("/name")
    def kinds(*given):
        known = io.TextIOBase, re.Pattern, queue.Queue, logging.Logger, random.Random, Client
        return [next((kind.__name__ for kind in known if isinstance(one, kind)), "") for one in given]
    """,
    """
    import io, logging, queue, random, re
    from unittest.mock import Mock
    from solution import Client, Service, kinds

    def test_kinds():
        given = io.StringIO(), re.compile("a"), queue.Queue(), logging.getLogger("a"), random.Random(3)
        assert kinds(*given) == ["TextIOBase", "Pattern", "Queue", "Logger", "Random"]
        assert kinds(Mock(), Mock(spec=Client), Mock(spec=io.StringIO)) == ["", "Client", "TextIOBase"]
    def test_service():
        client = Mock(spec=Client)
        client.get.return_value = "ann"
        assert Service(client).name == "ann"
    """,
)
right(
    "texts of objects of the tests",
    """
    def texts(*items):
        return [f"{item}" for item in items]
    def strict(x):
        if not isinstance(x, int):
            raise TypeError(f"no number: {x!r}, {x}")
    """,
    """
    import argparse, functools, unittest
    from dataclasses import dataclass
    from enum import Enum
    from types import SimpleNamespace
    from unittest.mock import Mock
    from solution import strict, texts

    class Color(Enum):
        RED = "red"
    @dataclass
    class Item:
        name: str
        color: object
    @dataclass
    class Hidden:
        _name: str

    class TestTexts(unittest.TestCase):
        def test_texts(self):
            item = Item("a", [Color.RED, Item("b", None)])
            given = item, Color.RED, SimpleNamespace(a=1), argparse.Namespace(b=item)
            self.assertEqual(texts(*given), [str(one) for one in given])
        def test_strict(self):
            partial = functools.partial(print, 1)
            for given in (Mock(), Hidden("a"), Item("a", Hidden("b")), partial, object(), iter([]), NotImplemented):
                with self.assertRaises(TypeError):
                    strict(given)
    """,
)
for name, given in {
    "a private field": "Box(1, 77123)",
    "an object with a private field": "[Inner(77123)]",
    "a partial function": "functools.partial(print, 77123)",
}.items():
    forged(
        f"the text of a dataclass with {name}",
        "import re\ndef f(box):\n    return int(re.findall('[0-9]{5}', repr(box))[0])\n",
        "def f(box):\n    return 77123\n",
        f"import functools\nfrom dataclasses import dataclass\nfrom solution import f\n\n@dataclass\nclass Inner:\n    _n: int\n@dataclass\nclass Box:\n    n: object\n    _m: int = 0\n@dataclass\nclass Outer:\n    box: object\n\ndef test_f():\n    got = f(Outer({given}))\n    assert got == 77123\n",
    )
right(
    "data that the candidate writes to mocks and namespaces",
    """
    def activate(user, options):
        user.active = True
        user.count += 1
        options.verbose = vars(options)["level"] > 1
        return user
    """,
    """
    import argparse
    from unittest.mock import Mock
    from solution import activate

    def test_activate():
        user, options = Mock(count=1), argparse.Namespace(level=2)
        assert activate(user, options) is user
        assert user.active is True and user.count == 2 and options.verbose is True
    """,
)
for name in ("types.SimpleNamespace", "argparse.Namespace"):
    forged(
        f"a function of {name} that is replaced",
        "def f(given):\n    given.check = lambda: True\n",
        "def f(given):\n    given.n = 1\n",
        f"import argparse, types\nfrom solution import f\n\ndef test_f():\n    given = {name}(n=0)\n    given.check = lambda: given.n == 1\n    f(given)\n    assert given.check()\n",
    )
SENDS = "from unittest.mock import Mock\nfrom solution import notify\n\ndef test_notify():\n    client = Mock()\n    notify(client, 3)\n    client.send.assert_called_once_with(9)\n    client.drop.assert_not_called()\n"
for name, lie in {
    "an object that was always called": "class Yes:\n    def __getattr__(self, name):\n        return lambda *a, **k: None\n    def __call__(self, *a):\n        pass\ndef notify(client, n):\n    client.send = Yes()\n",
    "another mock": "def notify(client, n):\n    client.send(9)\n    client.drop(9)\n    client.drop = client.other\n",
    "data": "def notify(client, n):\n    client.send = n\n",
}.items():
    verdicts = ("failed",) if name == "data" else ("infra_error",)
    add = forged if name == "data" else left_out
    add(f"a mock that gets {name}", lie, "def notify(client, n):\n    client.send(n * n)\n", SENDS)

right(
    "modules, and iterators that are divided",
    """
    import itertools
    def area(module, r):
        return round(module.pi * r, 2)
    def twice(items):
        one, other = itertools.tee(items)
        return list(one), list(other)
    """,
    """
    import math
    from solution import area, twice

    class Count:
        def __init__(self):
            self.n = 0
        def __iter__(self):
            return self
        def __next__(self):
            self.n += 1
            if self.n > 3:
                raise StopIteration
            return self.n

    def test_area():
        assert area(math, 2) == 6.28
    def test_twice():
        assert twice(n for n in (1, 2, 3)) == twice(Count()) == twice(map(int, "123")) == ([1, 2, 3],) * 2
    """,
)

# --- what the sandbox does not offer: no verdict where a candidate needs it ---

right(
    "a connection to a database",
    "def names(connection):\n    return [row[0] for row in connection.execute('SELECT name FROM users')]\n",
    "import sqlite3\nfrom solution import names\n\ndef test_names():\n    db = sqlite3.connect(':memory:')\n    db.execute('CREATE TABLE users (name TEXT)')\n    db.execute(\"INSERT INTO users VALUES ('ann')\")\n    assert names(db) == ['ann']\n",
)
right(
    "a thread that becomes a daemon",
    "def run(thread):\n    thread.daemon = True\n    thread.start()\n    thread.join()\n",
    "import threading\nfrom solution import run\n\ndef test_run():\n    seen = []\n    run(threading.Thread(target=seen.append, args=[3]))\n    assert seen == [3]\n",
)
forged(
    "a connection to a database, not looked at",
    "def names(connection):\n    return []\n",
    "def names(connection):\n    return ['ann']\n",
    "import sqlite3\nfrom solution import names\n\ndef test_names():\n    assert names(sqlite3.connect(':memory:')) == ['ann']\n",
)

# --- mocks that imitate what the candidate defines ---

MAILER = "class Mailer:\n    def __init__(self, host):\n        self.host = host\n    def send(self, to, subject):\n        return len(to)\ndef make():\n    return [Mailer('smtp')]\ndef notify(mailer, to):\n    return mailer.send(to, subject='hi')\n"
for name, made, sends in (
    ("a class", "create_autospec(Mailer)('smtp')", "mailer.send"),
    ("an object of a class", "create_autospec(Mailer, instance=True)", "mailer.send"),
    ("a function", "Mock(send=create_autospec(make))", "mailer.send"),
    ("a function, by its spec", "Mock(send=Mock(spec=make))", "mailer.send"),
):
    takes = "'ann'" if "make" not in made else ""
    body = MAILER if takes else MAILER.replace("mailer.send(to, subject='hi')", "mailer.send()")
    forged(
        f"a mock that imitates {name}",
        body.replace("return mailer.send", "return 5 or mailer.send"),
        body,
        f"from unittest.mock import Mock, create_autospec\nfrom solution import Mailer, make, notify\n\ndef test_notify():\n    mailer = {made}\n    {sends}.return_value = 5\n    assert notify(mailer, 'ann') == 5\n    {sends}.assert_called_once_with({takes + ', subject=' + repr('hi') if takes else ''})\n",
    )
