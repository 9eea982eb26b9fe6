"""JSON over HTTP/1.1 for clients that may be slow, broken or many.

A request that cannot be read gets an error in OpenAI's envelope, and the connection ends; so does
one that takes too long. Each connection has a thread, and their number is limited.
"""

from __future__ import annotations

import io
import json
import socket
import sys
import threading
from collections.abc import Callable, Generator
from contextlib import closing, suppress
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from time import monotonic
from typing import Any, Literal

__all__ = ["DONE", "Event", "Json", "JsonHandler", "JsonServer", "RefusalError", "Stream"]

Json = dict[str, Any]
Event = Json | Literal["[DONE]"]
"""An event of a stream; one with a "type" is sent under that name."""
DONE: Literal["[DONE]"] = "[DONE]"
Stream = Generator[Event, None, None]
MOST_BYTES = 4 << 20  # of a body: parsing it blocks all other threads
MOST_CONNECTIONS = 256


class RefusalError(Exception):
    """The error that the client gets in place of an answer."""

    def __init__(self, message: str, status: HTTPStatus = HTTPStatus.BAD_REQUEST) -> None:
        super().__init__(message)
        self.status = status


class JsonServer(ThreadingHTTPServer):
    """Listens on loopback as soon as it is made; `serve_forever` answers.

    Parameters
    ----------
    port : int
        0 picks a free one.
    handler : type
        Handler of the connections.
    read_seconds : float
        For a whole request, and for the next one to begin; then the connection ends.
    write_seconds : float
        For the client to receive an answer.
    most_connections : int
        At the same time; others get an error.
    """

    daemon_threads = True
    request_queue_size = 128

    def __init__(
        self,
        port: int,
        handler: type[JsonHandler],
        *,
        read_seconds: float = 30.0,
        write_seconds: float = 30.0,
        most_connections: int = MOST_CONNECTIONS,
    ) -> None:
        self.read_seconds, self.write_seconds = read_seconds, write_seconds
        self._free = threading.BoundedSemaphore(most_connections)
        super().__init__(("127.0.0.1", port), handler)

    def process_request(self, request: Any, client_address: Any) -> None:
        if self._free.acquire(blocking=False):
            try:
                super().process_request(request, client_address)
            except BaseException:  # no further thread
                self._free.release()
                raise
            return
        busy = RefusalError("too many connections", HTTPStatus.SERVICE_UNAVAILABLE)
        body = json.dumps(_envelope(busy)).encode()
        head = (
            f"HTTP/1.1 {busy.status} {busy.status.phrase}\r\nContent-Type: application/json\r\n"
            f"Content-Length: {len(body)}\r\nConnection: close\r\n\r\n"
        )
        with suppress(OSError):
            request.settimeout(0.0)  # the message fits into a new connection's buffer
            request.send(head.encode() + body)
        self.shutdown_request(request)

    def process_request_thread(self, request: Any, client_address: Any) -> None:
        try:
            super().process_request_thread(request, client_address)
        finally:
            self._free.release()

    def handle_error(self, request: Any, client_address: Any) -> None:
        if not isinstance(sys.exception(), OSError):  # the client has gone
            super().handle_error(request, client_address)


