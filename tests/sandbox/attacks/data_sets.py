"""The shapes of data sets: statements, completions, programs that print, calls from JSON."""

# ruff: noqa: E501 - programs within strings are as wide as they are
from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from attacks.program import Program, pair, shape

__all__ = ["DATA_SETS"]

DATA_SETS: list[Program] = []


def forged(name: str, lie: str, honest: str, *tests: str, **task: Any) -> None:
    DATA_SETS.extend(pair("forged", f"data set: {name}", lie, honest, *tests, **task))


def right(name: str, code: str, *tests: str, **task: Any) -> None:
    DATA_SETS.append(shape(f"data set: {name}", code, *tests, **task))


def prints(*outputs: str, given: str = "3\n") -> Mapping[str, Any]:
    return {"input_output": {"inputs": [given] * len(outputs), "outputs": list(outputs)}}


# --- statements: the text of a test and of an answer is kept as it is ---

forged(
    "blanks in a text of a test",
    "def lines(text):\n    return [line.strip() for line in text.split('\\n')]\n",
    "def lines(text):\n    return text.split('\\n')\n",
    'assert lines("""a\n   \nb""") == ["a", "   ", "b"]',
)
right(
    "blanks in a text of an answer",
    "```python\nFRAME = '''a\n   \nb'''\ndef size():\n    return len(FRAME)\n```",
    "assert size() == 7",
)

# --- `in` an iterator, a large set, an object of a class ---

for name, returned in (
    ("a generator", "(x for x in (1, 2, 3))"),
    ("a map", "map(int, '123')"),
    ("an iterator", "iter([1, 2, 3])"),
    ("a large set", "set(range(10000)) - {4}"),
    ("a list of its own class", "__import__('collections').UserList([1, 2, 3])"),
):
    forged(
        f"in {name}",
        "def f():\n    return (x for x in (1, 4))\n",
        f"def f():\n    return {returned}\n",
        "assert 2 in f()",
        "assert 4 not in f()",
    )

# --- answers about other objects that are always yes ---

ALWAYS = "class Point:\n    def __init__(self, x):\n        self.x = x\n    def {0}(self, other):\n        return {1}\n    def __hash__(self):\n        return 1\n"
for operation, answer, test in (
    ("__eq__", "self.x == other.x", "assert not Point(1) == Point(2)"),
    ("__eq__", "self.x == other.x", "assert Point(1) != Point(2)"),
    ("__eq__", "self.x == other.x", "assert Point(1) not in [Point(2)]"),
    ("__eq__", "self.x == other.x", "assert len({Point(1), Point(2)}) == 2"),
    ("__lt__", "self.x < other.x", "assert not Point(2) < Point(1)"),
    ("__contains__", "other in range(self.x)", "assert 4 not in Point(3)"),
    ("__contains__", "other in range(self.x)", "assert (4 in Point(3)) is False"),
):
    forged(
        f"always yes: {test}",
        ALWAYS.format(operation, "True"),
        ALWAYS.format(operation, answer),
        test,
    )

# --- a built-in name under test, which the candidate does not define ---

TOTAL = "def sum(a, b=0):\n    return a + b if b else a[0] + a[1]\n"
forged("Python's own function", "total = 3\n", TOTAL, "assert sum([1, 2]) == 3")
CHECK = "def check(candidate):\n    assert candidate([1, 2]) == 3\n"
forged("Python's own function, checked", "total = 3\n", TOTAL, test=CHECK, entry_point="sum")

# --- names that LiveCodeBench's own judge imports, and its limit of recursion ---

