"""Frames of streams, in whatever pieces they come."""

from __future__ import annotations

import re
from time import process_time

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

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
