"""Programs that run beside their tests: threads and tasks of which one waits for another.

And shapes of tests, arguments and errors that were misjudged before.
"""

# ruff: noqa: E501 - programs within strings are as wide as they are
from __future__ import annotations

from attacks.program import Program, pair, shape

__all__ = ["BESIDE"]

BESIDE: list[Program] = []


def right(name: str, code: str, test: str) -> None:
    BESIDE.append(shape(f"beside: {name}", code, test=test))


def forged(name: str, lie: str, honest: str, test: str) -> None:
    BESIDE.extend(pair("forged", f"beside: {name}", lie, honest, test=test))


# --- threads ---

right(
    "a queue that blocks",
    """
    import threading
    class Blocking:
        def __init__(self, size):
            self.size, self.items, self.changed = size, [], threading.Condition()
        def put(self, item):
            with self.changed:
                self.changed.wait_for(lambda: len(self.items) < self.size)
                self.items.append(item)
                self.changed.notify_all()
        def get(self):
            with self.changed:
                self.changed.wait_for(lambda: self.items)
                self.changed.notify_all()
                return self.items.pop(0)
    """,
    """
    import threading
    from solution import Blocking

    def test_one_waits_for_the_other():
        queue, got = Blocking(1), []
        consumer = threading.Thread(target=lambda: got.extend(queue.get() for _ in range(5)))
        consumer.start()
        for item in range(5):
            queue.put(item)
        consumer.join()
        assert got == [0, 1, 2, 3, 4]
    """,
)
right(
    "a lock that its thread takes again",
    """
    import threading
    class Counter:
        def __init__(self):
            self.lock, self.n = threading.RLock(), 0
        def acquire(self):
            self.lock.acquire()
        def release(self):
            self.lock.release()
        def add(self, how_many):
            with self.lock:
                self.n += how_many()
    """,
    """
    import threading
    from solution import Counter

    def test_each_thread_is_one_of_the_candidates_too():
        counter, all_there = Counter(), threading.Barrier(16)
        def work():
            all_there.wait()
            counter.acquire()
            counter.add(lambda: 1)
            counter.release()
        threads = [threading.Thread(target=work) for _ in range(16)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert counter.n == 16
    """,
)
right(
    "many threads that end soon",
    """
    import threading
    class Counter:
        def __init__(self):
            self.lock, self.n = threading.Lock(), 0
        def add(self, how_many):
            with self.lock:
                self.n += how_many()
    """,
    """
    import threading
    from solution import Counter

    def test_all_are_answered():
        counter = Counter()
        def work():
            counter.add(lambda: 1)
        threads = [threading.Thread(target=work) for _ in range(30)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert counter.n == 30
    """,
)
right(
    "the last call of several",
    """
    import threading
    def debounce(seconds):
        def decorate(function):
            timer = None
            def call(*arguments):
                nonlocal timer
                if timer is not None:
                    timer.cancel()
                timer = threading.Timer(seconds, function, arguments)
                timer.start()
            return call
        return decorate
    """,
    """
    import time
    from solution import debounce

    def test_a_thread_of_the_candidates_calls_back_while_the_test_sleeps():
        seen = []
        last = debounce(0.2)(seen.append)
        for n in range(3):
            last(n)
        assert seen == []
        time.sleep(0.6)
        assert seen == [2]
    """,
)
right(
    "a queue and a lock of the tests",
    """
    def work(jobs, lock, done):
        while (job := jobs.get()) is not None:
            with lock:
                done.put(job * 2)
    """,
    """
    import queue, threading
    from solution import work

    def test_work():
        jobs, done = queue.Queue(), queue.Queue()
        workers = [threading.Thread(target=work, args=(jobs, threading.Lock(), done)) for _ in range(2)]
        for worker in workers:
            worker.start()
        for job in (1, 2, 3, None, None):
            jobs.put(job)
        for worker in workers:
            worker.join()
        assert sorted(done.get() for _ in range(3)) == [2, 4, 6]
    """,
)
forged(
    "an assertion that a timer calls",
    "import threading\ndef later(function, seconds):\n    threading.Timer(seconds, function, [1]).start()\n    return True\n",
    "import threading\ndef later(function, seconds):\n    threading.Timer(seconds, function, [2]).start()\n    return True\n",
    """
    import time
    from solution import later

    def test_later():
        def look(got):
            assert got == 2
        assert later(look, 0.05)
        time.sleep(0.5)
    """,
)
right(
    "a thread that calls back, of which the tests know nothing",
    """
    import threading
    class Job:
        def __init__(self, tell):
            self.thread = threading.Thread(target=lambda: [tell(n) for n in range(100)])
            self.thread.start()
        def ended(self):
            return not self.thread.is_alive()
    """,
    """
    from solution import Job

    def test_job():
        seen = []
        job = Job(seen.append)
        while not job.ended():
            pass
        assert seen == list(range(100))
    """,
)
right(
    "a queue that a thread of the candidate's fills",
    "import threading\ndef start(put):\n    threading.Thread(target=put, args=(5,)).start()\n",
    """
    import queue
    from solution import start

    def test_start():
        filled = queue.Queue()
        start(filled.put)
        assert filled.get(timeout=4) == 5
    """,
)
for name, lie in {
    "that its thread swallows": "    try:\n        function(1)\n    except BaseException:\n        pass\n",
    "that its thread avoids by ending the process": "    os._exit(0)\n",
}.items():
    forged(
        f"an assertion {name}, after the test",
        f"import os, time\ndef f(function):\n    time.sleep(0.2)\n{lie}",
        "import time\ndef f(function):\n    time.sleep(0.2)\n    function(2)\n",
        """
        import threading
        from solution import f

        def test_f():
            def look(got):
                assert got == 2
            threading.Thread(target=f, args=(look,)).start()
            assert callable(f)
        """,
    )
