"""Access to the page: what a request with and without its token can read and change."""

from __future__ import annotations

import asyncio
import http.client
import json
import re
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from urllib.parse import urlencode, urlsplit

import pytest
from aiohttp.test_utils import make_mocked_request
from running_gateway import Running, running_gateway
from scripted_upstream import ScriptedUpstream, reply

from gatekeeper import BadInputError, Budget, Outcome, Verdict
from gatekeeper.log import SQLiteLog
from gatekeeper.page.access import HEADERS, Access, RefusedError
from gatekeeper.page.application import LivePage
from gatekeeper.page.server import serve_page
from gatekeeper.page.watcher import Watcher
from gatekeeper.testing import make_generation

CSP = (
    "default-src 'none'; style-src 'self'; script-src 'self'; connect-src 'self'; "
    "img-src 'self'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'"
)


class CannotTell:
    def verify(self, generation: object, task: object) -> Outcome:
        return Outcome(Verdict.INFRA_ERROR, detail="no such reference")


@contextmanager
def serving(log: Path, **options: object) -> Iterator[Running]:
    """A gateway with three outputs that wait for a person."""
    with (
        ScriptedUpstream(lambda request: [reply(b"{}")]) as upstream,
        running_gateway(
            upstream.url,
            verifier=CannotTell(),
            budget=Budget(fraction=1.0),
            gate={"log": log},
            page=Access(private="own_key" in options),
            **options,
        ) as running,
    ):
        for i in range(3):
            running.gate.maybe_verify(make_generation(f"g{i}", seed=i), {"kind": "math"})
        yield running
        assert not upstream.requests  # nothing under the page's path goes upstream


def ask(
    running: Running, method: str, path: str, *, body: str | None = None, **headers: str
) -> tuple[int, http.client.HTTPMessage, str]:
    where = urlsplit(running.url)
    connection = http.client.HTTPConnection(where.hostname or "", where.port, timeout=120)
    try:
        form = {"content-type": "application/x-www-form-urlencoded"} if body else {}
        connection.request(method, path, body, form | headers)
        answer = connection.getresponse()
        return answer.status, answer.headers, answer.read().decode()
    finally:
        connection.close()


def cookie(running: Running) -> str:
    """What a browser has after the printed link."""
    status, headers, _ = ask(running, "GET", f"/gatekeeper/?token={running.token}")
    assert (status, headers["location"]) == (303, "/gatekeeper/")
    set_, *attributes = headers["set-cookie"].split("; ")
    assert {a.lower() for a in attributes} == {"httponly", "path=/gatekeeper/", "samesite=strict"}
    return str(set_)


def events(log: Path) -> int:
    with SQLiteLog(log, read_only=True) as opened:
        return opened.last()


def test_nothing_changes_without_the_token(tmp_path: Path) -> None:
    """Nor with it from another site's page, or by another host's name, or by another method."""
    log = tmp_path / "run.db"
    with serving(log) as running:
        before, token = events(log), cookie(running)
        page = ask(running, "GET", "/gatekeeper/", cookie=token)[2]
        (seq, *_) = re.findall(r'name="output" value="(\d+)"', page)
        body, origin = urlencode({"output": seq, "verdict": "passed"}), running.url
        verdicts = "/gatekeeper/verdicts"
        name = token.partition("=")[0]
        refused = [
            (403, "POST", {"origin": origin}),
            (403, "POST", {"origin": origin, "cookie": f"{name}=x"}),
            (403, "POST", {"origin": origin, "cookie": f"{name}="}),
            (403, "POST", {"cookie": token}),
            (403, "POST", {"cookie": token, "origin": "null"}),
            (403, "POST", {"cookie": token, "origin": "http://evil.example"}),
            (403, "POST", {"cookie": token, "origin": origin.replace("127.0.0.1", "127.0.0.2")}),
            (
                403,
                "POST",
                {"cookie": token, "origin": "http://evil.example", "host": "evil.example"},
            ),
            (404, "GET", {"cookie": token, "origin": origin}),
            (404, "PUT", {"cookie": token, "origin": origin}),
        ]
        for status, method, headers in refused:
            assert ask(running, method, verdicts, body=body, **headers)[0] == status, headers
        good = {"cookie": token, "origin": origin}
        for wrong, status in (
            ({"output": seq, "verdict": "infra_error"}, 400),
            ({"output": "-1", "verdict": "passed"}, 400),
            ({"output": "²", "verdict": "passed"}, 400),
            ({"output": "999999", "verdict": "passed"}, 409),
            ({"output": "1" * 900, "verdict": "passed"}, 400),
            ({"output": "1" * 9000, "verdict": "passed"}, 413),
        ):
            assert ask(running, "POST", verdicts, body=urlencode(wrong), **good)[0] == status, wrong
        form = "application/x-www-form-urlencoded"
        for kind in (
            f"{form}; charset=x",
            "multipart/form-data",
            "multipart/form-data; boundary=x",
        ):
            unreadable = ask(running, "POST", verdicts, body=body, **good | {"content-type": kind})
            assert unreadable[0] == 400, kind
            assert unreadable[2].startswith("gatekeeper: the form cannot be read: ")
        assert events(log) == before
        assert ask(running, "GET", "/gatekeeper/?token=x")[0] == 403
        assert "<button" not in ask(running, "GET", "/gatekeeper/")[2]

        status, headers, _ = ask(running, "POST", verdicts, body=body, **good)
        assert (status, headers["location"]) == (303, "/gatekeeper/")
        outcome = running.gate.find("g0").outcome
        assert (outcome.verdict, outcome.detail) == ("passed", "by a person, on the live page")
        assert running.gate.status().spent + running.gate.status().warmup_spent == 1.0
        again = ask(running, "POST", verdicts, body=body, **good)
        assert again[0] == 409


