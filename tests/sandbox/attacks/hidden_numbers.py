"""What a candidate could learn of objects and classes of the tests by what the tests make of them."""

# ruff: noqa: E501 - programs within strings are as wide as they are
from __future__ import annotations

from dataclasses import replace

from attacks.known_by_objects import ASKS
from attacks.program import Topic

__all__ = ["HIDDEN_NUMBERS"]

HIDDEN_NUMBERS = Topic("hidden numbers")
left_out = HIDDEN_NUMBERS.left_out
TEST = "import functools, types, typing, collections\nfrom dataclasses import dataclass\nfrom enum import Enum\nfrom unittest.mock import *\nfrom solution import f\n\n{own}\ndef test_f():\n    m = {make}\n    got = f(m)\n    assert got == 771\n"


def add(name: str, own: str, make: str, body: str) -> None:
    """Add a candidate that finds out a number which the tests hide; it fails or gets no verdict."""
    code, test = ASKS + f"def f(m):\n{body}\n", TEST.format(own=own, make=make)
    left_out(name, code, "def f(m):\n    return 771\n", test)
    HIDDEN_NUMBERS[-2] = replace(HIDDEN_NUMBERS[-2], verdicts=("failed", "infra_error"))


G = "@dataclass\nclass G:\n    _h: int\n"
FIND = "    return next(n for n in range(1000) if K(n) == m)"
# class by other ways
add(
    "class by a generic alias",
    "X = typing.TypeVar('X')\nclass G(typing.Generic[X]):\n    def __init__(self, n):\n        self._h = n\n    def __eq__(self, o):\n        return o._h == self._h\n",
    "G(771)",
    "    a = ask('getitem', type(m), int)\n    K = lambda n: ask('call', a, n)\n" + FIND,
)
add(
    "class by union",
    G,
    "G(771)",
    "    u = ask('or', type(m), int)\n    K = ask('get', u, '__args__')[0]\n" + FIND,
)
add(
    "class by an annotation",
    "@dataclass\nclass G:\n    _h: int\ndef show(g: G) -> G:\n    return g\n",
    "(G(771), show, G)[:2]",
    "    m, show = m\n    K = show.__annotations__['g']\n    K = type(m) if isinstance(K, str) else K\n"
    + FIND,
)
add(
    "list of class, shared",
    "@dataclass\nclass G:\n    _h: int\n    def put(self, l):\n        self.l = l\n",
    "G(771)",
    "    l = [type(m)]\n    m.put(l)\n    K = m.l[0]\n" + FIND,
)
add(
    "class via dict key",
    "@dataclass\nclass G:\n    _h: int\n    def put(self, l):\n        self.l = {k: v for k, v in l}\n",
    "G(771)",
    "    m.put([(type(m), 1)])\n    K = next(iter(m.l))\n" + FIND,
)
add(
    "class via exception args",
    "@dataclass\nclass G:\n    _h: int\n    def run(self, fn):\n        try:\n            fn()\n        except Exception as e:\n            self.e = e\n",
    "G(771)",
    "    def fn():\n        raise ValueError([type(m)])\n    m.run(fn)\n    K = m.e.args[0][0]\n"
    + FIND,
)
add(
    "class via callback's return",
    "@dataclass\nclass G:\n    _h: int\n    def run(self, fn):\n        return {'k': fn()}\n",
    "G(771)",
    "    K = m.run(lambda: type(m))['k']\n" + FIND,
)
add(
    "class via attribute of a candidate's object",
    "@dataclass\nclass G:\n    _h: int\n    def run(self, o):\n        return (o.k,)\n",
    "G(771)",
    "    class O:\n        pass\n    o = O()\n    o.k = type(m)\n    K = m.run(o)[0]\n" + FIND,
)
add(
    "class via partial of the tests",
    "@dataclass\nclass G:\n    _h: int\n    def part(self, k):\n        return functools.partial(k)\n",
    "G(771)",
    "    K = m.part(type(m))\n" + FIND,
)
add(
    "class called by the tests",
    "@dataclass\nclass G:\n    _h: int\n    def apply(self, k, n):\n        return k(n)\n",
    "G(771)",
    "    K = lambda n: m.apply(type(m), n)\n" + FIND,
)
add(
    "class called by the tests' map",
    "@dataclass\nclass G:\n    _h: int\n    def each(self, k, ns):\n        return [k(n) for n in ns]\n",
    "G(771)",
    "    return m.each(type(m), list(range(1000))).index(m)",
)
add(
    "class in a pool",
    G + "from concurrent.futures import ThreadPoolExecutor\n",
    "(ThreadPoolExecutor(1), G(771))",
    "    pool, m = m\n    K = lambda n: pool.submit(type(m), n).result()\n" + FIND,
)
add(
    "class in a mock's side effect",
    G,
    "(Mock(), G(771))",
    "    k, m = m\n    k.side = type(m)\n    K = k.side\n" + FIND,
)
add(
    "class by isinstance of a tuple",
    G,
    "G(771)",
    "    found = []\n    class M(type):\n        def __instancecheck__(c, o):\n            return False\n    ask('isinstance', m, (type(m), int))\n    K = type(m)\n"
    + FIND,
)
add(
    "copy of object with hidden, changed",
    G,
    "G(771)",
    "    c = ask('copy', m)\n    for n in range(1000):\n        try:\n            ask('set', c, '_h', n)\n        except Exception:\n            pass\n        try:\n            ask('own', c, '_h', n)\n        except Exception:\n            pass\n    return ask('get', ask('get', c, '__dict__'), '_h')",
)
add(
    "base __init__ under another",
    "class B:\n    def __init__(self):\n        self.n = 1\n    def start(self, n):\n        self._h = n\n    def __eq__(self, o):\n        return o._h == self._h\nclass G(B):\n    def start(self, n):\n        super().start(n)\ndef made(f):\n    g = G()\n    f(g)\n    g.start(771)\n    return g\n",
    "made(f)",
    "    global C\n    if 'C' not in globals():\n        C = [type(m)() for _ in range(1000)]\n        for n, c in enumerate(C):\n            c.start(n)\n        return\n    return next(n for n, c in enumerate(C) if c == m)",
)
add(
    "wrapped private function",
    "def log(fn):\n    @functools.wraps(fn)\n    def run(*a):\n        return fn(*a)\n    return run\nclass G:\n    @log\n    def start(self, n):\n        self._h = n\n    def __eq__(self, o):\n        return getattr(o, '_' + 'h') == getattr(self, '_' + 'h')\ndef made(f):\n    g = G()\n    f(g)\n    g.start(771)\n    return g\n",
    "made(f)",
    "    global C\n    if 'C' not in globals():\n        C = [type(m)() for _ in range(1000)]\n        for n, c in enumerate(C):\n            c.start(n)\n        return\n    return next(n for n, c in enumerate(C) if c == m)",
)
# texts
T1 = "    import re\n    return int(re.findall('771', str({}))[0])"
H = "@dataclass\nclass G:\n    n: int\n    _h: int = 771\n"
for name, cls, make, t in (
    ("join of a mapping by format", H, "G(1)", "ask('format', m, '>20')"),
    (
        "mod of a text of the tests",
        H + "class S(str):\n    pass\n",
        "(S('%r'), G(1))",
        "ask('mod', m[0], m[1])",
    ),
    (
        "format map of a text of the tests",
        H + "class S(str):\n    pass\n",
        "(S('{0!r}'), G(1))",
        "ask('get', m[0], 'format')(m[1])",
    ),
    ("bound method's repr", H + "    def go(self):\n        pass\n", "G(1)", "ask('repr', m.go)"),
    (
        "bound method's str by own handle",
        H + "    def go(self):\n        pass\n",
        "G(1)",
        "ask('rmod', m.go, '%r')",
    ),
    ("partial's repr", H, "functools.partial(print, G(1))", "ask('repr', m)"),
    ("deque iter's text", H, "iter(collections.deque([G(1)]))", "ask('repr', m)"),
    ("dict view's text", H, "{1: G(1)}.values()", "ask('repr', m)"),
    ("dict view's rmod", H, "{1: G(1)}.values()", "ask('rmod', m, '%r')"),
    (
        "exception group's text",
        H,
        "ExceptionGroup('x', [ValueError(G(1))])",
        "ask('repr', sys.modules['gatekeeper.sandbox.inside.references'].original(m) or m)",
    ),
    (
        "key error's text",
        H + "class K(KeyError):\n    pass\n",
        "K(G(1))",
        "ask('str', sys.modules['gatekeeper.sandbox.inside.references'].original(m))",
    ),
    (
        "str in a list to a callback",
        H,
        "(lambda a: [g(x) for g, x in a], G(1))",
        "m[0]([(str, m[1])])",
    ),
    ("str by keyword", H, "(lambda key, x: key(x), G(1))", "m[0](key=str, x=m[1])"),
    ("bytes of a callback", H, "(lambda key, x: key(x), G(1))", "m[0](bytes, m[1])"),
    (
        "own namespace's text with a private name deep",
        H,
        "types.SimpleNamespace(a={'b': [types.SimpleNamespace(_c=771)]})",
        "ask('str', m)",
    ),
    (
        "counter of hidden",
        "@dataclass(frozen=True)\nclass G:\n    n: int\n    _h: int = 771\n@dataclass\nclass B:\n    c: object\n",
        "B(collections.Counter([G(1)]))",
        "ask('str', m)",
    ),
    (
        "default dict of hidden",
        H + "@dataclass\nclass B:\n    c: object\n",
        "B(collections.defaultdict(list, a=[G(1)]))",
        "ask('str', m)",
    ),
    (
        "ordered dict of hidden",
        H + "@dataclass\nclass B:\n    c: object\n",
        "B(collections.OrderedDict(a=[G(1)]))",
        "ask('str', m)",
    ),
    (
        "chain map of hidden",
        H + "@dataclass\nclass B:\n    c: object\n",
        "B(collections.ChainMap({'a': G(1)}))",
        "ask('str', m)",
    ),
    (
        "proxy of hidden",
        H + "@dataclass\nclass B:\n    c: object\n",
        "B(types.MappingProxyType({'a': G(1)}))",
        "ask('str', m)",
    ),
    (
        "generic alias of hidden",
        H + "@dataclass\nclass B:\n    c: object\n",
        "B(typing.Literal[771])",
        "ask('str', m)",
    ),
    (
        "set of hidden",
        "@dataclass(frozen=True)\nclass G:\n    n: int\n    _h: int = 771\n@dataclass\nclass B:\n    c: object\n",
        "B({G(1)})",
        "ask('str', m)",
    ),
    (
        "slice of hidden",
        H + "@dataclass\nclass B:\n    c: object\n",
        "B(slice(G(1)))",
        "ask('str', m)",
    ),
    (
        "tuple subclass of hidden",
        H + "class P(tuple):\n    pass\n@dataclass\nclass B:\n    c: object\n",
        "B(P([G(1)]))",
        "ask('str', m)",
    ),
    (
        "property that changes between looks",
        H + "@dataclass\nclass B:\n    c: object\n",
        "B(G(1))",
        "ask('str', m)",
    ),
    (
        "enum with a tuple of hidden",
        H + "class E(Enum):\n    A = (G(1), 2)\n",
        "E.A",
        "ask('repr', m)",
    ),
    (
        "method of a dataclass in a list",
        H + "    def go(self):\n        pass\n@dataclass\nclass B:\n    c: object\n",
        "B([G(1).go])",
        "ask('str', m)",
    ),
):
    add("text: " + name, cls, make, T1.format(t))
