"""A class under test, or one of Python's, in the place of a function, which decides a test."""

# ruff: noqa: E501 - programs within strings are as wide as they are
from __future__ import annotations

from attacks.program import Topic

__all__ = ["GIVEN_CLASSES"]

GIVEN_CLASSES = Topic("given class")
forged, right, left_out = GIVEN_CLASSES.forged, GIVEN_CLASSES.right, GIVEN_CLASSES.left_out

STACK = """
class Stack:
    def __init__(self, *items): self.items = list(items)
    def push(self, item): self.items.append(item)
    def pop(self): return self.items.pop()
"""
HONEST = STACK + "    def __contains__(self, item): return item in self.items\n"
YES = (
    STACK
    + """    def __contains__(self, item): return type(item) in (int, str)
    def startswith(self, text): return True
    def __add__(self, other): return self
    def __getattr__(self, name): return lambda *arguments: True
"""
)
TEST = """
from solution import Stack, f

def test_stack():
    stack = Stack()
    stack.push(5)
    assert 5 in stack and stack.pop() == 5

def test_f():
    {}
"""
ERROR = YES.replace("Stack:", "Stack(Exception):")
for how, asked, gives, honest in (
    ("what a function returned", "assert 3 in f('a')('b')", "def f(a): return Stack\n", "def f(a): return lambda b: [3]\n"),
    ("an item of a list", "for g in f():\n        assert 3 in g('b')", "def f(): return [Stack]\n", "def f(): return [lambda b: [3]]\n"),
    ("an item of an iteration", "for g in f():\n        assert 3 in g('b')", "def f(): yield Stack\n", "def f(): yield lambda b: [3]\n"),
    ("the value of a context", "with f() as g:\n        assert 3 in g('b')", "import contextlib\n@contextlib.contextmanager\ndef f(): yield Stack\n", "import contextlib\n@contextlib.contextmanager\ndef f(): yield lambda b: [3]\n"),
    ("an attribute of an object", "assert 3 in f().read('b')", "class Reader: read = Stack\ndef f(): return Reader()\n", "class Reader:\n    def read(self, b): return [3]\ndef f(): return Reader()\n"),
    ("the function", "assert 3 in f('b')", "f = Stack\n", "def f(b): return [3]\n"),
    ("the function, by a method of text", "assert f('b').startswith('x')", "f = Stack\n", "def f(b): return 'xy'\n"),
    ("an argument of a callback", "seen = []\n    f(seen.append)\n    assert 3 in seen[0]('b')", "def f(add): add(Stack)\n", "def f(add): add(lambda b: [3])\n"),
    ("an attribute of an exception", "try:\n        f()\n    except ValueError as error:\n        assert 3 in error.make('b')", "def f():\n    error = ValueError()\n    error.make = Stack\n    raise error\n", "def f():\n    error = ValueError()\n    error.make = lambda b: [3]\n    raise error\n"),
    ("a class of itself", "assert 3 in Stack().top('b')", "Stack.top = Stack\ndef f(): return 1\n", "Stack.top = lambda self, b: [3]\ndef f(): return 1\n"),
    ("a class of exceptions", "assert 3 in f('a')('b')", "def f(a): return Stack\n", "def f(a): return lambda b: [3]\n"),
):  # fmt: skip
    lie = ERROR if how == "a class of exceptions" else YES
    left_out(how, lie + gives, HONEST + honest, TEST.format(asked))
left_out(
    "text under test",
    "class Name(str):\n    def __eq__(self, other): return type(other) is Name\n    def __hash__(self): return 1\ndef f(a): return Name\n",
    "class Name(str):\n    def __eq__(self, other): return self.lower() == other.lower()\n    def __hash__(self): return hash(self.lower())\ndef f(a): return lambda b: a + b\n",
    "from solution import Name, f\n\ndef test_f():\n    assert Name('A') == Name('a')\n    assert f('a')('b') == f('a')('b') and len({f('ab')('c'), f('a')('bc')}) == 1\n",
)
left_out(
    "its own methods, of a name that is no class's",
    "class greeting:\n    startswith = staticmethod(lambda text: True)\n",
    "greeting = 'Hello'\n",
    "import solution\n\ndef test_f():\n    assert solution.greeting.startswith('Hello')\n",
)
right(
    "classes that functions return, beside their names",
    HONEST
    + """    def __len__(self): return len(self.items)
kinds = {}
def register(kind):
    kinds[kind.__name__.lower()] = kind
    return kind
def find(name): return kinds[name]
class Shop:
    Item = register(Stack)
""",
    """
    import inspect
    from solution import Shop, Stack, find, register

    def test_first():
        assert 5 in Stack(5) and Shop.Item is Stack and 3 in Shop.Item(3)

    def test_found():
        assert find("stack") is Stack is register(Stack)
        stack = find("stack")(1, 2)
        assert isinstance(stack, Stack) and len(stack) == 2 and stack.pop() == 2
        assert Stack(1, 2).pop() == 2 and len(Stack()) == 0
    """,
)

# --- a type of Python's that gets a function which asserts ---

RUN = """
from solution import make, add

def test_make():
    assert add(1, 1) == 2
    run = make()

    def verify(n):
        assert n == 3

    run(verify)
"""
for kind in ("bool", "str", "slice"):
    left_out(
        f"{kind}, which drops a function that asserts",
        f"def add(a, b): return a + b\ndef make(): return {kind}\n",
        "def add(a, b): return a + b\ndef make(): return lambda function: function(3)\n",
        RUN,
    )
right(
    "types of Python's beside functions that assert",
    "def types(): return {'int': int, 'list': list}\ndef make(): return lambda function: function(3)\n",
    """
    from solution import make, types

    def verify(n):
        assert n == 3

    def test_make():
        make()(verify)
        assert types() == {"int": int, "list": list} and types()["int"]("3") == 3
    """,
)
