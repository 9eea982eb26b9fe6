"""A sequence of texts that are joined in memory."""

import tracemalloc

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gatekeeper.log.texts import PIECE, Texts


def made(texts: list[str]) -> Texts:
    found = Texts()
    for text in texts:
        found.append(text)
    return found


@settings(deadline=None)
@given(st.lists(st.text(), max_size=6), st.sampled_from((0, PIECE - 3, PIECE, 2 * PIECE - 1)))
def test_it_is_the_list_of_its_texts(some: list[str], before: int) -> None:
    """With texts that are empty, not ASCII or half a surrogate pair, about the ends of a piece."""
    texts = [str(i) for i in range(before)] + some + ["", "\ud800", "é\0"]
    found = made(texts)
    assert len(found) == len(texts)
    assert list(found) == texts
    near = range(-min(len(texts), 12), min(len(texts), 12))
    assert [found[i] for i in near] == [texts[i] for i in near]
    assert found[max(before - 2, 0) : before + 2] == texts[max(before - 2, 0) : before + 2]
    places = np.array([*near, *range(max(before - 2, 0), len(texts))])[::-1] % len(texts)
    assert found.pick(places) == [texts[i] for i in places.tolist()]
    assert found == texts == found
    assert found != [*texts, ""]
    for beyond in (len(texts), -len(texts) - 1):
        with pytest.raises(IndexError):
            found[beyond]


def test_short_texts_take_a_third_of_the_memory_of_a_list() -> None:
    sizes = []
    for make in (list, made):
        tracemalloc.start()
        kept = make([f"output-{i}" for i in range(20 * PIECE)])
        sizes.append(tracemalloc.get_traced_memory()[0])
        tracemalloc.stop()
        assert kept[-1] == f"output-{20 * PIECE - 1}"
    assert sizes[1] < sizes[0] / 3