forged(
    "an answer that cannot be read, to a thread of the tests",
    """
    import _thread, gc, time
    from gatekeeper.sandbox.inside.wire import frame
    def f(x):
        if x == 1:
            return 1
        peer = next(o for o in gc.get_objects() if type(o).__name__ == "CandidatePeer")
        number = peer._conversations[_thread.get_ident()]
        peer._connection.sendall(frame(b"A", peer._encode((number, 9))))
        time.sleep(0.5)
    """,
    "def f(x):\n    return x * x\n",
    """
    import threading
    from solution import f

    def test_f():
        assert f(1) == 1
        def look():
            assert f(3) == 9
        thread = threading.Thread(target=look)
        thread.start()
        thread.join()
    """,
)

forged(
    "an assertion that does not end, in a thread",
    """
    import threading
    class Endless:
        def __iter__(self):
            begun.set()
            threading.Event().wait()
    begun = threading.Event()
    def run(function, items):
        threading.Thread(target=function, args=[Endless()], daemon=True).start()
        begun.wait()
        return 1
    """,
    "def run(function, items):\n    function(items)\n    return 1\n",
    """
    import threading
    from solution import run

    def test_run():
        def look(got):
            assert sum(got) == 10
        run(look, [1, 2, 3, 4])
    """,
)

# --- tasks ---

right(
    "a queue of coroutines",
    """
    import asyncio
    class Queue:
        def __init__(self):
            self.items, self.filled = [], asyncio.Event()
        async def put(self, item):
            self.items.append(item)
            self.filled.set()
        async def get(self):
            while not self.items:
                self.filled.clear()
                await self.filled.wait()
            return self.items.pop(0)
    """,
    """
    import asyncio
    from solution import Queue

    def test_one_waits_for_the_other():
        async def main():
            queue = Queue()
            async def consume():
                return [await queue.get() for _ in range(3)]
            async def produce():
                for item in range(3):
                    await queue.put(item)
                    await asyncio.sleep(0)
            return await asyncio.gather(consume(), produce())
        assert asyncio.run(main())[0] == [0, 1, 2]
    """,
)
LIMITED = """
    import asyncio
    async def limited(functions, most):
        places = asyncio.Semaphore(most)
        async def one(function):
            async with places:
                return await function()
        return await asyncio.gather(*map(one, functions))
    def together(functions, most):
        return asyncio.run(limited(functions, most))
"""
for kind, call in {
    "a coroutine": "asyncio.run(limited([job] * 6, 2))",
    "a function": "together([job] * 6, 2)",
}.items():
    right(
        f"coroutines of the tests, two at a time, by {kind}",
        LIMITED,
        f"""
        import asyncio
        from solution import limited, together

        def test_two_at_a_time():
            running = most = 0
            async def job():
                nonlocal running, most
                running += 1
                most = max(most, running)
                await asyncio.sleep(0.01)
                running -= 1
                return running
            got = {call}
            assert len(got) == 6
            assert most == 2
        """,
    )
