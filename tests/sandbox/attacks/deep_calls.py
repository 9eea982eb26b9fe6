"""Functions of both sides that call each other as deep as in one process."""

# ruff: noqa: E501 - programs within strings are as wide as they are
from __future__ import annotations

from attacks.program import Topic

__all__ = ["DEEP_CALLS"]

DEEP_CALLS = Topic("deep calls")
forged, right = DEEP_CALLS.forged, DEEP_CALLS.right

right(
    "memo fib 100",
    "def memo(fn):\n    c = {}\n    def w(n):\n        if n not in c: c[n] = fn(n)\n        return c[n]\n    return w\n",
    "import solution\n@solution.memo\ndef total(n): return n if n < 1 else n + total(n-1)\ndef test_a():\n    assert total(100) == 5050\n",
)
right(
    "memo fib 450",
    "def memo(fn):\n    c = {}\n    def w(n):\n        if n not in c: c[n] = fn(n)\n        return c[n]\n    return w\n",
    "import solution\n@solution.memo\ndef total(n): return n if n < 1 else n + total(n-1)\ndef test_a():\n    assert total(450) == 101475\n",
)
right(
    "callback recursion",
    "def walk(f, n):\n    return 1 if n == 0 else f(n-1) + 1\n",
    "import solution\ndef g(n): return solution.walk(g, n)\ndef test_a():\n    assert g(200) == 201\n",
)
right(
    "own recursion 900 in candidate",
    "def f(n):\n    return 0 if n == 0 else 1 + f(n-1)\n",
    "import solution\ndef test_a():\n    assert solution.f(900) == 900\n    try:\n        solution.f(1100)\n    except RecursionError: return\n    assert False\n",
)
right(
    "visitor",
    "class V:\n    def visit(self, node):\n        return node.accept(self)\n    def leaf(self, n): return n.v\n    def pair(self, n): return self.visit(n.a) + self.visit(n.b)\n",
    "import solution\nclass L:\n    def __init__(self, v): self.v = v\n    def accept(self, v): return v.leaf(self)\nclass P:\n    def __init__(self, a, b): self.a, self.b = a, b\n    def accept(self, v): return v.pair(self)\ndef test_a():\n    t = L(0)\n    for i in range(120): t = P(L(i), t)\n    assert solution.V().visit(t) == 7140\n",
)
forged(
    "a decorator that keeps nothing",
    "def memo(fn):\n    def w(n):\n        return fn(n)\n    return w\n",
    "def memo(fn):\n    known = {}\n    def w(n):\n        if n not in known:\n            known[n] = fn(n)\n        return known[n]\n    return w\n",
    "import solution\n\n@solution.memo\ndef fib(n):\n    return n if n < 2 else fib(n - 1) + fib(n - 2)\n\ndef test_a():\n    assert fib(100) == 354224848179261915075\n",
)
