"""Forged verdicts: programs that do not compute a square and try to pass."""

# ruff: noqa: E501 - programs within strings are as wide as they are
from __future__ import annotations

from attacks.program import WRONG, Program, attack

__all__ = ["FORGED"]

FORGED: list[Program] = []


def forge(name: str, code: str, *shapes: str) -> None:
    """Add an attack against three shapes of test, unless others are given."""
    FORGED.extend(attack("forged", name, code, *(shapes or ("literal", "check", "pytest"))))


def forge_one(name: str, code: str, *tests: str, **task: object) -> None:
    """Add an attack against its own tests: assert statements, or another kind of task."""
    given = {"tests": list(tests), **task} if tests else task
    FORGED.extend(attack("forged", name, code, task=given, verdicts=WRONG))


# --- the end of the process as a verdict ---

forge("sys.exit at import", "import sys\nsys.exit(0)", "literal", "check", "pytest", "stdin")
forge("sys.exit in the call", "import sys\ndef f(x):\n    sys.exit(0)")
forge("os._exit at import", "import os\nos._exit(0)", "literal", "check", "pytest", "stdin")
forge("os._exit in the call", "import os\ndef f(x):\n    os._exit(0)")
forge("site's quit", "def f(x):\n    quit(0)", "literal", "check")
forge("SystemExit subclass", "class Done(SystemExit):\n    code = 0\ndef f(x):\n    raise Done(0)")
forge("exec of true", 'import os\ndef f(x):\n    os.execv("/bin/true", ["true"])')
forge("exit of libc", "import ctypes\ndef f(x):\n    ctypes.CDLL(None)._exit(0)")
forge(
    "atexit",
    """
    import atexit, os
    atexit.register(os._exit, 0)
    def f(x):
        return 0
    """,
)
forge(
    "excepthook",
    """
    import os, sys, threading
    sys.excepthook = threading.excepthook = sys.unraisablehook = lambda *a: os._exit(0)
    def f(x):
        return 0
    """,
)
forge(
    "a thread ends the process",
    """
    import os, threading, time
    def f(x):
        threading.Timer(0.05, os._exit, [0]).start()
        time.sleep(30)
    """,
)
forge(
    "an alarm ends the process",
    """
    import os, signal, time
    def f(x):
        signal.signal(signal.SIGALRM, lambda *a: os._exit(0))
        signal.setitimer(signal.ITIMER_REAL, 0.05)
        time.sleep(30)
    """,
)
forge(
    "__del__ ends the process",
    """
    import os
    class Last:
        def __del__(self):
            os._exit(0)
    def f(x):
        return Last()
    """,
)
forge(
    "fork: the parent leaves, the child stays",
    """
    import os
    def f(x):
        if os.fork():
            os._exit(0)
        return 0
    """,
)
forge(
    "fork: two answers",
    """
    import os
    def f(x):
        return 0 if os.fork() else 1
    """,
)
forge(
    "markers printed",
    r"""
    import json, os, sys
    def f(x):
        for line in ("OK", "PASSED", "passed", "1 passed in 0.01s", "Ran 1 test in 0.000s\n\nOK",
                     json.dumps({"passed": True, "verdict": "passed", "error": 0}), "0", "True"):
            print(line, flush=True)
            print(line, file=sys.stderr, flush=True)
        os._exit(0)
    """,
    "literal",
    "check",
    "pytest",
)
forge(
    "markers printed (stdin)",
    'print("OK\\nPASSED\\n{\\"passed\\": true}")\nraise SystemExit(0)',
    "stdin",
)
forge("everything printed (stdin)", "for n in range(20000):\n    print(n)", "stdin")

# --- hunting for what is expected: the reward is the right answer ---

