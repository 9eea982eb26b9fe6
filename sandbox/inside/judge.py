"""The process of the tests: runs them against a candidate in another process.

The candidate's functions and classes appear in the tests' namespace as stand-ins. Answers, frames
on the socket to the host:

    P  the next test passed
    E  a test failed, or the candidate's code did; text
    I  the tests cannot be run here at all, whatever the candidate does; text
    M  memory ran out; text
    G  the candidate's process ended, or closed the connection; text
    D  done: all tests passed
"""

from __future__ import annotations

import ast
import builtins
import contextlib
import importlib.machinery
import json
import re
import socket
import sys
import types
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from typing import Any

from gatekeeper.sandbox.inside import assertions, batching, collect, counting, frameworks
from gatekeeper.sandbox.inside.conversations import GoneError
from gatekeeper.sandbox.inside.guard import RAISED, Guard
from gatekeeper.sandbox.inside.kinds import RemoteClass, is_stand_in, kind_of
from gatekeeper.sandbox.inside.nodes import FUNCTIONS, in_classes, walk
from gatekeeper.sandbox.inside.remote import JudgePeer
from gatekeeper.sandbox.inside.surroundings import Observer
from gatekeeper.sandbox.inside.texts import Texts
from gatekeeper.sandbox.inside.unseen import THREADS, Unseen

__all__ = ["describe", "judge"]

_PLACE = "/gatekeeper/tests/test.py"  # there is no such folder
MODULE, SETUP_FILE, TEST_FILE = "tests", "setup.py", "test.py"
MAX_TEXT = 500  # characters of an exception's message
# Words in tests that let something run beside them, or wait for what the candidate runs.
_BESIDE = re.compile(f"{THREADS}|sleep")
_TAME = frozenset(  # modules whose functions never execute text or bytes from their arguments
    """
    abc collections collections.abc contextlib dataclasses datetime decimal enum fractions
    functools io itertools numbers string typing
    """.split()  # noqa: SIM905
)


def describe(error: BaseException) -> str:
    """`Type: message`, even if the methods of the exception fail."""
    try:
        text = str(error)
    except BaseException:  # a hostile __str__ affects only its own message
        text = "(no message)"
    name = type(error).__name__
    return (f"{name}: {text}" if text else name)[:MAX_TEXT]


class _Names(dict[str, Any]):
    """The tests' global names: their own, then the candidate's, then the built-in ones."""

    def __init__(self, peer: JudgePeer, reading: Mapping[str, Any]) -> None:
        super().__init__(__name__=reading["module_name"], __file__=_PLACE, __builtins__=builtins)
        self.peer, self._reading = peer, reading
        self.module = peer.meant(peer.ROOT, ("shared", "builtins", "module"))
        self._bound: dict[str, str | None] = {}
        self._start = self.module, reading["beside"]
        self._question = peer.begin("start", *self._start)
        if reading["beside"]:
            peer.converse()

    def started(self) -> None:
        """Wait until the candidate's code has run; raises the exception that it raised."""
        # The candidate's names; imported objects with the module that they are from (`child.py`).
        self._bound = dict(self.peer.finish(self._question, "start", *self._start))

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
        if name in self._bound or super().__contains__(name):
            return True
        # That a candidate does not define it is an answer.
        self.peer.answered += name in self._reading["theirs"]
        return False

    @contextlib.contextmanager
    def bound(self, names: Collection[str]) -> Iterator[None]:
        """Bind names of the candidate's that the bodies of classes use: there Python asks no dict.

        Values that are no stand-ins only meanwhile, as they may change.
        """
        values: dict[str, Any] = {}
        for name in names:
            if name in self._bound and not dict.__contains__(self, name):
                with contextlib.suppress(AttributeError, KeyError):  # Python finds its own
                    values[name] = self[name] = self[name]
        try:
            yield
        finally:
            for name, value in values.items():
                if not is_stand_in(value) and self.get(name) is value:
                    del self[name]

    def find(self, name: str) -> Any:
        """The candidate's object of that name; Python's own if it is from one of `_TAME`.

        Raises AttributeError.
        """
        if name not in self._reading["asked"]:
            real = _of_python(name, self._bound.get(name))
            if real is not None:  # which the tests judge as any value
                self.peer.evidence = True
                self.peer.answered += 1
                return real
        found = getattr(self.module, name)
        if name in self._reading["classes"]:
            usual = isinstance(found, type)
            if isinstance(found, RemoteClass):
                kind_of(found).tested = True
                kind_of(found).operated = name in self._reading["operated"]
        else:
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


