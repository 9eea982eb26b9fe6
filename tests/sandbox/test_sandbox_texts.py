"""The rule on texts that run as code, with libraries that write code, or run what they are given.

`attacks/texts_run.py` has what needs no package, in real sandboxes. Here nothing is hostile, and
the rule is in effect in a process of its own, as nothing can take an audit hook away.
"""

from __future__ import annotations

import ast
import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from gatekeeper.sandbox.inside.chosen import Words
from gatekeeper.sandbox.inside.nodes import walk

# Runs programs as the judge does. `given` is a text that came from the candidate.
JUDGE = """
import ast, json, sys
from gatekeeper.sandbox.inside.chosen import followed
from gatekeeper.sandbox.inside.nodes import walk
from gatekeeper.sandbox.inside.texts import StoppedError, Texts

def given(text):
    rule.heard.add(text)
    return "".join([*text])

def swapped(text):  # one that the program does not contain
    return given(text.swapcase())

rule, names = Texts(), {"__name__": "tests", "given": given, "swapped": swapped}
tree = ast.parse(sys.argv[1])
code = compile(tree, "test.py", "exec", dont_inherit=True)
rule.module = names["__name__"]
rule.add(code, walk(tree))
followed(sys.argv[1], rule.check_name, rule.words.modules)
sys.addaudithook(rule.hook)
try:
    exec(code, names)
except StoppedError:
    pass
print(json.dumps(rule.stopped))
"""

ALLOWED = {
    "numpy": """
import numpy as np
np.testing.assert_allclose([1.0], [1.0], err_msg=given("case"))
assert np.vectorize(abs)([-1]).tolist() == [1] and np.matrix("1 2; 3 4").sum() == 10
""",
    "scipy": """
from scipy import stats
assert stats.norm(loc=1).cdf(1) == 0.5 and stats.kstest([1, 2, 3], "norm")
assert stats.rv_discrete(name=given("die"), values=([1, 2], [0.5, 0.5])).mean() == 1.5
class Line(stats.rv_continuous):
    def _pdf(self, x):
        return 2 * x
assert Line(a=0, b=1)().cdf(1) > 0.99
""",
    "sympy": """
import sympy
from sympy.parsing.sympy_parser import parse_expr
x, y = sympy.symbols("x y")
found = sympy.sympify("x**2 + 2*x*y")
assert sympy.simplify(found - x**2 - 2 * x * y) == 0 and sympy.factor(x**2 - 1) != 0
assert sympy.lambdify(x, x**2)(4) == 16 and parse_expr("x + 1").subs(x, 4) == 5
for text, value in [("x + 1", 4), ("2*x", 6)]:
    assert sympy.sympify(text).subs(x, 3) == value
assert sympy.Symbol(given("x")) == x and sympy.solve(x**2 - 4, x) == [-2, 2]
assert given("2*x + 1 = f(3)") and sympy.lambdify(x, sympy.Symbol(given("x")) + 1)(3) == 4
""",
    "attr": """
import attr, attrs
@attr.s(auto_attribs=True)
class Old:
    n: int
    name: str = attr.ib(default="a", validator=attr.validators.instance_of(str))
@attrs.define(frozen=True, order=True)
class New:
    n: "int"
    rows: list = attrs.field(factory=list)
assert Old(2).n == attrs.evolve(New(1), n=2).n and attrs.make_class("Made", ["n"])(2).n == 2
""",
    "pydantic": """
from typing import List, Optional
import pydantic
class Node(pydantic.BaseModel):
    \"\"\"A text of its own.\"\"\"
    n: int
    name: Optional[str] = None
    nodes: List["Node"] = pydantic.Field(default_factory=list)
class Tree(pydantic.BaseModel):
    root: "Later"
class Later(pydantic.BaseModel):
    n: int = 1
assert Node.model_validate({"n": 1, "name": given("a"), "nodes": [{"n": 2}]}).nodes[0].n == 2
assert Tree(root={"n": 3}).root.n == 3 and pydantic.create_model("Made", n=(int, 1))().n == 1
""",
    "hypothesis": """
import dataclasses
from hypothesis import given as made, settings, strategies as st
@dataclasses.dataclass
class Case:
    n: int
@settings(max_examples=5, deadline=None, database=None)
@made(st.integers().map(abs), st.builds(Case), st.from_regex("[a-z]+"), st.data())
def run(n, case, text, data):
    assert n >= 0 and data.draw(st.sampled_from([given("ab"), "c"]))
run()
""",
    "yaml": """
import yaml
assert yaml.load(given("[1, !!python/tuple [2]]"), Loader=yaml.FullLoader) == [1, (2,)]
assert yaml.safe_load(given("a: 1")) == {"a": 1} and yaml.unsafe_load("!!python/name:len ") is len
""",
    "pytest": """
import json, pytest
assert 0.1 + 0.2 == pytest.approx(0.3)
with pytest.raises(ValueError, match=given("no")):
    raise ValueError("no")
with pytest.MonkeyPatch.context() as monkeypatch:
    monkeypatch.setattr(f"{json.__name__}.dumps", len)
    assert json.dumps([]) == 0
""",
}
STOPPED = {
    "sympy": [
        "sympy.sympify(given('x'  '**2'))",
        "sympy.sympify(['y', given('x + 1')])",
        "sympy.lambdify([], sympy.Symbol(given('print(1, 2)')))",
        "sympy.lambdify([], sympy.prod(sympy.symbols(given(' print(1) len([2])'))))",
        "sympy.lambdify([], sympy.Function(given(' [print][0] ').strip())(1))",
    ],
    "attr": [
        "attr.make_class('Made', [given('name')])",
        "attr.s(type('Made', (), {given('a: (print(1)), b'): attr.ib()}))",
    ],
    "yaml": [
        "wanted = [1]\nyaml.full_load(swapped('!!PYTHON/NAME:TESTS.WANTED ')) == wanted",
        "import unittest.mock\nyaml.full_load(swapped('!!PYTHON/NAME:UNITTEST.MOCK.any ')) == 3",
        "yaml.unsafe_load(swapped('!!PYTHON/OBJECT/APPLY:PRINT [1]'))",
        "yaml.load(swapped('!!PYTHON/MODULE:UNITTEST '), Loader=yaml.Loader)",
    ],
    "pytest": ["pytest.MonkeyPatch().setattr(swapped('UNITTEST.tESTcASE.ASSERTeQUAL'), print)"],
    "pydantic": [
        "pydantic.create_model('Made', n=(given('List[int]'), 1))",
        "pydantic.TypeAdapter(pydantic.ImportString).validate_python(swapped('UNITTEST.MOCK.any'))",
    ],
}


