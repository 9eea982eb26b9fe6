"""Threads of the tests and of the candidate, of which one waits for another."""

# ruff: noqa: E501 - programs within strings are as wide as they are
from __future__ import annotations

from attacks.program import Topic, shape

__all__ = ["THREADS"]

THREADS = Topic("thread")
forged, right = THREADS.forged, THREADS.right

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
THREADS.append(
    shape(
        "thread: forty of a program",
        "import threading\nwait = threading.Barrier(41).wait\nfor _ in range(40):\n    threading.Thread(target=wait).start()\nwait()\nprint(input())\n",
        input_output={"inputs": ["5\n"], "outputs": ["5\n"]},
    )
)
