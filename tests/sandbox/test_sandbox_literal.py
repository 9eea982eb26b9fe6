"""Cutting a test in two, and taking the program out of an answer."""

from __future__ import annotations

import re
import textwrap
import time
from typing import Any

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from gatekeeper.sandbox.extract import _fences as fences
from gatekeeper.sandbox.extract import extract_code
from gatekeeper.sandbox.literal import parse
from gatekeeper.sandbox.suite import read_suite


@pytest.mark.parametrize(
    ("test", "call", "right", "wrong"),
    [
        ("assert f(1, [2]) == {'a': (1, 2)}", "f(1, [2])", {"a": (1, 2)}, {"a": [1, 2]}),
        ("assert f(1) == True", "f(1)", 1.0, 2),
        ("assert (f(1)) == -0.0", "f(1)", 0, 1),
        ("assert 5 == f(n=1), 'five'", "f(n=1)", 5, 6),
        ("assert f(1) != 5", "f(1)", 6, 5),
        ("assert f(1) is None", "f(1)", None, 0),
        ("assert f(1) is not True", "f(1)", 1, True),
        ("assert f(1)", "f(1)", [0], []),
        ("assert not f(1)", "f(1)", "", "x"),
        ("assert not f(1) == 2", "f(1)", 3, 2),
        ("assert f(1) in (1, 2)", "f(1)", 2, 3),
        ("assert f(1) <= 2.5", "f(1)", 2, 3),
        ("assert abs(f(1) - 0.5) < 1e-6", "f(1)", 0.5 + 1e-9, 0.6),
        ("assert abs(0.5 - f(1)) <= 0.1", "f(1)", 0.45, 0.7),
        ("assert f(1.0 / 3, int) == 2", "f(1.0 / 3, int)", 2, 3),
        ("assert f(Node(1)) == 2", "f(Node(1))", 2, 3),
        ("assert sum(10, 15) == 6", "sum(10, 15)", 6, 7),
        ("assert int(f(5, 3)) == 35", "int(f(5, 3))", 35, 36),
        ("assert f(\n    'é', 1\n) == 'ü'", "f(\n    'é', 1\n)", "ü", "u"),
    ],
)
def test_cut_in_two(test: str, call: str, right: object, wrong: object) -> None:
    literal = parse(test)
    assert literal is not None
    assert literal.call == call
    assert literal.holds(right)
    assert not literal.holds(wrong)


@pytest.mark.parametrize(
    "test",
    [
        "assert f(1) == g(1)",
        "assert 3 in f(1)",  # a generator, say
        "assert 3 not in f(1)",
        "assert f(1) == sys.maxsize",
        "assert f(1) == 1 == 1",
        "assert f(1) == 1 and f(2) == 2",
        "assert f(1) is 5",
        "assert isinstance(f(1), int)",  # one bit, from a function that can be replaced
        "assert all([f(1)]) == True",
        "assert isclose_helper(f(1), 3.5)",  # defined by the setup code: see `helpers` below
        "assert f(1) - 3 == 0",  # the operator gets the expected value: an object could lie
        "assert abs(f(1) - 3) == 0",
        "assert len(f(1) - {3}) == 0",
        "assert Solution().f(1) == 2",
        "x = f(1)\nassert x == 2",
        "assert 1 == 1",
        "f(1)",
    ],
)
def test_what_cannot_be_cut(test: str) -> None:
    assert parse(test, frozenset({"isclose_helper"})) is None


def test_expectations_are_not_in_the_call() -> None:
    literal = parse("assert f('given') == 'secret', 'secret message'")
    assert literal is not None
    assert "secret" not in literal.call


LABELS = ("python", "Python3", "python3.12", "py", "py3", "ipython3")


