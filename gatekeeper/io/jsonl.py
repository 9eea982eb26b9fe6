"""JSON Lines, read so that a bad line is reported with its file, its number and what is wrong.

A line may have 64 MiB, unpacked: a longer one is a bad line like any other, and no more of it than
that is ever in memory, whatever a few kilobytes of gzip unpack to.
"""

from __future__ import annotations

import gzip
import io
import json
import zlib
from codecs import BOM_UTF8
from collections.abc import Callable, Iterator, Mapping
from functools import partial
from pathlib import Path
from typing import Any, TypeVar

from gatekeeper.errors import BadInputError
from gatekeeper.limits import MAX_LINE

__all__ = ["field", "lines_of", "read_jsonl"]

T = TypeVar("T")
_decode = json.JSONDecoder().raw_decode


def read_jsonl(
    path: str | Path,
    parse: Callable[[Mapping[str, Any]], T],
    *,
    skip_bad: bool = False,
    on_bad: Callable[[BadInputError], None] = lambda error: None,
) -> Iterator[T]:
    """`parse` of each line's object, in order; gzip by suffix, blank lines ignored.

    A line that is no JSON object, or that is longer than MAX_LINE, or that `parse` refuses with
    BadInputError, raises BadInputError naming file and line; with `skip_bad` it goes to `on_bad`
    instead. A file that cannot be read raises BadInputError too.
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
    """Each line with its end; gzip by suffix. None for a line that is longer than MAX_LINE.

    Raises BadInputError where the file cannot be read.
    """
    path = Path(path)
    try:
        with _open(path) as file:
            if file.peek(3)[:3] == BOM_UTF8:
                file.read(3)
            for line in iter(partial(file.readline, MAX_LINE + 1), b""):
                if len(line) <= MAX_LINE:
                    yield line
                    continue
                yield None
                while line and not line.endswith(b"\n"):  # the rest of it, a piece at a time
                    line = file.readline(1 << 20)
    except (OSError, EOFError, zlib.error) as e:
        reason = e.strerror if isinstance(e, OSError) and e.strerror else e
        raise BadInputError(f"{path} cannot be read: {reason}") from e


def _open(path: Path) -> io.BufferedReader:
    if path.suffix != ".gz":
        return path.open("rb")
    # GzipFile has what a BufferedReader asks of a raw file, and is slow when asked for lines.
    return io.BufferedReader(gzip.open(path), 1 << 17)


def field(data: Mapping[str, Any], name: str, kind: type[T], *, default: T | None = None) -> T:
    """A field of the wanted type. Raises BadInputError where it is absent without a default."""
    value = data.get(name, default)
    if value is None:
        raise BadInputError(f"field {name!r} is missing")
    if not isinstance(value, kind) or (kind is not bool and isinstance(value, bool)):
        raise BadInputError(f"field {name!r} is {value!r:.80}, not of type {kind.__name__}")
    return value


def _text(line: bytes) -> str:
    try:
        return line.decode().strip()
    except UnicodeDecodeError as e:
        raise BadInputError(f"not UTF-8: {e.reason} at byte {e.start}") from None


def _object(line: str) -> Mapping[str, Any]:
    """`json.loads` of a stripped line, without its checks of type and of white space."""
    try:
        data, end = _decode(line)
    except (ValueError, RecursionError) as e:
        raise BadInputError(f"not JSON: {e}") from None
    if end < len(line):
        raise BadInputError(f"not JSON: after column {end} comes {line[end:]!r:.40}")
    if not isinstance(data, dict):
        raise BadInputError(f"a JSON object is needed, not {type(data).__name__}")
    return data
