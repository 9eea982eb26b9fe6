"""Wrong settings of a gateway, and of a call: one message with the value and what to give."""

from __future__ import annotations

import json
import re
from typing import Any

import pytest
from running_gateway import running_gateway
from scripted_upstream import ScriptedUpstream, completion, reply
from test_passing import send

from gatekeeper import BadInputError, Budget, VerificationGate
from gatekeeper.gateway import gated
from gatekeeper.gateway.route import Route
from gatekeeper.gateway.settings import GatewaySettings
from gatekeeper.listening import listening_sockets
from gatekeeper.testing import ScriptedVerifier

URL = "http://127.0.0.1:8000/v1"
NOT_SHOWN = "(not shown, as it may have a password or a key)"
CHAT = "/v1/chat/completions"
ASKED = {"model": "m", "messages": []}


@pytest.mark.parametrize(
    ("setting", "values", "hint"),
    [
        ("wait", [None, "", "verdicts"], "choose one of background, verdict"),
        ("grace", [None, "5", -1, float("nan"), float("inf"), True], "a number of seconds"),
        ("traced", [None, "no", 1], "True or False"),
    ],
)
def test_a_setting_that_cannot_be_used(setting: str, values: list[Any], hint: str) -> None:
    for value in values:
        with pytest.raises(BadInputError) as raised:
            GatewaySettings(**{"upstream": URL} | {setting: value})
        assert str(raised.value).startswith(f"{setting}={value!r}: ")
        assert hint in str(raised.value)


@pytest.mark.parametrize(
    ("values", "why"),
    [
        ([None, 5], "is not a text"),
        (["", "h", "ftp://h", "localhost:8000"], "does not begin with http:// or https://"),
        (["http://[", "http://h:x", "http://h:99999"], "has a host or a port that cannot be read"),
        (["http://h:0", "http://"], "has no host or the port 0"),
        (["http://h h", "http://h/\n"], "has a space or a character that cannot be shown"),
        (["http://u@h", "http://u:p@h", "http://:p@h"], "has a user or a password, and keys have"),
        (["http://h/#x", "http://h/v1?x"], "has a query or a fragment"),
    ],
)
def test_a_url_that_no_api_has(values: list[Any], why: str) -> None:
    for value in values:
        with pytest.raises(BadInputError, match=f"^upstream {re.escape(NOT_SHOWN)} {why}.*: give "):
            GatewaySettings(upstream=value)


@pytest.mark.parametrize("setting", ["own_key", "upstream_key"])
def test_a_key_that_no_header_can_carry(setting: str) -> None:
    """An empty one would let everyone in. The message does not quote it."""
    for value in ("", " secret", "sec\nret", "sécret", 5):
        with pytest.raises(BadInputError, match=f"^{setting}=…, not shown: give ") as raised:
            GatewaySettings(upstream=URL, **{setting: value})  # type: ignore[arg-type]
        assert "ret" not in str(raised.value)


def test_the_models_of_a_route_are_a_list() -> None:
    """The letters of a text would be patterns, and its `*` would fit every model."""
    with VerificationGate("cst", budget=Budget(fraction=0.5), verifier=ScriptedVerifier()) as gate:
        for models in ("gpt-*", None, 5, ["m", 5]):
            with pytest.raises(BadInputError, match=r"^models=.*: give a list of names"):
                Route(gate=gate, settings=GatewaySettings(upstream=URL), models=models)  # type: ignore[arg-type]


def test_an_address_that_is_none() -> None:
    """No host would be all of them, and the system takes a port above 65535 for another one."""
    for host, port in ((None, 0), (5, 0), ("a..b", 0), ("127.0.0.1", 65536), ("127.0.0.1", "x")):
        with pytest.raises(BadInputError, match=r"^(host=|port=|cannot listen on)"):
            listening_sockets(host, port)  # type: ignore[arg-type]


def test_the_id_of_a_call() -> None:
    """Only null, or none, leaves it to the gateway."""
    with (
        ScriptedUpstream(lambda request: [reply(json.dumps(completion("7")).encode())]) as upstream,
        running_gateway(upstream.url) as gateway,
    ):
        for task in ({}, {"task": {"kind": "math", "gold": "7"}}):
            for id_ in (0, "", [], False, "\ud800"):
                own = {"id": id_, **task}
                status, _, _, body = send(
                    gateway.url, CHAT, json.dumps(ASKED | {"gatekeeper": own}).encode()
                )
                error = json.loads(body)["error"]
                assert (status, error["code"]) == (400, "gatekeeper_settings")
                assert error["message"].startswith(f"gatekeeper: id={id_!r}: give a string")
        assert not upstream.requests
        own = {"id": None}
        assert send(gateway.url, CHAT, json.dumps(ASKED | {"gatekeeper": own}).encode())[0] == 200


def test_models_that_refuse_log_probabilities_take_bounded_memory(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Callers may send any name; what was forgotten is found out again."""
    monkeypatch.setattr(gated, "MODELS", 2)
    refused = reply(b'{"error": {"message": "logprobs is not supported"}}', status="400 Bad")

    def script(request: Any) -> Any:
        asks = b'"logprobs"' in request.body
        return [refused if asks else reply(json.dumps(completion("7")).encode())]

    with ScriptedUpstream(script) as upstream, running_gateway(upstream.url) as gateway:
        sent = []
        for model in "aabcaa":
            before = len(upstream.requests)
            body = json.dumps(ASKED | {"model": model}).encode()
            assert send(gateway.url, CHAT, body)[0] == 200
            sent.append(len(upstream.requests) - before)
    assert sent == [2, 1, 2, 2, 2, 1]


def test_an_upstream_with_letters_that_urls_do_not_have() -> None:
    with (
        ScriptedUpstream(lambda request: [reply(b"{}")]) as upstream,
        running_gateway(f"{upstream.url}/ü/v1") as gateway,
    ):
        assert send(gateway.url, "/v1/models", None, method="GET")[0] == 200
        assert upstream.requests[0].path == "/v1/%C3%BC/v1/models"
