"""The policies once more, straight from POLICIES.md, in plain slow numpy.

Nothing here comes from `gatekeeper`: histories are lists, every quantile is `numpy.quantile` over
the whole list, every score is worked out anew. What the page leaves open is said where it is
decided. Arrays: h (N, 3), NaN where a signal is missing; c_hat, c, y (N,).
"""

from __future__ import annotations

from dataclasses import dataclass, field
from math import nan
from typing import Any

import numpy as np

T0 = 50
K = 4


@dataclass
class Stream:
    """A stream with everything known in hindsight."""

    h: Any
    c_hat: Any
    c: Any
    y: Any
    name: str = ""

    def __len__(self) -> int:
        return len(self.y)


@dataclass
class Step:
    """One candidate after the warm-up: the policy's wish, and what it rests on."""

    wish: bool
    score: float = nan
    threshold: float = nan
    stratum: int | None = None
    missing: bool = False


@dataclass
class Gate:
    """HGA's evidence."""

    hit_threshold: float
    hit_cst: float
    dispersion: float
    spread: float
    labels: int
    open: bool


@dataclass
class Expected:
    """What a replay must come to on the evaluated candidates."""

    steps: list[Step]
    verified: list[bool]
    budget: float
    gate: Gate | None = None
    metrics: dict[str, float] = field(default_factory=dict)


# -- warm-up, scaling, score ----------------------------------------------------------------------


def correlation(x: list[float], y: list[int]) -> float:
    """Pearson; 0 for a constant side."""
    if len(x) < 2 or min(x) == max(x) or min(y) == max(y):
        return 0.0
    a, b = np.array(x) - np.mean(x), np.array(y) - np.mean(y)
    return float((a * b).sum() / np.sqrt((a * a).sum() * (b * b).sum()))


def scaled(value: float, lo: float, hi: float) -> float:
    if np.isnan(value) or np.isnan(lo):
        return nan
    if hi == lo:
        return 0.0
    return float(np.clip((value - lo) / (hi - lo), 0.0, 1.0))


def fit(h: Any, labels: list[int | None]) -> tuple[list[tuple[float, float]], list[float]]:
    """Ranges and weights w0 over a warm-up of which `labels` are known (None: not yet)."""
    ranges, weights = [], []
    for j in range(3):
        column = [v for v in h[:, j].tolist() if not np.isnan(v)]
        if not column:  # absent everywhere: weight 0, no column
            ranges.append((nan, nan))
            weights.append(0.0)
            continue
        # h2 = -inf ("certain at every token") spans no range (our choice): x = 0
        finite = [v for v in column if np.isfinite(v)] or [0.0]
        lo, hi = float(np.quantile(finite, 0.02)), float(np.quantile(finite, 0.98))
        ranges.append((lo, hi))
        pairs = [
            (scaled(v, lo, hi), label)
            for v, label in zip(h[:, j].tolist(), labels, strict=True)
            if label is not None and not np.isnan(v)
        ]
        weights.append(max(0.0, correlation([x for x, _ in pairs], [label for _, label in pairs])))
    if sum(weights) == 0.0:
        weights = [0.0 if np.isnan(lo) else 1.0 for lo, _ in ranges]
    total = sum(weights)
    return ranges, [w / total for w in weights] if total else weights


def score(row: Any, ranges: list[tuple[float, float]], weights: list[float]) -> float:
    """s = w0ᵀx over what is there, renormalised; uniform where that has weight 0 (our choice)."""
    x = [scaled(v, lo, hi) for v, (lo, hi) in zip(row.tolist(), ranges, strict=True)]
    there = [j for j in range(3) if not np.isnan(x[j])]
    if not there:
        return nan
    weight = sum(weights[j] for j in there)
    if weight == 0.0:
        return sum(x[j] for j in there) / len(there)
    s = sum(weights[j] * x[j] for j in there)
    return s if len(there) == 3 else s / weight


# -- the policies ---------------------------------------------------------------------------------


