"""What a caller sends arrives upstream as it was written, apart from what the gateway adds."""

from __future__ import annotations

import http.client
import json
import re
from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from json_texts import MEMBERS, SPACES, member, object_of
from scripted_upstream import Request, ScriptedUpstream, reply

NEEDED = "message.output_text.logprobs"
ADDED: dict[str, dict[str, Any]] = {
    "/v1/chat/completions": {"logprobs": True, "top_logprobs": 5},
    "/v1/completions": {"logprobs": 5},
    "/v1/responses": {"include": [NEEDED], "top_logprobs": 5},
}
OWN = '{"task": {"kind": "math", "gold": "SECRET"}}'


@pytest.fixture(scope="module")
def upstream() -> Iterator[ScriptedUpstream]:
    with ScriptedUpstream(lambda request: [reply(b"{}")]) as upstream:
        yield upstream


def sent(
    caller: http.client.HTTPConnection,
    upstream: ScriptedUpstream,
    path: str,
    body: bytes,
    headers: dict[str, str] | None = None,
) -> Request:
    """The one request that arrives upstream for a call."""
    upstream.requests.clear()
    caller.request("POST", path, body, headers or {})
    answer = caller.getresponse()
    assert (answer.status, answer.read()) == (200, b"{}")
    assert answer.getheader("x-gatekeeper-id") is not None  # it was read, and is gated
    (request,) = upstream.requests
    return request


@settings(max_examples=200, deadline=None)
@given(MEMBERS, SPACES, st.sampled_from([*ADDED]))
def test_every_byte_of_a_body_arrives(
    caller: http.client.HTTPConnection,
    upstream: ScriptedUpstream,
    members: list[tuple[str, str]],
    spaces: list[str],
    path: str,
) -> None:
    """Unknown and repeated members, any numbers, escapes and depths; what is added comes last."""
    text = spaces[3] + object_of(members, spaces)
    body = sent(caller, upstream, path, (text + spaces[3]).encode()).body.decode()
    kept = text.removesuffix("}") + ", "
    assert body.startswith(kept)
    assert json.loads("{" + body.removeprefix(kept)) == ADDED[path]


@settings(max_examples=200, deadline=None)
@given(MEMBERS, SPACES, st.data(), st.sampled_from([*ADDED]))
def test_every_member_arrives_without_the_own_key(
    caller: http.client.HTTPConnection,
    upstream: ScriptedUpstream,
    members: list[tuple[str, str]],
    spaces: list[str],
    data: st.DataObject,
    path: str,
) -> None:
    """As it is written and in order; the gateway's own key is anywhere among them, also twice."""
    keys = data.draw(
        st.lists(st.sampled_from(['"gatekeeper"', r'"\u0067atekeeper"']), min_size=1, max_size=2)
    )
    whole = list(members)
    for key in keys:
        whole.insert(data.draw(st.integers(0, len(whole))), (key, OWN))
    body = sent(caller, upstream, path, object_of(whole, spaces).encode()).body.decode()
    assert "SECRET" not in body
    rest = body.removeprefix("{")
    for name, value in members:
        written = member(name, value, spaces)
        assert rest.startswith(written)
        rest = re.sub(r"\A\s*,\s*", "", rest.removeprefix(written))
    assert json.loads("{" + rest) == ADDED[path]


# Members that decide what is requested; those of them that stay as they are; what is added.
CHAT, TEXT, RESPONSES = ADDED
FIVE = {"top_logprobs": 5}
DECIDING: list[tuple[str, str, str, dict[str, Any]]] = [
    (CHAT, '"logprobs": null', "", ADDED[CHAT]),
    (CHAT, '"logprobs": true', '"logprobs": true', FIVE),
    (CHAT, '"logprobs": true, "top_logprobs": 2', '"logprobs": true', FIVE),
    (CHAT, '"include": ["a", 0.10]', '"include": ["a", 0.10]', ADDED[CHAT]),
    (TEXT, '"logprobs": null', "", ADDED[TEXT]),
    (TEXT, '"echo": false', '"echo": false', ADDED[TEXT]),
    (RESPONSES, '"include": null', "", ADDED[RESPONSES]),
    (RESPONSES, '"include": ["\\u00e9"]', "", {"include": ["é", NEEDED], **FIVE}),
    (RESPONSES, f'"include": ["{NEEDED}"], "top_logprobs": 2', f'"include": ["{NEEDED}"]', FIVE),
    (RESPONSES, '"top_logprobs": 2', "", ADDED[RESPONSES]),
    *(
        (path, given, given, {})
        for path, given in [
            (CHAT, '"logprobs": true, "top_logprobs": 5'),
            (CHAT, '"logprobs": true, "top_logprobs": 7'),
            (CHAT, '"logprobs": true, "top_logprobs": -1'),
            (CHAT, '"logprobs": true, "top_logprobs": 2.0'),
            (CHAT, '"logprobs": false'),
            (CHAT, '"logprobs": 1'),
            (CHAT, '"top_logprobs": 1e400'),
            (TEXT, '"logprobs": 2'),
            (TEXT, '"logprobs": 0'),
            (TEXT, '"echo": true'),
            (RESPONSES, f'"include": ["{NEEDED}"]'),
            (RESPONSES, f'"include": ["{NEEDED}"], "top_logprobs": 7'),
            (RESPONSES, '"include": ["a", 1e400, 0.10]'),
            (RESPONSES, '"include": "a"'),
        ]
    ),
]


