"""The protocol abused: hostile values, hostile bytes on the channel, hostile source text."""

# ruff: noqa: E501 - programs within strings are as wide as they are
from __future__ import annotations

from attacks.program import WRONG, Program, attack

__all__ = ["PROTOCOL"]

PROTOCOL: list[Program] = []


def abuse(name: str, code: str, *shapes: str) -> None:
    PROTOCOL.extend(attack("protocol", name, code, *(shapes or ("literal", "check"))))


def abuse_one(name: str, code: str, *tests: str) -> None:
    """Judged twice: each test as it is, and all of them within a function."""
    PROTOCOL.extend(attack("protocol", f"{name} [literal]", code, task={"tests": list(tests)}))
    body = "".join(f"    {test.replace('f(', 'candidate(')}\n" for test in tests)
    task = {
        "test": f"def check(candidate):\n    for _ in range(1):\n        pass\n{body}",
        "entry_point": "f",
    }
    PROTOCOL.extend(attack("protocol", f"{name} [check]", code, task=task))


# --- values that a careless encoding makes equal ---

for name, code, test in [
    ("a tuple for a list", "return (1, 2, 3)", "assert f(1) == [1, 2, 3]"),
    ("a list for a tuple", "return [1, 2, 3]", "assert f(1) == (1, 2, 3)"),
    ("a tuple for a list, inside", "return {'a': [(1, 2)]}", "assert f(1) == {'a': [[1, 2]]}"),
    ("bytes for text", "return b'abc'", "assert f(1) == 'abc'"),
    ("text for a number", "return '4'", "assert f(1) == 4"),
    ("keys of the wrong type", "return {'1': 2}", "assert f(1) == {1: 2}"),
    ("None for 'null'", "return 'null'", "assert f(1) == None"),
    ("two surrogates for one character", "return '\\ud83d\\ude00'", "assert f(1) == '😀'"),
    ("a lone surrogate dropped", "return 'ab\\ud83d'", "assert f(1) == 'ab'"),
    ("a lone surrogate replaced", "return '\\ud83d'", "assert f(1) == '?' or f(1) == '\\ufffd'"),
    ("composed for decomposed", "return 'e\\u0301'", "assert f(1) == '\\u00e9'"),
    ("text with NUL", "return 'abc\\0def'", "assert f(1) == 'abc'"),
    ("nan", "return float('nan')", "assert f(1) == 1.0"),
    ("infinity for a large number", "return float('inf')", "assert f(1) == 1.7976931348623157e308"),
    ("a float for a long int", "return 1e22 + 1e7", "assert f(1) == 10000000000000000000001"),
    ("a rounded long int", "return 10**22", "assert f(1) == 10000000000000000000001"),
    ("a long fraction rounded", "return 0.1 + 0.2", "assert f(1) == 0.3"),
    ("a set for a list", "return {1, 2, 3}", "assert f(1) == [1, 2, 3]"),
    ("a range for a list", "return range(3)", "assert f(1) == [0, 1, 2]"),
    ("a generator for a list", "return (n for n in range(3))", "assert f(1) == [0, 1, 2]"),
    ("a map for a list", "return map(int, '012')", "assert f(1) == [0, 1, 2]"),
    ("dict values for a list", "return {0: 0, 1: 1}.values()", "assert f(1) == [0, 1]"),
    (
        "a deque for a list",
        "import collections\n    return collections.deque([0, 1])",
        "assert f(1) == [0, 1]",
    ),
    (
        "an array for a list",
        "import array\n    return array.array('i', [0, 1])",
        "assert f(1) == [0, 1]",
    ),
    ("the function for its value", "return f", "assert f(1) == 4"),
    ("the type for its value", "return int", "assert f(1) == 0"),
    ("NotImplemented", "return NotImplemented", "assert f(1) == 4"),
    ("Ellipsis", "return ...", "assert f(1) == [1, 2]"),
    (
        "a float that prints alike",
        "import decimal\n    return decimal.Decimal('0.1')",
        "assert f(1) == 0.1",
    ),
    (
        "an enum's name",
        "import enum\n    return enum.Enum('E', 'a').a",
        "assert f(1) == 1 or f(1) == 'a'",
    ),
    ("an exception returned", "return AssertionError()", "assert f(1) == None"),
]:
    abuse_one(name, f"def f(x):\n    {code}\n", test)

