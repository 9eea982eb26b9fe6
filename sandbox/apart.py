"""Long tests, read in another process.

CPython's parser holds the interpreter's lock: a megabyte of tests would stop all other threads of
this process for half a second to eight seconds, an event loop among them.
"""

from __future__ import annotations

import functools
import json
import pickle
import subprocess
import sys
from collections.abc import Callable, Iterable
from typing import Any, TypeVar

from gatekeeper.child_python import child_command, import_path

__all__ = ["ApartError", "apart", "main"]

LONG = 1 << 16  # characters of code; a process for them starts in a third of a second
_BOOTSTRAP = (
    "import json, sys; sys.path[:] = json.loads(sys.argv[1]);"
    "from gatekeeper.sandbox.apart import main; main()"
)

Found = TypeVar("Found")


class ApartError(Exception):
    """The other process ended without a result."""


def apart(function: Callable[..., Found], *given: Any, texts: Iterable[object]) -> Found:
    """Call a function that parses texts; in another process if they are long.

    Parameters
    ----------
    function
        Of a module. Equal calls may return the same object.
    *given
        Its arguments.
    texts
        Those that it parses; anything else in them is left out.

    Raises
    ------
    ApartError
        Where there is no result, for lack of memory or of processes.
    Exception
        What the function raises.
    """
    if sum(len(text) for text in texts if isinstance(text, str)) < LONG:
        return function(*given)
    try:
        call = pickle.dumps((function, given))
    except Exception:  # none of these is a text, and the function says so
        return function(*given)
    found: Found = _called(call)
    return found


@functools.lru_cache(maxsize=16)  # the candidates of a task come one after the other
def _called(call: bytes) -> Any:
    command = child_command(_BOOTSTRAP, json.dumps(import_path()))
    try:
        done = subprocess.run(command, input=call, capture_output=True, check=False)
    except OSError as error:
        raise ApartError(f"no process can be started to read them: {error}") from error
    if done.returncode != 0:
        raise ApartError(f"the process that reads them ended with {done.returncode}")
    is_error, found = pickle.loads(done.stdout)  # of this package's own code
    if is_error:
        raise found
    return found


def main() -> None:
    """Call the function that standard input has, and write what it returns or raises."""
    function, given = pickle.load(sys.stdin.buffer)
    try:
        result = False, function(*given)
    except Exception as error:
        result = True, error
    sys.stdout.buffer.write(pickle.dumps(result))
