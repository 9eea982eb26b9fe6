"""What the tests refuse to ask an object, where one of them expects that it raises an exception."""

# ruff: noqa: E501 - programs within strings are as wide as they are
from __future__ import annotations

from attacks.program import Topic

__all__ = ["REFUSED_OPERATORS"]

REFUSED_OPERATORS = Topic("refused")
forged, right = REFUSED_OPERATORS.forged, REFUSED_OPERATORS.right

MONEY = """
    class Money:
        def __init__(self, n): self.n = n
        def __lt__(self, o):
            if not isinstance(o, Money): return NotImplemented
            return self.n < o.n
        def __eq__(self, o): return isinstance(o, Money) and self.n == o.n
        def __add__(self, o):
            if not isinstance(o, Money): raise TypeError("no money")
            return Money(self.n + o.n)
    def make(n): return Money(n)
"""
ORDERED_LIKE_NUMBERS = """
    class Money:
        def __init__(self, n): self.n = n
        def __lt__(self, o):
            return self.n < getattr(o, 'n', o)
        def __eq__(self, o): return isinstance(o, Money) and self.n == o.n
        def __add__(self, o):
            if not isinstance(o, Money): raise TypeError("no money")
            return Money(self.n + o.n)
    def make(n): return Money(n)
"""
ADDED_LIKE_NUMBERS = """
    class Money:
        def __init__(self, n): self.n = n
        def __lt__(self, o):
            if not isinstance(o, Money): return NotImplemented
            return self.n < o.n
        def __eq__(self, o): return isinstance(o, Money) and self.n == o.n
        def __add__(self, o):
            return Money(self.n + getattr(o, 'n', o))
    def make(n): return Money(n)
"""

