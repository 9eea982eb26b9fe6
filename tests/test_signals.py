"""Signals against a slow reference, token by token."""

from __future__ import annotations

import math
import random
from math import inf, nan

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from gatekeeper import (
    BadInputError,
    Generation,
    Signals,
    SignalState,
    batch_signals,
    signals_from_arrays,
    signals_of,
)

SETTINGS = settings(derandomize=True, deadline=None, database=None, max_examples=150)

Position = tuple[float, float, float]  # chosen, one alternative, the other


def slow_signals(positions: list[Position]) -> Signals:
    """The definitions at the top of gatekeeper/signals.py, one token at a time."""
    likelihoods, margins, logits = [], [], False
    for chosen, a, b in positions:
        if chosen > 1e-3:
            logits = True
        if not math.isnan(chosen) and chosen > -9999.0:
            likelihoods.append(-chosen)
        if math.isnan(a) or math.isnan(b):
            continue
        masked = (a <= -9999.0) + (b <= -9999.0)
        if masked == 2:
            continue
        margins.append(inf if masked else abs(a - b))
    if positions and all(p[0] == 0.0 for p in positions) and not any(m > 0.0 for m in margins):
        return Signals(nan, nan, nan, len(positions), 0)
    h1 = math.fsum(likelihoods) / len(likelihoods) if likelihoods and not logits else nan
    h2 = -min(margins) if margins else nan
    h3 = math.fsum(math.exp(-max(m, -5.0)) for m in margins) / len(margins) if margins else nan
    return Signals(h1, h2, h3, len(positions), len(margins))


def generation(positions: list[Position], id: str = "g") -> Generation:
    columns = np.array(positions, dtype=np.float64).reshape(-1, 3).T
    return Generation(id, "text", *(np.ascontiguousarray(c) for c in columns))


def assert_same(found: Signals, expected: Signals) -> None:
    assert (found.n_tokens, found.n_margins) == (expected.n_tokens, expected.n_margins)
    for name in ("h1", "h2", "h3"):
        a, b = getattr(found, name), getattr(expected, name)
        assert a == pytest.approx(b, rel=1e-12, abs=1e-15, nan_ok=True), (name, found, expected)
        assert type(a) is float


LOGPROB = st.floats(-30.0, 0.0)
ODD = st.sampled_from(
    [nan, -inf, -9999.0, -10000.0, -9998.0, 0.0, -0.0, 1e-17, 2e-3, 3.5, -1e-300, -0.5]
)
PLAIN = st.tuples(LOGPROB, LOGPROB, LOGPROB)
POSITION = st.tuples(LOGPROB | ODD, LOGPROB | ODD, LOGPROB | ODD)
CERTAIN = st.tuples(
    st.just(0.0), st.sampled_from([0.0, nan, -inf]), st.sampled_from([0.0, -9999.0])
)
OUTPUT = st.one_of(*(st.lists(p, max_size=12) for p in (PLAIN, POSITION, CERTAIN)))


@SETTINGS
@given(outputs=st.lists(OUTPUT, max_size=6), shuffle=st.randoms(use_true_random=False))
def test_signals_equal_the_slow_reference(
    outputs: list[list[Position]], shuffle: random.Random
) -> None:
    """Alone, from arrays, and in any batch: the same to the bit; in whichever order the two
    alternatives stand; and never a NaN or an infinity that the definitions do not give."""
    alone = [signals_of(generation(output)) for output in outputs]
    for output, found in zip(outputs, alone, strict=True):
        assert_same(found, slow_signals(output))
        assert found.n_tokens == len(output)
        swapped = [(c, b, a) if shuffle.random() < 0.5 else (c, a, b) for c, a, b in output]
        assert repr(signals_of(generation(swapped))) == repr(found)
        columns = [list(c) for c in zip(*output, strict=True)] or [[], [], []]
        assert repr(signals_from_arrays(*columns)) == repr(found)
    batch = batch_signals([generation(output, f"g{i}") for i, output in enumerate(outputs)])
    assert repr(batch) == repr(alone)
    order = shuffle.sample(range(len(outputs)), len(outputs))
    assert repr(batch_signals([generation(outputs[i]) for i in order])) == repr(
        [alone[i] for i in order]
    )


