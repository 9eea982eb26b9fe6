"""The candidate catches what the tests print: in a `with` of its own, or around a callback."""

# ruff: noqa: E501 - programs within strings are as wide as they are
from __future__ import annotations

from attacks.program import Topic

__all__ = ["CAPTURED"]

CAPTURED = Topic("captured")
forged, right = CAPTURED.forged, CAPTURED.right

forged(
    "manager plain",
    "import sys, io, contextlib, functools\n@contextlib.contextmanager\ndef capture():\n    yield io.StringIO()\n",
    "import sys, io, contextlib, functools\n@contextlib.contextmanager\ndef capture():\n    b = io.StringIO()\n    with contextlib.redirect_stdout(b):\n        yield b\n",
    "import io, sys, contextlib\nimport solution\n\ndef test_a():\n    with solution.capture() as o:\n        print('hi')\n        print('there', end='!')\n    assert o.getvalue() == 'hi\\nthere!'\n",
)
forged(
    "manager within redirect",
    "import sys, io, contextlib, functools\n@contextlib.contextmanager\ndef capture():\n    yield io.StringIO()\n",
    "import sys, io, contextlib, functools\n@contextlib.contextmanager\ndef capture():\n    b = io.StringIO()\n    with contextlib.redirect_stdout(b):\n        yield b\n",
    "import io, sys, contextlib\nimport solution\n\ndef test_a():\n    b = io.StringIO()\n    with contextlib.redirect_stdout(b):\n        print('a')\n        with solution.capture() as o:\n            print('hi')\n        print('b')\n    assert o.getvalue() == 'hi\\n'\n    assert b.getvalue() == 'a\\nb\\n'\n",
)
forged(
    "manager nested twice",
    "import sys, io, contextlib, functools\n@contextlib.contextmanager\ndef capture():\n    yield io.StringIO()\n",
    "import sys, io, contextlib, functools\n@contextlib.contextmanager\ndef capture():\n    b = io.StringIO()\n    with contextlib.redirect_stdout(b):\n        yield b\n",
    "import io, sys, contextlib\nimport solution\n\ndef test_a():\n    with solution.capture() as o:\n        print('1')\n        with solution.capture() as p:\n            print('2')\n        print('3')\n    assert (o.getvalue(), p.getvalue()) == ('1\\n3\\n', '2\\n')\n",
)
forged(
    "manager restored",
    "import sys, io, contextlib, functools\n@contextlib.contextmanager\ndef capture():\n    yield io.StringIO()\n",
    "import sys, io, contextlib, functools\n@contextlib.contextmanager\ndef capture():\n    b = io.StringIO()\n    with contextlib.redirect_stdout(b):\n        yield b\n",
    "import io, sys, contextlib\nimport solution\n\ndef test_a():\n    old = sys.stdout\n    with solution.capture() as o:\n        assert sys.stdout is not old\n        print('x')\n    assert sys.stdout is old\n    assert o.getvalue() == 'x\\n'\n",
)
forged(
    "manager restored, 2",
    "import sys, io, contextlib, functools\nclass capture:\n    def __enter__(self):\n        sys.stdout = io.StringIO()\n        return sys.stdout\n    def __exit__(self, *a):\n        pass\n",
    "import sys, io, contextlib, functools\n@contextlib.contextmanager\ndef capture():\n    b = io.StringIO()\n    with contextlib.redirect_stdout(b):\n        yield b\n",
    "import io, sys, contextlib\nimport solution\n\ndef test_a():\n    old = sys.stdout\n    with solution.capture() as o:\n        assert sys.stdout is not old\n        print('x')\n    assert sys.stdout is old\n    assert o.getvalue() == 'x\\n'\n",
)
forged(
    "manager restored after error",
    "import sys, io, contextlib, functools\n@contextlib.contextmanager\ndef capture():\n    yield io.StringIO()\n",
    "import sys, io, contextlib, functools\n@contextlib.contextmanager\ndef capture():\n    b = io.StringIO()\n    with contextlib.redirect_stdout(b):\n        yield b\n",
    "import io, sys, contextlib\nimport solution\n\ndef test_a():\n    old = sys.stdout\n    try:\n        with solution.capture() as o:\n            print('x')\n            raise KeyError\n    except KeyError:\n        pass\n    assert sys.stdout is old and o.getvalue() == 'x\\n'\n",
)
forged(
    "manager with candidate printing",
    "import sys, io, contextlib, functools\n@contextlib.contextmanager\ndef capture():\n    yield io.StringIO()\ndef say(): print('say')\n",
    "import sys, io, contextlib, functools\n@contextlib.contextmanager\ndef capture():\n    b = io.StringIO()\n    with contextlib.redirect_stdout(b):\n        yield b\ndef say(): print('say')\n",
    "import io, sys, contextlib\nimport solution\n\ndef test_a():\n    with solution.capture() as o:\n        print('a')\n        solution.say()\n        print('b')\n    assert o.getvalue() == 'a\\nsay\\nb\\n'\n",
)
forged(
    "manager redirect inside",
    "import sys, io, contextlib, functools\n@contextlib.contextmanager\ndef capture():\n    yield io.StringIO()\n",
    "import sys, io, contextlib, functools\n@contextlib.contextmanager\ndef capture():\n    b = io.StringIO()\n    with contextlib.redirect_stdout(b):\n        yield b\n",
    "import io, sys, contextlib\nimport solution\n\ndef test_a():\n    b = io.StringIO()\n    with solution.capture() as o:\n        print('a')\n        with contextlib.redirect_stdout(b):\n            print('b')\n        print('c')\n    assert o.getvalue() == 'a\\nc\\n' and b.getvalue() == 'b\\n'\n",
)
forged(
    "manager twice in a row",
    "import sys, io, contextlib, functools\n@contextlib.contextmanager\ndef capture():\n    yield io.StringIO()\n",
    "import sys, io, contextlib, functools\n@contextlib.contextmanager\ndef capture():\n    b = io.StringIO()\n    with contextlib.redirect_stdout(b):\n        yield b\n",
    "import io, sys, contextlib\nimport solution\n\ndef test_a():\n    for t in ('x', 'y'):\n        with solution.capture() as o:\n            print(t)\n        assert o.getvalue() == t + '\\n'\n",
)
forged(
    "manager by ExitStack",
    "import sys, io, contextlib, functools\n@contextlib.contextmanager\ndef capture():\n    yield io.StringIO()\n",
    "import sys, io, contextlib, functools\n@contextlib.contextmanager\ndef capture():\n    b = io.StringIO()\n    with contextlib.redirect_stdout(b):\n        yield b\n",
    "import io, sys, contextlib\nimport solution\n\ndef test_a():\n    with contextlib.ExitStack() as s:\n        o = s.enter_context(solution.capture())\n        print('x')\n    assert o.getvalue() == 'x\\n'\n",
)
forged(
    "class plain",
    "import sys, io, contextlib, functools\n@contextlib.contextmanager\ndef capture():\n    yield io.StringIO()\n",
    "import sys, io, contextlib, functools\nclass capture:\n    def __enter__(self):\n        self.old, sys.stdout = sys.stdout, io.StringIO()\n        return sys.stdout\n    def __exit__(self, *a):\n        sys.stdout = self.old\n",
    "import io, sys, contextlib\nimport solution\n\ndef test_a():\n    with solution.capture() as o:\n        print('hi')\n        print('there', end='!')\n    assert o.getvalue() == 'hi\\nthere!'\n",
)
forged(
    "class within redirect",
    "import sys, io, contextlib, functools\n@contextlib.contextmanager\ndef capture():\n    yield io.StringIO()\n",
    "import sys, io, contextlib, functools\nclass capture:\n    def __enter__(self):\n        self.old, sys.stdout = sys.stdout, io.StringIO()\n        return sys.stdout\n    def __exit__(self, *a):\n        sys.stdout = self.old\n",
    "import io, sys, contextlib\nimport solution\n\ndef test_a():\n    b = io.StringIO()\n    with contextlib.redirect_stdout(b):\n        print('a')\n        with solution.capture() as o:\n            print('hi')\n        print('b')\n    assert o.getvalue() == 'hi\\n'\n    assert b.getvalue() == 'a\\nb\\n'\n",
)
forged(
    "class nested twice",
    "import sys, io, contextlib, functools\n@contextlib.contextmanager\ndef capture():\n    yield io.StringIO()\n",
    "import sys, io, contextlib, functools\nclass capture:\n    def __enter__(self):\n        self.old, sys.stdout = sys.stdout, io.StringIO()\n        return sys.stdout\n    def __exit__(self, *a):\n        sys.stdout = self.old\n",
    "import io, sys, contextlib\nimport solution\n\ndef test_a():\n    with solution.capture() as o:\n        print('1')\n        with solution.capture() as p:\n            print('2')\n        print('3')\n    assert (o.getvalue(), p.getvalue()) == ('1\\n3\\n', '2\\n')\n",
)
forged(
    "class restored",
    "import sys, io, contextlib, functools\n@contextlib.contextmanager\ndef capture():\n    yield io.StringIO()\n",
    "import sys, io, contextlib, functools\nclass capture:\n    def __enter__(self):\n        self.old, sys.stdout = sys.stdout, io.StringIO()\n        return sys.stdout\n    def __exit__(self, *a):\n        sys.stdout = self.old\n",
    "import io, sys, contextlib\nimport solution\n\ndef test_a():\n    old = sys.stdout\n    with solution.capture() as o:\n        assert sys.stdout is not old\n        print('x')\n    assert sys.stdout is old\n    assert o.getvalue() == 'x\\n'\n",
)
forged(
    "class restored, 2",
    "import sys, io, contextlib, functools\nclass capture:\n    def __enter__(self):\n        sys.stdout = io.StringIO()\n        return sys.stdout\n    def __exit__(self, *a):\n        pass\n",
    "import sys, io, contextlib, functools\nclass capture:\n    def __enter__(self):\n        self.old, sys.stdout = sys.stdout, io.StringIO()\n        return sys.stdout\n    def __exit__(self, *a):\n        sys.stdout = self.old\n",
    "import io, sys, contextlib\nimport solution\n\ndef test_a():\n    old = sys.stdout\n    with solution.capture() as o:\n        assert sys.stdout is not old\n        print('x')\n    assert sys.stdout is old\n    assert o.getvalue() == 'x\\n'\n",
)
forged(
    "class restored after error",
    "import sys, io, contextlib, functools\n@contextlib.contextmanager\ndef capture():\n    yield io.StringIO()\n",
    "import sys, io, contextlib, functools\nclass capture:\n    def __enter__(self):\n        self.old, sys.stdout = sys.stdout, io.StringIO()\n        return sys.stdout\n    def __exit__(self, *a):\n        sys.stdout = self.old\n",
    "import io, sys, contextlib\nimport solution\n\ndef test_a():\n    old = sys.stdout\n    try:\n        with solution.capture() as o:\n            print('x')\n            raise KeyError\n    except KeyError:\n        pass\n    assert sys.stdout is old and o.getvalue() == 'x\\n'\n",
)
forged(
    "class with candidate printing",
    "import sys, io, contextlib, functools\n@contextlib.contextmanager\ndef capture():\n    yield io.StringIO()\ndef say(): print('say')\n",
    "import sys, io, contextlib, functools\nclass capture:\n    def __enter__(self):\n        self.old, sys.stdout = sys.stdout, io.StringIO()\n        return sys.stdout\n    def __exit__(self, *a):\n        sys.stdout = self.old\ndef say(): print('say')\n",
    "import io, sys, contextlib\nimport solution\n\ndef test_a():\n    with solution.capture() as o:\n        print('a')\n        solution.say()\n        print('b')\n    assert o.getvalue() == 'a\\nsay\\nb\\n'\n",
)
forged(
    "class redirect inside",
    "import sys, io, contextlib, functools\n@contextlib.contextmanager\ndef capture():\n    yield io.StringIO()\n",
    "import sys, io, contextlib, functools\nclass capture:\n    def __enter__(self):\n        self.old, sys.stdout = sys.stdout, io.StringIO()\n        return sys.stdout\n    def __exit__(self, *a):\n        sys.stdout = self.old\n",
    "import io, sys, contextlib\nimport solution\n\ndef test_a():\n    b = io.StringIO()\n    with solution.capture() as o:\n        print('a')\n        with contextlib.redirect_stdout(b):\n            print('b')\n        print('c')\n    assert o.getvalue() == 'a\\nc\\n' and b.getvalue() == 'b\\n'\n",
)
forged(
    "class twice in a row",
    "import sys, io, contextlib, functools\n@contextlib.contextmanager\ndef capture():\n    yield io.StringIO()\n",
    "import sys, io, contextlib, functools\nclass capture:\n    def __enter__(self):\n        self.old, sys.stdout = sys.stdout, io.StringIO()\n        return sys.stdout\n    def __exit__(self, *a):\n        sys.stdout = self.old\n",
    "import io, sys, contextlib\nimport solution\n\ndef test_a():\n    for t in ('x', 'y'):\n        with solution.capture() as o:\n            print(t)\n        assert o.getvalue() == t + '\\n'\n",
)
forged(
    "class by ExitStack",
    "import sys, io, contextlib, functools\n@contextlib.contextmanager\ndef capture():\n    yield io.StringIO()\n",
    "import sys, io, contextlib, functools\nclass capture:\n    def __enter__(self):\n        self.old, sys.stdout = sys.stdout, io.StringIO()\n        return sys.stdout\n    def __exit__(self, *a):\n        sys.stdout = self.old\n",
    "import io, sys, contextlib\nimport solution\n\ndef test_a():\n    with contextlib.ExitStack() as s:\n        o = s.enter_context(solution.capture())\n        print('x')\n    assert o.getvalue() == 'x\\n'\n",
)
forged(
    "lines",
    "import sys, io, contextlib, functools\nclass capture(list):\n    def __enter__(self): return self\n    def __exit__(self, *a): pass\n",
    "import sys, io, contextlib, functools\nclass capture(list):\n    def __enter__(self):\n        self._o = sys.stdout\n        sys.stdout = self._s = io.StringIO()\n        return self\n    def __exit__(self, *a):\n        self.extend(self._s.getvalue().splitlines())\n        sys.stdout = self._o\n",
    "import io, sys, contextlib\nimport solution\n\ndef test_a():\n    with solution.capture() as o:\n        print('a')\n        print('b')\n    assert o == ['a', 'b']\n",
)
forged(
    "decorator",
    "import sys, io, contextlib, functools\ndef captured(fn): return lambda *a: ''\n",
    "import sys, io, contextlib, functools\ndef captured(fn):\n    @functools.wraps(fn)\n    def w(*a):\n        b = io.StringIO()\n        with contextlib.redirect_stdout(b):\n            fn(*a)\n        return b.getvalue()\n    return w\n",
    "import io, sys, contextlib\nimport solution\n\ndef test_a():\n    @solution.captured\n    def g(x):\n        print('got', x)\n    assert g(3) == 'got 3\\n'\n",
)
forged(
    "decorator within redirect",
    "import sys, io, contextlib, functools\ndef shout(fn): return fn\n",
    "import sys, io, contextlib, functools\ndef shout(fn):\n    @functools.wraps(fn)\n    def w(*a):\n        b = io.StringIO()\n        with contextlib.redirect_stdout(b):\n            r = fn(*a)\n        print(b.getvalue().upper(), end='')\n        return r\n    return w\n",
    "import io, sys, contextlib\nimport solution\n\ndef test_a():\n    @solution.shout\n    def g(x):\n        print('got', x)\n    b = io.StringIO()\n    with contextlib.redirect_stdout(b):\n        g(3)\n    assert b.getvalue() == 'GOT 3\\n'\n",
)
forged(
    "stderr",
    "import sys, io, contextlib, functools\n@contextlib.contextmanager\ndef err():\n    yield io.StringIO()\n",
    "import sys, io, contextlib, functools\n@contextlib.contextmanager\ndef err():\n    b = io.StringIO()\n    with contextlib.redirect_stderr(b):\n        yield b\n",
    "import io, sys, contextlib\nimport solution\n\ndef test_a():\n    with solution.err() as o:\n        print('x', file=sys.stderr)\n        sys.stderr.write('y')\n    assert o.getvalue() == 'x\\ny'\n",
)
forged(
    "tee",
    "import sys, io, contextlib, functools\n@contextlib.contextmanager\ndef tee(o):\n    yield\n",
    "import sys, io, contextlib, functools\nclass Tee:\n    def __init__(self, *s): self.s = s\n    def write(self, t):\n        for s in self.s: s.write(t)\n    def flush(self): pass\n@contextlib.contextmanager\ndef tee(o):\n    old = sys.stdout\n    sys.stdout = Tee(old, o)\n    try:\n        yield\n    finally:\n        sys.stdout = old\n",
    "import io, sys, contextlib\nimport solution\n\ndef test_a():\n    a, b = io.StringIO(), io.StringIO()\n    with contextlib.redirect_stdout(a), solution.tee(b):\n        print('x')\n    assert a.getvalue() == b.getvalue() == 'x\\n'\n",
)
forged(
    "prefix",
    "import sys, io, contextlib, functools\n@contextlib.contextmanager\ndef prefix(p):\n    yield\n",
    "import sys, io, contextlib, functools\nclass P:\n    def __init__(self, s, p): self.s, self.p, self.n = s, p, True\n    def write(self, t):\n        for c in t:\n            if self.n: self.s.write(self.p)\n            self.s.write(c)\n            self.n = c == '\\n'\n    def flush(self): self.s.flush()\n@contextlib.contextmanager\ndef prefix(p):\n    old = sys.stdout\n    sys.stdout = P(old, p)\n    try:\n        yield\n    finally:\n        sys.stdout = old\n",
    "import io, sys, contextlib\nimport solution\n\ndef test_a():\n    b = io.StringIO()\n    with contextlib.redirect_stdout(b):\n        with solution.prefix('> '):\n            print('a')\n            print('b')\n        print('c')\n    assert b.getvalue() == '> a\\n> b\\nc\\n'\n",
)
forged(
    "progress callback",
    "import sys, io, contextlib, functools\ndef run(fn, n):\n    for i in range(n): fn(i)\n",
    "import sys, io, contextlib, functools\ndef run(fn, n):\n    for i in range(n):\n        print('step', i)\n        fn(i)\n",
    "import io, sys, contextlib\nimport solution\n\ndef test_a():\n    b = io.StringIO()\n    with contextlib.redirect_stdout(b):\n        solution.run(lambda i: print('in', i), 2)\n    assert b.getvalue() == 'step 0\\nin 0\\nstep 1\\nin 1\\n'\n",
)
forged(
    "muted callback",
    "import sys, io, contextlib, functools\ndef quiet(fn): return fn()\n",
    "import sys, io, contextlib, functools\ndef quiet(fn):\n    with contextlib.redirect_stdout(io.StringIO()):\n        return fn()\n",
    "import io, sys, contextlib\nimport solution\n\ndef test_a():\n    b = io.StringIO()\n    with contextlib.redirect_stdout(b):\n        assert solution.quiet(lambda: print('x') or 3) == 3\n        print('y')\n    assert b.getvalue() == 'y\\n'\n",
)
forged(
    "timer prints in exit",
    "import sys, io, contextlib, functools\nclass timer:\n    def __enter__(self): return self\n    def __exit__(self, *a): pass\n",
    "import sys, io, contextlib, functools\nclass timer:\n    def __enter__(self): return self\n    def __exit__(self, *a): print('done')\n",
    "import io, sys, contextlib\nimport solution\n\ndef test_a():\n    b = io.StringIO()\n    with contextlib.redirect_stdout(b):\n        with solution.timer():\n            print('x')\n    assert b.getvalue() == 'x\\ndone\\n'\n",
)
forged(
    "liar's stream",
    "import sys, io, contextlib, functools\nclass S(io.StringIO):\n    def write(self, t):\n        raise SystemExit(0)\nclass ctx:\n    def __enter__(self):\n        self.o = sys.stdout\n        sys.stdout = S()\n        return self\n    def __exit__(self, *a): sys.stdout = self.o\ndef f(x): return 0\n",
    "import sys, io, contextlib, functools\ndef f(x): return x*x\nclass ctx:\n    def __enter__(self): return self\n    def __exit__(self, *a): pass\n",
    "import io, sys, contextlib\nimport solution\n\ndef test_a():\n    with solution.ctx():\n        print('a')\n        assert solution.f(3) == 9\n",
)
forged(
    "stream swallows at exit",
    "import sys, io, contextlib, functools\nclass S(io.StringIO):\n    def write(self, t):\n        raise SystemExit(0)\nclass ctx:\n    def __enter__(self):\n        sys.stdout = S()\n        return self\n    def __exit__(self, *a): return True\ndef f(x): return 0\n",
    "import sys, io, contextlib, functools\ndef f(x): return x*x\nclass ctx:\n    def __enter__(self): return self\n    def __exit__(self, *a): pass\n",
    "import io, sys, contextlib\nimport solution\n\ndef test_a():\n    with solution.ctx():\n        print('a')\n        assert solution.f(3) == 9\n    assert solution.f(2) == 4\n",
)
forged(
    "stdout is junk",
    "import sys, io, contextlib, functools\nclass ctx:\n    def __enter__(self):\n        sys.stdout = 5\n        return self\n    def __exit__(self, *a): return True\ndef f(x): return 0\n",
    "import sys, io, contextlib, functools\ndef f(x): return x*x\nclass ctx:\n    def __enter__(self): return self\n    def __exit__(self, *a): pass\n",
    "import io, sys, contextlib\nimport solution\n\ndef test_a():\n    with solution.ctx():\n        print('a')\n        assert solution.f(3) == 9\n    assert solution.f(2) == 4\n",
)
forged(
    "lies about getvalue",
    "import sys, io, contextlib, functools\ndef f(x):\n    class S(io.StringIO):\n        def getvalue(self): return '9\\n'\n    sys.stdout = S()\n",
    "import sys, io, contextlib, functools\ndef f(x): print(x*x)\n",
    "import io, sys, contextlib\nimport solution\n\ndef test_a():\n    sys.stdout = b = io.StringIO()\n    try:\n        solution.f(3)\n        got = sys.stdout.getvalue()\n    finally:\n        sys.stdout = sys.__stdout__\n    assert got == '9\\n'\n",
)
for _how, _lie in (
    (
        "",
        "import contextlib, io\n@contextlib.asynccontextmanager\nasync def capture():\n    yield io.StringIO()\n",
    ),
    (
        ", which keeps it",
        "import io, sys\nclass capture:\n    async def __aenter__(self):\n        sys.stdout = io.StringIO()\n        return sys.stdout\n    async def __aexit__(self, *error):\n        pass\n",
    ),
):
    forged(
        f"an async manager{_how}",
        _lie,
        "import contextlib, io\n@contextlib.asynccontextmanager\nasync def capture():\n    text = io.StringIO()\n    with contextlib.redirect_stdout(text):\n        yield text\n",
        "import asyncio, sys\nfrom solution import capture\n\nasync def captured():\n    before = sys.stdout\n    async with capture() as out:\n        print('x')\n    assert sys.stdout is before\n    return out.getvalue()\n\ndef test_f():\n    assert asyncio.run(captured()) == 'x\\n'\n",
    )
forged(
    "streams that are equal to each other",
    "import io, sys\nclass Text(io.StringIO):\n    def __eq__(self, other): raise SystemExit(0)\n    __hash__ = None\nclass capture:\n    def __enter__(self):\n        sys.stdout = Text()\n        return sys.stdout\n    def __exit__(self, *error): pass\n",
    "import contextlib, io\nclass Text(io.StringIO):\n    def __eq__(self, other): return True\n    __hash__ = None\n@contextlib.contextmanager\ndef capture():\n    with contextlib.redirect_stdout(Text()) as text:\n        yield text\n",
    "from solution import capture\n\ndef test_f():\n    with capture() as out:\n        print(1)\n        with capture() as inner:\n            print(2)\n        print(3)\n    assert (out.getvalue(), inner.getvalue()) == ('1\\n3\\n', '2\\n')\n",
)
