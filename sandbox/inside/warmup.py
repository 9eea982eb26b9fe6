"""Lets the supervisor judge a candidate of its own a few times, before it forks any process.

Python changes a function's code when it first runs (caches, specialised instructions), and a
process must copy each page that it changes. Pages changed before the fork are shared by all
processes: that saves a page in ten, and more of the time, of both processes of a judged task (the
rows of "judge" in benchmarks/sandbox.py).
"""

from __future__ import annotations

import json
import os
import socket
import sys
from collections.abc import Callable

from gatekeeper.sandbox.inside.child import serve
from gatekeeper.sandbox.inside.judge import judge
from gatekeeper.sandbox.inside.texts import Texts

__all__ = ["CANDIDATE", "READING", "TEST", "warm_up"]

TURNS = 4  # of three calls each: after eight, Python specialises a function
CANDIDATE = "def f(x, y):\n    return x\n"
TEST = """
def test_f():
    assert f(2, y="a") == 2
    assert f([1.5, (2, 3)], {3}) == [1.5, (2, 3)]
    assert f({1: None}, 1) == {1: None}
"""
READING = {  # the host's reading of the test
    "asked": [],
    "real": {},
    "classes": [],
    "operated": [],
    "theirs": ["f"],
    "modules": ["solution"],
    "module_name": "tests",
    "entry": "",
    "goes_on": False,
}


def warm_up() -> bool:
    """Play each part in turn, and leave nothing behind. Returns whether the tests passed."""
    path, last = [*sys.meta_path], [b""]

    def test(connection: socket.socket) -> None:
        reading = json.dumps(READING)

        def send(kind: bytes, text: str) -> None:
            last.append(kind)

        judge(connection, send, texts=Texts(), reading=reading, setup="", tests=[TEST])

    def answer(connection: socket.socket) -> None:
        serve(connection, CANDIDATE, "")

    _converse(test, answer)
    _converse(answer, test)
    sys.meta_path[:] = path
    sys.unraisablehook = sys.__unraisablehook__
    sys.modules.pop("candidate", None)
    return last[-1] == b"D"


def _converse(
    here: Callable[[socket.socket], None], there: Callable[[socket.socket], None]
) -> None:
    """Run one part in this process, the other in a new one."""
    pairs = [socket.socketpair() for _ in range(TURNS)]
    pid = os.fork()
    try:
        for ours, theirs in pairs:
            mine, other = (ours, theirs) if pid else (theirs, ours)
            other.close()
            with mine:
                (here if pid else there)(mine)
    finally:
        if not pid:
            os._exit(0)
    os.waitpid(pid, 0)