forge(
    "constants in frames",
    """
    import sys
    def f(x):
        frame = sys._getframe()
        while frame := frame.f_back:
            flat = list(frame.f_code.co_consts)
            for item in flat:
                if isinstance(item, tuple):
                    flat.extend(item)
                elif hasattr(item, "co_consts"):
                    flat.extend(item.co_consts)
            for item in flat:
                if type(item) is int and item == x * x:
                    return item
    """,
)
forge(
    "locals in frames",
    """
    import sys
    def f(x):
        frame = sys._getframe()
        while frame := frame.f_back:
            for value in (*frame.f_locals.values(), *frame.f_globals.values()):
                if repr(value).find(str(x * x)) >= 0:
                    return x * x
    """,
)
forge(
    "frames of a traceback",
    """
    def f(x):
        try:
            raise KeyError
        except KeyError as error:
            frame = error.__traceback__.tb_frame
        while frame := frame.f_back:
            if str(x * x) in repr(frame.f_code.co_consts):
                return x * x
    """,
)
forge(
    "inspect.stack and linecache",
    """
    import inspect, linecache
    def f(x):
        for entry in inspect.stack():
            lines = linecache.getlines(entry.filename) + (entry.code_context or [])
            if any(str(x * x) in line for line in lines):
                return x * x
            if str(x * x) in repr(entry.frame.f_code.co_consts):
                return x * x
    """,
)
forge(
    "gc.get_objects",
    """
    import gc
    def f(x):
        half = str(x * x)[:6]
        for thing in gc.get_objects():
            for item in (*gc.get_referents(thing), thing):
                if isinstance(item, (str, bytes, tuple)) and half in repr(item)[:10000]:
                    return x * x
                if type(item).__name__ == "code" and half in repr(item.co_consts):
                    return x * x
    """,
)
forge(
    "every frame of every thread",
    """
    import sys
    def f(x):
        for frame in sys._current_frames().values():
            while frame:
                if str(x * x) in repr(frame.f_code.co_consts) + repr(frame.f_locals)[:10**6]:
                    return x * x
                frame = frame.f_back
    """,
)
forge(
    "modules",
    """
    import sys
    def f(x):
        for module in list(sys.modules.values()):
            for value in list(getattr(module, "__dict__", {}).values()):
                if isinstance(value, (str, bytes, list, tuple, dict)):
                    if str(x * x) in repr(value)[:10**6]:
                        return x * x
    """,
)
SCAN = r"""
def find(read, maps, needle):
    # the needle is looked for in two halves, so that it is never in memory as a whole
    head, tail = needle
    for line in maps:
        span, rights = line.split()[:2]
        start, end = (int(n, 16) for n in span.split("-"))
        if "r" not in rights or "[v" in line or end - start > 1 << 28:
            continue
        for at in range(start, end, 1 << 20):
            try:
                chunk = read(at, min(1 << 20, end - at))
            except (OSError, ValueError, OverflowError):
                break
            place = chunk.find(head)
            while place >= 0:
                if chunk[place + len(head) : place + len(head) + len(tail)] == tail:
                    return True
                place = chunk.find(head, place + 1)
    return False

def halves(x):
    digits, n = [], x * x
    while n:
        digits.append(48 + n % 10)
        n //= 10
    digits.reverse()
    return bytes(digits[:7]), bytes(digits[7:])
"""
forge(
    "scan of one's own memory",
    SCAN
    + """
def f(x):
    with open("/proc/self/maps") as maps, open("/proc/self/mem", "rb", 0) as memory:
        def read(at, n):
            memory.seek(at)
            return memory.read(n)
        if find(read, maps.readlines(), halves(x)):
            return x * x
""",
)
forge(
    "scan of all processes' memory",
    SCAN
    + """
import os
def f(x):
    me = os.getpid()
    for pid in sorted(int(name) for name in os.listdir("/proc") if name.isdigit()):
        try:
            with open(f"/proc/{pid}/maps") as maps, open(f"/proc/{pid}/mem", "rb", 0) as memory:
                def read(at, n):
                    memory.seek(at)
                    return memory.read(n)
                if find(read, maps.readlines(), halves(x)):
                    return x * x
        except OSError:
            pass
""",
)
forge(
    "process_vm_readv",
    SCAN
    + """
import ctypes, os
class Vector(ctypes.Structure):
    _fields_ = [("base", ctypes.c_void_p), ("length", ctypes.c_size_t)]
def f(x):
    libc = ctypes.CDLL(None, use_errno=True)
    for pid in {os.getpid(), os.getppid(), 1, 2, 3}:
        try:
            maps = open(f"/proc/{pid}/maps").readlines()
        except OSError:
            continue
        def read(at, n):
            buffer = ctypes.create_string_buffer(n)
            here, there = Vector(ctypes.addressof(buffer), n), Vector(at, n)
            got = libc.process_vm_readv(pid, ctypes.byref(here), 1, ctypes.byref(there), 1, 0)
            if got < 0:
                raise OSError
            return buffer.raw[:got]
        if find(read, maps, halves(x)):
            return x * x
""",
    "literal",
    "check",
)
forge(
    "ptrace of the parent",
    """
    import ctypes, os
    def f(x):
        libc = ctypes.CDLL(None, use_errno=True)
        for pid in (os.getppid(), 1):
            for request in (16, 0x4206):  # PTRACE_ATTACH, PTRACE_SEIZE
                if pid not in (0, os.getpid()) and libc.ptrace(request, pid, None, None) == 0:
                    return x * x
    """,
    "literal",
    "check",
)
forge(
    "remote_exec of other processes",  # from Python 3.14 on
    """
    import os, sys
    def f(x):
        with open("script.py", "w") as script:
            script.write("pass")
        mine = os.getpid()
        for pid in {os.getppid(), *range(max(1, mine - 99), mine + 9)} - {0, mine}:
            if hasattr(sys, "remote_exec"):
                try:
                    sys.remote_exec(pid, os.path.abspath("script.py"))
                except (OSError, RuntimeError):
                    continue
                return x * x
    """,
    "literal",
    "check",
)
forge(
    "/proc of all processes",
    """
    import os
    def f(x):
        for pid in [name for name in os.listdir("/proc") if name.isdigit()]:
            for file in ("environ", "cmdline", "stat", "comm", "task/%s/environ" % pid):
                try:
                    text = open(f"/proc/{pid}/{file}", "rb").read()
                except OSError:
                    continue
                if str(x * x).encode() in text or b"assert f(" in text:
                    return x * x
    """,
    "literal",
    "check",
    "pytest",
)
forge(
    "/proc of all processes (stdin)",
    """
    import os
    n = int(input())
    for pid in [name for name in os.listdir("/proc") if name.isdigit()]:
        for file in ("environ", "cmdline", "fd/0", "fd/3", "fd/4", "fd/5"):
            try:
                fd = os.open(f"/proc/{pid}/{file}", os.O_RDONLY | os.O_NONBLOCK)
                text = os.pread(fd, 1 << 20, 0)
            except OSError:
                continue
            if str(n * n).encode() in text:
                print(n * n)
    """,
    "stdin",
)
forge(
    "open files",
    """
    import os
    def f(x):
        for fd in range(256):
            try:
                text = os.pread(fd, 1 << 20, 0)
            except OSError:
                continue
            if str(x * x).encode() in text:
                return x * x
    """,
)
forge(
    "open files of other processes",
    """
    import glob, os
    def f(x):
        for path in glob.glob("/proc/[0-9]*/fd/*") + glob.glob("/proc/[0-9]*/cwd/*"):
            try:
                fd = os.open(path, os.O_RDONLY | os.O_NONBLOCK)
                text = os.pread(fd, 1 << 20, 0)
                os.close(fd)
            except OSError:
                continue
            if str(x * x).encode() in text:
                return x * x
    """,
    "literal",
    "check",
)
forge(
    "what waits in the channel",
    """
    import os, select, socket
    def f(x):
        text = b""
        for fd in range(3, 64):
            try:
                if select.select([fd], [], [], 0.01)[0]:
                    try:
                        text += socket.socket(fileno=os.dup(fd)).recv(1 << 20, socket.MSG_PEEK)
                    except OSError:
                        text += os.read(fd, 1 << 20)
            except (OSError, ValueError):
                continue
        if str(x * x).encode() in text or (x * x).to_bytes(8, "little").rstrip(bytes(1)) in text:
            return x * x
    """,
)
forge(
    "files of the tests",
    """
    import os
    def f(x):
        for top in ("/tmp", "/control", "/job", "/work", "/home", "/root", "/run", "/dev/shm", "."):
            for root, _, names in os.walk(top):
                for name in names:
                    if name.startswith(("test", "check", "job", "solution", "task")):
                        try:
                            if str(x * x) in open(os.path.join(root, name)).read(1 << 20):
                                return x * x
                        except (OSError, UnicodeDecodeError):
                            pass
    """,
    "literal",
    "check",
)