def test_who_may_read(tmp_path: Path) -> None:
    """Every answer has the headers; a name that is not this machine's gets none of the pages."""
    with serving(tmp_path / "run.db") as running:
        seq = re.findall(r"outputs/(\d+)", ask(running, "GET", "/gatekeeper/")[2])[0]
        paths = ["", "page.css", "page.js", "icon.svg", f"outputs/{seq}", "outputs/99", "nothing"]
        assert HEADERS["content-security-policy"] == CSP
        for path in paths:
            status, headers, text = ask(running, "GET", f"/gatekeeper/{path}")
            assert status == (404 if path in paths[-2:] else 200), path
            if path == "nothing":  # the gateway's own answer
                assert json.loads(text)["error"]["code"] == "unknown_path"
                continue
            assert {name: headers[name] for name in HEADERS} == HEADERS
            assert "http" not in re.sub(r"http://www\.w3\.org|127\.0\.0\.1", "", text), path
        hosts = ("evil.example", "127.0.0.1.evil.example", "localhost.evil.example:80", "[", "")
        for path in ("", f"?token={running.token}", "updates", f"outputs/{seq}", "page.js"):
            for host in hosts:
                assert ask(running, "GET", f"/gatekeeper/{path}", host=host)[0] == 403, host
        for host in ("localhost", "[::1]:8080", "10.0.0.7", "localhost:x", "localhost:99999"):
            assert ask(running, "GET", "/gatekeeper/", host=host)[0] == 200


@pytest.mark.parametrize("given", ["Big-Mac.local", "big-mac.local."])
def test_a_name_of_this_machine_in_any_spelling(given: str) -> None:
    access = Access(hosts=[given])
    for name in ("big-mac.local:8081", "BIG-MAC.LOCAL", "big-mac.local.:80", "localhost.:1"):
        access.check_host(make_mocked_request("GET", "/", headers={"host": name}))
    for name in ("big-mac", "mac.local", "big-mac.local.evil.example", ""):
        with pytest.raises(RefusedError, match="is not this machine's name"):
            access.check_host(make_mocked_request("GET", "/", headers={"host": name}))


def test_with_a_key_of_its_own_the_page_is_private(tmp_path: Path) -> None:
    with serving(tmp_path / "run.db", own_key="secret") as running:
        token = cookie(running)
        for path in ("", "updates", "outputs/2"):
            assert ask(running, "GET", f"/gatekeeper/{path}")[0] == 401
        assert ask(running, "GET", "/gatekeeper/", cookie=token)[0] == 200
        assert ask(running, "GET", "/gatekeeper/metrics", cookie=token)[0] == 401
        assert ask(running, "GET", "/gatekeeper/outputs/x/../../metrics", cookie=token)[0] in (
            401,
            404,
        )


@pytest.mark.parametrize("given", ["", "x", "é", "\udcff"])
def test_no_other_token(given: str) -> None:
    access = Access()
    assert not access.is_token(given)
    assert access.is_token(access.token)
    assert len({Access().token for _ in range(4)}) == 4


def test_an_error_that_nobody_expected_freezes_no_page(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    advance, failures = Watcher.advance, iter([ZeroDivisionError])

    def fail_once(self: Watcher, *arguments: Any, **keywords: Any) -> Any:
        if (failure := next(failures, None)) is not None:
            raise failure
        return advance(self, *arguments, **keywords)

    monkeypatch.setattr("gatekeeper.page.application.ALIVE", 0.1)
    with serving(tmp_path / "run.db") as running:
        where = urlsplit(running.url)
        connection = http.client.HTTPConnection(where.hostname or "", where.port, timeout=120)
        monkeypatch.setattr(Watcher, "advance", fail_once)
        connection.request("GET", "/gatekeeper/updates", headers={"cookie": cookie(running)})
        with connection.getresponse() as answer:
            lines = (answer.readline() for _ in range(1000))
            assert any(line.startswith(b"data: ") for line in lines)
        connection.close()


def test_an_address_where_no_page_can_be(tmp_path: Path) -> None:
    page = LivePage(Watcher(tmp_path / "run.db"), Access(), report=None)
    for host, port in (("a..b", 0), ("127.0.0.1", 65536)):
        with pytest.raises(BadInputError, match=r"^(cannot listen on|port=)"):
            asyncio.run(serve_page(page, host=host, port=port, on_ready=print))
