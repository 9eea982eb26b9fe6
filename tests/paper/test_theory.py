"""Proposition 1: exact values, exact constants, and a bound that thousands of models respect."""

from itertools import pairwise
from math import pi, sqrt

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy.stats import norm

from gatekeeper.errors import BadInputError
from gatekeeper.paper.theory import (
    LocationModel,
    delta_from_rho,
    density_ceiling,
    density_floor,
    distortion_bound,
    estimate_inputs,
    global_threshold,
    random_model,
    stratum_thresholds,
    value_global,
    value_stratified,
)

Floats = NDArray[np.float64]
PEAK = 1.0 / sqrt(2.0 * pi)  # of the standard normal density: no mixture of them is higher


def cases(n: int, seed: int) -> list[tuple[LocationModel, float]]:
    rng = np.random.default_rng(seed)
    return [(random_model(rng), float(rng.uniform(0.02, 0.98))) for _ in range(n)]


def draw(
    model: LocationModel, n: int, rng: np.random.Generator
) -> tuple[Floats, NDArray[np.bool_], NDArray[np.intp]]:
    """z, y and stratum of n samples, by the definition of the model."""
    k = rng.choice(len(model.weights), n, p=model.weights)
    y = rng.random(n) < model.prevalence
    z = model.scale * (rng.standard_normal(n) + y * np.array(model.separations)[k])
    return z, y, k


def score_density(model: LocationModel, delta: float, z: Floats) -> Floats:
    p, s = model.prevalence, model.scale
    density = (1 - p) * norm.pdf(z, 0, s) + p * norm.pdf(z, delta * s, s)
    return np.asarray(density, dtype=np.float64)


def gap(model: LocationModel, beta: float) -> float:
    return abs(value_stratified(model, beta) - value_global(model, beta))


def bound(model: LocationModel, ell: float) -> float:
    w, delta, p = model.weights, model.separations, model.prevalence
    return distortion_bound(w, delta, p, density_ceiling(model), ell)


def test_the_bound_holds_for_thousands_of_models() -> None:
    ratios = []
    for model, beta in cases(3000, seed=1):
        limit = bound(model, density_floor(model, beta))
        assert gap(model, beta) <= limit + 1e-11, (model, beta)
        ratios.append(gap(model, beta) / max(limit, 1e-11))
    assert max(ratios) > 0.05  # the models reach somewhere: not all gaps are next to nothing


def test_the_check_notices_a_floor_that_is_too_high() -> None:
    """ℓ at the peak of the score density: (A2) false, and so is the bound for some model."""
    model = LocationModel((0.3, 0.7), 0.04, (0.0, 5.0))
    assert gap(model, 0.025) <= bound(model, density_floor(model, 0.025))
    assert gap(model, 0.025) > 2 * bound(model, PEAK)


def test_the_densities_at_both_thresholds_are_no_floor() -> None:
    """Between them f_k has a valley, and the proof's inequality for |τ − τ_k| needs it."""
    model, beta = LocationModel((0.5, 0.5), 0.2, (0.0, 10.0)), 0.15
    tau, tau_k = global_threshold(model, beta), stratum_thresholds(model, beta)[1]
    z = np.linspace(-5, 15, 20001)
    F = [
        0.8 * norm.cdf(z) + 0.2 * norm.cdf(z, delta)  # of each stratum
        for delta in model.separations
    ]
    apart = np.abs(F[1] - F[0]).max() / 2  # sup |F_k − F|
    at_ends = score_density(model, 10.0, np.array([tau, tau_k])).min()
    assert abs(tau - tau_k) > 2 * apart / at_ends
    assert abs(tau - tau_k) <= apart / density_floor(model, beta)


def test_the_constants_are_the_densities_extremes() -> None:
    """M and ℓ against a fine grid; ℓ also where the lowest point lies in a valley."""
    valleys = 0
    for model, beta in cases(300, seed=2):
        tau = global_threshold(model, beta)
        lowest, ends = np.inf, np.inf
        for delta, tau_k in zip(model.separations, stratum_thresholds(model, beta), strict=True):
            f = score_density(model, delta, np.linspace(tau, tau_k, 4001))
            lowest, ends = min(lowest, f.min()), min(ends, f[0], f[-1])
        floor = density_floor(model, beta)
        assert floor <= lowest * (1 + 1e-9)
        assert floor == pytest.approx(lowest, rel=1e-4)
        valleys += bool(floor < 0.999 * ends)
        z = model.scale * np.linspace(-10, 10, 4001)
        errors = model.prevalence * norm.pdf(z, 0, model.scale)
        assert density_ceiling(model) == pytest.approx(errors.max(), rel=1e-12)
    assert valleys >= 3


def test_equal_separations_make_the_policies_equal() -> None:
    for delta in (-1.5, 0.0, 0.7, 6.0):
        model = LocationModel((0.2, 0.5, 0.3), 0.3, (delta,) * 3, 2.5)
        assert gap(model, 0.2) == pytest.approx(0.0, abs=1e-12)
        assert bound(model, density_floor(model, 0.2)) == pytest.approx(0.0, abs=1e-12)


