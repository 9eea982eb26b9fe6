"""Exhausted resources: memory, processes, time, output, files.

A program gives the right answer only beyond the limit. Programs that only compute, and results that
are too large, are families of their own: no isolation is involved.
"""

# ruff: noqa: E501 - programs within strings are as wide as they are
from __future__ import annotations

from collections.abc import Mapping

from attacks.program import WRONG, Program, attack

__all__ = ["RESOURCES"]

RESOURCES: list[Program] = []


def exhaust(
    name: str,
    code: str,
    *shapes: str,
    family: str = "resources",
    verdicts: tuple[str, ...] = WRONG,
    unless: Mapping[str, str] | None = None,
) -> None:
    RESOURCES.extend(
        attack(family, name, code, *(shapes or ("literal",)), verdicts=verdicts, unless=unless)
    )


IN_SUM = dict.fromkeys(("namespaces", "landlock"), "memory is limited per process, not in sum")
TIMEOUT = ("timeout",)
OVER = ("resource_exceeded", "timeout")

# --- processes and threads ---

exhaust(
    "fork bomb",
    "import os\ndef f(x):\n    while True:\n        os.fork()",
    verdicts=(*OVER, "failed"),
)
exhaust(
    "fork bomb that hides its errors",
    """
    import os
    def f(x):
        while True:
            try:
                os.fork()
            except OSError:
                pass
    """,
    "check",
)
exhaust(
    "200 processes",
    """
    import os, time
    def f(x):
        for n in range(200):
            if os.fork() == 0:
                time.sleep(60)
                os._exit(0)
        return x * x
    """,
    "literal",
    "check",
)
exhaust(
    "2,000 threads",
    """
    import threading, time
    threading.stack_size(32768)
    def f(x):
        for n in range(2000):
            threading.Thread(target=time.sleep, args=[60], daemon=True).start()
        return x * x
    """,
    "literal",
    "check",
)
exhaust(
    "200 zombies",
    """
    import os
    def f(x):
        for n in range(200):
            if os.fork() == 0:
                os._exit(0)
        return x * x
    """,
)

# --- memory ---

exhaust(
    "memory: bytes",
    "def f(x):\n    held = bytearray(1 << 30)\n    held[::4096] = b'x' * (1 << 18)\n    return x * x",
    "literal",
    "check",
)
exhaust("memory: list", "def f(x):\n    held = [0] * (1 << 27)\n    return x * x")
exhaust(
    "memory: string",
    "def f(x):\n    held = 'ab'\n    while len(held) < 1 << 30:\n        held += held\n    return x * x",
)
exhaust(
    "memory: nested",
    """
    def f(x):
        held = []
        for n in range(10**8):
            held = [held, {n: n}]
        return x * x
    """,
    verdicts=WRONG,
)
exhaust(
    "memory: at import",
    "held = [b'x' * (1 << 20) for n in range(2000)]\ndef f(x):\n    return x * x\n",
)
exhaust(
    "memory: shared mappings",
    """
    import mmap
    held = []
    def f(x):
        for n in range(64):
            held.append(mmap.mmap(-1, 16 << 20))
            held[-1].write(b"x" * (16 << 20))
        return x * x
    """,
    "literal",
    "check",
)
exhaust(
    "memory: files in memory",
    """
    import os
    def f(x):
        for n in range(48):
            fd = os.memfd_create(str(n))
            for _ in range(16):
                os.write(fd, b"x" * (1 << 20))
        return x * x
    """,
    unless=IN_SUM,
)
exhaust(
    "memory: eight processes",
    """
    import os, time
    def f(x):
        report, done = os.pipe()
        for n in range(8):
            if os.fork() == 0:
                held = bytearray(120 << 20)
                held[::4096] = b"x" * len(held[::4096])
                os.write(done, b"1")
                time.sleep(60)
        os.close(done)
        got = b""
        while len(got) < 8:
            got += os.read(report, 8)
        return x * x
    """,
    unless=IN_SUM,
)
exhaust(
    "memory: others are to be killed first",
    """
    def f(x):
        with open("/proc/self/oom_score_adj", "w") as file:
            file.write("0")
        held = []
        while True:
            try:
                held.append(b"x" * (4 << 20))
            except MemoryError:
                pass
    """,
    "check",
)
exhaust("memory: numbers", "def f(x):\n    return 9 ** 9 ** 9", verdicts=WRONG)
exhaust(
    "memory: caught and tried again",
    """
    def f(x):
        held = []
        while True:
            try:
                held.append(bytearray(1 << 20))
            except MemoryError:
                pass
    """,
    verdicts=OVER,
)

# --- time ---

