"""The worker processes of the maths checker, as tests find, kill and wait for them."""

from __future__ import annotations

import contextlib
import os
import signal
import time
from collections.abc import Callable
from pathlib import Path

EASY = ("x^2+2x+1", r"\boxed{(x+1)^2}")  # needs a worker
LONG = r"\boxed{" + r"\sin(" * 40 + "x" + ")" * 40 + "}"  # SymPy would take minutes


def boxed(text: str) -> str:
    return rf"\boxed{{{text}}}"


def children(pid: int) -> set[int]:
    """The living workers of a process: not what else it may have started, in other tests."""
    found = (path for path in Path("/proc").glob("[0-9]*") if _stat(path)[:1] == [pid])
    return {int(path.name) for path in found if _is_worker(path)}


def _is_worker(path: Path) -> bool:
    try:
        return b"gatekeeper.maths" in (path / "cmdline").read_bytes()
    except OSError:  # it ended meanwhile
        return False


def alive(pid: int) -> bool:
    return bool(_stat(Path(f"/proc/{pid}")))


def _stat(path: Path) -> list[int]:
    """[parent] of a process, nothing for one that has ended (a zombie has)."""
    try:
        state, parent = (path / "stat").read_text().rpartition(")")[2].split()[:2]
    except OSError:
        return []
    return [] if state == "Z" else [int(parent)]


def signal_children(which: signal.Signals) -> None:
    for pid in children(os.getpid()):
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, which)


def wait_for(condition: Callable[[], bool]) -> None:
    deadline = time.monotonic() + 20
    while not condition():
        assert time.monotonic() < deadline, "waited 20 s in vain"
        time.sleep(0.05)