def test_the_values_equal_simulated_ones() -> None:
    """Both policies applied to samples: the top β of all, and the top β of each stratum."""
    rng = np.random.default_rng(3)
    n = 200_000
    for _ in range(12):
        model, beta = random_model(rng), float(rng.uniform(0.05, 0.6))
        z, y, k = draw(model, n, rng)
        top = z > np.quantile(z, 1 - beta)
        own = np.zeros(n, dtype=bool)
        for stratum in np.unique(k):
            inside = k == stratum
            own[inside] = z[inside] > np.quantile(z[inside], 1 - beta)
        error = 5 * sqrt(0.25 / n)
        assert value_global(model, beta) == pytest.approx((y & top).mean(), abs=error)
        assert value_stratified(model, beta) == pytest.approx((y & own).mean(), abs=error)


def test_the_thresholds_leave_the_budget_and_the_values_grow_with_it() -> None:
    for model, beta in cases(200, seed=4):
        p, s = model.prevalence, model.scale
        tau = global_threshold(model, beta)
        above = [
            (1 - p) * norm.sf(tau, 0, s) + p * norm.sf(tau, d * s, s) for d in model.separations
        ]
        assert np.dot(model.weights, above) == pytest.approx(beta, abs=1e-10)
        values = [value_global(model, b) for b in (0.05, 0.2, 0.5, 0.9)]
        assert all(a < b for a, b in pairwise(values))
        assert values[-1] <= p + 1e-12


def test_the_scale_is_a_unit_and_nothing_else() -> None:
    small, large = (LocationModel((0.4, 0.6), 0.3, (0.2, 1.5), s) for s in (1.0, 1e6))
    assert value_global(small, 0.2) == pytest.approx(value_global(large, 0.2))
    assert gap(small, 0.2) == pytest.approx(gap(large, 0.2))
    limits = [bound(m, density_floor(m, 0.2)) for m in (small, large)]
    assert limits[0] == pytest.approx(limits[1])


def test_the_bound_is_the_formula() -> None:
    # δ̄ = 0.25·0 + 0.75·2 = 1.5; Σ w |δ − δ̄| = 0.25·1.5 + 0.75·0.5 = 0.75
    expected = 2 * 0.1 * 0.3 / (0.05 * sqrt(2 * pi)) * 0.75
    assert distortion_bound((0.25, 0.75), (0.0, 2.0), 0.3, 0.1, 0.05) == pytest.approx(expected)


def test_delta_follows_from_rho_exactly() -> None:
    rng = np.random.default_rng(5)
    for p, delta in ((0.25, 0.4), (0.6, 1.5), (0.1, -2.0)):
        y = np.repeat([0.0, 1.0], [round(400_000 * (1 - p)), round(400_000 * p)])
        rho = np.corrcoef(rng.standard_normal(y.size) + delta * y, y)[0, 1]
        assert delta_from_rho(rho, p) == pytest.approx(delta, abs=0.02)
        assert delta_from_rho(rho, p, weak=True) == pytest.approx(
            delta_from_rho(rho, p) * sqrt(1 - rho**2)
        )
    assert delta_from_rho(0.01, 0.3, weak=True) == pytest.approx(
        delta_from_rho(0.01, 0.3), rel=1e-4
    )


def test_the_inputs_are_recovered_from_records() -> None:
    model, beta = LocationModel((0.25, 0.35, 0.4), 0.4, (0.1, 0.8, 1.6), 0.02), 0.3
    z, y, k = draw(model, 40_000, np.random.default_rng(6))
    found = estimate_inputs(z, y, k, beta)
    assert found.weights == pytest.approx(model.weights, abs=0.01)
    assert found.prevalence == pytest.approx(0.4, abs=0.01)
    assert found.separations == pytest.approx(model.separations, abs=0.05)
    assert pytest.approx(density_ceiling(model), rel=0.1) == found.M
    assert found.ell == pytest.approx(density_floor(model, beta), rel=0.1)
    assert found.bound == pytest.approx(bound(model, density_floor(model, beta)), rel=0.2)
    # few records, where no histogram stands for them, agree with many
    few = estimate_inputs(z[:3000], y[:3000], k[:3000], beta)
    assert few.ell == pytest.approx(found.ell, rel=0.25)


def test_values_out_of_range_are_refused() -> None:
    good = {"weights": (0.5, 0.5), "prevalence": 0.3, "separations": (0.0, 1.0)}
    for change in (
        {"weights": (0.5, 0.6)},
        {"weights": (1.0, 0.0)},
        {"weights": (1.0,)},
        {"weights": (), "separations": ()},
        {"prevalence": 0.0},
        {"prevalence": float("nan")},
        {"separations": (0.0, float("inf"))},
        {"scale": 0.0},
    ):
        with pytest.raises(BadInputError, match=next(iter(change))):
            LocationModel(**(good | change))  # type: ignore[arg-type]
    model = LocationModel((0.5, 0.5), 0.3, (0.0, 1.0))
    with pytest.raises(BadInputError, match=r"beta=1\.0"):
        value_global(model, 1.0)
    with pytest.raises(BadInputError, match=r"ell=0\.0: must be"):
        bound(model, 0.0)
    with pytest.raises(BadInputError, match=r"rho=1\.0"):
        delta_from_rho(1.0, 0.5)
    z, y, k = draw(model, 400, np.random.default_rng(7))
    with pytest.raises(BadInputError, match="stratum=1 has 0 errors"):
        estimate_inputs(z, y & (k == 0), k, 0.2)
    with pytest.raises(BadInputError, match="labels 0 or 1"):
        estimate_inputs(z, y * 2, k, 0.2)
    with pytest.raises(BadInputError, match="scores do not vary"):
        estimate_inputs(np.ones(400), y, k, 0.2)
    with pytest.raises(BadInputError, match="of one shape"):
        estimate_inputs(z[1:], y, k, 0.2)
