"""Wrong programs that would have the tests judged as tests that cannot be judged."""

# ruff: noqa: E501 - programs within strings are as wide as they are
from __future__ import annotations

from attacks.program import SQUARE, Topic

__all__ = ["UNLABELLED"]

UNLABELLED = Topic("label")
forged = UNLABELLED.forged

# --- a label that the candidate would choose ---

forged(
    "the class of an error that an import raises",
    "def f(x):\n    return ImportError\n",
    "def f(x):\n    return x * x\n",
    """
    from solution import f

    def test_f():
        got = f(3)
        if isinstance(got, type):
            raise got
        assert got == 9
    """,
)
forged(
    "a table without rows",
    "TABLE = {}\n",
    "TABLE = {3: 9}\n",
    "from solution import TABLE\n\ndef test_f():\n    for x, got in TABLE.items():\n        assert got == x * x\n",
)

forged(
    "an object that is not true",
    "class No:\n    def __bool__(self):\n        return False\ndef f(x):\n    return No()\n",
    "def f(x):\n    return x * x\n",
    "from solution import f\n\ndef test_f():\n    got = f(3)\n    if got:\n        assert got == 9\n",
)
forged(
    "an object where a number is looked for",
    "class No:\n    pass\ndef f(x):\n    return No()\n",
    "def f(x):\n    return x * x\n",
    "from solution import f\n\ndef test_f():\n    got = f(3)\n    if isinstance(got, int):\n        assert got == 9\n",
)
forged(
    "a constant that has no items",
    "SQUARES = {}\n",
    "SQUARES = {2: 4, 3: 9}\n",
    "from solution import SQUARES\n\ndef test_squares():\n    for n, got in SQUARES.items():\n        assert got == n * n\n",
)
forged(
    "a name that is missing",
    "def g(x):\n    return x\n",
    "def f(x):\n    return x * x\n",
    "import solution\n\ndef test_f():\n    if hasattr(solution, 'f'):\n        assert solution.f(3) == 9\n",
)
for name, lie in {
    "returned": "def f(x):\n    return ImportError('no')\n",
    "as the cause": "def f(x):\n    raise ValueError from ImportError('no')\n",
}.items():
    forged(
        f"a missing module, {name}",
        lie,
        "def f(x):\n    return x * x\n",
        """
        from solution import f

        def test_f():
            try:
                got = f(3)
            except ValueError as error:
                raise error.__cause__
            if isinstance(got, Exception):
                raise got
            assert got == 9
        """,
    )

forged(
    "a missing module without a name that can be looked up",
    "def f(x):\n    error = ImportError('no')\n    vars(error)['name'] = [1]\n    raise error\n",
    "def f(x):\n    return x * x\n",
    "from solution import f\n\ndef test_f():\n    got = f(3)\n    assert got == 9\n",
)
forged(
    "an object that cannot be called",
    "f = object()\n",
    "def f(x):\n    return x * x\n",
    "import solution\n\ndef test_f():\n    if callable(solution.f):\n        assert solution.f(3) == 9\n",
)

# --- a label that the candidate would choose ---

for name, test in {
    "in globals()": """
        def test_f():
            if "f" in globals():
                assert f(3) == 9
    """,
    "by its NameError": """
        def test_f():
            try:
                function = f
            except NameError:
                return
            assert function(3) == 9
    """,
}.items():
    forged(f"a name that is missing, {name}", "def g(x):\n    return x\n", SQUARE, test)
forged(
    "the name of a module that is missing",
    "def backend(name):\n    return 'nothing'\n",
    "def backend(name):\n    return 'math'\n",
    """
    import importlib
    from solution import backend

    def test_backend():
        module = importlib.import_module(backend("exact"))
        assert module.floor(2.5) == 2
    """,
)
