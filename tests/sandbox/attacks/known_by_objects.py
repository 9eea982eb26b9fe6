"""What the candidate gets by an object of the tests: its class, its text; and types that it names."""

# ruff: noqa: E501 - programs within strings are as wide as they are
from __future__ import annotations

from attacks.program import Topic

__all__ = ["ASKS", "KNOWN_BY_OBJECTS"]

KNOWN_BY_OBJECTS = Topic("known by objects")
forged, right = KNOWN_BY_OBJECTS.forged, KNOWN_BY_OBJECTS.right

ASKS = """
import sys
def _peer():
    import gc
    return next(o for o in gc.get_objects() if type(o).__name__ == 'CandidatePeer')
def ask(op, *a, **k):
    return _peer().ask(op, *a, **k)
def at(n):
    return sys.modules['gatekeeper.sandbox.inside.handles'].Handle(_peer(), n)
"""


def leak(name: str, body: str, own: str, make: str = "Game(771)", ready: str = "") -> None:
    """Add a candidate that finds out a number which an object, or its class, hides."""
    forged(
        name,
        ASKS + f"def f(game):\n{body}",
        "def f(game):\n    return 771\n",
        f"import copy, dataclasses, enum, collections, functools, types\nfrom dataclasses import dataclass\nfrom solution import f\n\n{own}\n{ready}\ndef test_f():\n    got = f({make})\n    assert got == 771\n",
    )


FIND = "    K = {k}\n    return next(n for n in range(1000) if K(n) == game)\n"
DC = "@dataclass\nclass Game:\n    _hidden: int\n"
# --- unlocking a shown class (1-12)
for name, k in {
    "copy of the class": "ask('copy', type(game))",
    "deepcopy of the class": "ask('deepcopy', type(game))",
    "mro of the class": "ask('call', ask('get', type(game), 'mro'))[0]",
    "or of the class": "[*ask('get', ask('or', type(game), int), 'args')][0]",
}.items():
    leak("unlock by " + name, FIND.format(k=k), DC)