right(
    "tasks that are cancelled",
    """
    import asyncio
    seen = []
    async def stubborn():
        try:
            await asyncio.sleep(30)
        except asyncio.CancelledError:
            return "part"
    async def tidy():
        try:
            await asyncio.sleep(30)
        finally:
            seen.append("tidied up")
    """,
    """
    import asyncio
    from solution import seen, stubborn, tidy

    def test_cancelled():
        async def main():
            tasks = [asyncio.create_task(made) for made in (stubborn(), tidy(), tidy())]
            await asyncio.sleep(0.01)
            for task in tasks:
                task.cancel()
            assert await tasks[0] == "part"
            try:
                await tasks[1]
            except asyncio.CancelledError:
                pass
            await asyncio.wait(tasks[2:])
            try:
                await asyncio.wait_for(tidy(), 0.05)
            except asyncio.TimeoutError:
                return "too late"
        assert asyncio.run(main()) == "too late"
        assert seen == ["tidied up"] * 3
    """,
)
right(
    "a source and a context manager of the tests",
    """
    async def total(source, around):
        async with around as start:
            return start + sum([item async for item in source])
    """,
    """
    import asyncio
    from solution import total

    class Around:
        left = False
        async def __aenter__(self):
            await asyncio.sleep(0)
            return 10
        async def __aexit__(self, *error):
            self.left = True

    def test_total():
        async def source():
            for item in range(4):
                await asyncio.sleep(0)
                yield item
        around = Around()
        assert asyncio.run(total(source(), around)) == 16
        assert around.left
    """,
)
forged(
    "an assertion in a task that nobody looks at",
    "import asyncio\nasync def each(function, items):\n    await asyncio.wait([asyncio.ensure_future(_of(function, 0)) for _ in items])\n    return len(items)\nasync def _of(function, item):\n    return await function(item)\n",
    "async def each(function, items):\n    for item in items:\n        await function(item)\n    return len(items)\n",
    """
    import asyncio
    from solution import each

    def test_each():
        async def look(item):
            await asyncio.sleep(0)
            assert item > 0
        assert asyncio.run(each(look, [1, 2])) == 2
    """,
)
forged(
    "an assertion that does not end, in a task",
    """
    import asyncio
    async def square(n):
        await asyncio.Event().wait()
    async def each(function, items):
        for item in items:
            asyncio.ensure_future(_of(function, item))
        for _ in range(5):
            await asyncio.sleep(0)
        return 1
    async def _of(function, item):
        await function(item)
    """,
    """
    async def square(n):
        return n * n
    async def each(function, items):
        for item in items:
            await function(item)
        return 1
    """,
    """
    import asyncio
    from solution import each, square

    def test_each():
        async def look(item):
            assert await square(item) == item ** 2
        asyncio.run(each(look, [2, 3]))
    """,
)
forged(
    "the end of a loop of the tests",
    "async def square(n):\n    if n > 2:\n        raise StopAsyncIteration\n    return n * n\n",
    "async def square(n):\n    return n * n\n",
    """
    import asyncio
    from solution import square

    class Squares:
        def __init__(self):
            self.n = 0
        def __aiter__(self):
            return self
        async def __anext__(self):
            self.n += 1
            if self.n > 9:
                raise StopAsyncIteration
            return self.n, await square(self.n)

    def test_squares():
        async def main():
            async for n, got in Squares():
                assert got == n ** 2
        asyncio.run(main())
    """,
)

forged(
    "a special method that is no coroutine",
    "def f(look):\n    peer, _ = object.__getattribute__(look, '_inner')\n    try:\n        peer.ask('task', look, 'setattr', 'accepts', lambda got: True)\n    except Exception:\n        pass\n    return 1\n",
    "def f(look):\n    return 9\n",
    """
    import asyncio
    from solution import f

    class Look:
        def accepts(self, got):
            return got == 9

    def test_f():
        look = Look()
        got = f(look)
        assert look.accepts(got)
    """,
)
RAW = """
    import asyncio, gc, threading
    def start(function, *arguments):  # a task of the tests, of which it asks nothing more
        peer = next(o for o in gc.get_objects() if type(o).__name__ == "CandidatePeer")
        handle = peer._kinds["function"](peer, peer._functions[id(function)])
        work = handle(*arguments).cr_frame.f_locals["item"]
        number, ended = peer.ask("task", work, "await")
        return lambda: peer.ask("step", work, number)
"""
forged(
    "an assertion in a task that nobody asks for",
    RAW + "    def f(look):\n        start(look, 1)\n        return 3\n",
    "import asyncio\ndef f(look):\n    asyncio.run(look(2))\n    return 3\n",
    """
    import asyncio
    from solution import f

    def test_f():
        async def look(got):
            assert got == 2
        assert f(look) == 3
    """,
)
forged(
    "a loop of the tests that another thread stops",
    RAW
    + """
    async def f(wait):
        thread = threading.Thread(target=start(wait))
        thread.start()
        thread.join()
        await asyncio.sleep(60)
""",
    "async def f(wait):\n    return 9\n",
    """
    import asyncio, threading
    from solution import f

    def test_f():
        loop = asyncio.new_event_loop()
        async def wait():
            await asyncio.Event().wait()
        async def look():
            try:
                assert await f(wait) == 9
            finally:
                loop.stop()
        task = loop.create_task(look())
        loop.run_forever()
        assert callable(f)
    """,
)
forged(
    "an assertion in a group that the candidate swallows",
    "async def f(look):\n    try:\n        await look(1)\n    except BaseException:\n        pass\n    return 3\n",
    "async def f(look):\n    await look(2)\n    return 3\n",
    """
    import asyncio
    from solution import f

    def test_f():
        async def look(got):
            async def one():
                assert got == 2
            async with asyncio.TaskGroup() as group:
                group.create_task(one())
        assert asyncio.run(f(look)) == 3
    """,
)
forged(
    "a group in a task that nobody looks at",
    "async def f(x):\n    raise ValueError\n",
    "async def f(x):\n    return x * x\n",
    """
    import asyncio
    from solution import f

    def test_f():
        async def one():
            assert await f(3) == 9
        async def several():
            async with asyncio.TaskGroup() as group:
                group.create_task(one())
        async def main():
            await asyncio.wait([asyncio.create_task(several())])
        assert callable(f)
        asyncio.run(main())
    """,
)
for name, lie in {
    "raises": "async def f(x):\n    raise KeyError\n",
    "returns, and which stays known": "async def f(x):\n    return KeyError()\n",
}.items():
    forged(
        f"an error that the candidate {name}, in a task that nobody looks at",
        lie,
        "async def f(x):\n    return x * x\n",
        """
        import asyncio
        from solution import f

        def test_f():
            loop = asyncio.new_event_loop()
            async def look():
                try:
                    got = await f(3)
                    if isinstance(got, Exception):
                        raise got
                    assert got == 9
                finally:
                    loop.stop()
            loop.create_task(look())
            loop.run_forever()
            assert callable(f)
        """,
    )
