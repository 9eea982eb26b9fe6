"""Stops texts that would run as code in the process of the tests, where the tests do not have them.

Code comes into a process as an imported file, as a text that is compiled, as bytes that are
unmarshalled or unpickled, or as a program that is started. Python reports each of these to an audit
hook, in whatever way the tests have reached it: `vars(builtins)["eval"]`, `operator.methodcaller`,
`sympy.sympify`. The answer depends on the tests and on who asks, and on what a text says only for
annotations, and for what a library kept: else a candidate could choose between a failed test and no
verdict.

Allowed are

- files of Python and its packages, and what these run while they are imported;
- `eval`, `exec` and `compile` by name in the tests, of a text that the tests contain (all others
  are found by `run_texts.py` before anything runs);
- `ast.parse`, and with it `ast.literal_eval`: nothing runs what it makes;
- annotations that only name types, where `typing` or `inspect` evaluates them;
- code that a library writes, as `attrs` and `hypothesis` do, if the call of the tests that led
  there passes no text but the tests' own objects, and no object of the candidate's, whose text the
  library could take; and if the code has no part of a text of the candidate's (`heard.py`);
- `pickle.loads(pickle.dumps(…))`, written as one expression.

A text that a library has kept in an object, or asks an object of the tests for, and runs in a call
with no text, is found as the candidate sent it, or a longer part of it is; however it was changed
only in `_KEEPERS`. A text that the tests have made (`sympify(f"{n} * x")`) is stopped as one of the
candidate's would be, as it may contain one.

Names by which a library finds an object run nothing: see `chosen.py`.
"""

from __future__ import annotations

import ast
import os
import sys
import types
from collections.abc import Callable, Iterator, Sequence
from typing import Any, NoReturn

from gatekeeper.sandbox.inside import within
from gatekeeper.sandbox.inside.assertions import called
from gatekeeper.sandbox.inside.chosen import Words
from gatekeeper.sandbox.inside.guard import Guard
from gatekeeper.sandbox.inside.heard import Heard
from gatekeeper.sandbox.inside.kinds import is_stand_in
from gatekeeper.sandbox.inside.signatures import names_types

__all__ = ["StoppedError", "Texts"]

_TEXTS = (str, bytes, bytearray, memoryview, ast.AST, types.CodeType)
_FOLDERS = tuple(f"{p}/" for p in (os.path.dirname(os.__file__), *sys.path) if p[:1] == "/")
_OURS = "gatekeeper.sandbox.inside."  # how the file names of this code begin (`start.py`)
_COMPILES = {"compile", "eval", "exec", "exec_"}
_UNPICKLES = {"load", "loads"}
_STARTS = ("exec", "posix_spawn", "system")  # how names begin of what starts a program
# Modules that write code of names which they have checked.
_WRITERS = {"collections", "dataclasses", "hypothesis", "networkx", "scipy", "unittest"}
# Modules that take texts from objects, of which they are no arguments.
_KEEPERS = {"annotationlib", "doctest", "importlib", "logging", "runpy", "zipimport"}
_ANNOTATIONS = {"inspect", "typing"}  # modules that take them from objects
# Modules that call functions which they were given, maybe earlier, with their arguments.
_RUNNERS = {
    *("asyncio", "concurrent", "contextlib", "pluggy", "_pytest"),
    *("sched", "threading", "unittest", "weakref"),
}
_RUN = (
    "the tests would run a text that the candidate may have given ({} in {}); "
    "in_process=True would judge them, and trust the candidate"
)
_CHOSEN = (
    "the tests would look for {!r:.80} in their own process, which the candidate may have chosen; "
    "in_process=True would judge them, and trust the candidate"
)


class StoppedError(Exception):
    """A text that the tests do not contain would have run as code, or chosen an object."""