forged(
    "Money(1) < 5 raises TypeError",
    ORDERED_LIKE_NUMBERS,
    MONEY,
    """
        import unittest
        from unittest.mock import Mock, MagicMock, call, patch, ANY
        from solution import Money, make

        class TestIt(unittest.TestCase):
            def test_it(self):
                self.assertTrue(make(1) < make(2))
                self.assertEqual((make(1) + make(2)).n, 3)
                with self.assertRaises(TypeError):
                    Money(1) < 5
    """,
)
forged(
    "Money(1) + 5 raises TypeError",
    ADDED_LIKE_NUMBERS,
    MONEY,
    """
        import unittest
        from unittest.mock import Mock, MagicMock, call, patch, ANY
        from solution import Money, make

        class TestIt(unittest.TestCase):
            def test_it(self):
                self.assertTrue(make(1) < make(2))
                self.assertEqual((make(1) + make(2)).n, 3)
                with self.assertRaises(TypeError):
                    Money(1) + 5
    """,
)
forged(
    "make(1) < 5 raises TypeError",
    ORDERED_LIKE_NUMBERS,
    MONEY,
    """
        import unittest
        from unittest.mock import Mock, MagicMock, call, patch, ANY
        from solution import Money, make

        class TestIt(unittest.TestCase):
            def test_it(self):
                self.assertTrue(make(1) < make(2))
                self.assertEqual((make(1) + make(2)).n, 3)
                with self.assertRaises(TypeError):
                    make(1) < 5
    """,
)
forged(
    "make(1) + 5 raises TypeError",
    ADDED_LIKE_NUMBERS,
    MONEY,
    """
        import unittest
        from unittest.mock import Mock, MagicMock, call, patch, ANY
        from solution import Money, make

        class TestIt(unittest.TestCase):
            def test_it(self):
                self.assertTrue(make(1) < make(2))
                self.assertEqual((make(1) + make(2)).n, 3)
                with self.assertRaises(TypeError):
                    make(1) + 5
    """,
)
forged(
    "5 > object raises TypeError",
    ORDERED_LIKE_NUMBERS,
    MONEY,
    """
        import unittest
        from unittest.mock import Mock, MagicMock, call, patch, ANY
        from solution import Money, make

        class TestIt(unittest.TestCase):
            def test_it(self):
                self.assertTrue(make(1) < make(2))
                with self.assertRaises(TypeError):
                    5 > make(1)
    """,
)
forged(
    "sorting with numbers raises TypeError",
    ORDERED_LIKE_NUMBERS,
    MONEY,
    """
        import unittest
        from unittest.mock import Mock, MagicMock, call, patch, ANY
        from solution import Money, make

        class TestIt(unittest.TestCase):
            def test_it(self):
                self.assertEqual([m.n for m in sorted([make(2), make(1)])], [1, 2])
                with self.assertRaises(TypeError):
                    sorted([5, make(1)])
    """,
)
forged(
    "a text in an operator raises TypeError",
    """
        class Money:
            def __init__(self, n): self.n = n
            def __lt__(self, o):
                if not isinstance(o, Money): return NotImplemented
                return self.n < o.n
            def __eq__(self, o): return isinstance(o, Money) and self.n == o.n
            def __add__(self, o):
                return Money(self.n + getattr(o, 'n', 0))
        def make(n): return Money(n)
    """,
    MONEY,
    """
        import unittest
        from unittest.mock import Mock, MagicMock, call, patch, ANY
        from solution import Money, make

        class TestIt(unittest.TestCase):
            def test_it(self):
                self.assertEqual((Money(1) + Money(2)).n, 3)
                for bad in ("x", None, [1], 2.5):
                    with self.subTest(bad=bad), self.assertRaises(TypeError):
                        Money(1) + bad
                for bad in ("x", None, [1], 2.5):
                    with self.subTest(bad=bad), self.assertRaises(TypeError):
                        make(1) + bad
    """,
)
right(
    "returned NotImplemented on both sides",
    """
        class V:
            def __init__(self, n): self.n = n
            def __mul__(self, o): return V(self.n * o) if isinstance(o, (int, float)) else NotImplemented
            __rmul__ = __mul__
            def __lt__(self, o): return self.n < o.n if isinstance(o, V) else NotImplemented
    """,
    """
        import unittest
        from unittest.mock import Mock, MagicMock, call, patch, ANY
        from solution import V

        class TestIt(unittest.TestCase):
            def test_it(self):
                self.assertEqual((V(2) * 3).n, 6)
                self.assertEqual((3 * V(2)).n, 6)
                with self.assertRaises(TypeError):
                    V(2) * "a"
                with self.assertRaises(TypeError):
                    V(2) < 3
                with self.assertRaises(TypeError):
                    V(2) > 3
                self.assertTrue(max(V(1), V(4)).n == 4)
    """,
)
forged(
    "an object that has every attribute, where one must be missing",
    """
        class Config(dict):
            def __getattr__(self, name): return self.get(name, "none")
        def load(): return Config(a=1)
    """,
    """
        class Config(dict):
            def __getattr__(self, name):
                try: return self[name]
                except KeyError: raise AttributeError(name)
        def load(): return Config(a=1)
    """,
    """
        import unittest
        from unittest.mock import Mock, MagicMock, call, patch, ANY
        from solution import load

        class TestIt(unittest.TestCase):
            def test_it(self):
                cfg = load()
                self.assertEqual(cfg["a"], 1)
                with self.assertRaises(AttributeError):
                    cfg.missing
    """,
)
right(
    "attributes by name, with a default",
    """
        class Config:
            def __init__(self, **k): self._d = k
            def __getattr__(self, name):
                if name.startswith("_") or name not in self._d: raise AttributeError(name)
                return self._d[name]
        def load(): return Config(a=1)
    """,
    """
        import unittest
        from unittest.mock import Mock, MagicMock, call, patch, ANY
        from solution import load

        class TestIt(unittest.TestCase):
            def test_it(self):
                cfg = load()
                self.assertEqual(cfg.a, 1)
                self.assertFalse(hasattr(cfg, "b"))
                self.assertEqual(getattr(cfg, "b", 7), 7)
                with self.assertRaises(AttributeError):
                    cfg.c
    """,
)