right(
    "a callback in a thread of a pool",
    "import asyncio\nasync def run_blocking(function, *arguments):\n    return await asyncio.to_thread(function, *arguments)\n",
    """
    import asyncio
    from solution import run_blocking

    def test_run_blocking():
        async def main():
            return await asyncio.gather(*(run_blocking(lambda n: n * n, n) for n in range(8)))
        assert asyncio.run(main()) == [n * n for n in range(8)]
    """,
)
right(
    "a mock of the candidate's asyncio.sleep",
    """
    import asyncio
    async def again(function):
        while not await function():
            await asyncio.sleep(60)
    """,
    """
    import asyncio
    from unittest.mock import AsyncMock, patch
    from solution import again

    def test_again():
        seen = []
        async def function():
            done = asyncio.Event()
            asyncio.get_running_loop().call_later(0.2, done.set)
            await done.wait()
            seen.append(1)
            return len(seen) > 2
        with patch("solution.asyncio.sleep", new_callable=AsyncMock) as sleep:
            asyncio.run(again(function))
        assert sleep.await_count == 2
    """,
)
right(
    "own assertions of several threads that pass through the tests",
    """
    import threading
    def count(call, number):
        def own():
            assert not number, "own"
        failed = []
        def run():
            for _ in range(20):
                try:
                    call(own)
                except AssertionError:
                    failed.append(1)
        threads = [threading.Thread(target=run) for _ in range(3)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        return len(failed)
    """,
    "from solution import count\n\ndef test_count():\n    assert count(lambda own: own(), 1) == 60\n",
)

# --- a label that the candidate would choose ---

forged(
    "the class of an error that an import raises",
    "def f(x):\n    return ImportError\n",
    "def f(x):\n    return x * x\n",
    """
    from solution import f

    def test_f():
        got = f(3)
        if isinstance(got, type):
            raise got
        assert got == 9
    """,
)
forged(
    "a table without rows",
    "TABLE = {}\n",
    "TABLE = {3: 9}\n",
    "from solution import TABLE\n\ndef test_f():\n    for x, got in TABLE.items():\n        assert got == x * x\n",
)

forged(
    "an object that is not true",
    "class No:\n    def __bool__(self):\n        return False\ndef f(x):\n    return No()\n",
    "def f(x):\n    return x * x\n",
    "from solution import f\n\ndef test_f():\n    got = f(3)\n    if got:\n        assert got == 9\n",
)
forged(
    "an object where a number is looked for",
    "class No:\n    pass\ndef f(x):\n    return No()\n",
    "def f(x):\n    return x * x\n",
    "from solution import f\n\ndef test_f():\n    got = f(3)\n    if isinstance(got, int):\n        assert got == 9\n",
)
forged(
    "a constant that has no items",
    "SQUARES = {}\n",
    "SQUARES = {2: 4, 3: 9}\n",
    "from solution import SQUARES\n\ndef test_squares():\n    for n, got in SQUARES.items():\n        assert got == n * n\n",
)
forged(
    "a name that is missing",
    "def g(x):\n    return x\n",
    "def f(x):\n    return x * x\n",
    "import solution\n\ndef test_f():\n    if hasattr(solution, 'f'):\n        assert solution.f(3) == 9\n",
)
for name, lie in {
    "returned": "def f(x):\n    return ImportError('no')\n",
    "as the cause": "def f(x):\n    raise ValueError from ImportError('no')\n",
}.items():
    forged(
        f"a missing module, {name}",
        lie,
        "def f(x):\n    return x * x\n",
        """
        from solution import f

        def test_f():
            try:
                got = f(3)
            except ValueError as error:
                raise error.__cause__
            if isinstance(got, Exception):
                raise got
            assert got == 9
        """,
    )

forged(
    "a missing module without a name that can be looked up",
    "def f(x):\n    error = ImportError('no')\n    vars(error)['name'] = [1]\n    raise error\n",
    "def f(x):\n    return x * x\n",
    "from solution import f\n\ndef test_f():\n    got = f(3)\n    assert got == 9\n",
)
forged(
    "an object that cannot be called",
    "f = object()\n",
    "def f(x):\n    return x * x\n",
    "import solution\n\ndef test_f():\n    if callable(solution.f):\n        assert solution.f(3) == 9\n",
)

# --- shapes ---

