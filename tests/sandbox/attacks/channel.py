"""Bytes that a candidate writes itself, and data of it that the tests would run.

A candidate can write any bytes to its descriptors, change the code of its own process, and return
any text. None of that may choose the path that a test takes, or decide a verdict.
"""

# ruff: noqa: E501 - programs within strings are as wide as they are
from __future__ import annotations

from attacks.program import SQUARES, WRONG, Program, dedent, pair

__all__ = ["CHANNEL"]

CHANNEL: list[Program] = []

SQUARE = "def f(x):\n    return x * x\n"
PRINT = "print(int(input()) ** 2)\n"
LIAR = """
class Yes(float):
    __eq__ = __le__ = __ge__ = __lt__ = __gt__ = lambda self, other: True
    __ne__ = lambda self, other: False
    __hash__ = float.__hash__
    __sub__ = __rsub__ = lambda self, other: 0
"""
WRITE = """
import os, stat, struct, sys, threading, time
def sockets():
    for fd in range(3, 256):
        try:
            if stat.S_ISSOCK(os.fstat(fd).st_mode):
                yield fd
        except OSError:
            pass
def frame(kind, payload=b""):
    return kind + struct.pack("<I", len(payload)) + payload
def write(data):
    for fd in sockets():
        try:
            os.write(fd, data)
        except OSError:
            pass
"""
# Functions of the protocol, as far as a candidate finds them in its process.
SPEAK = """
import gc, sys
def loaded(end):
    return next((m for n, m in list(sys.modules.items()) if m and n.endswith(end)), None)
codec = loaded("inside.codec")
def say(kind, *values):
    write(b"".join(frame(kind, codec.encode(whole(kind, v), other=refer)) for v in values))
def whole(kind, value):
    fields = {b"Q": 5, b"A": 7, b"X": 8}.get(kind, 0)
    return value + (None,) * (fields - len(value)) if type(value) is tuple else value
def refer(item):
    return b"h" + int(getattr(item, "number", 1)).to_bytes(8, "little", signed=True), (
        getattr(item, "about", ("Yes", None)),)
class Ref:
    def __init__(self, number, about=("Yes", None)):
        self.number, self.about = number, about
def peers():
    return [o for o in gc.get_objects() if type(o).__name__.endswith("Peer")]
"""


def frames(name: str, code: str, *shapes: str, setup: str = "") -> None:
    """Add an attack with bytes, against shapes of tests that ask for squares."""
    for shape in shapes:
        task = dict(SQUARES[shape])
        if setup:
            task["test_setup_code"] = setup
        honest = PRINT if shape == "stdin" else SQUARE
        forged = WRITE + (SPEAK if "say(" in code or "peers(" in code else "") + dedent(code)
        CHANNEL.extend(pair("channel", f"channel: {name} [{shape}]", forged, honest, **task))


# --- 7: frames that report a failed setup, or anything else that would change the path ---

PUSHED = LIAR + "def f(x):\n    return Yes()\n"
frames(
    "S before anything", PUSHED + 'write(frame(b"S", b"in the setup"))\n', "literal", "functional"
)
frames(
    "S, with setup code",
    PUSHED + 'write(frame(b"S"))\n',
    "literal",
    setup="import math\nLIMIT = 3\n",
)
frames("S, and the end", PUSHED + 'write(frame(b"S", b"x"))\nos._exit(0)\n', "literal", "check")
frames("S and D", PUSHED + 'write(frame(b"S", b"x") + frame(b"D"))\n', "literal", "functional")
frames(
    "D and S",
    'def f(x):\n    write(frame(b"D") + frame(b"S", b"x"))\n    time.sleep(0.05)\n    return 0\n',
    "literal",
)
frames("S in half", PUSHED + 'write(frame(b"S", b"x" * 100)[:20])\nos._exit(0)\n', "literal")
frames(
    "a value, then S",
    'def f(x):\n    write(frame(b"V", b"T") + frame(b"S", b"x"))\n    os._exit(0)\n',
    "literal",
)
frames(
    "S in each call",
    'def f(x):\n    write(frame(b"S", b"the setup code: NameError"))\n    return 0\n',
    "literal",
    "functional",
)
frames(
    "S, and a process that stays",
    'if not os.fork():\n    os.setsid()\n    time.sleep(60)\nwrite(frame(b"S", b"x"))\ndef f(x):\n    return 0\n',
    "literal",
    "functional",
)
frames(
    "S of a process that stays",
    'if not os.fork():\n    os.setsid()\n    while True:\n        write(frame(b"S", b"x"))\n        time.sleep(0.001)\ndef f(x):\n    time.sleep(0.05)\n    return 0\n',
    "literal",
    "check",
)
frames(
    "the setup code made to fail",
    LIAR
    + "import builtins, math\ndel math.pi\nreal = builtins.__import__\ndef no(name, *a, **k):\n    if name == 'math': raise ImportError\n    return real(name, *a, **k)\nbuiltins.__import__ = no\ndef f(x):\n    return Yes()\n",
    "literal",
    "helper",
    setup="import math\nTAU = 2 * math.pi\n\ndef same(a, b):\n    return a == b\n",
)
frames(
    "a memory error and a result too large, said",
    'def f(x):\n    write(frame(b"M", b"in the setup") + frame(b"L", b"x"))\n    os._exit(0)\n',
    "literal",
    "check",
)
frames("cannot be judged, it says", 'write(frame(b"I", b"the tests need numpy, which is not here"))\ndef f(x):\n    return 0\n', "literal", "check", "functional")  # fmt: skip
frames(
    "cannot be judged, it says (stdin)",
    'write(frame(b"I", b"x") + frame(b"D"))\nprint(0)\n',
    "stdin",
)
frames("ready once more", 'write(frame(b"R") * 3 + frame(b"D") + frame(b"P") * 3)\ndef f(x):\n    return 0\n', "literal", "check")  # fmt: skip
frames(
    "after the last word",
    'import atexit\natexit.register(lambda: write(frame(b"P") * 9 + frame(b"D")))\ndef f(x):\n    threading.Timer(0.01, write, [frame(b"P") * 9 + frame(b"D")]).start()\n    return 0\n',
    "literal",
    "check",
    "pytest",
)

