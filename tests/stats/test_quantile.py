"""RunningQuantile against numpy, to the last bit."""

from __future__ import annotations

import json
from math import inf, isnan, nan, nextafter

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from gatekeeper import BadInputError
from gatekeeper.stats.quantile import RunningQuantile, expanding_quantile

SETTINGS = settings(derandomize=True, deadline=None, database=None)

QS = [0.0, 1.0, 0.5, 1 / 3, *(1.0 - beta for beta in (0.05, 0.1, 0.2, 0.3, 0.5, 0.7, 0.9, 1e-9))]
QUANTILES = st.sampled_from(QS) | st.floats(0.0, 1.0)
VALUES = (
    st.floats(allow_nan=False, allow_infinity=False)
    | st.sampled_from([0.0, 0.1, 0.2, 0.3, 1.0, -1.0, 5e-324, -5e-324, 1.7e308, -1.7e308])
    | st.integers(-3, 3).map(float)
    | st.floats(0.0, 1.0)
)


def same(a: float, b: float) -> bool:
    """Bit for bit, NaN (of ∞ - ∞ on the way) included; numpy leaves open which zero it picks."""
    return a == b or (isnan(a) and isnan(b))


def numpy_quantile(values: list[float], q: float) -> float:
    with np.errstate(over="ignore", invalid="ignore"):
        return float(np.quantile(values, q))


class AgainstNumpy(RuleBasedStateMachine):
    """Values come one at a time or in groups; at any moment it may be rebuilt from its state."""

    @initialize(q=QUANTILES, start=st.lists(VALUES, max_size=20))
    def start(self, q: float, start: list[float]) -> None:
        self.q = q
        self.model = list(start)
        self.tested = RunningQuantile(q, iter(start))

    @rule(value=VALUES)
    def add(self, value: float) -> None:
        self.model.append(value)
        self.tested.add(value)

    @rule(values=st.lists(VALUES, max_size=30))
    def add_many(self, values: list[float]) -> None:
        for value in values:
            self.add(value)
            self.equals_numpy()

    @rule(data=st.data())
    @precondition(lambda self: self.model)
    def add_a_neighbour(self, data: st.DataObject) -> None:
        """A value equal to one that is there, or to the quantile, or one bit away."""
        value = data.draw(st.sampled_from([*self.model[-5:], self.tested.value()]))
        value = nextafter(value, data.draw(st.sampled_from([-inf, value, inf])))
        if np.isfinite(value):
            self.add(value)

    @rule()
    def rebuild(self) -> None:
        """The result of `values()` survives JSON and rebuilds an equal object."""
        values = json.loads(json.dumps(self.tested.values()))
        assert values == sorted(self.model)
        self.tested = RunningQuantile(self.q, values)

    @rule()
    def refuse_nan(self) -> None:
        """A refused value changes nothing."""
        with pytest.raises(BadInputError, match="nan"):
            self.tested.add(nan)

    @invariant()
    def equals_numpy(self) -> None:
        if not hasattr(self, "model"):
            return
        assert len(self.tested) == len(self.model)
        value = self.tested.value()
        if self.model:
            assert same(value, numpy_quantile(self.model, self.q)), (self.q, self.model)
        else:
            assert isnan(value)


AgainstNumpy.TestCase.settings = settings(
    SETTINGS, max_examples=60, stateful_step_count=25, deadline=None
)
TestAgainstNumpy = AgainstNumpy.TestCase


@pytest.mark.parametrize("q", QS)
@pytest.mark.parametrize(
    "kind", ["ascending", "descending", "ties", "constant", "cauchy", "tiny", "huge"]
)
def test_long_histories_stay_exact(q: float, kind: str) -> None:
    """After each of 400 values, in the orders that unbalance heaps."""
    rng = np.random.default_rng(7)
    values = {
        "ascending": np.arange(400) * 0.1,
        "descending": -np.arange(400) * 0.1,
        "ties": rng.choice([0.1, 0.2, 0.3], 400),
        "constant": np.full(400, 0.1),
        "cauchy": rng.standard_cauchy(400),
        "tiny": rng.random(400) * 1e-310,
        "huge": rng.standard_normal(400) * 1e300,
    }[kind].tolist()
    tested = RunningQuantile(q)
    for n, value in enumerate(values, 1):
        tested.add(value)
        assert tested.value() == numpy_quantile(values[:n], q)


@SETTINGS
@given(values=st.lists(VALUES, max_size=60), q=QUANTILES)
def test_building_at_once_equals_adding(values: list[float], q: float) -> None:
    one, other = RunningQuantile(q, values), RunningQuantile(q)
    for value in values:
        other.add(value)
    assert same(one.value(), other.value())
    assert one.values() == other.values() == sorted(values)


@pytest.mark.parametrize("q", [-0.1, 1.1, nan, inf])
def test_a_quantile_outside_the_unit_interval_is_refused(q: float) -> None:
    with pytest.raises(BadInputError, match=f"q={q!r}"):
        RunningQuantile(q)


def test_building_from_nan_is_refused_too() -> None:
    """NaN has no rank, by whichever way it comes in."""
    with pytest.raises(BadInputError, match="nan"):
        RunningQuantile(0.5, [1.0, nan, 0.0])


@SETTINGS
@given(
    st.lists(st.floats(-1e6, 1e6) | st.sampled_from([0.0, 0.25, 1.0]), min_size=1, max_size=60),
    st.floats(0, 1),
)
def test_the_expanding_quantile_is_numpys(values: list[float], q: float) -> None:
    got = expanding_quantile(np.array(values), q)
    expected = [np.quantile(values[: t + 1], q) for t in range(len(values))]
    assert got.tolist() == expected
