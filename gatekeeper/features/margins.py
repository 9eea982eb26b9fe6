"""Features of the margins m = top1 - top2 in nats, one per position; None where there is none."""

from __future__ import annotations

from typing import Any

import numpy as np

from gatekeeper.types import MASKED, FloatArray, Generation

__all__ = ["lowest_margin_at", "margin_entropy", "margin_tenth"]


CERTAIN = 700.0  # nats: a larger margin makes no difference


def margin_entropy(generation: Generation, task: Any = None) -> float | None:
    """Mean entropy of the choice between the two most probable tokens.

    Returns
    -------
    float or None
        In nats, in [0, ln 2].
    """
    margins = _margins(generation)
    margins = margins[~np.isnan(margins)]
    if not margins.size:
        return None
    # Of probabilities σ(m) and σ(-m): ln(1 + e^-m) + m σ(-m).
    margins = np.minimum(margins, CERTAIN)
    decay = np.exp(-margins)
    return float((np.log1p(decay) + margins * decay / (1.0 + decay)).mean())


def margin_tenth(generation: Generation, task: Any = None) -> float | None:
    """The 10 % quantile of the margins.

    Returns
    -------
    float or None
        In nats, at least 0.
    """
    margins = _margins(generation)
    margins = margins[np.isfinite(margins)]
    return float(np.quantile(margins, 0.1)) if margins.size else None


def lowest_margin_at(generation: Generation, task: Any = None) -> float | None:
    """The position of the lowest margin.

    Returns
    -------
    float or None
        In [0, 1]: 0 for the first position, 1 for the last.
    """
    margins = _margins(generation)
    if np.isnan(margins).all():
        return None
    return float(np.nanargmin(margins)) / max(margins.size - 1, 1)


def _margins(generation: Generation) -> FloatArray:
    """(L,); NaN where a position has no margin, +∞ where the second token is masked."""
    top1 = np.where(generation.top1 <= MASKED, -np.inf, generation.top1)
    top2 = np.where(generation.top2 <= MASKED, -np.inf, generation.top2)
    with np.errstate(invalid="ignore"):
        margins: FloatArray = np.abs(top1 - top2)
    return margins