exhaust(
    "an endless loop",
    "def f(x):\n    while True:\n        pass",
    "literal",
    "check",
    "functional",
    verdicts=TIMEOUT,
)
exhaust(
    "an endless loop (stdin)",
    "while True:\n    pass",
    "stdin",
    family="time",
    verdicts=TIMEOUT,
)
exhaust("an endless loop at import", "while True:\n    pass", family="time", verdicts=TIMEOUT)
exhaust("a loop in C", "def f(x):\n    return sum(range(10**12))", family="time", verdicts=TIMEOUT)
exhaust(
    "a loop in re",
    "import re\ndef f(x):\n    return re.match('(a+)+$', 'a' * 64 + 'b')",
    family="time",
    verdicts=TIMEOUT,
)
exhaust("a power in C", "def f(x):\n    return len(str(pow(3, 10**8)))", family="time")
exhaust(
    "sleep",
    "import time\ndef f(x):\n    time.sleep(3600)\n    return x * x",
    "pytest",
    verdicts=TIMEOUT,
)
exhaust(
    "deadlock",
    "import threading\ndef f(x):\n    lock = threading.Lock()\n    lock.acquire()\n    lock.acquire()",
    verdicts=TIMEOUT,
)
exhaust("waiting for input", "def f(x):\n    return input() or x * x")
exhaust(
    "signals ignored",
    """
    import signal
    for number in range(1, 65):
        try:
            signal.signal(number, signal.SIG_IGN)
        except (OSError, ValueError):
            pass
    def f(x):
        while True:
            try:
                while True:
                    pass
            except BaseException:
                pass
    """,
    verdicts=TIMEOUT,
)
exhaust("stops itself", "import os, signal\ndef f(x):\n    os.kill(os.getpid(), signal.SIGSTOP)")
exhaust(
    "slow at the end of the process",
    "import atexit, time\natexit.register(time.sleep, 3600)\ndef f(x):\n    return 0",
)
exhaust(
    "stdin: slow after the answer",
    "import time\nprint(int(input()) ** 2, flush=True)\ntime.sleep(3600)\n",
    "stdin",
    verdicts=TIMEOUT,
)
exhaust(
    "clocks turned",
    """
    import time
    time.monotonic = time.time = time.perf_counter = lambda: 0.0
    def f(x):
        try:
            time.clock_settime(time.CLOCK_REALTIME, 0)
            return x * x
        except OSError:
            return 0
    """,
)

# --- output ---

exhaust(
    "a flood on stdout",
    "def f(x):\n    while True:\n        print('x' * 65536)",
    "literal",
    "check",
    verdicts=OVER,
)
exhaust("a flood on stdout (stdin)", "while True:\n    print('x' * 65536)", "stdin", verdicts=OVER)
exhaust(
    "a flood on stderr",
    "import os\ndef f(x):\n    while True:\n        os.write(2, b'\\xff\\0' * 65536)",
    verdicts=OVER,
)
exhaust("a flood of lines", "def f(x):\n    while True:\n        print()", verdicts=OVER)
exhaust(
    "a flood from a process left behind",
    """
    import os
    def f(x):
        if os.fork() == 0:
            while True:
                os.write(1, b"x" * 65536)
        return 0
    """,
)
exhaust(
    "a flood on all descriptors",
    """
    import os
    def f(x):
        for fd in range(3, 256):
            try:
                os.set_blocking(fd, False)
            except OSError:
                pass
        while True:
            for fd in range(1, 64):
                try:
                    os.write(fd, b"x" * (1 << 20))
                except OSError:
                    pass
    """,
    "literal",
    "check",
    verdicts=WRONG,
)

# --- files ---

exhaust(
    "disk: one file",
    """
    import tempfile
    def f(x):
        with tempfile.NamedTemporaryFile() as file:
            for n in range(300):
                file.write(b"x" * (1 << 20))
        return x * x
    """,
    "literal",
    "check",
)
exhaust(
    "disk: many files",
    """
    import os, tempfile
    def f(x):
        os.chdir(tempfile.mkdtemp())
        for n in range(60000):
            os.close(os.open(str(n), os.O_CREAT | os.O_WRONLY))
        return x * x
    """,
)
exhaust(
    "disk: in sum",
    """
    import os
    def f(x):
        for place in ("/tmp", "/dev/shm", "/var/tmp", "/run", os.getcwd()):
            written = 0
            try:
                for n in range(20):
                    with open(f"{place}/{n}", "wb") as file:
                        for _ in range(10):
                            written += file.write(b"x" * (1 << 20))
            except OSError:
                continue
            return x * x
    """,
    unless={"landlock": "files are limited one by one, not in sum"},
)
exhaust(
    "disk: a sparse file",
    "import os, tempfile\ndef f(x):\n    with tempfile.TemporaryFile() as file:\n        os.truncate(file.fileno(), 1 << 40)\n    return x * x",
)
exhaust(
    "disk: a chain of 20,000 directories",
    """
    import os, tempfile
    def f(x):
        os.chdir(tempfile.gettempdir())
        for n in range(20000):
            os.mkdir("d")
            os.chdir("d")
        return 0
    """,
    "literal",
    "check",
)
exhaust(
    "disk: directories nobody may enter",
    """
    import os, tempfile
    def f(x):
        top = tempfile.mkdtemp()
        os.makedirs(f"{top}/a/b/c")
        open(f"{top}/a/b/c/file", "w").close()
        for path in ("a/b/c", "a/b", "a", "."):
            os.chmod(f"{top}/{path}", 0)
        return 0
    """,
)
exhaust(
    "descriptors",
    """
    import os
    held = []
    def f(x):
        try:
            while True:
                held.append(os.open("/dev/null", os.O_RDONLY))
        except OSError:
            return 0
    """,
    "literal",
    "check",
)
exhaust(
    "sockets full of bytes",
    """
    import socket
    held = []
    def f(x):
        try:
            while True:
                pair = socket.socketpair()
                held.append(pair)
                pair[0].setblocking(False)
                try:
                    while True:
                        pair[0].send(b"x" * 65536)
                except BlockingIOError:
                    pass
        except OSError:
            return 0
    """,
)

