"""Connections to the API behind the gateway."""

from __future__ import annotations

import re
from collections.abc import AsyncIterator, Mapping, Set
from typing import Any

import aiohttp
from aiohttp import HttpVersion11, web
from aiohttp.abc import AbstractStreamWriter
from multidict import CIMultiDict, CIMultiDictProxy
from yarl import URL

from gatekeeper.gateway.callers import MAX_HEADER
from gatekeeper.gateway.codings import CodingError, Decoder
from gatekeeper.gateway.refusal import RefusalError
from gatekeeper.gateway.settings import GatewaySettings

__all__ = [
    "CutError",
    "PassedResponse",
    "Upstream",
    "WholeResponse",
    "body_of",
    "pieces_of",
]

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
OF_A_CALL = HOP_BY_HOP | {"host", "expect"}
OF_A_BODY = HOP_BY_HOP | {"content-length"}
OF_A_DECODED_BODY = OF_A_BODY | {"content-encoding"}
OF_A_READ_CALL = OF_A_CALL | {"content-length"}  # aiohttp sets it
OF_A_PLAIN_CALL = OF_A_READ_CALL | {"accept-encoding"}
OF_NO_MORE = {"keep-alive", "close"}  # in `Connection`, which may name headers
OWN_HEADERS = "x-gatekeeper-"  # between caller and gateway; not forwarded
IS_ELSEWHERE = re.compile("[a-z][a-z0-9+.-]*:|[/\\\\]{2}", re.IGNORECASE)  # a URL with a host
CONTROL = re.compile(rb"[\0-\x08\n-\x1f\x7f]")  # none may stand in a line of a head, but a tab
CONNECT = 10.0  # seconds until the upstream has accepted a connection
KEEP = 4.0  # seconds: some servers (uvicorn, Node.js) close an idle connection after 5


class CutError(Exception):
    """The upstream's connection ended before its answer did."""


class _Request(aiohttp.ClientRequest):
    """A request with the headers that it is given: aiohttp has none to add, nor to look for."""

    _skip_auto_headers = CIMultiDict({"Content-Type": None})  # of a body

    def update_auto_headers(self, skip_auto_headers: object) -> None:
        """Add none."""


class Upstream:
    """A pool of connections to the upstream. Made on the event loop that uses it.

    Parameters
    ----------
    settings : GatewaySettings
    """

    def __init__(self, settings: GatewaySettings) -> None:
        self._settings = settings
        self._root = str(URL(settings.root)).rstrip("/")  # as it is written on the wire
        self._session = aiohttp.ClientSession(
            connector=aiohttp.TCPConnector(limit=0, keepalive_timeout=KEEP),
            # No total limit: a caller closes its connection when it has waited enough.
            timeout=aiohttp.ClientTimeout(total=None, sock_connect=CONNECT),
            auto_decompress=False,
            cookie_jar=aiohttp.DummyCookieJar(),
            request_class=_Request,
            read_bufsize=1 << 18,
            max_line_size=MAX_HEADER,
            max_field_size=MAX_HEADER,
        )

    async def close(self) -> None:
        """End all connections."""
        await self._session.close()

    async def answer(
        self, request: web.Request, body: bytes | aiohttp.StreamReader | None, *, plain: bool
    ) -> aiohttp.ClientResponse:
        """The head of the upstream's answer; its body is read from it, within `async with`.

        Parameters
        ----------
        request
            The caller's.
        body
            Bytes, or the stream of the caller's body.
        plain
            Request an answer without compression, so that it can be read.

        Raises
        ------
        RefusalError
            If there is no answer: 502, or 504 where no connection was accepted in time; and 502
            for a head that cannot be sent to the caller.
        """
        if plain:
            headers = _passed(request.headers, OF_A_PLAIN_CALL)
            headers.add("Accept-Encoding", "identity")
        else:
            is_read = isinstance(body, bytes)
            headers = _passed(request.headers, OF_A_READ_CALL if is_read else OF_A_CALL)
        if self._settings.upstream_key is not None:
            headers["Authorization"] = f"Bearer {self._settings.upstream_key}"
        # Without the scheme and the host that a request to a proxy has before its path.
        url = URL(self._root + request.rel_url.raw_path_qs, encoded=True)
        try:
            answer = await self._session.request(
                request.method, url, headers=headers, data=body, allow_redirects=False
            )
        except aiohttp.ConnectionTimeoutError as error:
            why = f"it accepted no connection within {CONNECT:g} s"
            raise RefusalError(504, "upstream_timeout", f"{self._what}: {why}") from error
        except (aiohttp.ClientError, OSError) as error:
            raise RefusalError(502, "upstream_unreachable", f"{self._what}: {error}") from error
        if wrong := _not_sent_on(answer):
            answer.close()
            why = f"the head of its answer has {wrong}"
            raise RefusalError(502, "upstream_invalid", f"{self._what}: {why}")
        return answer

    def check_redirect(self, answer: aiohttp.ClientResponse) -> None:
        """Check that a caller that sends its request again would send it to the gateway.

        Raises
        ------
        RefusalError
            If it would send it, with its task, to another server: 502.
        """
        location = answer.headers.get("Location", "")
        if IS_ELSEWHERE.match(location):
            raise RefusalError(
                502,
                "upstream_redirects",
                f"the upstream {self._settings.upstream} redirects to {location:.200}: a request "
                "that is sent there goes past the gateway, with its task; --upstream needs the "
                "base URL that does not redirect",
            )

    @property
    def _what(self) -> str:
        return f"no answer from the upstream {self._settings.upstream}"


