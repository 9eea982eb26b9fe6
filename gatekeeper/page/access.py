"""Who may read the page, and who may give verdicts on it.

Any web site can make a browser send requests to addresses on the user's machine. So the host of a
request must be this machine's name (against DNS rebinding), and a verdict needs the token, as a
cookie that scripts cannot read and other sites do not send, and this page as the origin.
"""

from __future__ import annotations

import secrets
from collections.abc import Collection
from hmac import compare_digest
from ipaddress import ip_address
from urllib.parse import SplitResult, urlsplit

from aiohttp import web

__all__ = ["HEADERS", "Access", "RefusedError"]

HEADERS = {
    "content-security-policy": (
        "default-src 'none'; style-src 'self'; script-src 'self'; connect-src 'self'; "
        "img-src 'self'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'"
    ),
    "cache-control": "no-store",
    "cross-origin-resource-policy": "same-origin",
    "referrer-policy": "same-origin",
    "x-content-type-options": "nosniff",
    "x-frame-options": "DENY",
}
"""Headers of every answer: nothing is loaded from another origin, and nothing is cached."""


class RefusedError(Exception):
    """A request that is refused, with its status and why.

    Parameters
    ----------
    status : int
    why : str
    """

    def __init__(self, status: int, why: str) -> None:
        super().__init__(why)
        self.status = status


class Access:
    """Checks of requests.

    Parameters
    ----------
    hosts : collection of str
        Names by which this machine may be called, beside its addresses and localhost.
    private : bool
        Reading needs the token, too.
    token : str or None
        Token that the other processes for this page use; None: a new one.

    Attributes
    ----------
    private : bool
        As given.
    token : str
        Grants the right to give verdicts.
    """

    def __init__(
        self, *, hosts: Collection[str] = (), private: bool = False, token: str | None = None
    ) -> None:
        self.token = token or secrets.token_urlsafe(32)
        self._hosts, self.private = frozenset(map(_host_name, hosts)), private

    def check_host(self, request: web.Request) -> None:
        """Raise RefusedError for a request to a name that is not this machine's."""
        name = _host_name(_split(f"//{request.host}").hostname or "")
        if not (name == "localhost" or name in self._hosts or _is_address(name)):
            raise RefusedError(
                403,
                f"the host {name!r:.80} is not this machine's name: open the page by its "
                "address, or give this name as --host",
            )

    def check_read(self, request: web.Request) -> None:
        """Raise RefusedError for a request that may not read."""
        if self.private and not self.may_write(request):
            raise RefusedError(
                401, "open the page with the link that was printed when it was started"
            )

    def may_write(self, request: web.Request) -> bool:
        """Whether a request comes with the token."""
        return self.is_token(request.cookies.get(_cookie(request), ""))

    def check_write(self, request: web.Request) -> None:
        """Raise RefusedError for a request that may not give a verdict."""
        if not self.may_write(request):
            raise RefusedError(
                403, "no token: open the page with the link that was printed when it was started"
            )
        origin = _split(request.headers.get("origin", ""))
        if origin.scheme not in ("http", "https") or origin.netloc != request.host:
            raise RefusedError(403, "a verdict is given on the page itself")

    def is_token(self, given: str) -> bool:
        """Whether a string is the token, compared in constant time."""
        return compare_digest(given.encode("utf-8", "surrogateescape"), self.token.encode())

    def admit(self, request: web.Request, response: web.StreamResponse, path: str) -> None:
        """Give a browser the token."""
        response.set_cookie(
            _cookie(request), self.token, path=path, httponly=True, samesite="Strict"
        )


def _cookie(request: web.Request) -> str:
    """The cookie's name, with the port: browsers send a cookie to all ports of a machine."""
    try:
        port = request.url.port
    except ValueError:  # of a host with an impossible one, which no browser sends
        port = None
    return f"gatekeeper-{port}"


def _host_name(given: str) -> str:
    """Equal for spellings of one host's name: case does not count, nor a dot after it."""
    return given.lower().removesuffix(".")


def _split(url: str) -> SplitResult:
    try:
        return urlsplit(url)
    except ValueError:
        return urlsplit("")


def _is_address(name: str) -> bool:
    try:
        ip_address(name)
    except ValueError:
        return False
    return True
