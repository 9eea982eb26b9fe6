"""Changes that tests make around a candidate: standard streams, the environment, seeds, mocks.

In one process a candidate sees such a change by itself. Here the tests' side notices it and sends
it with each question; the candidate's side applies it while it answers. None of it is secret: it is
input that the tests prepared. Back come the variables of the environment that the candidate changed
and that the tests name.
"""

from __future__ import annotations

import builtins
import contextlib
import functools
import importlib
import operator
import os
import re
import sys
import time
import types
from collections.abc import Callable, Iterable, Iterator, MutableMapping
from typing import Any

from gatekeeper.sandbox.inside.outputs import OUTPUTS, own, taken, written

__all__ = ["REPLACEABLE", "Observer", "Printed", "applied"]

REPLACEABLE = {  # functions that a test may replace by a mock, by module
    "builtins": ("input", "print", "open"),
    "time": ("sleep", "time", "perf_counter", "monotonic"),
    "random": (
        "random",
        "randint",
        "randrange",
        "choice",
        "choices",
        "uniform",
        "shuffle",
        "sample",
    ),
}
_FOLLOWED = {"os:": ("environ",), "sys:": ("argv", "stdin", *OUTPUTS)}  # in other ways
_ABSENT = object()  # in the place of an attribute that is not there
# Modules with one generator for all -> how to get its state, and how to set it.
_GENERATORS = {"random": ("getstate", "setstate"), "numpy.random": ("get_state", "set_state")}
# Words in tests that change something; the name of the group is what must be recorded.
_MENTIONS = re.compile(
    r"(?P<logs>assertLogs|assertNoLogs|caplog|getLogger|addHandler|basicConfig)"
    r"|(?P<warnings>[wW]arn|deprecated_call)"
    r"|(?P<environ>environ|getenv|setenv|delenv)"
    r"|patch|setattr|seed|redirect|capsys|capfd|sys\.std|input|argv|context"
)
_OF_DECIMAL = ("prec", "rounding", "Emin", "Emax", "capitals", "clamp")  # of a context


