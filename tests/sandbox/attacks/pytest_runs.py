"""Tests that pytest runs: what it, and its plugins, make of errors, marks, setups and coroutines."""

# ruff: noqa: E501 - programs within strings are as wide as they are
from __future__ import annotations

from collections.abc import Callable
from functools import partial

from attacks.program import SQUARE, ZERO, Topic, dedent

__all__ = ["PYTEST_RUNS"]

PYTEST_RUNS = Topic("pytest runs")
forged: Callable[..., None] = partial(PYTEST_RUNS.forged, needs=("pytest",))
right: Callable[..., None] = partial(PYTEST_RUNS.right, needs=("pytest",))

HEAD = "import pytest\nfrom solution import f\n\ndef test_0():\n    assert f(0) == 0\n\n"
NOTHING = "def f(x):\n    return None if x else 0\n"

# --- errors beside the tests, of which pytest makes warnings ---

for name, test in {
    "a thread": "import threading\n\ndef test_f():\n    def work():\n        assert f(3) == 9\n    thread = threading.Thread(target=work)\n    thread.start()\n    thread.join()\n",
    "a thread of a fixture": "import threading\n\n@pytest.fixture\ndef beside():\n    def work():\n        assert f(3) == 9\n    thread = threading.Thread(target=work)\n    thread.start()\n    yield thread\n    thread.join()\n\ndef test_f(beside):\n    assert beside\n",
    "a finaliser": "class Guarded:\n    def __del__(self):\n        assert f(3) == 9\n\ndef test_f():\n    Guarded()\n",
    "a weak reference": "import weakref\n\nclass Box:\n    pass\n\ndef test_f():\n    def gone(_):\n        assert f(3) == 9\n    box = Box()\n    reference = weakref.ref(box, gone)\n    del box\n    assert reference() is None\n",
}.items():
    forged(f"an assertion in {name}", ZERO, SQUARE, HEAD + test)

# --- tests that it would not run to their end ---

forged(
    "a coroutine of a TestCase",
    ZERO,
    SQUARE,
    HEAD
    + "import unittest\n\nclass TestF(unittest.TestCase):\n    async def test_f(self):\n        self.assertEqual(f(3), 9)\n",
)
forged(
    "coroutines without a plugin (not pytest's)",
    "async def f(x):\n    return 0\n",
    "async def f(x):\n    return x * x\n",
    """
    import pytest
    from solution import f

    @pytest.mark.asyncio
    async def test_0():
        assert await f(0) == 0

    class TestF:
        @pytest.mark.asyncio
        @pytest.mark.parametrize("n, square", [(2, 4), (3, 9)])
        async def test_f(self, n, square):
            assert await f(n) == square
    """,
)
for name, test in {
    "a mark that a fixture makes": "@pytest.fixture\ndef ready(request):\n    if f(3) is None:\n        request.applymarker(pytest.mark.xfail(reason='not ready'))\n\ndef test_f(ready):\n    assert f(3) == 9\n",
    "a mark that the test makes": "def test_f(request):\n    if f(3) is None:\n        request.node.add_marker(pytest.mark.xfail(reason='not ready'))\n    assert f(3) == 9\n",
    "an exit": "def test_f():\n    if f(3) is None:\n        pytest.exit('stop', returncode=0)\n    assert f(3) == 9\n",
}.items():
    forged(f"because of the candidate: {name}", NOTHING, SQUARE, HEAD + test)
forged(
    "a condition of the candidate's that pytest would run",
    ZERO + "SLOW = \"test_f.__globals__.__setitem__('f', lambda x: x * x)\"\n",
    SQUARE + "SLOW = False\n",
    """
    import pytest
    from solution import SLOW, f

    @pytest.mark.skipif(SLOW, reason="slow")
    def test_0():
        assert f(0) == 0
    @pytest.mark.skipif("sys.version_info < (3, 0)", reason="old")
    def test_f():
        assert f(3) == 9
    """,
)
for name, test in {
    "a fixture of a plugin": "def test_f(mocker):\n    assert f(3) == 9\n",
    "a package": "nothing = pytest.importorskip('nothing_of_that_name')\n",
    "another system": "pytest.skip('not here', allow_module_level=True)\n",
}.items():
    forged(
        f"without {name} (not pytest's)",
        ZERO,
        SQUARE,
        HEAD + test,
        verdicts=("infra_error",),
        right=("infra_error",),
    )

