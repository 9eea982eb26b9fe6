"""Coroutines and tasks of the tests and of the candidate, of which one waits for another."""

# ruff: noqa: E501 - programs within strings are as wide as they are
from __future__ import annotations

from attacks.program import Topic

__all__ = ["COROUTINES"]

COROUTINES = Topic("coroutine")
forged, right = COROUTINES.forged, COROUTINES.right

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
    import asyncio, gc, sys, threading
    kind = sys.modules["gatekeeper.sandbox.inside.handles"].FUNCTION
    def start(function, *arguments):  # a task of the tests, of which it asks nothing more
        peer = next(o for o in gc.get_objects() if type(o).__name__ == "CandidatePeer")
        handle = kind(peer, peer._functions[id(function)])
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

# --- a coroutine of the tests that the candidate closes, or cancels ---

GATHER = "import asyncio\nasync def gather(*made):\n    return await asyncio.gather(*made)\nasync def f(x):\n    return x * x\n"
for name, gather in {
    "closes": "for one in made: one.close()",
    "cancels": "for one in made:\n        task = asyncio.ensure_future(one)\n        await asyncio.sleep(0)\n        task.cancel()",
    "forgets": "globals().update(kept=made)",
}.items():
    COROUTINES.left_out(
        f"a coroutine of the tests that the candidate {name}",
        f"import asyncio\nasync def gather(*made):\n    {gather}\n    return [0] * len(made)\nasync def f(x):\n    await asyncio.sleep(5)\n",
        GATHER,
        """
        import asyncio
        from solution import f, gather

        async def one(x):
            got = await f(x)
            assert got == x * x
            return 0

        def test_gather():
            assert asyncio.run(gather(one(2), one(3))) == [0, 0]
        """,
    )
right(
    "coroutines of the tests that are to be cancelled",
    GATHER
    + "async def race(*made):\n    tasks = [asyncio.ensure_future(one) for one in made]\n    done, rest = await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)\n    for task in rest: task.cancel()\n    return done.pop().result()\nasync def limited(made, seconds):\n    return await asyncio.wait_for(made, seconds)\nasync def twice(function, x):\n    return await function(x), await function(x)\n",
    """
    import asyncio, unittest
    from solution import gather, limited, race, twice

    class TestTasks(unittest.IsolatedAsyncioTestCase):
        async def test_race(self):
            async def fast():
                return 1
            async def slow():
                await asyncio.sleep(9)
                self.fail("it is too late")
            self.assertEqual(await race(fast(), slow()), 1)
        async def test_limited(self):
            seen = []
            async def slow():
                try:
                    await asyncio.sleep(9)
                    assert False, "it is too late"
                except asyncio.CancelledError:
                    seen.append(1)
                    raise
            with self.assertRaises(asyncio.TimeoutError):
                await limited(slow(), 0.05)
            self.assertEqual(seen, [1])
        async def test_all(self):
            async def one(x):
                await asyncio.sleep(0.01)
                assert x > 0
                return x
            self.assertEqual(await gather(one(1), one(2)), [1, 2])
            self.assertEqual(await twice(one, 3), (3, 3))
    """,
)

# --- a task of the tests that ends as if the tests had cancelled it ---

TASKS = "import asyncio\nfrom solution import double\n\nasync def one(n):\n    assert await double(n) == 2 * n\n\nasync def test_double():\n    %s\n"
TOGETHER = {
    "asyncio.wait": "await asyncio.wait([asyncio.create_task(one(n)) for n in range(3)])",
    "a group of tasks": "async with asyncio.TaskGroup() as group:\n        group.create_task(one(3))",
    "a task left alone": "task = asyncio.create_task(one(3))\n    await asyncio.sleep(0.1)",
}
for name, body in TOGETHER.items():
    forged(
        f"a cancelled task: {name}",
        "import asyncio\nasync def double(n):\n    raise asyncio.CancelledError\n",
        "async def double(n):\n    return 2 * n\n",
        TASKS % body,
    )
right(
    "a task that is cancelled, as the tests expect",
    "import asyncio\nasync def stop(n):\n    raise asyncio.CancelledError\n",
    "import asyncio\nfrom solution import stop\n\nasync def test_stop():\n    task = asyncio.create_task(stop(3))\n    try:\n        await task\n    except asyncio.CancelledError:\n        pass\n    assert task.cancelled()\n    waiting = asyncio.create_task(asyncio.sleep(9))\n    waiting.cancel()\n",
)
