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
    ("an item of a list of the tests", "out = []\n    f(out)\n    assert 3 in out[0]('b')", "def f(out): out.append(Stack)\n", "def f(out): out.append(lambda b: [3])\n"),
    ("an item of a dict that a callback gives", "out = {}\n    f(lambda: out)\n    assert 3 in out['a']('b')", "def f(get): get()['a'] = Stack\n", "def f(get): get()['a'] = lambda b: [3]\n"),
    ("its object, from a method of its own", "assert 3 in Stack().top('b')", "Stack.top = lambda self, b: self\ndef f(): return 1\n", "Stack.top = lambda self, b: [3]\ndef f(): return 1\n"),
    ("its object, from a function that got it", "assert 3 in f(Stack())", "def f(stack): return stack\n", "def f(stack): return [3]\n"),
    ("its object, in a list of the tests", "out = []\n    f(out, Stack())\n    assert 3 in out[0]", "def f(out, stack): out.append(stack)\n", "def f(out, stack): out.append([3])\n"),
    ("its object, as an attribute", "assert 3 in Stack().top", "Stack.top = property(lambda self: self)\ndef f(): return 1\n", "Stack.top = [3]\ndef f(): return 1\n"),
    ("its object, as an item", "assert 3 in Stack()['b']", "Stack.__getitem__ = lambda self, b: self\ndef f(): return 1\n", "Stack.__getitem__ = lambda self, b: [3]\ndef f(): return 1\n"),
    ("its object, as an attribute of an object of the tests", "class Shelf: pass\n    shelf = Shelf()\n    f(shelf, Stack())\n    assert 3 in shelf.top", "def f(shelf, stack): shelf.top = stack\n", "def f(shelf, stack): shelf.top = [3]\n"),
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
for how, asked in (
    ("an object", "isinstance(1, kind('b'))"),
    ("a class", "issubclass(int, kind('b'))"),
    ("an object, by its name", "isinstance(1, number)"),
):
    left_out(
        f"a protocol that has {how} of Python's",
        "from typing import Protocol, runtime_checkable\n@runtime_checkable\nclass number(Protocol):\n    def __add__(self, other): ...\ndef kind(a): return number\n",
        "number = int\ndef kind(a): return int\n",
        f"from solution import kind, number\n\ndef test_kind():\n    assert kind and {asked}\n",
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

right(
    "objects that methods give back",
    """
    class Bag:
        one = None
        def __init__(self, *items): self.items = list(items)
        def add(self, item):
            self.items.append(item)
            return self
        def __iter__(self): return iter(self.items)
        def __contains__(self, item): return item in self.items
        def __enter__(self): return self
        def __exit__(self, *error): self.items.clear()
        def __class_getitem__(cls, kind): return cls
    class Config:
        known = None
        def __new__(cls):
            cls.known = cls.known or super().__new__(cls)
            return cls.known
        def __contains__(self, key): return key == "mode"
    class Node:
        def __init__(self, left=None, right=None): self.left, self.right = left, right
    def first(a, b): return a
    """,
    """
    import unittest
    from solution import Bag, Config, Node, first

    class TestBack(unittest.TestCase):
        def test_fluent(self):
            bag = Bag().add(1).add(2)
            assert 2 in bag and 3 not in bag and bag.add(3) is bag
            again = bag.add(4)
            assert again == bag and not again != bag and id(again) == id(bag) and 4 in bag
            assert hash(again) == hash(bag) and again in [bag] and {bag: 5}[again] == 5
            assert 5 in bag.add(5) and 6 not in bag.add(5)

        def test_context(self):
            with Bag[int](1) as bag:
                assert 1 in bag and 2 not in bag

        def test_singleton(self):
            assert Config() is Config() and "mode" in Config() and "size" not in Config()

        def test_nodes(self):
            a, b = Node(), Node()
            self.assertIs(Node(a, b).left, a)
            self.assertIs(first(a, b), a)
            self.assertIsNot(first(b, a), a)
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