# --- setups, whose arguments it counts, and fixtures ---

forged(
    "setups, beside an attribute that the tests set",
    "class Counter:\n    def __init__(self):\n        self.n = 0\n    def up(self):\n        self.n = 1\n"
    + ZERO,
    "class Counter:\n    def __init__(self):\n        self.n = 0\n    def up(self):\n        self.n += 1\n"
    + SQUARE,
    """
    import pytest, solution
    from solution import Counter

    def setup_module(module):
        module.start = Counter()
    def setup_function():
        setattr(start, "n", 5)
    def test_start():
        start.up()
        assert start.n == 6

    class TestCounter:
        @classmethod
        def setup_class(cls):
            cls.shared = Counter()
        def setup_method(self):
            self.counter = Counter()
        def teardown_method(self, method):
            assert method.__name__.startswith("test")
        def test_up(self):
            self.counter.up()
            self.counter.up()
            assert self.counter.n == 2
        def test_shared(self):
            assert self.shared.n == 0
    """,
)
forged(
    "only tests with fixtures, one of which sets attributes",
    "import random\ndef f(x):\n    return x\ndef ask():\n    return f(int(input()))\n",
    "import random\n" + SQUARE + "def ask():\n    return f(int(input())) + random.randint(0, 9)\n",
    """
    import pytest, solution

    def test_ask(monkeypatch, request):
        answers = iter(["3", "4"])
        monkeypatch.setattr("builtins.input", lambda *_: next(answers))
        monkeypatch.setattr("random.randint", lambda low, high: low)
        assert request.node.name == "test_ask"
        assert [solution.ask(), solution.ask()] == [9, 16]
    """,
)
forged(
    "cases with objects of the candidate's",
    "import enum\nclass Color(enum.Enum):\n    RED = 1\n    BLUE = 2\n    def text(self):\n        return '#f00'\n"
    + ZERO,
    "import enum\nclass Color(enum.Enum):\n    RED = 1\n    BLUE = 2\n    def text(self):\n        return {1: '#f00', 2: '#00f'}[self.value]\n"
    + SQUARE,
    """
    import pytest
    from solution import Color, f

    @pytest.mark.parametrize("color, text", [(Color.RED, "#f00"), pytest.param(Color.BLUE, "#00f", id="blue")])
    def test_text(color, text):
        assert color.text() == text

    @pytest.mark.parametrize("function", [f])
    class TestFunction:
        def test_f(self, function):
            assert function(0) == 0
    """,
)
for name, rows in {"more than they write": "[*CASES]", "as many as it likes": "CASES", "names that it gives": "[2, 3], ids=label"}.items():  # fmt: skip
    forged(
        f"cases: {name}",
        ZERO + "CASES = []\ndef label(n):\n    return str(n)\n",
        SQUARE + "CASES = [2, 3]\ndef label(n):\n    return str(n)\n",
        HEAD
        + f"from solution import CASES, label\n\n@pytest.mark.parametrize('n', {rows})\ndef test_f(n):\n    assert f(n) == n * n\n",
        verdicts=("infra_error",),
        right=("infra_error",),
    )

# --- what a right candidate needs ---