class _Candidate(types.ModuleType):
    """`import solution`: a module whose attributes are the candidate's names."""

    def __init__(self, name: str, names: _Names) -> None:
        super().__init__(name)
        vars(self).update(_names=names, _originals={})

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        return vars(self)["_names"].find(name)

    def __setattr__(self, name: str, value: Any) -> None:
        if name.startswith("__"):
            super().__setattr__(name, value)
        else:
            module = vars(self)["_names"].module
            with contextlib.suppress(AttributeError):
                vars(self)["_originals"].setdefault(name, getattr(module, name))
            setattr(module, name, value)

    def __delattr__(self, name: str) -> None:
        """Undo a setting: mocks do that, as they find no such name in the module itself."""
        module = vars(self)["_names"].module
        if name in vars(self)["_originals"]:
            setattr(module, name, vars(self)["_originals"].pop(name))
        else:
            delattr(module, name)


class _Importer:
    """Finds the modules that stand for the candidate; none of them exists as a file."""

    def __init__(self, names: _Names, modules: Sequence[str]) -> None:
        self._names, self._modules = names, modules

    def find_spec(
        self, name: str, path: object = None, target: object = None
    ) -> importlib.machinery.ModuleSpec | None:
        loader: Any = self  # it has the methods of a loader, whose base class is slow to import
        return importlib.machinery.ModuleSpec(name, loader) if name in self._modules else None

    def create_module(self, spec: importlib.machinery.ModuleSpec) -> types.ModuleType:
        return _Candidate(spec.name, self._names)

    def exec_module(self, module: types.ModuleType) -> None:
        pass


def judge(
    connection: socket.socket,
    send: Callable[[bytes, str], None],
    *,
    texts: Texts,
    reading: str,
    setup: str,
    tests: Sequence[str],
) -> None:
    """Run the tests in their order; the first failure ends the run.

    Parameters
    ----------
    connection
        The stream to the candidate's process.
    send
        Sends an answer to the host: its kind and a text.
    texts
        Is given the programs of the tests before they run.
    reading
        The host's reading of the tests, as JSON: `Reading.for_judge` of sandbox/reading.py; and
        "beside", if the candidate's code mentions threads.
    setup, tests
        Programs.
    """
    facts = json.loads(reading)
    where, test = "in the code", ""
    guard = Guard(facts["module_name"])
    guard.programs = (setup, *tests)
    text = "\n".join(guard.programs)
    texts.module = facts["module_name"]
    peer = JudgePeer(connection, guard=guard, observer=Observer(text, facts["modules"]))
    count = counting.Count(peer.asserting.frames)

    def settle(wait: Callable[[], None]) -> None:
        """Raise what went wrong beside the code of the tests, where it raised nothing there."""
        wait()
        count.check(peer.handed)
        if peer.failed is not None:
            raise peer.failed
        if peer.gone:
            raise GoneError

    try:
        peer.waits = _BESIDE.search(text) is not None
        beside = facts.get("beside") or peer.waits
        names = _Names(peer, {**facts, "beside": beside})
        names |= {counting.COUNTER: count, batching.BATCHER: batching.Batcher(peer)}
        frameworks.without_main(text)
        sys.meta_path.insert(0, _Importer(names, facts["modules"]))
        if MODULE not in facts["modules"]:
            sys.modules[MODULE] = frameworks.module_of(MODULE, names)
        theirs = frozenset(facts["theirs"])
        ahead: list[_Program] = []

        def prepared(source: str, file: str) -> _Program:
            program = ahead.pop(0) if ahead else _Program(source, file, guard, theirs)
            texts.add(program.code, program.nodes)
            return program

        # Meanwhile the candidate's code runs: on two processors it saves a tenth of a task's time.
        with contextlib.suppress(Exception):  # the same exception is raised again below
            if setup.strip():
                ahead.append(_Program(setup, SETUP_FILE, guard, theirs))
            ahead.append(_Program(tests[0], TEST_FILE, guard, theirs))
        names.started()
        peer.evidence = False  # the start alone is no evidence
        where = "in the setup code"
        unseen = Unseen(text, peer.matters)
        if setup.strip():
            prepared(setup, SETUP_FILE).run(names, guard)
        for number, test in enumerate(tests, 1):
            where = f"in test {number}"
            program = prepared(test, TEST_FILE)
            program.run(names, guard)
            check = collect.check(program.tree, names.find, facts)
            for case, run in collect.items(
                program.tree, program.nodes, names, check, lambda: peer.answered
            ):
                where = f"in test {number}, {case}"
                run()
            settle(unseen.check)
            if number < len(tests):
                send(b"P", "")
        settle(unseen.finish)
        if not count.reached:
            # Where the candidate was asked nothing, it is not the candidate's failure.
            raise AssertionError(_NEVER) if peer.answered else _NotHereError(_NEVER)
        if not peer.evidence:
            raise AssertionError(_NOTHING)
        came = count.codes.values()
        for function in (*peer.handed_over.left_out(came), *peer.wrappers.left_out()):
            raise _NotHereError(f"{function}: it asserts, and the candidate left it out")
        send(b"P", "")
        send(b"D", "")
    except MemoryError:
        send(b"M", f"{where}: out of memory")
    except GoneError:
        send(b"G", where)
    except BaseException as error:
        line = _line(error, {SETUP_FILE: setup, TEST_FILE: test})
        if peer.gone:
            send(b"G", where)
        elif isinstance(error, _NotHereError):
            send(b"I", f"{where}: {error}")
        elif (not peer.matters(error) and _is_missing(error, line)) or (
            not peer.answered and _skips(error)  # what they ask of the machine, not the candidate
        ):
            send(b"I", f"{where}: the tests cannot be run here: {describe(error)}")
        else:
            shown = f" ({line})" if line else ""
            failed = f"{where}{shown}: {describe(error)}"
            missing = guard.missing  # for want of which a right candidate may fail
            send(b"I" if missing else b"E", f"{missing}; {failed}" if missing else failed)
    finally:
        sys.modules.pop(MODULE, None)