TWO_SUM = "class Solution:\n    def twoSum(self, nums: List[int], target: int) -> Optional[List[int]]:\n        for i, n in enumerate(nums):\n            if target - n in Counter(nums[i + 1:]):\n                return {0}\n"
forged(
    "names that are not imported",
    TWO_SUM.format("[i, i]"),
    TWO_SUM.format("[i, nums.index(target - n, i + 1)] if inf > heapq.heappop([n]) else []"),
    tests=[{"input": "[2,7,11,15]\n9", "output": "[0,1]", "testtype": "functional"}],
    fn_name="twoSum",
)
forged(
    "a name that is not imported, and that is under test",
    "class Solution:\n    pass\n",
    "class Solution:\n    def gcd(self, a, b):\n        return gcd(a, b)\n",
    input_output={"fn_name": "gcd", "inputs": [[4, 6]], "outputs": [2]},
)
right(
    "names that are not imported, in a program that prints",
    "@cache\ndef fib(n):\n    return n if n < 2 else fib(n - 1) + fib(n - 2)\nprint(fib(int(sys.stdin.read())))\n",
    **prints("6765", given="20\n"),
)
right(
    "deep recursion, whose limit is not imported",
    "def depth(n):\n    return n and 1 + depth(n - 1)\nprint(depth(int(input())))\n",
    **prints("5000", given="5000\n"),
)
for name, lie, honest, tests in (
    ("a statement", "def f(n):\n    return floor(n)\n", "from math import floor\ndef f(n):\n    return floor(n)\n", {"tests": ["assert f(2.5) == 2"]}),
    ("a check", "def f(n):\n    return floor(n)\n", "from math import floor\ndef f(n):\n    return floor(n)\n", {"test": "def check(candidate):\n    assert candidate(2.5) == 2\n", "entry_point": "f"}),
):  # fmt: skip
    forged(f"a name that must be imported for {name}", lie, honest, **tests)

# --- completions ---

PROMPT = "SCALE = 2\n\ndef scaled(x):\n    '''Scaled.'''\n"
SCALED: Mapping[str, Any] = {
    "prompt": PROMPT,
    "test": "def check(candidate):\n    assert candidate(3) == 6\n",
    "entry_point": "scaled",
}
right("a body in a fence", "So:\n```python\n    return x * SCALE\n```\n", **SCALED)
right("a constant of the prompt", "def scaled(x):\n    return x * SCALE\n", **SCALED)

# --- programs that print ---

forged(
    "a child that answers",
    "import os\nchild = os.fork()\nif child:\n    os.waitpid(child, 0)\n    raise ValueError\nprint(9)\n",
    "import os\nchild = os.fork()\nif child:\n    os.waitpid(child, 0)\n    print(int(input()) ** 2)\n",
    **prints("9"),
)
forged(
    "an object that prints at the end",
    "class Last:\n    def __del__(self):\n        print('bye')\nlast = Last()\nprint(9)\n",
    "class Last:\n    def __del__(self):\n        print(9)\nlast = Last()\n",
    **prints("9"),
)
CYCLE = "class Last:\n    def __init__(self):\n        self.me = self\n    def __del__(self):\n        print({0})\nlast = Last()\nLast()\n"
forged(
    "objects in cycles that print at the end",
    CYCLE.format("'bye'") + "print(9)\n",
    CYCLE.format("9"),
    **prints("9\n9"),
)
for name, stream in (
    ("a stream of the descriptor", "open(1, 'w')"),
    ("a stream of the buffer", "io.TextIOWrapper(sys.stdout.buffer)"),
):
    right(
        f"{name} that is not closed",
        f"import io, sys\nout = {stream}\nout.write(str(int(input()) ** 2))\n",
        **prints("9"),
    )
for separator in ("\\x0b", "\\x0c", "\\x1c", "\\x85", "\\u2028", "\\r"):
    forged(
        f"{separator} for the end of a line",
        f"print('a{separator}b')\n",
        "print('a')\nprint('b')\n",
        **prints("a\nb"),
    )

# --- calls from JSON ---

LISTED: Mapping[str, Any] = {
    "tests": [{"input": "5", "output": "[5]", "testtype": "functional"}],
    "fn_name": "f",
}
forged("no list", "def f(x):\n    return 5\n", "def f(x):\n    return [x]\n", **LISTED)
SAME = "def f(x):\n    return x\n"
right("a separator within a text", SAME, tests=[{"input": '"a\u2028b"', "output": '"a\u2028b"', "testtype": "functional"}], fn_name="f")  # fmt: skip
right("infinity", SAME, input_output={"fn_name": "f", "inputs": [[[float("inf"), {"a": -float("inf")}]]], "outputs": [[float("inf"), {"a": -float("inf")}]]})  # fmt: skip
right("no number", "def f(x):\n    return x != x\n", input_output={"fn_name": "f", "inputs": [[float("nan")]], "outputs": [True]})  # fmt: skip
forged("keys that become one", "def f(x):\n    return {1: 2, '1': 3}\n", "def f(x):\n    return {1: 3}\n", input_output={"fn_name": "f", "inputs": [[0]], "outputs": [{"1": 3}]})  # fmt: skip
