"""What the upstream sends reaches the caller as it was written, apart from what the gateway removes
and adds."""

from __future__ import annotations

import http.client
import json
import re
from collections.abc import Iterator
from typing import Any, NamedTuple

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from json_texts import MEMBERS, SPACES, VALUES, array_of, object_of
from scripted_upstream import Request, ScriptedUpstream, event_stream, reply

NEEDED = "message.output_text.logprobs"
COMMENT = re.compile(rb": gatekeeper (\{[^\n]*\})\n\n?")


class Asked(NamedTuple):
    """A caller's request for log-probabilities, and what an answer then has in their place."""

    path: str
    more: str  # in the request's body
    alternatives: int | None  # how many are kept; None: nothing is kept
    nothing: str = "null"


ASKED = [
    Asked("/v1/chat/completions", "", None),
    Asked("/v1/chat/completions", ', "logprobs": true', 0),
    Asked("/v1/chat/completions", ', "logprobs": true, "top_logprobs": 2', 2),
    Asked("/v1/completions", "", None),
    Asked("/v1/responses", "", None, "[]"),
    Asked("/v1/responses", f', "include": ["{NEEDED}"], "top_logprobs": 2', 2),
]
UNCHANGED = [
    Asked("/v1/chat/completions", ', "logprobs": true, "top_logprobs": 5', 5),
    Asked("/v1/chat/completions", ', "logprobs": false', 5),
    Asked("/v1/completions", ', "logprobs": 2', 5),
    Asked("/v1/responses", f', "include": ["{NEEDED}"]', 5),
]

ALTERNATIVES = st.lists(
    st.sampled_from(
        [
            '{"token": "a", "logprob": -0.10, "bytes": [97]}',
            '{"token":"\\u00e9","logprob":-1e400}',
            '{"logprob": -2, "token": "}]", "bytes": null, "x": 1e400}',
        ]
    ),
    max_size=5,
)
ENTRIES = st.lists(st.tuples(MEMBERS, ALTERNATIVES, SPACES), max_size=3)


def entries_of(entries: Any, kept: int | None) -> str:
    """Token entries, each with so many of its alternatives; None: with all."""
    return array_of(
        (
            object_of([*more, ('"top_logprobs"', array_of(found[:kept], spaces))], spaces)
            for more, found, spaces in entries
        ),
        ["", "", "", " "],
    )


class Document(NamedTuple):
    """A JSON text with log-probabilities, as the upstream sends it and as the caller gets it."""

    sent: str
    wanted: str


@st.composite
def documents(draw: st.DrawFn, asked: Asked, *, event: bool = False) -> Document:
    """An answer to the request, or an event of a stream."""
    entries, spaces = draw(ENTRIES), draw(SPACES)
    before, beside, after = draw(MEMBERS), draw(MEMBERS), draw(MEMBERS)
    count = draw(st.integers(0, 3))
    odd = draw(st.one_of(st.none(), st.none(), VALUES)) if asked.alternatives is None else None
    is_response = asked.path == "/v1/responses"

    def logprobs_of(kept: int | None) -> str:
        found = entries_of(entries, kept)
        if is_response:
            return found
        return object_of([('"content"', found), ('"refusal"', "null")], spaces)

    original = odd or logprobs_of(None)

    def written(logprobs: str, alternatives: int) -> str:
        # The same text is elsewhere, too, where it is none of the gateway's.
        part = object_of([*beside, ('"logprobs"', logprobs), ('"x-other"', original)], spaces)
        parts = array_of([part] * count, spaces)
        if not is_response:
            return object_of([*before, ('"choices"', parts), *after], spaces)
        item = object_of([*before, ('"content"', parts)], spaces)
        number = ('"top_logprobs"', str(alternatives))
        response = object_of([('"output"', array_of([item, item], spaces)), *after, number], spaces)
        if not event:
            return response
        places = ('"response"', response), ('"part"', part), ('"item"', item)
        return object_of([*places, ('"logprobs"', logprobs)], spaces)

    if asked.alternatives is None:
        wanted = written("null" if original == "null" else asked.nothing, 0)
    else:
        wanted = written(logprobs_of(asked.alternatives), asked.alternatives)
    return Document(written(original, 5), wanted)


