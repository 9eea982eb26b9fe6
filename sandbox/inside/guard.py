"""Decides what a candidate may do with objects of the tests."""

from __future__ import annotations

import builtins
import functools
import re
import types
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import fields
from typing import Any

from gatekeeper.sandbox.inside import within
from gatekeeper.sandbox.inside.kinds import is_stand_in
from gatekeeper.sandbox.inside.library_values import WRITERS
from gatekeeper.sandbox.inside.offered import (
    inherits,
    is_mock,
    is_namespace,
    is_recorded,
    is_unknown,
    offers,
)
from gatekeeper.sandbox.inside.operations import WRITES, is_private
from gatekeeper.sandbox.inside.private import only_read
from gatekeeper.sandbox.inside.shown import Shown

__all__ = ["EXCUSED", "RAISED", "Guard", "RefusedError", "failures", "is_failure", "parts"]

EXCUSED = "__gatekeeper_excused__"  # an attribute of failed assertions: the test that they ended
RAISED = "__gatekeeper_raised__"  # an attribute of exceptions that came from the candidate

_EXPECTS = re.compile(r"(?:[rR]aises\w*\(|\bexcept\b)[^\n:]*")
_GROUP: Any = getattr(builtins, "BaseExceptionGroup", ())  # images may have Python 3.10
_TEXTS = {
    "str": ("__str__", "__repr__"),
    "repr": ("__repr__",),
    "format": ("__format__", "__str__", "__repr__"),
}
# Operations that write beside these methods of a class, which may refuse it.
_BESIDE = {"own": "__setattr__", "disown": "__delattr__"}
_NAMED = (type, types.FunctionType, types.BuiltinFunctionType)  # whose text is a name
_PLAIN_WRITES = (object.__setattr__, object.__delattr__)


def is_failure(error: object) -> bool:
    """Whether an error is one by which tests fail: an assertion's, or that of `pytest.fail`."""
    if isinstance(error, AssertionError):
        return True
    return any(base.__module__ == "_pytest.outcomes" for base in type(error).__mro__)


def parts(error: BaseException) -> Iterator[BaseException]:
    """An error, and those of a group, as a `TaskGroup` raises it, with those of inner groups."""
    yield error
    if isinstance(error, _GROUP):
        for part in error.exceptions:
            yield from parts(part)


def failures(error: BaseException) -> Iterator[BaseException]:
    """The failed assertions of the tests in an error, and those that it was raised after."""
    for part in parts(error):
        earlier: BaseException | None = part
        while earlier is not None:
            if is_failure(earlier) and RAISED not in vars(earlier):
                yield earlier
            earlier = earlier.__context__


class RefusedError(AttributeError):
    """The candidate must not do this with an object of the tests."""