# --- objects whose methods harm the process that calls them ---

HOSTILE = """
import os, time
class Bite:
    def __init__(self, how): self.how = how
    def __getattribute__(self, name):
        return object.__getattribute__(self, "how")()
    def _bite(self, *a, **k): return object.__getattribute__(self, "how")()
    __repr__ = __str__ = __iter__ = __len__ = __reduce__ = __reduce_ex__ = __eq__ = __bool__ = _bite
    __next__ = __index__ = __int__ = __float__ = __hash__ = __contains__ = __getitem__ = __call__ = _bite
    __format__ = __bytes__ = __dir__ = __sizeof__ = __lt__ = __le__ = __enter__ = __length_hint__ = _bite
def loop():
    while True:
        pass
def deep():
    return deep()
def throw():
    raise BaseException("bite")
"""
for how in (
    "loop",
    "deep",
    "throw",
    "lambda: os._exit(0)",
    "lambda: time.sleep(60)",
    "lambda: 1 << 62",
    "lambda: Bite(deep)",
    "bytearray",
    "lambda: os.kill(os.getpid(), 19)",
):
    abuse(f"an object that bites: {how}", HOSTILE + f"def f(x):\n    return Bite({how})\n")
for how in ("throw", "lambda: os._exit(0)"):
    abuse(
        f"an object that bites in a list: {how}",
        HOSTILE + f"def f(x):\n    return [{{'a': (Bite({how}),)}}]\n",
    )
SUBCLASS = """
import itertools
class Bad({base}):
    def __iter__(self): return itertools.count()
    def __len__(self): return 1 << 62
    def __getitem__(self, n): return 0
    def items(self): return zip(itertools.count(), itertools.count())
    def keys(self): return itertools.count()
    values = keys
    def bit_length(self): return 1 << 40
    def to_bytes(self, *a, **k): return b""
    def as_integer_ratio(self): return (4, 1)
    def hex(self): return "0x4"
    def __index__(self): return 4
    def __int__(self): return 4
    def __float__(self): return 4.0
    def __repr__(self): return "1524155677489"
    __str__ = __repr__
    def encode(self, *a): return b"1524155677489"
    def __bytes__(self): return b"1524155677489"
    def __reduce_ex__(self, n): return (int, ("1524155677489",))
    def __eq__(self, other): return True
    def __hash__(self): return 0
    def __getattribute__(self, name): return object.__getattribute__(self, name)
def f(x):
    return Bad({value})
"""
for base, value in {
    "list": "[1]",
    "tuple": "(1,)",
    "dict": "{1: 2}",
    "set": "{1}",
    "int": "5",
    "float": "5.5",
    "str": "'five'",
    "bytes": "b'five'",
    "complex": "1j",
}.items():
    abuse(f"a subclass of {base} that lies to an encoder", SUBCLASS.format(base=base, value=value))