class JsonHandler(BaseHTTPRequestHandler):
    """One connection. `get` and `post` return the answer, or raise RefusalError.

    An answer that is a generator is sent as a stream of events.
    """

    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True
    server: JsonServer

    def get(self, path: str) -> Json:
        raise NotImplementedError

    def post(self, path: str, request: Json) -> Json | Stream:
        raise NotImplementedError

    def setup(self) -> None:
        super().setup()
        self.rfile.close()
        self._timed = _Timed(self.connection)
        self.rfile = io.BufferedReader(self._timed)

    def handle_one_request(self) -> None:
        self._timed.deadline = monotonic() + self.server.read_seconds
        super().handle_one_request()

    def do_GET(self) -> None:
        if "Content-Length" in self.headers or "Transfer-Encoding" in self.headers:
            self.close_connection = (
                True  # the body is not read, and must not be read as the next request
            )
        self._answer(lambda path: self.get(path))

    def do_POST(self) -> None:
        self._answer(lambda path: self.post(path, self._body()))

    def _answer(self, answer: Callable[[str], Json | Stream]) -> None:
        try:
            found = answer(self.path.partition("?")[0])
            if isinstance(found, dict):
                self._send(HTTPStatus.OK, found)
                return
        except RefusalError as refusal:
            self._refuse(refusal)
        except OSError:
            raise
        except Exception:
            self._refuse(_failed())
            raise  # to handle_error, which prints it
        else:
            self._stream(found)

    def _body(self) -> Json:
        """The JSON object that was sent. Raises RefusalError."""
        size = self._size()
        try:
            body = self.rfile.read(size)
        except TimeoutError:
            self.close_connection = True
            took = f"the request took longer than {self.server.read_seconds:g} s"
            raise RefusalError(took, HTTPStatus.REQUEST_TIMEOUT) from None
        if len(body) < size:
            self.close_connection = True
            raise RefusalError(f"the body ended after {len(body)} of {size} bytes")
        try:
            request = json.loads(body)
        except (ValueError, RecursionError) as e:
            raise RefusalError(f"the body is not JSON: {e}") from None
        if not isinstance(request, dict):
            raise RefusalError("the body must be a JSON object")
        return request

    def _size(self) -> int:
        """The length of the body. Without it the connection ends: the next request has no start."""
        lengths = self.headers.get_all("Content-Length", [])
        coded = self.headers.get("Transfer-Encoding")
        ends, self.close_connection = self.close_connection, True
        if coded is not None:
            raise RefusalError(
                f"Transfer-Encoding: {coded:.80}: this server reads bodies of a Content-Length"
            )
        if not lengths:
            raise RefusalError("Content-Length is missing")
        value = lengths[0].strip()
        if len(set(lengths)) > 1 or not (value.isascii() and value.isdigit()):
            raise RefusalError(f"Content-Length: {', '.join(lengths):.80}: a number is needed")
        if len(value) > 12 or int(value) > MOST_BYTES:
            raise RefusalError(f"Content-Length: {value:.80}: the most is {MOST_BYTES} bytes")
        self.close_connection = ends
        return int(value)

    def _refuse(self, refusal: RefusalError) -> None:
        self._send(refusal.status, _envelope(refusal))

    def _send(self, status: HTTPStatus, answer: Json) -> None:
        body = json.dumps(answer).encode()
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        if self.close_connection:
            self.send_header("Connection", "close")
        self.connection.settimeout(self.server.write_seconds)
        self.end_headers()
        self.wfile.write(body)

    def _stream(self, events: Stream) -> None:
        """Send events as they come. An error on the way is an event, and no end follows it."""
        chunked = self.request_version != "HTTP/1.0"
        self.close_connection = self.close_connection or not chunked
        self.send_response(HTTPStatus.OK)
        self.send_header("Content-Type", "text/event-stream")
        self.send_header("Cache-Control", "no-cache")
        if chunked:
            self.send_header("Transfer-Encoding", "chunked")
        if self.close_connection:
            self.send_header("Connection", "close")
        left = self.server.write_seconds

        def write(data: bytes) -> None:
            nonlocal left
            started = monotonic()
            self.connection.settimeout(max(left, 0.001))
            self.wfile.write(b"%x\r\n%b\r\n" % (len(data), data) if chunked else data)
            left -= monotonic() - started  # the model's time does not count

        self.connection.settimeout(left)
        self.end_headers()
        try:
            with closing(events):  # with its client the generation ends
                for event in events:
                    write(_event(event))
        except OSError:
            raise
        except Exception:
            self.close_connection = True
            write(_event(_envelope(_failed())))
            raise
        if chunked:
            write(b"")

    def send_error(self, code: int, message: str | None = None, explain: str | None = None) -> None:
        """Send the base class's errors in the same envelope."""
        self.close_connection = True
        self.request_version = self.protocol_version  # it may not even have been read
        status = HTTPStatus(code)
        self._refuse(RefusalError(message or status.phrase, status))

    def finish(self) -> None:
        """Give a client that still sends a moment: it would lose the answer with the connection."""
        with suppress(OSError):
            self.connection.shutdown(socket.SHUT_WR)
            self._timed.deadline = monotonic() + min(1.0, self.server.read_seconds)
            while self.rfile.read1(1 << 16):
                pass
        super().finish()

    def log_message(self, format: str, *args: object) -> None:
        pass


class _Timed(io.RawIOBase):
    """What a socket receives up to a deadline; then TimeoutError."""

    def __init__(self, connection: socket.socket) -> None:
        self._connection = connection
        self.deadline = monotonic()

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        left = self.deadline - monotonic()
        if left <= 0:
            raise TimeoutError("the request took too long")
        self._connection.settimeout(left)
        return self._connection.recv_into(buffer)


def _failed() -> RefusalError:
    broken = "this server failed: an error of its own, not of the request"
    return RefusalError(broken, HTTPStatus.INTERNAL_SERVER_ERROR)


def _event(event: Event) -> bytes:
    """One server-sent event."""
    if isinstance(event, str):
        return f"data: {event}\n\n".encode()
    name = f"event: {event['type']}\n" if "type" in event else ""
    return f"{name}data: {json.dumps(event)}\n\n".encode()


def _envelope(refusal: RefusalError) -> Json:
    kind = "server_error" if refusal.status >= 500 else "invalid_request_error"
    return {"error": {"message": str(refusal), "type": kind, "param": None, "code": None}}
