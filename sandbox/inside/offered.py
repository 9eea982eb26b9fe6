"""What a candidate may use of the objects of Python's own classes that the tests hand over.

An attribute may lead to other objects of the tests: a timer's arguments, a task's frame, a
logger's handlers. So a candidate gets of each class only what cannot. Of classes that are not in
the table it gets nothing, and a right candidate that needs it fails (`Guard.missing`).
"""

from __future__ import annotations

import builtins
import sys
from typing import Any

from gatekeeper.sandbox.inside.facts import standard
from gatekeeper.sandbox.inside.kinds import is_stand_in, kind_of
from gatekeeper.sandbox.inside.packages import is_of_package, named

__all__ = ["claimed", "inherits", "is_mock", "is_namespace", "is_recorded", "is_unknown", "offers"]

_QUEUES = ("Queue", "LifoQueue", "PriorityQueue")
_LOCKS = ("Lock", "Event", "Condition", "Semaphore", "BoundedSemaphore", "Barrier")
_THREAD = frozenset(
    """
    start join run cancel is_alive name daemon ident native_id getName isDaemon
    """.split()  # noqa: SIM905
)
_FUTURE = frozenset(
    """
    result exception done cancelled cancel running cancelling uncancel get_name set_name
    set_result set_exception add_done_callback remove_done_callback
    """.split()  # noqa: SIM905
)
# Of a pool: no more than to add work and to wait, as what is cancelled may assert something.
_POOL = frozenset({"submit", "map"})
_WORK = frozenset({"result", "exception", "done", "cancelled", "running", "add_done_callback"})
# A logger may be used, but not silenced: its handlers may be what the tests look at.
_LOGGER = frozenset(
    """
    debug info warning warn error exception critical fatal log isEnabledFor getEffectiveLevel
    hasHandlers name level
    """.split()  # noqa: SIM905
)
# Of a test that listens itself: its assertions, not what they compare with, nor its runs.
_CASE = frozenset({"id", "shortDescription", "fail", "addCleanup"})
_MOCKS = ("Mock", "MagicMock", "AsyncMock", "NonCallableMock", "NonCallableMagicMock")
_OFFERED: dict[str, dict[str, frozenset[str] | None]] = {  # None: all public attributes
    "_io": dict.fromkeys(("StringIO", "BytesIO")),
    "random": {"Random": None},
    "re": dict.fromkeys(("Match", "Pattern")),
    "types": {"SimpleNamespace": None},
    "argparse": {"Namespace": None},
    "unittest.mock": dict.fromkeys(_MOCKS),
    "logging": {**dict.fromkeys(("Logger", "RootLogger"), _LOGGER), "LogRecord": None},
    "queue": dict.fromkeys(_QUEUES),
    "asyncio.queues": dict.fromkeys(_QUEUES),
    "asyncio.locks": dict.fromkeys(_LOCKS),
    "_queue": {"SimpleQueue": None},
    "_thread": dict.fromkeys(("lock", "RLock")),
    "threading": {**dict.fromkeys(_LOCKS), **dict.fromkeys(("Thread", "Timer"), _THREAD)},
    "_asyncio": dict.fromkeys(("Future", "Task"), _FUTURE),
    "asyncio.tasks": {"_GatheringFuture": _FUTURE},
    "concurrent.futures._base": {"Future": _WORK},
    "concurrent.futures.thread": {"ThreadPoolExecutor": _POOL},
    "unittest.case": {"TestCase": _CASE},
    "unittest.async_case": {"IsolatedAsyncioTestCase": _CASE},
}
_NAMESPACES = frozenset(
    {("types", "SimpleNamespace"), ("argparse", "Namespace"), ("logging", "LogRecord")}
)
# Modules of classes whose other attributes lead to other objects: functions, generators, mocks …
_CLOSED = frozenset({"builtins", "types", "functools", "logging", "unittest.mock"})


def offers(kind: type, name: str) -> bool:
    """Whether the candidate may get that attribute of an object of a class of Python's own."""
    names = _OFFERED.get(kind.__module__, {}).get(kind.__qualname__, frozenset())
    return names is None or name in names


def inherits(kind: type, name: str) -> bool:
    """Whether a class of the tests has an attribute of Python's that the candidate must not get."""
    base = next((base for base in kind.__mro__ if name in vars(base)), object)
    assertion = name.startswith("assert") and not name.endswith(("Logs", "Warns", "WarnsRegex"))
    known = base.__name__ in _OFFERED.get(base.__module__, {})
    return known and not (assertion or offers(base, name))


def is_unknown(kind: type) -> bool:
    """Whether a class is one of Python's own of which nothing is said here, or of a package."""
    module, name = kind.__module__, kind.__qualname__
    if module in _CLOSED or name in _OFFERED.get(module, {}):
        return False
    return module.partition(".")[0] in sys.stdlib_module_names or is_of_package(module)


def is_mock(kind: type) -> bool:
    return kind.__module__ == "unittest.mock"


def is_namespace(kind: type) -> bool:
    """Whether the objects of a class of Python's own have any attributes, which are data."""
    return (kind.__module__, kind.__qualname__) in _NAMESPACES


def claimed(item: Any) -> Any:
    """The class that `isinstance` finds an object of the tests to have, besides its own.

    (module, name) of a class of Python's own, or of a package; that of the candidate's which a mock
    imitates; else None. Not of functions and partial ones: what looks into those would look for
    their parts.
    """
    kind: Any = type(item)
    if any(map(is_mock, kind.__mro__)):
        kind = item.__class__
        if is_stand_in(kind):
            if kind_of(kind).inner is not None:
                return kind
            kind = kind_of(kind).shown  # that of a function, or of what it returned
    if kind.__module__ in ("builtins", "functools"):
        return None
    return (kind.__module__, kind.__qualname__) if standard(kind) else named(kind)


def is_recorded(target: Any, name: str, value: object) -> bool:
    """Whether a mock takes a value that the candidate sets: data, in the place of data.

    An object, another mock, or an exception with attributes could say that it was called as the
    tests expect.
    """
    kind = type(target)
    if not is_mock(kind) or is_stand_in(value) or callable(value) or _has_attributes(value):
        return False
    return not callable(vars(target).get(name)) and name != "method_calls"


def _has_attributes(value: object) -> bool:
    """Whether a value is an exception that has more than those of its class of Python's own."""
    if not isinstance(value, BaseException):
        return False
    own = vars(builtins).get(type(value).__name__) is type(value)
    return not own or any(name[:2] != "__" for name in vars(value))
