"""Reading a task: the programs to run, the expected results, and refusals."""

from __future__ import annotations

import json
from typing import Any

import pytest

from gatekeeper.errors import BadInputError
from gatekeeper.sandbox.printed import same_output
from gatekeeper.sandbox.suite import Case, read_suite

CHECK = (
    "def check(candidate):\n    assert candidate(2) == 4\n    assert candidate(3) == 9, 'three'\n"
)
PROMPT = "import math\n\ndef half(x):\n    return x / 2\n\ndef f(x):\n    '''Square.'''\n"
PYTEST = "from solution import f\n\ndef test_f():\n    assert f(2) == 4\n"


def read(**task: Any) -> Any:
    return read_suite("id-1", task)


def calls(suite: Any) -> list[str]:
    return [test.call for test in suite.literal]


# MBPP


def test_statements_are_cut_in_two_if_all_can_be() -> None:
    suite = read(tests=["assert f(2) == 4", "  assert f(3) == 9"])
    assert calls(suite) == ["f(2)", "f(3)"]
    assert [test.holds(4) for test in suite.literal] == [True, False]
    assert len(suite) == 2
    suite = read(tests=["assert f(2) == 4", "x = f(3)\nassert x == 9"])
    assert (suite.literal, len(suite)) == ((), 2)


def test_only_imports_of_the_setup_reach_a_candidate() -> None:
    suite = read(tests=["assert f(1) == 7"], test_setup_code="import a.b\nfrom c import d as e")
    assert calls(suite) == ["f(1)"]
    assert suite.imports == "import a.b\nfrom c import d as e"
    for more in ("root = Node(7)", "table = {1: 7}", "def check(): pass", "print(7)"):
        suite = read(tests=["assert f(1) == 7"], test_setup_code=f"import a\n{more}")
        assert not suite.literal  # the tests' own process runs it
        assert suite.imports == "import a"
    # A name that setup imports is not the candidate's.
    assert not read(tests=["assert g(f(1)) == 1"], test_setup_code="import g").literal
    assert not read(tests=["assert f(1) == 1"], test_setup_code="from g import *").literal


def test_a_built_in_name_under_test_is_left_to_the_judge() -> None:
    """The candidate has to define it: the host would see what Python's own gives."""
    assert not read(tests=["assert sum([1, 2]) == 3"]).literal
    assert not read(tests=["assert sum([1, f(2)]) == 3"], entry_point="sum").literal
    assert read(tests=["assert sum([1, 2]) == 3", "assert f(1) == 1"]).literal


# HumanEval


def test_a_check_that_only_asserts_is_cut_in_two() -> None:
    suite = read(test=CHECK, entry_point="f")
    assert calls(suite) == ["f(2)", "f(3)"]
    suite = read(
        test=f"METADATA = {{'author': 'x'}}\n\n{CHECK}    assert True, 'prints'\n", entry_point="f"
    )
    assert calls(suite) == ["f(2)", "f(3)"]
    loop = "def check(candidate):\n    for n in (1, 2):\n        assert candidate(n) == n * n\n"
    suite = read(test=loop, entry_point="f")
    assert (suite.literal, suite.tests, suite.entry) == ((), (loop,), "f")


def test_whether_a_completion_is_whole_is_looked_up_without_parsing() -> None:
    suite = read(test=CHECK, entry_point="f", prompt=PROMPT)
    wholes = (
        "async def f(x): ...",
        "class f: pass",
        "f = half",
        "f: int = 3",
        "if 1:\n  def f(): 1",
    )
    for whole in wholes:
        assert suite.candidate(whole).endswith(whole)
        assert not suite.candidate(whole).startswith(PROMPT), whole
    for part in ("    return f(x)\n", "    f == 3\n", "    x = f\n", "    def ff(): pass\n"):
        assert suite.candidate(part) == PROMPT + part
    hostile = "x = " + "(" * 1_000_000  # which a parser would take long for
    assert suite.candidate(hostile) == PROMPT + hostile


def test_a_prompt_is_put_before_its_completion() -> None:
    suite = read(test=CHECK, entry_point="f", prompt=PROMPT)
    body = "    return x * x\n"
    assert suite.candidate(body) == PROMPT + body
    whole = "def f(x):\n    return math.floor(x * x)\n"
    given = suite.candidate(whole).removesuffix(whole)  # the candidate may use the prompt's code
    assert "import math" in given
    assert "def f" not in given
    future = f"from __future__ import annotations\n{whole}"
    assert suite.candidate(future) == future.replace("\n", f"\n{given}", 1)
    assert read(test=CHECK, entry_point="f").candidate(body) == body.lstrip()
    assert suite.candidate(f"So:\n```python\n{body}```") == PROMPT + body
    constants = f"LIMIT = 3\nshown = lambda: f(2)\n{PROMPT}"
    given = read(test=CHECK, entry_point="f", prompt=constants).candidate(whole)
    assert "LIMIT = 3" in given
    assert "shown" not in given