leak(
    "unlock by isinstance with own metaclass",
    "    found = []\n    class M(type):\n        def __subclasscheck__(cls, k):\n            found.append(k)\n            return True\n        def __instancecheck__(cls, k):\n            found.append(k)\n            return True\n    class C(metaclass=M):\n        pass\n    try:\n        ask('issubclass', type(game), C)\n    except Exception:\n        pass\n    K = type(game)\n    return next(n for n in range(1000) if K(n) == game)\n",
    DC,
)
leak(
    "unlock by eq with own object",
    "    found = []\n    class E:\n        def __eq__(self, o):\n            found.append(o)\n            return True\n    ask('eq', type(game), E())\n    K = found[0]\n    return next(n for n in range(1000) if K(n) == game)\n",
    DC,
)
leak(
    "unlock by attribute of another object",
    "    box = game.box\n    box.kind = type(game)\n    K = ask('get', box, 'kind')\n    return next(n for n in range(1000) if K(n) == game)\n",
    "class Box:\n    pass\nclass Game:\n    def __init__(self, n):\n        self._n = n\n        self.box = Box()\n    def __eq__(self, o):\n        return type(o) is Game and o._n == self._n\n",
)
leak(
    "unlock by echo function",
    "    K = ask('call', game.echo, type(game))\n    return next(n for n in range(1000) if K(n) == game)\n",
    "class Game:\n    def __init__(self, n):\n        self._n = n\n    @staticmethod\n    def echo(x):\n        return x\n    def __eq__(self, o):\n        return type(o) is Game and o._n == self._n\n",
)
leak(
    "unlock by rising exception",
    "    class E(Exception):\n        pass\n    K = None\n    def cb():\n        raise E(type(game))\n    try:\n        game.run(cb)\n    except E as e:\n        K = e.args[0]\n    return next(n for n in range(1000) if K(n) == game)\n",
    "class Game:\n    def __init__(self, n):\n        self._n = n\n    def run(self, cb):\n        return cb()\n    def __eq__(self, o):\n        return type(o) is Game and o._n == self._n\n",
)
leak(
    "private slots by mangling",
    FIND.format(k="type(game)"),
    "class Game:\n    __slots__ = ('__n',)\n    def __init__(self, n):\n        self.__n = n\n    def __eq__(self, o):\n        return type(o) is Game and o.__n == self.__n\n",
)
leak(
    "clones before it hides",
    "    if not hasattr(f, 'clones'):\n        f.clones = [type(game)() for _ in range(1000)]\n        for n, c in enumerate(f.clones):\n            c.start(n)\n        return 0\n    return next(n for n, c in enumerate(f.clones) if c == game)\n",
    "class Game:\n    def start(self, n):\n        self._n = n\n    def __eq__(self, o):\n        return type(o) is Game and o._n == self._n\ng = Game()\n",
    make="ready()",
    ready="def ready():\n    f(g)\n    g.start(771)\n    return g\n",
)
SPY = "    class Spy:\n        def tell(self, n, hidden):\n            self.found = hidden\n    spy = Spy()\n    {call}\n    return spy.found\n"
GUESS = "    def guess(self, n):\n        self.tell(n, 771)\n    def tell(self, n, hidden):\n        return n == hidden\n"
leak(
    "lru_cached method of the class",
    SPY.format(call="type(game).guess(spy, 0)"),
    "class Game:\n    @functools.lru_cache\n" + GUESS,
    make="Game()",
)
leak(
    "partialmethod of the class",
    SPY.format(call="type(game).go(spy)"),
    "class Game:\n" + GUESS + "    go = functools.partialmethod(guess, 0)\n",
    make="Game()",
)
leak(
    "singledispatchmethod of the class",
    SPY.format(call="ask('get', type(game), 'guess')(spy, 0)"),
    "class Game:\n    @functools.singledispatchmethod\n" + GUESS,
    make="Game()",
)
leak(
    "descriptor-like callable in the class",
    SPY.format(call="type(game).guess(spy, 0)"),
    "class Call:\n    def __init__(self, fn):\n        self.fn = fn\n    def __call__(self, *a):\n        return self.fn(*a)\n    def __get__(self, o, k=None):\n        return self if o is None else functools.partial(self, o)\nclass Game:\n    @Call\n"
    + GUESS,
    make="Game()",
)
leak(
    "wrapped staticmethod",
    SPY.format(call="type(game).guess.__wrapped__(spy, 0)"),
    "class Game:\n    @functools.wraps(print)\n" + GUESS,
    make="Game()",
)
leak(
    "func of a bound method",
    SPY.format(call="ask('get', game.guess, '__func__')(spy, 0)"),
    "class Game:\n" + GUESS,
    make="Game()",
)
leak(
    "class method with another class",
    SPY.format(call="spy.tell(0, type(game).make.__func__(spy))"),
    "class Game:\n    @classmethod\n    def make(cls):\n        return cls.answer\n    answer = 772\n",
    make="Game()",
)
leak(
    "base class of a hidden one",
    "    K = type(game).__mro__[1]\n    try:\n        return next(n for n in range(1000) if K(n) == game)\n    except Exception:\n        return 0\n",
    "class Base:\n    def __init__(self, n):\n        self._n = n\n    def __eq__(self, o):\n        return isinstance(o, Base) and o._n == self._n\nclass Game(Base):\n    pass\n",
)
leak(
    "subclass made by candidate in the tests",
    "    K = ask('call', type(game), 5)\n    return K.n\n",
    DC,
)
leak(
    "parameters of class with default",
    "    import inspect\n    return inspect.signature(type(game)).parameters['n'].default\n",
    "class Game:\n    def __init__(self, n=771):\n        self.k = 1\n",
    make="Game()",
)
leak(
    "raw parameters",
    "    return ask('parameters', type(game))[0][2][0]\n",
    "class Game:\n    def __init__(self, n=771):\n        self.k = 1\n",
    make="Game()",
)
leak(
    "globals by init",
    "    return type(game).__init__.__globals__['HIDDEN']\n",
    "HIDDEN = 771\nclass Game:\n    def __init__(self, n=0):\n        self.k = 1\n",
    make="Game()",
)
leak(
    "raw init",
    "    return ask('get', type(game), '__init__').__globals__['HIDDEN']\n",
    "HIDDEN = 771\nclass Game:\n    def __init__(self, n=0):\n        self.k = 1\n",
    make="Game()",
)
# --- texts
HID = "@dataclass\nclass Game:\n    n: int\n    _m: int = 771\n"
LEAKT = "    import re\n    return int(re.findall('771', str({t}))[0])\n"
for name, t in {
    "rmod %r": "ask('rmod', game, '%r')",
    "rmod %s": "ask('rmod', game, '%s')",
    "rmod %a": "ask('rmod', game, '%a')",
    "rmod bytes": "ask('rmod', game, b'%a')",
    "format": "ask('format', game, '')",
    "repr": "ask('repr', game)",
    "str of a copy": "ask('str', ask('copy', game))",
    "dict": "ask('get', game, '__dict__')",
    "exception with it": "err(game)",
    "dir": "ask('get', game, '_m')",
    "match args": "[ask('get', game, n) for n in ask('dir', game) if n == '_m']",
}.items():
    leak(
        "text by " + name,
        "    def err(g):\n        try:\n            g.fail()\n        except Exception as e:\n            o = sys.modules['gatekeeper.sandbox.inside.references'].original(e)\n            return str(e) + ask('str', o) + ask('repr', o)\n"
        + LEAKT.format(t=t),
        HID + "    def fail(self):\n        raise ValueError(self)\n",
        make="Game(1)",
    )