abuse(
    "hash collisions, once the subclass is gone",
    """
    class Key(int):
        __hash__ = object.__hash__
    def f(x):
        return {Key(n * (2**61 - 1)) for n in range(100_000)}
    """,
)
abuse(
    "a value that changes while it is read",
    """
    import threading
    shared = [0] * 100_000
    def stir():
        while True:
            shared.clear()
            shared.extend(range(100_000))
            shared[500:] = [[shared]]
    threading.Thread(target=stir, daemon=True).start()
    def f(x):
        return shared
    """,
)
abuse(
    "a dict that changes while it is read",
    """
    import threading
    shared = {}
    def stir():
        n = 0
        while True:
            n += 1
            shared[n % 5000] = n
            shared.pop((n * 7) % 5000, None)
    threading.Thread(target=stir, daemon=True).start()
    def f(x):
        return shared
    """,
)
abuse(
    "objects without end",
    """
    class Node:
        def __init__(self): pass
        @property
        def next(self): return Node()
        def __iter__(self): return self
        def __next__(self): return Node()
        def __eq__(self, other): return False
    def f(x):
        return Node()
    """,
)
abuse_one(
    "list() of an endless iterator",
    "import itertools\ndef f(x):\n    return itertools.count()\n",
    "assert list(f(3)) == [0, 1, 2]",
)
abuse_one(
    "list() of an endless iterator of one's own",
    "def f(x):\n    while True:\n        yield 0\n",
    "assert sorted(f(3)) == [0, 1, 2]",
)
abuse_one(
    "a callback without end",
    "def f(g):\n    return f(lambda n: g(g))\n",
    "assert f(lambda n: n + 1) == 4",
)
abuse_one(
    "callbacks back and forth",
    "def f(g):\n    def h(*a):\n        return g(h)\n    return g(h)\n",
    "assert f(lambda h: h(1)) == 4",
)
abuse_one(
    "a million callbacks",
    "def f(g):\n    while True:\n        g(1)\n",
    "assert f(lambda n: n) == 4",
)
abuse_one(
    "callbacks from many threads",
    """
    import threading
    def f(g):
        def call():
            while True:
                g([g] * 100)
        for n in range(8):
            threading.Thread(target=call, daemon=True).start()
        return 3
    """,
    "assert f(lambda n: n) == 4",
)
abuse_one(
    "a million handles",
    "def f(x):\n    return [object() for n in range(10**6)]\n",
    "assert f(1) == []",
    "assert len(f(1)) == 1",
)
abuse_one(
    "a huge argument for a callback",
    "def f(g):\n    return g('x' * (200 << 20))\n",
    "assert f(lambda s: 4) == 5",
)

abuse(
    "keys that collide, in a view",
    """
    class Key(int):
        __hash__ = object.__hash__
    def f(x):
        return {Key(n * (2**61 - 1)): 0 for n in range(100_000)}.keys()
    """,
)
abuse(
    "pairs that collide, in a view",
    """
    class Key(int):
        __hash__ = object.__hash__
    def f(x):
        return {Key(n * (2**61 - 1)): 0 for n in range(100_000)}.items()
    """,
)
abuse(
    "named tuples by the thousand",
    """
    import collections
    Pair = collections.namedtuple("Pair", "a b")
    def f(x):
        return [Pair(n, n) for n in range(50_000)]
    """,
)
abuse(
    "a named tuple of many fields",
    """
    class Wide(tuple):
        _fields = tuple(f"f{n}" for n in range(100_000))
    def f(x):
        return Wide(range(100_000))
    """,
)
abuse(
    "a named tuple of bad fields",
    """
    class Bad(tuple):
        _fields = ("__eq__", "class", "a b", 5)
    Bad.__name__ = "Bad(object): pass\\nimport os;os._exit(0)\\nclass X"
    def f(x):
        return Bad((1, 2, 3, 4))
    """,
)
abuse("four million items", "def f(x):\n    return [None] * 4_190_000\n", "literal", "functional")
abuse("half a million numbers", "def f(x):\n    return [list(range(400)) for _ in range(1000)]\n")
abuse(
    "dates, decimals and fractions out of range",
    """
    import datetime, decimal, fractions
    class When(datetime.datetime):
        year = 10**9
    VALUES = [decimal.Decimal("1e999999999"), decimal.Decimal("sNaN"), decimal.Decimal("nan"),
              decimal.Decimal("-Infinity"), fractions.Fraction(1, 10**9000), When(2024, 1, 1),
              decimal.Decimal("1" * 5000), datetime.timedelta.max, range(10**30), 10**4400]
    def f(x):
        return VALUES[x % len(VALUES)] if x else 0
    """,
)
for name in ("1e999999999", "sNaN", "nan", "Infinity", "-0"):
    abuse_one(
        f"Decimal {name}",
        f"import decimal\ndef f(x):\n    return decimal.Decimal('{name}')\n",
        "assert f(1) == 4",
        "assert abs(f(1) - 4.1) < 0.1",
        "assert f(1) in {4: 5}",
    )
for printed in ("sNaN", "nan", "Infinity", "1e999999999", "9' * 3_000_000 + '", "\\0", "\\ud800"):
    abuse(f"printed: {printed[:11]}", f"print('{printed}')\n", "stdin")

