"""The paper's controls: partitions, signals and settings that should, or should not, help."""

from __future__ import annotations

from functools import partial

import numpy as np

from gatekeeper.analysis.diagnosis import diagnose
from gatekeeper.analysis.policy_run import Contender
from gatekeeper.paper import published
from gatekeeper.paper.replays import Grid, Replays
from gatekeeper.paper.settings import SETTINGS
from gatekeeper.paper.streams import draw, homogeneous, oracle_signal, synthetic_signal
from gatekeeper.paper.table import Cell, PaperTable
from gatekeeper.paper.tables import BETA, QWEN, hit_rates
from gatekeeper.policies import describe_policy

__all__ = [
    "SWEEP_RHO",
    "conformal_table",
    "criteria_table",
    "homogeneous_table",
    "memory_table",
    "oracle_signal_table",
    "partial_table",
    "strata_sweep_table",
    "sweep_grid",
    "sweep_table",
]

# From labels after the warm-up.
LEARNERS = tuple(name for name in published.POLICIES if describe_policy(name).learns == "labels")
MBPP = published.SETTINGS[:3]
MEMORY_WEIGHTS = (0.0, 0.1, 0.2, 0.3, 0.5, 0.7, 1.0)
SWEEP_POLICIES = ("mp-adapt", "threshold", "cst")
SWEEP_RHO = (0.0, 0.05, 0.1, 0.15, 0.178, 0.2, 0.25, 0.3, 0.4, 0.5)


def homogeneous_table(replays: Replays) -> list[PaperTable]:
    """Table "homo_hr": c ≡ ĉ ≡ 0.5."""
    betas = tuple(published.HOMOGENEOUS)
    grid = replays.grid(QWEN, published.POLICIES, betas, change=homogeneous)
    same = all(
        np.array_equal(grid.hit_rate("cst", b), grid.hit_rate("threshold", b), equal_nan=True)
        for b in betas
    )
    table = PaperTable(
        "homogeneous",
        f"Homogeneous costs, {QWEN}: mean hit rate",
        ("β",),
        published.POLICIES,
        f"CST {'equals' if same else 'DIFFERS FROM'} Threshold in every replay. The paper's "
        "figures are of one replay: with β = 5 % they are multiples of 1/25.",
    )
    for beta, paper in published.HOMOGENEOUS.items():
        table.add((f"{beta:.0%}",), hit_rates(grid, beta, paper))
    return [table]


def partial_table(replays: Replays) -> list[PaperTable]:
    """Section "Hypothesis tests", (1): a learner sees the labels of verified candidates only."""
    table = PaperTable(
        "partial",
        "Partial feedback: hit rate minus that with full feedback, pp",
        ("setting", "β"),
        LEARNERS,
        f"The paper: a change of less than {published.PARTIAL_FEEDBACK_PP} pp. Random, Threshold "
        "and CST learn nothing after the warm-up and do not change.",
    )
    full = replays.grid(QWEN, published.POLICIES, published.BETAS)
    part = replays.grid(QWEN, LEARNERS, published.MAIN_BETAS, feedback="partial")
    for beta in published.MAIN_BETAS:
        change = {p: 100 * (part.mean(p, beta) - full.mean(p, beta)) for p in LEARNERS}
        cells = {p: Cell(value, None, "gain") for p, value in change.items()}
        table.add((QWEN, f"{beta:.0%}"), cells)
    return [table]


def oracle_signal_table(replays: Replays) -> list[PaperTable]:
    """Section "Hypothesis tests", (2): the true label in place of every signal."""
    policies = ("threshold", "cst", "mp-adapt", "mp-strat")
    table = PaperTable(
        "oracle-signal",
        "The true label as the signal: mean hit rate (paper: perfect)",
        ("setting", "β"),
        policies,
    )
    for setting in MBPP:
        grid = replays.grid(setting, policies, published.MAIN_BETAS, change=oracle_signal)
        for beta in published.MAIN_BETAS:
            table.add((setting, f"{beta:.0%}"), hit_rates(grid, beta, dict.fromkeys(policies, 1.0)))
    return [table]


def sweep_table(replays: Replays) -> list[PaperTable]:
    """Figure "sweep": MP-Adapt on a made-up signal of strength ρ, the same in every stratum."""
    real = replays.grid(QWEN, ("threshold",), (BETA,)).mean("threshold", BETA)
    rows = []
    for rho in SWEEP_RHO:
        grid = sweep_grid(replays, rho)
        rows.append((rho, {p: Cell(grid.mean(p, BETA)) for p in SWEEP_POLICIES}))
    above = [rho for rho, cells in rows if cells["mp-adapt"].ours > real]
    table = PaperTable(
        "sweep",
        f"MP-Syn: mean hit rate on a signal of strength ρ, {QWEN}'s costs, β = {BETA:.0%}",
        ("ρ",),
        SWEEP_POLICIES,
        f"Threshold on {QWEN}'s own signal hits {real:.3f}. MP-Adapt is above that "
        + (f"from ρ = {above[0]:g} on" if above else "nowhere")
        + f"; in the paper from about {published.SIGNAL_SWEEP_CROSSING:.2f} on.",
    )
    for rho, cells in rows:
        table.add((f"{rho:g}",), cells)
    return [table]