class Texts:
    """The rule, for one process of tests; `sys.addaudithook(texts.hook)` puts it into effect.

    Attributes
    ----------
    stopped
        Why there is no verdict: what was stopped first. Empty if nothing was.
    module
        The name of the module that the tests run in.
    words
        The words of the tests, and names of modules that are the candidate.
    heard
        The texts that came from the candidate.
    """

    def __init__(self) -> None:
        self.stopped, self.module = "", ""
        self.words = Words()
        self.heard = Heard()
        self._programs: list[tuple[types.CodeType, Sequence[ast.AST]]] = []

    def add(self, code: types.CodeType, nodes: Sequence[ast.AST]) -> None:
        """The code, and the nodes, of a program of the tests."""
        self._programs.append((code, nodes))
        self.words.add(nodes)

    def answer(self, kind: bytes, text: str) -> tuple[bytes, str]:
        """What the judge sends to the host in the place of an answer of its own."""
        if self.stopped and kind != b"P":  # whatever the tests have made of that
            return b"I", self.stopped
        return kind, text

    def check_name(self, name: str) -> None:
        """Raises StoppedError if a name of an object in this process is not the tests' own."""
        if not self.words.have(name):
            self._stop(_CHOSEN.format(name))

    def _stop(self, why: str) -> NoReturn:
        self.stopped = self.stopped or why
        raise StoppedError(why)

    @property
    def hook(self) -> Callable[[str, tuple[Any, ...]], None]:
        """The audit hook. It raises StoppedError."""
        allows: dict[str, Callable[[types.FrameType, tuple[Any, ...]], bool]] = {
            "compile": self._compiles,
            "code.__new__": self._makes,
            "marshal.load": self._unmarshals,
            "marshal.loads": self._unmarshals,
            "os.exec": self._starts,
            "os.posix_spawn": self._starts,
            "os.system": self._starts,
            "pickle.find_class": self._unpickles,
            "subprocess.Popen": self._starts,
        }

        def hook(event: str, arguments: tuple[Any, ...]) -> None:
            if event not in allows:  # as most are: this takes part of a microsecond
                return
            frame = sys._getframe(1)
            if not allows[event](frame, arguments):
                self._stop(_RUN.format(event, frame.f_code.co_name))

        return hook

    def _compiles(self, frame: types.FrameType, arguments: tuple[Any, ...]) -> bool:
        text, file = arguments
        code, module = frame.f_code, _module(frame)
        named = not _COMPILES.isdisjoint(code.co_names)
        if code.co_filename.startswith(_OURS):
            return named
        if module == "ast" and code.co_name == "parse":
            return True
        if self._is_file(file):
            return True
        if self._is_library(code) and _root(frame) not in _KEEPERS:
            kept = module in _ANNOTATIONS
            known = not kept or self._contains(text) or names_types(_text(text))
            return named and known and self._leads(frame, "" if kept else text)
        return named and self._contains(text)

    def _makes(self, frame: types.FrameType, arguments: tuple[Any, ...]) -> bool:
        return self._is_library(frame.f_code) and self._leads(frame)

    def _starts(self, frame: types.FrameType, arguments: tuple[Any, ...]) -> bool:
        if self._is_library(frame.f_code):
            return self._leads(frame)
        return any(name.startswith(_STARTS) for name in frame.f_code.co_names)

    def _unmarshals(self, frame: types.FrameType, arguments: tuple[Any, ...]) -> bool:
        names = frame.f_locals if frame.f_code.co_filename.startswith("<frozen ") else {}
        path = names.get("bytecode_path") or names.get("fullpath")  # of an import
        return self._is_file(path) or self._unpickles(frame, arguments)

    def _unpickles(self, frame: types.FrameType, arguments: tuple[Any, ...]) -> bool:
        inner: types.FrameType | None = frame
        while inner is not None and _module(inner) == "pickle":
            inner = inner.f_back
        if inner is None or inner.f_code.co_filename not in Guard.files:
            return inner is not None and self._entry(inner) is None
        copying = (
            range(node.lineno, node.end_lineno + 1)  # type: ignore[attr-defined]
            for _, nodes in self._programs
            for node in nodes
            if called(node) in _UNPICKLES and any(called(a) == "dumps" for a in node.args)  # type: ignore[attr-defined]
        )
        return any(inner.f_lineno in lines for lines in copying)

    def _is_library(self, code: types.CodeType) -> bool:
        return code.co_filename.startswith("<frozen ") or self._is_file(code.co_filename)

    def _is_file(self, path: object) -> bool:
        return type(path) is str and path.startswith(_FOLDERS)

    def _entry(self, frame: types.FrameType) -> types.FrameType | None:
        """The call of the tests by which a library came to a frame; None: by an import."""
        entry, found = frame, False
        inner: types.FrameType | None = frame
        while inner is not None and self._is_library(inner.f_code):
            if inner.f_code.co_name == "<module>":
                return None
            found = found or (inner is not frame and _root(inner) in _RUNNERS)
            if not found:
                entry = inner
            inner = inner.f_back
        return entry

    def _leads(self, frame: types.FrameType, text: object = "") -> bool:
        """Whether a library came to a frame of its own without a text that the tests lack.

        `text` is what it compiles there.
        """
        entry, module = self._entry(frame), _module(frame)
        if entry is None:
            return True
        items = _within(_arguments(entry))
        if _root(frame) in _WRITERS:  # not of one that may have been another when it was checked
            return not any(is_stand_in(item) and issubclass(type(item), str) for item in items)
        if self.heard.are_in(_text(text)):
            return False
        texts = (*self._known(), *_of_code(*_defaults(entry), entry.f_code))
        known = set(map(id, texts))
        annotations = module in _ANNOTATIONS  # see `signatures.readable`
        for item in items:
            if is_stand_in(item):
                if not annotations:
                    return False
            elif issubclass(type(item), _TEXTS) and id(item) not in known and not _is_special(item):
                return False
        return True

    def _known(self) -> Iterator[object]:
        """The texts of the tests."""
        return _of_code(self.module, *(code for code, _ in self._programs))

    def _contains(self, text: object) -> bool:
        """Whether a text is part of one of the tests'; or of one that those run, and so on."""
        wanted = _text(text).strip()
        known = (item for item in self._known() if isinstance(item, str))
        return isinstance(text, (str, bytes)) and any(wanted in item for item in known)