class Observer:
    """The tests' side: finds differences from the state at the start.

    Parameters
    ----------
    source
        The tests.
    modules
        Names of modules that are the candidate.
    """

    def __init__(self, source: str, modules: Iterable[str] = ()) -> None:
        self._source, self._modules = source, modules
        self.active = _MENTIONS.search(source) is not None
        found = {mention.lastgroup for mention in _MENTIONS.finditer(source)}
        self._recorded = sorted(name for name in found if name)
        if not self.active:
            return
        self._environ, self._argv = dict(os.environ), [*sys.argv]
        self._decimal = _decimal() if "decimal" in source else None
        self._streams = {name: getattr(sys, name) for name in ("stdin", *OUTPUTS)}
        self._originals = {
            (module.__name__, name): getattr(module, name)
            for module in (builtins, time)
            for name in REPLACEABLE[module.__name__]
        }
        self._watched: dict[tuple[str, str], tuple[Any, Any]] = {}  # see `_watch`
        self._notice_patches()
        self._states: dict[str, Any] = {}  # of generators that were seeded, as sent before
        for name in _GENERATORS if "seed" in source else ():
            if name.partition(".")[0] in source:
                self._notice_seeds(name)

    def _notice_seeds(self, name: str) -> None:
        try:
            random = importlib.import_module(name)
        except ImportError:  # the tests cannot, either
            return
        seed = random.seed

        def noticed(*arguments: Any, **keywords: Any) -> None:
            self._states[name] = None  # to be sent, also if it is the same once more
            seed(*arguments, **keywords)

        random.seed = noticed  # type: ignore[attr-defined]

    def _notice_patches(self) -> None:
        """Watch what `patch` and `monkeypatch` replace, of modules and classes that both have."""
        if "mock" in self._source and "patch" in self._source:
            kind = importlib.import_module("unittest.mock")._patch
            enter = kind.__enter__

            def entered(made: Any) -> Any:
                found = enter(made)
                original = made.temp_original if made.is_local else _ABSENT
                self._watch(made.target, made.attribute, original)
                return found

            kind.__enter__ = entered
        if "monkeypatch" in self._source.lower():
            with contextlib.suppress(ImportError):
                fixture = importlib.import_module("_pytest.monkeypatch")
                setting = fixture.MonkeyPatch.setattr

                def set_attribute(made: Any, *arguments: Any, **keywords: Any) -> None:
                    setting(made, *arguments, **keywords)
                    owner, name, original = made._setattr[-1]
                    absent = type(original).__name__ == "NotSetType"
                    self._watch(owner, name, _ABSENT if absent else original)

                fixture.MonkeyPatch.setattr = set_attribute

    def _watch(self, owner: Any, name: str, original: Any) -> None:
        """Look at an attribute from now on, which both sides find by its path."""
        path = _path(owner)
        if path is None or path.partition(":")[0] in {"tests", *self._modules}:
            return
        if name not in {*REPLACEABLE.get(path[:-1], ()), *_FOLLOWED.get(path, ())}:
            self._watched.setdefault((path, name), (owner, original))

    @functools.cached_property
    def module(self) -> str:
        """The name by which the tests import the candidate, which its logger has; or empty."""
        names = "|".join(map(re.escape, self._modules))
        place = rf"(?:^\s*(?:from|import)\s+|import_module\(\s*['\"])((?:{names})\b[\w.]*)"
        found = re.search(place, self._source, re.MULTILINE)
        return found[1] if found else ""

    @property
    def prepares(self) -> bool:
        """Whether the tests may change something before they import the candidate."""
        return self.active and bool(self.module)

    def changes(self) -> dict[str, Any] | None:
        """The changes to send with a question; None if there are none."""
        if not self.active:
            return None
        found: dict[str, Any] = {}
        environ = dict(os.environ)
        if environ != self._environ:
            gone = dict.fromkeys(self._environ.keys() - environ.keys())
            found["environ"] = {**gone, **dict(environ.items() - self._environ.items())}
            self._environ = environ
        if sys.argv != self._argv:
            self._argv = found["argv"] = [*sys.argv]
        if self._decimal is not None and (context := _decimal()) != self._decimal:
            self._decimal = found["decimal"] = context
        for name, before in self._states.items():
            state = getattr(sys.modules[name], _GENERATORS[name][0])()
            plain = [item.tobytes() if hasattr(item, "tobytes") else item for item in state]
            if plain != before:  # also by what the tests have drawn since
                self._states[name] = plain
                found.setdefault("states", {})[name] = state
        replaced = {
            f"{module}:{name}": item
            for (module, name), original in self._originals.items()
            if (item := getattr(sys.modules[module], name)) is not original
        }
        if (random := sys.modules.get("random")) is not None:
            for name in REPLACEABLE["random"]:
                item = getattr(random, name)
                if item != getattr(random._inst, name):
                    replaced[f"random:{name}"] = item
        for (path, name), (owner, original) in self._watched.items():
            if (item := vars(owner).get(name, _ABSENT)) is not original:
                replaced[f"{path}.{name}".replace(":.", ":")] = item
        if replaced:
            found["replaced"] = replaced
        if sys.stdin is not self._streams["stdin"]:
            found["stdin"] = sys.stdin
        if streams := [name for name in OUTPUTS if own(name) is not self._streams[name]]:
            found["outputs"] = {name: own(name) is getattr(sys, name) for name in streams}
        if self._recorded:
            found["recorded"] = [*self._recorded]
        return found or None

    def is_seen(self, kind: str, record: Any) -> bool:
        """Whether the tests may see what the candidate did: print, log, warn, or set a variable."""
        return kind != "environ" or any(name in self._variables for name in record)

    def repeat(self, kind: str, record: Any) -> None:
        """Do that here. Raises ValueError if it cannot be."""
        if kind != "environ":
            _repeat(kind, record, self.module)
            return
        if "environ" not in self._recorded or type(record) is not dict:
            raise ValueError("no variables were asked for")
        for name in self._variables.intersection(record):
            if type(record[name]) not in (str, type(None)):
                raise ValueError(f"{name}: no value of a variable")
            for variables in (os.environ, self._environ):
                _set_variable(variables, name, record[name])

    @functools.cached_property
    def _variables(self) -> frozenset[str]:
        """What the tests have in quotes: among these are the variables that they name."""
        return frozenset(re.findall(r"(?<=['\"])[^'\"\n=]+(?=['\"])", self._source))