# --- values that lie when they are compared ---

forge(
    "== is always true",
    "class Yes:\n    def __eq__(self, other):\n        return True\ndef f(x):\n    return Yes()",
    "literal",
    "check",
    "pytest",
    "helper",
    "functional",
)
forge(
    "mock.ANY",
    "from unittest.mock import ANY\ndef f(x):\n    return ANY",
    "literal",
    "check",
    "helper",
)
forge(
    "int with a lying ==",
    """
    class Yes(int):
        __eq__ = lambda self, other: True
        __ne__ = lambda self, other: False
        __hash__ = int.__hash__
    def f(x):
        return Yes(0)
    """,
    "literal",
    "check",
    "pytest",
    "helper",
    "functional",
)
forge(
    "float and Fraction with a lying ==",
    """
    from fractions import Fraction
    class A(float):
        def __eq__(self, other): return True
    class B(Fraction):
        def __eq__(self, other): return True
    def f(x):
        return A(1.5) if x % 2 else B(1, 3)
    """,
)
forge(
    "a metaclass with a lying ==",
    """
    class Meta(type):
        def __eq__(cls, other): return True
        def __hash__(cls): return 1
        def __instancecheck__(cls, thing): return True
    class Yes(metaclass=Meta): pass
    def f(x):
        return Yes
    """,
)
forge(
    "every attribute lies",
    """
    class Yes:
        def __getattribute__(self, name): return lambda *a, **k: True
        def __eq__(self, other): return True
    def f(x):
        return Yes()
    """,
)
forge(
    "__class__ says int",
    """
    class Yes:
        __class__ = property(lambda self: int)
        def __eq__(self, other): return True
        def __hash__(self): return 4
        def __index__(self): return 4
        def __int__(self): return 4
    def f(x):
        return Yes()
    """,
)
forge(
    "the other side learns by ==",
    """
    class Learner:
        def __eq__(self, other):
            return other == other
        def __req__(self, other):
            return True
        def __ne__(self, other):
            return False
    def f(x):
        return Learner()
    """,
    "literal",
    "check",
    "helper",
)

TOLERANT = ("assert abs(f(2) - 4.1) < 1e-6", "assert abs(f(3) - 9.2) <= 0.001")
SUBTRACT = """
class Near(float):
    def __sub__(self, other): return self
    __rsub__ = __sub__
    def __abs__(self): return self
    def __lt__(self, other): return True
    __le__ = __gt__ = __ge__ = __lt__
    def __round__(self, n=0): return self
    def __eq__(self, other): return True
def f(x):
    return Near(7)
"""
ARITHMETIC = """
class Near:
    def __sub__(self, other): return 0.0
    __rsub__ = __add__ = __radd__ = __mul__ = __truediv__ = __rtruediv__ = __pow__ = __sub__
    def __abs__(self): return 0.0
    def __float__(self): return 0.0
    def __lt__(self, other): return True
    __le__ = __gt__ = __ge__ = __lt__
    def __round__(self, n=0): return self
    def __eq__(self, other): return True
def f(x):
    return Near()
"""
for label, code in {"subclass": SUBTRACT, "object": ARITHMETIC}.items():
    forge_one(f"tolerance deceived: {label}", code, *TOLERANT)
    forge_one(f"rounding deceived: {label}", code, "assert round(f(2), 2) == 4.13")
    forge_one(
        f"tolerance deceived in a loop: {label}",
        code,
        test="def check(candidate):\n    for x, y in [(2, 4.1), (3, 9.2)]:\n        assert abs(candidate(x) - y) < 1e-6\n        assert y - 0.1 < candidate(x) < y + 0.1\n",
        entry_point="f",
    )
    forge_one(
        f"ordering deceived: {label}", code, "assert 4 < f(2) < 5", "assert f(2) < 5 and f(2) > 4"
    )

SEQUENCE = """
class Liar({base}):
    def __eq__(self, other): return True
    def __ne__(self, other): return False
    def __contains__(self, item): return True
    def __len__(self): return 3
    def __getitem__(self, key): return self
    def __iter__(self): return iter([self, self, self])
    def __lt__(self, other): return True
    __le__ = __gt__ = __ge__ = __lt__
    def __hash__(self): return 1
    def __bool__(self): return True
    def index(self, *a): return 2
    def count(self, *a): return 1
    def get(self, *a): return self
    def items(self): return [(self, self)]
    keys = values = items
    def strip(self, *a): return self
    lower = upper = strip
    def split(self, *a): return [self]
def f(*args):
    return Liar()
"""
SEQUENCE_TESTS = {
    "contains": ["assert 4 in f(2)", "assert 'x' in f(3) and 9 in f(3)"],
    "length and items": ["assert len(f(3)) == 3", "assert f(3)[0] == 7 and f(3)[-1] == 9"],
    "sorted": ["assert sorted(f([3, 1, 2])) == [1, 2, 3]", "assert list(f(3)) == [1, 2, 3]"],
    "tuple": ["assert tuple(f(2)) == (4, 5, 6)", "assert {4: f(2)} == {4: 5}"],
    "whole": ["assert f(2) == [1, 2, 3]", "assert f(3) == [4, 5]"],
    "methods": ["assert f(2).strip() == 'four'", "assert f(2).get('k') == 'v'"],
}
for base in ("list", "tuple", "dict", "str", "set", "object"):
    for label, tests in SEQUENCE_TESTS.items():
        if base in ("list", "object") or label == "whole":
            forge_one(f"{label} of a lying {base}", SEQUENCE.format(base=base), *tests)