def _of_code(*items: object) -> Iterator[object]:
    """Texts, and those that code uses: the very objects.

    An equal text of the candidate's is another object, unless it has one character.
    """
    todo = [*items]
    while todo:
        item = todo.pop()
        if isinstance(item, (tuple, frozenset)):
            todo += item
        elif isinstance(item, types.CodeType):
            todo += (item.co_consts, item.co_names, item.co_varnames, item.co_freevars)
            todo += (item.co_cellvars, item.co_name)
        yield item


def _text(text: object) -> str:
    """A text that is compiled, which may come as bytes; empty if it is neither."""
    if isinstance(text, bytes):
        return bytes.decode(text, "utf-8", "replace")
    return str.__str__(text) if isinstance(text, str) else ""


def _is_special(item: object) -> bool:
    """Whether an item is a name such as `__orig_bases__`, which Python puts into classes."""
    return isinstance(item, str) and item.isidentifier() and item[:2] == item[-2:] == "__"


def _module(frame: types.FrameType) -> str:
    return str(frame.f_globals.get("__name__", ""))


def _root(frame: types.FrameType) -> str:
    return _module(frame).partition(".")[0]


def _arguments(frame: types.FrameType) -> Sequence[object]:
    """The arguments of a call."""
    code, values = frame.f_code, frame.f_locals
    count = code.co_argcount + code.co_kwonlyargcount
    given = [values.get(name) for name in code.co_varnames[:count]]
    names = iter(code.co_varnames[count:])
    if code.co_flags & 4:  # CO_VARARGS
        given.append(values.get(next(names)))
    if code.co_flags & 8:  # CO_VARKEYWORDS
        given += (values.get(next(names)) or {}).values()
    return given


def _within(items: Sequence[object]) -> Iterator[object]:
    """Items, and what is in lists, dicts and the like among them; not in a code's global names."""
    todo, seen = [*items], set[int]()
    while todo:
        item = todo.pop()
        if id(item) not in seen:
            seen.add(id(item))
            yield item
            if type(item) is not dict or "__builtins__" not in item:
                todo += within.inside(item) or ()


def _defaults(frame: types.FrameType) -> Iterator[object]:
    """The defaults of the function that a frame runs, if it is found by its name."""
    name, first = frame.f_code.co_name, next(iter(_arguments(frame)), None)
    owners = [frame.f_globals, *map(vars, type(first).__mro__)]
    if isinstance(first, type):
        owners += map(vars, first.__mro__)
    for owner in owners:
        function = owner.get(name)
        while function is not None:
            function = getattr(function, "__func__", function)
            yield from getattr(function, "__defaults__", None) or ()
            yield from (getattr(function, "__kwdefaults__", None) or {}).values()
            function = vars(function).get("__wrapped__") if hasattr(function, "__dict__") else None
