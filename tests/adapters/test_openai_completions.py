"""Text completions as Generations."""

from __future__ import annotations

from math import nan
from typing import Any

import pytest
from openai_json import (
    assert_arrays,
    legacy,
)

from gatekeeper import Generation, SignalState, signals_of
from gatekeeper.io.responses import as_generation, as_generations

openai_types = pytest.importorskip("openai.types")
chat_types = pytest.importorskip("openai.types.chat")


@pytest.fixture(params=["object", "json"])
def read_legacy(request: pytest.FixtureRequest) -> Any:
    def read(data: dict[str, Any]) -> Generation:
        if request.param == "object":
            return as_generation(openai_types.Completion.construct(**data))
        return as_generation(data)

    return read


def test_text_completions_are_read(read_legacy: Any) -> None:
    """The chosen token is added where the dict lacks it: k + 1 entries, or k."""
    found = read_legacy(
        legacy(
            ("a", -0.1, {"a": -0.1, "b": -3.0}),
            ("b", -0.9, {"a": -0.7, "b": -0.9}),
            ("z", -5.0, {"z": -5.0, "a": -0.4, "b": -1.5}),
            ("z", -5.0, {"b": -1.5, "a": -0.4}),
        )
    )
    assert_arrays(
        found, (-0.1, -0.1, -3.0), (-0.9, -0.7, -0.9), (-5.0, -0.4, -1.5), (-5.0, -0.4, -1.5)
    )
    assert (found.id, found.text, found.model) == ("cmpl-1", "four", "tiny-1")
    assert (found.prompt_tokens, found.output_tokens, found.k_seen) == (2, 4, 3)


@pytest.mark.parametrize(
    "logprobs", [None, {"tokens": [], "token_logprobs": [], "top_logprobs": []}]
)
def test_a_text_completion_without_logprobs_is_missing(read_legacy: Any, logprobs: Any) -> None:
    data = legacy(("a", -0.1, None))
    data["choices"][0]["logprobs"] = logprobs
    assert signals_of(read_legacy(data)).state is SignalState.MISSING


def test_texts_that_collide_give_no_margin_rather_than_a_wrong_one(read_legacy: Any) -> None:
    """Byte pieces and special tokens are all "" or a replacement character, and overwrite each
    other: fewer candidates than elsewhere. With token ids as keys nothing collides."""
    clean = ("a", -0.1, {"a": -0.1, "b": -3.0, "c": -4.0})
    found = read_legacy(
        legacy(
            clean,
            ("a", -0.3, {"a": -0.3, "": -6.0}),  # "" twice: one was lost
            ("", -0.2, {"": -5.0, "a": -2.0}),  # the chosen one overwritten: all three are known
            ("z", -9.0, {"z": -9.0, "\ufffd": -1.0, "a": -2.0}),  # 4 were to be expected
            ("z", -9.0, {"z": -9.0, "b": -1.0, "a": -2.0}),  # z is the third: nothing lost
        )
    )
    assert_arrays(
        found,
        (-0.1, -0.1, -3.0),
        (-0.3, -0.3, nan),
        (-0.2, -0.2, -2.0),
        (-9.0, -1.0, nan),
        (-9.0, -1.0, -2.0),
    )
    by_id = {"token_id:1": -0.1, "token_id:2": -3.0, "token_id:3": -4.0}
    fewer = {"token_id:1": -0.3, "token_id:2": -6.0}
    found = read_legacy(legacy(("token_id:1", -0.1, by_id), ("token_id:1", -0.3, fewer)))
    assert_arrays(found, (-0.1, -0.1, -3.0), (-0.3, -0.3, -6.0))


def test_a_text_completion_with_k_1_has_no_margins(read_legacy: Any) -> None:
    """Two entries only where the sampled token is another, and then the second is not there."""
    found = read_legacy(legacy(("a", -0.1, {"a": -0.1}), ("z", -5.0, {"z": -5.0, "a": -0.4})))
    assert_arrays(found, (-0.1, -0.1, nan), (-5.0, -0.4, nan))


def test_echo_puts_the_prompt_first(read_legacy: Any) -> None:
    """Its tokens are not the output; if their number is unknown, no position is known."""
    rows = [
        ("What", None, None),
        ("?", -8.0, {"?": -8.0, "!": -1.0}),
        ("four", -0.1, {"four": -0.1, "five": -3.0}),
    ]
    data = legacy(*rows, completion_tokens=1)
    found = read_legacy(data)
    assert_arrays(found, (-0.1, -0.1, -3.0))
    assert found.token_coverage == 1.0
    rows.append(("five", -3.0, {"four": -0.1, "five": -3.0}))  # k = 2, whatever the first lacks
    found = read_legacy(legacy(*rows, completion_tokens=2))
    assert_arrays(found, (-0.1, -0.1, -3.0), (-3.0, -0.1, -3.0))
    assert signals_of(as_generation(data | {"usage": None})).state is SignalState.MISSING


def test_echo_of_several_prompts_leaves_no_position_known(read_legacy: Any) -> None:
    """The usage is of all of them, so that no length says where an output begins."""
    rows = [(token, None if token == "p" else -9.0, {"x": -0.5}) for token in "pqr"]
    data = legacy(*rows, ("a", -0.1, {"a": -0.1, "x": -0.5}), prompt_tokens=6, completion_tokens=2)
    (choice,) = data["choices"]
    data["choices"] = [choice, {**choice, "index": 1}]
    for found in as_generations(data):
        assert signals_of(found).state is SignalState.MISSING
    for found in as_generations(data | {"usage": data["usage"] | {"prompt_tokens": 3}}):
        assert_arrays(found, (-0.1, -0.1, -0.5))  # two outputs of one prompt
    data["choices"] = [choice]
    found = read_legacy(data)  # a server that counts the prompt otherwise
    assert signals_of(found).state is SignalState.MISSING


def test_a_null_first_logprob_without_echo_is_only_that(read_legacy: Any) -> None:
    found = read_legacy(legacy(("a", None, None), ("b", -0.1, {"b": -0.1, "c": -3.0})))
    assert_arrays(found, (nan, nan, nan), (-0.1, -0.1, -3.0))