def quantile(values: list[float], beta: float) -> float:
    return float(np.quantile(values, 1.0 - beta)) if values else nan


def stratum_of(c_hat: float, edges: list[float]) -> int:
    return sum(edge < c_hat for edge in edges)


def edges_of(c_hat: Any, k: int) -> list[float]:
    return [float(np.quantile(c_hat, j / k)) for j in range(1, k)]


def threshold_or_cst(
    stream: Stream,
    beta: float,
    *,
    cst: bool,
    k: int = K,
    warmup: int = T0,
    seed: int = 0,
    labels: list[int | None] | None = None,
) -> list[Step]:
    """A step for every candidate after the warm-up.

    A candidate without any usable signal enters no history and is drawn with probability β, one
    `default_rng(seed)` draw each (DESIGN.md, "Signals"; the generator is ours to say).
    """
    if labels is None:
        labels = [int(v) for v in stream.y[:warmup]]
    ranges, weights = fit(stream.h[:warmup], labels)
    edges = edges_of(stream.c_hat[:warmup], k) if cst else []
    rng = np.random.default_rng(seed)
    everywhere: list[float] = []
    within: list[list[float]] = [[] for _ in range(k)]
    steps = []
    for t in range(len(stream)):
        s = score(stream.h[t], ranges, weights)
        z = s / float(stream.c_hat[t])
        mine = stratum_of(stream.c_hat[t], edges) if cst else None
        if t >= warmup:
            if np.isnan(s):
                steps.append(Step(bool(rng.random() < beta), missing=True))
                continue
            history = everywhere
            if mine is not None and len(within[mine]) >= 2:
                history = within[mine]
            tau = quantile(history, beta)
            steps.append(Step(bool(z > tau), s, tau, mine))
        if not np.isnan(s):
            everywhere.append(z)
            if mine is not None:
                within[mine].append(z)
    return steps


def random_policy(n: int, beta: float, seed: int) -> list[Step]:
    """A step for each of n *evaluated* candidates."""
    rng = np.random.default_rng(seed)
    return [Step(bool(rng.random() < beta)) for _ in range(n)]


def spend(wishes: list[bool], costs: list[float], budget: float) -> list[bool]:
    """Which wishes the budget grants, in stream order; what does not fit is skipped."""
    spent, granted = 0.0, []
    for wish, cost in zip(wishes, costs, strict=True):
        fits = wish and spent + cost <= budget
        spent += cost if fits else 0.0
        granted.append(bool(fits))
    return granted


def evidence(
    threshold: list[Step],
    cst: list[Step],
    c_hat: list[float],
    c: list[float | None],
    y: list[int | None],
    beta: float,
    *,
    k: int = K,
    epsilon_h: float = 0.002,
    epsilon_p: float = 0.03,
) -> Gate:
    """The gate from a calibration. None: a cost or a label that was never observed.

    An unobserved cost is ĉ times the observed cost per ĉ. Where a stratum's score is constant its
    correlation is 0 (as for w0). A candidate without a score is no evidence at all: neither its
    label nor its cost counts. The page is silent on these three.
    """
    scored = [i for i, step in enumerate(cst) if not step.missing]
    threshold, cst = [threshold[i] for i in scored], [cst[i] for i in scored]
    c_hat, c, y = [c_hat[i] for i in scored], [c[i] for i in scored], [y[i] for i in scored]
    known = [i for i, label in enumerate(y) if label is not None]
    if not known:
        return Gate(nan, nan, 0.0, 0.0, 0, open=False)
    per_estimate = sum(c[i] or 0.0 for i in known) / sum(c_hat[i] for i in known)
    costs = [per_estimate * e if cost is None else cost for cost, e in zip(c, c_hat, strict=True)]
    budget = beta * sum(costs)

    def hit(steps: list[Step]) -> float:
        granted = spend([s.wish for s in steps], costs, budget)
        found = [y[i] for i in known if granted[i]]
        return sum(v for v in found if v) / len(found) if found else nan

    rho, p = [], []
    for stratum in range(k):
        mine = [i for i in known if cst[i].stratum == stratum]
        wrong = [y[i] for i in mine]
        if mine:
            p.append(wrong.count(1) / len(mine))
        if min(wrong.count(0), wrong.count(1)) >= 2:
            rho.append(correlation([cst[i].score for i in mine], [int(v or 0) for v in wrong]))
    dispersion = float(np.mean((np.array(rho) - np.mean(rho)) ** 2)) if rho else 0.0
    spread = max(p) - min(p) if p else 0.0
    hits = hit(threshold), hit(cst)
    is_open = hits[1] >= hits[0] and dispersion >= epsilon_h and spread >= epsilon_p
    return Gate(*hits, dispersion, spread, len(known), bool(is_open))