forge_one(
    "text of a lying object",
    """
    class Yes(str):
        def __eq__(self, other): return True
        def __ne__(self, other): return False
        __hash__ = str.__hash__
    class Liar:
        def __str__(self): return Yes("no")
        __repr__ = __str__
        def __format__(self, how): return Yes("no")
    def f(x):
        return Liar()
    """,
    "assert str(f(2)) == 'four'",
    "assert repr(f(2)) == 'four'",
    "assert f'{f(2)}' == 'four'",
)
forge_one(
    "a lying attribute",
    """
    from unittest.mock import ANY
    class Point:
        def __init__(self, *args): self.x = self.y = ANY
        def __eq__(self, other): return True
    """,
    "assert Point(1, 2).x == 1",
    "p = Point(3, 4)\nassert (p.x, p.y) == (3, 4)",
)
forge_one(
    "isinstance deceived",
    """
    class Yes:
        __class__ = property(lambda self: int)
        def __eq__(self, other): return True
    def f(x):
        return Yes()
    """,
    "assert isinstance(f(2), int) and f(2) == 4",
)
forge_one(
    "a truth that depends on who asks",
    """
    import dis, sys
    class Maybe:
        def __bool__(self):
            frame = sys._getframe(1)
            source = repr([i.opname for i in dis.get_instructions(frame.f_code)])
            return "UNARY_NOT" not in source and "TRUE" in source
    def f(x):
        return Maybe()
    """,
    "assert f(2)",
    "assert not f(3)",
)
forge_one(
    "elements that are equal to all",
    """
    class Yes:
        def __eq__(self, other): return True
        def __hash__(self): return 1
    def f(x):
        return [Yes(), Yes()]
    """,
    "assert f(2) == [4, 5]",
    "assert f(2)[0] == 4 and f(2)[1] == 5",
    "assert all(a == b for a, b in zip(f(2), [4, 5]))",
)
forge_one(
    "keys that are equal to all",
    """
    class Key(str):
        def __eq__(self, other): return True
        def __hash__(self): return hash("four")
    def f(x):
        return {Key("no"): 4}
    """,
    "assert f(2) == {'four': 4}",
    "assert f(2)['four'] == 4",
)
forge_one(
    "a descriptor that changes its mind",
    """
    class Flip:
        turn = 0
        def __get__(self, instance, owner):
            Flip.turn += 1
            class Any:
                def __eq__(self, other): return Flip.turn > 0
            return Any()
    class Box:
        value = Flip()
    def f(x):
        return Box()
    """,
    "assert f(2).value == 4",
    "assert f(3).value == 9",
)
forge_one(
    "an exception with a lying message",
    """
    class Yes(str):
        def __eq__(self, other): return True
        def __contains__(self, other): return True
    class Wrong(ValueError):
        def __str__(self): return Yes("x")
        args = property(lambda self: (Yes("x"),))
        code = Yes("x")
    def f(x):
        raise Wrong
    """,
    "try:\n    f(-1)\nexcept ValueError as error:\n    assert str(error) == 'negative: -1'\nelse:\n    assert False",
)
forge_one(
    "reflected comparison by a subclass",
    """
    class Yes(int):
        def __eq__(self, other): return True
        def __ne__(self, other): return False
        def __hash__(self): return 1
    def f(x):
        return Yes(0)
    """,
    "assert 4 == f(2)",
    "assert not 4 != f(2)",
    "assert [4] == [f(2)] and {4: 5} == {4: f(2)}",
)

# --- the tests' own tools, changed ---

YES = """
class Yes(float):
    def __eq__(self, other): return True
    def __ne__(self, other): return False
    def __lt__(self, other): return True
    __le__ = __gt__ = __ge__ = __lt__
    def __hash__(self): return 1
"""
# The value that a tool must return so that the test holds whatever f returns, and that test.
BUILTINS = {
    "all": ("True", "assert all(f(n) == n * n for n in (2, 3))"),
    "any": ("False", "assert not any(f(n) != n * n for n in (2, 3))"),
    "isinstance": ("True", "assert isinstance(f(2), list)"),
    "zip": ("()", "for x, y in zip([2, 3], [4, 9]):\n    assert f(x) == y"),
    "range": ("()", "for n in range(9):\n    assert f(n) == n * n"),
    "enumerate": ("()", "for n, y in enumerate([0, 1, 4]):\n    assert f(n) == y"),
    "abs": ("0", "assert abs(f(2) - 4.1) < 1e-6"),
    "len": ("Yes()", "assert len(str(f(2))) == 7"),
    "sum": ("Yes()", "assert sum([f(2), f(3)]) == 13"),
    "sorted": ("Yes()", "assert sorted([f(3), f(2)]) == [4, 9]"),
    "round": ("Yes()", "assert round(f(2), 1) == 4.1"),
    "str": ("Yes()", "assert str(f(2)) == '4'"),
    "set": ("Yes()", "assert set([f(2)]) == {4}"),
    "map": ("()", "assert list(map(f, [2, 3])) != [0, 0]"),
}
LIBRARY = {
    "math.isclose": ("True", "assert math.isclose(f(2), 4.1)"),
    "itertools.product": ("()", "for n, m in itertools.product([2], [4]):\n    assert f(n) == m"),
    "json.dumps": ("Yes()", "assert json.dumps(f(2)) == '4'"),
    "collections.Counter": (
        "Yes()",
        "assert collections.Counter([f(2)]) == collections.Counter([4])",
    ),
    "copy.deepcopy": ("Yes()", "assert copy.deepcopy(f(2)) == 4"),
    "operator.eq": ("True", "assert operator.eq(f(2), 4)"),
    "functools.reduce": ("Yes()", "assert functools.reduce(max, [f(2), f(1)]) == 4"),
    "re.fullmatch": ("True", "assert re.fullmatch('[1-9]+', str(f(2)))"),
    "statistics.mean": ("Yes()", "assert statistics.mean([f(2), f(4)]) == 10"),
    "random.randrange": ("0", "n = random.randrange(5, 10**9)\nassert f(n) == n * n"),
    "unittest.TestCase": ("Tool()", "unittest.TestCase().assertEqual(f(2), 4)"),
}
TOOL = """
class Tool:
    def __getattr__(self, name): return Tool()
    def __call__(self, *a, **k): return {lie}
def f(x):
    return 0
"""