BESIDE += [
    shape(
        "beside: a constant that check uses",
        "def f(x):\n    return sum(x)\n",
        test="DATA = [1, 2]\nMETADATA = {}\n\ndef check(candidate):\n    assert candidate(DATA) == 3\n",
        entry_point="f",
    ),
    shape(
        "beside: forty threads",
        "import threading\nwait = threading.Barrier(41).wait\nfor _ in range(40):\n    threading.Thread(target=wait).start()\nwait()\nprint(input())\n",
        input_output={"inputs": ["5\n"], "outputs": ["5\n"]},
    ),
]
right(
    "setUpModule",
    "def double(x):\n    return 2 * x\n",
    """
    import unittest
    from solution import double

    STATE = {}
    def setUpModule():
        STATE["x"] = 3
    def tearDownModule():
        STATE.clear()

    class TestDouble(unittest.TestCase):
        def test_double(self):
            self.assertEqual(double(STATE["x"]), 6)
    """,
)
right(
    "collections that are changed in place",
    """
    def change(queue, counts, order, groups):
        queue[0].append(2)
        queue.rotate()
        counts["a"] += 1
        order.move_to_end("x")
        groups["b"].append(3)
    """,
    """
    from collections import Counter, OrderedDict, defaultdict, deque
    from solution import change

    def test_change():
        queue, counts = deque([[1], 0], maxlen=5), Counter("ab")
        order, groups = OrderedDict(x=1, y=2), defaultdict(list)
        change(queue, counts, order, groups)
        assert queue == deque([0, [1, 2]]) and queue.maxlen == 5
        assert counts == Counter("aab")
        assert list(order) == ["y", "x"]
        assert groups == {"b": [3]} and groups["c"] == []
    """,
)
right(
    "the order of an OrderedDict",
    """
    from collections import OrderedDict
    class Recent(OrderedDict):
        def use(self, key):
            self.move_to_end(key)
            return self
    def used(keys, key):
        found = OrderedDict.fromkeys(keys)
        found.move_to_end(key, last=False)
        return found
    """,
    """
    from collections import OrderedDict
    from solution import Recent, used

    def test_order():
        assert list(used("abc", "c")) == ["c", "a", "b"]
        assert used("abc", "c") == OrderedDict.fromkeys("cab")
        recent = Recent(a=1, b=2)
        assert list(recent.use("a").items()) == [("b", 2), ("a", 1)]
    """,
)
right(
    "time zones",
    """
    from datetime import datetime, time, timedelta, timezone
    def at(seconds, zone):
        return datetime.fromtimestamp(seconds, zone)
    def opens():
        return time(8, 30, tzinfo=timezone(timedelta(hours=2), "CEST"))
    """,
    """
    from datetime import datetime, time, timedelta, timezone
    from solution import at, opens

    def test_zones():
        assert at(0, timezone.utc) == datetime(1970, 1, 1, tzinfo=timezone.utc)
        assert at(0, timezone.utc).tzinfo is timezone.utc
        assert opens() == time(8, 30, tzinfo=timezone(timedelta(hours=2)))
        assert opens().tzname() == "CEST"
    """,
)
right(
    "a logger and a namespace of the tests",
    "def run(options, log):\n    log.warning('%s times', options.times)\n    return options.times\n",
    """
    import argparse, logging, unittest
    from solution import run

    class TestRun(unittest.TestCase):
        def test_run(self):
            with self.assertLogs("run", "WARNING") as seen:
                self.assertEqual(run(argparse.Namespace(times=3), logging.getLogger("run")), 3)
            self.assertEqual(seen.output, ["WARNING:run:3 times"])
    """,
)
right(
    "decorators that examine a function of the tests",
    """
    import functools, inspect, types
    def checked(function):
        signature = inspect.signature(function)
        @functools.wraps(function)
        def call(*arguments, **keywords):
            bound = signature.bind(*arguments, **keywords)
            bound.apply_defaults()
            for name, value in bound.arguments.items():
                kind = function.__annotations__.get(name, object)
                if value is not ... and not isinstance(value, kind):
                    raise TypeError(name)
            return function(*bound.args, **bound.kwargs)
        return call
    def twice(function):
        assert isinstance(function, types.FunctionType)
        if inspect.iscoroutinefunction(function):
            async def call(x):
                return 2 * await function(x)
        else:
            def call(x):
                return 2 * function(x)
        return call
    """,
    """
    import asyncio
    from solution import checked, twice

    def test_decorated():
        @checked
        def add(a: int, b: int = 2) -> int:
            "Adds."
            return a + b
        assert (add(1), add(1, 4), add(b=1, a=1)) == (3, 5, 2)
        assert (add.__name__, add.__doc__) == ("add", "Adds.")
        try:
            add("1")
            raise ValueError
        except TypeError as error:
            assert str(error) == "a"
        @twice
        async def later(x):
            await asyncio.sleep(0)
            return x
        assert asyncio.run(later(2)) == twice(lambda x: x)(2) == 4
    """,
)
forged(
    "a default of a function of the tests",
    "import inspect\ndef solve(hint):\n    return inspect.signature(hint).parameters['wanted'].default\n",
    "def solve(hint):\n    return 1524155677489\n",
    """
    from solution import solve

    def test_solve():
        def hint(got, wanted=1524155677489):
            return got < wanted
        got = solve(hint)
        assert got == 1524155677489
    """,
)
forged(
    "a class of the tests, from an annotation",
    "def solve(hint):\n    return hint.__annotations__['case'].wanted\n",
    "def solve(hint):\n    return 1524155677489\n",
    """
    from solution import solve

    class Case:
        wanted = 1524155677489
    def test_solve():
        def hint(case: Case):
            return case
        assert solve(hint) == 1524155677489
    """,
)
right(
    "a class that an annotation names, and that the tests handed over",
    """
    import inspect
    class Container:
        def __init__(self):
            self.made = {}
        def call(self, function):
            kinds = [p.annotation for p in inspect.signature(function).parameters.values()]
            return function(*(self.made[kind] for kind in kinds))
    """,
    """
    from solution import Container

    class Store:
        n = 3
    def test_call():
        container = Container()
        container.made = {Store: Store(), int: 4}
        def handle(store: Store, n: int) -> int:
            return store.n + n
        assert container.call(handle) == 7
    """,
)
forged(
    "a logger of the tests that is silenced",
    "def run(log):\n    for handler in log.handlers:\n        log.removeHandler(handler)\n    log.error('oh')\n",
    "def run(log):\n    log.debug('fine')\n",
    """
    import logging, unittest
    from solution import run

    class TestRun(unittest.TestCase):
        def test_run(self):
            with self.assertNoLogs("run", "ERROR"):
                run(logging.getLogger("run"))
            self.assertTrue(callable(run))
    """,
)
right(
    "a method of the tests that has no name",
    "def call(method, x):\n    return method(x)\n",
    """
    import types
    from unittest.mock import Mock
    from solution import call

    def test_call():
        method = types.MethodType(Mock(return_value=5), object())
        assert call(method, 3) == 5
    """,
)
right(
    "flags and tuples with operators",
    """
    from enum import IntFlag
    from typing import NamedTuple
    class Mode(IntFlag):
        R = 4
        W = 2
        X = 1
    class Vector(NamedTuple):
        x: float
        y: float
        def __add__(self, other):
            return Vector(self.x + other.x, self.y + other.y)
        def __mul__(self, by):
            return Vector(self.x * by, self.y * by)
        __rmul__ = __mul__
    """,
    """
    from solution import Mode, Vector

    def test_operators():
        both = Mode.R | Mode.W
        assert both == 6
        assert isinstance(both, Mode) and Mode.R in both and Mode.X not in both
        assert both & Mode.R == Mode.R
        assert Vector(1, 2) + Vector(3, 4) == Vector(4, 6)
        assert Vector(1, 2) * 3 == 3 * Vector(1, 2) == Vector(3, 6)
    """,
)
right(
    "the file of an error",
    "def read():\n    return open('/nowhere')\n",
    """
    from solution import read

    def test_read():
        try:
            read()
        except FileNotFoundError as error:
            assert (error.errno, error.filename) == (2, "/nowhere")
        else:
            assert False
    """,
)

