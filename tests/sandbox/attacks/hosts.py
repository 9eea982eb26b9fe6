"""Processes left behind, and work that a candidate makes for the host.

Each leaves something, or asks for too much, and answers wrongly: that is its own failure. The
honest twin leaves as much, and is right.
"""

# ruff: noqa: E501 - programs within strings are as wide as they are
from __future__ import annotations

from attacks.program import SQUARES, Program, dedent, pair

__all__ = ["HOSTS"]

HOSTS: list[Program] = []

SQUARE = "def f(x):\n    return x * x\n"
ZERO = "def f(x):\n    return 0\n"
PRINT = "print(int(input()) ** 2)\n"
PRINT_ZERO = "input()\nprint(0)\n"


def leave(name: str, code: str, *shapes: str, unlike: str | None = None) -> None:
    """Add two programs that do the same at import; `unlike`: what the honest one does instead."""
    for shape in shapes:
        right, wrong = (PRINT, PRINT_ZERO) if shape == "stdin" else (SQUARE, ZERO)
        forged, honest = dedent(code), dedent(code if unlike is None else unlike)
        HOSTS.extend(
            pair(
                "hosts",
                f"hosts: {name} [{shape}]",
                forged + wrong,
                honest + right,
                **SQUARES[shape],
            )
        )


# --- processes that stay: with a second input, a second path, a second test ---

DAEMON = """
import os, signal, sys, time
def daemon(work):
    if os.fork() == 0:
        os.setsid()
        if os.fork() == 0:
            work()
        os._exit(0)
"""
leave(
    "a child that sleeps",
    "import os, time\nif os.fork() == 0:\n    time.sleep(60)\n    os._exit(0)\n",
    "stdin",
    "check",
    "functional",
)
leave("a daemon", DAEMON + "daemon(lambda: time.sleep(60))\n", "stdin", "literal", "pytest")
leave(
    "a daemon without descriptors",
    DAEMON + "daemon(lambda: (os.closerange(0, 256), time.sleep(60)))\n",
    "stdin",
    "check",
)
leave(
    "a daemon that ignores signals",
    DAEMON
    + "for n in range(1, 64):\n    try: signal.signal(n, signal.SIG_IGN)\n    except (OSError, ValueError): pass\ndaemon(lambda: time.sleep(60))\n",
    "stdin",
)
leave(
    "a daemon that spins",
    DAEMON + "def spin():\n    while True: pass\ndaemon(spin)\n",
    "stdin",
    "check",
)
leave(
    "five daemons, one after another",
    DAEMON + "for n in range(5):\n    daemon(lambda: time.sleep(60))\n",
    "stdin",
    "functional",
)
leave(
    "a daemon that forks on",
    DAEMON
    + "def on():\n    while True:\n        if os.fork():\n            os._exit(0)\n        time.sleep(0.002)\ndaemon(on)\n",
    "stdin",
    "check",
    unlike=DAEMON + "daemon(lambda: time.sleep(60))\n",
)
leave(
    "a daemon that kills its neighbours",
    DAEMON
    + "def kill():\n    while True:\n        for sig in (signal.SIGSTOP, signal.SIGKILL):\n            try: os.kill(-1, sig)\n            except OSError: time.sleep(0.001)\ndaemon(kill)\n",
    "stdin",
    "literal",
    unlike=DAEMON + "daemon(lambda: time.sleep(60))\n",
)
leave(
    "a process that is stopped",
    "import os, signal, time\npid = os.fork()\nif pid == 0:\n    time.sleep(60)\n    os._exit(0)\nos.kill(pid, signal.SIGSTOP)\n",
    "stdin",
    "check",
)
leave(
    "zombies",
    "import os\nfor n in range(20):\n    if os.fork() == 0:\n        os._exit(0)\n",
    "stdin",
    "literal",
)
leave(
    "a subprocess that stays",
    "import subprocess, sys\nkept = subprocess.Popen([sys.executable, '-c', 'import time; time.sleep(60)'], start_new_session=True)\n",
    "stdin",
    "check",
)
leave(
    "threads that stay",
    "import threading, time\nfor n in range(5):\n    threading.Thread(target=time.sleep, args=[60], daemon=True).start()\n",
    "stdin",
    "check",
)
leave(
    "files, sockets and links that stay",
    "import os, socket\nfor n in range(200):\n    open(f'left-{n}', 'w').write('x')\ntry:\n    os.symlink('/', 'root')\n    os.mkfifo('pipe')\n    socket.socket(socket.AF_UNIX).bind('left.sock')\nexcept OSError:\n    pass\n",
    "stdin",
    "check",
)
leave(
    "a mark of its own in the process list",
    "import ctypes\nctypes.CDLL(None).prctl(15, b'gatekeeper) R 1', 0, 0, 0)\n",
    "stdin",
    "check",
)
leave(
    "nobody may dump it",
    "import ctypes\nctypes.CDLL(None).prctl(4, 0, 0, 0, 0)\n",
    "stdin",
    "literal",
)
leave("no death signal", "import ctypes\nctypes.CDLL(None).prctl(1, 0, 0, 0, 0)\n", "stdin")
leave(
    "stops itself",
    "import os, signal\nos.kill(os.getpid(), signal.SIGSTOP)\n",
    "literal",
    unlike="import os, signal\nos.kill(os.getpid(), signal.SIGCONT)\n",
)
leave(
    "becomes another program",
    "import os, sys\nos.execv(sys.executable, ['python', '-c', ''])\n",
    "check",
    "stdin",
    unlike="import os, sys\nif os.fork() == 0:\n    os.execv(sys.executable, ['python', '-c', ''])\nos.wait()\n",
)
leave(
    "dies of a signal that it sends itself",
    "import os, signal\nos.kill(os.getpid(), signal.SIGKILL)\n",
    "literal",
    "check",
    "stdin",
    unlike="import os, signal\nif os.fork() == 0:\n    os.kill(os.getpid(), signal.SIGKILL)\nos.wait()\n",
)
leave(
    "closes everything",
    "import os\nos.closerange(0, 1 << 16)\n",
    "literal",
    "check",
    "functional",
    unlike="import os\nos.close(1)\nos.close(2)\n",
)
leave(
    "no descriptors left",
    "import os\ntry:\n    while True: os.dup(1)\nexcept OSError:\n    pass\n",
    "literal",
    "check",
    "stdin",
    unlike="import os\nkept = [os.dup(1) for n in range(20)]\n",
)