@pytest.mark.parametrize(
    ("text", "code"),
    [
        ("x = 1", "x = 1"),
        ("Here:\n```python\nx = 1\n```\nor\n```py\nx = 2\n```\nbye", "x = 2\n"),
        ("```\nx = 1\n```\n```json\n{}\n```", "x = 1\n"),
        ("```python\nx = 1\n```\n```\noutput\n```", "x = 1\n"),
        ("```python\nx = 1\nwhile", "x = 1\nwhile"),  # cut off by a token limit
        ("  ```Python\r\n  x = 1\r\n  ```", "x = 1\n"),
        ("```python\n```", ""),
        ("~~~python\nx = 1\n~~~", "x = 1\n"),
        ("````python\nx = 1\n```\n````", "x = 1\n```\n"),
        ("1. So:\n\n- ```python\n  x = 1\n  ```\n2. ```text\n   y\n   ```", "x = 1\n"),
        *((f"```{label}\nx = 1\n```\n```\nout\n```", "x = 1\n") for label in LABELS),
        ("So:\n> ```python\n> if x:\n>     y\n>\n> ```\n> Done", "if x:\n    y\n\n"),
        ("> > ```py\n> > x = 1\n> > ```\n> ```\n> y\n> ```", "x = 1\n"),
        ("```python\nif x:\n    ```\n    ```\n```\nbye", "if x:\n    ```\n    ```\n"),
    ],
)
def test_code_is_taken_out_of_its_fence(text: str, code: str) -> None:
    assert extract_code(text) == code


USAGE = "```python\n{0}\n```\nFor example:\n```python\n{1}\n```\n"


@pytest.mark.parametrize(
    ("first", "second", "taken"),
    [
        ("def f(x): return x", "print(f(3))", 0),
        ("def f(x): return x", "f(3) == 3", 0),
        ("def f(x): return x", "def f(x): return -x", 1),
        ("  class f:\n    pass", "  y = f()", 0),
        ("f = lambda x: x", "print(f(3))", 0),
        ("def g(x): return x", "print(g(3))", 1),
    ],
)
def test_code_that_shows_a_call_is_not_the_solution(first: str, second: str, taken: int) -> None:
    """A fence that defines what the tests use comes before a later one that does not."""
    text = USAGE.format(first, second)
    expected = textwrap.dedent((first, second)[taken]) + "\n"
    assert extract_code(text, {"f"}) == expected
    suite = read_suite("a", {"tests": ["assert f(1) == 1"]})
    assert suite.candidate(text) == expected


def test_a_fence_with_more_of_the_names_is_the_program() -> None:
    whole = "class Node:\n    pass\n\ndef f(x):\n    return Node()"
    part = "def f(x):\n    return Node()"
    text = f"```python\n{whole}\n```\nOr, in short:\n```python\n{part}\n```\n"
    assert extract_code(text, {"Node", "f"}).strip() == whole
    assert extract_code(text, {"f"}).strip() == part


def test_a_solution_in_several_fences_is_one_program() -> None:
    node, tree = "class Node:\n    pass\n", "class Tree:\n    top = Node()\n"
    shown = "tree = Tree()\nprint(tree.top)\n"
    text = "".join(f"Then:\n```python\n{part}```\n" for part in (node, tree, shown))
    assert extract_code(text, {"Node", "Tree", "f"}) == f"{node}\n{tree}"
    assert extract_code(text, {"Tree"}) == tree
    again = f"{text}All of it:\n```python\n{node}{tree}```\n"
    assert extract_code(again, {"Node", "Tree"}) == node + tree


def test_a_fence_that_reads_is_the_program_that_reads() -> None:
    program = "n = int(input())\nprint(n * n)\n"
    text = USAGE.format(program.strip(), "print(3 * 3)")
    task = {"input_output": {"inputs": ["3\n"], "outputs": ["9\n"]}}
    assert read_suite("a", task).candidate(text) == program
    assert extract_code(text) == "print(3 * 3)\n"


SOLUTION = "def f(x):\n    return x * x\n"
CALLED = "```python\nprint(f(3))\n```\n"


@pytest.mark.parametrize(
    "text",
    [
        f"```\n{SOLUTION}```\n{CALLED}",
        f"{CALLED}```\n{SOLUTION}```\n",
        f"```text\n{SOLUTION}```\n```\n9\n```\n",
        f"```python-exec\n{SOLUTION}```\n{CALLED}",
        f"```ruby\ndef f(x)\n  x\nend\n```\n```python\n{SOLUTION}```\n",
    ],
)
def test_a_fence_that_defines_the_name_is_the_solution_whatever_its_label(text: str) -> None:
    assert extract_code(text, {"f"}) == SOLUTION


