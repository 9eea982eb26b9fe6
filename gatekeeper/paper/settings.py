"""The five settings of the paper as models to draw streams from, with the reason of every figure.

The paper's records are not published. `PARAMETERS` holds all parameters of `streams.draw`:
published figures are taken unchanged, others are derived from the tables, and the remaining few are
fitted to its Threshold and CST rows (Random, Oracle, the learners, HGA, conformal calibration and
every control are then predictions of the model, not fitted).

A candidate at rank q in (0, 1) of the ex-ante cost ĉ = exp(cost_spread · Φ⁻¹(q)) is wrong with
probability p(q) (`Setting.error_probability`), has a score with corr(score, y) = ρ_k in its cost
quartile, and three signals whose mean is that score.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

from gatekeeper.errors import BadInputError
from gatekeeper.paper import published
from gatekeeper.types import FloatArray
from gatekeeper.wording import choose

__all__ = ["PARAMETERS", "SETTINGS", "STRATA", "Parameter", "Setting", "setting"]

STRATA = 4  # K of the paper: quartiles of ĉ


@dataclass(frozen=True, slots=True)
class Setting:
    """One column of `PARAMETERS`, which says what each figure is and where it comes from."""

    name: str
    n: int
    error_rate: tuple[float, ...]  # (K,), in [0, 1], cheap to expensive, without tail_extra
    error_slope: float  # p at a stratum's expensive end minus p at its cheap end
    tail_share: float  # in [0, 1]
    tail_extra: float  # added to p
    rho: tuple[float, ...]  # (K,), in (-1, 1)
    score_slope: float  # in standard deviations of the score, per one of log ĉ
    error_spread: float  # > 0
    saturation: float  # κ >= 0, per standard deviation
    signal_noise: float  # in standard deviations of the score
    cost_spread: float  # standard deviation of log ĉ
    cost_correlation: float  # of log ĉ and log c
    true_cost_spread: float  # standard deviation of log c
    error_cost: float  # added to log c where the output is wrong
    draws: int

    def error_probability(self, rank: FloatArray) -> FloatArray:
        """p(q) at these ranks of ĉ in (0, 1), same shape."""
        k = np.minimum((rank * STRATA).astype(int), STRATA - 1)
        within = rank * STRATA - k - 0.5
        p = np.array(self.error_rate)[k] + self.error_slope * within
        return np.asarray(p + self.tail_extra * (rank < self.tail_share))


@dataclass(frozen=True, slots=True)
class Parameter:
    """One free figure of the model: its value in each setting (`published.SETTINGS`) and why."""

    name: str
    values: tuple[Any, ...]
    source: Literal["published", "implied", "fitted", "chosen"]
    reason: str


_QWEN, _LLAMA, _GPT, _MATH_QWEN, _MATH_LLAMA = published.SETTINGS

PARAMETERS = (
    Parameter("n", (500, 500, 500, 5000, 5000), "published", "Section Setup."),
    Parameter(
        "error_rate",
        (
            (0.423, 0.500, 0.581, 0.714),
            (0.600, 0.581, 0.635, 0.760),
            (0.359, 0.495, 0.596, 0.662),
            (0.170, 0.179, 0.270, 0.207),
            (0.466, 0.579, 0.590, 0.621),
        ),
        "fitted",
        "p of the cost quartiles. MBPP-Qwen3: published (Table cst_quartile). Elsewhere only their "
        "mean is (less the cheap tail's); fitted so that Threshold, which prefers cheap outputs, "
        "loses to CST what it loses in the paper.",
    ),
    Parameter(
        "error_slope",
        (0.0, 0.0, 0.07, 0.0, 0.0),
        "fitted",
        "More expensive outputs are more often wrong within a quartile too: GPT-4o-mini's "
        "Threshold falls below random at small budgets (.426 at 5 %).",
    ),
    Parameter(
        "tail_share",
        (0.0, 0.0, 0.0, 0.105, 0.118),
        "fitted",
        "MATH: errors gather among the cheapest outputs. Threshold finds .556 at 5 % and CST .329 "
        "with ρ = .153: so weak a score does not explain that, ĉ has to; and CST falls with every "
        "further stratum (Table k_sweep).",
    ),
    Parameter("tail_extra", (0.0, 0.0, 0.0, 0.384, 0.415), "fitted", "By how much; as above."),
    Parameter(
        "rho",
        (
            (0.170, 0.090, 0.256, 0.157),
            (0.176, 0.248, 0.320, 0.392),
            (0.1745, 0.1745, 0.1745, 0.059),
            (0.125, 0.125, 0.125, 0.125),
            (0.201, 0.201, 0.201, 0.201),
        ),
        "implied",
        "Qwen3: Q3, Q4 published; Q1, Q2 give H = .0035 with neither significant at n = 125. "
        "LLaMA3: equal steps upwards with H = .0065, their mean fitted. GPT-4o-mini: Q4 published, "
        "the others equal with H = .0025. MATH: equal, as no H is given; together with what "
        "differences between strata add, near the overall ρ.",
    ),
    Parameter(
        "score_slope",
        (0.05, 0.09, 0.19, -0.55, -0.08),
        "fitted",
        "Mean score rises (MATH: falls) with log ĉ: fits the overall ρ, to which differences "
        "between strata add, and Threshold's audit rates by stratum to the published ones.",
    ),
    Parameter(
        "error_spread",
        (1.0, 1.3, 1.0, 0.9, 1.1),
        "fitted",
        "Spread of wrong outputs' scores, where that of right ones is 1. LLaMA3's CST is very "
        "good at 5 % and ordinary at 50 %: some of its errors stand out far.",
    ),
    Parameter(
        "saturation",
        (0.0, 0.0, 2.16, 0.0, 0.0),
        "fitted",
        "κ of tanh(κ score) / κ. GPT-4o-mini's CST hits .61 at every budget from 10 to 50 %: its "
        "score separates uncertain from certain outputs, not very uncertain from uncertain ones.",
    ),
    Parameter(
        "signal_noise",
        (0.2, 0.6, 0.12, 0.6, 0.8),
        "fitted",
        "How far the three signals differ from each other.",
    ),
    Parameter(
        "cost_spread",
        (0.15, 0.65, 0.42, 0.985, 0.5),
        "fitted",
        "Standard deviation of log ĉ: how strongly s/ĉ demotes expensive outputs.",
    ),
    Parameter(
        "cost_correlation",
        (0.31, 0.34, 0.31, 0.41, 0.34),
        "implied",
        "Of log ĉ and log c: makes corr(ĉ, c) the published 0.3.",
    ),
    Parameter(
        "true_cost_spread",
        (0.3, 0.3, 0.3, 0.4, 0.4),
        "chosen",
        "Standard deviation of log c; MATH's fits the cost–error correlation. Hit rates hardly "
        "depend on it.",
    ),
    Parameter(
        "error_cost",
        (0.0, 0.0, 0.0, 0.2, 0.29),
        "implied",
        "What being wrong adds to log c: the cost–error correlations of MATH, .193 and .309, read "
        "as those of the true cost. The paper's Oracle on MATH-Qwen3 (.938 at 30 %, .526 at 50 %) "
        "runs out of errors as if one cost 1.2 times as much to verify; that gives .193.",
    ),
    Parameter(
        "draws",
        (10, 10, 10, 1, 1),
        "chosen",
        "Data sets that each seed replays and averages: 5,000 candidates in every setting, so that "
        "no figure depends on one set of 500.",
    ),
)


def setting(name: str) -> Setting:
    """The setting of that name. Raises BadInputError for an unknown one."""
    if name not in published.SETTINGS:
        raise BadInputError(f"setting={name!r} is unknown: {choose(name, published.SETTINGS)}")
    column = published.SETTINGS.index(name)
    return Setting(name, **{p.name: p.values[column] for p in PARAMETERS})


SETTINGS = {name: setting(name) for name in published.SETTINGS}
