"""What a candidate prints, logs and warns of before and after it calls the tests back."""

# ruff: noqa: E501 - programs within strings are as wide as they are
from __future__ import annotations

from attacks.known_by_objects import ASKS
from attacks.program import Topic, dedent

__all__ = ["PRINTED_TEXTS"]

PRINTED_TEXTS = Topic("printed")
forged, right = PRINTED_TEXTS.forged, PRINTED_TEXTS.right

CALLS = """
    def f(cb):
        cb()
        return 9
"""
SILENT = """
    import io, contextlib
    from solution import f
    def test_it():
        out = io.StringIO()
        with contextlib.redirect_stdout(out):
            got = f(lambda: None)
        assert got == 9
        assert out.getvalue() == ""
"""

forged(
    "the order around a callback",
    """
        def logged(fn):
            def w(*a):
                r = fn(*a)
                print("before")
                print("after")
                return r
            return w
    """,
    """
        def logged(fn):
            def w(*a):
                print("before")
                r = fn(*a)
                print("after")
                return r
            return w
    """,
    """
        import io, contextlib
        from solution import logged
        def test_it():
            out = io.StringIO()
            with contextlib.redirect_stdout(out):
                logged(lambda: print("in"))()
            assert out.getvalue() == "before\\nin\\nafter\\n"
    """,
)
right(
    "logs around a callback",
    """
        import logging
        log = logging.getLogger("app")
        def logged(fn):
            def w(*a):
                log.info("before")
                r = fn(*a)
                log.info("after")
                return r
            return w
    """,
    """
        import unittest
        from unittest.mock import Mock, MagicMock, call, patch, ANY
        from solution import logged

        class TestIt(unittest.TestCase):
            def test_it(self):
                import logging
                @logged
                def hello(x):
                    logging.getLogger("app").info("in")
                with self.assertLogs("app", "INFO") as cm:
                    hello(1)
                self.assertEqual([r.getMessage() for r in cm.records], ["before", "in", "after"])
    """,
)
right(
    "warnings around a callback",
    """
        import warnings
        def run(cb):
            warnings.warn("a")
            cb()
            warnings.warn("c")
    """,
    """
        import warnings
        from solution import run
        def test_it():
            with warnings.catch_warnings(record=True) as w:
                warnings.simplefilter("always")
                run(lambda: warnings.warn("b"))
            assert [str(x.message) for x in w] == ["a", "b", "c"]
    """,
)
right(
    "seen in a callback",
    """
        import sys
        def steps(n, cb):
            for i in range(n):
                sys.stdout.write(f"{i};")
                sys.stderr.write("!")
                cb(i)
    """,
    """
        import unittest
        from unittest.mock import Mock, MagicMock, call, patch, ANY
        from solution import steps

        class TestIt(unittest.TestCase):
            def test_it(self):
                import io
                out, err = io.StringIO(), io.StringIO()
                seen = []
                with patch("sys.stdout", out), patch("sys.stderr", err):
                    steps(3, lambda i: seen.append((out.getvalue(), err.getvalue())))
                self.assertEqual(seen, [("0;", "!"), ("0;1;", "!!"), ("0;1;2;", "!!!")])
    """,
)
right(
    "generators, contexts and nested callbacks",
    """
        import contextlib
        def gen():
            print("g1")
            x = yield 1
            print("g2", x)
            yield 2
        @contextlib.contextmanager
        def tag(n):
            print(f"<{n}>")
            yield
            print(f"</{n}>")
        def nest(n, cb):
            print("in", n)
            if n: cb(n - 1)
            print("out", n)
    """,
    """
        import io, contextlib
        from solution import gen, tag, nest
        def test_it():
            out = io.StringIO()
            with contextlib.redirect_stdout(out):
                g = gen()
                next(g)
                print("t")
                g.send(5)
                with tag("b"):
                    print("x")
                nest(2, lambda n: (print("cb", n), nest(n, lambda k: print("last", k))))
            assert out.getvalue().split("\\n") == ["g1", "t", "g2 5", "<b>", "x", "</b>", "in 2", "cb 1", "in 1", "last 0", "out 1", "out 2", ""]
    """,
)
right(
    "input and output by turns",
    """
        def menu():
            while True:
                c = input("> ")
                if c == "q":
                    print("bye")
                    return
                print("you said", c)
    """,
    """
        import unittest
        from unittest.mock import Mock, MagicMock, call, patch, ANY
        from solution import menu

        class TestIt(unittest.TestCase):
            @patch("builtins.print")
            @patch("builtins.input", side_effect=["a", "b", "q"])
            def test_it(self, inp, pr):
                menu()
                self.assertEqual(pr.call_args_list, [call("you said", "a"), call("you said", "b"), call("bye")])
                self.assertEqual(inp.call_count, 3)
            def test_out(self):
                import io, contextlib
                out = io.StringIO()
                with patch("builtins.input", side_effect=["x", "q"]), contextlib.redirect_stdout(out):
                    menu()
                self.assertEqual(out.getvalue(), "you said x\\nbye\\n")
            def test_sys(self):
                import io, sys
                old = sys.stdin, sys.stdout
                sys.stdin, sys.stdout = io.StringIO("z\\nq\\n"), io.StringIO()
                try:
                    menu()
                    got = sys.stdout.getvalue()
                finally:
                    sys.stdin, sys.stdout = old
                self.assertIn("you said z", got)
    """,
)
right(
    "a warning that is an error",
    """
        import warnings
        def old():
            warnings.warn("use new", DeprecationWarning)
            return 3
    """,
    """
        import unittest
        from unittest.mock import Mock, MagicMock, call, patch, ANY
        from solution import old

        class TestIt(unittest.TestCase):
            def test_it(self):
                import warnings
                with warnings.catch_warnings():
                    warnings.simplefilter("error")
                    with self.assertRaises(DeprecationWarning):
                        old()
                self.assertTrue(True)
    """,
)
forged(
    "a handler that asserts, and a class that catches it",
    """
        import logging
        class Low(AssertionError):
            pass
        Low = AssertionError
        def f(x):
            logging.getLogger("app").error("bad")
    """,
    """
        import logging
        class Low(Exception):
            pass
        def f(x):
            logging.getLogger("app").warning("low %d", x)
            raise Low(x)
    """,
    """
        import logging
        from solution import f, Low
        class Handler(logging.Handler):
            def emit(self, r):
                assert r.levelname == "WARNING"
                assert r.getMessage() == "low 3"
        def test_it():
            logging.getLogger("app").addHandler(Handler())
            try:
                f(3)
            except Low:
                pass
            assert Low
    """,
)
forged(
    "a stream that asserts, and a class that catches it",
    """
        Low = AssertionError
        def f(x):
            print("bad")
    """,
    """
        class Low(Exception):
            pass
        def f(x):
            print("low")
            raise Low(x)
    """,
    """
        import io, sys, contextlib
        from solution import f, Low
        class Out(io.StringIO):
            def write(self, text):
                assert text.strip() in ("low", "")
                return len(text)
        def test_it():
            with contextlib.redirect_stdout(Out()):
                try:
                    f(3)
                except Low:
                    pass
            assert Low
    """,
)
forged(
    "a stream that asserts before a callback",
    """
        def f(cb):
            print("bad")
            try:
                cb()
            except BaseException:
                pass
            try:
                cb()
            except BaseException:
                pass
    """,
    """
        def f(cb):
            print("low")
            cb()
    """,
    """
        import io, contextlib
        from solution import f
        class Out(io.StringIO):
            n = 0
            def write(self, text):
                assert text.strip() in ("low", "")
                return len(text)
        def test_it():
            with contextlib.redirect_stdout(Out()):
                f(lambda: None)
            assert f
    """,
)
forged(
    "texts of its own frames",
    ASKS
    + dedent("""
            def f(cb):
                p = _peer()
                p._surroundings = lambda: [("stdout", "9"), ("log", ("app", 20, "9", "9", (), "f", None, None, {}))]
                cb()
                p._surroundings = lambda: None
                return 0
        """),
    CALLS,
    SILENT,
)
forged(
    "a frame of an unknown kind",
    ASKS
    + dedent("""
            def f(cb):
                p = _peer()
                p._surroundings = lambda: [('eval', '1')]
                try:
                    cb()
                except BaseException:
                    pass
                p._surroundings = lambda: None
                return 0
        """),
    CALLS,
    SILENT,
)
forged(
    "a frame with another class",
    ASKS
    + dedent("""
            def f(cb):
                p = _peer()
                p._surroundings = lambda: [('warning', (int, 'x'))]
                try:
                    cb()
                except BaseException:
                    pass
                p._surroundings = lambda: None
                return 0
        """),
    CALLS,
    SILENT,
)