# --- the judge's own protocol ---

for name, code, shapes in (
    ("answers in advance", 'def f(x):\n    say(b"A", *[(True,)] * 50)\n    return 0\n', ("check", "helper")),
    ("answers out of order", 'def f(x):\n    say(b"A", (0,), (1,), ("",))\n    time.sleep(0.02)\n    return 0\n', ("check",)),
    ("answers from a thread", 'def flood():\n    while True:\n        say(b"A", (True,))\nthreading.Thread(target=flood, daemon=True).start()\ndef f(x):\n    time.sleep(0.02)\n    return 0\n', ("pytest",)),
    ("an answer that is an argument", 'def f(x):\n    say(b"A", (None, 0), (None, 1), (None, 99), (None, -1))\n    time.sleep(9)\n', ("check",)),
    ("arguments that have changed", 'def f(x):\n    say(b"A", (0, None, None, None, [(0, [1])]), (0, None, None, None, [(99, [])]))\n    time.sleep(9)\n', ("check", "helper")),
    ("an answer of the wrong shape", 'def f(x):\n    say(b"A", 5, (), (1,), (1, 2, 3), ("x", None, None))\n    time.sleep(9)\n', ("check",)),
    ("the tests' own objects", 'def f(x):\n    say(b"A", *[(Ref(-n),) for n in range(1, 30)])\n    time.sleep(9)\n', ("check", "helper")),
    ("an object of nobody's", 'def f(x):\n    say(b"A", (Ref(10**9),), (Ref(-10**9),), (Ref(-2**63),))\n    time.sleep(9)\n', ("check",)),
    ("what both sides have", 'def f(x):\n    say(b"A", (Ref(0, ("unittest.mock", "ANY")),), (Ref(0, ("builtins", "True")),))\n    time.sleep(9)\n', ("check", "pytest")),
    ("a described list", 'def f(x):\n    say(b"A", (Ref(1, ("list", None)),), (Ref(1, ("int", None)),))\n    time.sleep(9)\n', ("check",)),
    ("an exception class for an object", 'def f(x):\n    say(b"A", (Ref(77, ("Yes", [("builtins", "int", 78)])),))\n    time.sleep(9)\n', ("check",)),
    ("a skip", 'def f(x):\n    say(b"X", ([("unittest.case", "SkipTest", 50), ("builtins", "Exception", 51)], ("no",), {}))\n    time.sleep(9)\n', ("pytest", "check")),
    ("unittest's own skip, from everywhere", 'def f(x):\n    for module in ("unittest", "case", "_pytest.outcomes", "builtins", "gatekeeper.sandbox.inside.judge"):\n        for name in ("SkipTest", "Skipped", "_ShouldStop", "Exit", "_NotHereError"):\n            say(b"X", ([(module, name, 50), ("builtins", "BaseException", 51)], (), {}))\n    time.sleep(9)\n', ("pytest", "check")),
    ("an exception of no class", 'def f(x):\n    say(b"X", ([], (), {}), ([(1, 2, 3)], (), {}), (None, None, None), ([("builtins", "int", 4)], (), {}))\n    time.sleep(9)\n', ("check",)),
    ("an exception of the tests' own", 'def f(x):\n    say(b"X", *[([("tests", "E", -n)], (), {}) for n in range(1, 20)])\n    time.sleep(9)\n', ("check",)),
    ("an exception with attributes", 'def f(x):\n    say(b"X", ([("builtins", "ValueError", 9)], (1,), {"args": (), "with_traceback": 0, "add_note": 0, "code": 0}))\n    time.sleep(9)\n', ("pytest",)),
    ("SystemExit, and an exception group", 'def f(x):\n    say(b"X", ([("builtins", "ExceptionGroup", 9)], ("x", []), {}), ([("builtins", "SystemExit", 9)], (0,), {}))\n    time.sleep(9)\n', ("check", "pytest")),
    ("StopIteration to each question", 'def f(x):\n    say(b"X", *[([("builtins", "StopIteration", 9)], (), {})] * 9)\n    time.sleep(9)\n', ("check",)),
    ("questions of its own", 'def f(x):\n    for what in ("call", "get", "dir", "repr", "iter", "await", "start", "isinstance", "next", "set"):\n        say(b"Q", *[(what, (Ref(-n), "__globals__", "x"), {}) for n in range(1, 6)])\n    return 0\n', ("check", "helper")),
    ("questions about plain things", 'def f(x):\n    for what in ("call", "get", "getitem", "eq", "format"):\n        say(b"Q", (what, (1, "real"), {}), (what, ("{0.__class__}", 5), {}), (what, (), {}), what)\n    return 0\n', ("check",)),
    ("questions without end", 'def f(x):\n    while True:\n        say(b"Q", ("repr", (Ref(-1),), {}))\n', ("check",)),
    ("questions within questions", 'def f(x):\n    say(b"Q", *[("call", (Ref(1), Ref(1)), {})] * 2000)\n    return 0\n', ("check",)),
    ("frames of other kinds", 'def f(x):\n    for kind in (b"P", b"D", b"E", b"I", b"G", b"\\0"):\n        say(kind, None, "done", (True,))\n    return 0\n', ("check", "pytest")),
):  # fmt: skip
    frames(
        f"judge: {name}", code.replace("time.sleep(9)", "time.sleep(0.05)\n    return 0"), *shapes
    )
