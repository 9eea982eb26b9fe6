"""The paper's tables of replays, each figure of ours beside the paper's.

Every function makes the tables that `gatekeeper paper --table NAME` prints; `controls` has the
other half of them.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial

import numpy as np

from gatekeeper.paper import published
from gatekeeper.paper.replays import Grid, Replays
from gatekeeper.paper.settings import PARAMETERS, SETTINGS, STRATA
from gatekeeper.paper.streams import draw, with_benefit
from gatekeeper.paper.table import Cell, PaperTable

__all__ = [
    "BETA",
    "QWEN",
    "budgets_table",
    "facts_table",
    "gate_table",
    "hga_table",
    "hit_rates",
    "main_table",
    "parameters_table",
    "routing_table",
    "strata_table",
]

BETA = 0.2  # of the tables that have one budget
QWEN = published.SETTINGS[0]


def main_table(replays: Replays) -> list[PaperTable]:
    """Table "main", with the paired gain of CST."""
    table = PaperTable(
        "main",
        "Main results: mean hit rate, and CST − Threshold paired by seed, pp [95 % interval]",
        ("setting", "β"),
        (*published.POLICIES, "cst − threshold"),
    )
    for setting in published.SETTINGS:
        grid = replays.grid(setting, published.POLICIES, published.BETAS)
        for beta in published.MAIN_BETAS:
            paper = published.MAIN_GAIN[setting][beta]
            ours = grid.gain("cst", "threshold", beta)
            gain = Cell(ours.value, paper.value, "gain", ours, paper)
            cells = hit_rates(grid, beta, published.HIT_RATE[setting][beta])
            table.add((setting, f"{beta:.0%}"), cells | {"cst − threshold": gain})
    return [table]


def budgets_table(replays: Replays) -> list[PaperTable]:
    """Tables "cst_main", "llama3_main", "gpt4omini_main", "math_qwen3", "math_llama3"."""
    tables = []
    for setting in published.SETTINGS:
        grid = replays.grid(setting, published.POLICIES, published.BETAS)
        title = f"{setting}: mean hit rate at every budget"
        table = PaperTable("budgets", title, ("setting", "β"), published.POLICIES)
        for beta in published.BETAS:
            cells = hit_rates(grid, beta, published.HIT_RATE[setting][beta])
            table.add((setting, f"{beta:.0%}"), cells)
        tables.append(table)
    return tables


def strata_table(replays: Replays) -> list[PaperTable]:
    """Table "cst_quartile": audit rates and hit rates of two policies by cost stratum."""
    table = PaperTable(
        "strata",
        f"CST and Threshold by cost stratum, {QWEN}, β = {BETA:.0%}",
        ("stratum",),
        tuple(published.STRATA),
        "Strata are the data set's cost quartiles; the paper's rows are of one replay.",
    )
    by_policy = replays.by_stratum(QWEN, ("threshold", "cst"), BETA)
    rates = np.mean([_stratum_rates(QWEN, i) for i in range(SETTINGS[QWEN].draws)], axis=0)
    for k in range(STRATA):
        ours = {"error rate": float(rates[k])}
        for policy, (audit, hit) in by_policy.items():
            ours |= {f"audit {policy}": float(audit[k]), f"hit {policy}": float(hit[k])}
        cells = {name: Cell(ours[name], paper[k]) for name, paper in published.STRATA.items()}
        table.add((f"Q{k + 1}",), cells)
    return [table]


def gate_table(replays: Replays) -> list[PaperTable]:
    """Table "hga_gate": how often HGA's gate opens."""
    table = PaperTable(
        "gate",
        f"HGA's gate at β = {BETA:.0%}: share of replays in which it opens (paper: open or closed)",
        ("setting",),
        ("gate",),
    )
    for setting, is_open in published.GATE_OPEN.items():
        share = replays.second_half(setting).gate_open(BETA)
        table.add((setting,), {"gate": Cell(share, float(is_open), "open")})
    return [table]