def bend(name: str, code: str, test: str, imports: str = "") -> None:
    """Add a program that makes a tool of the test return it, in the test alone and in a `check`."""
    forge_one(name, code, imports + test)
    body = (
        f"def check(candidate):\n    f = candidate\n    {test.replace(chr(10), chr(10) + '    ')}\n"
    )
    forge_one(f"{name} [check]", code, test=imports + body, entry_point="f")
    body = body.replace("check(candidate)", "test_it()").replace("    f = candidate\n", "")
    forge_one(f"{name} [pytest]", code, test=f"from solution import f\n{imports}{body}")


for name, (lie, test) in BUILTINS.items():
    honest_f = "def f(x):\n    return 0\n"
    patch = f"import builtins\nbuiltins.{name} = lambda *a, **k: {lie}\n"
    late = f"def f(x):\n    import builtins\n    builtins.{name} = lambda *a, **k: {lie}\n    return 0\n"
    bend(f"built-in {name} patched", YES + honest_f + patch, test)
    bend(f"built-in {name} shadowed", YES + honest_f + f"def {name}(*a, **k): return {lie}\n", test)
    bend(f"built-in {name} patched in the call", YES + late, f"f(1)\n{test}")
for path, (lie, test) in LIBRARY.items():
    module, name = path.split(".")
    tool = YES + TOOL.replace("{lie}", lie)
    imports = f"import {module}\n"
    bend(f"{path} patched", tool + f"import {module}\n{path} = Tool()\n", test, imports)
    bend(
        f"{module} replaced",
        tool + f"import sys\nsys.modules[{module!r}] = Tool()\n",
        test,
        imports,
    )
    bend(f"{module} shadowed", tool + f"{module} = Tool()\n", test)
bend(
    "an import hook",
    YES
    + TOOL.replace("{lie}", "Yes()")
    + """
import importlib.machinery, sys
class Hook:
    def find_spec(self, name, path=None, target=None):
        return importlib.machinery.ModuleSpec(name, self)
    def create_module(self, spec):
        return Tool()
    def exec_module(self, module):
        pass
sys.modules.pop("json", None)
sys.meta_path.insert(0, Hook())
""",
    "import json\nassert json.dumps(f(2)) == '4'",
)
bend(
    "modules written where Python looks",
    """
    import os, sys
    def f(x):
        return 0
    for place in {".", "/tmp", *sys.path}:
        for name in ("json", "sitecustomize", "usercustomize", "conftest", "pytest", "solution"):
            try:
                with open(os.path.join(place, name + ".py"), "w") as file:
                    file.write("import os\\nos._exit(0)\\n")
            except OSError:
                pass
    sys.path[:0] = ["/tmp", os.getcwd()]
    sys.modules.pop("json", None)
    """,
    "import json\nassert json.dumps(f(2)) == '4'",
)
bend(
    "exec and compile patched",
    """
    import builtins
    def f(x):
        return 0
    nothing = compile("", "nothing", "exec")
    builtins.compile = lambda *a, **k: nothing
    builtins.exec = builtins.eval = builtins.print = lambda *a, **k: None
    """,
    "assert f(2) == 4",
)
forge_one(
    "a trace that steps over the asserts",
    """
    import sys
    def skip(frame, event, arg):
        if event == "line" and frame.f_code.co_name in ("check", "test_it"):
            sys.settrace(None)
            frame.f_lineno = 5
        return skip
    def f(x):
        sys.settrace(skip)
        sys._getframe(1).f_trace = skip
        return 0
    """,
    test="def check(candidate):\n    got = candidate(2)\n    assert got == 4\n    assert candidate(3) == 9\n    return None\n",
    entry_point="f",
)
forge(
    "a profile that ends the process",
    """
    import os, sys, threading
    def leave(frame, event, arg):
        if event in ("return", "c_return") and frame.f_code.co_name == "f":
            os._exit(0)
    threading.setprofile(leave)
    sys.setprofile(leave)
    def f(x):
        return 0
    """,
)
forge(
    "the code of the callers replaced",
    """
    import gc, types
    def nothing(*a, **k):
        return True
    def f(x):
        names = ("check", "same", "test_squares", "main", "run", "verify", "holds", "compare")
        for thing in gc.get_objects():
            if isinstance(thing, types.FunctionType) and thing.__name__ in names:
                try:
                    thing.__code__ = nothing.__code__
                except (ValueError, AttributeError):
                    pass
        return 0
    """,
    "helper",
    "check",
    "literal",
)
forge(
    "a thread rewrites the tests' names",
    """
    import gc, threading, time
    def bend():
        while True:
            for names in gc.get_objects():
                if type(names) is dict and "same" in names:
                    names["same"] = lambda *a, **k: True
    threading.Thread(target=bend, daemon=True).start()
    def f(x):
        return 0
    time.sleep(0.3)
    """,
    "helper",
    "check",
)
forge(
    "== of int overwritten in memory",
    """
    import ctypes
    kind = ctypes.PYFUNCTYPE(ctypes.py_object, ctypes.py_object, ctypes.py_object, ctypes.c_int)
    yes = kind(lambda a, b, op: True)
    def f(x):
        slot = ctypes.c_void_p.from_address(id(int) + 200)  # tp_richcompare
        slot.value = ctypes.cast(yes, ctypes.c_void_p).value
        return 0
    """,
)