@pytest.fixture(scope="module")
def upstream() -> Iterator[ScriptedUpstream]:
    with ScriptedUpstream(lambda request: []) as upstream:
        yield upstream


def answered(caller: http.client.HTTPConnection, asked: Asked) -> bytes:
    caller.request("POST", asked.path, f'{{"model": "m"{asked.more}}}'.encode())
    answer = caller.getresponse()
    body = answer.read()
    assert answer.status == 200, body
    return body


@settings(max_examples=120, deadline=None)
@given(st.data(), SPACES)
def test_every_byte_of_an_answer_arrives(
    caller: http.client.HTTPConnection,
    upstream: ScriptedUpstream,
    data: st.DataObject,
    spaces: list[str],
) -> None:
    """Members of any kind, in any number of outputs; only log-probabilities that the caller did not
    request are removed."""
    asked = data.draw(st.sampled_from(ASKED))
    document = data.draw(documents(asked))
    before, after = (spaces[i].encode() for i in (0, 1))
    upstream.script = lambda request: [reply(before + document.sent.encode() + after)]
    assert answered(caller, asked) == before + document.wanted.encode() + after


@pytest.mark.parametrize("asked", UNCHANGED)
@settings(max_examples=20, deadline=None)
@given(data=st.data())
def test_answers_to_callers_who_asked_for_all_are_not_changed(
    caller: http.client.HTTPConnection,
    upstream: ScriptedUpstream,
    asked: Asked,
    data: st.DataObject,
) -> None:
    sent = data.draw(documents(asked)).sent.encode()
    upstream.script = lambda request: [reply(sent)]
    assert answered(caller, asked) == sent
    frames = b"data: " + re.sub(rb"[\r\n]", b" ", sent) + b"\n\n"
    upstream.script = lambda request: event_stream(frames, b"data: [DONE]\n\n")
    assert COMMENT.sub(b"", answered(caller, asked)) == frames + b"data: [DONE]\n\n"


ENDS = st.sampled_from(["\n", "\n", "\r\n", "\r"])
STOPS = st.sampled_from(["\n\n", "\n\n", "\r\n\r\n", "\r\r", "\n\r\n", "\r\n\n"])
OTHERS = st.sampled_from(
    [": ping", "id: 7\nretry: 5", "event: x", "data: a\ndata: {}", "data\ndata", "data", ""]
)
HEADS = ["data: ", "data:", "event: e\ndata: ", ": c\ndata: ", "\ufeffdata: "]
DATA = re.compile("data: ?")
LAST = {
    "/v1/chat/completions": [
        "data: [DONE]",
        "data:[DONE]",
        "event: x\ndata: [DONE]",
        "data: [DONE] \ndata",
    ],
    "/v1/completions": ["data: [DONE]"],
    "/v1/responses": [
        'event: response.completed\ndata: {"type": "response.completed"}',
        'data: {"x": 1e400, "type": "response.incomplete"}',
        'data: {"type": "response.failed"}',
    ],
}