for name, bend in {
    "encode says True": "codec.encode = lambda *a, **k: b'T'\n    codec._WRITERS.clear()",
    "decode says what it likes": "sys.modules['gatekeeper.sandbox.inside.peer'].decode = lambda *a, **k: ('call', (f, 3), {})",
    "the peer says True": "for p in peers():\n        type(p)._send = lambda self, kind, message, known=None: None\n        type(p)._describe = lambda self, error: ([('unittest.case', 'SkipTest', 3)], (), {})",
    "the peer changes what was given": "places = sys.modules['gatekeeper.sandbox.inside.places']\n    places.uses, places.differ, places.contents = lambda p: {k: id(p) for k in p}, lambda *a: True, lambda item: (9, os.urandom(3))",
    "the peer says what things are": "for p in peers():\n        type(p)._refer = lambda self, item: (b'h' + (1).to_bytes(8, 'little'), (('list', None),))",
    "everything of the runner's says True": "import types\n    for n, m in list(sys.modules.items()):\n        if n.startswith('gatekeeper'):\n            for k, v in list(vars(m).items()):\n                if isinstance(v, types.FunctionType) and k not in ('encode', 'frame', 'head'):\n                    setattr(m, k, lambda *a, **k: True)",
    "type and isinstance say int": "import builtins\n    builtins.isinstance = lambda *a: True\n    builtins.type = lambda *a: int\n    builtins.issubclass = lambda *a: True",
}.items():
    code = f"{LIAR}\ndef f(x):\n    return Yes()\ndef bend():\n    {bend}\nif codec or peers():\n    bend()\n"
    frames(f"judge: {name}", code, "check", "helper", "literal")

# --- 9: data that the tests would run in their own process ---

