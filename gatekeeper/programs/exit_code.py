"""The exit code of a program, and its error as one message."""

from __future__ import annotations

import os
import sys
from codecs import register_error
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from io import TextIOWrapper

from gatekeeper.errors import GatekeeperError
from gatekeeper.limits import cause_of
from gatekeeper.log.place import without_passwords
from gatekeeper.printable import printable
from gatekeeper.programs.interrupt import Interrupt, prompt_interrupts
from gatekeeper.programs.standard_output import open_closed_streams

__all__ = ["exit_code_of"]

PLAIN = {"−": "-", "–": "-", "×": "x", "÷": "/", "±": "+-", "…": "...", "“": '"', "”": '"'}


def exit_code_of(program: Callable[[], int]) -> int:
    """Run a program and print its error, if it has one, to standard error.

    Parameters
    ----------
    program : callable
        Returns the exit code.

    Returns
    -------
    int
        What `program` returns; 2 for bad input and for a limit of this machine, 130 for Ctrl-C,
        143 for SIGTERM, 141 where the reader of the output has stopped.

    Raises
    ------
    Exception
        Any other error, which is a bug.
    """
    open_closed_streams()
    _print_on_any_terminal()
    interrupt = Interrupt()
    try:
        with _quiet_tracker(), prompt_interrupts() as interrupt:
            code = program()
            print(end="", flush=True)
    except GatekeeperError as e:
        if interrupt.number is not None:
            return _interrupted(interrupt)
        print(f"gatekeeper: {printable(without_passwords(str(e)))}", file=sys.stderr)
        return 2
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 141
    except KeyboardInterrupt:
        return _interrupted(interrupt)
    except Exception as e:
        if interrupt.number is not None:
            return _interrupted(interrupt)
        cause = cause_of(e)
        if cause is None:
            raise
        print(f"gatekeeper: {cause}", file=sys.stderr)
        return 2
    return code


def _interrupted(by: Interrupt) -> int:
    print(by.message, file=sys.stderr)
    return by.exit_code


@contextmanager
def _quiet_tracker() -> Iterator[None]:
    """An interrupted program may end before it has removed the semaphores of its workers.

    Multiprocessing's tracker, a process that starts with the first of them, removes them then, and
    would print a warning after the program's last words.
    """
    before = os.environ.get("PYTHONWARNINGS")
    os.environ["PYTHONWARNINGS"] = ",".join(filter(None, (before, "ignore:resource_tracker")))
    try:
        yield
    finally:
        if before is None:
            del os.environ["PYTHONWARNINGS"]
        else:
            os.environ["PYTHONWARNINGS"] = before


def _print_on_any_terminal() -> None:
    """A character that its encoding lacks becomes a plain one or an escape; a width of 0 is no
    width.
    """
    if not os.environ.get("COLUMNS", "").strip("0"):
        os.environ.pop("COLUMNS", None)
    if isinstance(sys.stdout, TextIOWrapper):
        register_error("gatekeeper.plain", _plain)
        sys.stdout.reconfigure(errors="gatekeeper.plain")


def _plain(error: UnicodeError) -> tuple[str, int]:
    """What to print in place of characters that an encoding lacks, and where to go on."""
    if not isinstance(error, UnicodeEncodeError):
        raise error
    lacking = error.object[error.start : error.end]
    plain = (PLAIN.get(c) or c.encode("ascii", "backslashreplace").decode() for c in lacking)
    return "".join(plain), error.end
