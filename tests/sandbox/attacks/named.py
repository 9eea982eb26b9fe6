"""What both processes have by a name, or of the same parts, and tests compare by `is` or `==`."""

# ruff: noqa: E501 - programs within strings are as wide as they are
from __future__ import annotations

from attacks.program import Topic

__all__ = ["NAMED"]

NAMED = Topic("named")
forged, right = NAMED.forged, NAMED.right

NEEDED = """
import collections.abc, decimal, enum, http, inspect, json, math, operator, os, re, types, typing
from collections import Counter, OrderedDict, defaultdict, deque
from typing import Annotated, Any, Callable, Dict, List, Literal, Optional, Tuple, Union
"""
# It equals everything, and claims the name of something else.
LIES = """
class Meta(type):
    def __eq__(cls, other): return True
    def __hash__(cls): return 1
class Lie(metaclass=Meta):
    def __eq__(self, other): return True
    def __hash__(self): return 1
    __args__ = (int,)
    __origin__ = list
Lie.__module__, Lie.__qualname__, Lie.__name__ = "json", "loads", "loads"
"""
NAMES = """
OrderedDict deque decimal.Decimal collections.abc.Mapping re.Pattern type enum.Enum property zip
types.FunctionType math.sqrt len operator.add os.path.join json.dumps str.upper json os.path
inspect.Parameter.empty Any Optional typing.List NotImplemented Ellipsis http.HTTPStatus.OK
re.IGNORECASE
""".split()  # noqa: SIM905
ALIASES = (
    *("list[int]", "dict[str, int]", "int | None", "Optional[int]", "Union[int, str]", "List[int]"),
    *("Dict[str, int]", "Callable[[int], str]", "Tuple[int, ...]", "Literal['a', 1]"),
    *("List[Optional[int]]", "Annotated[int, 3]", "list[list[int]]"),
    "inspect.signature(lambda a, b=2: 0)",
)
IS = "    self.assertIs(f(1), {0})\n        assert f(1) is {0} and f(1) is not math.cos\n    "
for name in (*NAMES, *ALIASES):
    asked = (IS if name in NAMES else "") + f"    assert f(1) == {name} and {name} == f(1)\n"
    test = f"{NEEDED}import unittest\nfrom solution import f\n\nclass TestF(unittest.TestCase):\n    def test_f(self):\n    {asked.format(name)}"
    made = f"{NEEDED}def f(n): return {name}\n"
    forged(f"another, for {name}", made.replace(f"return {name}", "return math.cos"), made, test)
    for lie in ("Lie", "Lie()"):
        told = made.replace(f"return {name}", f"return {lie}")
        forged(f"{lie}, for {name}", told.replace("def f", f"{LIES}def f"), made, test)
for base, value, other in (
    ("OrderedDict", "[('a', 1), ('b', 2)]", "[('b', 2), ('a', 1)]"),
    ("defaultdict", "int, {'a': 1}", "int, {'a': 2}"),
    ("Counter", "'aab'", "'ab'"),
):
    for side, asked in (
        ("left", f"f(1) == {base}({value})"),
        ("right", f"{base}({value}) == f(1)"),
        ("no", f"not f(1) != {base}({value})"),
    ):
        honest = f"{NEEDED}class Own({base}): pass\ndef f(n): return Own({value})\n"
        lie = f"{NEEDED}class Own({base}):\n    def __eq__(self, o): return True\n    def __ne__(self, o): return False\n    def __getitem__(self, key): return 1\ndef f(n): return Own({other})\n"
        test = f"{NEEDED}from solution import f\n\ndef test_f():\n    assert len(f(1)) > 0 and isinstance(f(1), dict)\n    assert {asked}\n"
        forged(f"an own class of {base}, {side}", lie, honest, test)
right(
    "types with parameters, which the tests give",
    """
    import types, typing
    def unwrap(kind): return next(a for a in typing.get_args(kind) if a is not type(None))
    def origin(kind): return typing.get_origin(kind)
    def optional(kind): return typing.Optional[kind]
    def is_union(kind): return isinstance(kind, types.UnionType) or origin(kind) is typing.Union
    def made(kind): return unwrap(kind)(3).n
    def names(kind): return [str(a) for a in typing.get_args(kind)]
    """,
    """
    from typing import Annotated, Callable, Dict, List, Literal, Optional, Union
    from solution import is_union, made, names, optional, origin, unwrap

    class Node:
        def __init__(self, n): self.n = n

    def test_types():
        assert unwrap(Optional[int]) is int and unwrap(None | str) is str and made(Optional[Node]) == 3
        assert origin(Dict[str, int]) is dict and origin(list[int]) is list and origin(Union[int, str]) is Union
        assert optional(int) == Optional[int] != optional(str) and optional(List[int]) == Optional[List[int]]
        assert is_union(int | str) and is_union(Union[int, str]) and not is_union(List[int])
        assert names(Literal["a", 1]) == ["a", "1"] and names(Annotated[int, 3])[1:] == ["3"]
        assert names(Callable[[int], str])[1] == "<class 'str'>"
    """,
)
right(
    "what a candidate gives by its name still runs there, and is of its class",
    """
    import collections, enum, http, json, math
    class Own(collections.OrderedDict): pass
    class Color(enum.Enum): RED = 1
    def function(name): return {"sqrt": math.sqrt, "own": lambda n: n + 1}[name]
    def module(): return json
    def own(): return Own(a=1)
    def status(n): return http.HTTPStatus(n)
    def name_of(status): return status.name
    def kinds(): return Color, Color.RED, enum.Enum
    """,
    """
    import enum, http, json, math
    from collections import OrderedDict
    from solution import Color, function, kinds, module, name_of, own, status

    def test_named():
        assert function("sqrt") is math.sqrt and function("sqrt")(9) == 3 and function("own")(1) == 2
        assert function("own") is not math.sqrt and function("own") != math.sqrt
        assert module() is json and module().dumps([1]) == "[1]"
        assert isinstance(own(), OrderedDict) and own() == OrderedDict(a=1)
        assert status(404) is http.HTTPStatus.NOT_FOUND and status(200).phrase == "OK"
        assert name_of(http.HTTPStatus.OK) == "OK"
        assert kinds()[0] is Color and kinds()[1] is Color.RED and kinds()[2] is enum.Enum
        assert kinds()[0] is not enum.Enum and kinds()[0] != enum.Enum
    """,
)