class _NotHereError(Exception):
    """The tests test nothing here."""


_NOTHING = "the candidate gave no value to judge, only objects that would judge themselves"
_NEVER = "no assertion was reached"


def _is_missing(error: BaseException, line: str) -> bool:
    """Whether a line of the tests, or pytest, needs a module that is not there; not the candidate.

    Only an import names a module: the candidate may have given the tests the class of the error, or
    the name of a module.
    """
    if not isinstance(error, ImportError) or not error.name:
        return False
    named = rf"\bimport\b|import\w*\(\s*['\"]{re.escape(error.name)}\b"
    known = isinstance(sys.modules.get(error.name), _Candidate)
    return not known and (not line or re.search(named, line) is not None)


def _skips(error: BaseException) -> bool:
    """Whether a program of the tests skips itself, as `pytest.importorskip` does; or a setup."""
    if RAISED in vars(error):
        return False
    return any(base.__name__ in ("Skipped", "SkipTest") for base in type(error).__mro__)


def _line(error: BaseException, sources: Mapping[str, str]) -> str:
    """The line of the tests that raised the error; empty if that is not known."""
    trace, found = error.__traceback__, ""
    while trace is not None:
        lines = sources.get(trace.tb_frame.f_code.co_filename, "").splitlines()
        if 0 < trace.tb_lineno <= len(lines):
            found = lines[trace.tb_lineno - 1].strip()[:MAX_TEXT]
        trace = trace.tb_next
    return found


class _Program:
    """A program of the tests, ready to be run.

    Attributes
    ----------
    tree
        The program to run: counted and batched.
    nodes
        The nodes of the program as it is written.
    code
        What runs.
    """

    def __init__(self, source: str, file: str, guard: Guard, theirs: frozenset[str]) -> None:
        self.tree = ast.parse(source)
        self.nodes = walk(self.tree)
        for node in self.nodes:
            if isinstance(node, ast.ImportFrom) and node.module:
                node.level = 0  # `from .solution import f`: the candidate is in no package
            if isinstance(node, FUNCTIONS) and any(map(assertions.asserts, walk(node))):
                guard.helpers.add(node.name)
        self._in_classes = frozenset(in_classes(self.nodes))
        self._asserting = frozenset(assertions.lines(self.nodes, guard.helpers))
        counting.counted(self.nodes, theirs, guard.helpers)
        batching.batched(self.nodes)
        try:
            self.code = compile(self.tree, file, "exec", dont_inherit=True)
        except SyntaxError as error:  # a `return` outside a function, which the parser accepts
            raise _NotHereError(f"the tests cannot be run: {describe(error)}") from None

    def run(self, names: _Names, guard: Guard) -> None:
        guard.asserting = self._asserting
        with names.bound(self._in_classes):
            exec(self.code, names)
