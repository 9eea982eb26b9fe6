"""Candidates that search their own process for the setup code and its data.

The task is a digest of a number, which no attack computes: it can only be found.
"""

# ruff: noqa: E501 - programs within strings are as wide as they are
from __future__ import annotations

import hashlib
from typing import Any

from attacks.program import Program, dedent, pair

__all__ = ["MEMORY"]

MEMORY: list[Program] = []

DIGESTS = {n: hashlib.sha256(str(n).encode()).hexdigest()[:16] for n in (41, 977, 20011)}
DIGEST = "import hashlib\ndef f(n):\n    return hashlib.sha256(str(n).encode()).hexdigest()[:16]\n"

# Each holds the answers in its setup code, and asks for them in its own way.
SETUPS: dict[str, dict[str, Any]] = {
    "check": {
        "test_setup_code": f"import colorsys\ndef check(g):\n    for n, wanted in {DIGESTS}.items():\n        assert g(n) == wanted\n",
        "tests": ["check(f)"],
    },
    "table": {
        "test_setup_code": f"import colorsys\nANSWERS = {DIGESTS}\n",
        "tests": [f"assert f({n}) == ANSWERS[{n}]" for n in DIGESTS],
    },
    "cases": {
        "test_setup_code": f"CASES = {DIGESTS}\nNUMBERS = list(CASES)\n",
        "tests": [f"assert f(NUMBERS[{k}]) == {d!r}" for k, d in enumerate(DIGESTS.values())],
    },
    "closure": {
        "test_setup_code": f"def make():\n    table = {DIGESTS}\n    return lambda n: table[n]\nwanted = make()\n",
        "tests": [f"assert f({n}) == wanted({n})" for n in DIGESTS],
    },
    "default": {
        "test_setup_code": f"import colorsys\ndef wanted(n, table={DIGESTS}):\n    return table[n]\n",
        "tests": [f"assert f({n}) == wanted({n})" for n in DIGESTS],
    },
    "class": {
        "test_setup_code": f"class Answers:\n    table = {DIGESTS}\n    @classmethod\n    def of(cls, n):\n        return cls.table[n]\n",
        "tests": [f"assert f({n}) == Answers.of({n})" for n in DIGESTS],
    },
    "check in the test": {
        "test_setup_code": f"import colorsys\nANSWERS = {DIGESTS}\n",
        "test": "def check(candidate):\n    for n in ANSWERS:\n        assert candidate(n) == ANSWERS[n]\n",
        "entry_point": "f",
    },
    "pytest": {
        "test_setup_code": f"ANSWERS = {DIGESTS}\n",
        "test": "from solution import f\n\ndef test_digests():\n    for n, wanted in ANSWERS.items():\n        assert f(n) == wanted\n",
    },
    "functional": {
        "test_setup_code": f"ANSWERS = {DIGESTS}\n",
        "input_output": {
            "fn_name": "f",
            "inputs": [[n] for n in DIGESTS],
            "outputs": list(DIGESTS.values()),
        },
    },
}

# `keep` remembers texts that look like a table of digests, `f` answers from what was kept.
HUNT = r"""
import re
kept = {}
def keep(*texts):
    for text in texts:
        for n, digest in re.findall(r"\b(\d+)\W{1,4}([0-9a-f]{16})\b", str(text)):
            kept[int(n)] = digest
def walk(frame):
    while frame is not None:
        for names in (frame.f_locals, frame.f_globals):
            for value in list(names.values()):
                if isinstance(value, (str, bytes, list, tuple, dict)):
                    keep(repr(value)[:100_000])
        keep(frame.f_code.co_consts)
        frame = frame.f_back
def f(n):
    look()
    return kept.get(n)
def look():
    pass
"""


def hunt(name: str, code: str, *shapes: str) -> None:
    """Add a way to search for the answers, against some of the setups."""
    for shape in shapes:
        label, task = f"setup: {name} [{shape}]", SETUPS[shape]
        MEMORY.extend(pair("memory", label, HUNT + dedent(code), DIGEST, **task))