def _not_sent_on(answer: aiohttp.ClientResponse) -> str:
    """What of a head no server can send on; "" for most answers."""
    if answer.status < 100:
        return f"the status {answer.status}"
    reason = (answer.reason or "").encode("utf-8", "surrogateescape")
    for name, value in ((b"reason", reason), *answer.raw_headers):
        if CONTROL.search(value):
            return f"a control character in {name.decode('latin-1')!r:.80}"
    return ""


def _passed(headers: CIMultiDictProxy[str], stops: Set[str]) -> CIMultiDict[str]:
    """The headers of a message to forward, in order, with repeated ones."""
    named = ",".join(headers.getall("Connection", ["close"])).lower()
    if named not in OF_NO_MORE:
        stops = stops | {name.strip() for name in named.split(",")}
    return CIMultiDict(
        [
            (name, value)
            for name, value in headers.items()
            if (lower := name.lower()) not in stops and not lower.startswith(OWN_HEADERS)
        ]
    )


def _head(
    answer: aiohttp.ClientResponse, stops: Set[str], own: Mapping[str, str] | None
) -> dict[str, Any]:
    """Status, reason and headers of an answer to forward, and the gateway's own headers."""
    headers = _passed(answer.headers, stops)
    headers.extend(own or {})
    return {"status": answer.status, "reason": answer.reason, "headers": headers}


class PassedResponse(web.StreamResponse):
    """The upstream's answer; its head is sent with the first piece of the body, or without any.

    One write in place of two is a tenth of the time that the gateway adds to a stream's first
    frame (benchmarks/gateway.py).

    Parameters
    ----------
    answer : ClientResponse
    own : mapping or None
        Headers that are added to an answer whose body may change.
    decoded : bool
        Whether the body that is sent has no content coding, and the upstream's has one.

    Attributes
    ----------
    of_upstream
        The answer's headers.
    """

    _send_headers_immediately = False  # aiohttp's own `Response` has it

    def __init__(
        self,
        answer: aiohttp.ClientResponse,
        own: Mapping[str, str] | None = None,
        *,
        decoded: bool = False,
    ) -> None:
        stops = HOP_BY_HOP if own is None else OF_A_DECODED_BODY if decoded else OF_A_BODY
        super().__init__(**_head(answer, stops, own))
        self.of_upstream = answer.headers

    async def prepare(self, request: web.BaseRequest) -> AbstractStreamWriter | None:
        """Send the head. For HTTP/1.0, only the end of the connection ends a body without a length,
        also if the caller would keep it.
        """
        if request.version < HttpVersion11 and self.content_length is None:
            self.force_close()
        return await super().prepare(request)


class WholeResponse(web.Response):
    """As `PassedResponse`, with a body that has been read."""

    def __init__(
        self,
        answer: aiohttp.ClientResponse,
        body: bytes,
        own: Mapping[str, str] | None = None,
        *,
        decoded: bool = False,
    ) -> None:
        stops = OF_A_DECODED_BODY if decoded else OF_A_BODY
        super().__init__(body=body, **_head(answer, stops, own))
        self.of_upstream = answer.headers


async def pieces_of(
    answer: aiohttp.ClientResponse, decoder: Decoder | None = None
) -> AsyncIterator[bytes]:
    """The body in pieces as received, or decoded; the first one, from the head, may be empty.

    Raises
    ------
    CutError
        If it ends early, or cannot be decoded.
    """
    content = answer.content
    first = b"" if content.exception() else content.read_nowait()
    try:
        yield first if decoder is None else decoder.add(first)
        async for piece in content.iter_any():
            yield piece if decoder is None else decoder.add(piece)
    except (aiohttp.ClientError, CodingError, OSError) as error:
        raise CutError(str(error)) from error


async def body_of(answer: aiohttp.ClientResponse) -> bytes:
    """The whole body.

    Raises
    ------
    CutError
        If it ends early.
    """
    try:
        return await answer.read()
    except (aiohttp.ClientError, OSError) as error:
        raise CutError(str(error)) from error