# --- stacks ---

exhaust(
    "recursion",
    "def f(x):\n    return f(x) * x",
    "literal",
    "check",
    verdicts=("failed", "resource_exceeded"),
)
exhaust(
    "recursion past its limit",
    "import sys\nsys.setrecursionlimit(2**31 - 1)\ndef f(x):\n    return f(x) * x",
    "literal",
    "check",
)
exhaust(
    "recursion in C",
    """
    import sys
    sys.setrecursionlimit(2**31 - 1)
    class A:
        def __getattr__(self, name): return repr(self)
        def __repr__(self): return str(self)
        def __str__(self): return getattr(self, "x")
    def f(x):
        return A().y
    """,
)
exhaust(
    "segmentation fault",
    "import ctypes\ndef f(x):\n    return ctypes.string_at(0)",
    "literal",
    "check",
    verdicts=("failed", "resource_exceeded"),
)
exhaust("abort", "import os\ndef f(x):\n    os.abort()", "literal", "check")
exhaust("killed by itself", "import os\ndef f(x):\n    os.kill(os.getpid(), 9)", "literal", "check")

# --- results that are too much ---

exhaust(
    "a result of 180 MB",
    "def f(x):\n    return 'x' * (180 << 20)",
    "literal",
    "check",
    "functional",
    family="results",
)
exhaust(
    "a result of 100 million items",
    "def f(x):\n    return [None] * (10**7)",
    "literal",
    "check",
    family="results",
)
exhaust(
    "a number of a million digits",
    "def f(x):\n    return 10 ** (10**6)",
    "literal",
    "check",
    "functional",
    family="results",
)
exhaust(
    "a list 200,000 deep",
    """
    def f(x):
        deep = []
        for n in range(200_000):
            deep = [deep]
        return deep
    """,
    "literal",
    "check",
    "functional",
    family="results",
)
exhaust(
    "a list that holds itself",
    "def f(x):\n    a = []\n    a += [a, a]\n    return a",
    "literal",
    "check",
    "functional",
    family="results",
)
exhaust(
    "a list that grows by sharing",
    "def f(x):\n    a = [0]\n    for n in range(64):\n        a = [a, a]\n    return a",
    "literal",
    "check",
    family="results",
)
exhaust(
    "an exception of 100 MB",
    "def f(x):\n    raise ValueError('x' * (100 << 20))",
    "literal",
    "check",
    family="results",
)
exhaust(
    "a chain of 10,000 exceptions",
    """
    def f(x):
        error = None
        for n in range(10_000):
            new = ValueError(n)
            new.__cause__ = error
            error = new
        raise error
    """,
    "check",
    family="results",
)
exhaust(
    "an endless iterator",
    "import itertools\ndef f(x):\n    return itertools.count()",
    "literal",
    "check",
    family="results",
)

# --- processes that stay ---

exhaust(
    "daemons that stay",
    """
    import os, signal, time
    def f(x):
        for n in range(10):
            if os.fork() == 0:
                os.setsid()
                if os.fork() == 0:
                    for number in range(1, 32):
                        try:
                            signal.signal(number, signal.SIG_IGN)
                        except OSError:
                            pass
                    time.sleep(3600)
                os._exit(0)
        return 0
    """,
    "literal",
    "check",
)
exhaust(
    "hogs left behind",
    """
    import os
    def f(x):
        for n in range(4):
            if os.fork() == 0:
                os.setsid()
                while True:
                    pass
        return 0
    """,
    "literal",
    "check",
)
exhaust(
    "a fork bomb left behind",
    """
    import os
    def f(x):
        if os.fork() == 0:
            os.setsid()
            while True:
                try:
                    if os.fork():
                        os._exit(0)
                except OSError:
                    pass
        return 0
    """,
)
