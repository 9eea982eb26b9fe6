"""The judge's path: a candidate can use the objects it was given, and reach no other.

One end of the conversation is real, the other is the candidate's: handles, or bytes of its own.
"""

from __future__ import annotations

import _thread
import contextlib
import importlib
import json
import socket
import sys
import threading
import types
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from gatekeeper.sandbox.inside import loans
from gatekeeper.sandbox.inside.candidate_peer import CandidatePeer
from gatekeeper.sandbox.inside.codec import encode
from gatekeeper.sandbox.inside.counting import Count
from gatekeeper.sandbox.inside.decoding import decode
from gatekeeper.sandbox.inside.facts import handle_facts
from gatekeeper.sandbox.inside.guard import Guard
from gatekeeper.sandbox.inside.handles import FUNCTION as HANDLE_OF_FUNCTION
from gatekeeper.sandbox.inside.handles import Handle, HandleClass, inner
from gatekeeper.sandbox.inside.judge import judge
from gatekeeper.sandbox.inside.remote import JudgePeer
from gatekeeper.sandbox.inside.texts import Texts
from gatekeeper.sandbox.inside.wire import frame, head
from gatekeeper.sandbox.reading import read_tests


@contextlib.contextmanager
def two_peers(*things: object) -> Iterator[list[Any]]:
    """The candidate's handles of objects of the tests; its peer is the handles' own."""
    ours, theirs = socket.socketpair()
    with ours, theirs:
        tests, candidate = JudgePeer(ours, guard=Guard(__name__)), CandidatePeer(theirs)
        numbers = [tests.export(thing) for thing in things]
        thread = threading.Thread(target=tests.serve, daemon=True)
        thread.start()
        try:
            yield [
                candidate.meant(number, (type(thing).__name__, handle_facts(type(thing))))
                if isinstance(thing, BaseException)
                else handle_of(candidate, decode(tests._encode(thing), other=candidate.meant))
                for number, thing in zip(numbers, things, strict=True)
            ]
        finally:
            theirs.shutdown(socket.SHUT_RDWR)
            thread.join()