# --- bytes on the channel ---

CHANNEL = """
import os, socket, struct, time
def channels():
    for fd in range(3, 64):
        try:
            os.fstat(fd)
        except OSError:
            continue
        yield fd
"""
for kind in "DEGHILMPRSVX":
    abuse(
        f"channel: a frame of kind {kind}",
        CHANNEL
        + f"""
def f(x):
    for fd in channels():
        try:
            os.write(fd, b"{kind}\\4\\0\\0\\0none")
        except OSError:
            pass
    time.sleep(0.05)
    os._exit(0)
""",
    )
    abuse(
        f"channel: a frame of kind {kind} (stdin)",
        CHANNEL
        + f"""
for fd in channels():
    try:
        os.write(fd, b"{kind}\\4\\0\\0\\0none")
    except OSError:
        pass
os._exit(0)
""",
        "stdin",
    )
for name, payload in {
    "eight million items": "b'l' + struct.pack('<I', 4_000_000) + b'N' * 4_000_000",
    "lists within lists": "(b'l' + struct.pack('<I', 1)) * 250 + b'N'",
    "lists too deep": "(b'l' + struct.pack('<I', 1)) * 400_000 + b'N'",
    "many small tuples": "b'l' + struct.pack('<I', 400_000) + (b't' + struct.pack('<I', 1) + b'T') * 400_000",
    "a count too large": "b'l' + struct.pack('<I', 2**32 - 1)",
    "a number too long": "b'i' + struct.pack('<I', 3_000_000) + b'x' * 3_000_000",
    "keys that collide": "b'k' + struct.pack('<I', 4) + b'keys' + b't' + struct.pack('<I', 1) + b'l' + struct.pack('<I', 150_000) + b''.join(b'i' + struct.pack('<I', 10) + (n * (2**61 - 1)).to_bytes(10, 'little') for n in range(150_000))",
    "an unknown name": "b'k' + struct.pack('<I', 2) + b'os' + b't' + struct.pack('<I', 0)",
    "a bad builder": "b'k' + struct.pack('<I', 4) + b'date' + b't' + struct.pack('<I', 3) + b'TTN'",
    "a handle of nobody's": "b'h' + struct.pack('<q', 77) + b't' + struct.pack('<I', 2) + b's' + struct.pack('<I', 1) + b'x' + b'N'",
}.items():
    abuse(
        f"channel: values, {name}",
        CHANNEL
        + f"""
payload = {payload}
def f(x):
    for fd in channels():
        for kind in (b"V", b"A"):
            body = payload if kind == b"V" else b"t" + struct.pack("<I", 3) + payload + b"l" + bytes(4) + b"N"
            data = kind + struct.pack("<I", len(body)) + body
            try:
                os.set_blocking(fd, True)
                while data:
                    data = data[os.write(fd, data):]
            except OSError:
                pass
            if not os.path.exists("/proc/self/fd"):
                break
    time.sleep(0.05)
    os._exit(0)
""",
    )
for name, code in {
    "noise": "os.write(fd, os.urandom(4096))",
    "zeros": "os.write(fd, bytes(4096))",
    "ones": "os.write(fd, b'\\xff' * 4096)",
    "JSON": """os.write(fd, b'{"passed": true, "verdict": "passed", "ok": 1}\\n')""",
    "half a frame": "os.write(fd, b'V\\xff'); time.sleep(0 if x % 3 else 9)",
    "a frame of 4 GB": "os.write(fd, b'V' + b'\\xff' * 4 + b'x'); time.sleep(9)",
    "many small frames": "[os.write(fd, b'V\\1\\0\\0\\0T' * 1000) for _ in range(100)]",
    "lengths of 8 bytes": "os.write(fd, struct.pack('<Q', 1 << 62)); os.write(fd, struct.pack('>Q', 1 << 62))",
    "closed": "os.close(fd)",
    "shut down": "socket.socket(fileno=os.dup(fd)).shutdown(2)",
    "replaced by /dev/null": "os.dup2(os.open('/dev/null', os.O_RDWR), fd)",
    "replaced by /dev/zero": "os.dup2(os.open('/dev/zero', os.O_RDWR), fd)",
    "replaced by each other": "os.dup2(1, fd)",
    "read away": "os.set_blocking(fd, False); os.read(fd, 1 << 20)",
    "made blocking": "os.set_blocking(fd, True)",
    "truncated": "os.truncate(fd, 0)",
    "descriptors sent": "socket.send_fds(socket.socket(fileno=os.dup(fd)), [b'x'], [0, 1, 2, fd] * 10)",
    "many descriptors sent": "[socket.send_fds(socket.socket(fileno=os.dup(fd)), [b'x'], [fd] * 250) for _ in range(200)]",
}.items():
    abuse(
        f"channel: {name}",
        CHANNEL
        + f"""
def f(x):
    for fd in list(channels()):
        try:
            {code}
        except OSError:
            pass
    return 0
""",
    )
