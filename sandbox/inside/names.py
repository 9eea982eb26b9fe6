"""The candidate's names in the process of the tests: as their global names, and as modules.

A module runs the candidate's code when it is imported, again when it is reloaded, and once more, as
another module, when it is imported after the tests took it out of `sys.modules`.
"""

from __future__ import annotations

import builtins
import contextlib
import importlib.machinery
import types
from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Any

from gatekeeper.sandbox.inside.exceptions import under_test
from gatekeeper.sandbox.inside.kinds import RemoteClass, Trust, is_stand_in, kind_of, mark
from gatekeeper.sandbox.inside.peer import Peer
from gatekeeper.sandbox.inside.remote import JudgePeer

__all__ = ["Candidate", "Importer", "Names"]

_PLACE = "/gatekeeper/tests/test.py"  # there is no such folder
_USUAL = frozenset(dir(types.ModuleType("usual")))  # names of every module
_TAME = frozenset(  # modules whose functions never execute text or bytes from their arguments
    """
    abc collections collections.abc contextlib dataclasses datetime decimal enum fractions
    functools io itertools numbers string typing
    """.split()  # noqa: SIM905
)


class _Code:
    """The candidate's code, as a module of its process.

    Parameters
    ----------
    peer
        The tests' end of the connection.
    reading
        The host's reading of the tests.
    module
        The module there.
    beside
        Whether each thread gets a conversation of its own from now on.
    """

    def __init__(
        self, peer: JudgePeer, reading: Mapping[str, Any], module: Any, *, beside: bool = False
    ) -> None:
        self.peer, self.module = peer, module
        mark(module, Trust.MODULE)
        self._reading, self._beside = reading, beside
        self._started: tuple[int, tuple[Any, ...]] | None = None
        # The candidate's names; imported objects with the module that they are from (`child.py`).
        self._origins: dict[str, str | None] | None = None

    def begin(self) -> None:
        """Let it run, while this process does something else."""
        start = "start", self.module, self._beside
        self._started = self.peer.begin(*start), start
        if self._beside:
            self._beside = False
            self.peer.converse()

    def run(self, *, again: bool = False) -> dict[str, str | None]:
        """Wait until it has run, and return its names; raises the exception that it raised."""
        if self._origins is None or again:
            if self._started is None:
                self.begin()
            (number, start), self._started = self._started, None  # type: ignore[misc]
            before = self._origins
            self._origins = before or {}  # it may call back, and so import itself
            try:
                self._origins = dict(self.peer.finish(number, *start))
            except BaseException:  # a module that cannot be reloaded stays as it is
                self._origins = before
                raise
        return self._origins

    def other(self) -> _Code:
        """The same code as another module, which has not run."""
        made = Peer.ask(self.peer, "module", self.module)  # the judge's own counts as an answer
        if not (is_stand_in(made) and made.__class__ is types.ModuleType):
            raise AssertionError(f"{type(made).__name__}: the candidate gave it for a module")
        return _Code(self.peer, self._reading, made)

    def find(self, name: str) -> Any:
        """The candidate's object of that name; Python's own if it is from one of `_TAME`.

        Raises AttributeError.
        """
        origins = self.run()
        if name not in self._reading["asked"]:
            real = _of_python(name, origins.get(name))
            if real is not None:  # which the tests judge as any value
                self.peer.evidence = True
                self.peer.answered += 1
                return real
        evidence = self.peer.evidence
        try:
            found = getattr(self.module, name)
        except AttributeError:  # tests may do without it, and then test something of their own
            self.peer.evidence = evidence
            raise
        if isinstance(found, RemoteClass):
            kind_of(found).named = True
        if name in self._reading["classes"]:
            usual = isinstance(found, type)
            if isinstance(found, RemoteClass):
                kind_of(found).tested = True
                kind_of(found).operated = name in self._reading["operated"]
            elif usual and issubclass(found, BaseException):
                under_test(found)
        else:
            self.peer.decisions.give([found])  # the tests may take a class for a function
            usual = is_stand_in(found) and found.__class__ is types.FunctionType
        # Tests may look at the kind of an object alone, so one of another kind is an answer.
        self.peer.answered += not usual
        return found


def _of_python(name: str, origin: object) -> Any:
    """The object that a candidate says it imported under that name; None: use the candidate's.

    Only classes and decorators make a difference here. Any other function runs in the candidate's
    process, like its own functions: `pickle.loads` would execute its argument in this process.
    """
    if type(origin) is not str:
        return None
    module, whole, _ = origin.partition("=")
    if module not in _TAME:
        return None
    real = importlib.import_module(module)
    return real if whole else getattr(real, name, None)


