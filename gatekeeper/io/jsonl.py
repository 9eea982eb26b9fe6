"""Reading of JSON Lines: an error names the file, the line and the problem.

A line may have at most `MAX_LINE` bytes (64 MiB) after decompression. A longer one is a bad line
like any other, and at most that much of it is in memory, even if a small gzip file expands to more.
"""

from __future__ import annotations

import gzip
import io
import json
import os
import stat
import zlib
from codecs import BOM_UTF8
from collections.abc import Callable, Iterator, Mapping
from functools import partial
from pathlib import Path
from typing import Any, TypeVar

from gatekeeper.arguments import as_path
from gatekeeper.errors import BadInputError
from gatekeeper.limits import MAX_LINE

__all__ = ["UniqueIds", "field", "is_endless", "lines_of", "read_jsonl"]

T = TypeVar("T")
_decode = json.JSONDecoder().raw_decode


def read_jsonl(
    path: str | Path,
    parse: Callable[[Mapping[str, Any]], T],
    *,
    skip_bad: bool = False,
    on_bad: Callable[[BadInputError], None] = lambda error: None,
) -> Iterator[T]:
    """Parse each line of a file, in order. Blank lines are ignored.

    Parameters
    ----------
    path
        The file; decompressed if its suffix is `.gz`.
    parse
        Called with the JSON object of each line. It may raise BadInputError.
    skip_bad
        Skip bad lines: not JSON, not an object, longer than `MAX_LINE`, or refused by `parse`.
    on_bad
        Called with the error of each line skipped.

    Yields
    ------
    T
        What `parse` returned.

    Raises
    ------
    BadInputError
        For a bad line, unless `skip_bad`, naming file and line; and if the file cannot be read.
    """
    for number, line in enumerate(lines_of(path), 1):
        try:
            if line is None:
                raise BadInputError(f"longer than {MAX_LINE >> 20} MiB, the limit of a line")
            text = _text(line)
            if not text:
                continue
            parsed = parse(_object(text))
        except BadInputError as e:
            error = BadInputError(f"{path}, line {number}: {e}")
            if not skip_bad:
                raise error from None
            on_bad(error)
        else:
            yield parsed


def lines_of(path: str | Path) -> Iterator[bytes | None]:
    """The lines of a file, with their ends, as bytes; None for one longer than `MAX_LINE`.

    Parameters
    ----------
    path
        The file; decompressed if its suffix is `.gz`. A byte order mark is skipped.

    Raises
    ------
    BadInputError
        If the file cannot be read, or is a device, which may have no end.
    """
    path = as_path("path", path)
    try:
        with _open(path) as file:
            if is_endless(file.fileno()):
                raise BadInputError(f"{path} is a device without an end: give a file")
            if file.peek(3)[:3] == BOM_UTF8:
                file.read(3)
            for line in iter(partial(file.readline, MAX_LINE + 1), b""):
                if len(line) <= MAX_LINE:
                    yield line
                    continue
                yield None
                while line and not line.endswith(b"\n"):  # skip the rest, piece by piece
                    line = file.readline(1 << 20)
    except (OSError, EOFError, zlib.error) as e:
        reason = e.strerror if isinstance(e, OSError) and e.strerror else e
        raise BadInputError(f"{path} cannot be read: {reason}") from e


def is_endless(descriptor: int) -> bool:
    """Whether this is a device such as /dev/zero. A terminal and /dev/null have an end."""
    found = os.fstat(descriptor)
    if not (stat.S_ISCHR(found.st_mode) or stat.S_ISBLK(found.st_mode)):
        return False
    return not os.isatty(descriptor) and found.st_rdev != os.stat(os.devnull).st_rdev


def _open(path: Path) -> io.BufferedReader:
    if path.suffix != ".gz":
        return path.open("rb")
    # Iterating over the lines of a GzipFile is slow; a BufferedReader around it is not.
    return io.BufferedReader(gzip.open(path), 1 << 17)


def field(data: Mapping[str, Any], name: str, kind: type[T], *, default: T | None = None) -> T:
    """A field of a JSON object.

    Parameters
    ----------
    data
        The object.
    name
        The field.
    kind
        The type it must have. A bool is not taken as an int.
    default
        Value if the field is missing or null; None: the field is required.

    Raises
    ------
    BadInputError
        If the field is missing without a default, or has another type.
    """
    value = data.get(name, default)
    if value is None:
        raise BadInputError(f"field {name!r} is missing")
    if not isinstance(value, kind) or (kind is not bool and isinstance(value, bool)):
        raise BadInputError(f"field {name!r} is {value!r:.80}, not of type {kind.__name__}")
    return value


class UniqueIds:
    """The ids of a file so far, each of which names one thing.

    Parameters
    ----------
    noun : str
        What has an id, such as "task".
    """

    def __init__(self, noun: str) -> None:
        self._noun = noun
        self._seen: set[str] = set()

    def add(self, id_: str) -> None:
        """Raise BadInputError for an id that was added before."""
        if id_ in self._seen:
            raise BadInputError(f"id {id_!r:.80} occurs twice: give each {self._noun} a unique id")
        self._seen.add(id_)


def _text(line: bytes) -> str:
    try:
        return line.decode().strip()
    except UnicodeDecodeError as e:
        raise BadInputError(f"not UTF-8: {e.reason} at byte {e.start}") from None


def _object(line: str) -> Mapping[str, Any]:
    """`json.loads` of a stripped line, without its checks of type and white space (faster)."""
    try:
        data, end = _decode(line)
    except (ValueError, RecursionError) as e:
        raise BadInputError(f"not JSON: {e}") from None
    if end < len(line):
        raise BadInputError(f"not JSON: after column {end} follows {line[end:]!r:.40}")
    if not isinstance(data, dict):
        raise BadInputError(f"a JSON object is needed, not {type(data).__name__}")
    return data
