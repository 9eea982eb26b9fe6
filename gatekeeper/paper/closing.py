"""Where we differ from the paper, in words, computed from the tables."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import groupby
from math import isnan
from typing import NamedTuple

from gatekeeper.paper.table import Cell, PaperTable
from gatekeeper.policies import CSTMemory, MPAdapt, MPStrat, Oracle, SplitConformal
from gatekeeper.wording import counted, signed

__all__ = ["CLOSE", "closing", "must_agree"]

CLOSE = 0.03  # hit rates no further than this from the paper's count as agreeing
WORST = 6
GRIDS = ("main", "budgets", "hga", "conformal")  # tables of hit rates by policy and budget
HELD = ("budgets", "hga")  # of those, the tables that are held to CLOSE,
AIM = frozenset({"random", "threshold", "cst", "hga"})  # for these policies, on MBPP, β >= 20 %

# Possible reasons for a policy's differences; printed only if these exceed CLOSE.
WHY = {
    Oracle.name: "the paper's Oracle verifies right outputs while errors are left to find; ours "
    "takes every error that fits first",
    MPAdapt.name: "the paper does not state the scale of the costs in its update and the start "
    "of its multiplier; docs/reference/policies.md decides, and nothing was fitted to this row",
    MPStrat.name: "the paper does not state the scale of the costs and the start of the "
    "multipliers; docs/reference/policies.md decides, and nothing was fitted to this row",
    CSTMemory.name: "the paper does not state how many neighbours are looked up, nor in what "
    "space; docs/reference/policies.md decides, and nothing was fitted to this row",
    SplitConformal.name: "thresholds are set on the first half of an order and have its sampling "
    "error; nothing was fitted to this row",
}


class Figure(NamedTuple):
    table: str
    setting: str  # "" where the row has none
    beta: float  # NaN where the row has none
    place: str  # row and column, for people
    column: str
    cell: Cell


def closing(tables: Sequence[PaperTable]) -> list[str]:
    """Paragraphs: how many figures agree, which policies differ and why, which gains hold."""
    figures = [f for f in _figures(tables) if not isnan(f.cell.difference)]
    rates = [f for f in figures if f.cell.kind == "rate"]
    lines = []
    if rates:
        lines.append(f"{_agreeing(rates)} rates that the paper prints are met within {CLOSE}.")
    aim = must_agree(tables)
    if aim:
        largest = max(abs(f.cell.difference) for f in aim)
        lines.append(
            f"Random, Threshold, CST and HGA on MBPP from β = 20 % on: {_agreeing(aim)} within "
            f"{CLOSE}; the largest difference is {largest:.3f}."
        )
    lines += _by_policy(rates)
    lines += _gains(figures)
    lines += _gates(figures)
    if len(rates) > WORST:
        worst = sorted(rates, key=lambda f: -abs(f.cell.difference))[:WORST]
        places = "; ".join(f"{f.table}, {f.place}: {f.cell}" for f in worst)
        lines.append(f"The largest differences are {places}.")
    return lines


def must_agree(tables: Sequence[PaperTable]) -> list[Figure]:
    """The figures held to `CLOSE`, of the tables "budgets" and "hga"."""
    return [
        f
        for f in _figures(tables)
        if f.table in HELD
        and f.setting.startswith("mbpp")
        and f.column in AIM
        and f.beta >= 0.2
        and f.cell.paper is not None
    ]


def _figures(tables: Sequence[PaperTable]) -> Iterator[Figure]:
    """Every figure once: "main" repeats hit rates of "budgets"."""
    repeated = {table.name for table in tables} >= {"main", "budgets"}
    for table in tables:
        for labels, cells in table.rows:
            row = dict(zip(table.labels, labels, strict=True))
            beta = float(row["β"].rstrip("%")) / 100 if "β" in row else float("nan")
            for column, cell in cells.items():
                if not (repeated and table.name == "main" and cell.kind == "rate"):
                    place = f"{' '.join(labels)} {column}"
                    yield Figure(table.name, row.get("setting", ""), beta, place, column, cell)


def _by_policy(rates: Sequence[Figure]) -> Iterator[str]:
    """A line for each policy that differs on average, with a possible reason."""
    grid = [f for f in rates if f.table in GRIDS]
    grid.sort(key=lambda f: (f.column, f.setting))
    for policy, group in groupby(grid, key=lambda f: f.column):
        off = []
        for setting, mine in groupby(group, key=lambda f: f.setting):
            differences = [f.cell.difference for f in mine]
            if sum(map(abs, differences)) / len(differences) > CLOSE:
                off.append(f"{setting} {signed(sum(differences) / len(differences), 3)}")
        if off:
            why = f": {WHY[policy]}" if policy in WHY else ""
            yield f"{policy} is off by more than {CLOSE} on average ({', '.join(off)}){why}."


def _gains(figures: Sequence[Figure]) -> Iterator[str]:
    gains = [f.cell for f in figures if f.column == "cst − threshold"]
    if not gains:
        return
    same = sum((cell.ours > 0) == (cell.paper > 0) for cell in gains if cell.paper is not None)
    overlap = sum(_overlap(cell) for cell in gains)
    yield (
        f"CST's gain over Threshold has the paper's sign in {same} of {counted(len(gains), 'row')} "
        f"of the main table, and the two 95 % intervals overlap in {overlap}."
    )


def _gates(figures: Sequence[Figure]) -> Iterator[str]:
    gates = [f for f in figures if f.cell.kind == "open"]
    if gates:
        same = sum((f.cell.ours > 0.5) == (f.cell.paper == 1.0) for f in gates)
        yield (
            f"HGA's gate decides as in the paper, in most replays, in {same} of {len(gates)} "
            "settings."
        )


def _overlap(cell: Cell) -> bool:
    a, b = cell.interval, cell.paper_interval
    return a is not None and b is not None and a.low <= b.high and b.low <= a.high


def _agreeing(figures: Sequence[Figure]) -> str:
    close = sum(abs(f.cell.difference) <= CLOSE for f in figures)
    return f"{close} of {len(figures)}"
