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
import contextlib
import json
import re
import socket
import sys
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from gatekeeper.sandbox.inside import (
    assertions,
    batching,
    chosen,
    classes,
    collect,
    counting,
    frameworks,
    identity,
)
from gatekeeper.sandbox.inside.conversations import GoneError
from gatekeeper.sandbox.inside.guard import RAISED, Guard
from gatekeeper.sandbox.inside.kinds import real
from gatekeeper.sandbox.inside.names import Candidate, Importer, Names
from gatekeeper.sandbox.inside.nodes import FUNCTIONS, in_classes, walk
from gatekeeper.sandbox.inside.remote import JudgePeer
from gatekeeper.sandbox.inside.surroundings import Observer
from gatekeeper.sandbox.inside.texts import Texts
from gatekeeper.sandbox.inside.unseen import THREADS, Unseen

__all__ = ["describe", "judge"]

MODULE, SETUP_FILE, TEST_FILE = "tests", "setup.py", "test.py"
MAX_TEXT = 500  # characters of an exception's message
# Words in tests that let something run beside them, or wait for what the candidate runs.
_BESIDE = re.compile(f"{THREADS}|sleep")


def describe(error: BaseException) -> str:
    """`Type: message`, even if the methods of the exception fail."""
    try:
        text = str(error)
    except BaseException:  # a hostile __str__ affects only its own message
        text = "(no message)"
    name = type(error).__name__
    return (f"{name}: {text}" if text else name)[:MAX_TEXT]


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
    texts.module, texts.words.modules = facts["module_name"], facts["modules"]
    observer = Observer(text, facts["modules"])
    peer = JudgePeer(connection, guard=guard, observer=observer)
    count = counting.Count(peer.asserting.frames)

    def heard(item: Any) -> None:
        if type(item) is str:
            texts.heard.add(item)
        else:
            peer.decisions.made(item)

    peer.heard, peer.changed = heard, peer.looks.forget

    def settle(wait: Callable[[], None]) -> None:
        """Raise what went wrong beside the code of the tests, where it raised nothing there."""
        wait()
        count.check(peer.handed)
        if peer.failed is not None:
            raise peer.failed
        if peer.gone:
            raise GoneError

    try:
        peer.looks.waits = _BESIDE.search(text) is not None
        beside = facts.get("beside") or peer.looks.waits
        # Else a candidate could fail to be imported where the tests do not mind, and only there.
        late = observer.prepares and not facts["goes_on"]
        names = Names(peer, {**facts, "beside": beside}, late=late)
        names |= {counting.COUNTER: count, batching.BATCHER: batching.Batcher(peer)}
        names[identity.REAL] = real
        if "Counter" in text:
            classes.count_by_value()
        frameworks.without_main(text)
        frameworks.with_modules(text)
        chosen.followed(text, texts.check_name, facts["modules"])
        sys.meta_path.insert(0, Importer(names, facts["modules"]))
        if MODULE not in facts["modules"]:
            sys.modules[MODULE] = frameworks.TestsModule(names)
        theirs = frozenset(facts["theirs"])
        ahead: list[_Program] = []

        def prepared(source: str, file: str) -> _Program:
            program = ahead.pop(0) if ahead else _Program(source, file, guard, theirs)
            texts.add(program.code, program.nodes)
            return program

        # Meanwhile the candidate's code runs, unless the tests may prepare something for it.
        with contextlib.suppress(Exception):  # the same exception is raised again below
            if setup.strip():
                ahead.append(_Program(setup, SETUP_FILE, guard, theirs))
            ahead.append(_Program(tests[0], TEST_FILE, guard, theirs))
        names.started()
        where = "in the setup code"
        unseen = Unseen(text, peer.matters)
        if setup.strip():
            prepared(setup, SETUP_FILE).run(names, guard)
        for number, test in enumerate(tests, 1):
            where = f"in test {number}"
            program, before = prepared(test, TEST_FILE), dict(dict.items(names))
            program.run(names, guard)
            check = collect.check(program.tree, names.find, facts)
            for case, run in collect.items(
                program.tree, program.nodes, names, before, check, lambda: peer.answered
            ):
                where = f"in test {number}, {case}"
                run()
            settle(unseen.check)
            if number < len(tests):
                send(b"P", "")
        settle(unseen.finish)
        names.check()
        if not count.reached:
            # Where the candidate was asked nothing, it is not the candidate's failure.
            raise AssertionError(_NEVER) if peer.answered else _NotHereError(_NEVER)
        if not peer.evidence:
            raise AssertionError(_NOTHING)
        came = count.codes.values()
        handed = peer.asserting.not_run(came) if peer.decisions.gave_type else ()
        left_out = *peer.handed_over.left_out(came), *peer.wrappers.left_out(), *handed
        for function in left_out:
            raise _NotHereError(f"{function}: it asserts, and the candidate left it out")
        if peer.decisions.unsure:
            raise _NotHereError(peer.decisions.unsure)
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
    known = isinstance(sys.modules.get(error.name), Candidate)
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
        identity.compared(self.nodes)
        try:
            self.code = compile(self.tree, file, "exec", dont_inherit=True)
        except SyntaxError as error:  # a `return` outside a function, which the parser accepts
            raise _NotHereError(f"the tests cannot be run: {describe(error)}") from None

    def run(self, names: Names, guard: Guard) -> None:
        guard.asserting = self._asserting
        with names.bound(self._in_classes):
            exec(self.code, names)