# --- limits, priorities and processors of others: the reward is the square ---

OTHERS = """
import ctypes, os, resource
libc = ctypes.CDLL(None, use_errno=True)
def others():
    near = range(max(2, os.getpid() - 30), os.getpid() + 30)
    return [pid for pid in {1, os.getppid(), *near} if pid not in (0, os.getpid())]
def f(x):
    for pid in others():
        %s
            return x * x
    return 0
"""
for name, attempt in {
    "limits": "if libc.prlimit(pid, 7, (ctypes.c_uint64 * 2)(3, 3), None) == 0:",
    "limits read": "if libc.prlimit(pid, 7, None, (ctypes.c_uint64 * 2)()) == 0:",
    "processors": "if libc.sched_setaffinity(pid, 8, (ctypes.c_uint64 * 1)(1)) == 0:",
    "priority": "if libc.setpriority(0, pid, 19) == 0:",
    "scheduler": "if libc.sched_setscheduler(pid, 3, (ctypes.c_int * 1)(0)) == 0:",
    "priority of input and output": "if libc.syscall(251, 1, pid, 3 << 13) == 0:",
    "signals": "if libc.kill(pid, 0) == 0:",
    "descriptors": "if (fd := libc.syscall(434, pid, 0)) > 0 and libc.syscall(438, fd, 0, 0) > 0:",
    "memory moved": "if libc.syscall(310, pid, (ctypes.c_uint64 * 2)(0, 0), 1, (ctypes.c_uint64 * 2)(0x400000, 8), 1, 0) > 0:",
    "out of memory score": "if os.access(f'/proc/{pid}/oom_score_adj', os.W_OK) and open(f'/proc/{pid}/oom_score_adj', 'w').write('1000'):",
}.items():
    HOSTS += pair(
        "hosts",
        f"hosts: of others: {name}",
        OTHERS % attempt,
        "import os, resource\nresource.setrlimit(resource.RLIMIT_NOFILE, (60, 60))\nos.nice(1)\nos.sched_setaffinity(0, os.sched_getaffinity(0))\n"
        + SQUARE,
        **SQUARES["literal"],
    )

# --- work for the host: to read the answer, the program, the values, the output ---