SHOW = "import logging, os, sys, warnings\nlog = logging.getLogger(__name__)\ndef f(x):\n    print(x * x)\n    print('low', file=sys.stderr)\n    log.info('got %d', x * x)\n    warnings.warn('old', DeprecationWarning)\n    return os.environ.get('PATH')\n"
right(
    "output by descriptor, and what is deprecated",
    SHOW,
    """
    import pytest
    from solution import f

    def test_output(capfd):
        f(3)
        out, err = capfd.readouterr()
        assert out == "9\\n" and err == "low\\n"
    def test_deprecated():
        with pytest.deprecated_call():
            f(3)
    def test_environment():
        with pytest.MonkeyPatch.context() as patched:
            patched.delenv("PATH", raising=False)
            assert f(3) is None
    """,
)
right(
    "a logger of the module's name (not pytest's)",  # a plain run here gives it another
    SHOW,
    """
    import logging, pytest
    from solution import f

    def test_log(caplog):
        with caplog.at_level(logging.DEBUG, logger="solution"):
            f(3)
        assert caplog.record_tuples == [("solution", logging.INFO, "got 9")]
    """,
)
right(
    "options of the command line",
    SQUARE,
    """
    import pytest
    from solution import f

    @pytest.fixture
    def verbose(request):
        return request.config.getoption("verbose") > 1
    def test_f(verbose, pytestconfig):
        assert f(3) == 9
        assert not verbose and pytestconfig.getoption("--color") in ("auto", "no", "yes")
        assert pytestconfig.getoption("--slow", default=False) is False
    """,
)
SKIPS = dedent("""
    import sys, unittest
    seen = []

    class TestF(unittest.TestCase):
        def test_f(self):
            seen.append(f(3))
            self.assertEqual(seen[-1], 9)
        @unittest.skip("later")
        def test_later(self):
            self.assertEqual(f(2), 5)
        @unittest.expectedFailure
        def test_known(self):
            self.assertEqual(f(2), 5)
""")
right("marks of unittest", SQUARE, HEAD + SKIPS)
right(
    "a skip for another reason, where an earlier test has a fixture",
    SQUARE,
    HEAD
    + "import sys\n\n@pytest.fixture\ndef got():\n    return f(3)\n@pytest.fixture\ndef known(request):\n    request.applymarker(pytest.mark.xfail(reason='known'))\n\ndef test_f(got):\n    assert got == 9\ndef test_later():\n    if sys.version_info < (9, 0):\n        pytest.skip('needs Python 9')\n    assert f(2) == 5\ndef test_known(known):\n    assert f(2) == 5\n",
)

# --- runs that the candidate's data would leave out ---

for name, test in {
    "the parameters of a fixture": "@pytest.fixture(params=solution.CASES)\ndef n(request):\n    return request.param\n\ndef test_f(n):\n    assert f(n) == n * n\n",
    "the mark of a case": "@pytest.mark.parametrize('n', [0, pytest.param(3, marks=pytest.mark.skipif(not solution.CASES, reason='slow'))])\ndef test_f(n):\n    assert f(n) == n * n\n",
}.items():
    forged(
        name,
        ZERO + "CASES = []\n",
        SQUARE + "CASES = [3]\n",
        HEAD + "import solution\n\n" + test,
        verdicts=("infra_error",),
        right=("infra_error",),
    )

# --- exceptions of a package, which the tests catch by its own class ---

VERSION = "from packaging.version import InvalidVersion, Version\ndef f(text):\n    return Version(text).major\ndef or_none(get, text):\n    try:\n        return get(text)\n    except {}:\n        return {}\n"
PARSED = "import pytest\nfrom packaging.version import InvalidVersion\nfrom solution import f, or_none\n\ndef test_f():\n    assert f('3.1') == 3\n\n"
for name, wrong, test in (
    ("that the candidate raises", VERSION.replace("Version(text)", "int(text) if text == 'x' else Version(text)").format("ValueError", "None"), "with pytest.raises(InvalidVersion, match='x') as raised:\n        f('x')\n    assert 'x' in str(raised.value)"),
    ("that the candidate claims to raise", "class InvalidVersion(BaseException):\n    pass\nInvalidVersion.__module__ = 'packaging'\ndef f(text):\n    if text == 'x':\n        raise InvalidVersion('x')\n    return 3\nor_none = f\n", "with pytest.raises(InvalidVersion):\n        f('x')"),
    ("that the candidate catches", VERSION.format("KeyError", "None"), "def get(text):\n        raise InvalidVersion(text)\n    assert or_none(get, 'x') is None"),
    ("by which a test would be skipped", "from packaging.version import InvalidVersion\nimport _pytest.outcomes\nclass Invalid(InvalidVersion, _pytest.outcomes.Skipped):\n    pass\ndef f(text):\n    if text == 'x':\n        raise InvalidVersion(text)\n    if text == '5':\n        raise Invalid(text)\n    return 3\nor_none = f\n", "with pytest.raises(InvalidVersion):\n        f('x')\n    assert f('5') == 5"),
):  # fmt: skip
    forged(
        f"an exception of a package {name}",
        wrong,
        VERSION.format("InvalidVersion", "None"),
        PARSED + "def test_x():\n    " + test + "\n",
    )

