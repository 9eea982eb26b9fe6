"""Bytes of headers that are no UTF-8, such as Latin-1.

aiohttp reads them as lone surrogates (PEP 383), and leaves these out when it writes a head. It has
no parameter for that, and no class that both a server and a client take.
"""

from __future__ import annotations

from typing import Any

from aiohttp import http_writer
from multidict import CIMultiDict

__all__ = ["keep_header_bytes"]

_usual: Any = http_writer._serialize_headers


def keep_header_bytes() -> None:
    """From now on aiohttp writes in this process the bytes of headers that it has read."""
    http_writer._serialize_headers = _serialized


def _serialized(status_line: str, headers: CIMultiDict[str]) -> bytes:
    try:
        (status_line + "".join(headers.values())).encode()
    except UnicodeEncodeError:
        fields = [f"{name}: {value}" for name, value in headers.items()]
        lines = [http_writer._safe_header(line) for line in (status_line, *fields)]
        return "\r\n".join([*lines, "", ""]).encode(errors="surrogateescape")
    written: bytes = _usual(status_line, headers)
    return written
