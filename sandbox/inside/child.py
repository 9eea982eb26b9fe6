"""A sandboxed process does its job, once it is confined.

Only in the process of the judge does code know what a test expects: elsewhere values are sent as
plain data, and compared where the candidate cannot look.

Job, on the process's socket: 8 bytes of length (little endian) of what follows, then texts, each
as 8 bytes of length and UTF-8 (surrogates let through). The first text is the kind of job:

    literal     candidate, imports, then one call expression for each test
    calls       the same for a candidate that may use `usual` names
    in_process  candidate, setup, nonce, the host's reading of the tests, then the tests
    script      candidate; the descriptor that came along is its standard input
    serve       candidate, imports; the descriptor is the stream to the judge
    judge       the host's reading of the tests, setup, then the tests; likewise

`imports` are the import statements of the tests' setup, which a candidate may rely on. Nothing else
of the tests is ever in a candidate's process, except the calls that it must answer, and, with
`in_process`, the tests.

Answers, frames on the same socket (the judge's are in `judge.py`):

    V  the value of the next call (`codec.py`)
    E  an exception ended the run; text
    M  memory ran out; text
    L  a value is too large to send; text
    P  in_process only: the next test passed; the nonce
    D  the candidate's code has ended
"""

from __future__ import annotations

import ast
import atexit
import contextlib
import gc
import json
import os
import socket
import sys
import types
from collections.abc import Iterator, Sequence
from typing import Any

from gatekeeper.sandbox.inside import collect, counting
from gatekeeper.sandbox.inside.candidate_peer import CandidatePeer
from gatekeeper.sandbox.inside.codec import encode
from gatekeeper.sandbox.inside.judge import describe, judge
from gatekeeper.sandbox.inside.nodes import walk
from gatekeeper.sandbox.inside.remote import JudgePeer
from gatekeeper.sandbox.inside.texts import Texts
from gatekeeper.sandbox.inside.usual import RECURSION, usual_names
from gatekeeper.sandbox.inside.wire import MAX_BYTES, TooLargeError, frame, opened

__all__ = ["serve", "work"]

_ROOM = socket.CMSG_SPACE(4)  # for one descriptor


def work(connection: socket.socket) -> None:
    """Take one job from the socket, do it, answer. Never raises."""
    kind, texts, descriptor = _receive(connection)
    process = os.getpid()

    def send(kind: bytes, payload: bytes | str) -> None:
        if os.getpid() != process:  # a child that the candidate forked, at the end of the code
            os._exit(kind != b"D")
        if isinstance(payload, str):
            payload = payload.encode("utf-8", "replace")
        connection.sendall(frame(kind, payload))

    match kind:
        case "judge":
            reading, setup, *tests = texts
            stream, rule = opened(descriptor), Texts()
            sys.addaudithook(rule.hook)  # which nothing can take away

            def answer(kind: bytes, text: str) -> None:
                send(*rule.answer(kind, text))

            judge(stream, answer, texts=rule, reading=reading, setup=setup, tests=tests)
        case "serve":
            serve(opened(descriptor), *texts)
        case "script":
            _script(send, descriptor, *texts)
        case _:
            _run(send, kind, *texts)


def _receive(connection: socket.socket) -> tuple[str, list[str], int]:
    """The job and the descriptor that came with it, -1 if there is none."""
    data, control, *_ = connection.recvmsg(1 << 16, _ROOM)
    descriptor = -1
    for _level, _type, payload in control:
        descriptor = int.from_bytes(payload[:4], sys.byteorder)
    chunks, missing = [data[8:]], int.from_bytes(data[:8], "little") - len(data) + 8
    while missing > 0:
        chunks.append(connection.recv(min(missing, 1 << 20)))
        if not chunks[-1]:
            os._exit(0)
        missing -= len(chunks[-1])
    stream, texts, at = b"".join(chunks), [], 0
    while at < len(stream):
        end = at + 8 + int.from_bytes(stream[at : at + 8], "little")
        texts.append(stream[at + 8 : end].decode("utf-8", "surrogatepass"))
        at = end
    return texts[0], texts[1:], descriptor


def _module(name: str = "candidate") -> types.ModuleType:
    """A new module, so that dataclasses, pickle and typing find the candidate's classes.

    Not "__main__", except for scripts: a demonstration at the end of the code must not run.
    """
    module = sys.modules[name] = types.ModuleType(name)
    module.__file__ = "candidate.py"
    return module


def _execute(source: str, file: str, namespace: dict[str, Any]) -> None:
    # `compile` of a text, because Python drops what follows a NUL when it runs a *file*.
    exec(compile(source, file, "exec", dont_inherit=True), namespace)


def _provide(source: str, namespace: dict[str, Any]) -> None:
    """Give a program what LiveCodeBench's own judge gives it."""
    namespace.update(usual_names(source))
    sys.setrecursionlimit(RECURSION)