@pytest.mark.parametrize("odd", [None, nan, -inf, 0.0, 4.0])
@pytest.mark.parametrize("seed", range(3))
def test_long_batches_equal_single_outputs(seed: int, odd: float | None) -> None:
    """Hundreds of tokens, where summing by blocks and vectorised exp would show."""
    rng = np.random.default_rng(seed)
    tables = [-rng.exponential(2.0, (int(n), 3)) for n in rng.integers(0, 700, 20)]
    for table in tables[::2]:
        table[:] = -np.sort(-table, axis=1)  # the larger alternative first, as readers give them
    outputs = [[tuple(row) for row in table] for table in tables]
    if odd is not None:
        for output in outputs[::3]:
            for i in range(0, len(output), 7):
                output[i] = (output[i][0], odd, output[i][2])
    batch = batch_signals([generation(output) for output in outputs])
    for output, found in zip(outputs, batch, strict=True):
        assert_same(found, slow_signals(output))
        assert repr(signals_of(generation(output))) == repr(found)


@pytest.mark.parametrize("step", [1, 3])
def test_a_batch_of_any_size_equals_its_outputs(step: int) -> None:
    """More positions than are computed at once, in one output too; empty ones between; and
    arrays that are every third column of another."""
    rng = np.random.default_rng(0)
    outputs = []
    for n in [*rng.integers(0, 700, 40), 20_000, 0, 1]:
        columns = -np.sort(rng.exponential(2.0, (3, int(n) * step)), axis=0)
        outputs.append(Generation("g", "", *(c[::step] for c in columns)))
    assert repr(batch_signals(outputs)) == repr([signals_of(g) for g in outputs])


CASES = [
    # positions -> h1, h2, h3, margins
    pytest.param([], (nan, nan, nan, 0), id="no output"),
    pytest.param([(-1.0, -1.0, -3.0)], (1.0, -2.0, math.exp(-2.0), 1), id="one token"),
    pytest.param([(-1.0, -3.0, -1.0)], (1.0, -2.0, math.exp(-2.0), 1), id="other order"),
    pytest.param([(-7.0, -1.0, -3.0)], (7.0, -2.0, math.exp(-2.0), 1), id="sampled outside"),
    pytest.param([(-1.0, -1.0, -1.0)], (1.0, 0.0, 1.0, 1), id="tie"),
    pytest.param([(-1.0, -1.0, nan)], (1.0, nan, nan, 0), id="one alternative"),
    pytest.param([(-1.0, nan, nan)], (1.0, nan, nan, 0), id="no alternative"),
    pytest.param([(nan, nan, nan)] * 3, (nan, nan, nan, 0), id="nothing"),
    pytest.param([(nan, -1.0, -2.0)], (nan, -1.0, math.exp(-1.0), 1), id="margin only"),
    pytest.param([(-inf, -1.0, -2.0)], (nan, -1.0, math.exp(-1.0), 1), id="sampled masked"),
    pytest.param([(0.0, 0.0, -inf)], (0.0, -inf, 0.0, 1), id="forced"),
    pytest.param([(0.0, 0.0, -9999.0)] * 4, (0.0, -inf, 0.0, 4), id="all forced, HTTP"),
    pytest.param(
        [(0.0, 0.0, -9999.0), (-2.0, -1.0, -2.0)],
        (1.0, -1.0, math.exp(-1.0) / 2, 2),
        id="one forced",
    ),
    pytest.param([(-1.0, -9999.0, -inf)], (1.0, nan, nan, 0), id="two masked"),
    pytest.param(
        [(-1.0, -inf, -inf), (-3.0, -1.0, -2.0)],
        (2.0, -1.0, math.exp(-1.0), 1),
        id="two masked at one position",
    ),
    pytest.param([(3.0, 3.0, 1.0)], (nan, -2.0, math.exp(-2.0), 1), id="logits"),
    pytest.param([(-1.0, 3.0, 1.0)], (1.0, -2.0, math.exp(-2.0), 1), id="logits on top only"),
    pytest.param([(0.0, 0.0, 0.0)] * 5, (nan, nan, nan, 0), id="not computed"),
    pytest.param([(0.0, nan, nan)] * 5, (nan, nan, nan, 0), id="not computed, no alternatives"),
    pytest.param([(0.0, 0.0, -1.0)], (0.0, -1.0, math.exp(-1.0), 1), id="certain, with a margin"),
]