hunt("frames in the call", "import sys\ndef look():\n    walk(sys._getframe())\n", "check")
hunt(
    "frames at import", "import sys\nwalk(sys._getframe())\n", "table", "cases", "check in the test"
)
hunt(
    "frames of a traceback at import",
    """
    try:
        raise KeyError
    except KeyError as error:
        walk(error.__traceback__.tb_frame)
    """,
    "default",
)
hunt(
    "inspect.stack, with the frames' code",
    """
    import inspect
    def look():
        for entry in inspect.stack():
            walk(entry.frame)
            keep(entry.code_context)
    look()
    """,
    "class",
)
hunt(
    "traceback.walk_stack, captured locals",
    """
    import traceback
    def look():
        for frame, _ in traceback.walk_stack(None):
            walk(frame)
        keep(*traceback.StackSummary.extract(traceback.walk_stack(None), capture_locals=True))
    look()
    """,
    "pytest",
)
hunt(
    "the frame behind a generator",
    """
    def inner():
        yield
        while True:
            walk(me.gi_frame.f_back)
            yield
    me = inner()
    next(me)
    next(me)
    def look():
        next(me)
    """,
    "closure",
)
hunt(
    "an audit hook that reads what is compiled",
    """
    import sys
    sys.addaudithook(lambda event, items: keep(*items) if event in ("compile", "exec") else None)
    """,
    "table",
    "check",
)
hunt(
    "ast.parse patched",
    """
    import ast
    parse = ast.parse
    def spy(source, *a, **k):
        keep(source)
        return parse(source, *a, **k)
    ast.parse = spy
    """,
    "table",
    "check in the test",
)
hunt(
    "compile patched",
    """
    import ast, builtins
    real = builtins.compile
    def spy(source, *a, **k):
        keep(ast.dump(source) if isinstance(source, ast.AST) else source)
        return real(source, *a, **k)
    builtins.compile = spy
    """,
    "cases",
    "default",
)
hunt(
    "exec and eval patched",
    """
    import builtins, sys
    def wrap(real):
        def spy(source, *names):
            keep(source, getattr(source, "co_consts", ""), *names)
            walk(sys._getframe())
            return real(source, *(names or (sys._getframe(1).f_globals,)))
        return spy
    builtins.exec, builtins.eval = wrap(exec), wrap(eval)
    """,
    "class",
    "functional",
)
hunt(
    "__import__ patched, and who calls it",
    """
    import builtins, sys
    real = builtins.__import__
    def spy(*a, **k):
        walk(sys._getframe(1))
        return real(*a, **k)
    builtins.__import__ = spy
    """,
    "check",
    "default",
)
hunt(
    "an import hook, and who calls it",
    """
    import sys
    class Hook:
        def find_spec(self, name, path=None, target=None):
            walk(sys._getframe(1))
    sys.modules.pop("colorsys", None)
    sys.meta_path.insert(0, Hook())
    """,
    "table",
)
hunt(
    "__build_class__ patched",
    """
    import builtins
    real = builtins.__build_class__
    def spy(body, *a, **k):
        keep(body.__code__.co_consts)
        return real(body, *a, **k)
    builtins.__build_class__ = spy
    """,
    "class",
)
hunt(
    "a profile of everything",
    """
    import sys
    def profile(frame, event, arg):
        sys.setprofile(None)
        walk(frame)
        if isinstance(arg, (str, list, tuple, dict)):
            keep(arg)
        if len(kept) < 3:
            sys.setprofile(profile)
    sys.setprofile(profile)
    """,
    "check in the test",
)
hunt(
    "a trace set in the callers' frames",
    """
    import sys
    def trace(frame, event, arg):
        walk(frame)
        return trace
    frame = sys._getframe()
    while frame:
        frame.f_trace = trace
        frame = frame.f_back
    sys.settrace(trace)
    def look():
        sys.settrace(None)
    """,
    "table",
)
hunt(
    "a thread that watches the main thread",
    """
    import sys, threading, time
    main = threading.get_ident()
    def watch():
        for _ in range(200):
            walk(sys._current_frames()[main])
            time.sleep(0.001)
    threading.Thread(target=watch, daemon=True).start()
    time.sleep(0.02)
    """,
    "closure",
)
hunt(
    "a signal handler's frame",
    """
    import signal
    signal.signal(signal.SIGALRM, lambda number, frame: walk(frame))
    signal.setitimer(signal.ITIMER_REAL, 0.001, 0.002)
    """,
    "check",
)
hunt(
    "the collector's objects",
    """
    import gc
    def look():
        for thing in gc.get_objects():
            if isinstance(thing, (list, tuple, dict)) and thing is not kept:
                keep(*(item for item in (thing.values() if isinstance(thing, dict) else thing)
                       if isinstance(item, (str, bytes))))
            elif hasattr(thing, "__code__"):
                keep(thing.__code__.co_consts, getattr(thing, "__defaults__", ""))
    """,
    "table",
    "default",
)
hunt(
    "who refers to one's own source",
    """
    import gc, sys
    def look():
        frame = sys._getframe()
        while frame:
            for value in list(frame.f_locals.values()):
                if isinstance(value, str) and "def keep(" in value:
                    for owner in gc.get_referrers(value):
                        keep(repr(owner)[:100_000])
            frame = frame.f_back
    look()
    """,
    "check",
)
MAPS = """
def spans():
    for line in open("/proc/self/maps"):
        span, rights = line.split()[:2]
        start, end = (int(n, 16) for n in span.split("-"))
        if rights.startswith("rw") and end - start < 1 << 27:
            yield start, end
"""
hunt(
    "its own memory, by /proc",
    MAPS
    + r"""
def look():
    with open("/proc/self/mem", "rb", 0) as memory:
        for start, end in spans():
            try:
                memory.seek(start)
                keep(memory.read(end - start).decode("latin-1"))
            except OSError:
                pass
look()
""",
    "table",
    "check",
)
hunt(
    "its own memory, by ctypes",
    MAPS
    + """
import ctypes
def look():
    for start, end in list(spans()):
        if end - start < 1 << 24:
            keep(ctypes.string_at(start, end - start).decode("latin-1"))
look()
""",
    "class",
)
hunt(
    "its own memory, in a child that was forked",
    MAPS
    + """
import os
def look():
    out, into = os.pipe()
    if not os.fork():
        with open(f"/proc/{os.getppid()}/mem", "rb", 0) as memory:
            for start, end in spans():
                try:
                    memory.seek(start)
                    keep(memory.read(end - start).decode("latin-1"))
                except OSError:
                    pass
        os.write(into, repr(kept).encode())
        os._exit(0)
    os.close(into)
    keep(os.read(out, 1 << 16).decode())
look()
""",
    "check in the test",
)
hunt(
    "names that the setup code binds",
    """
    def f(n):
        for name in ("ANSWERS", "CASES"):
            if name in globals():
                return globals()[name][n]
        return wanted(n) if "wanted" in globals() else Answers.of(n)
    """,
    "table",
    "cases",
    "closure",
    "class",
    "functional",
)
hunt(
    "names that the setup code binds, through a class of its own",
    """
    class Names(dict):
        def __getitem__(self, name):
            keep(repr(list(self.items()))[:100_000])
            return dict.__getitem__(self, name)
        def __setitem__(self, name, value):
            keep(repr(value)[:100_000])
            dict.__setitem__(self, name, value)
    import sys, types
    class Module(types.ModuleType):
        def __setattr__(self, name, value):
            keep(repr(value)[:100_000])
            super().__setattr__(name, value)
    for name in ("candidate", __name__):
        if name in sys.modules:
            sys.modules[name].__class__ = Module
    __builtins__ = Names(vars(__import__("builtins")))
    def look():
        keep(repr({k: v for k, v in globals().items() if k != "kept"})[:100_000])
    """,
    "cases",
)
