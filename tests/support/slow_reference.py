"""The policies once more, straight from docs/reference/policies.md, in plain slow numpy.

Nothing here comes from `gatekeeper`: histories are lists, every quantile is `numpy.quantile` over
the whole list, every score is computed from scratch. What the page leaves open is said where it is
decided. Arrays: h (N, 3), NaN where a signal is missing; c_hat, c, y, observed (N,).
"""

from __future__ import annotations

from collections.abc import Generator
from dataclasses import dataclass, field, replace
from math import ceil, exp, inf, nan
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
    y: Any  # the clean labels, for the metrics
    name: str = ""
    observed: Any = None  # the labels that policies are shown; the clean ones by default

    def __post_init__(self) -> None:
        if self.observed is None:
            self.observed = self.y

    def __len__(self) -> int:
        return len(self.y)


@dataclass
class Step:
    """One candidate after the warm-up: the policy's proposal, and what it rests on."""

    proposal: bool
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
    """The results of a replay on the evaluated candidates."""

    steps: list[Step]
    verified: list[bool]
    budget: float
    gate: Gate | None = None
    metrics: dict[str, float] = field(default_factory=dict)


# -- warm-up, scaling, score ----------------------------------------------------------------------


def correlation(x: list[float], y: list[int]) -> float:
    """Pearson; 0 for a constant side, and for what differs from 0 by rounding."""
    if len(x) < 2 or min(x) == max(x) or min(y) == max(y):
        return 0.0
    a, b = np.array(x) - np.mean(x), np.array(y) - np.mean(y)
    r = float((a * b).sum() / np.sqrt((a * a).sum() * (b * b).sum()))
    return r if abs(r) > 1e-12 else 0.0


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
    """s = w0ᵀx."""
    return weighed(
        [scaled(v, *ends) for v, ends in zip(row.tolist(), ranges, strict=True)], weights
    )


