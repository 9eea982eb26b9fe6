"""Tasks and timers that a candidate starts in the event loop of the tests."""

from __future__ import annotations

from attacks.program import Topic

__all__ = ["EVENT_LOOPS"]

EVENT_LOOPS = Topic("event loops")
forged, right = EVENT_LOOPS.forged, EVENT_LOOPS.right

right(
    "a timer that is set again",
    """
        import asyncio
        class Debouncer:
            def __init__(self, wait, fn): self.wait, self.fn, self.h = wait, fn, None
            async def __call__(self, x):
                if self.h: self.h.cancel()
                self.h = asyncio.get_running_loop().call_later(self.wait, self.fn, x)
    """,
    """
        import asyncio
        from solution import Debouncer
        def test_it():
            async def main():
                got = []
                d = Debouncer(0.01, got.append)
                await d(1)
                await d(2)
                await asyncio.sleep(0.05)
                return got
            assert asyncio.run(main()) == [2]
    """,
)
right(
    "a task that waits for work",
    """
        import asyncio
        class Worker:
            def __init__(self): self.got = []
            async def start(self):
                self.q = asyncio.Queue()
                self.t = asyncio.create_task(self.run())
            async def run(self):
                while True:
                    self.got.append(await self.q.get())
                    self.q.task_done()
            async def put(self, x): await self.q.put(x)
            async def stop(self):
                self.t.cancel()
                try: await self.t
                except asyncio.CancelledError: pass
    """,
    """
        import asyncio
        from solution import Worker
        def test_it():
            async def main():
                w = Worker()
                await w.start()
                await w.put(1)
                await w.put(2)
                await asyncio.sleep(0.01)
                assert w.got == [1, 2]
                await w.stop()
            asyncio.run(main())
    """,
)
right(
    "a future that a constructor makes",
    """
        import asyncio
        class Later:
            def __init__(self): self.f = asyncio.get_running_loop().create_future()
            def done(self, x): self.f.set_result(x)
            def __await__(self): return self.f.__await__()
    """,
    """
        import asyncio
        from solution import Later
        def test_it():
            async def main():
                l = Later()
                l.done(3)
                return await l
            assert asyncio.run(main()) == 3
    """,
)
right(
    "a timer of a plain method",
    """
        import asyncio
        class Cache:
            def __init__(self): self.d = {}
            def expire(self, k, after):
                asyncio.get_running_loop().call_later(after, self.d.pop, k, None)
            def put(self, k, v, ttl):
                self.d[k] = v
                self.expire(k, ttl)
            def get(self, k): return self.d.get(k)
    """,
    """
        import asyncio, unittest
        from solution import Cache
        class T(unittest.IsolatedAsyncioTestCase):
            async def test_it(self):
                c = Cache()
                c.put("a", 1, 0.01)
                self.assertEqual(c.get("a"), 1)
                await asyncio.sleep(0.05)
                self.assertIsNone(c.get("a"))
    """,
)
right(
    "a task that a plain function returns",
    """
        import asyncio
        def start(fn, *a): return asyncio.ensure_future(fn(*a))
    """,
    """
        import asyncio
        from solution import start
        def test_it():
            async def job(x):
                await asyncio.sleep(0)
                return x * 2
            async def main():
                t = start(job, 3)
                assert not t.done()
                assert await t == 6
                assert t.done() and t.result() == 6
            asyncio.run(main())
    """,
)
forged(
    "no task for a handler",
    """
        import asyncio
        class Bus:
            def __init__(self): self.h = []
            def on(self, h): self.h.append(h)
            def emit(self, x): pass
    """,
    """
        import asyncio
        class Bus:
            def __init__(self): self.h = []
            def on(self, h): self.h.append(h)
            def emit(self, x):
                for h in self.h:
                    asyncio.create_task(h(x))
    """,
    """
        import asyncio
        from solution import Bus
        def test_it():
            async def main():
                b, got = Bus(), []
                async def h(x): got.append(x)
                b.on(h)
                b.emit(1)
                await asyncio.sleep(0.02)
                assert got == [1]
            asyncio.run(main())
    """,
)
forged(
    "a task that swallows an assertion of a handler",
    """
        import asyncio
        class Bus:
            def __init__(self): self.h = []
            def on(self, h): self.h.append(h)
            def emit(self, x):
                for h in self.h:
                    asyncio.create_task(self.run(h, x))
            async def run(self, h, x):
                try:
                    await h(0)
                except BaseException:
                    pass
    """,
    """
        import asyncio
        class Bus:
            def __init__(self): self.h = []
            def on(self, h): self.h.append(h)
            def emit(self, x):
                for h in self.h:
                    asyncio.create_task(h(x))
    """,
    """
        import asyncio
        from solution import Bus
        def test_it():
            async def main():
                b, got = Bus(), []
                async def h(x):
                    assert x == 1
                    got.append(x)
                b.on(h)
                b.emit(1)
                await asyncio.sleep(0.02)
                assert len(got) <= 1
            asyncio.run(main())
    """,
)
forged(
    "a task that ends as if it were cancelled",
    """
        import asyncio
        def start(x):
            async def run():
                raise asyncio.CancelledError
            return asyncio.create_task(run())
    """,
    """
        import asyncio
        def start(x):
            async def run():
                await asyncio.sleep(0)
                return x * x
            return asyncio.create_task(run())
    """,
    """
        import asyncio
        from solution import start
        def test_it():
            async def main():
                ts = [start(n) for n in range(3)]
                done, pending = await asyncio.wait(ts)
                assert not pending
                assert sorted(t.result() for t in done) == [0, 1, 4]
            asyncio.run(main())
    """,
)
right(
    "tasks end with the run",
    """
        import asyncio
        log = []
        async def forever():
            try:
                while True:
                    await asyncio.sleep(0.001)
            finally:
                log.append("ended")
        def start():
            return asyncio.create_task(forever())
    """,
    """
        import asyncio
        from solution import start, log
        def test_it():
            async def main():
                start()
                await asyncio.sleep(0.01)
                assert log == []
            asyncio.run(main())
            assert log == ["ended"]
            asyncio.run(main2())
        async def main2():
            t = start()
            await asyncio.sleep(0.005)
            t.cancel()
            try:
                await t
            except asyncio.CancelledError:
                pass
            assert len(log) == 2
    """,
)
right(
    "a loop that runs twice",
    """
        import asyncio
        class Acc:
            def __init__(self): self.n = 0
            async def add(self, x):
                await asyncio.sleep(0)
                self.n += x
                return self.n
            def later(self, x): asyncio.get_running_loop().call_soon(self.inc, x)
            def inc(self, x): self.n += x
    """,
    """
        import asyncio
        from solution import Acc
        def test_it():
            loop = asyncio.new_event_loop()
            a = Acc()
            assert loop.run_until_complete(a.add(1)) == 1
            assert loop.run_until_complete(a.add(2)) == 3
            async def main():
                a.later(5)
                await asyncio.sleep(0.01)
                return a.n
            assert loop.run_until_complete(main()) == 8
            loop.close()
            try:
                a.later(1)
            except RuntimeError as e:
                assert "no running event loop" in str(e)
            else:
                assert False
    """,
)
right(
    "a decorator that looks for a loop",
    """
        import asyncio, functools
        def maybe(fn):
            @functools.wraps(fn)
            def w(*a):
                try:
                    asyncio.get_running_loop()
                except RuntimeError:
                    return asyncio.run(fn(*a))
                return fn(*a)
            return w
        @maybe
        async def double(x):
            await asyncio.sleep(0)
            return 2 * x
    """,
    """
        import asyncio
        from solution import double
        def test_it():
            assert double(3) == 6
            async def main(): return await double(4)
            assert asyncio.run(main()) == 8
    """,
)
right(
    "threads beside a task",
    """
        import asyncio, time
        async def work(n):
            loop = asyncio.get_running_loop()
            a = await loop.run_in_executor(None, lambda: n + 1)
            b = await asyncio.to_thread(lambda: n * 2)
            return a + b
        def begin(n, out):
            async def run(): out.append(await work(n))
            return asyncio.create_task(run())
    """,
    """
        import asyncio
        from solution import work, begin
        def test_it():
            async def main():
                assert await work(3) == 10
                out = []
                begin(3, out)
                await asyncio.sleep(0.1)
                assert out == [10]
            asyncio.run(main())
    """,
)
right(
    "queues that the candidate makes",
    """
        import asyncio
        class Topic:
            def __init__(self): self.subs = set()
            def subscribe(self):
                q = asyncio.Queue()
                self.subs.add(q)
                return q
            def publish(self, x):
                for q in self.subs: q.put_nowait(x)
    """,
    """
        import asyncio
        from solution import Topic
        def test_it():
            async def main():
                t = Topic()
                a, b = t.subscribe(), t.subscribe()
                async def reader(q):
                    return [await q.get() for _ in range(2)]
                tasks = [asyncio.create_task(reader(q)) for q in (a, b)]
                await asyncio.sleep(0)
                t.publish(1)
                t.publish(2)
                assert await asyncio.gather(*tasks) == [[1, 2], [1, 2]]
                try:
                    await asyncio.wait_for(a.get(), 0.01)
                except asyncio.TimeoutError:
                    pass
                else:
                    assert False
            asyncio.run(main())
    """,
)
right(
    "context variables of tasks",
    """
        import contextvars
        request = contextvars.ContextVar("request", default=None)
        async def handle(n):
            import asyncio
            request.set(n)
            await asyncio.sleep(0.001)
            return request.get()
    """,
    """
        import asyncio
        from solution import handle, request
        def test_it():
            async def main():
                return await asyncio.gather(*[handle(n) for n in range(5)])
            assert asyncio.run(main()) == [0, 1, 2, 3, 4]
            assert request.get() is None
    """,
)