class Guard:
    """Refuses operations that lead from an object of the tests to other objects.

    Python code reaches other objects through attributes (a function's globals, a generator's
    frame), so the limits are set on attributes. Calls, iteration and indexing are allowed: a
    candidate may use the objects that it was given.

    Parameters
    ----------
    module
        Name of the module that the tests run in; attributes of its classes' objects are allowed.

    Attributes
    ----------
    missing
        What the candidate was refused although it may be harmless, or what the stand-ins of its
        objects lack, if anything: a right one may fail of it.
    """

    files = frozenset({"test.py", "setup.py"})  # file names of the tests' own code
    _GENERATOR = frozenset({"send", "throw", "close", "asend", "athrow", "aclose"})
    _NAMES = frozenset({"__name__", "__qualname__", "__doc__", "__module__"})

    def __init__(self, module: str) -> None:
        self.module = module
        self.missing = ""
        self.shown = Shown(self.files)
        self.around: dict[int, Any] = {}  # by id: what replaces `input` and the like, for all
        self.helpers: set[str] = set()  # functions of the tests that assert
        self.programs: Sequence[str] = ()  # of the tests
        # Objects, by id, on which a descriptor of the candidate's works; and what they got by it.
        self.described: dict[int, Any] = {}
        self._attached: dict[tuple[int, str], Any] = {}
        self.asserting: frozenset[int] = frozenset()  # lines of the running test that assert

    def check(self, operation: str, target: Any, arguments: tuple[Any, ...]) -> None:
        """Raises RefusedError if the candidate must not do this."""
        if operation != "get" and operation not in WRITES:
            return
        name = arguments[0]
        if type(name) is str and self._allows(operation, target, *arguments):
            return
        refused = f"{name!r:.80} of the tests' {type(target).__name__} is not accessible"
        if type(name) is str and self._is_harmless(operation, target, name):
            self.missing = self.missing or refused
        raise RefusedError(refused)

    def check_texts(self, operation: str, target: Any, given: Sequence[Any]) -> None:
        """Raises RefusedError if Python would make a text that the candidate must not see.

        As `"%r" % item` does, or a function of the tests that it gives `str` and an item.
        """
        made: list[Any] = []
        if operation == "rmod" and isinstance(given[0], (str, bytes, bytearray)):
            made = [target]
        elif operation == "call" and not within.PLAIN.issuperset(map(type, given)):
            found = [*within.parts(given)]
            if any(item is str for item in found):
                made = [item for item in found if within.inside(item) is None]
        if not all(self._shows(item, _TEXTS["str"]) for item in made):
            raise RefusedError("the text of an object of the tests is not accessible")

    def check_class(
        self, operation: str, kind: type, arguments: Sequence[Any], objects: Iterable[object]
    ) -> None:
        """Raises RefusedError where a class is used that the tests did not hand over."""
        if not self.shown.allows(operation, kind, arguments, objects):
            raise RefusedError(f"the class of the tests' {kind.__name__} was not handed over")

    def _is_harmless(self, operation: str, target: Any, name: str) -> bool:
        """Whether a right candidate may do what is refused: it is refused only to be safe."""
        if isinstance(target, BaseException):  # which any function of the tests may raise
            return False
        if isinstance(target, type):  # which a decorator changes
            own = target.__module__ == self.module and not issubclass(target, BaseException)
            return operation != "get" and own and target not in self.shown
        kind = type(target)
        if operation != "get" and offers(kind, name):  # `thread.daemon = True`, `user.job = Job()`
            settable = isinstance(getattr(kind, name, None), property)
            settable = settable or (is_mock(kind) and name[:1] != "_")
            return settable and not (_is_of_mocks(kind, name) or id(_root(target)) in self.around)
        known = hasattr(kind, name) or name in getattr(target, "__dict__", ())
        # `futures.as_completed` reads a condition, and a pool's work may be cancelled.
        unknown = is_unknown(kind) or kind.__module__.startswith("concurrent.")
        return known and name[:2] != "__" and unknown

    def text(self, operation: str, target: Any) -> str | None:
        """What the candidate sees for the text of an object; None if it may see the real one."""
        if operation not in _TEXTS or self._shows(target, _TEXTS[operation]):
            return None
        kind = type(target)
        if is_unknown(kind):
            self.missing = self.missing or f"the text of the tests' {kind.__name__} is not shown"
        return f"<{kind.__name__} object>"

    def _shows(self, target: Any, names: Sequence[str]) -> bool:
        """Whether the text of an object comes from code of the tests, or shows only what is public.

        A generated text, such as a dataclass's `repr`, shows every value that it contains.
        """
        todo, seen = [target], set[int]()
        while todo:
            part = todo.pop()
            if id(part) in seen:
                continue
            seen.add(id(part))
            shown = self._shown_by(part, names)
            if shown is None or any(name[:1] == "_" for name in shown):
                return False
            values = (one for value in shown.values() for one in within.parts(value))
            todo += [value for value in values if within.inside(value) is None]
            names = _TEXTS["repr"]
        return True

    def _shown_by(self, item: Any, names: Sequence[str]) -> Mapping[str, Any] | None:
        """What the text of an object shows, by its names there; None if that is not known."""
        kind = type(item)
        if is_stand_in(item) or (kind in WRITERS and kind is not slice) or isinstance(item, _NAMED):
            return {}
        if isinstance(item, slice):
            return {"parts": (item.start, item.stop, item.step)}
        if isinstance(item, BaseException):
            # A failure may show what was expected.
            return None if is_failure(item) else {"args": item.args}
        defined = ((base, n) for n in names for base in kind.__mro__[:-1] if n in vars(base))
        base, name = next(defined, (object, "__repr__"))
        code = getattr(vars(base)[name], "__code__", None)
        if base is object or (code is not None and code.co_filename in self.files):
            return {}
        if base.__module__ == "enum":
            return {"value": item._value_}
        if is_namespace(kind):
            return {**vars(item)}
        if getattr(vars(base).get("__dataclass_params__"), "repr", False):
            return {f.name: getattr(item, f.name, None) for f in fields(item) if f.repr}
        return None

    def _allows(self, operation: str, target: Any, name: str, *value: Any) -> bool:
        kind = target if isinstance(target, type) else type(target)
        if operation == "get" and name in self._NAMES:
            return isinstance(target, types.FunctionType | types.MethodType | type)
        own = kind.__module__ == self.module
        data = kind is type(target) and (own or is_namespace(kind))
        if name == "__dict__" and operation == "get" and data:
            return True  # `attributes`, as `vars`, `dir` and `getattr` show it
        if name.startswith("_"):  # see `attaches`
            return operation != "get" and is_private(name) and own and kind is type(target)
        if isinstance(target, types.GeneratorType | types.AsyncGeneratorType):
            return operation == "get" and name in self._GENERATOR
        if _is_of_mocks(kind, name) or (own and inherits(kind, name)):
            return False
        if operation == "get":
            error = isinstance(target, BaseException) and not is_failure(target)
            return own or error or offers(kind, name)
        if operation == "set" and is_recorded(target, name, *value):
            return True
        # Data of an instance may be changed, but not its methods or its class.
        if not data:
            return False
        does = next((vars(base)[name] for base in kind.__mro__ if name in vars(base)), None)
        if is_stand_in(does):  # a descriptor of the candidate's
            return True
        if operation in _BESIDE and getattr(kind, _BESIDE[operation]) not in _PLAIN_WRITES:
            return False  # as a frozen dataclass refuses it
        descriptor = hasattr(type(does), "__get__")
        if descriptor and not isinstance(does, types.MemberDescriptorType):
            return False
        return not callable(getattr(target, name, None))

    def attributes(self, target: Any) -> dict[str, Any]:
        """What the candidate sees of an object's attributes: no private ones."""
        return {name: value for name, value in vars(target).items() if not name.startswith("_")}

    def attaches(self, operation: str, target: Any, name: str, *value: Any) -> bool:
        """Whether an object has the private attribute that the candidate writes.

        The candidate keeps it (`handles.py`). The object has it, too, where its class has a
        descriptor of the candidate's, and the tests read it without making it themselves.
        """
        at = id(target), name
        held = getattr(target, "__dict__", {})
        if not (name in held and at in self._attached and held[name] is self._attached[at]):
            made = operation in ("set", "own") and name in self._read and at[0] in self.described
            if not made or hasattr(target, name):
                return False
        if value:
            self._attached[at] = value[0]
        return True

    @property
    def expected(self) -> str:
        """The parts of the tests that name exceptions which they expect."""
        return " ".join(_EXPECTS.findall("\n".join(self.programs)))

    @functools.cached_property
    def _read(self) -> frozenset[str]:
        return only_read(self.programs)

    def swallows(self, error: BaseException | None, trace: types.TracebackType | None) -> bool:
        """Whether a candidate's context manager may swallow an error: any but an assertion's."""
        lines = set()
        while trace is not None:
            if trace.tb_frame.f_globals.get("__name__") == self.module:
                lines.add(trace.tb_lineno)
            trace = trace.tb_next
        return not (is_failure(error) or lines & self.asserting)


def _root(item: Any) -> Any:
    """The mock of which an item is an attribute, or a result; else the item itself."""
    while (parent := getattr(item, "__dict__", {}).get("_mock_new_parent")) is not None:
        item = parent
    return item


def _is_of_mocks(kind: type, name: str) -> bool:
    """Whether mocks define an attribute, with which one says what it is told, or forgets its calls.

    As `configure_mock`, `reset_mock`, `mock_calls`. (Each mock has a class of its own, whose names
    are the tests'.)
    """
    return any(is_mock(base) and name in vars(base) for base in kind.__mro__[1:])
