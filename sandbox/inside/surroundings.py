"""Changes that tests make around a candidate: standard streams, the environment, seeds, mocks.

In one process a candidate sees such a change by itself. Here the tests' side notices it and sends
it with each question; the candidate's side applies XX"""

from __future__ import annotations

import builtins
import contextlib
import functools
import importlib
import io
import os
import re
import sys
import time
from collections.abc import Callable, Iterable, Iterator, MutableMapping
from typing import Any

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
_OUTPUTS = ("stdout", "stderr")
# Words in tests that change something; the name of the group is what must be recorded.
_MENTIONS = re.compile(
    r"(?P<logs>assertLogs|assertNoLogs|caplog|getLogger|addHandler|basicConfig)"
    r"|(?P<warnings>[wW]arn|deprecated_call)"
    r"|(?P<environ>environ|getenv|setenv|delenv)"
    r"|patch|setattr|seed|redirect|capsys|capfd|sys\.std|input|argv"
)


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
        self._streams = {name: getattr(sys, name) for name in ("stdin", *_OUTPUTS)}
        self._originals = {
            (module.__name__, name): getattr(module, name)
            for module in (builtins, time)
            for name in REPLACEABLE[module.__name__]
        }
        self._seeds: list[tuple[Any, ...]] = []
        if "seed" in source:
            self._notice_seeds()

    def _notice_seeds(self) -> None:
        random = importlib.import_module("random")
        seed = random.seed

        def noticed(*arguments: Any) -> None:
            self._seeds.append(arguments)
            seed(*arguments)

        random.seed = noticed  # type: ignore[attr-defined]

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
        if self._seeds:
            found["seed"] = self._seeds[-1]
            self._seeds.clear()
        replaced = {
            f"{module}.{name}": item
            for (module, name), original in self._originals.items()
            if (item := getattr(sys.modules[module], name)) is not original
        }
        if (random := sys.modules.get("random")) is not None:
            for name in REPLACEABLE["random"]:
                item = getattr(random, name)
                if item != getattr(random._inst, name):
                    replaced[f"random.{name}"] = item
        if replaced:
            found["replaced"] = replaced
        if sys.stdin is not self._streams["stdin"]:
            found["stdin"] = sys.stdin
        if streams := [n for n in _OUTPUTS if getattr(sys, n) is not self._streams[n]]:
            found["outputs"] = streams
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
    if "seed" in around:
        importlib.import_module("random").seed(*around["seed"])
    printed = Printed()
    with contextlib.ExitStack() as stack:
        stack.callback(printed.gather)
        for path, item in around.get("replaced", {}).items():
            module, _, name = path.partition(".")
            stack.enter_context(_set(importlib.import_module(module), name, item))
        if "stdin" in around:
            stack.enter_context(_set(sys, "stdin", around["stdin"]))
        for stream in around.get("outputs", ()):
            text = io.StringIO()
            printed.sources.append(_written(stream, text).__next__)
            stack.enter_context(_set(sys, stream, text))
        if "logs" in around.get("recorded", ()):
            stack.enter_context(_logged(printed))
        if "warnings" in around.get("recorded", ()):
            stack.enter_context(_warned(printed))
        if "environ" in around.get("recorded", ()):
            printed.sources.append(_changed_variables)
        yield printed


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
            getattr(sys, kind).write(text)
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


def _written(stream: str, text: io.StringIO) -> Iterator[list[tuple[str, Any]]]:
    """Each time, what was written since."""
    start = 0
    while True:  # not emptied, as a thread may write at this moment
        found = text.getvalue()[start:]
        start += len(found)
        yield [(stream, found)] if found else []


@contextlib.contextmanager
def _set(target: Any, name: str, value: Any) -> Iterator[None]:
    before = getattr(target, name)
    setattr(target, name, value)
    try:
        yield
    finally:
        setattr(target, name, before)
