"""The gateway's own errors, in OpenAI's format and with its status codes."""

from __future__ import annotations

import json
from collections.abc import Mapping

from aiohttp import web

__all__ = ["RefusalError", "envelope"]


class RefusalError(Exception):
    """The gateway's own answer to a request.

    Parameters
    ----------
    status : int
        HTTP status.
    code : str
        For programs.
    message : str
        For people. It contains no task and no key.
    retry_after : int or None
        Seconds after which the caller should try again.
    """

    def __init__(
        self, status: int, code: str, message: str, *, retry_after: int | None = None
    ) -> None:
        super().__init__(message)
        self.status, self.code, self._retry_after = status, code, retry_after

    def response(self, headers: Mapping[str, str] | None = None) -> web.Response:
        """The answer."""
        if self._retry_after is not None:
            headers = {**(headers or {}), "Retry-After": str(self._retry_after)}
        return web.Response(
            status=self.status,
            body=envelope(self.status, self.code, str(self)),
            content_type="application/json",
            headers=headers,
        )


def envelope(status: int, code: str, message: str) -> bytes:
    """An error as OpenAI's APIs return it."""
    kind = "invalid_request_error" if status < 500 else "api_error"
    error = {"message": f"gatekeeper: {message}", "type": kind, "param": None, "code": code}
    return json.dumps({"error": error}).encode()
