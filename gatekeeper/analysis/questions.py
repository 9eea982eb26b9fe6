"""The uncertainty of a mean score that comes from the sampling of questions.

The questions of a run are a sample of all that might have been asked. With outputs i of weights w_i
and variance σ² about the mean, of which those of one question correlate by ρ, the variance is

    σ² [(1 - ρ) Σ_i w_i² + ρ Σ_questions (Σ w_i)²] / (Σ w_i)²

ρ comes from the pairs of known outputs to one question. While there are few, it is taken to be near
1, which is the wider interval. Source: Miller (2024), "Adding error bars to evals", clustered
standard errors.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence

import numpy as np

from gatekeeper.analysis.mean_of_all import Drawn, Mean

__all__ = ["spread_of_questions"]

PAIRS = 10.0  # prior weight, in pairs, of repeats that are all alike


def spread_of_questions(mean: Mean, drawn: Drawn, question: Sequence[str]) -> float:
    """The variance from the sampling of questions, per unit of variance of the values.

    Parameters
    ----------
    mean, drawn
        The mean of all outputs, and the outputs.
    question
        Question of each output, (N,).
    """
    known = np.flatnonzero(drawn.known)
    y, each = drawn.y[known], drawn.weight[known] * mean.expansion
    variance = float(each @ (y - mean.value) ** 2 / each.sum()) * y.size / max(y.size - 1, 1)
    whole: dict[str, float] = defaultdict(float)
    for name, w in zip(question, drawn.weight.tolist(), strict=True):
        whole[name] += w
    alike = sum(w * w for w in whole.values())
    alone = float(drawn.weight @ drawn.weight)
    rho = 1.0
    if len(whole) < len(question):
        of: dict[str, list[float]] = defaultdict(list)
        for i, value in zip(known.tolist(), y.tolist(), strict=True):
            of[question[i]].append(value - mean.value)
        products = pairs = 0.0
        for off in of.values():
            total, squares = sum(off), sum(o * o for o in off)
            products += (total * total - squares) / 2.0
            pairs += len(off) * (len(off) - 1) / 2.0
        if variance > 0.0:
            rho = min(max((products / variance + PAIRS) / (pairs + PAIRS), 0.0), 1.0)
    return ((1.0 - rho) * alone + rho * alike) / float(drawn.weight.sum()) ** 2