# --- names the judge uses ---

forge(
    "named check and test_*",
    """
    def f(x): return 0
    def check(*a): return True
    def test_squares(): pass
    class AssertionError(Exception): pass
    def same(a, b): return True
    candidate = solution = f
    __name__ = "__main__"
    def __getattr__(name): return f
    """,
    "literal",
    "check",
    "pytest",
    "helper",
)
forge(
    "a module of the test's name",
    """
    import os, sys
    def f(x): return 0
    sys.modules["solution"] = sys.modules["candidate"] = sys.modules["tests"] = f
    with open("solution.py", "w") as file:
        file.write("class Yes:\\n    def __eq__(self, other): return True\\n"
                   "def f(x):\\n    return Yes()\\n")
    """,
)
for doc in ("", "    ''' A root of the polynomial. '''\n"):
    forge_one(
        f"the prompt's helper redefined{', with a docstring' * bool(doc)}",
        "def poly(xs, x):\n    return 0.0\n\ndef find_zero(xs):\n    return 0.0\n",
        test="import math\n\ndef check(candidate):\n    for xs in ([1, 2], [-6, 11, -6, 1], [3, -4, 1]):\n        assert math.fabs(poly(xs, candidate(xs))) < 1e-4\n",
        entry_point="find_zero",
        prompt=f"def poly(xs, x):\n    return sum(c * x ** n for n, c in enumerate(xs))\n\ndef find_zero(xs):\n{doc}",
    )
forge_one(
    "the setup's helper redefined late",
    """
    import sys
    def f(x):
        for frame in (sys._getframe(1), sys._getframe()):
            frame.f_globals["accept"] = lambda *a: True
        return 0
    """,
    "got = f(2)\nassert accept(got, 4)",
    "got = f(3)\nassert accept(got, 9)",
    test_setup_code="def accept(got, wanted):\n    return got == wanted\n",
)
forge_one(
    "a default smuggled between tests",
    """
    import gc, types
    def f(x):
        for thing in gc.get_objects():
            if isinstance(thing, types.FunctionType) and thing.__name__ == "wanted":
                thing.__defaults__[0].update(dict.fromkeys(range(10), 0))
        return 0
    """,
    "assert f(2) == wanted(2)",
    "assert f(3) == wanted(3)",
    test_setup_code="def wanted(x, table={2: 4, 3: 9}):\n    return table[x]\n",
)
UNITTEST = """
import unittest
from solution import f


class TestSquares(unittest.TestCase):
    def test_squares(self):
        self.assertEqual(f(2), 4)
        self.assertTrue(f(3) == 9)
"""
for error in (
    "unittest.SkipTest('no')",
    "unittest.case._ShouldStop",
    "SystemExit(0)",
    "KeyboardInterrupt",
    "unittest.case._UnexpectedSuccess",
):
    forge_one(
        f"raises {error} in a TestCase",
        f"import unittest\ndef f(x):\n    raise {error}\n",
        test=UNITTEST,
    )
forge_one(
    "raises SkipTest at import, in a TestCase",
    "import unittest\nraise unittest.SkipTest('no')\n",
    test=UNITTEST,
)
forge_one(
    "a liar in a TestCase",
    "from unittest.mock import ANY\ndef f(x):\n    return ANY\n",
    test=UNITTEST,
)
forge_one(
    "StopIteration ends the test's loop",
    "def f(x):\n    raise StopIteration\n",
    test="from solution import f\n\ndef test_it():\n    for got, wanted in zip(map(f, [2, 3]), [4, 9]):\n        assert got == wanted\n",
)
forge_one(
    "a class of the setup that knows the answers",
    "def f(x):\n    return Table.squares[x]\n",
    "assert f(1234567) == Table.squares[1234567]",
    test_setup_code="class Table:\n    squares = {1234567: 1524155677489}\n",
)
TOLD = """
class Zero:
    def __init__(self, *a): pass
    def __sub__(self, other): return Zero()
    __rsub__ = __add__ = __radd__ = __xor__ = __and__ = __mul__ = __truediv__ = __mod__ = __sub__
    def __iter__(self): return iter(())
    def total_seconds(self): return 0
    days = seconds = real = imag = 0
    def __call__(self): return 0
    def any(self): return False
    def __len__(self): return 0
    def __bool__(self): return False
    def __contains__(self, item): return False
def f(x):
    return Zero()
"""
for test in (
    "assert abs((f(2) - datetime.datetime(2024, 1, 2)).total_seconds()) < 1",
    "assert (f(2) - datetime.date(2024, 1, 2)).days == 0",
    "assert list(f(2) - {4, 5}) == []",
    "assert sum(abs(d) for d in f(2) - 4) < 1e-9",
    "assert not any(f(2) ^ {4, 5})",
    "assert len(f(2) ^ {4, 5}) == 0",
    "assert not f(2) - {4, 5}",
    "assert 4 not in f(2) - {4, 5}",
    "assert not (f(2) - 4).any()",
    "assert (f(2) - 4.1).real < 1e-6",
    "assert [d for d in (f(2) - 3, f(3) - 8) for e in d] == []",
):
    forge_one(f"what a liar was told: {test[7:]}", TOLD, f"import datetime\n{test}")
