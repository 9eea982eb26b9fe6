"""The limits of a line of input and of this process.

The package imports this module first, and the import checks the process: with too little address
space, C libraries hang, end the process, or report an error about some file.
"""

from __future__ import annotations

import errno
import os
import signal
import sys
from types import FrameType

try:
    import resource
except ImportError:  # not a Unix: no such limits
    resource = None  # type: ignore[assignment]

__all__ = ["MAX_ID", "MAX_LINE", "cause_of", "is_id"]

MAX_ID = 1024  # bytes of an output's id; an index of a log in PostgreSQL takes about 2000
MAX_LINE = 64 << 20  # bytes of a line of input, its end included, and of an event of a log

# Signs of missing memory in other errors: of the loader of shared libraries, of C++.
NO_MEMORY = ("failed to map segment", "cannot allocate memory", "bad_alloc")
LEAST = 768 << 20  # bytes of address space with which every command starts


def is_id(value: object) -> bool:
    """Whether this can be the id of an output: a text of 1 to `MAX_ID` bytes in UTF-8."""
    try:
        return isinstance(value, str) and 0 < len(value.encode()) <= MAX_ID
    except UnicodeEncodeError:  # half of a surrogate pair
        return False


def _check() -> None:
    """Ends `gatekeeper`, the command, with exit code 2 where it could not even load what it needs,
    and, until it is loaded, with 130 at Ctrl-C.

    A program that imports the package decides for itself.
    """
    is_command = os.path.basename(sys.argv[0]) in ("gatekeeper", "-m")
    if is_command and signal.getsignal(signal.SIGINT) is signal.default_int_handler:
        signal.signal(signal.SIGINT, _interrupted)
    limit = _limit("RLIMIT_AS")
    # OpenBLAS has a thread per core, and reserves space for each at the start. Its products here
    # are small, so threads only wait for one another.
    if is_command or limit is not None:
        os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
    if limit is not None and limit < LEAST and is_command:
        print(
            f"gatekeeper: {_space(limit)}, which is too little: give it at least "
            f"{LEAST >> 20} MiB, or lift the limit",
            file=sys.stderr,
        )
        raise SystemExit(2)


def _interrupted(number: int, frame: FrameType | None) -> None:
    print("gatekeeper: interrupted", file=sys.stderr, flush=True)
    os._exit(130)


def cause_of(error: BaseException) -> str | None:
    """The resource that this machine or its limits refused, in one line; None for other errors."""
    if isinstance(error, OSError) and error.errno == errno.EMFILE:
        return f"too many open files: this process may have {_limit('RLIMIT_NOFILE')} (ulimit -n)"
    if type(error).__name__ == "BrokenProcessPool":
        return "a worker process was killed, usually because memory ran out: use fewer (--workers)"
    text = str(error)
    if "can't start new thread" in text:
        return "no further thread can be started (ulimit -u, ulimit -v)"
    enough = not isinstance(error, MemoryError) and getattr(error, "errno", 0) != errno.ENOMEM
    if enough and not any(sign in text for sign in NO_MEMORY):
        where = getattr(error, "filename", None)
        said = getattr(error, "strerror", None) or text
        if isinstance(error, OSError):
            return f"{where}: {said}" if where else said
        return None
    limit = _limit("RLIMIT_AS")
    return "out of memory" + ("" if limit is None else f": {_space(limit)}")


def _space(limit: int) -> str:
    return f"this process may use {limit >> 20} MiB of address space (ulimit -v)"


def _limit(name: str) -> int | None:
    """The soft limit of this process, None where there is none."""
    if resource is None:
        return None
    soft, _ = resource.getrlimit(getattr(resource, name))
    return None if soft == resource.RLIM_INFINITY else soft


_check()