P = "P = 2 ** 61 - 1\n"
for name, forged, honest, tests in (
    ("tuples that collide", P + "def f(n):\n    return {(k * P,) for k in range(4000)}\n", "def f(n):\n    return {(k,) for k in range(n)}\n", ["assert f(3) == {(0,), (1,), (2,)}"]),
    ("tuples that collide, in a dict of dicts", P + "def f(n):\n    return {(k * P, (k * P,)): {(k * P,): 0} for k in range(2000)}\n", "def f(n):\n    return {k: {k: 0} for k in range(n)}\n", ["assert f(2) == {0: {0: 0}, 1: {1: 0}}"]),
    ("tuples that collide, to be looked up", P + "def f(n):\n    return [(k * P, (k * P, (k * P,))) for k in range(20_000)]\n", "def f(n):\n    return [(k,) for k in range(n)]\n", ["assert set(f(3)) == {(0,), (1,), (2,)}"]),
    ("frozensets of frozensets", "def f(n):\n    return frozenset(frozenset({k, k ^ 1, -1, -2}) for k in range(4000))\n", "def f(n):\n    return frozenset(frozenset({k}) for k in range(n))\n", ["assert f(2) == frozenset({frozenset({0}), frozenset({1})})"]),
    ("a number to divide", "def f(n):\n    return 10 ** 1_000_000\n", "def f(n):\n    return 10 ** n\n", ["assert abs(f(3) - 1000.0) < 0.1", "assert f(2) in (100, 200)"]),
    ("a fraction to reduce", "from fractions import Fraction\ndef f(n):\n    return Fraction(3 ** 60_000, 7 ** 40_000)\n", "from fractions import Fraction\ndef f(n):\n    return Fraction(1, n)\n", ["assert f(3) == 1 / 3 or abs(f(3) - 1 / 3) < 1e-9"]),
    ("a decimal to round", "from decimal import Decimal\ndef f(n):\n    return Decimal('1e999999') + 1\n", "from decimal import Decimal\ndef f(n):\n    return Decimal(n) / 4\n", ["assert abs(f(3) - 0) <= 1 and f(3) in (0.75, 1)"]),
    ("a range to search", "def f(n):\n    return range(10 ** 18)\n", "def f(n):\n    return range(n)\n", ["assert list(f(3)) == [0, 1, 2]", "assert 2.5 not in f(3)"]),
    ("a text to search", "def f(n):\n    return 'ab' * (1 << 20) + 'a'\n", "def f(n):\n    return 'ab' * n\n", ["assert f(2) in 'xxababxx'", "assert f(1) == 'ab'"]),
    ("equal but for the last", "def f(n):\n    return [['x' * 1000] * 400 for _ in range(9)] + [0]\n", "def f(n):\n    return [['x' * 1000] * 400 for _ in range(10)]\n", ["assert f(3) == [['x' * 1000] * 400 for _ in range(10)]"]),
):  # fmt: skip
    HOSTS += pair("work", f"hosts: work: {name}", forged, honest, *tests)
for name, forged, honest in (
    ("fences without end", "```\n" * 25_000, f"```\nno\n```\n```python\n{SQUARE}```\n"),
    ("fences that open and open", "```python\nx = 1\n" * 20_000, f"```python\n{SQUARE}```\n"),
    ("blanks before a fence", (" " * 200 + "```a\n") * 5_000, f"   ```python\n{SQUARE}   ```\n"),
    ("backquotes in a line", "`" * 200_000 + "\n" + "```python `\n" * 9_000, SQUARE),
    ("two megabytes of lists", "x = [\n" + "[[[1],[2]],[[3],[4]]],\n" * 90_000 + "]\n" + ZERO, "x = [\n" + "[[[1],[2]],[[3],[4]]],\n" * 900 + "]\n" + SQUARE),
    ("two megabytes of names", "\n".join(f"n{k} = {k}" for k in range(150_000)) + "\n" + ZERO, "\n".join(f"n{k} = {k}" for k in range(1500)) + "\n" + SQUARE),
    ("two megabytes of one expression", "x = " + "1+" * 1_000_000 + "1\n" + ZERO, "x = " + "1+" * 500 + "1\n" + SQUARE),
    ("two megabytes of one string", "x = '" + "é" * 1_000_000 + "'\n" + ZERO, "x = '" + "é" * 10_000 + "'\n" + SQUARE),
):  # fmt: skip
    HOSTS += pair("work", f"hosts: text: {name}", forged, honest, **SQUARES["literal"])
    if name in ("fences without end", "two megabytes of lists"):
        HOSTS += pair("work", f"hosts: text: {name}, judged", forged, honest, **SQUARES["check"])
for name, forged, honest in (
    ("numbers as long as the output", "input()\nprint('1' * 3_000_000)\n", PRINT),
    ("numbers with exponents", "input()\nprint('1e999999999 ' * 1000)\n", "print(f'{int(input()) ** 2}.0')\n"),
    ("many lines", "input()\nprint('\\n'.join('0' for n in range(1_000_000)))\n", "print('\\n\\n' + str(int(input()) ** 2) + '\\n\\n')\n"),
    ("many words", "input()\nprint('0 ' * 1_500_000)\n", "print('  ', int(input()) ** 2, '  ')\n"),
    ("carriage returns and separators", "input()\nprint('\\r\\x0b\\x0c\\x1c\\x1d\\x1e\\x85\\u2028' * 200_000)\n", "print(int(input()) ** 2, end='\\r\\n')\n"),
    ("underscores and signs", "n = int(input())\nprint(f'+{n}_0', f'{n * n}_', sep='')\n", PRINT),
    ("every square there is", "input()\nfor n in range(100_000):\n    print(n * n)\n", PRINT),
):  # fmt: skip
    HOSTS += pair("work", f"hosts: printed: {name}", forged, honest, **SQUARES["stdin"])