leak(
    "text of an own exception with it",
    LEAKT.format(t="err(game)").replace(
        "    import re",
        "    def err(g):\n        try:\n            g.fail()\n        except Exception as e:\n            o = sys.modules['gatekeeper.sandbox.inside.references'].original(e)\n            return str(e) + ask('str', o) + ask('repr', o)\n    import re",
    ),
    "class Err(Exception):\n    pass\n" + HID + "    def fail(self):\n        raise Err(self)\n",
    make="Game(1)",
)
leak(
    "text of a namespace that holds a hidden one",
    LEAKT.format(t="ask('repr', game)"),
    HID,
    make="types.SimpleNamespace(a=[{'k': Game(1)}])",
)
leak(
    "text of an enum of a hidden one",
    LEAKT.format(t="ask('repr', game)"),
    HID + "class E(enum.Enum):\n    A = Game(1)\n",
    make="E.A",
)
leak(
    "text of a dataclass with a deque of hidden ones",
    LEAKT.format(t="ask('repr', game)"),
    HID + "@dataclass\nclass B:\n    a: object\n",
    make="B(collections.deque([Game(1)]))",
)
leak(
    "text of a dataclass with a userlist",
    LEAKT.format(t="ask('repr', game)"),
    HID + "@dataclass\nclass B:\n    a: object\n",
    make="B(collections.UserList([Game(1)]))",
)
leak(
    "text of a dataclass with a named tuple",
    LEAKT.format(t="ask('repr', game)"),
    "P = collections.namedtuple('P', 'a')\n" + HID + "@dataclass\nclass B:\n    a: object\n",
    make="B(P(Game(1)))",
)
leak(
    "text of a dataclass with an exception",
    LEAKT.format(t="ask('repr', game)"),
    HID + "@dataclass\nclass B:\n    a: object\n",
    make="B(ValueError(Game(1)))",
)
leak(
    "text of a dataclass with a bound method",
    LEAKT.format(t="ask('repr', game)"),
    HID + "    def m(self):\n        pass\n@dataclass\nclass B:\n    a: object\n",
    make="B(Game(1).m)",
)
leak(
    "text of a dataclass with a builtin method",
    LEAKT.format(t="ask('repr', game)"),
    HID + "@dataclass\nclass B:\n    a: object\n",
    make="B([Game(1)].append)",
)
leak(
    "text of a dataclass with a list subclass",
    LEAKT.format(t="ask('repr', game)"),
    HID + "class L(list):\n    pass\n@dataclass\nclass B:\n    a: object\n",
    make="B(L([Game(1)]))",
)
leak(
    "text of a failing assertion in a namespace",
    LEAKT.format(t="ask('repr', game)"),
    "",
    make="types.SimpleNamespace(a=AssertionError('want 771'))",
)
leak(
    "text of a named tuple subclass with private field",
    LEAKT.format(t="ask('repr', game)"),
    HID
    + "@dataclass\nclass P:\n    a: int\n    b: object = dataclasses.field(default=None, repr=True)\n",
    make="P(1, functools.partial(print, 771))",
)
# --- running code in the process of the tests
YES = "ask('call', ask('get', pool, 'submit'), {a})"
POOL = "from dataclasses import dataclass\nfrom concurrent.futures import ThreadPoolExecutor\nfrom solution import f\n\n@dataclass\nclass Box:\n    n: int\n    _m: int = 771\n\ndef test_f():\n    with ThreadPoolExecutor(1) as pool:\n        got = f(pool, Box(1))\n    assert got == 771\n"
for name, body in {
    "str": "int(pool.submit(str, box).result().split('_m=')[1][:3])",
    "map str": "int(list(pool.map(str, [box]))[0].split('_m=')[1][:3])",
    "map object": "int(next(pool.submit(map, str, [box]).result()).split('_m=')[1][:3])",
    "type then class": "next(n for n in range(1000) if pool.submit(type, box).result()(1, n) == box)",
    "a class that equals everything": "pool.submit(pool.submit(type, 'Yes', (object,), {'__eq__': lambda a, b: True}).result()).result()",
    "a number that equals everything": "pool.submit(pool.submit(type, 'Yes', (int,), {'__eq__': lambda a, b: True}).result()).result()",
    "a class made by type called at once": "pool.submit(type, 'Yes', (object,), {'__eq__': lambda a, b: True}).result()()",
    "super": "pool.submit(super, type(box), box).result()._m",
    "property": "pool.submit(property, lambda s: 1).result()",
}.items():
    forged(
        "pool runs " + name,
        ASKS + f"def f(pool, box):\n    return {body}\n",
        "def f(pool, box):\n    return pool.submit(lambda: 771).result()\n",
        POOL,
    )