@settings(max_examples=120, deadline=None)
@given(st.data())
def test_every_byte_of_a_stream_arrives(
    caller: http.client.HTTPConnection, upstream: ScriptedUpstream, data: st.DataObject
) -> None:
    """Frames of any kind in any pieces, with the result as a comment in one place: before the frame
    that ends the output, or at the end of a stream that has none."""
    asked = data.draw(st.sampled_from(ASKED))
    end, stop = data.draw(ENDS), data.draw(STOPS)

    def frame(lines: str) -> str:
        return lines.replace("\n", end) + stop

    sent, wanted = [], []
    for _ in range(data.draw(st.integers(0, 4))):
        if data.draw(st.booleans()):
            other = frame(data.draw(OTHERS))
            sent.append(other)
            wanted.append(other)
            continue
        document = data.draw(documents(asked, event=True))
        head = data.draw(st.sampled_from(HEADS))
        between = data.draw(st.sampled_from([" ", "\n" + DATA.findall(head)[0]]))
        for text, frames in ((document.sent, sent), (document.wanted, wanted)):
            frames.append(frame(head + text.replace("\r", " ").replace("\n", between)))
    last = data.draw(st.sampled_from([*LAST[asked.path], None]))
    after = "" if last is None else frame(last) + frame(data.draw(OTHERS))
    whole = ("".join(sent) + after).encode()
    cuts = sorted(data.draw(st.lists(st.integers(0, len(whole)), max_size=5)))
    steps: list[bytes | float | str] = []
    for i, j in zip([0, *cuts], [*cuts, len(whole)], strict=True):
        steps += [whole[i:j], 0.001] if i < j else []
    upstream.script = lambda request: event_stream(*steps)
    body = answered(caller, asked)
    before = "".join(wanted).encode()
    assert body[: len(before)] == before
    comment = COMMENT.match(body, len(before))
    assert comment is not None
    assert json.loads(comment[1])["id"].startswith("output-")
    assert body[comment.end() :] == after.encode()


def test_the_status_and_the_headers_of_an_answer_arrive(
    caller: http.client.HTTPConnection, upstream: ScriptedUpstream
) -> None:
    """In order, repeated ones, empty ones and long ones; without those of the connection, and with
    the gateway's own after them."""
    kept = [
        ("Content-Type", "application/json; charset=x"),
        ("x-request-id", "req_1"),
        ("X-RateLimit-Remaining-Requests", "0"),
        ("Set-Cookie", "a=b"),
        ("Set-Cookie", "c=d"),
        ("openai-version", ""),
        ("X-Long", "l" * 20_000),
        ("X-Unicode", "\u00e9\u4e2d"),
        ("Date", "Wed, 21 Oct 2015 07:28:00 GMT"),
        ("Server", "uvicorn"),
    ]
    dropped = ["Connection: keep-alive, x-named", "X-Named: of this connection", "Keep-Alive: 5"]
    lines = [*dropped, *(f"{name}: {value}" for name, value in kept), "x-gatekeeper-id: forged"]

    def script(request: Request) -> Any:
        stream = b'"stream"' in request.body
        head = "\r\n".join([f"HTTP/1.1 {'499 Odd' if not stream else '200 Fine'}", *lines])
        if not stream:
            return [f"{head}\r\nContent-Length: 2\r\n\r\n{{}}".encode()]
        head = head.replace("application/json", "text/event-stream")
        return [f"{head}\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n".encode()]

    upstream.script = script
    for body, status, reason, added in [
        (b'{"model": "m"}', 499, "Odd", ("Content-Length", "2")),
        (b'{"model": "m", "stream": true}', 200, "Fine", ("Transfer-Encoding", "chunked")),
    ]:
        caller.request("POST", "/v1/chat/completions", body)
        answer = caller.getresponse()
        answer.read()
        assert (answer.status, answer.reason) == (status, reason)
        found = [(n.lower(), v.encode("latin-1").decode()) for n, v in answer.getheaders()]
        ours = [pair for pair in found if pair[0].startswith("x-gatekeeper-")]
        kind = "text/event-stream" if status == 200 else "application/json"
        wanted = [(n.lower(), v.replace("application/json", kind)) for n, v in [*kept, added]]
        assert [pair for pair in found if pair not in ours] == wanted
        names = [name.removeprefix("x-gatekeeper-") for name, _ in ours]
        assert names == (["id"] if status == 200 else [])  # an error is not decided on
        assert "forged" not in dict(ours).values()