def test_a_fence_in_a_docstring_is_not_the_solution() -> None:
    text = f'def f(x):\n    """Square.\n\n    {CALLED.strip()}\n    """\n    return x * x\n'
    text = text.replace("print", "    print").replace("\n```\n", "\n    ```\n")
    assert extract_code(text, {"f"}) == text


@pytest.mark.parametrize(
    ("text", "code"),
    [
        ("<think>x\n</think>\ny = 1\n", "\ny = 1\n"),
        ("\n<thinking>x</thinking>y = 1\n", "y = 1\n"),
        ("x\n  </think> \ny = 1\n", "\ny = 1\n"),
        ("<think>y = 1\n", ""),
        ("y = '</think>'  # </think>\n", "y = '</think>'  # </think>\n"),
    ],
)
def test_thoughts_are_no_part_of_an_answer(text: str, code: str) -> None:
    assert extract_code(text) == code


@pytest.mark.parametrize(
    "part", ["n = int(input())", "import sys\ndata = sys.stdin.read()", "print(n * n)"]
)
@pytest.mark.parametrize("read", ["int(input())", "next(map(int, fileinput.input()))"])
def test_a_fence_that_only_reads_is_not_the_program(part: str, read: str) -> None:
    program = f"import fileinput\nn = {read}\nprint(n * n)\n"
    text = USAGE.format(program.strip(), part)
    assert extract_code(text, reads=True) == program


PROMPT = """
from math import prod
try:
    from math import isqrt
except ImportError:
    isqrt = None
LOW, HIGH = 2, 9

async def later(x):
    return x

def f(x):
    \"\"\"It is a square.\"\"\"
"""


@pytest.mark.parametrize(
    "code",
    [
        "from __future__ import annotations\n\ndef f(x: prod) -> int:\n    return prod([x, x])\n",
        "# no __future__\ndef f(x):\n    return prod([x, x])\n",
        "def f(x):\n    return x ** LOW\n",
        "import asyncio\ndef f(x):\n    return asyncio.run(later(x * x))\n",
        "def f(x):\n    return isqrt(x) * 9\n",
    ],
)
def test_a_whole_program_may_use_what_the_prompt_defines(code: str) -> None:
    task = {"test": "def check(candidate):\n    assert candidate(3) == 9\n", "prompt": PROMPT}
    names: dict[str, Any] = {}
    exec(read_suite("a", task | {"entry_point": "f"}).candidate(code), names)
    assert names["f"](3) == 9


# What a fence was before it was read line by line, which took a time that grew with its square.
_FENCE = re.compile(
    r"^[ \t]*(?:-[ \t]+)?(?P<marks>```+)[ \t]*(?P<label>[\w+.-]*)[^\n`]*\n"
    r"(?P<body>.*?)(?:^[ \t]*(?P=marks)`*[ \t]*$|\Z)",
    re.MULTILINE | re.DOTALL,
)
_FAR_IN = re.compile(r"^ *\t|^ {4}", re.MULTILINE)  # such a line may not close a fence


@given(st.lists(st.sampled_from(["```", "`", " ", "\t", "\n", "py", "é", "-", "\r", "\x0b"])))
def test_fences_are_what_the_expression_finds(parts: list[str]) -> None:
    text = "".join(parts)
    assume(not _FAR_IN.search(text))
    found = [(match["label"].lower(), match["body"]) for match in _FENCE.finditer(text)]
    assert list(fences(text)) == found


@pytest.mark.parametrize("unit", ["``\n", "\n", " ", " \n", "def ", "async\t", "f:", "f"])
def test_answers_are_read_in_linear_time(unit: str) -> None:
    task = {"test": "def check(candidate):\n    assert candidate(1) == 1\n"}
    suite = read_suite("a", task | {"entry_point": "f", "prompt": "def f(x):\n"})

    def seconds(copies: int) -> float:
        started = time.process_time()
        suite.candidate("```" + "a" * copies + "`\n" + " " * copies + unit * copies)
        return time.process_time() - started

    small = min(seconds(2_000) for _ in range(5))
    assert min(seconds(40_000) for _ in range(3)) < 100 * small  # squared, it is 400 times