class Names(dict[str, Any]):
    """The tests' global names: their own, then the candidate's, then the built-in ones.

    Parameters
    ----------
    peer, reading
        As for `_Code`.
    late
        Whether the code runs only when the tests import it, as they may prepare its surroundings.
        Else it runs now, which on two processors saves a tenth of a task's time.
    """

    def __init__(self, peer: JudgePeer, reading: Mapping[str, Any], *, late: bool) -> None:
        super().__init__(__name__=reading["module_name"], __file__=_PLACE, __builtins__=builtins)
        self.peer, self._reading = peer, reading
        root = peer.meant(peer.ROOT, ("shared", "builtins", "module"))
        self.code = _Code(peer, reading, root, beside=reading["beside"])
        self.find = self.code.find
        self._late = late
        self.imported = False  # whether an import of the candidate has succeeded
        self.failed: BaseException | None = None  # what the first that did not has raised
        self._in_classes: Collection[str] = ()
        self._lent: dict[str, Any] = {}
        if not late:
            self.code.begin()

    def started(self) -> None:
        """Wait until the candidate's code has run; raises the exception that it raised."""
        if not self._late:
            self.code.run()
            self.peer.evidence = False  # the start alone is no evidence

    def check(self) -> None:
        """Raise what an import of the candidate raised, where none has succeeded.

        Tests may do without it (`except ImportError: solution = None`), and then test nothing.
        """
        if self.failed is not None and not self.imported:
            raise self.failed

    def __missing__(self, name: str) -> Any:
        theirs = name in self._reading["asked"]
        if hasattr(builtins, name) and not theirs:
            raise KeyError(name)
        if (real := self._reading["real"].get(name)) and not theirs:
            module, _, attribute = real.partition(":")
            found = importlib.import_module(module)
            return getattr(found, attribute) if attribute else found
        if name not in self:
            raise KeyError(name)
        found = self.find(name)
        if is_stand_in(found):  # other values may change, so they are not kept
            self[name] = found
        return found

    def __contains__(self, name: object) -> bool:
        if super().__contains__(name) or name in self.code.run():
            return True
        # That a candidate does not define it is an answer.
        self.peer.answered += name in self._reading["theirs"]
        return False

    @contextlib.contextmanager
    def bound(self, names: Collection[str]) -> Iterator[None]:
        """Bind names of the candidate's that the bodies of classes use: there Python asks no dict.

        Values that are no stand-ins only meanwhile, as they may change.
        """
        self._in_classes = names
        if not self._late:
            self.bind()
        try:
            yield
        finally:
            for name, value in self._lent.items():
                if not is_stand_in(value) and self.get(name) is value:
                    del self[name]
            self._lent.clear()

    def bind(self) -> None:
        """Bind them, as the code has run."""
        for name in self._in_classes:
            if not dict.__contains__(self, name) and name in self.code.run():
                with contextlib.suppress(AttributeError, KeyError):  # Python finds its own
                    self._lent[name] = self[name] = self[name]


_ABOUT = frozenset({"__version__", "__author__", "__license__"})  # `__all__` would choose names


class Candidate(types.ModuleType):
    """`import solution`: a module whose attributes are the candidate's names."""

    def __init__(self, name: str, code: _Code) -> None:
        super().__init__(name)
        vars(self).update(_code=code, _originals={}, _imported=False)

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__") and name not in _ABOUT:
            raise AttributeError(name)
        return vars(self)["_code"].find(name)

    def __dir__(self) -> list[str]:
        return sorted({*vars(self)["_code"].run(), *_USUAL})

    def __setattr__(self, name: str, value: Any) -> None:
        if name.startswith("__"):
            super().__setattr__(name, value)
        else:
            module = vars(self)["_code"].module
            with contextlib.suppress(AttributeError):
                vars(self)["_originals"].setdefault(name, getattr(module, name))
            setattr(module, name, value)

    def __delattr__(self, name: str) -> None:
        """Undo a setting: mocks do that, as they find no such name in the module itself."""
        module = vars(self)["_code"].module
        if name in vars(self)["_originals"]:
            setattr(module, name, vars(self)["_originals"].pop(name))
        else:
            delattr(module, name)


class Importer:
    """Finds the modules that stand for the candidate; none of them exists as a file."""

    def __init__(self, names: Names, modules: Sequence[str]) -> None:
        self._names, self._modules = names, modules
        self._made: set[str] = set()

    def find_spec(
        self, name: str, path: object = None, target: object = None
    ) -> importlib.machinery.ModuleSpec | None:
        loader: Any = self  # it has the methods of a loader, whose base class is slow to import
        return importlib.machinery.ModuleSpec(name, loader) if name in self._modules else None

    def create_module(self, spec: importlib.machinery.ModuleSpec) -> types.ModuleType:
        code = self._names.code
        if spec.name in self._made:  # the tests took it out of `sys.modules`
            code = code.other()
        self._made.add(spec.name)
        return Candidate(spec.name, code)

    def exec_module(self, module: types.ModuleType) -> None:
        try:
            vars(module)["_code"].run(again=vars(module)["_imported"])  # a reload runs it again
        except BaseException as error:
            self._names.failed = self._names.failed or error
            raise
        vars(module)["_imported"] = self._names.imported = True
        self._names.bind()