def test_helpers_of_the_prompt_are_the_tests_too() -> None:
    test = "def check(candidate):\n    assert half(candidate(2)) == 2\n"
    suite = read(test=test, entry_point="f", prompt=PROMPT)
    assert not suite.literal
    assert "def half" in suite.provided
    assert "def f" not in suite.provided


# pytest and unittest


@pytest.mark.parametrize(
    "test",
    [
        PYTEST,
        "import unittest\n\nclass Cases(unittest.TestCase):\n    def test_f(self):\n"
        "        self.assertEqual(f(2), 4)\n",
        "class TestF:\n    def test_it(self):\n        assert f(2) == 4\n",
        "assert f(2) == 4\nassert f(3) == 9\n",
        "for n in range(3):\n    assert f(n) == n * n\n",
    ],
    ids=["function", "unittest", "class", "statements", "loop"],
)
def test_programs_of_tests(test: str) -> None:
    suite = read(test=test)
    assert (suite.tests, suite.literal, suite.entry) == ((test,), (), None)


def test_the_module_that_tests_import() -> None:
    assert "solution" in read(test=PYTEST).reading.modules
    squares = read(test=PYTEST.replace("solution", "squares"), module="squares")
    assert "squares" in squares.reading.modules


# Programs that read and print: APPS, LiveCodeBench


def test_inputs_and_outputs() -> None:
    data = {"inputs": ["1\n2\n", ["3", 4]], "outputs": ["3\n", ["7"]]}
    cases = (Case("1\n2\n", "3\n"), Case("3\n4", "7"))
    assert read(input_output=data).cases == cases
    assert read(input_output=json.dumps(data)).cases == cases
    tests = [{"input": "1\n", "output": "2\n", "testtype": "stdin"}, {"input": "", "output": "x"}]
    assert read(tests=tests).cases == (Case("1\n", "2\n"), Case("", "x"))


@pytest.mark.parametrize("text", [False, True])
def test_calls_of_a_function(text: bool) -> None:
    data: Any = {"fn_name": "add", "inputs": [[1, [2]], ["a", None]], "outputs": [[3], {"1": "b"}]}
    suite = read(input_output=json.dumps(data) if text else data)
    first, second = suite.literal
    assert first.call == "(Solution().add if 'Solution' in globals() else add)(1, [2])"
    assert [first.holds(value) for value in ([3], (3,), 3, [4], "3")] == [True] * 3 + [False] * 2
    assert second.holds({1: "b"})  # JSON's keys are texts
    assert not second.holds({2: "b"})
    assert "3" not in first.call


def test_calls_of_a_function_have_the_imports_of_the_setup_and_no_more() -> None:
    data = {"fn_name": "add", "inputs": [[1]], "outputs": [2]}
    suite = read(input_output=data, test_setup_code="import math\nANSWERS = {1: 2}")
    assert suite.imports == "import math"
    assert suite.reading.needs == {"math"}


def test_functional_tests_hold_json() -> None:
    tests = [{"input": '[1, 2]\n"x"', "output": "true", "testtype": "functional"}]
    (test,) = read(tests=tests, fn_name="f").literal
    assert test.call.endswith("([1, 2], 'x')")
    assert test.holds(True)
    assert not test.holds(False)
    assert read(tests=tests, entry_point="f").literal[0].call == test.call
    tests = [{"input": '"a\u2028b"\n-Infinity\n', "output": "[5]", "testtype": "functional"}]
    (test,) = read(tests=tests, fn_name="f").literal
    assert test.call.endswith("('a\\u2028b', -1e999)")
    assert not test.holds(5)  # only APPS wraps outputs in a list
    assert test.holds((5,))


@pytest.mark.parametrize(
    ("printed", "expected", "same"),
    [
        ("1 2\n3\n", "1 2\n3", True),
        ("  1 2  \r\n3\n\n", "1 2\n3", True),
        ("1.0 2\n", "1 2.000", True),
        ("1\n2", "1 2", False),
        ("1", "2", False),
        ("", "", True),
        ("\n", "", True),
        ("", "0", False),
        ("Yes", "yes", False),
        ("yes 1.0", "yes 1", False),
        ("1e3", "1000", True),
        ("+.5 -0", "0.50 0.", True),
        ("101", "0101", False),  # digits in base two, say
        ("007", "7", False),
        ("1_000", "1000", False),
        ("٣", "3", False),
        ("nan", "nan", True),
        ("nan", "1", False),
        ("snan", "1", False),  # a number that raises when it is compared
        ("inf", "Infinity", False),
        ("1\0", "1", False),
        ("a\x0cb\x0b", "a\nb", False),  # `splitlines` would divide all of these
        ("a\x85b", "a\nb", False),
        ("a\u2028b", "a\nb", False),
        ("a\rb", "a\nb", False),
        ("\ud800", "1", False),
    ],
)
def test_output_is_compared_by_lines_and_numbers(printed: str, expected: str, same: bool) -> None:
    assert same_output(printed, expected) is same