def weighed(x: list[float], weights: list[float]) -> float:
    """Weights of the signals that are present, renormalised; uniform if all are 0 (our choice)."""
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
    `default_rng(seed)` draw each (docs/reference/policies.md, "Missing signals").
    """
    if labels is None:
        labels = stream.observed[:warmup].tolist()
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


def split_conformal(
    stream: Stream,
    beta: float,
    half: int,
    *,
    stratified: bool = True,
    k: int = K,
    warmup: int = T0,
    seed: int = 0,
) -> list[Step]:
    """A step for every candidate after the warm-up; none of the first `half` is wanted.

    Candidates without a signal are not collected there, and draw nothing (our choice).
    """
    x, w0 = prepared(stream, warmup)
    edges = edges_of(stream.c_hat[:warmup], k if stratified else 1)
    z = [weighed(row, w0) / float(e) for row, e in zip(x, stream.c_hat, strict=True)]
    strata = [stratum_of(e, edges) for e in stream.c_hat]
    collected = [i for i in range(warmup, warmup + half) if not np.isnan(z[i])]
    rng = np.random.default_rng(seed)
    steps = [Step(False)] * half
    for t in range(warmup + half, len(stream)):
        if np.isnan(z[t]):
            steps.append(Step(bool(rng.random() < beta), missing=True))
            continue
        mine = sorted(z[i] for i in collected if strata[i] == strata[t])
        rank = ceil((len(mine) + 1) * (1.0 - beta))
        tau = mine[rank - 1] if rank <= len(mine) else inf
        s = weighed(x[t], w0)
        steps.append(Step(bool(z[t] > tau), s, tau, strata[t] if stratified else None))
    return steps


def oracle(c: list[float], y: list[int], budget: float) -> list[bool]:
    """The errors in stream order, then right outputs in stream order, each if it still fits."""
    order = [i for i in range(len(y)) if y[i] == 1] + [i for i in range(len(y)) if y[i] == 0]
    fits = spend([True] * len(y), [c[i] for i in order], budget)
    chosen = {i for i, fit in zip(order, fits, strict=True) if fit}
    return [i in chosen for i in range(len(y))]


# -- the policies that learn ----------------------------------------------------------------------
# Generators: each yields the step of the next candidate after the warm-up, and is sent whether it
# was really verified, and the label that was shown (None: none).

Learner = Generator[Step, tuple[bool, int | None], None]


def prepared(stream: Stream, warmup: int) -> tuple[list[list[float]], list[float]]:
    """x of the whole stream, NaN where a signal is missing, and w0."""
    ranges, w0 = fit(stream.h[:warmup], stream.observed[:warmup].tolist())
    x = [
        [scaled(v, *ends) for v, ends in zip(row, ranges, strict=True)] for row in stream.h.tolist()
    ]
    return x, w0


def sigmoid(u: float) -> float:
    return 1.0 / (1.0 + exp(-u)) if u >= 0.0 else exp(u) / (1.0 + exp(u))


def ascended(theta: list[float], x: list[float], residual: float, eta: float) -> list[float]:
    """EG(θ, (y - σ) x, η); a missing coordinate has no gradient (our choice)."""
    grown = [
        w * exp(eta * residual * (0.0 if np.isnan(v) else v)) for w, v in zip(theta, x, strict=True)
    ]
    return [w / sum(grown) for w in grown]


def relative_costs(stream: Stream, warmup: int) -> tuple[list[float], list[float]]:
    """ĉ′ and c′: costs divided by their means over the warm-up."""
    c_hat = stream.c_hat / np.mean(stream.c_hat[:warmup])
    c = stream.c / np.mean(stream.c[:warmup])
    return c_hat.tolist(), c.tolist()


def first_multiplier(
    x: list[list[float]], w0: list[float], c_hat: list[float], beta: float, warmup: int
) -> float:
    """λ_1 of relative costs."""
    s = [weighed(row, w0) for row in x[:warmup]]
    return quantile([v / e for v, e in zip(s, c_hat, strict=False) if not np.isnan(v)], beta)


def mp_adapt(
    stream: Stream, beta: float, *, extragradient: bool = False, warmup: int = T0, seed: int = 0
) -> Learner:
    """A candidate without signals is an evaluation step that moves λ and teaches θ nothing."""
    x, theta = prepared(stream, warmup)
    c_hat, c = relative_costs(stream, warmup)
    lam = first_multiplier(x, theta, c_hat, beta, warmup)
    unit = float(np.mean(stream.c_hat[:warmup]))
    rng = np.random.default_rng(seed)
    for t in range(warmup, len(stream)):
        eta = 0.5 / (1.0 + 0.002 * (t - warmup))
        s = weighed(x[t], theta)
        if np.isnan(s):
            verified, _ = yield Step(bool(rng.random() < beta), missing=True)
        else:
            u = s - lam * c_hat[t]
            verified, label = yield Step(u > 0.0, s, lam / unit)
            if label is not None:
                if extragradient:
                    ahead = ascended(theta, x[t], label - sigmoid(u), eta)
                    u = weighed(x[t], ahead) - lam * c_hat[t]
                theta = ascended(theta, x[t], label - sigmoid(u), eta)
        lam = max(0.0, lam + 0.25 * beta * (verified * c[t] - beta))


def mp_strat(
    stream: Stream, beta: float, *, k: int = K, warmup: int = T0, seed: int = 0
) -> Learner:
    """η_t counts the evaluation steps of all strata (our choice)."""
    x, w0 = prepared(stream, warmup)
    c_hat, c = relative_costs(stream, warmup)
    unit = float(np.mean(stream.c_hat[:warmup]))
    edges = edges_of(stream.c_hat[:warmup], k)
    lam = [max(0.1, first_multiplier(x, w0, c_hat, beta, warmup))] * k
    student, teacher = [w0] * k, [w0] * k
    rng = np.random.default_rng(seed)
    for t in range(warmup, len(stream)):
        eta = 0.5 / (1.0 + 0.002 * (t - warmup))
        mine = stratum_of(stream.c_hat[t], edges)
        s = weighed(x[t], teacher[mine])
        if np.isnan(s):
            verified, _ = yield Step(bool(rng.random() < beta), missing=True)
        else:
            price = lam[mine] * c_hat[t]
            verified, label = yield Step(s - price > 0.0, s, lam[mine] / unit, mine)
            if label is not None:
                u = weighed(x[t], student[mine]) - price
                student[mine] = ascended(student[mine], x[t], label - sigmoid(u), eta)
                teacher[mine] = [
                    0.9 * old + 0.1 * new
                    for old, new in zip(teacher[mine], student[mine], strict=True)
                ]
        lam[mine] = max(0.1, lam[mine] + 0.25 * beta * (verified * c[t] - beta))


def cst_memory(
    stream: Stream,
    beta: float,
    *,
    weight: float = 0.2,
    neighbours: int = 5,
    k: int = K,
    warmup: int = T0,
    seed: int = 0,
) -> Learner:
    """A candidate without signals enters neither the memory nor the history (our choice)."""
    x, w0 = prepared(stream, warmup)
    edges = edges_of(stream.c_hat[:warmup], k)
    memory: list[list[tuple[list[float], int]]] = [[] for _ in range(k)]
    everywhere: list[float] = []
    within: list[list[float]] = [[] for _ in range(k)]
    rng = np.random.default_rng(seed)
    for t in range(len(stream)):
        s = weighed(x[t], w0)
        if np.isnan(s):
            if t >= warmup:
                yield Step(bool(rng.random() < beta), missing=True)
            continue
        mine = stratum_of(stream.c_hat[t], edges)
        s = (1.0 - weight) * s + weight * error_rate_nearby(x[t], memory[mine], neighbours)
        z = s / float(stream.c_hat[t])
        verified, label = True, stream.observed[t]
        if t >= warmup:
            tau = quantile(within[mine] if len(within[mine]) >= 2 else everywhere, beta)
            verified, label = yield Step(bool(z > tau), s, tau, mine)
        everywhere.append(z)
        within[mine].append(z)
        if verified and label is not None:
            memory[mine].append((x[t], int(label)))


def error_rate_nearby(
    x: list[float], memory: list[tuple[list[float], int]], neighbours: int
) -> float:
    """h4. A coordinate that either side lacks adds nothing to their distance (our choice)."""
    if not memory:
        return 0.5
    there, labels = np.array([row for row, _ in memory]), np.array([label for _, label in memory])
    distance = np.sqrt(np.nansum((there - np.array(x)) ** 2, axis=1))
    nearest = np.argsort(distance, kind="stable")  # equal distances in order of arrival
    return float(np.mean(labels[nearest[:neighbours]]))


LEARNERS: dict[str, Any] = {
    "mp-adapt": mp_adapt,
    "mp-adapt-extragradient": lambda *a, **kw: mp_adapt(*a, extragradient=True, **kw),
    "mp-strat": mp_strat,
    "cst-memory": cst_memory,
}


def followed(
    learner: Learner, stream: Stream, beta: float, first: int, *, warmup: int, full: bool
) -> list[Step]:
    """A learner's steps after the warm-up; before `first` all proposals are admitted (ours)."""
    budget, spent = beta * sum(stream.c[first:].tolist()), 0.0
    steps = [next(learner)]
    for t in range(warmup, len(stream) - 1):
        cost = float(stream.c[t])
        verified = steps[-1].proposal and (t < first or spent + cost <= budget)
        if verified and t >= first:
            spent += cost
        shown = int(stream.observed[t]) if full or verified else None
        steps.append(learner.send((verified, shown)))
    return steps