def sweep_grid(replays: Replays, rho: float) -> Grid:
    """Policies on the made-up signal of strength ρ."""
    return replays.grid(QWEN, SWEEP_POLICIES, (BETA,), change=partial(synthetic_signal, rho=rho))


def memory_table(replays: Replays) -> list[PaperTable]:
    """Section "Memory Augmentation Ablation": the weight w of the fourth signal."""
    paper = published.MEMORY
    low, high = paper.best_weights
    gain = paper.best_gain_pp
    table = PaperTable(
        "memory",
        f"CST + memory by its weight w, {QWEN}, β = {BETA:.0%}: mean hit rate",
        ("w",),
        ("cst-memory", "minus cst"),
        f"The paper: +{gain[0]} to +{gain[1]} pp at w = {low}–{high} over a CST of {paper.cst}, "
        f"and {paper.collapse} from w = 0.5 on.",
    )
    contenders = {w: Contender("cst-memory", {"weight": w}) for w in MEMORY_WEIGHTS}
    grid = replays.grid(QWEN, ["cst", *contenders.values()], (BETA,))
    cst = grid.mean("cst", BETA)
    for weight, contender in contenders.items():
        figure = paper.cst if weight == 0 else paper.collapse if weight >= 0.5 else None
        ours = grid.mean(contender, BETA)
        cells = {"cst-memory": Cell(ours, figure)}
        table.add((f"{weight:g}",), cells | {"minus cst": Cell(100 * (ours - cst), None, "gain")})
    return [table]


def conformal_table(replays: Replays) -> list[PaperTable]:
    """Table "conformal": thresholds from the first half, fixed, per cost stratum."""
    table = PaperTable(
        "conformal",
        "Split-conformal per stratum: mean hit rate on the second half, and minus CST's, pp",
        ("setting", "β"),
        ("split-conformal", "minus cst"),
    )
    for setting, rows in published.CONFORMAL.items():
        grid = replays.second_half(setting)
        for beta, paper in rows.items():
            gain = grid.gain("split-conformal", "cst", beta)
            cells = {
                "split-conformal": Cell(grid.mean("split-conformal", beta), paper["hit"]),
                "minus cst": Cell(gain.value, paper["minus_cst"], "gain", gain),
            }
            table.add((setting, f"{beta:.0%}"), cells)
    return [table]


def criteria_table(replays: Replays) -> list[PaperTable]:
    """Table "strat_criteria_supp": partitions that should not help, as `diagnose` makes them."""
    table = PaperTable(
        "criteria",
        f"What to stratify by, {QWEN}, β = {BETA:.0%}: mean hit rate, and minus the global one, pp",
        ("partition",),
        ("hit rate", "minus global"),
        "On clean labels and signals, as `gatekeeper diagnose` replays them.",
    )
    ours: dict[str, list[float]] = {}
    for i in range(SETTINGS[QWEN].draws):
        order = np.random.default_rng(i).permutation(SETTINGS[QWEN].n)
        stream = draw(SETTINGS[QWEN], i).take(order)
        for choice in diagnose(stream, beta=BETA, orders=replays.seeds).partitions or []:
            ours.setdefault(choice.name, []).append(choice.hit_rate)
    base = float(np.mean(ours["none"]))
    for name, figure in published.CRITERIA.items():
        hit = float(np.mean(ours[name]))
        delta = Cell(100 * (hit - base), 100 * (figure - published.CRITERIA["none"]), "gain")
        table.add((name,), {"hit rate": Cell(hit, figure), "minus global": delta})
    return [table]


def strata_sweep_table(replays: Replays) -> list[PaperTable]:
    """Table "k_sweep": CST's hit rate by the number of strata K."""
    tables = []
    for setting, rows in published.STRATA_SWEEP.items():
        betas = tuple(rows[1])
        title = f"CST by the number of strata K, {setting}: mean hit rate (K = 1: Threshold)"
        table = PaperTable(
            "k-sweep", title, ("setting", "K"), tuple(f"{beta:.0%}" for beta in betas)
        )
        contenders = {k: Contender("cst", {"strata": k}) for k in rows}
        grid = replays.grid(setting, list(contenders.values()), betas)
        for k, paper in rows.items():
            ours = {beta: grid.mean(contenders[k], beta) for beta in betas}
            cells = {f"{beta:.0%}": Cell(ours[beta], paper[beta]) for beta in betas}
            table.add((setting, str(k)), cells)
        tables.append(table)
    return tables