def test_huge_numbers_are_compared_soon() -> None:
    assert not same_output("1e999999999999999999", "1e999999999999999998")
    assert not same_output("9" * 100_000, "1")


# Refusals and their messages

IO = "input_output"


@pytest.mark.parametrize(
    ("task", "words"),
    [
        (None, "task=None: give a mapping"),
        ([1], r"task=\[1\]: give a mapping"),
        ({}, "tests=None: give a list of assert statements, or 'test'"),
        ({"tests": []}, r"tests=\[\]: give a list"),
        ({"tests": "assert f(1) == 1"}, "tests='assert f.1. == 1': give a list"),
        ({"tests": ["assert f(1 =="]}, "test='assert f.1 ==': not a Python statement"),
        ({"tests": ["assert f(1) == 1\0"]}, "not a Python statement: .*null bytes"),
        ({"tests": [1]}, "test=1: not a Python statement: a string is needed, not int"),
        ({"tests": [""]}, "test='': .*it contains no statement"),
        ({"tests": ["# later"]}, "test='# later': .*it contains no statement"),
        ({"tests": ["assert f(1)", {"input": "", "output": ""}]}, "a string is needed, not dict"),
        ({"tests": ["assert f(1)"], "test_setup_code": 1}, "test_setup_code=1: give a string"),
        ({"tests": ["assert f(1)"], "test_setup_code": "def"}, "test_setup_code='def': not"),
        ({"tests": ["assert f(1)"], "entry_point": 1}, "entry_point=1: give a string"),
        ({"test": "def check("}, "test='def check.': not a Python statement"),
        ({"test": CHECK}, "check.candidate.: give the function's name, entry_point"),
        ({"test": CHECK, "entry_point": 1}, "entry_point=1: give a string"),
        ({"test": CHECK, "entry_point": "f", "prompt": 1}, "prompt=1: give a string"),
        ({"test": "x = 1"}, "test='x = 1': it defines no test and asserts nothing"),
        ({"test": "def helper(): pass"}, "it defines no test"),
        ({IO: "{"}, "input_output='{': not JSON"),
        ({IO: "[]"}, r"input_output=\[\]: give a mapping"),
        ({IO: 5}, "input_output=5: give a mapping"),
        ({IO: {"inputs": []}}, r"inputs=\[\], outputs=None: give two lists"),
        ({IO: {"inputs": [], "outputs": []}}, "0 inputs and 0 outputs: give a pair each"),
        ({IO: {"inputs": ["1"], "outputs": []}}, "1 inputs and 0 outputs: give a pair each"),
        ({IO: {"inputs": [1], "outputs": ["1"]}}, "input=1, output='1': give texts"),
        ({IO: {"inputs": ["\ud800"], "outputs": ["1"]}}, "it has no bytes: 'utf-8' codec"),
        (
            {IO: {"inputs": [1], "outputs": [1], "fn_name": "f"}},
            "inputs=1: with fn_name, give lists of arguments",
        ),
        ({IO: {"inputs": [[1]], "outputs": [1], "fn_name": "a.b"}}, "fn_name='a.b': give the name"),
        (
            {IO: {"inputs": [[10**5000]], "outputs": [1], "fn_name": "f"}},
            "too long to show>: it cannot be written as a test",
        ),
        ({IO: {"inputs": [[1]], "outputs": [1], "fn_name": 5}}, "fn_name='5': give the name"),
        ({"tests": [{"input": "1"}]}, "test={'input': '1'}: give texts, 'input' and 'output'"),
        (
            {"tests": [{"input": "1", "output": "2", "testtype": "functional"}]},
            "functional tests: give the function's name, fn_name",
        ),
        (
            {"tests": [{"input": "{", "output": "2", "testtype": "functional"}], "fn_name": "f"},
            "functional tests hold JSON, a line per argument",
        ),
        (
            {"tests": [{"input": "1", "output": "2", "testtype": "odd"}], "fn_name": "f"},
            "testtype='odd': give 'stdin' or 'functional'",
        ),
        (
            {"tests": [{"input": "1", "output": "2", "testtype": ["stdin"]}]},
            "testtype=.*: give 'stdin' or 'functional'",
        ),
    ],
)
def test_bad_tasks_are_refused(task: Any, words: str) -> None:
    with pytest.raises(BadInputError, match=f"^id='id-1': .*{words}"):
        read_suite("id-1", task)
