"""Opens the sockets of a server, for one process or several."""

from __future__ import annotations

import os
import socket
from collections.abc import Sequence
from contextlib import ExitStack

from gatekeeper.arguments import check_count
from gatekeeper.errors import BadInputError

__all__ = ["BACKLOG", "listening_sockets", "url_of"]

BACKLOG = 2048  # connections that may wait to be accepted


def listening_sockets(host: str, port: int) -> list[socket.socket]:
    """One for each address of the host, all with the same port.

    Parameters
    ----------
    host : str
        An address of this machine, or a name of it.
    port : int
        0 picks a free one.

    Raises
    ------
    BadInputError
        If it cannot listen there.
    """
    if not isinstance(host, str):  # None would be every address
        raise BadInputError(f"host={host!r:.80}: give an address of this machine, like 127.0.0.1")
    check_count("port", port, least=0, most=65535)
    opened: list[socket.socket] = []
    with ExitStack() as undo:
        try:
            found = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)
            for family, _, _, _, address in dict.fromkeys(found):
                given = address if not opened else (address[0], _port(opened), *address[2:])
                made = undo.enter_context(socket.socket(family, socket.SOCK_STREAM))
                made.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
                if family == socket.AF_INET6:
                    made.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 1)
                made.bind(given)
                made.listen(BACKLOG)
                opened.append(made)
        except (OSError, UnicodeError) as error:  # of a name that has no form on the wire
            number = getattr(error, "errno", None)
            why = os.strerror(number) if number and number > 0 else error
            raise BadInputError(
                f"cannot listen on {host!r}, port {port}: {why}; give an address of this machine, "
                "such as 127.0.0.1, and a free port, or 0"
            ) from None
        undo.pop_all()
    return opened


def url_of(sockets: Sequence[socket.socket]) -> str:
    """Where a client finds them."""
    host, port, *_ = sockets[0].getsockname()
    return f"http://[{host}]:{port}" if ":" in host else f"http://{host}:{port}"


def _port(opened: Sequence[socket.socket]) -> int:
    return int(opened[0].getsockname()[1])