def _run(send: Any, kind: str, candidate: str, setup: str, *texts: str) -> None:
    """Candidate, setup, tests, in this order (MBPP's); the first exception ends the run."""
    namespace = _module().__dict__
    where = "in the code"
    try:
        if kind == "calls":
            _provide(candidate, namespace)
        _execute(candidate, "candidate.py", namespace)
        where = "in the setup code"
        _execute(setup, "setup.py", namespace)
        run = _beside if kind == "in_process" else _values
        tests: Iterator[tuple[bytes, bytes | str]] = run(texts, namespace)
        where = "in test 1"
        for number, answer in enumerate(tests, 1):
            send(*answer)
            where = f"in test {number + 1}"
        sys.stdout.flush()
        send(b"D", b"")
    except MemoryError:
        send(b"M", f"{where}: out of memory")
    except TooLargeError:
        send(b"L", f"{where}: the result is too large to compare")
    except BaseException as error:
        send(b"E", f"{where}: {describe(error)}")


def _values(calls: Sequence[str], namespace: dict[str, Any]) -> Iterator[tuple[bytes, bytes | str]]:
    """The values of the calls that the host compares."""
    room = MAX_BYTES
    for call in calls:
        encoded = encode(eval(compile(call, "test.py", "eval", dont_inherit=True), namespace), room)
        room -= len(encoded)
        yield b"V", encoded


def _beside(texts: Sequence[str], namespace: dict[str, Any]) -> Iterator[tuple[bytes, bytes | str]]:
    """Test programs in the candidate's own process, which can forge their result."""
    nonce, reading, *tests = texts
    facts = json.loads(reading)
    own = dict(namespace)  # the candidate's names, which the tests may bind again
    for name in facts["modules"]:
        sys.modules.setdefault(name, sys.modules["candidate"])
    count = namespace[counting.COUNTER] = counting.Count()
    for test in tests:
        program = ast.parse(test)
        nodes, before = walk(program), {**namespace}
        counting.counted(nodes, frozenset(facts["theirs"]))
        exec(compile(program, "test.py", "exec", dont_inherit=True), namespace)
        check = collect.check(program, own.__getitem__, facts)
        # Nobody counts what they ask the candidate, so any skip may be its doing.
        for _, item in collect.items(program, nodes, namespace, before, check, lambda: 1):
            item()
        count.check()
        if not count.reached:
            raise AssertionError("no assertion was reached")
        yield b"P", nonce


def _script(send: Any, descriptor: int, candidate: str) -> None:
    """The candidate as a program that reads standard input and prints."""
    os.dup2(descriptor, 0)
    os.close(descriptor)
    sys.stdin = open(0, encoding="utf-8", errors="surrogateescape", closefd=False)  # noqa: SIM115
    sys.stdin.seek(0)
    answer = b"D", ""
    names = _module("__main__").__dict__
    try:
        try:
            _provide(candidate, names)
            _execute(candidate, "candidate.py", names)
        except SystemExit as error:
            if error.code is not None and not (isinstance(error.code, int) and error.code == 0):
                raise
        # As at the end of any program: each of these may print.
        if "threading" in sys.modules:
            sys.modules["threading"]._shutdown()
        atexit._run_exitfuncs()
        _flush()
        sys.stdout = sys.__stdout__
        for name in [name for name in names if name != "__builtins__"]:
            names[name] = None  # ends objects with a `__del__`, and streams that were not closed
        gc.collect()
        _flush()
    except MemoryError:
        answer = b"M", "in the code: out of memory"
    except BaseException as error:
        answer = b"E", f"in the code: {describe(error)}"
    try:
        send(*answer)
    except OSError:  # the program closed this, too: then its exit status counts
        os._exit(answer[0] != b"D")


def _flush() -> None:
    streams: tuple[Any, ...] = (sys.stdout, sys.__stdout__)
    for stream in streams:  # the program may have replaced or closed it
        if not getattr(stream, "closed", False):
            stream.flush()


def serve(connection: socket.socket, candidate: str, imports: str) -> None:
    """Run the candidate when the judge asks for it, then answer the judge's questions."""
    module = _module()

    def start(module: types.ModuleType, beside: bool) -> dict[str, str | None]:
        if beside:
            peer.converse()
        _execute(candidate, "candidate.py", module.__dict__)
        for line in imports.splitlines():
            with contextlib.suppress(Exception):
                _execute(line, "setup.py", module.__dict__)
        return {
            name: _origin(name, item)
            for name, item in list(module.__dict__.items())
            if type(name) is str and not name.startswith("__")
        }

    peer = CandidatePeer(connection, more={"start": start, "module": lambda root: _module()})
    assert peer.export(module) == JudgePeer.ROOT
    peer.serve()


def _origin(name: str, item: object) -> str | None:
    """The module that has a global under that name; for a module itself, its name and "="."""
    if isinstance(item, types.ModuleType):
        return f"{item.__name__}="
    module = getattr(item, "__module__", None)
    # `from functools import lru_cache as cache` is not `functools.cache`.
    known = type(module) is str and getattr(sys.modules.get(module), name, None) is item
    return module if known else None