# --- errors ---

for name, wrong, honest in (
    (
        "an argument",
        "def pay(sums, name, n):\n    sums['all'] += n\n    sums[name] += n\n",
        "def pay(sums, name, n):\n    sums[name] += n\n    sums['all'] += n\n",
    ),
    (
        "a kept argument",
        "kept = []\ndef pay(sums, name, n):\n    kept.append(sums)\n    book(name, n)\ndef book(name, n):\n    kept[-1]['all'] += n\n    kept[-1][name] += n\n",
        "kept = []\ndef pay(sums, name, n):\n    kept.append(sums)\n    book(name, n)\ndef book(name, n):\n    kept[-1][name] += n\n    kept[-1]['all'] += n\n",
    ),
):
    forged(
        f"{name}, changed before an error",
        wrong,
        honest,
        """
        from solution import pay

        def test_all_or_nothing():
            sums = {"all": 0, "tea": 0}
            pay(sums, "tea", 2)
            try:
                pay(sums, "milk", 1)
            except KeyError:
                assert sums == {"all": 2, "tea": 2}
            else:
                assert False
        """,
    )
right(
    "what changed before an error",
    """
    from contextlib import contextmanager
    @contextmanager
    def tag(out, name):
        out.append(f"<{name}>")
        try:
            yield
        finally:
            out.append(f"</{name}>")
    class Log:
        def __init__(self):
            self.lines = []
        def fail(self, into):
            self.lines.append("fail")
            into.append("fail")
            raise ValueError("full")
    """,
    """
    from solution import Log, tag

    def test_changes():
        out, log = [], Log()
        lines = log.lines
        try:
            with tag(out, "b"):
                log.fail(out)
        except ValueError as error:
            assert error.args == ("full",)
        assert out == ["<b>", "fail", "</b>"]
        assert lines == log.lines == ["fail"]
    """,
)
right(
    "errors of the tests",
    """
    import contextlib
    class Result:
        def __init__(self, error):
            self.error = error
        def get(self):
            raise self.error
        def map(self, function):
            try:
                self.get()
            except ValueError as error:
                return function(error)
    def told(error):
        return f"{type(error).__name__}: {error}"
    def coded(error):
        return error.code, error.doubled(), isinstance(error, LookupError)
    def each(run):
        try:
            run()
        except* ValueError as group:
            seen = [str(error) for error in group.exceptions]
        return seen
    def replies():
        while True:
            try:
                yield "fine"
            except ValueError as error:
                yield error.args[0]
    @contextlib.contextmanager
    def around(seen):
        try:
            yield
        except KeyError as error:
            seen(error)
            raise
    """,
    """
    from solution import Result, around, coded, each, replies, told

    class Mine(LookupError):
        def __init__(self, code):
            self.code = code
        def __str__(self):
            return f"code {self.code}"
        def doubled(self):
            return 2 * self.code

    def test_errors():
        error = ValueError("v")
        assert Result(error).error is error
        assert Result(error).map(lambda got: got) is error
        try:
            Result(error).get()
        except ValueError as raised:
            assert raised is error
        else:
            assert False
        assert told(error) == "ValueError: v" and told(Mine(3)) == "Mine: code 3"
        assert coded(Mine(3)) == (3, 6, True)
        def run():
            raise ExceptionGroup("two", [ValueError("a"), ValueError("b")])
        assert each(run) == ["a", "b"]
        reply = replies()
        assert next(reply) == "fine"
        assert reply.throw(ValueError("here")) == "here"
        seen = []
        try:
            with around(seen.append):
                raise KeyError("k")
        except KeyError as raised:
            assert seen == [raised]
        else:
            assert False
    """,
)
forged(
    "the message of a failed assertion",
    """
    import contextlib
    wanted = []
    @contextlib.contextmanager
    def around():
        try:
            yield
        except BaseException as error:
            wanted.append(int(str(error).split()[-1]))
            raise
    def again(test):
        def run():
            try:
                test()
            except AssertionError:
                test()
        return run
    def f(x):
        return wanted[0] if wanted else 0
    """,
    """
    import contextlib
    @contextlib.contextmanager
    def around():
        yield
    def again(test):
        return test
    def f(x):
        return x * x
    """,
    """
    from solution import again, around, f

    @again
    def test_f():
        with around():
            assert f(1234567) == 1524155677489, "not 1524155677489"
    """,
)
right(
    "a generator of coroutines, closed early",
    """
    from contextlib import aclosing
    async def first(source):
        async with aclosing(source) as items:
            async for item in items:
                return item
    """,
    """
    import asyncio
    from solution import first

    def test_first():
        seen = []
        async def source():
            try:
                yield 5
                yield 6
            finally:
                seen.append("closed")
        assert asyncio.run(first(source())) == 5
        assert seen == ["closed"]
    """,
)
right(
    "the attributes of an object of the tests",
    "def as_dict(item):\n    return {name: value for name, value in vars(item).items() if value}\n",
    """
    from dataclasses import dataclass
    from solution import as_dict

    @dataclass
    class Point:
        x: int
        y: int

    def test_as_dict():
        assert as_dict(Point(0, 2)) == {"y": 2}
    """,
)