@pytest.mark.parametrize(("positions", "expected"), CASES)
def test_usual_outputs(positions: list[Position], expected: tuple[float, ...]) -> None:
    """Computed by hand; no signal is ever -0.0, which would print and sort oddly."""
    *h, margins = expected
    found = signals_of(generation(positions))
    assert_same(found, Signals(*h, n_tokens=len(positions), n_margins=margins))
    assert_same(slow_signals(positions), found)
    for name in ("h1", "h2", "h3"):
        value = getattr(found, name)
        assert not (value == 0.0 and math.copysign(1.0, value) < 0), f"{name} is -0.0"


@pytest.mark.parametrize("rounding", [1e-9, 5e-4, 1e-3])
def test_a_logprob_of_a_rounding_error_above_zero_is_certainty(rounding: float) -> None:
    """Up to 0.001 above 0 is rounding, not a logit: h1 is there and at least 0, as defined."""
    found = signals_from_arrays([rounding, 0.0], [rounding, 0.0], [-9.0, -9.0])
    assert 0.0 <= found.h1 <= rounding
    assert found.h2 < 0.0


def test_infinite_logits_raise_no_warning_and_give_no_margin() -> None:
    """+inf twice is as little a margin as -inf twice; pytest turns warnings into errors."""
    found = signals_from_arrays([-1.0, -1.0], [inf, -1.0], [inf, -2.0])
    assert (found.h1, found.h2, found.n_margins) == (1.0, -1.0, 1)


@pytest.mark.parametrize(
    "shapes", [(2, 3, 3), (3, 2, 3), (3, 3, 2), (1, 0, 0), ((2, 2), (2, 2), (2, 2)), ((), (), ())]
)
def test_arrays_of_different_shapes_are_refused(shapes: tuple[object, ...]) -> None:
    """With the id, so that the output is found in a batch; nothing is broadcast."""
    arrays = [np.full(shape, -1.0) for shape in shapes]  # type: ignore[arg-type]
    good = generation([(-1.0, -1.0, -2.0)])
    with pytest.raises(BadInputError, match=r"id='culprit'"):
        batch_signals([good, Generation("culprit", "", *arrays)])
    with pytest.raises(BadInputError, match="shape"):
        signals_from_arrays(*arrays)


@pytest.mark.parametrize("bad", ["text", ["a"], [object()], [[-1.0], [-1.0, -2.0]]])
def test_values_that_are_not_numbers_are_refused(bad: object) -> None:
    with pytest.raises(BadInputError):
        signals_from_arrays(bad, bad, bad)  # type: ignore[arg-type]


@SETTINGS
@given(h=st.tuples(*[st.sampled_from([nan, 0.0, -inf, 0.3])] * 3))
@example(h=(nan, nan, nan))
@example(h=(0.0, -inf, 0.0))
def test_state_counts_the_known_signals(h: tuple[float, float, float]) -> None:
    """-inf ("certain everywhere") is a value; only NaN is missing."""
    missing = sum(math.isnan(v) for v in h)
    expected = {0: SignalState.OK, 3: SignalState.MISSING}.get(missing, SignalState.PARTIAL)
    assert Signals(*h).state is expected
    assert str(expected) in ("ok", "partial", "missing")


def test_token_coverage_counts_positions_with_a_margin() -> None:
    """Of the output's tokens, also of those that came without log-probabilities."""
    positions = [(-1.0, -1.0, -2.0), (-1.0, -1.0, nan), (-1.0, -1.0, -2.0)]
    assert generation(positions).token_coverage == pytest.approx(2 / 3)
    assert generation([]).token_coverage == 0.0
    g = generation(positions)
    longer = Generation("g", "", g.logprob, g.top1, g.top2, output_tokens=8)
    assert longer.token_coverage == pytest.approx(2 / 8)


def test_token_coverage_and_margins_count_the_same_positions() -> None:
    """An infinite margin (a forced token) is one, two masked tokens have none, whether masked is
    -inf or the -9999 of HTTP; and asking raises no warning."""
    for masked in (-inf, -9999.0):
        g = generation([(0.0, 0.0, masked), (-1.0, -1.0, -2.0), (-1.0, masked, masked)])
        assert signals_of(g).n_margins == 2
        assert g.token_coverage == pytest.approx(2 / 3)
