"""Proposition 1: how far global and stratified thresholds can differ in errors found.

The paper's Section "Theoretical Analysis" and its proof in the supplement. V(π) is the mass of
errors that a policy finds, E[y · 1{π verifies}], in [0, 1]. The bound is

    |V(strat) − V(global)| ≤ 2 M p / (ℓ √(2π)) · Σ_k w_k |δ_k − δ̄|,    δ̄ = Σ_k w_k δ_k.

What the statement leaves open, and how it is read here:

- *What (A3) shares.* "Prevalence and scale" is not enough: Step 3 of the proof needs one location
  of the right answers' z too (here 0). Strata whose scores are merely shifted, which is what
  dividing by different costs does, have different F_k at equal δ_k, and the bound does not
  cover them. Nor does it cover different prevalences (the paper's Source B).
- *Which densities ℓ bounds.* (A2) has "the corresponding score densities on the quantile
  neighbourhood". Step 2 uses F_k(τ) − F_k(τ_k) = F_k(τ) − F(τ), so it needs, for each k, f_k ≥ ℓ
  on the whole interval between τ and τ_k. (The mixture's density f there would do as well: then
  F(τ_k) − F(τ) = F(τ_k) − F_k(τ_k).) The densities at τ and τ_k alone are not enough: f_k may
  have two humps with a valley between them, and the proof's inequality for |τ − τ_k| is then false.
- *p twice.* g_k = p f_k(z | y=1) contains a p already, so the bound falls as p², with ℓ fixed.
- *ρ_k and δ_k.* δ_k concerns z = s/ĉ, while the paper's ρ_k correlates s with y. Where ĉ varies
  within a stratum they are not functions of each other.
- Neither the sign nor the hit rate follows, and the bound is far from tight: the gains and losses
  of the strata nearly cancel, because Σ_k w_k (F_k(τ) − F_k(τ_k)) = 0.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import exp, inf, log, pi, sqrt

import numpy as np
from numpy.typing import ArrayLike, NDArray

from gatekeeper.arguments import check_beta
from gatekeeper.errors import BadInputError
from gatekeeper.stats.density import density
from gatekeeper.wording import counted

__all__ = [
    "BoundInputs",
    "LocationModel",
    "delta_from_rho",
    "density_ceiling",
    "density_floor",
    "distortion_bound",
    "estimate_inputs",
    "global_threshold",
    "random_model",
    "stratum_thresholds",
    "value_global",
    "value_stratified",
]

_GRID = 256  # points at which an estimated density is evaluated


@dataclass(frozen=True, slots=True)
class LocationModel:
    """The Gaussian location model of (A3): z | y=0, k ~ N(0, σ²), z | y=1, k ~ N(δ_k σ, σ²).

    weights      w_k > 0, K of them, Σ w_k = 1
    prevalence   p = P(y = 1) in (0, 1), the same in every stratum
    separations  δ_k, K of them, in units of the scale; any sign
    scale        σ > 0, in units of z
    """

    weights: tuple[float, ...]
    prevalence: float
    separations: tuple[float, ...]
    scale: float = 1.0

    def __post_init__(self) -> None:
        """Raises BadInputError if a value is out of its range."""
        w, delta = _strata(self.weights, self.separations)
        object.__setattr__(self, "weights", tuple(w.tolist()))
        object.__setattr__(self, "separations", tuple(delta.tolist()))
        _check_prevalence("prevalence", self.prevalence)
        if not 0.0 < self.scale < inf:
            raise BadInputError(f"scale={self.scale!r}: must be a finite number above 0")


@dataclass(frozen=True, slots=True)
class BoundInputs:
    """Arguments of `distortion_bound`, estimated from records."""

    weights: tuple[float, ...]  # shares of the strata
    separations: tuple[float, ...]  # δ_k, dimensionless
    prevalence: float  # p in (0, 1)
    M: float  # 1 / unit of z
    ell: float  # 1 / unit of z

    @property
    def bound(self) -> float:
        return distortion_bound(self.weights, self.separations, self.prevalence, self.M, self.ell)


def global_threshold(model: LocationModel, beta: float) -> float:
    """τ = Q_{1−β}(F) of the mixture F = Σ_k w_k F_k, in units of z."""
    return _quantile(model.weights, model, model.separations, beta)


def stratum_thresholds(model: LocationModel, beta: float) -> tuple[float, ...]:
    """τ_k = Q_{1−β}(F_k), in units of z."""
    return tuple(_quantile((1.0,), model, (delta,), beta) for delta in model.separations)


def value_global(model: LocationModel, beta: float) -> float:
    """V(π_global) = p Σ_k w_k P(z > τ | y=1, k): the top β of all samples. In [0, min(p, β)]."""
    return _value(model, (global_threshold(model, beta),) * len(model.weights))


def value_stratified(model: LocationModel, beta: float) -> float:
    """V(π_strat) = p Σ_k w_k P(z > τ_k | y=1, k): the top β of each stratum."""
    return _value(model, stratum_thresholds(model, beta))


def distortion_bound(
    w: Sequence[float], delta: Sequence[float], p: float, M: float, ell: float
) -> float:
    """The right side of Proposition 1 (Eq. "gap"): error mass, dimensionless, at least 0.

    `estimate_inputs` estimates all arguments from records.

    Parameters
    ----------
    w
        w_k > 0, Σ = 1: the strata's shares of the stream.
    delta
        δ_k, dimensionless: (mean z of the errors − mean z of the others) / standard deviation of z
        given y. From a correlation of z with y: `delta_from_rho`.
    p
        Share of errors, in (0, 1).
    M
        sup_z p f_k(z | y=1) over all strata, in 1 / unit of z: the highest point of the errors'
        density times p. `density_ceiling` of a model.
    ell
        ℓ > 0, in 1 / unit of z: the lowest value of f_k between τ and τ_k, over all strata.
        `density_floor` of a model. One that is too large makes the bound false.

    Raises
    ------
    BadInputError
        An argument is out of its range.
    """
    weights, separations = _strata(w, delta)
    _check_prevalence("p", p)
    for name, value in (("M", M), ("ell", ell)):
        if not 0.0 < value < inf:
            raise BadInputError(f"{name}={value!r}: must be a finite number above 0 (A1, A2)")
    mean = np.dot(weights, separations)
    dispersion = float(np.dot(weights, np.abs(separations - mean)))
    return 2.0 * M * p / (ell * sqrt(2.0 * pi)) * dispersion


def density_ceiling(model: LocationModel) -> float:
    """M of (A1), exactly: the peak of p f_k(z | y=1), the same in every stratum."""
    return model.prevalence / (model.scale * sqrt(2.0 * pi))


def density_floor(model: LocationModel, beta: float) -> float:
    """ℓ of (A2), exactly: min_k inf{f_k(z) : z between τ and τ_k}. The largest ℓ with f_k ≥ ℓ.

    A density of two Gaussians has at most one valley, so the infimum over an interval is at one
    of its ends or in that valley. 0 where the density is below what a float can hold.
    """
    tau = global_threshold(model, beta)
    floor = inf
    for delta, tau_k in zip(model.separations, stratum_thresholds(model, beta), strict=True):
        low, high = sorted((tau, tau_k))
        valley = _valley(delta, model.prevalence)
        points = [low, high]
        if valley is not None and low < valley * model.scale < high:
            points.append(valley * model.scale)
        floor = min(floor, *(_score_density(model, delta, z) for z in points))
    return floor


def delta_from_rho(rho: float, p: float, *, weak: bool = False) -> float:
    """δ from the point-biserial correlation ρ of z with y in one stratum.

    Under (A3) ρ = δ √(p(1−p)) / √(1 + δ² p(1−p)), hence δ = ρ / √(p (1−p) (1−ρ²)) exactly. The
    paper's δ ≈ ρ / √(p(1−p)), given with `weak=True`, is too small by the factor √(1−ρ²): 1.6 %
    at ρ = 0.178, 13 % at ρ = 0.5. ρ in (−1, 1), population form (numpy's corrcoef); p in (0, 1).
    """
    _check_prevalence("p", p)
    if not -1.0 < rho < 1.0:
        raise BadInputError(f"rho={rho!r}: a correlation strictly between -1 and 1 is needed")
    return rho / sqrt(p * (1.0 - p) * (1.0 if weak else 1.0 - rho * rho))


def estimate_inputs(z: ArrayLike, labels: ArrayLike, strata: ArrayLike, beta: float) -> BoundInputs:
    """The bound's inputs, estimated from records.

    weights  n_k / N
    p        share of errors over all strata, though (A3) has it equal in each
    δ_k      (mean z of errors − mean z of others in k) / σ̂, with one σ̂ for all strata as (A3)
             assumes: the standard deviation of z around the mean of its stratum and label
    M        the highest point over all strata of p_k × kernel density of the errors' z in k
    ℓ        the lowest value over all strata of the kernel density of z in k, at 256 points
             between the empirical quantiles Q_{1−β} of all z and of those in k

    These are point estimates: their bound holds as far as (A3) does and the sample is large.

    Parameters
    ----------
    z
        Scores s/ĉ, (N,), finite.
    labels
        (N,), in {0, 1}.
    strata
        The stratum of each record, (N,).
    beta
        The budget β in (0, 1).

    Returns
    -------
    BoundInputs

    Raises
    ------
    BadInputError
        If a stratum has fewer than 2 records of either label, scores do not vary, or no score lies
        between the thresholds (ℓ = 0).
    """
    x, y, k = (np.asarray(a) for a in (z, labels, strata))
    check_beta(beta)
    if x.ndim != 1 or not x.shape == y.shape == k.shape:
        raise BadInputError(
            f"shapes {x.shape}, {y.shape}, {k.shape}: give z, labels and strata of one shape, (N,)"
        )
    if not (np.isfinite(x).all() and np.isin(y, (0, 1)).all()):
        raise BadInputError("z must be finite and labels 0 or 1: leave the other records out")
    tau = np.quantile(x, 1.0 - beta)
    names, index = np.unique(k, return_inverse=True)
    gaps, weights, squares, M, ell = [], [], 0.0, 0.0, inf
    for number, name in enumerate(names.tolist()):
        inside = index == number
        own, wrong = x[inside], y[inside] == 1
        errors, others = own[wrong], own[~wrong]
        if min(errors.size, others.size) < 2:
            raise BadInputError(
                f"stratum={name!r} has {counted(errors.size, 'error')} and "
                f"{counted(others.size, 'other')}: at least 2 of each are needed; merge strata"
            )
        gaps.append(errors.mean() - others.mean())
        weights.append(own.size / x.size)
        squares += errors.var() * errors.size + others.var() * others.size
        grid = np.linspace(errors.min(), errors.max(), _GRID)
        M = max(M, float(wrong.mean() * density(errors, grid).max()))
        between = np.linspace(tau, np.quantile(own, 1.0 - beta), _GRID)
        ell = min(ell, float(density(own, between).min()))
    sigma = sqrt(squares / x.size)
    if not (sigma > 0.0 and M > 0.0 and ell > 0.0):
        raise BadInputError(
            f"sigma={sigma:.3g}, M={M:.3g}, ell={ell:.3g}: the scores do not vary, or none lies "
            "between the thresholds of all and of a stratum, so (A2) fails and no bound follows"
        )
    delta = tuple((np.array(gaps) / sigma).tolist())
    return BoundInputs(tuple(weights), delta, float((y == 1).mean()), M, ell)


def random_model(rng: np.random.Generator) -> LocationModel:
    """A model to try the bound on: 1–8 strata of any shares, weak to strong separations."""
    k = int(rng.integers(1, 9))
    spread = float(rng.choice([0.0, 0.01, 0.3, 1.0, 3.0]))
    delta = rng.uniform(-1.0, 4.0) + spread * rng.uniform(-1.0, 1.0, k)
    w = rng.dirichlet(np.full(k, 0.7)) + 1e-6
    return LocationModel(
        tuple((w / w.sum()).tolist()),
        float(rng.uniform(0.02, 0.98)),
        tuple(delta.tolist()),
        float(np.exp(rng.normal())),
    )


def _quantile(
    weights: Sequence[float], model: LocationModel, separations: Sequence[float], beta: float
) -> float:
    """Q_{1−β} of the mixture of these strata: a root between the components' own quantiles."""
    from scipy.optimize import brentq
    from scipy.special import ndtr, ndtri

    check_beta(beta)
    w = np.asarray(weights)
    delta = np.asarray(separations)
    p = model.prevalence

    def excess(u: float) -> float:
        above = (1.0 - p) * float(ndtr(-u)) + p * float(np.dot(w, ndtr(delta - u)))
        return above - beta

    centre = -float(ndtri(beta))
    low, high = min(0.0, float(delta.min())), max(0.0, float(delta.max()))
    return model.scale * float(brentq(excess, centre + low - 1.0, centre + high + 1.0))


def _value(model: LocationModel, thresholds: Sequence[float]) -> float:
    from scipy.special import ndtr

    u = np.asarray(thresholds) / model.scale
    found = ndtr(np.asarray(model.separations) - u)
    return model.prevalence * float(np.dot(model.weights, found))


def _score_density(model: LocationModel, delta: float, z: float) -> float:
    """f_k(z) of the stratum with separation δ."""
    u, p = z / model.scale, model.prevalence
    humps = (1.0 - p) * exp(-u * u / 2.0) + p * exp(-((u - delta) ** 2) / 2.0)
    return humps / (model.scale * sqrt(2.0 * pi))


def _valley(delta: float, p: float) -> float | None:
    """Where (1−p) φ(u) + p φ(u−δ) has its local minimum; None where it has one hump only.

    With δ > 0, f′ = 0 between the means where g(u) = log(u/(δ−u)) + log((1−p)/p) − δu + δ²/2
    vanishes, and f′ has the sign of −g. g falls only between δ/2 ± √(δ²/4 − 1), so its middle
    root, the valley, lies there or does not exist.
    """
    from scipy.optimize import brentq

    d = abs(delta)  # δ < 0 is the same picture, mirrored
    if d <= 2.0:
        return None

    def g(u: float) -> float:
        return log(u / (d - u)) + log((1.0 - p) / p) - d * u + d * d / 2.0

    half = sqrt(d * d / 4.0 - 1.0)
    low, high = d / 2.0 - half, d / 2.0 + half
    if not g(low) > 0.0 > g(high):
        return None
    valley = float(brentq(g, low, high))
    return valley if delta > 0.0 else -valley


def _strata(
    weights: Sequence[float], separations: Sequence[float]
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    w = np.asarray(weights, dtype=np.float64)
    delta = np.asarray(separations, dtype=np.float64)
    if w.ndim != 1 or w.size == 0 or w.shape != delta.shape:
        raise BadInputError(
            f"weights={weights!r:.80}, separations={separations!r:.80}: one of each per stratum"
        )
    if not (w > 0.0).all() or abs(w.sum() - 1.0) > 1e-9:
        raise BadInputError(f"weights={weights!r:.80}: must be above 0 and sum to 1")
    if not np.isfinite(delta).all():
        raise BadInputError(f"separations={separations!r:.80}: must be finite")
    return w, delta


def _check_prevalence(name: str, p: float) -> None:
    if not 0.0 < p < 1.0:
        raise BadInputError(f"{name}={p!r}: a share strictly between 0 and 1 is needed")