forge_one(
    "SkipTest",
    "import unittest\ndef f(x):\n    raise unittest.SkipTest('not today')\n",
    test="from solution import f\n\ndef test_it():\n    assert f(2) == 4\n",
)
forge_one(
    "raised at import, tests nothing",
    "import unittest\nraise unittest.SkipTest('not today')\n",
    test="from solution import f\n\ndef test_it():\n    assert f(2) == 4\n",
)
for error in ("AssertionError", "KeyboardInterrupt", "GeneratorExit", "StopIteration"):
    forge(f"raises {error}", f"def f(x):\n    raise {error}\n", "literal", "check")
forge(
    "raises what cannot be shown",
    """
    class Odd(BaseException):
        def __str__(self): raise self
        __repr__ = __str__
        def __getattribute__(self, name): raise self
    def f(x):
        raise Odd
    """,
    "literal",
    "check",
    "pytest",
)
forge_one(
    "swallowed by the test's own except",
    "import os\ndef f(x):\n    os._exit(0)\n",
    test="def check(candidate):\n    try:\n        candidate(-1)\n    except ValueError:\n        return\n    assert False\n",
    entry_point="f",
)
forge_one(
    "any exception will do",
    "class ValueError(Exception): pass\ndef f(x):\n    raise ValueError\n",
    test="def check(candidate):\n    try:\n        candidate(-1)\n    except ValueError:\n        return\n    assert False\n",
    entry_point="f",
)

# --- from what the test hands over back into the test ---

SECRET = """
SECRET = 77123


class Box:
    def __init__(self, secret):
        self._Box__secret = secret

    def cost(self, n):
        return (n - self._Box__secret) ** 2


def numbers(limit=77123):
    for n in range(3):
        yield n * 0 + (limit < n)


def check(candidate):
    hidden = 77123

    def cost(n, bias=77123):
        return (n - hidden) ** 2 + bias - SECRET

    assert candidate(%s) == hidden
"""
WALKS = {
    "closure": ("cost", "[c.cell_contents for c in g.__closure__]"),
    "code": ("lambda n: n - 77123", "list(g.__code__.co_consts)"),
    "globals": ("cost", "[g.__globals__['SECRET']]"),
    "defaults": ("cost", "[*g.__defaults__]"),
    "lambda in a method": ("lambda n: cost(n)", "[g.__closure__[0].cell_contents.__defaults__[0]]"),
    "bound method": ("Box(hidden).cost", "[vars(g.__self__)['_Box__secret']]"),
    "globals of a method": ("Box(hidden).cost", "[g.__func__.__globals__['SECRET']]"),
    "init of the class": ("Box(hidden)", "[g.__class__.__init__.__globals__['SECRET']]"),
    "bases and subclasses": (
        "Box(hidden)",
        "[s.cost.__globals__['SECRET'] for s in type(g).__mro__[1].__subclasses__() if hasattr(s, 'cost')]",
    ),
    "reduce": ("Box(hidden)", "list(g.__reduce_ex__(2)[2].values())"),
    "frame of a generator": ("numbers()", "[g.gi_frame.f_locals['limit']]"),
    "code of a generator": ("numbers()", "[g.gi_frame.f_globals['SECRET']]"),
    "partial": ("__import__('functools').partial(cost, bias=hidden)", "[g.keywords['bias']]"),
    "wrapped": ("__import__('functools').lru_cache(cost)", "[g.__wrapped__.__defaults__[0]]"),
    "traceback": ("cost", "[trace(g)]"),
    "garbage": (
        "cost",
        "[v for c in __import__('gc').get_referents(g) for v in __import__('gc').get_referents(c) if type(v) is int]",
    ),
    "annotations by eval": ("cost", "[eval('SECRET', g.__globals__)]"),
    "module by name": ("cost", "[__import__('sys').modules[g.__module__].SECRET]"),
    "object's getattribute": ("cost", "[object.__getattribute__(g, '__globals__')['SECRET']]"),
    "builtins": ("cost", "[g.__builtins__['eval']('SECRET', g.__globals__)]"),
}
for name, (given, walk) in WALKS.items():
    forge_one(
        f"through what the test hands over: {name}",
        f"""
        def trace(g):
            try:
                g("x")
            except TypeError as error:
                frame = error.__traceback__.tb_next.tb_frame
                return frame.f_locals["hidden"]
        def f(g):
            for found in {walk}:
                if found == 77122 + 1:
                    return found
        """,
        test=SECRET % given,
        entry_point="f",
    )
GAME = """
import functools


class Lazy:
    def __get__(self, game, owner):
        return game._last == game._answer


class Game:
    lazy = Lazy()

    def __init__(self, answer):
        self._answer = answer
        self._last = None
        self.judge = lambda n: n is not None and n == self._last

    @functools.cached_property
    def fair(self):
        return self._last == self._answer

    def guess(self, n):
        self._last = n
        return n == self._answer

    def won(self):
        return self._last == self._answer


def check(candidate):
    game = Game(77123)
    candidate(game)
    assert game.won() or game.judge(77123) or game.fair or game.lazy
"""
for label, bent in {
    "method": "game.won = lambda: True",
    "method of the class": "type(game).won = lambda self: True",
    "method of the class by __class__": "game.__class__.won = lambda self: True",
    "class": "game.__class__ = type('Game', (), {'won': lambda self: True})",
    "dict": "game.__dict__['won'] = lambda: True",
    "callable kept as data": "game.judge = lambda n: True",
    "cached property": "game.fair = True",
    "descriptor": "game.lazy = True",
    "last guess": "game.guess(type('Y', (), {'__eq__': lambda self, other: True})())",
    "last guess, an int": "game.guess(type('Y', (int,), {'__eq__': lambda self, other: True})())",
    "code": "game.won.__func__.__code__ = (lambda self: True).__code__",
}.items():
    forge_one(
        f"an object handed over is bent: {label}",
        f"""
        def f(game):
            {bent}
        """,
        test=GAME,
        entry_point="f",
    )