class Printed(list[tuple[str, Any]]):
    """What the candidate printed, logged and warned of, as far as it is requested.

    Attributes
    ----------
    sources
        Each gives what has come since it was asked before.
    """

    def __init__(self) -> None:
        super().__init__()
        self.sources: list[Callable[[], list[tuple[str, Any]]]] = []

    def gather(self) -> None:
        for source in self.sources:
            self += source()

    def take(self) -> list[tuple[str, Any]]:
        """What has come so far, which is sent at once: a callback may print or look, too."""
        self.gather()
        found = [*self]
        self.clear()
        return found


@contextlib.contextmanager
def applied(around: dict[str, Any]) -> Iterator[Printed]:
    """The candidate's side: apply the changes.

    Yields what was printed in the context; `Observer.repeat` takes it on the tests' side.
    """
    if not _known:
        _known.update(os.environ)
    for name, value in around.get("environ", {}).items():
        for variables in (os.environ, _known):
            _set_variable(variables, name, value)
    if "argv" in around:
        sys.argv = around["argv"]
    if "decimal" in around:
        decimal, (*values, traps) = importlib.import_module("decimal"), around["decimal"]
        signals = [getattr(decimal, name) for name in traps]
        decimal.setcontext(decimal.Context(*values, flags=[], traps=signals))
    for name, state in around.get("states", {}).items():
        getattr(importlib.import_module(name), _GENERATORS[name][1])(state)
    printed = Printed()
    with contextlib.ExitStack() as stack:
        stack.callback(printed.gather)
        for path, item in around.get("replaced", {}).items():
            module, _, inside = path.partition(":")
            owner, _, name = inside.rpartition(".")
            found = importlib.import_module(module)
            found = operator.attrgetter(owner)(found) if owner else found
            stack.enter_context(_set(found, name, item))
        if "stdin" in around:
            stack.enter_context(_set(sys, "stdin", around["stdin"]))
        for stream, here in around.get("outputs", {}).items():
            printed.sources.append(functools.partial(taken, stream))
            if here:  # else the candidate's own is in its place
                stack.enter_context(written(stream))
        if "logs" in around.get("recorded", ()):
            stack.enter_context(_logged(printed))
        if "warnings" in around.get("recorded", ()):
            stack.enter_context(_warned(printed))
        if "environ" in around.get("recorded", ()):
            printed.sources.append(_changed_variables)
        yield printed


def _decimal() -> tuple[Any, ...]:
    """The context in which decimal numbers are computed."""
    context = importlib.import_module("decimal").getcontext()
    traps = [signal.__name__ for signal, traps in context.traps.items() if traps]
    return *(getattr(context, name) for name in _OF_DECIMAL), traps


_known: dict[str, str] = {}  # the environment as both sides know it


def _changed_variables() -> list[tuple[str, Any]]:
    """The variables that the candidate changed since; None for one that is gone."""
    now = dict(os.environ)
    changed = {name: now.get(name) for name, _ in now.items() ^ _known.items()}
    for name, value in changed.items():
        _set_variable(_known, name, value)
    return [("environ", changed)] if changed else []


def _set_variable(variables: MutableMapping[str, str], name: str, value: str | None) -> None:
    if value is None:
        variables.pop(name, None)
    else:
        variables[name] = value


