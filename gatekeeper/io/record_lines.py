"""Records written as JSON Lines."""

from __future__ import annotations

import gzip
import json
import os
from collections.abc import Callable, Iterable, Mapping
from math import inf, isfinite
from pathlib import Path
from typing import Any, Protocol

from gatekeeper.arguments import as_path
from gatekeeper.errors import BadInputError
from gatekeeper.io.record_rows import Row

__all__ = ["write_rows"]

WRITTEN: Mapping[str, Callable[[Any], Any]] = {
    "stratum": int,
    "group": str,
    "benefit": int,
    "propensity": float,
    "verified": bool,
    "value": float,
}


class _BinaryFile(Protocol):
    def write(self, data: bytes, /) -> int: ...


def write_rows(path: str | Path, rows: Iterable[Row]) -> None:
    """Write JSON Lines, gzip by suffix. The file is replaced when it is complete."""
    path = Path(os.path.realpath(as_path("path", path)))
    partial = path.with_name(f"{path.name}.{os.getpid()}.part")
    try:
        with open(partial, "xb") as file:
            if path.suffix == ".gz":  # no time stamp: equal records give equal files
                with gzip.GzipFile("", "wb", fileobj=file, mtime=0) as packed:
                    _write(packed, rows)
            else:
                _write(file, rows)
        partial.replace(path)
    except OSError as e:
        raise BadInputError(f"{path} cannot be written: {e.strerror or e}") from e
    finally:
        partial.unlink(missing_ok=True)


def _write(file: _BinaryFile, rows: Iterable[Row]) -> None:
    for row in rows:
        data: dict[str, Any] = {"id": row.id}
        for name, h in (("h1", row.h1), ("h2", row.h2), ("h3", row.h3)):
            if h == h:
                data[name] = h if h > -inf else "-inf"
        data["cost_estimate"] = row.cost_estimate
        data["cost"] = None if row.cost != row.cost else row.cost
        data["error"] = None if row.error != row.error else int(row.error)
        for name, value in row.optional.items():
            data[name] = WRITTEN[name](value)
        if row.features:
            data["features"] = dict(row.features)
        try:
            line = json.dumps(data | _without_nan(dict(row.meta)), allow_nan=False)
        except (TypeError, ValueError, RecursionError) as e:
            raise BadInputError(
                f"id={row.id!r:.80}: meta={row.meta!r:.80}: only JSON values can be written: {e}"
            ) from None
        file.write(line.encode() + b"\n")


def _without_nan(value: Any) -> Any:
    """NaN as null, and infinities as strings: JSON has neither."""
    if isinstance(value, float) and not isfinite(value):
        return None if value != value else str(value)
    if isinstance(value, Mapping):
        return {key: _without_nan(v) for key, v in value.items()}
    return [_without_nan(v) for v in value] if isinstance(value, list | tuple) else value