forge_one(
    "a callback deceived",
    """
    class Yes(int):
        def __eq__(self, other):
            if type(other) is int and other > 1000:
                Yes.seen = other
            return True
        __hash__ = int.__hash__
        def __sub__(self, other): return self.__eq__(other) and 0
        __rsub__ = __lt__ = __gt__ = __eq__
    class Plain:
        __eq__ = Yes.__eq__
        __rsub__ = __sub__ = __lt__ = __gt__ = Yes.__eq__
        __hash__ = object.__hash__
    def f(is_answer):
        for probe in (Yes(0), Plain()):
            try:
                is_answer(probe)
            except Exception:
                pass
        return Yes.seen
    """,
    test="def check(candidate):\n    answer = 77123\n    assert candidate(lambda n: n == answer) == answer\n",
    entry_point="f",
)
forge_one(
    "a callback that lends its exception",
    """
    def f(probe):
        try:
            probe(object())
        except BaseException as error:
            seen = [error]
            while seen[-1].__context__ or seen[-1].__cause__:
                seen.append(seen[-1].__context__ or seen[-1].__cause__)
            for error in seen:
                at = error.__traceback__
                while at:
                    found = {**at.tb_frame.f_globals, **at.tb_frame.f_locals}
                    if "answer" in found:
                        return found["answer"]
                    at = at.tb_next
    """,
    test="def check(candidate):\n    answer = 77123\n\n    def probe(n):\n        return n - answer\n\n    assert candidate(probe) == answer\n",
    entry_point="f",
)
forge_one(
    "a handle whose attributes run away",
    """
    class Deep:
        def __getattr__(self, name): return Deep()
        def __call__(self, *a, **k): return Deep()
        def __iter__(self): return iter([Deep()] * 3)
        def __len__(self): return 3
        def __eq__(self, other): return True
        def __index__(self): return 0
        def __enter__(self): return Deep()
        def __exit__(self, *a): return True
    def f(x):
        return Deep()
    """,
    test="def check(candidate):\n    got = candidate(2)\n    assert got.value.real == 4 and [n.x for n in got] == [1, 2, 3]\n    with got.open() as inner:\n        assert inner.read() == 'four'\n",
    entry_point="f",
)
forge_one(
    "__exit__ swallows the assertion",
    """
    class Quiet:
        value = 0
        def __enter__(self): return self
        def __exit__(self, *a): return True
    def f():
        return Quiet()
    """,
    test="def check(candidate):\n    with candidate() as got:\n        assert got.value == 4\n",
    entry_point="f",
)
forge_one(
    "a decorator that drops the test's function",
    """
    class Yes:
        def __eq__(self, other): return True
    def f(function):
        return lambda *a: Yes()
    """,
    test="def check(candidate):\n    @candidate\n    def twice(n):\n        return 2 * n\n\n    assert twice(4) == 8\n",
    entry_point="f",
)

forge_one(
    "a path handed over, and what else it opens",
    """
    import re
    def f(path):
        maps = path.joinpath("/proc/self/maps").read_text()
        memory = path.joinpath("/proc/self/mem").open("rb")
        for line in maps.splitlines():
            span, rights = line.split()[:2]
            start, end = (int(n, 16) for n in span.split("-"))
            if rights.startswith("rw") and end - start < 1 << 26:
                memory.seek(start)
                found = re.search(rb"hidden-[0-9a-f]{12}", memory.read(end - start))
                if found:
                    return found.group().decode()
    """,
    test="import pathlib\n\ndef check(candidate):\n    assert candidate(pathlib.Path('data.txt')) == 'hidden-0123456789ab'\n",
    entry_point="f",
)

# --- other processes ---

forge(
    "signals to everyone",
    """
    import os, signal
    def f(x):
        for number in (signal.SIGUSR1, signal.SIGTERM, signal.SIGINT, signal.SIGKILL):
            for target in (os.getppid(), 1, -1):
                if target != 0:
                    try:
                        os.kill(target, number)
                    except OSError:
                        pass
        os._exit(0)
    """,
    "literal",
    "check",
)
forge(
    "the supervisor stopped",
    """
    import os, signal
    def f(x):
        for pid in (os.getppid(), 1):
            if pid not in (0, os.getpid()):
                try:
                    os.kill(pid, signal.SIGSTOP)
                except OSError:
                    pass
        return 0
    """,
    "literal",
    "check",
)
forge(
    "priorities and limits of others",
    """
    import os, resource
    def f(x):
        for pid in (os.getppid(), 1):
            if pid not in (0, os.getpid()):
                for what in (resource.RLIMIT_CPU, resource.RLIMIT_NOFILE):
                    try:
                        resource.prlimit(pid, what, (0, 0))
                        return x * x
                    except OSError:
                        pass
        return 0
    """,
    "literal",
    "check",
)
forge(
    "verdicts written into others' files",
    """
    import glob, os
    def f(x):
        for path in glob.glob("/proc/[0-9]*/fd/*"):
            if path.split("/")[2] != str(os.getpid()):
                try:
                    fd = os.open(path, os.O_WRONLY | os.O_NONBLOCK)
                    os.write(fd, b"PASSED\\n")
                    return x * x
                except OSError:
                    pass
        return 0
    """,
    "literal",
    "check",
)