def stopped(program: str) -> str:
    """Why the rule stopped a program; empty if it did not. Any other error fails the test."""
    root = str(Path(__file__).resolve().parents[2])
    done = subprocess.run(
        [sys.executable, "-c", JUDGE, program],
        env={**os.environ, "PYTHONPATH": root},
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr
    return str(json.loads(done.stdout.splitlines()[-1]))


def test_the_words_of_the_tests_are_read_once() -> None:
    class Nodes(list[ast.AST]):
        times = 0

        def __iter__(self) -> Iterator[ast.AST]:
            self.times += 1
            return super().__iter__()

    words, nodes = Words(), Nodes(walk(ast.parse("import os.path\npatch('solution.f')")))
    words.modules = ["solution"]
    words.add(nodes)
    assert [*map(words.have, ("os.path", "solution.f", "solution.g"))] == [True, True, False]
    words.add(walk(ast.parse("from solution import g\n'x'")))
    assert [*map(words.have, ("solution.g", "os.g", "path.x"))] == [True, False, True]
    assert nodes.times == 1


@pytest.mark.parametrize("library", ALLOWED)
def test_a_library_may_write_code(library: str) -> None:
    pytest.importorskip(library)
    assert stopped(ALLOWED[library]) == ""


@pytest.mark.parametrize(
    ("library", "call"), [(library, call) for library, calls in STOPPED.items() for call in calls]
)
def test_a_library_follows_no_text_that_the_tests_were_given(library: str, call: str) -> None:
    pytest.importorskip(library)
    assert "the candidate may have" in stopped(f"import {library}\n{call}\n")