@contextlib.contextmanager
def _logged(records: list[tuple[str, Any]]) -> Iterator[None]:
    """Record every log record of any level: the tests' own loggers filter them."""
    logging = importlib.import_module("logging")
    handler, root = logging.Handler(), logging.getLogger()
    usual = {*vars(logging.makeLogRecord({})), "message", "asctime"}

    def emit(r: Any) -> None:
        # The text as it is now: arguments may change.
        trace = logging.Formatter().formatException(r.exc_info) if r.exc_info else None
        error = r.exc_info[1] if r.exc_info else None
        extra = {name: value for name, value in vars(r).items() if name not in usual}
        shown = (r.getMessage(), r.msg, r.args, r.funcName, error, trace, extra)
        records.append(("log", (r.name, r.levelno, *shown)))

    handler.emit = emit
    before = root.level
    root.addHandler(handler)
    root.setLevel(1)
    try:
        yield
    finally:
        root.setLevel(before)
        root.removeHandler(handler)


@contextlib.contextmanager
def _warned(printed: Printed) -> Iterator[None]:
    warnings = importlib.import_module("warnings")

    def gather() -> list[tuple[str, Any]]:
        found = [("warning", (w.category, str(w.message))) for w in caught]
        caught.clear()
        return found

    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        printed.sources.append(gather)
        yield


def _repeat(kind: str, record: Any, module: str) -> None:
    """Print, log or warn; `module` is the name of the candidate's module for the tests."""
    match kind, record:
        case "stdout" | "stderr", str(text):
            own(kind).write(text)
        case "log", (str(name), int(level), str(text), *shown):
            name = module if module and name == "candidate" else name
            _log(importlib.import_module("logging").getLogger(name), level, text, *shown)
        case "warning", (type() as category, str(text)) if issubclass(category, Warning):
            importlib.import_module("warnings").warn(text, category, stacklevel=2)
        case _:
            raise ValueError(f"{kind!r:.80}: nothing that could be repeated")


def _log(logger: Any, level: int, text: str, message: Any, arguments: Any, *shown: Any) -> None:
    """Log what the candidate did: with its text, whatever the message and its arguments are."""
    function, error, trace, extra = shown
    if not logger.isEnabledFor(level):
        return
    given = (arguments,) if isinstance(arguments, dict) else arguments
    caught = (type(error), error, None) if isinstance(error, BaseException) else None
    place = ("candidate.py", 0, message, given, caught, function, extra)
    record = logger.makeRecord(logger.name, level, *place)
    if type(trace) is str:
        record.exc_text = trace
    record.getMessage = lambda: text  # which handlers write; later it is made of the arguments
    logger.handle(record)
    del record.getMessage


@contextlib.contextmanager
def _set(target: Any, name: str, value: Any) -> Iterator[None]:
    before = vars(target).get(name, _ABSENT)
    setattr(target, name, value)
    try:
        yield
    finally:
        if before is _ABSENT:
            delattr(target, name)
        else:
            setattr(target, name, before)


def _path(owner: Any) -> str | None:
    """`module:` or `module:Class` by which each process finds it; None for anything else.

    `module:name` for an object that the module of its class has, such as `os.environ`.
    """
    if type(owner) is types.ModuleType:
        return f"{owner.__name__}:" if sys.modules.get(owner.__name__) is owner else None
    if not issubclass(type(owner), type):
        module = type(owner).__module__
        known = vars(sys.modules[module]) if module in sys.modules else {}
        name = next((n for n, item in known.items() if item is owner), None)
        return f"{module}:{name}" if name and hasattr(owner, "__dict__") else None
    try:
        found = operator.attrgetter(owner.__qualname__)(sys.modules[owner.__module__])
    except (AttributeError, KeyError):
        return None
    return f"{owner.__module__}:{owner.__qualname__}" if found is owner else None
