"""Prepares the supervisor's memory, before it forks any process.

The supervisor judges a candidate of its own a few times. Python changes a function's code when it
first runs (caches, specialised instructions), and a process must copy each page that it changes.
Pages changed before the fork are shared by all processes: that saves a page in ten, and more of the
time, of both processes of a judged task (the rows of "judge" in benchmarks/sandbox.py). Then the
gaps in the heap are filled, see `fill_gaps`: that saves one more in fifteen.
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

__all__ = ["CANDIDATE", "READING", "TEST", "fill_gaps", "warm_up"]

_POOL, _STEP, _LARGEST = 1 << 14, 16, 512  # bytes: of CPython's pools, and of what they contain
_POOLS = 1 << 10  # most that are looked at for a size: another allocator may have none
_HEADER = sys.getsizeof(b"")
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


def fill_gaps() -> list[object]:
    """Objects in the gaps that ended ones left in the heap, of every size that Python pools.

    As long as they are kept, what a process makes lies side by side, in pages of its own. In the
    gaps it would lie here and there, and each page with a gap would have to be copied.
    """
    made: list[object] = []
    for size in range(_HEADER + 1, _LARGEST + 1, _STEP):
        used: dict[int, int] = {}  # by pool; one that has half of its room was empty before
        pool = 0
        while used.get(pool, 0) * size < _POOL / 2 and len(used) < _POOLS:
            made.append(bytes(size - _HEADER))
            pool = id(made[-1]) // _POOL
            used[pool] = used.get(pool, 0) + 1
    return made