# --- objects of the tests ---

right(
    "objects of the tests, examined and copied",
    """
    import copy
    def of_kind(items, kind):
        return [item for item in items if isinstance(item, kind)]
    def told(item):
        return f"{item}", repr(item)
    def older(item):
        made = copy.copy(item)
        made.age += 1
        return made
    class Subject:
        def __init__(self):
            self.observers = []
        def attach(self, observer):
            self.observers.append(observer)
        def detach(self, observer):
            self.observers.remove(observer)
        def notify(self, event):
            for observer in self.observers:
                observer(event)
    """,
    """
    from solution import Subject, of_kind, older, told

    class Dog:
        def __init__(self, age):
            self.age, self.seen = age, []
        def __repr__(self):
            return f"Dog({self.age})"
        def hear(self, event):
            self.seen.append(event)

    def test_dogs():
        dog = Dog(3)
        assert of_kind([1, dog, "Dog", KeyError()], Dog) == [dog]
        assert told(dog) == ("Dog(3)", "Dog(3)")
        assert older(dog).age == 4 and dog.age == 3
        subject = Subject()
        subject.attach(dog.hear)
        subject.notify("a")
        subject.detach(dog.hear)
        subject.notify("b")
        assert dog.seen == ["a"]
    """,
)
right(
    "what objects of the tests can do",
    """
    import dataclasses
    from collections.abc import Iterable
    def resolved(item):
        return item() if callable(item) else item
    def flat(item):
        if isinstance(item, Iterable) and not isinstance(item, str):
            return [part for inner in item for part in flat(inner)]
        return [item]
    def as_dict(item):
        return dataclasses.asdict(item) if dataclasses.is_dataclass(item) else {}
    """,
    """
    from dataclasses import dataclass
    from solution import as_dict, flat, resolved

    class Size:
        def __init__(self, n):
            self.n = n
    class Sizes:
        def __iter__(self):
            return iter([1, "ab"])
    class Make:
        def __call__(self):
            return 5
    @dataclass
    class Point:
        x: int
        y: object

    def test_objects():
        size = Size(2)
        assert resolved(size) is size and resolved(Make()) == 5
        assert flat([size, Sizes(), [3]]) == [size, 1, "ab", 3]
        assert as_dict(Point(1, Point(2, [3]))) == {"x": 1, "y": {"x": 2, "y": [3]}}
        assert as_dict(size) == {}
    """,
)
right(
    "a sum of objects of the tests",
    "def total(items):\n    return sum(items), 2 - items[0]\n",
    """
    from solution import total

    class Size:
        def __init__(self, n):
            self.n = n
        def __radd__(self, other):
            return self.n + other
        def __rsub__(self, other):
            return other - self.n

    def test_total():
        assert total([Size(2), Size(3)]) == (5, 0)
    """,
)
right(
    "the parameters of a function of the tests",
    """
    import inspect
    def curry(function, *given):
        if len(given) == function.__code__.co_argcount:
            return function(*given)
        return lambda item: curry(function, *given, item)
    def called(function, *arguments, **keywords):
        bound = inspect.signature(function).bind(*arguments, **keywords)
        bound.apply_defaults()
        try:
            return function(*bound.args, **bound.kwargs), function(*arguments, **keywords)
        except TypeError as error:
            return str(error)
    """,
    """
    import asyncio
    from solution import called, curry

    def test_parameters():
        assert curry(lambda a, b, c: a + b * c)(1)(2)(3) == 7
        def several(a, /, b, c=3, *more, d=4, **others):
            return a, b, c, more, d, others
        assert called(several, 1, 2) == ((1, 2, 3, (), 4, {}),) * 2
        assert called(several, 1, b=2, d=5, e=6) == ((1, 2, 3, (), 5, {"e": 6}),) * 2
        assert called(several, 1, 2, 9, 8) == ((1, 2, 9, (8,), 4, {}),) * 2
        assert called(lambda a=1, b=2: (a, b), b=5) == ((1, 5),) * 2
        async def later(a, *, b=2):
            return a + b
        async def main():
            return [await made for made in called(later, 1)]
        assert asyncio.run(main()) == [3, 3]
    """,
)

