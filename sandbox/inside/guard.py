"""Decides what a candidate may do with objects of the tests."""

from __future__ import annotations

import builtins
import functools
import types
from collections.abc import Iterator, Sequence
from typing import Any

from gatekeeper.sandbox.inside.kinds import is_stand_in
from gatekeeper.sandbox.inside.operations import WRITES, is_private
from gatekeeper.sandbox.inside.private import only_read

__all__ = ["EXCUSED", "RAISED", "Guard", "RefusedError", "is_failure", "parts"]

EXCUSED = "__gatekeeper_excused__"  # an attribute of failed assertions that may be tried again
RAISED = "__gatekeeper_raised__"  # an attribute of exceptions that came from the candidate

_GROUP: Any = getattr(builtins, "BaseExceptionGroup", ())  # images may have Python 3.10
_TEXTS = {
    "str": ("__str__", "__repr__"),
    "repr": ("__repr__",),
    "format": ("__format__", "__str__", "__repr__"),
}
# Operations that write beside these methods of a class, which may refuse it.
_BESIDE = {"own": "__setattr__", "disown": "__delattr__"}
_PLAIN_WRITES = (object.__setattr__, object.__delattr__)
_LOCKS = ("Lock", "Event", "Condition", "Semaphore", "BoundedSemaphore", "Barrier")
_QUEUES = ("Queue", "LifoQueue", "PriorityQueue")
# A logger of the tests may be used, but not silenced: its handlers may be what the tests look at.
_LOGGING = frozenset(
    """
    debug info warning warn error exception critical fatal log isEnabledFor getEffectiveLevel
    hasHandlers name level
    """.split()  # noqa: SIM905
)


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
    """

    # Classes of the standard library whose attributes are allowed; objects of others can only be
    # called, iterated and indexed.
    _OPEN = frozenset(
        {
            *(("_io", "StringIO"), ("_io", "BytesIO"), ("random", "Random")),
            *(("re", "Match"), ("re", "Pattern"), ("types", "SimpleNamespace")),
            *(("unittest.mock", "Mock"), ("unittest.mock", "MagicMock")),
            *(("unittest.mock", "AsyncMock"), ("logging", "Logger"), ("argparse", "Namespace")),
            ("logging", "RootLogger"),
            *(("_thread", "lock"), ("_thread", "RLock"), ("_queue", "SimpleQueue")),
            *(("threading", name) for name in _LOCKS),
            *(("asyncio.locks", name) for name in _LOCKS),
            *(("queue", name) for name in _QUEUES),
            *(("asyncio.queues", name) for name in _QUEUES),
        }
    )
    files = frozenset({"test.py", "setup.py"})  # file names of the tests' own code
    _GENERATOR = frozenset({"send", "throw", "close", "asend", "athrow", "aclose"})
    _NAMES = frozenset({"__name__", "__qualname__", "__doc__", "__module__"})

    def __init__(self, module: str) -> None:
        self.module = module
        self.helpers: set[str] = set()  # functions of the tests that assert
        self.programs: Sequence[str] = ()  # of the tests
        # Objects, by id, on which a descriptor of the candidate's works; and what they got by it.
        self.described: dict[int, Any] = {}
        self._attached: dict[tuple[int, str], Any] = {}
        self.asserting: frozenset[int] = frozenset()  # lines of the running test that assert

    def check(self, operation: str, target: Any, arguments: tuple[Any, ...]) -> None:
        """Raises RefusedError if the candidate must not do this."""
        if operation in _TEXTS and not self._shows(target, _TEXTS[operation]):
            raise RefusedError(f"the text of the tests' {type(target).__name__} is not accessible")
        if operation != "get" and operation not in WRITES:
            return
        name = arguments[0]
        if type(name) is not str or not self._allows(operation, target, name):
            raise RefusedError(
                f"{name!r:.80} of the tests' {type(target).__name__} is not accessible"
            )

    def _shows(self, target: Any, names: tuple[str, ...]) -> bool:
        """Whether the text of an object comes from code of the tests.

        A generated text, such as a dataclass's `repr`, would show every value that it contains.
        """
        if isinstance(target, types.FunctionType | types.BuiltinFunctionType | type):
            return True
        if isinstance(target, BaseException):
            return not is_failure(target)  # which may show what was expected
        own = (vars(b)[n] for n in names for b in type(target).__mro__[:-1] if n in vars(b))
        code = getattr(next(own, None), "__code__", None)
        return code is not None and code.co_filename in self.files

    def _allows(self, operation: str, target: Any, name: str) -> bool:
        kind = target if isinstance(target, type) else type(target)
        if operation == "get" and name in self._NAMES:
            return isinstance(target, types.FunctionType | types.MethodType | type)
        own = kind.__module__ == self.module
        if name == "__dict__" and operation == "get" and own and kind is type(target):
            return True  # `attributes`, as `vars`, `dir` and `getattr` show it
        if name.startswith("_"):  # see `attaches`
            return operation != "get" and is_private(name) and own and kind is type(target)
        if isinstance(target, types.GeneratorType | types.AsyncGeneratorType):
            return operation == "get" and name in self._GENERATOR
        if any(b.__module__ == "unittest.mock" and name in vars(b) for b in kind.__mro__[1:]):
            # `configure_mock`, `reset_mock`, `mock_calls`: with these a mock says what it is told,
            # or forgets its calls. (Each mock has a class of its own, whose names are the tests'.)
            return False
        if kind.__module__ == "logging" and name not in _LOGGING:
            return False
        if operation == "get":
            named = (kind.__module__, kind.__qualname__)
            error = isinstance(target, BaseException) and not is_failure(target)
            return own or named in self._OPEN or error
        # Data of an instance may be changed, but not its methods or its class.
        if isinstance(target, type) or not (own or isinstance(target, types.SimpleNamespace)):
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