APPLY = "from dataclasses import dataclass\nfrom solution import f\n\n@dataclass\nclass Box:\n    n: int\n    _m: int = 771\n\ndef test_f():\n    got = f(lambda g, *a: g(*a), Box(1))\n    assert got == 771\n"
for name, body in {
    "str": "int(ap(str, box).split('_m=')[1][:3])",
    "a class that equals everything": "ap(ap(type, 'Yes', (object,), {'__eq__': lambda a, b: True}))",
    "a number that equals everything": "ap(ap(type, 'Yes', (int,), {'__eq__': lambda a, b: True}))",
    "type": "next(n for n in range(1000) if ap(type, box)(1, n) == box)",
}.items():
    forged(
        "a callback that calls runs " + name,
        ASKS + f"def f(ap, box):\n    return {body}\n",
        "def f(ap, box):\n    return ap(lambda: 771)\n",
        APPLY,
    )

# --- right ones ---

H = "import functools, typing\nfrom dataclasses import dataclass\nfrom solution import *\n\n"
right(
    "linked list",
    "def rev(h):\n    p = None\n    while h:\n        h.next, p, h = p, h, h.next\n    return p\ndef mk(vals, like):\n    d = c = type(like)(0)\n    for v in vals:\n        c.next = type(like)(v)\n        c = c.next\n    return d.next\n",
    H
    + "class N:\n    def __init__(self, v, next=None):\n        self.v = v\n        self.next = next\ndef test_a():\n    h = N(1, N(2, N(3)))\n    r = rev(h)\n    out = []\n    while r:\n        out.append(r.v)\n        r = r.next\n    assert out == [3, 2, 1]\n    m = mk([4, 5], h)\n    assert m.v == 4 and m.next.v == 5\n",
)
right(
    "builtin types both ways",
    "def f(conv, xs):\n    return [conv(x) for x in xs]\ndef g():\n    return int, str, list, dict, type(None), type, property, map, object, bytes\ndef h(reg):\n    reg(int, 1)\n    reg(str, 2)\n    reg(type(None), 3)\n    return isinstance(3, reg.__class__) is False\n",
    H
    + "def test_a():\n    assert f(int, ['1']) == [1] and f(str, [1]) == ['1'] and f(type, [1]) == [int]\n    k = g()\n    assert k[0] is int and k[1] is str and k[3] is dict and k[8] is object\n    seen = {}\n    h(lambda k, n: seen.__setitem__(k, n))\n    assert seen == {int: 1, str: 2, type(None): 3}\n",
)
right(
    "str for a callback",
    "def f(ap, xs):\n    return ap(str, xs), ap(len, xs), ap(lambda x: x, xs)\n",
    H
    + "@dataclass\nclass P:\n    n: int\ndef test_a():\n    assert f(lambda g, xs: g(xs), [1, 2]) == ('[1, 2]', 2, [1, 2])\n    assert f(lambda g, xs: [g(x) for x in xs] if g is str else len(xs) if len(xs) == 1 and g is not str and False else 1, [P(1)])[0] == ['P(n=1)']\n",
)
right(
    "callables for map and sorted of the tests",
    "def f(reduce_, key):\n    return reduce_(max, [1, 5, 3]), reduce_(lambda a, b: a + b, [1, 2]), key(sorted, [2, 1]), key(sum, [1, 2]), key(zip, [1]) is not None\n",
    H
    + "def test_a():\n    assert f(lambda g, xs: functools.reduce(g, xs), lambda g, xs: g(xs)) == (5, 3, [1, 2], 3, True)\n",
)
right(
    "classmethods and statics",
    "def f(x):\n    return type(x).make(3).n, type(x).add(1, 2), type(x).limit, x.make(4).n\n",
    H
    + "class P:\n    limit = 7\n    def __init__(self, n):\n        self.n = n\n    @classmethod\n    def make(cls, n):\n        return cls(n)\n    @staticmethod\n    def add(a, b):\n        return a + b\ndef test_a():\n    assert f(P(1)) == (3, 3, 7, 4)\n",
)
right(
    "class after object, private",
    "made = []\ndef see(x):\n    made.append(type(x).__name__)\n    return x.n()\ndef mk(k):\n    return k(5).n()\n",
    H
    + "class P:\n    def __init__(self, n):\n        self._n = n\n    def n(self):\n        return self._n\ndef test_a():\n    assert see(P(1)) == 1\n    assert mk(P) == 5\n",
)
right(
    "class used, then handed over",
    "seen = {}\ndef see(x):\n    seen[type(x)] = 1\n    return len(seen)\ndef mk(k):\n    return k in seen, k(5).n, k.twice(k(4))\n",
    H
    + "class P:\n    def __init__(self, n):\n        self.n = n\n    def twice(self):\n        return self.n * 2\ndef test_a():\n    assert see(P(1)) == 1\n    assert mk(P) == (True, 5, 8)\n",
)
right(
    "class used by a call, then handed over",
    "def see(x):\n    return type(x)(3).n\ndef mk(k):\n    return k(5).n, issubclass(k, k)\n",
    H
    + "class P:\n    def __init__(self, n):\n        self.n = n\ndef test_a():\n    assert see(P(1)) == 3\n    assert mk(P) == (5, True)\n",
)
right(
    "exception of the tests with an object",
    "def f(g):\n    try:\n        g()\n    except Exception as e:\n        return str(e), e.args[0].n, type(e).__name__\n",
    H
    + "class Bad(Exception):\n    pass\n@dataclass\nclass P:\n    n: int\ndef bad():\n    raise Bad(P(1))\ndef test_a():\n    assert f(bad) == ('P(n=1)', 1, 'Bad')\n",
)
right(
    "pools",
    "def f(pool, xs):\n    from concurrent.futures import as_completed, wait\n    return sorted(pool.map(str, xs)), [pool.submit(int, '3').result()], sorted(pool.map(lambda x: x * 2, xs))\n",
    H
    + "from concurrent.futures import ThreadPoolExecutor\ndef test_a():\n    with ThreadPoolExecutor(2) as p:\n        assert f(p, [1, 2]) == (['1', '2'], [3], [2, 4])\n",
)
right(
    "class asked for data, then handed over with what it hides",
    "def see(x):\n    return type(x).limit\ndef mk(k):\n    return k(5).n(), k.n(k(4))\n",
    H
    + "class P:\n    limit = 3\n    def __init__(self, n):\n        self._n = n\n    def n(self):\n        return self._n\ndef test_a():\n    assert see(P(1)) == 3\n    assert mk(P) == (5, 4)\n",
)