def test_a_part_of_what_is_too_large_to_share(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(loans, "TOTAL", 1000)
    kept = []

    def first(rows: list[list[int]]) -> list[int]:
        kept.append(rows[0])
        return rows[0]

    with two_peers(first, kept.sort) as (take, look):
        rows = [[1], [*range(1000)]]
        assert take(rows) is rows[0]
        rows[0].append(2)
        look()
        assert kept == [[1, 2]]


def handle_of(candidate: CandidatePeer, given: Any) -> Any:
    """The handle behind a function of the tests, for questions that the function would not ask."""
    number = candidate._number_of(given) if type(given) is types.FunctionType else None
    return given if number is None else HANDLE_OF_FUNCTION(candidate, number)


def test_what_pytest_raises_is_a_failure() -> None:
    """Its class extends no AssertionError, and only an image with pytest has it."""

    def look(x: int) -> None:
        if x != 3:
            pytest.fail("the expected 3")

    ours, theirs = socket.socketpair()
    with ours, theirs:
        tests, candidate = JudgePeer(ours, guard=Guard(__name__)), CandidatePeer(theirs)
        thread = threading.Thread(target=tests.serve, daemon=True)
        thread.start()
        handle = handle_of(candidate, candidate.meant(tests.export(look), tests._describe(look)))
        with pytest.raises(BaseException, match=r"^$"):  # which it may swallow, and not read
            handle(2)
        theirs.shutdown(socket.SHUT_RDWR)
        thread.join()
    assert isinstance(tests.failed, pytest.fail.Exception)
    try:
        pytest.fail("it must raise")
    except pytest.fail.Exception:
        assert Count().caught(BaseException) == ()


ODD = """
class New(ValueError):
    def __new__(cls, *, code):
        return super().__new__(cls)
    def __init__(self, *, code):
        super().__init__(f"code {code}")
        self.code = code

class File(OSError):
    def __init__(self, path, *, reason):
        super().__init__(2, reason, path)
"""


def test_exceptions_of_packages(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """They are made without their own code; where that is impossible, without their class."""
    core = pytest.importorskip("pydantic_core")
    folder = tmp_path / "site-packages"
    folder.mkdir()
    (folder / "odd.py").write_text(ODD)
    monkeypatch.syspath_prepend(folder)
    odd = importlib.import_module("odd")
    opaque = core.PydanticCustomError("a", "b")
    opaque.args = ()
    ours, theirs = socket.socketpair()
    with ours, theirs:
        tests, candidate = JudgePeer(ours, guard=Guard(__name__)), CandidatePeer(theirs)
        for error in (odd.New(code=3), odd.File("a.txt", reason="gone"), opaque):
            made = tests._error(*candidate._error_parts(error))
            assert isinstance(made, ValueError | OSError)
            assert isinstance(made, type(error)) is (error is not opaque)
            assert (str(made), made.args) == (str(error), error.args)


SECRET = "the secret of this module"


class Thing:
    shared = 1

    def __init__(self) -> None:
        self.data, self.hidden = [1], {"k": Thing.method}

    def method(self, x: int = 1) -> int:
        return x + len(SECRET) * 0

    @property
    def size(self) -> int:
        return len(self.data)

    @classmethod
    def make(cls) -> Thing:
        return cls()


def function(x: int = 0) -> Iterator[int]:
    mine = SECRET
    yield x + 0 * len(mine)


def things() -> list[object]:
    error = ValueError("told")
    try:
        raise error
    except ValueError:
        pass
    return [
        function,
        function(),
        Thing(),
        Thing,
        Thing().method,
        sys,
        error,
        two_peers(),
    ]


def test_candidates_may_use_what_they_were_given() -> None:
    thing = Thing()
    with two_peers(thing, Thing, lambda x, *, y: x + y, function(4)) as (
        handle,
        kind,
        call,
        generator,
    ):
        assert handle.data == [1]
        assert handle.size == 1
        assert handle.method(5) == 5
        handle.data, handle.new = [2, 3], 7
        assert (thing.data, vars(thing)["new"]) == ([2, 3], 7)
        assert call(1, y=2) == 3
        assert kind.make().data == [1]
        assert kind().size == 1
        assert next(generator) == 4
        assert list(generator) == []
        assert isinstance(handle, kind)


def test_candidates_reach_nothing_else() -> None:
    """All objects that names, calls and iteration lead to, some steps deep: none is ours."""
    forbidden = (types.FrameType, types.CodeType, types.TracebackType, types.ModuleType)
    dunders = {name for thing in things() for name in dir(thing) if name.startswith("_")}
    inner = {
        "gi_frame",
        "gi_code",
        "cr_frame",
        "cr_code",
        "f_globals",
        "tb_frame",
        "modules",
        "_getframe",
    }
    seen = 0
    with two_peers(*things()) as handles:
        todo = [(handle, 0) for handle in handles]
        while todo:
            handle, depth = todo.pop()
            seen += 1
            names = [name for name in dir(handle) if type(name) is str]
            for name in {*names, *(dunders if depth == 0 else ()), *inner}:
                try:
                    found = ask(handle, "get", name)
                except Exception:
                    continue
                if name == "__dict__":
                    assert not any(attribute.startswith("_") for attribute in found)
                elif name not in ("__name__", "__qualname__", "__doc__", "__module__"):
                    assert not name.startswith("_"), name
                    assert name not in inner
                todo.append((found, depth + 1))
            for operation in ("call", "iter", "next", "enter"):
                with contextlib.suppress(Exception):
                    todo.append((ask(handle, operation), depth + 1))
            todo = [(h, d) for h, d in todo if isinstance(h, Handle | HandleClass) and d < 3]
            for found, _ in todo:
                assert (
                    type(found).__name__ not in {kind.__name__ for kind in forbidden}
                    or found is handles[5]
                )
    assert seen > 30


def ask(handle: Handle, operation: str, *arguments: Any) -> Any:
    """Any question, as a program that speaks the protocol can put it."""
    peer = inner(handle)[0]
    return handle_of(peer, peer.ask(operation, handle, *arguments))


def test_candidates_change_nothing_that_does() -> None:
    thing = Thing()
    with two_peers(thing, Thing, function, ValueError) as (handle, kind, call, error):
        for target, name in (
            (handle, "method"), (handle, "size"), (handle, "make"), (handle, "__class__"),
            (handle, "__dict__"), (kind, "method"), (kind, "shared"), (kind, "__eq__"),
            (call, "__code__"), (call, "__defaults__"), (call, "x"), (error, "args"),
        ):  # fmt: skip
            for operation, arguments in (("set", (name, 1)), ("delete", (name,))):
                with pytest.raises(AttributeError):
                    ask(target, operation, *arguments)
    assert thing.method(2) == 2
    assert Thing.shared == 1


def test_candidates_call_nothing_that_was_not_handed_out() -> None:
    with two_peers(Thing()) as (handle,):
        for target in (5, "text", None, [1], int, print, Thing):
            peer = object.__getattribute__(handle, "__gatekeeper__")[0]
            for operation, arguments in (
                ("get", ("real",)),
                ("call", ()),
                ("str", ()),
                ("iter", ()),
            ):
                with pytest.raises(AttributeError):
                    peer.ask(operation, target, *arguments)
        for operation in ("start", "bound", "eval", "__class__", "_do", "export", 5, None):
            with pytest.raises((AttributeError, TypeError)):
                ask(handle, operation)  # type: ignore[arg-type]


@contextlib.contextmanager
def conversing() -> Iterator[tuple[JudgePeer, socket.socket, Callable[..., bytes]]]:
    """The tests' peer, the candidate's socket, and a function that makes its questions."""

    def question(conversation: int, function: Callable[[], object]) -> bytes:
        called = head(b"t", 1) + reference(-tests.export(function), None)
        rest = b"".join(map(encode, (None, None, None)))
        return frame(b"Q", head(b"t", 6) + encode(conversation) + encode("call") + called + rest)

    ours, theirs = socket.socketpair()
    with ours, theirs:
        theirs.settimeout(10)
        tests = JudgePeer(ours, guard=Guard(__name__))
        tests.converse()
        yield tests, theirs, question
        theirs.shutdown(socket.SHUT_RDWR)


def test_a_busy_conversation_gets_no_other_one(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("gatekeeper.sandbox.inside.conversations._THREADS", 1)
    event = threading.Event()
    with conversing() as (tests, theirs, question):
        theirs.sendall(question(1, event.is_set))
        assert theirs.recv(1 << 12)[:1] == b"A"
        while not tests._idle:  # its thread waits for one more question
            pass
        theirs.sendall(question(1, lambda: event.wait(20)) + question(3, event.set))
        assert theirs.recv(1 << 12)[:1] == b"A"


def kind_of_frame(stream: socket.socket) -> bytes:
    start = stream.recv(5, socket.MSG_WAITALL)
    stream.recv(int.from_bytes(start[1:], "little"), socket.MSG_WAITALL)
    return start[:1]


def test_with_no_thread_left_the_one_that_reads_goes_on(monkeypatch: pytest.MonkeyPatch) -> None:
    """A function that waits for a lock must not keep its holder from an answer."""
    lock, event = threading.Lock(), threading.Event()
    start, allowed = _thread.start_new_thread, [None] * 2  # one that reads, one that answers

    def limited(function: Any, arguments: Any) -> int:
        if not allowed:
            raise RuntimeError("can't start new thread")
        allowed.pop()
        return start(function, arguments)

    def hold() -> None:
        with lock:
            tests.ask("dir", 1)

    def wait() -> None:
        with lock:
            pass

    monkeypatch.setattr(_thread, "start_new_thread", limited)
    with conversing() as (tests, theirs, question):
        theirs.sendall(question(1, hold))
        assert kind_of_frame(theirs) == b"Q"
        theirs.sendall(question(3, wait))
        while not tests._unanswered:
            pass
        parts = [encode(1), encode([]), *[encode(None)] * 4]
        theirs.sendall(frame(b"A", head(b"t", len(parts)) + b"".join(parts)))
        for _ in range(2):
            assert kind_of_frame(theirs) == b"A"
        # Where nothing else moves, it answers itself.
        theirs.sendall(question(1, lambda: event.wait(20)) + question(5, event.set))
        for _ in range(2):
            assert kind_of_frame(theirs) == b"A"


def hostile(*replies: bytes) -> list[tuple[bytes, str]]:
    """The answers of a judge about a candidate that answers its questions with these bytes."""
    ours, theirs = socket.socketpair()
    said: list[tuple[bytes, str]] = []
    answers = [*replies[:OPENED], b"".join(replies[OPENED:])]

    def speak() -> None:
        with contextlib.suppress(OSError), theirs.makefile("rb") as stream:
            for reply in answers:
                start = stream.read(5)
                stream.read(int.from_bytes(start[1:], "little"))
                theirs.sendall(reply)
            theirs.shutdown(socket.SHUT_WR)
            stream.read()

    path = [*sys.meta_path]
    thread = threading.Thread(target=speak)
    thread.start()
    try:
        tests = ("x = f(3)\nassert x == 9",)
        judge(
            ours,
            lambda kind, text: said.append((kind, text)),
            texts=Texts(),
            reading=json.dumps(
                read_tests("", tests, entry=None, modules=frozenset()).for_judge(None)
            ),
            setup="",
            tests=tests,
        )
    finally:
        ours.shutdown(socket.SHUT_RDWR)
        thread.join()
        ours.close()
        theirs.close()
        sys.meta_path[:] = path
    return said


FUNCTION = ("shared", "builtins", "function")


def reference(number: int, description: Any = FUNCTION) -> bytes:
    return b"h" + number.to_bytes(8, "little", signed=True) + encode(description)


def answer(value: bytes, changes: Any = (), same: Any = None, loans: Any = None) -> bytes:
    rest = (encode(same), encode([*changes]), encode([]), encode(loans))
    return frame(b"A", head(b"t", 5) + value + b"".join(rest))


OPENED = 2  # questions before the call: to start, for f
OPENING = (answer(encode({"f": None})), answer(reference(2)))


def test_a_candidate_that_speaks_the_protocol_itself() -> None:
    nine = answer(encode(9))
    assert [kind for kind, _ in hostile(*OPENING, nine, nine)] == [b"P", b"D"]
    assert [kind for kind, _ in hostile(*OPENING)] == [b"G"]  # gone before it answered
    assert [kind for kind, _ in hostile(*OPENING, answer(encode(8)), nine)] == [b"E"]


REST = (0, None, [], "", [])  # of the parts of an exception
SHARED = [("os", "system"), ("builtins", "exec"), ("builtins", "ValueError"), ("sys", "modules")]


@pytest.mark.parametrize(
    "reply",
    [
        b"A",
        frame(b"?", b""),
        frame(b"A", b""),
        frame(b"A", b"N"),
        frame(b"A", encode([1, 2])),
        frame(b"P", b""),
        frame(b"D", b""),
        b"A\xff\xff\xff\xff",
        frame(b"A", b"t\1\0\0\0" * 100_000),
        *(answer(reference(0, shared)) for shared in SHARED),
        *(answer(reference(n)) for n in (-1, -2, -99, -(2**63), 2**62, 1)),
        *(
            answer(reference(3, d))
            for d in (
                *(None, 5, (5, 5), ("known",), ("object", 5), ("object", int), ("value", int, 9)),
                *(("shared", "builtins", n) for n in ("int", "type", "exec", "no", 5)),
                *(("shared", "os", "system"), ("shared", "no.such", "thing")),
                *(("class", "a\0", "a", [], [], {}), ("class", "a", "a", [5], [], {"plain": int})),
                *(("class", "a", "a", [], [], {"plain": 5}), ("class", "a", 5, [], [], {})),
                ("class", "a", "a", [("os", "system")], ["__eq__", 5], {"fields": [1, "if"]}),
                *(("exception", [1]), ("exception", [()]), ("exception", [])),
                ("exception", [("builtins", "int", 4)]),
                ("exception", [("os", "system", -1)]),
            )
        ),
        *(answer(b"N", same=same) for same in (0, 1, 5, -1, "x")),
        *(answer(b"N", changes) for changes in ([(1, 9)], [(0, 9)], [(99, 9)], [5], [("x", 1)])),
        *(answer(b"N", loans=loans) for loans in (5, [5], ([], 5), ([], [[]]))),
        *(answer(b"m\7\0\0\0" + part) for part in (b"", b"\1", b"\1N", b"\1m\7\0\0\0\1", b"\1h")),
        *(
            frame(b"X", encode(message))
            for message in (
                None,
                ([], (), {}),
                ([], (), {}, *REST),
                ([("builtins", "int", 3)], (), {}, *REST),
                ([("builtins", "ValueError", 3)], (), {"__class__": 1, "args": 2}, *REST),
                ([("builtins", "StopIteration", 3)], (), {}, *REST),
                ([("builtins", "UnicodeDecodeError", 3)], (1, 2), {}, *REST),
                ([("builtins", "BaseExceptionGroup", 3)], ("x", 5), {}, "x", 5, [], 5, [], []),
                ([(5, 5, 5)], (), {}, *REST),
                ([("unittest.case", "SkipTest", 3)], (), {}, *REST),
                ([("gatekeeper.sandbox.inside.judge", "_NotHereError", 3)], (), {}, *REST),
                ([("gatekeeper.sandbox.inside.peer", "GoneError", 3)], (), {}, *REST),
                ([("builtins", "ValueError", -(10**9))], (), {}, *REST),
                ([("x", "y", n) for n in range(3, 3000)], (), {}, *REST),
            )
        ),
        frame(b"Q", encode(None)),
        frame(b"Q", encode(("get", (1,), {}, None, ([], [])))),
        *(
            frame(b"Q", encode((o, (5, "real"), {}, None, ([], []))))
            for o in ("get", "call", "eval", "start", 5)
        ),
        frame(
            b"Q", encode(("call", (), {"operation": "get", "target": 1, "self": 2}, None, ([], [])))
        ),
        frame(
            b"Q",
            head(b"t", 5)
            + encode("get")
            + head(b"t", 2)
            + reference(-1)
            + encode("__init__")
            + encode({})
            + encode(None)
            + encode(([], [])),
        ),
    ],
    ids=lambda reply: repr(reply[:40]),
)
def test_frames_of_its_own_get_it_nothing(reply: bytes) -> None:
    """A frame in place of its value, then the right value: too late, or never read."""
    asked = reply[:1] == b"Q"  # a question may be put at any time, and is answered or refused
    said = hostile(*OPENING, reply + (answer(encode(8)) if asked else b""), answer(encode(9)))
    assert [kind for kind, _ in said][-1] in (b"E", b"G"), said
    assert not any(kind in (b"P", b"D", b"I") for kind, _ in said), said