@pytest.mark.parametrize(("path", "given", "kept", "added"), DECIDING)
@pytest.mark.parametrize("own", [False, True])
def test_requests_for_log_probabilities(
    caller: http.client.HTTPConnection,
    upstream: ScriptedUpstream,
    path: str,
    given: str,
    kept: str,
    added: dict[str, Any],
    own: bool,
) -> None:
    """A caller's few alternatives become five; what an API does not allow is left to the server."""
    before, after = '"model": "m", "x": 1e400', '"stop": ["\\u00e9", 0.10], "x": [ ]'
    key = f', "gatekeeper": {OWN}' if own else ""
    body = sent(caller, upstream, path, f"{{{before}, {given}{key}, {after}}}".encode()).body
    start = "{" + ", ".join(filter(None, [before, kept, after]))
    assert body.decode().startswith(start)
    assert json.loads("{" + body.decode().removeprefix(start).removeprefix(", ")) == added


def test_the_line_and_the_headers_of_a_request_arrive(
    caller: http.client.HTTPConnection, upstream: ScriptedUpstream
) -> None:
    """In order, repeated ones, empty ones and long ones; without those of the connection and those
    for the gateway, and with a request for an answer that can be read."""
    kept = [
        ("Authorization", f"Bearer {'k' * 20_000}"),
        ("X-Custom", "a, b"),
        ("X-Custom", ""),
        ("Traceparent", "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"),
        ("X-Unicode", "\u00e9\u4e2d"),
        ("User-Agent", "OpenAI/Python"),
        ("Content-Type", "application/json; charset=utf-8"),
        ("OpenAI-Organization", "org"),
        ("Cookie", "a=b; c=d"),
    ]
    dropped = [
        ("Accept-Encoding", "gzip, deflate"),
        ("Connection", "keep-alive, x-named"),
        ("X-Named", "of this connection"),
        ("Keep-Alive", "timeout=5"),
        ("TE", "trailers"),
        ("X-Gatekeeper-Key", "k"),
        ("x-gatekeeper-anything", "k"),
    ]
    target = "/v1/chat/completions?api-version=%41%2F..&a=b&a=%20" + "&long" * 3000
    upstream.requests.clear()
    caller.putrequest("POST", target, skip_accept_encoding=True)
    for name, value in [*dropped[:3], *kept, *dropped[3:], ("Content-Length", "2")]:
        caller.putheader(name, value.encode())
    caller.endheaders(b"{}")
    assert caller.getresponse().read() == b"{}"
    (request,) = upstream.requests
    line, *lines = request.head.decode().rstrip().split("\r\n")
    assert line == f"POST {target} HTTP/1.1"
    found = [(name.lower(), value) for name, _, value in (each.partition(": ") for each in lines)]
    ours = [
        ("host", upstream.url.removeprefix("http://").removesuffix("/v1")),
        ("accept-encoding", "identity"),
        ("content-length", str(len(request.body))),
    ]
    assert sorted(found) == sorted([(name.lower(), value) for name, value in kept] + ours)
    assert [pair for pair in found if pair not in ours] == [(n.lower(), v) for n, v in kept]


@pytest.mark.parametrize(
    ("path", "added"), [("/v1/chat/completions", {"accept-encoding"}), ("/v1/other", set[str]())]
)
def test_no_header_is_made_up(
    caller: http.client.HTTPConnection, upstream: ScriptedUpstream, path: str, added: set[str]
) -> None:
    """Where the caller sends no User-Agent, Accept or Content-Type, neither does the gateway."""
    upstream.requests.clear()
    caller.putrequest("POST", path, skip_accept_encoding=True)
    caller.putheader("Content-Length", "2")
    caller.endheaders(b"{}")
    assert caller.getresponse().read() == b"{}"
    (request,) = upstream.requests
    lines = request.head.decode().rstrip().split("\r\n")[1:]
    names = {line.partition(":")[0].lower() for line in lines}
    assert names == {"host", "content-length"} | added
