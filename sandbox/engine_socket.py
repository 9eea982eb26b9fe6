"""Unix sockets of Docker's client that are closed if connecting fails. Needs the extra "docker".

The client leaves its socket open when the engine refuses it, and the interpreter then warns of it
at some later time.
"""

from __future__ import annotations

import socket
from typing import Any

from docker.transport import UnixHTTPAdapter
from docker.transport.unixconn import UnixHTTPConnection, UnixHTTPConnectionPool

__all__ = ["ClosingAdapter"]


class _Connection(UnixHTTPConnection):  # type: ignore[misc]
    def connect(self) -> None:
        self.sock = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        try:
            self.sock.settimeout(self.timeout)
            self.sock.connect(self.unix_socket)
        except BaseException:
            self.close()
            raise


class _Pool(UnixHTTPConnectionPool):  # type: ignore[misc]
    def _new_conn(self) -> _Connection:
        return _Connection(self.base_url, self.socket_path, self.timeout)


class ClosingAdapter(UnixHTTPAdapter):  # type: ignore[misc]
    """Replaces an adapter that has not yet connected."""

    def __init__(self, other: UnixHTTPAdapter) -> None:
        super().__init__(other.socket_path, other.timeout, max_pool_size=other.max_pool_size)

    def get_connection(self, url: str, proxies: Any = None) -> _Pool:
        with self.pools.lock:
            pool: _Pool | None = self.pools.get(url)
            if pool is None:
                pool = _Pool(url, self.socket_path, self.timeout, maxsize=self.max_pool_size)
                self.pools[url] = pool
            return pool
