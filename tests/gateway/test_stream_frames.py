"""Frames of streams, in whatever pieces they come."""

from __future__ import annotations

import re
from time import process_time
from urllib.request import Request, urlopen

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from running_gateway import running_gateway
from scripted_upstream import ScriptedUpstream, event_stream

from gatekeeper.gateway import events
from gatekeeper.gateway.events import Frames

SEVERAL = st.lists(st.sampled_from(["\n", "\r", "\r\n", "\n\n", "\r\n\r\n", "data: é", ": "]))


@settings(max_examples=200, deadline=None)
@given(SEVERAL, st.lists(st.integers(0, 30)))
def test_frames_do_not_depend_on_the_pieces(parts: list[str], cuts: list[int]) -> None:
    """Each has the empty line that ends it, of any kind, and no byte is lost."""
    text = "".join(parts).encode()
    *wanted, rest = re.split(rb"(?s)(.*?(?:\r\n\r\n|\n\n|\r\r|\n\r\n|\r\n\n))", text)
    frames, found, start = Frames(), [], 0
    for cut in [*sorted(cuts), len(text)]:
        found += frames.add(text[start:cut])
        start = max(start, cut)
    assert b"".join([*found, frames.rest]) == text
    assert found == [frame for frame in wanted if frame]
    assert frames.rest == rest


def test_a_frame_without_an_end_is_passed_on(monkeypatch: pytest.MonkeyPatch) -> None:
    """As it comes, once it is too long to be kept, and with it the rest of the stream."""
    monkeypatch.setattr(events, "MAX_LINE", 1000)
    frames = Frames()
    pieces = [b"data: 1\n\ndata: ", *[b"x" * 300] * 5, b"\n\ndata: 3\n\n"]
    found, most = b"", 0
    for i, piece in enumerate(pieces):
        found += b"".join(frames.add(piece))
        most = max(most, len(frames.rest))
        assert frames.given_up == (i >= 4)
    assert found + frames.rest == b"".join(pieces)
    assert most <= 1000


def test_a_stream_of_which_a_frame_is_too_long_is_not_decided_on(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(events, "MAX_LINE", 1000)
    pieces = [b"data: {}\n\ndata: ", *[b"x" * 300] * 5]  # in as many readings as they come
    body = b'{"model": "m", "messages": [], "stream": true}'
    with (
        ScriptedUpstream(lambda request: event_stream(*pieces)) as upstream,
        running_gateway(upstream.url) as gateway,
        urlopen(Request(f"{gateway.url}/v1/chat/completions", body)) as answer,
    ):
        assert answer.read() == b"".join(pieces)
        assert gateway.gate.status().seen == 0
    assert "an event of the stream is longer than" in caplog.text


@pytest.mark.parametrize("start", [b"data: ", b"data: \r"])
def test_a_long_frame_takes_as_long_as_short_ones(start: bytes) -> None:
    """Other calls wait meanwhile. To search the whole rest for each piece takes 100 times that."""
    piece = start + b"x" * 2**16

    def seconds(end: bytes) -> float:
        frames, begun = Frames(), process_time()
        for _ in range(256):
            frames.add(piece + end)
        frames.add(b"\n\n")
        return process_time() - begun

    assert min(seconds(b"") for _ in range(3)) < 20 * max(seconds(b"\n\n") for _ in range(3))