def hga_table(replays: Replays) -> list[PaperTable]:
    """Table "hga_full": the second half of the stream is evaluated."""
    columns = ("threshold", "cst", "hga")
    table = PaperTable(
        "hga",
        "HGA: mean hit rate on the second half of the stream",
        ("setting", "β"),
        (*columns, "random"),
    )
    for setting, rows in published.HGA.items():
        grid = replays.second_half(setting)
        for beta, paper in rows.items():
            cells = hit_rates(grid, beta, paper) | {"random": Cell(grid.mean("random", beta))}
            table.add((setting, f"{beta:.0%}"), cells)
    return [table]


def routing_table(replays: Replays) -> list[PaperTable]:
    """Table "routing_reanalysis": the label is the benefit of asking GPT-4o-mini."""
    columns = ("random", "threshold", "mp-adapt", "mp-strat", "cst")
    table = PaperTable(
        "routing",
        f"Routing to GPT-4o-mini at β = {BETA:.0%}: share of the routed that gain by it",
        ("cheap model", "benefit rate"),
        columns,
        "Benefits are spread evenly over the cheap model's errors: the score carries no "
        "information on whether the expensive model would succeed.",
    )
    for setting, paper in published.ROUTING.items():
        change = partial(with_benefit, rate=paper.benefit_rate)
        grid = replays.grid(setting, columns, (BETA,), label="benefit", change=change)
        table.add((setting, f"{paper.benefit_rate:.1%}"), hit_rates(grid, BETA, paper.hit_rate))
    return [table]


def facts_table(replays: Replays) -> list[PaperTable]:
    """What the paper prints of its data sets, and what the drawn ones have."""
    columns = ("error rate", "ρ", "H", "corr(ĉ, c)", "corr(c, y)", "corr(ĉ, y)")
    table = PaperTable(
        "facts",
        "The data sets, before any noise: the score is the mean of the standardised signals",
        ("setting",),
        (*columns, *(f"ρ{k + 1}" for k in range(STRATA))),
    )
    for name, setting in SETTINGS.items():
        facts = published.FACTS[name]
        figures = np.mean([_figures(name, i) for i in range(setting.draws)], axis=0)
        paper: list[float | None] = [
            facts.error_rate,
            facts.rho,
            facts.dispersion,
            published.COST_CORRELATION,
            facts.cost_error,
            None,
            *(facts.strata_rho or (None,) * STRATA),
        ]
        cells = [Cell(float(f), p, "value") for f, p in zip(figures, paper, strict=True)]
        table.add((name,), dict(zip(table.columns, cells, strict=True)))
    return [table]


def parameters_table(replays: Replays) -> list[PaperTable]:
    """All parameters of the synthetic streams, with the reason for each figure."""
    table = PaperTable(
        "parameters",
        "The free figures of the synthetic streams (gatekeeper/paper/settings.py)",
        ("parameter", *published.SETTINGS),
        (),
        "\n".join(f"- {p.name} ({p.source}): {p.reason}" for p in PARAMETERS),
    )
    for p in PARAMETERS:
        values = (" ".join(map(str, v)) if isinstance(v, tuple) else str(v) for v in p.values)
        table.add((p.name, *values), {})
    return [table]


def hit_rates(grid: Grid, beta: float, paper: Mapping[str, float]) -> dict[str, Cell]:
    """A cell for every policy that the paper has in this row."""
    return {policy: Cell(grid.mean(policy, beta), figure) for policy, figure in paper.items()}


def _stratum_rates(name: str, seed: int) -> list[float]:
    y = draw(SETTINGS[name], seed).error
    return [float(part.mean()) for part in np.array_split(y, STRATA)]


def _figures(name: str, seed: int) -> list[float]:
    """The facts of one drawn data set, which is in order of ĉ, so that quartiles are slices."""
    table = draw(SETTINGS[name], seed)
    s = ((table.h - table.h.mean(axis=0)) / table.h.std(axis=0)).mean(axis=1)
    y = table.error
    parts = zip(np.array_split(s, STRATA), np.array_split(y, STRATA), strict=True)
    rho = [_correlation(a, b) for a, b in parts]
    return [
        float(y.mean()),
        _correlation(s, y),
        float(np.var(rho)),
        _correlation(table.cost_estimate, table.cost),
        _correlation(table.cost, y),
        _correlation(table.cost_estimate, y),
        *rho,
    ]


def _correlation(a: np.typing.NDArray[np.float64], b: np.typing.NDArray[np.float64]) -> float:
    return float(np.corrcoef(a, b)[0, 1])
