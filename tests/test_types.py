"""Types: an output needs only what is known of it; invalid values are named."""

from __future__ import annotations

from math import inf, log, nan
from typing import Any

import numpy as np
import pytest

from gatekeeper import (
    BadInputError,
    Budget,
    Candidate,
    Generation,
    SignalState,
    VerificationGate,
    signals_of,
)


def test_an_output_needs_no_arrays() -> None:
    generation = Generation("a", "42")
    assert signals_of(generation).state is SignalState.MISSING
    with VerificationGate("cst", budget=Budget(fraction=0.2)) as gate:
        assert gate.maybe_verify(generation).signals.state is SignalState.MISSING
        assert gate.output("a").text == "42"


def test_log_probabilities_of_the_chosen_tokens_give_h1_alone() -> None:
    p = [0.9, 0.5, 0.25]
    generation = Generation.from_logprobs("42", [*np.log(p), None], id="a", model="m")
    signals = signals_of(generation)
    assert signals.h1 == pytest.approx(-sum(map(log, p)) / 3)
    assert np.isnan([signals.h2, signals.h3]).all()
    assert signals.state is SignalState.PARTIAL
    assert (generation.id, generation.text, generation.model) == ("a", "42", "m")


@pytest.mark.parametrize(
    ("logprobs", "shown"),
    [
        ([-0.1, 0.9], r"logprobs\[1\]=0.9: a natural-log probability is at most 0"),
        ([inf], r"logprobs\[0\]=inf: a natural-log probability is at most 0"),
        ("abc", "an array of numbers is needed"),
        ([[-0.1, -0.2]], r"shape \(1, 2\): one number per token"),
    ],
)
def test_what_is_no_log_probability_is_refused(logprobs: Any, shown: str) -> None:
    with pytest.raises(BadInputError, match=shown):
        Generation.from_logprobs("42", logprobs)


def test_features_are_finite_numbers_by_name() -> None:
    given = {"parses": np.True_, "length": np.int64(7), "a": None, "b": nan, "margin": -0.5}
    generation = Generation("a", "42", features=given)
    assert generation.features == {"length": 7.0, "margin": -0.5, "parses": 1.0}
    assert {type(value) for value in generation.features.values()} == {float}
    given["length"] = np.int64(8)
    assert generation.features["length"] == 7.0


@pytest.mark.parametrize("value", ["7", inf, -inf, 10**400, [1], 1j, np.ones(2)])
def test_a_feature_that_is_no_finite_number_is_named(value: Any) -> None:
    with pytest.raises(BadInputError, match=r"features\['length'\]=.*: a finite number"):
        Generation("a", "42", features={"length": value})


def test_candidates_stay_hashable() -> None:
    signals = signals_of(Generation("a", ""))
    assert len({Candidate("a", signals, 1.0, {"length": 7.0})}) == 1
