"""A worker process: reads pairs of answers as JSON lines, answers each with one JSON line.

Started by `pool.py` as `python -c BOOTSTRAP '<arguments as JSON>'`. All computation that may need
much time or memory runs here, in the main thread, with a timer and a memory limit. Three things end
a worker whose parent has ended: end of file on its input, the parent-death signal, and, while it
runs C code, a timer that the kernel enforces.

The soft limit counts processor time, so that a busy machine does not change a verdict.
"""

from __future__ import annotations

import ctypes
import json
import os
import resource
import signal
import sys
import time
from pathlib import Path
from types import FrameType
from typing import Any, TextIO

__all__ = ["BOOTSTRAP", "judge", "main"]

BOOTSTRAP = (
    "import json, sys; a = json.loads(sys.argv[1]); sys.path[:] = a['path'];"
    "from gatekeeper.maths.worker import main; main(a)"
)
_PR_SET_PDEATHSIG = 1
_AGAIN = 0.1  # seconds between repetitions of the alarm: library code may swallow one
_MIB = 1 << 20


class _TimeIsUp(BaseException):
    """Raised by the alarm; not an Exception, so that library code does not swallow it."""


def main(arguments: dict[str, Any]) -> None:
    """Serve until end of input. `arguments`: path, parent, soft_limit, hard_limit, memory_mb."""
    _die_with(int(arguments["parent"]))
    limit = int(arguments["memory_mb"]) * _MIB
    resource.setrlimit(resource.RLIMIT_AS, (limit, limit))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the parent handles Ctrl-C
    signal.signal(signal.SIGPROF, _alarm)
    replies = os.fdopen(os.dup(sys.stdout.fileno()), "w", encoding="utf-8")
    os.dup2(
        sys.stderr.fileno(), sys.stdout.fileno()
    )  # a print of a library must not mix with a reply
    try:
        from gatekeeper.maths import symbolic

        symbolic.equal("(x+1)^{2}", "x^{2}+2x+1")  # loads the modules that SymPy loads late
    except Exception as error:
        _send(replies, {"ready": False, "cpu": 0.0, "detail": f"{type(error).__name__}: {error}"})
        return
    _send(replies, {"ready": True, "cpu": time.process_time()})
    soft, hard = float(arguments["soft_limit"]), float(arguments["hard_limit"])
    for line in sys.stdin:
        item = json.loads(line)
        signal.setitimer(
            signal.ITIMER_VIRTUAL, hard + 1.0
        )  # without a handler: the kernel ends this process
        started = time.perf_counter()
        reply = judge(item["gold"], item["answer"], soft)
        reply["seconds"] = time.perf_counter() - started
        reply["rss_mb"] = _resident_mb()
        reply["cpu"] = time.process_time()
        signal.setitimer(signal.ITIMER_VIRTUAL, 0)
        _send(replies, reply)


def judge(gold: str, answer: str, soft_limit: float) -> dict[str, Any]:
    """One comparison under the alarm: {"verdict", "rule", "detail"}."""
    from gatekeeper.maths.compare import AnswerComparer
    from gatekeeper.maths.symbolic import TooComplexError, equal, near

    comparer = AnswerComparer(equal, near)
    try:
        signal.setitimer(signal.ITIMER_PROF, soft_limit, _AGAIN)
        try:
            same = comparer.compare(gold, answer)
        finally:
            signal.setitimer(signal.ITIMER_PROF, 0)
    except _TimeIsUp:
        signal.setitimer(signal.ITIMER_PROF, 0)  # the alarm may have interrupted `finally`
        return {"verdict": "timeout", "rule": "symbolic", "detail": "the comparison ran too long"}
    except MemoryError:
        detail = "the comparison needed too much memory"
        return {"verdict": "resource_exceeded", "rule": "symbolic", "detail": detail}
    except TooComplexError as refusal:
        return {"verdict": "infra_error", "rule": "too_complex", "detail": str(refusal)}
    except Exception as error:
        detail = f"the comparison failed: {type(error).__name__}"
        return {"verdict": "infra_error", "rule": "broken", "detail": detail}
    if same is None:
        detail = "cannot compare: too many elements, or units or conditions that are not known"
        return {"verdict": "infra_error", "rule": "too_complex", "detail": detail}
    return {"verdict": "passed" if same else "failed", "rule": comparer.rule, "detail": ""}


def _alarm(_signal: int, _frame: FrameType | None) -> None:
    raise _TimeIsUp


def _die_with(parent: int) -> None:
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)
    if os.getppid() != parent:
        os._exit(0)  # it ended before the request


def _resident_mb() -> float:
    """Resident memory in MiB. Not ru_maxrss: on Linux that starts at the parent's maximum."""
    try:
        pages = int(Path("/proc/self/statm").read_text().split()[1])
    except OSError:  # macOS, where ru_maxrss is this process's own, and in bytes
        return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / _MIB
    return pages * resource.getpagesize() / _MIB


def _send(stream: TextIO, reply: dict[str, Any]) -> None:
    stream.write(json.dumps(reply) + "\n")
    stream.flush()
