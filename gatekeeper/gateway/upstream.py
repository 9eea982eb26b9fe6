"""Connections to the API behind the gateway."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from typing import Any

import aiohttp
from aiohttp import web
from multidict import CIMultiDict, CIMultiDictProxy
from yarl import URL

from gatekeeper.gateway.refusal import RefusalError
from gatekeeper.gateway.settings import GatewaySettings

__all__ = ["CutError", "Upstream", "body_of", "pieces_of"]

# RFC 9110, section 7.6.1: headers of one connection, not of the message.
HOP_BY_HOP = {
    "connection",
    "keep-alive",
    "proxy-authenticate",
    "proxy-authorization",
    "proxy-connection",
    "te",
    "trailer",
    "transfer-encoding",
    "upgrade",
}
OWN_HEADERS = "x-gatekeeper-"  # between caller and gateway; they do not pass
KEEP = 4.0  # seconds: some servers (uvicorn, Node.js) close an idle connection after 5


class CutError(Exception):
    """The upstream's connection ended before its answer did."""


class Upstream:
    """A pool of connections to the upstream. Made on the event loop that uses it.

    Parameters
    ----------
    settings : GatewaySettings
    """

    def __init__(self, settings: GatewaySettings) -> None:
        self._settings = settings
        self._root = settings.root
        self._session = aiohttp.ClientSession(
            connector=aiohttp.TCPConnector(limit=0, keepalive_timeout=KEEP),
            # No limit on the whole: a caller ends its connection when it has waited enough.
            timeout=aiohttp.ClientTimeout(total=None, sock_connect=10.0),
            auto_decompress=False,
            cookie_jar=aiohttp.DummyCookieJar(),
            skip_auto_headers=("Accept", "Accept-Encoding", "Content-Type", "User-Agent"),
            read_bufsize=1 << 18,
        )

    async def close(self) -> None:
        """End all connections."""
        await self._session.close()

    @asynccontextmanager
    async def answer(
        self, request: web.Request, body: bytes | aiohttp.StreamReader | None, *, plain: bool
    ) -> AsyncIterator[aiohttp.ClientResponse]:
        """The head of the upstream's answer; its body is read from it.

        Parameters
        ----------
        request
            The caller's.
        body
            Bytes, or what the caller still sends.
        plain
            Ask for an answer without compression, because it will be read.

        Raises
        ------
        RefusalError
            If there is no answer: 502, or 504 after a timeout.
        """
        headers = self._request_headers(request.headers)
        if plain:
            headers["Accept-Encoding"] = "identity"
        if isinstance(body, bytes):
            headers.popall("Content-Length", None)  # aiohttp sets it
        url = URL(self._root + request.raw_path, encoded=True)
        try:
            answer = await self._session.request(
                request.method, url, headers=headers, data=body, allow_redirects=False
            )
        except TimeoutError as error:
            raise RefusalError(504, "upstream_timeout", f"{self._what}: {error}") from error
        except (aiohttp.ClientError, OSError) as error:
            raise RefusalError(502, "upstream_unreachable", f"{self._what}: {error}") from error
        async with answer:
            yield answer

    @property
    def _what(self) -> str:
        return f"no answer from the upstream {self._settings.upstream}"

    def _request_headers(self, headers: CIMultiDictProxy[str]) -> CIMultiDict[str]:
        passed = _passed(headers, lambda name: name in ("host", "expect"))
        if self._settings.upstream_key is not None:
            passed["Authorization"] = f"Bearer {self._settings.upstream_key}"
        return passed

    @staticmethod
    def headers(answer: aiohttp.ClientResponse, *, same_body: bool = True) -> CIMultiDict[str]:
        """The answer's headers for the caller; without a length where the body may change."""
        return _passed(answer.headers, lambda name: name == "content-length" and not same_body)


def _passed(headers: Mapping[str, Any], stops: Callable[[str], bool]) -> CIMultiDict[str]:
    """The headers of a message that pass, in their order, with those that repeat."""
    named = {name.strip().lower() for name in headers.get("Connection", "").split(",")}
    passed: CIMultiDict[str] = CIMultiDict()
    for name, value in headers.items():
        lower = name.lower()
        if lower in HOP_BY_HOP or lower in named or lower.startswith(OWN_HEADERS):
            continue
        if not stops(lower):
            passed.add(name, value)
    return passed


async def pieces_of(answer: aiohttp.ClientResponse) -> AsyncIterator[bytes]:
    """The body as it comes.

    Raises
    ------
    CutError
        If it breaks off.
    """
    try:
        async for piece in answer.content.iter_any():
            yield piece
    except (aiohttp.ClientError, OSError) as error:
        raise CutError(str(error)) from error


async def body_of(answer: aiohttp.ClientResponse) -> bytes:
    """The whole body.

    Raises
    ------
    CutError
        If it breaks off.
    """
    try:
        return await answer.read()
    except (aiohttp.ClientError, OSError) as error:
        raise CutError(str(error)) from error