# --- objects of a class of a package ---

KNOWN = "from packaging.version import Version\n"
PARSES = KNOWN + "def f(text):\n    return Version(text)\n"
LIES = (
    KNOWN
    + "class Any(tuple):\n    __eq__ = __ge__ = __le__ = __gt__ = __lt__ = lambda *a: True\n    __ne__ = lambda *a: False\n    __hash__ = tuple.__hash__\nclass Odd:\n    __eq__ = __ge__ = __le__ = __gt__ = __lt__ = __contains__ = lambda *a: True\n    __hash__ = None\n"
)
IS_ONE = "import pytest\nfrom packaging.version import Version\nfrom solution import f\n\ndef test_f():\n    got = f('3.1')\n    assert isinstance(got, Version)\n    assert "
for name, lie in {
    "another one": KNOWN + "def f(text):\n    return Version('9')\n",
    "the class itself": KNOWN + "def f(text):\n    return Version\n",
    "that equals all": LIES
    + "class All(Version):\n    __eq__ = __ge__ = __le__ = lambda *a: True\n    __ne__ = lambda *a: False\n    __hash__ = None\ndef f(text):\n    return All('9')\n",
    "with a key that equals all": LIES
    + "class All(Version):\n    _key = property(lambda s: Any((9,)))\ndef f(text):\n    return All('9')\n",
    "with a key that is no data": LIES
    + "class All(Version):\n    _key = property(lambda s: Odd())\ndef f(text):\n    return All('9')\n",
    "that only claims its class": LIES
    + "class All:\n    _key = property(lambda s: Odd())\n    __class__ = property(lambda s: Version)\n    __eq__ = lambda *a: True\nAll.__module__, All.__qualname__ = 'packaging.version', 'Version'\ndef f(text):\n    return All()\n",
}.items():
    for test in (
        "got == Version('3.1')",
        "Version('3.1') == got",
        "Version('3.0') < got < Version('3.2')",
        "got.major == 3",
    ):
        if not ("only" in name and "major" in test):
            forged(
                f"an object of a package's class, {name}: {test}", lie, PARSES, IS_ONE + test + "\n"
            )
right(
    "an object of a class that extends a package's",
    KNOWN
    + "class Release(Version):\n    def bump(self):\n        return Release(f'{self.major + 1}')\n",
    "import pytest\nfrom packaging.version import Version\nfrom solution import Release\n\ndef test_bump():\n    got = Release('3.1').bump()\n    assert isinstance(got, Version) and isinstance(got, Release) and type(got) is Release\n    assert str(got) == '4' and got.major == 4 and got.__class__.__name__ == 'Release'\n    assert isinstance(got.__class__('5'), Release)\n",
)
right(
    "a class of a package that the tests hand over",
    "def f(kind, text):\n    return kind(text).major\n",
    "import pytest\nfrom packaging.version import Version\nfrom solution import f\n\ndef test_f():\n    assert f(Version, '3.1') == 3\n",
)
right(
    "a function of a package that a fixture replaces",
    "import packaging.version\ndef f(text):\n    return packaging.version.parse(text)\n",
    "import pytest\nimport packaging.version\nfrom solution import f\n\ndef test_f(monkeypatch):\n    monkeypatch.setattr(packaging.version, 'parse', lambda text: text + '!')\n    assert f('3') == '3!'\n\ndef test_by_name(monkeypatch):\n    monkeypatch.setattr('packaging.version.Version.major', 7)\n    assert f('3').major == 7\n\ndef test_undone():\n    assert f('3').major == 3\n",
)