# -- replay ---------------------------------------------------------------------------------------


def all_steps(stream: Stream, beta: float, **settings: Any) -> dict[str, list[Step]]:
    """Threshold's and CST's steps: what `replayed` builds on."""
    return {
        "threshold": threshold_or_cst(stream, beta, cst=False, **settings),
        "cst": threshold_or_cst(stream, beta, cst=True, **settings),
    }


def replayed(
    name: str,
    stream: Stream,
    beta: float,
    by_name: dict[str, list[Step]],
    *,
    k: int = K,
    warmup: int = T0,
    seed: int = 0,
    second_half: bool = False,
) -> Expected:
    """What `replay` must give; HGA with a calibration of the first half, all labels shown.

    `by_name` is `all_steps` with the same settings.
    """
    half = (len(stream) - warmup) // 2 if second_half else 0
    gate = None
    if name == "random":
        steps = random_policy(len(stream) - warmup - half, beta, seed)
    else:
        if name == "hga":
            first = slice(warmup, warmup + half)
            gate = evidence(
                by_name["threshold"][:half],
                by_name["cst"][:half],
                stream.c_hat[first].tolist(),
                stream.c[first].tolist(),
                stream.y[first].tolist(),
                beta,
                k=k,
            )
            name = "cst" if gate.open else "threshold"
        steps = by_name[name][half:]
    c, y = stream.c[warmup + half :].tolist(), stream.y[warmup + half :].tolist()
    budget = beta * sum(c)
    verified = spend([s.wish for s in steps], c, budget)
    spent = sum(cost for cost, v in zip(c, verified, strict=True) if v)
    found = sum(label for label, v in zip(y, verified, strict=True) if v)
    metrics = {
        "spent": spent,
        "errors_found": found,
        "hit_rate": found / sum(verified) if any(verified) else nan,
        "audit_rate": sum(verified) / len(verified),
        "recall": found / sum(y) if any(y) else nan,
        "utilisation": spent / budget,
    }
    return Expected(steps, verified, budget, gate, metrics)


# -- streams --------------------------------------------------------------------------------------

KINDS = [
    "continuous",
    "ties",
    "few_values_everywhere",
    "constant",
    "one_constant",
    "absent",
    "only_one_signal",
    "partial",
    "missing",
    "missing_and_partial",
    "equal_costs",
    "all_right",
    "all_wrong",
    "anti_correlated",
    "heavy_tails",
    "certain",
    "heterogeneous",
    "warmup_lacks_a_signal",
]