def spend(proposals: list[bool], costs: list[float], budget: float) -> list[bool]:
    """Which proposals the budget admits, in stream order; what does not fit is skipped."""
    spent, granted = 0.0, []
    for proposal, cost in zip(proposals, costs, strict=True):
        fits = proposal and spent + cost <= budget
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
        granted = spend([s.proposal for s in steps], costs, budget)
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
    """Threshold's and CST's steps, from which `replayed` computes."""
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
    full: bool = True,
    **settings: Any,
) -> Expected:
    """The result that `replay` must have; HGA and SplitConformal calibrate on the first half.

    `by_name` is `all_steps` with the same settings; `full` shows every label to a learner, HGA's
    calibration sees them all anyway. `settings` are those of the learner.
    """
    half = (len(stream) - warmup) // 2 if second_half else 0
    c, y = stream.c[warmup + half :].tolist(), stream.y[warmup + half :].tolist()
    budget = beta * sum(c)
    gate = None
    if name == "random":
        steps = random_policy(len(stream) - warmup - half, beta, seed)
    elif name == "oracle":
        steps = [Step(chosen) for chosen in oracle(c, y, budget)]
    elif name in LEARNERS:
        learner = LEARNERS[name](stream, beta, warmup=warmup, seed=seed, **settings)
        steps = followed(learner, stream, beta, warmup + half, warmup=warmup, full=full)[half:]
    elif name.startswith("split-conformal"):
        settings = {"stratified": name == "split-conformal", "k": k, "warmup": warmup, "seed": seed}
        steps = split_conformal(stream, beta, half, **settings)[half:]
    else:
        if name == "hga":
            first = slice(warmup, warmup + half)
            gate = evidence(
                by_name["threshold"][:half],
                by_name["cst"][:half],
                stream.c_hat[first].tolist(),
                stream.c[first].tolist(),
                stream.observed[first].tolist(),
                beta,
                k=k,
            )
            name = "cst" if gate.open else "threshold"
        steps = by_name[name][half:]
    verified = spend([s.proposal for s in steps], c, budget)
    spent = sum(cost for cost, v in zip(c, verified, strict=True) if v)
    found = sum(label for label, v in zip(y, verified, strict=True) if v)
    metrics = {
        "spent": spent,
        "errors_found": found,
        "hit_rate": found / sum(verified) if any(verified) else nan,
        "audit_rate": sum(verified) / len(verified),
        "recall": found / sum(y) if any(y) else nan,
        "utilisation": spent / budget,
        "value": found / len(verified),
        "yield": found / spent if spent else nan,
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
    "decimal_costs",
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
    elif kind == "decimal_costs":  # no exact doubles: the last bit decides what fits the budget
        c_hat, c = rng.choice([0.1, 0.2, 0.3], n), rng.choice([0.1, 0.2, 0.3, 0.7], n)
    return Stream(h, c_hat, c, y, name=kind)


def _heterogeneous(rng: np.random.Generator, n: int) -> tuple[Any, Any, Any, Any]:
    """Expensive outputs are wrong more often, and their signals are less informative."""
    level = rng.integers(0, 4, n)
    y = (rng.random(n) < np.array([0.1, 0.2, 0.4, 0.75])[level]).astype(int)
    strength = np.array([0.8, 0.6, 0.3, 0.0])[level]
    base = strength * y + 0.3 * rng.random(n)
    h = np.stack([base, base - 2.0, 0.5 * base + 0.1 * rng.random(n)], axis=1)
    c_hat = np.array([1.0, 1.5, 2.2, 3.5])[level] * rng.uniform(0.9, 1.1, n)
    return y, h, c_hat, c_hat * rng.uniform(0.8, 1.2, n)


def with_noisy_labels(stream: Stream, seed: int, flipped: float = 0.1) -> Stream:
    """The same stream as policies see it where verdicts are sometimes wrong."""
    rng = np.random.default_rng(seed)
    flip = rng.random(len(stream)) < flipped
    return replace(stream, observed=np.where(flip, 1 - stream.y, stream.y))


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
