"""Errors of the gateway itself: JSON in OpenAI's format, whatever the path and the cause."""

from __future__ import annotations

import json
import logging
import urllib.error
import urllib.request
from pathlib import Path
from socket import create_connection
from urllib.parse import urlsplit

import pytest
from running_gateway import running_gateway
from scripted_upstream import ScriptedUpstream, reply

from gatekeeper.gateway import results
from gatekeeper.page.access import Access


def error_of(url: str, method: str) -> tuple[int, str, str]:
    """The status of an error, its code and its message."""
    data = b"{" if method in ("PUT", "POST") else None
    request = urllib.request.Request(url, data, method=method)
    with pytest.raises(urllib.error.HTTPError) as raised, urllib.request.urlopen(request):
        pass
    assert raised.value.headers["content-type"].startswith("application/json")
    with raised.value as answer:
        error = json.loads(answer.read())["error"]
    assert set(error) == {"message", "type", "param", "code"}
    return raised.value.code, error["code"], error["message"]


@pytest.mark.parametrize("page", [None, Access()])
def test_every_error_has_one_format(
    page: Access | None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(gate: object, id_: str) -> None:
        raise RuntimeError("a bug")

    log = tmp_path / "gate.db"
    with (
        ScriptedUpstream(lambda request: [reply(b"{}")]) as upstream,
        running_gateway(upstream.url, page=page, gate={"log": log}) as gateway,
    ):
        own = f"{gateway.url}/gatekeeper"
        for method, path in (
            ("GET", "tasks/x"),
            ("DELETE", "tasks/x"),
            ("POST", "healthz"),
            ("GET", "nothing"),
        ):
            status, code, message = error_of(f"{own}/{path}", method)
            assert (status, code) == (404, "unknown_path")
            assert message.startswith(f"gatekeeper: {method} '/gatekeeper/{path}' is no path")
        head = b"OPTIONS * HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\r\n"
        with create_connection(("127.0.0.1", urlsplit(gateway.url).port)) as connection:
            connection.sendall(head)
            answer = b"".join(iter(lambda: connection.recv(4096), b"")).partition(b"\r\n\r\n")[2]
        assert json.loads(answer)["error"]["message"] == "gatekeeper: OPTIONS '*': Not Found"
        assert error_of(f"{own}/results/x", "GET")[:2] == (404, "unknown_output")
        assert error_of(f"{own}/tasks/x", "PUT")[:2] == (400, "invalid_task")
        logging.disable()
        monkeypatch.setattr(results, "find", broken)
        assert error_of(f"{own}/results/x", "GET")[:2] == (500, "internal_error")
        logging.disable(logging.NOTSET)
        assert upstream.requests == []