abuse(
    "channel: gigabytes, slowly",
    CHANNEL
    + """
def f(x):
    while True:
        for fd in channels():
            os.set_blocking(fd, False)
            try:
                os.write(fd, b"T" * 100_000)
            except OSError:
                pass
        time.sleep(0.001)
""",
)
abuse(
    "channel: byte by byte",
    CHANNEL
    + """
def f(x):
    while True:
        for fd in channels():
            os.write(fd, b"i")
            time.sleep(0.01)
""",
)
abuse(
    "channel: kept by a child that answers later",
    CHANNEL
    + """
def f(x):
    if os.fork() == 0:
        os.setsid()
        while True:
            for fd in channels():
                try:
                    os.write(fd, b"V\\1\\0\\0\\0T")
                except OSError:
                    pass
            time.sleep(0.001)
    return 0
""",
)

# --- hostile source text ---

WELL = "def f(x):\n    return x * x\n"
SHAPES = ("literal", "check", "pytest")
abuse("source: NUL hides the rest of a line", "def f(x): return 0 #\0\n" + WELL, *SHAPES)
abuse("source: NUL before the end", WELL + "\0\ndef f(x): return 0\n", *SHAPES)
abuse("source: a lone surrogate", f"# \ud800\n{WELL}\nx = '\ud800'.encode()\n", *SHAPES)
abuse("source: late __future__ import", WELL + "from __future__ import annotations\n", *SHAPES)
abuse("source: a syntax error at the end", WELL + "def (:\n", *SHAPES)
abuse("source: an open string", WELL + '"""\n', *SHAPES)
abuse("source: wrong indentation", WELL + "   return 1\n", *SHAPES)
abuse("source: tabs mixed with blanks", "def f(x):\n        y = x\n\treturn x * y\n", *SHAPES)
abuse("source: too deep for the parser", WELL + "x = " + "(" * 5000 + ")" * 5000 + "\n", *SHAPES)
abuse("source: too deep for the compiler", WELL + "x = " + "-" * 200_000 + "1\n", "literal")
abuse("source: a long chain", WELL + "x = " + "+".join(["y"] * 100_000) + "\n", "literal")
abuse("source: 20 MB", "x = '" + "y" * (20 << 20) + "'\ndef f(x): return 0\n", "literal", "check")
abuse(
    "source: quotes that close the harness", "'''\n\"\"\"\n}}}\n%s%(x)s{0}\nassert True\n", *SHAPES
)
abuse("source: a number too long to read", WELL + "x = " + "9" * 5000 + "\n", "literal", "check")
abuse(
    "source: a class body that never ends", "class A:\n    while True:\n        pass\n", "literal"
)
abuse("source: nothing but the tests", "assert f(1234567) == 1524155677489\n", *SHAPES)
abuse("source: empty", "\n\n", *SHAPES)
abuse("source: not Python", "The answer is x squared.\n", *SHAPES)
abuse("source: reassigns the function", WELL + "f = None\n", *SHAPES)
abuse("source: deletes the function", WELL + "del f\n", *SHAPES)
abuse(
    "source: warnings as errors",
    "import warnings\nwarnings.simplefilter('error')\ndef f(x):\n    warnings.warn('no')\n    return x * x\n",
    "literal",
)
assert all(program.verdicts == WRONG for program in PROTOCOL)