def make_stream(kind: str, n: int, seed: int) -> Stream:
    """A random stream with one peculiarity."""
    rng = np.random.default_rng([seed, n, KINDS.index(kind)])
    y = (rng.random(n) < 0.4).astype(int)
    c_hat = rng.lognormal(0.0, 0.6, n)
    h1 = rng.gamma(2.0, 0.2, n) + 0.3 * y
    h2 = -rng.exponential(0.5, n) + 0.2 * y
    h3 = rng.beta(2.0, 3.0, n) + 0.1 * rng.standard_normal(n) * y
    h = np.stack([h1, h2, h3], axis=1)
    c = c_hat * rng.lognormal(0.0, 0.4, n)
    if kind == "ties":
        h = rng.choice([0.0, 0.5, 1.0], (n, 3)) * np.array([1.0, -1.0, 1.0])
        h[:, 0] += 0.5 * y
        c_hat = rng.choice([1.0, 2.0, 3.0, 5.0], n)
    elif kind == "few_values_everywhere":
        h = np.stack([y * rng.integers(0, 2, n), -rng.integers(0, 2, n), y], axis=1).astype(float)
        c_hat, c = rng.choice([1.0, 2.0], n), rng.choice([1.0, 2.0, 4.0], n)
    elif kind == "constant":
        h[:] = (0.7, -0.1, 0.4)
    elif kind == "one_constant":
        h[:, 1] = -0.25
    elif kind == "absent":
        h[:, rng.integers(3)] = np.nan
    elif kind == "only_one_signal":
        keep = rng.integers(3)
        h[:, [j for j in range(3) if j != keep]] = np.nan
    elif kind == "partial":
        h[rng.random((n, 3)) < 0.15] = np.nan
        h[np.isnan(h).all(axis=1)] = (0.5, -0.5, 0.5)
    elif kind == "missing":
        h[rng.random(n) < 0.2] = np.nan
    elif kind == "missing_and_partial":
        h[rng.random((n, 3)) < 0.4] = np.nan
    elif kind == "equal_costs":
        c_hat = c = np.full(n, 0.5)
    elif kind == "all_right":
        y = np.zeros(n, dtype=int)
    elif kind == "all_wrong":
        y = np.ones(n, dtype=int)
    elif kind == "anti_correlated":
        h = np.stack([h1 - 2.0 * y, h2 - y, h3 - y], axis=1)
    elif kind == "heavy_tails":
        c_hat, c = rng.pareto(0.8, n) + 0.01, rng.pareto(0.7, n) + 0.01
    elif kind == "certain":
        h[rng.random(n) < 0.3, 1] = -np.inf
    elif kind == "heterogeneous":
        y, h, c_hat, c = _heterogeneous(rng, n)
    elif kind == "warmup_lacks_a_signal":
        h[:T0, 2] = np.nan
    return Stream(h, c_hat, c, y, name=kind)


def _heterogeneous(rng: np.random.Generator, n: int) -> tuple[Any, Any, Any, Any]:
    """Dear outputs are wrong more often, and the signals tell less about them."""
    level = rng.integers(0, 4, n)
    y = (rng.random(n) < np.array([0.1, 0.2, 0.4, 0.75])[level]).astype(int)
    strength = np.array([0.8, 0.6, 0.3, 0.0])[level]
    base = strength * y + 0.3 * rng.random(n)
    h = np.stack([base, base - 2.0, 0.5 * base + 0.1 * rng.random(n)], axis=1)
    c_hat = np.array([1.0, 1.5, 2.2, 3.5])[level] * rng.uniform(0.9, 1.1, n)
    return y, h, c_hat, c_hat * rng.uniform(0.8, 1.2, n)


def designed(
    n: int, strength: tuple[float, ...], errors: tuple[int, ...], *, noise: float, seed: int
) -> Stream:
    """Four interleaved cost levels (ĉ = 1, 2, 3, 4, each a stratum of its own) by design.

    Exactly `errors[k]` of every ten outputs of level k are wrong; `strength[k]` is how much an
    error shows in the signals.
    """
    rng = np.random.default_rng(seed)
    level = np.arange(n) % 4
    order = np.stack([np.tile(rng.permutation(10), n // 40 + 1) for _ in range(4)])
    y = (order[level, np.arange(n) // 4] < np.array(errors)[level]).astype(int)
    base = np.array(strength)[level] * y + noise * rng.random(n)
    h = np.stack([base, base - 2.0, np.sqrt(np.maximum(base, 0.0))], axis=1)
    c_hat = level + 1.0
    return Stream(h, c_hat, c_hat * rng.uniform(0.9, 1.1, n), y, name="designed")
