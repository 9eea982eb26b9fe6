"""JSON Lines, read so that a bad line is reported with its file, its number and what is wrong."""

from __future__ import annotations

import gzip
import json
import zlib
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any, TypeVar

from gatekeeper.errors import BadInputError

__all__ = ["field", "read_jsonl"]

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

    A line that is no JSON object, or that `parse` refuses with BadInputError, raises BadInputError
    naming file and line; with `skip_bad` it goes to `on_bad` instead. A file that cannot be read
    raises BadInputError too.
    """
    path = Path(path)
    opener = gzip.open if path.suffix == ".gz" else open
    try:
        with opener(path, "rt", encoding="utf-8-sig") as lines:
            for number, line in enumerate(lines, 1):
                line = line.strip()
                if not line:
                    continue
                try:
                    yield parse(_object(line))
                except BadInputError as e:
                    error = BadInputError(f"{path}, line {number}: {e}")
                    if not skip_bad:
                        raise error from None
                    on_bad(error)
    except (OSError, EOFError, UnicodeDecodeError, zlib.error) as e:
        reason = e.strerror if isinstance(e, OSError) and e.strerror else e
        raise BadInputError(f"{path} cannot be read: {reason}") from e


def field(data: Mapping[str, Any], name: str, kind: type[T], *, default: T | None = None) -> T:
    """A field of the wanted type. Raises BadInputError where it is absent without a default."""
    value = data.get(name, default)
    if value is None:
        raise BadInputError(f"field {name!r} is missing")
    if not isinstance(value, kind) or (kind is not bool and isinstance(value, bool)):
        raise BadInputError(f"field {name!r} is {value!r:.80}, not of type {kind.__name__}")
    return value


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
