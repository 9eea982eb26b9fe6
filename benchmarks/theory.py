"""Proposition 1 over random models: is the bound ever broken, and how loose is it?

    python benchmarks/theory.py                20,000 models, some ten seconds
    python benchmarks/theory.py --models 1000

Each model is a Gaussian location model (A3) with 1–8 strata of random shares, prevalence and
separations, at a random budget; both values and the bound's M and ℓ are exact. Exit code 1 if a
bound is broken.
"""

from __future__ import annotations

import argparse
import sys
from time import perf_counter

import numpy as np

from gatekeeper.paper.theory import (
    density_ceiling,
    density_floor,
    distortion_bound,
    random_model,
    value_global,
    value_stratified,
)

ROUNDING = 1e-11  # of the two values, whose thresholds are numerical roots


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--models", type=int, default=20_000)
    parser.add_argument("--seed", type=int, default=0)
    args = parser.parse_args()
    rng = np.random.default_rng(args.seed)
    start = perf_counter()
    gaps, bounds = [], []
    for _ in range(args.models):
        model, beta = random_model(rng), float(rng.uniform(0.02, 0.98))
        gaps.append(abs(value_stratified(model, beta) - value_global(model, beta)))
        M, ell = density_ceiling(model), density_floor(model, beta)
        bounds.append(distortion_bound(model.weights, model.separations, model.prevalence, M, ell))
    gap, bound = np.array(gaps), np.array(bounds)
    broken = int((gap > bound + ROUNDING).sum())
    ratio = gap[bound > ROUNDING] / bound[bound > ROUNDING]
    print(f"{args.models} models in {perf_counter() - start:.1f} s, seed {args.seed}")
    print(f"bound broken         {broken}")
    print(
        f"largest gap          {gap.max():.4f} of all samples, bound there "
        f"{bound[gap.argmax()]:.4f}"
    )
    print(f"gap / bound, worst   {ratio.max():.4f}")
    print(f"gap / bound, median  {np.median(ratio):.4f}   ({ratio.size} models with unequal δ)")
    print(
        f"bound below 1        {(bound < 1.0).mean():.1%} of the models: elsewhere it is no bound"
    )
    return 1 if broken else 0


if __name__ == "__main__":
    sys.exit(main())