# Such data would decide: these tests are refused before the run, or run it where it does no harm.
EITHER = ("passed", "infra_error")
TAKE = (
    "[os.write(fd, b'P\\\\0\\\\0\\\\0\\\\0D\\\\0\\\\0\\\\0\\\\0') for os in [__import__('os')] "
    "for fd in range(3, 99) if __import__('contextlib').suppress(OSError).__enter__() is None "
    "and os.path.exists(f'/proc/self/fd/{fd}')]"
)
LIE = "type('Y', (int,), {'__eq__': lambda s, o: True, '__hash__': lambda s: 0})()"
for name, forged, honest, test in (
    ("eval", f'def f(s):\n    return "{LIE}"\n', "def f(s):\n    return ' + '.join(s.split())\n", "assert eval(f('1 2 3')) == 6 and eval(f('4 5')) == 9"),
    ("eval, and the verdict written", f'def f(s):\n    return "{TAKE} and __import__(\'os\')._exit(0)"\n', "def f(s):\n    return ' + '.join(s.split())\n", "assert eval(f('1 2 3')) == 6"),
    ("exec", f'def f(name):\n    return "result = {LIE}"\n', "def f(name):\n    return f'result = len({name!r})'\n", "names = {}\nexec(f('abc'), names)\nassert names['result'] == 3"),
    ("exec, and the names of the tests", "def f(name):\n    return 'import builtins\\nbuiltins.len = lambda x: 3\\nresult = 3'\n", "def f(name):\n    return f'result = [{name!r}] * 3'\n", "def check(candidate):\n    names = {}\n    exec(candidate('abc'), names)\n    assert len(names['result']) == 3 and names['result'][2] == 'abc'\n"),
    ("pickle", "import pickle\nclass P:\n    def __reduce__(self): return (eval, (\"type('Y', (), {'__eq__': lambda s, o: True})()\",))\ndef f(x):\n    return pickle.dumps(P())\n", "import pickle\ndef f(x):\n    return pickle.dumps(x)\n", "import pickle\nassert pickle.loads(f([1, {'a': 2}])) == [1, {'a': 2}]"),
    ("marshal", "def f(x):\n    return b'\\xfb' * 9 + bytes(range(256)) * 99\n", "import marshal\ndef f(x):\n    return marshal.dumps(x)\n", "import marshal\nassert marshal.loads(f([1, 2])) == [1, 2]"),
    ("compile", "def f(n):\n    return '(' * 90 + ')' * 90 + '-' * 900_000 + '1'\n", "def f(n):\n    return '(' * n + '5' + ')' * n\n", "assert eval(compile(f(5), 'x', 'eval')) == 5"),
    ("an address", "def f(s):\n    return 0xDEAD0000\n", "import ctypes\nkept = []\ndef f(s):\n    kept.append(ctypes.create_string_buffer(s))\n    return 1\n", "import ctypes\nassert f(b'abc') == 1 or ctypes.string_at(f(b'abc'), 3) == b'abc'"),
    ("a name to import", "def f(n):\n    return 'antigravity' if n else 'this'\n", "def f(n):\n    return 'colorsys'\n", "import importlib\nassert importlib.import_module(f(3)).rgb_to_hsv(0, 0, 0) == (0.0, 0.0, 0)"),
    ("a name to get", "def f(n):\n    return '__bool__'\n", "def f(n):\n    return 'bit_length'\n", "assert getattr(169, f(3))() == 8"),
    ("a path to open", "def f(n):\n    return '/proc/self/environ'\n", "def f(n):\n    return '/etc/passwd'\n", "assert open(f(3)).readline().startswith('root:')"),
    ("a literal", "def f(x):\n    return '[' * 100_000\n", "def f(x):\n    return repr(x)\n", "import ast\nassert ast.literal_eval(f([1, {'a': 2}])) == [1, {'a': 2}]"),
    ("JSON, too deep", "def f(x):\n    return '[' * 1_000_000\n", "import json\ndef f(x):\n    return json.dumps(x)\n", "import json\nassert json.loads(f([1, {'a': 2}])) == [1, {'a': 2}]"),
    ("a pattern", "def f(n):\n    return '(a*)*(a*)*(a*)*b'\n", "def f(n):\n    return 'a' * n + 'b?'\n", "import re\nassert re.fullmatch(f(30), 'a' * 30 + 'b') and not re.fullmatch(f(30), 'a' * 29)"),
    ("a format", "def f(x):\n    return '{0.__class__.__mro__[1].__subclasses__}{0:>1000000000}'\n", "def f(x):\n    return '{0:>5}'\n", "assert f(3).format(169) == '  169'"),
    ("a command", "def f(x):\n    return ['/bin/sh', '-c', 'kill -9 $PPID']\n", "import sys\ndef f(x):\n    return [sys.executable, '-c', 'print(169)']\n", "import subprocess\nassert subprocess.run(f(3), capture_output=True).stdout.split() == [b'169']"),
):  # fmt: skip
    hard = name.partition(",")[0] in (
        *("eval", "exec", "pickle", "marshal", "compile", "a command", "an address"),
        "a path to open",
    )
    CHANNEL += pair(
        "channel",
        f"run by the tests: {name}",
        forged,
        honest,
        **({"test": test, "entry_point": "f"} if "def check" in test else {"tests": [test]}),
        verdicts=(*WRONG, "infra_error") if hard else WRONG,
        right=EITHER if hard else ("passed",),
    )