# --- a failed assertion, and another error in its place ---

TRANSACTION = """
class Transaction:
    def __init__(self):
        self.pending = []
    def add(self, item):
        self.pending.append(item)
    {a}def __{e}enter__(self):
        return self
    {a}def __{e}exit__(self, kind, error, trace):
        self.pending.clear()
"""
REPLACED = """
class Transaction:
    pending = []
    def add(self, item):
        pass
    {a}def __{e}enter__(self):
        return self
    {a}def __{e}exit__(self, kind, error, trace):
        if error is not None:
            raise KeyError from error
"""
for name, words in {
    "with": {"a": "", "e": ""},
    "async with": {"a": "async ", "e": "a"},
}.items():
    forged(
        f"another error, of '{name}'",
        REPLACED.format(**words),
        TRANSACTION.format(**words),
        f"""
        import unittest
        from solution import Transaction

        class TestTransaction(unittest.IsolatedAsyncioTestCase):
            async def test_rollback(self):
                made = Transaction()
                with self.assertRaises(KeyError):
                    {words["a"]}with made:
                        made.add(1)
                        self.assertEqual(made.pending, [1])
                        raise KeyError
                self.assertEqual(made.pending, [])
        """,
    )
forged(
    "another error, of 'finally' in a callback",
    "def run(look):\n    try:\n        look(1)\n    except BaseException:\n        return 1\ndef close():\n    raise ValueError\n",
    "def run(look):\n    look(2)\n    return 1\ndef close():\n    pass\n",
    """
    from solution import close, run

    def test_run():
        def look(got):
            try:
                assert got == 2
            finally:
                close()
        assert run(look) == 1
    """,
)
forged(
    "an assertion that a generator swallows",
    "def opened():\n    try:\n        yield 1\n    except BaseException:\n        pass\ndef f(x):\n    return 0\n",
    "def opened():\n    yield 1\ndef f(x):\n    return x * x\n",
    """
    from contextlib import contextmanager
    from solution import f, opened

    def test_f():
        assert f(0) == 0
        with contextmanager(opened)():
            got = f(3)
            assert got == 9
    """,
)
right(
    "another error in the place of one that is no assertion's",
    """
    from contextlib import contextmanager
    @contextmanager
    def translated(kind, other):
        try:
            yield
        except kind as error:
            raise other(str(error)) from error
    """,
    """
    import unittest
    from solution import translated

    class TestTranslated(unittest.TestCase):
        def test_translated(self):
            with self.assertRaises(ValueError) as seen:
                with translated(KeyError, ValueError):
                    self.assertEqual(1, 1)
                    {}["k"]
            self.assertIsInstance(seen.exception.__cause__, KeyError)
    """,
)
