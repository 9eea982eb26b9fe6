"""How many switches of the model the best possible test notices: one that knows both models.

    python benchmarks/drift_ceiling.py [--runs 40] [--null 40] [--policy cst]

The switches of benchmarks/drift.py between stress streams, at a budget of 20 %. The test has the
exact likelihood ratio of score and label after the switch to before, from the recipes, and sees the
labels of the outputs that the policy verified. Its cumulative sum (Page 1954; the optimum by
Moustakides 1986) is compared with a limit that 1 % of the streams of 3,000 outputs without a switch
exceed: P(maximum > h) = 1 - exp(-c e^-h), the form of the tail of such sums, with c from the median
of the maxima of `--null` streams. A test that has to learn what it compares notices fewer; only a
policy that verifies other outputs could show more.

A second test knows all but one number, the level of the log odds of an error before the switch,
which it has to learn from labels: the mean of the likelihood over a normal prior takes the place of
the likelihood. A policy that verified little before the switch shows that level poorly.
"""

from __future__ import annotations

import argparse
from math import log
from pathlib import Path
from statistics import median

import numpy as np
from _gate import go_through
from _machine import machine
from drift import HALF, SOON, SWITCHES, Source, stream_of
from scipy.special import expit, logit, logsumexp, ndtr

from gatekeeper.budget import Budget
from gatekeeper.gate.rates import named_policy
from gatekeeper.io.records import RecordTable
from gatekeeper.paper.stress import STREAMS, Recipe
from gatekeeper.types import FloatArray

N, BETA, FALSE_ALARMS = 2 * HALF, 0.2, 0.01
LEVELS = np.linspace(-4.0, 4.0, 81)  # offsets of the log odds before the switch
LEVEL_PRIOR = -0.5 * (LEVELS / 2.0) ** 2  # log density, up to a constant


def recipe_of(source: Source) -> Recipe:
    assert not isinstance(source, Path)
    return STREAMS[source] if isinstance(source, str) else source


def log_likelihood(recipe: Recipe, table: RecordTable) -> tuple[FloatArray, FloatArray]:
    """Log-likelihood of the scores (N,), and of each label, right and wrong, given them (N, 2)."""
    h, rank = table.h, ndtr(np.log(table.cost_estimate) / recipe.cost_spread)
    seen = np.stack([2 * np.log(h[:, 0] / 0.3), np.log(-h[:, 1] / 2) / -0.7, 1 + logit(h[:, 2])])
    score = seen.mean(axis=0)
    variance = 1.0 + recipe.signal_noise**2 / 3
    prior, d = (along(v, rank) for v in (recipe.error_rate, recipe.separation))
    right = np.log1p(-prior) - score**2 / (2 * variance)
    wrong = np.log(prior) - (score - d) ** 2 / (2 * variance)
    both = np.logaddexp(right, wrong)
    return both, np.column_stack([right - both, wrong - both])


def along(values: tuple[float, ...], rank: FloatArray) -> FloatArray:
    return np.interp(rank, np.linspace(0.0, 1.0, len(values)), values)


def cusums(before: Recipe, after: Recipe, table: RecordTable, verified: FloatArray) -> FloatArray:
    """Page's statistic after each output, (2, N): with the level before known, and learned."""
    (x0, y0), (x1, y1) = log_likelihood(before, table), log_likelihood(after, table)
    wrong = table.error == 1.0
    odds = (y0[:, 1] - y0[:, 0])[:, None] + LEVELS
    seen = verified[:, None] * np.log(expit(np.where(wrong[:, None], odds, -odds)))
    learned = logsumexp(seen.cumsum(axis=0) + LEVEL_PRIOR, axis=1) - logsumexp(LEVEL_PRIOR)
    known = (verified * np.where(wrong, y0[:, 1], y0[:, 0])).cumsum()
    new = (x1 - x0 + verified * np.where(wrong, y1[:, 1], y1[:, 0])).cumsum()
    total = np.pad([new - known, new - learned], ((0, 0), (1, 0)))
    return np.asarray((total - np.minimum.accumulate(total, axis=1))[:, 1:])


def run(
    policy: str, source: Source | tuple[Source, Source], seed: int
) -> tuple[RecordTable, FloatArray]:
    table, budget = stream_of(source, seed), Budget(fraction=BETA, horizon=N)
    left = go_through(named_policy(policy, budget, 0.02, seed), table, budget, seed)
    assert left.verified is not None
    return table, left.verified


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--runs", type=int, default=40, help="of each switch")
    parser.add_argument("--null", type=int, default=40, help="streams without a switch")
    parser.add_argument("--policy", default="cst")
    args = parser.parse_args()
    print(machine())
    print(f"{'':<28}{'level before known':^36}{'learned':^36}")
    head = f"{'limit':>7}{f'nats in {SOON}':>13}{'soon':>7}{'outputs':>9}"
    print(f"{'models':<28}{head}{head}")
    soon: list[FloatArray] = []
    for name, (a, b) in SWITCHES.items():
        before, after = recipe_of(a), recipe_of(b)
        steady = [run(args.policy, (a, a), 10_000 + seed) for seed in range(args.null)]
        worst = [cusums(before, after, *one).max(axis=1) for one in steady]
        c = log(2) * np.exp(np.median(worst, axis=0))  # P(maximum < h) = exp(-c e^-h)
        limit = np.log(c) - log(-np.log1p(-FALSE_ALARMS))
        runs = [run(args.policy, (a, b), seed) for seed in range(args.runs)]
        found = np.array([cusums(before, after, *one) for one in runs])[:, :, HALF:]
        passed = found > limit[:, None]
        first = np.where(passed.any(axis=2), passed.argmax(axis=2) + 1.0, np.inf)
        soon.append((first <= SOON).mean(axis=0))
        cells = zip(limit, found[:, :, SOON - 1].mean(axis=0), soon[-1], first.T, strict=True)
        print(
            f"{name:<28}"
            + "".join(f"{h:7.1f}{nats:13.1f}{s:7.0%}{median(t):9.0f}" for h, nats, s, t in cells),
            flush=True,
        )
    known, learned = np.mean(soon, axis=0)
    print(f"{'mean':<28}{known:27.1%}{learned:36.1%}")


if __name__ == "__main__":
    main()
