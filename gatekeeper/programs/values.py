"""Values of options and files, for argparse's `type`; errors name the remedy."""

from __future__ import annotations

import argparse
import gzip
import os
import re
import shutil
import stat
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from io import TextIOWrapper
from pathlib import Path
from typing import TextIO

from gatekeeper.arguments import check_base_url, is_key
from gatekeeper.errors import BadInputError
from gatekeeper.io.jsonl import is_endless
from gatekeeper.log.place import PostgresRun, is_address

__all__ = [
    "MOST_SEEDS",
    "STDIN",
    "base_url",
    "check_output",
    "input_file",
    "key_of",
    "named_file",
    "open_output",
    "shown_variable",
    "summary_stream",
]

STDIN = Path("/dev/stdin")
MOST_LINKS = 40  # one after the other, as Linux follows
MOST_SEEDS = 10_000  # orders to average over: more take days, and the mean is known long before


def named_file(text: str) -> Path:
    """The path of a file or folder. An empty name, as of an unset variable, would be the folder."""
    if not text.strip():
        raise argparse.ArgumentTypeError(f"{text!r} is empty: give the name of a file or folder")
    if is_address(text):
        raise argparse.ArgumentTypeError(
            "this is an address (it is not shown here, as it may have a password): give the name "
            "of a file or folder"
        )
    return Path(text)


def base_url(text: str) -> str:
    """The base URL of an API."""
    try:
        return check_base_url("the URL", text)
    except BadInputError as error:
        raise argparse.ArgumentTypeError(str(error)) from None


def key_of(variable: str) -> str | None:
    """The API key in an environment variable, None where it is empty or not set.

    Raises
    ------
    BadInputError
        For one that no header can carry. The message does not show it.
    """
    key = os.environ.get(variable, "").strip()
    if not is_key(key):
        raise BadInputError(
            f"the key in {variable} has a character that no key has, such as a space or a letter "
            "with an accent: set it again"
        )
    return key or None


def shown_variable(name: str) -> str:
    """An environment variable in a message; not what may be a key that was given for its name."""
    if re.fullmatch("[A-Z_][A-Z0-9_]*", name):
        return name
    return "… (not shown: give the name of an environment variable, such as OPENAI_API_KEY)"


def input_file(text: str) -> Path:
    """The path of a file to read, which may then be read again and again; "-" is standard input.

    A pipe gives its bytes only once. Those of standard input and of a shell's `<(command)` are
    kept, under the same name.
    """
    path = STDIN if text == "-" else named_file(text)
    number = _descriptor(path)
    if number is None:
        if path.is_fifo():
            raise argparse.ArgumentTypeError(
                f"{text!r} is a named pipe, which can be read only once: give -, with < {text}"
            )
        return path
    if number == 0 and sys.__stdin__ is None:  # closed; descriptor 0 may be another file by now
        raise argparse.ArgumentTypeError(f"{text!r}: standard input is closed: give a file")
    try:
        mode = os.fstat(number).st_mode
        if is_endless(number):
            raise argparse.ArgumentTypeError(f"{text!r} is a device without an end: give a file")
        if not (stat.S_ISREG(mode) or stat.S_ISDIR(mode)):
            os.set_blocking(number, True)  # else a pause of the writer would be the end
            with open(number, "rb", closefd=False) as pipe, tempfile.TemporaryFile() as kept:
                shutil.copyfileobj(pipe, kept)
                kept.flush()
                os.dup2(kept.fileno(), number)
    except OSError as e:
        raise argparse.ArgumentTypeError(
            f"{text!r} cannot be read: {e.strerror}; give a file"
        ) from e
    return path


def _descriptor(path: Path) -> int | None:
    """The open file of this process that a path names, such as /dev/fd/63 or a link to it; None for
    other paths.
    """
    own = re.compile(rf"/(?:dev|proc/{os.getpid()})/fd/(\d+)")
    for _ in range(MOST_LINKS):
        folder = os.path.realpath(path.parent)
        if (found := own.fullmatch(os.path.join(folder, path.name))) is not None:
            return int(found[1])
        if not path.is_symlink():
            break
        path = Path(folder, os.readlink(path))
    return None


def check_output(option: str, path: Path, *, source: Path | PostgresRun) -> None:
    """Refuse, before the work begins, a file that cannot be written or that is read.

    Parameters
    ----------
    option : str
        That names the file, for errors.
    path : Path
        "-" is standard output.
    source : Path
        What is read.

    Raises
    ------
    BadInputError
    """
    if str(path) == "-":
        return
    is_read = isinstance(source, Path) and path.exists() and source.exists()
    if is_read and path.samefile(str(source)):
        raise BadInputError(f"{option} {path} is the input file itself: give another one")
    if path.is_dir():
        why = "it is a folder"
    elif not path.parent.is_dir():
        why = "its folder does not exist"
    elif not os.access(path if path.exists() else path.parent, os.W_OK):
        why = "permission denied"
    else:
        return
    raise BadInputError(f"{option} {path} cannot be written: {why}; give another file")


@contextmanager
def open_output(option: str, path: Path) -> Iterator[TextIO]:
    """Open a text file to write: gzip by suffix; "-" is standard output.

    Raises
    ------
    BadInputError
        If it cannot be written.
    """
    if str(path) == "-":
        if isinstance(sys.stdout, TextIOWrapper):  # as in a file, whatever the terminal has
            sys.stdout.reconfigure(encoding="utf-8")
        yield sys.stdout
        return
    opener = gzip.open if path.suffix == ".gz" else open
    try:
        with opener(path, "wt", encoding="utf-8") as file:
            yield file
    except OSError as e:  # also where the file is closed
        raise BadInputError(f"{option} {path} cannot be written: {e.strerror}") from e


def summary_stream(out: Path | None) -> TextIO:
    """Where the closing line goes: standard error, where standard output has the data."""
    return sys.stderr if str(out) == "-" else sys.stdout
