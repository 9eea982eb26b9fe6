"""Errors found for the budget, the account, and the course of the run."""

from __future__ import annotations

from gatekeeper.analysis.summary import Summary
from gatekeeper.budget import Ledger
from gatekeeper.log.run_table import RunTable
from gatekeeper.report import figures
from gatekeeper.report import formatting as fmt
from gatekeeper.report.data import ReportData
from gatekeeper.report.html import Markup, Section, definitions, figure, section, table
from gatekeeper.types import BoolArray, GroupAccount, Reason
from gatekeeper.wording import amount, cost_text

__all__ = ["account", "bought", "budget"]

UNKNOWN = " An empty cell is unknown, because not every output was verified."
MOST_GROUPS = 20  # groups that are shown one by one


def budget(data: ReportData) -> Section | None:
    if data.run is None:
        return None
    run = data.run
    return section(
        "Budget and errors found",
        bought(run.summary),
        account(run.log.ledger),
        _timeline(run.log),
    )


def bought(summary: Summary) -> Markup:
    """Outputs seen, verified and wrong, beside a random and the best possible selection."""
    rows: list[tuple[str, int, float | None]] = [("seen", summary.outputs, summary.all_errors)]
    if summary.warmup:
        every = summary.warmup_verified == summary.warmup
        partly = f"verified of {summary.warmup:,} in the warm-up"
        first = "warm-up, all verified" if every else partly
        rows += [
            (first, summary.warmup_verified, summary.warmup_errors),
            ("after the warm-up", summary.evaluated, summary.errors),
        ]
    rows.append(("verified by the gate", summary.verified, summary.errors_found))
    compared = ""
    if summary.warmup or summary.all_checked:  # else nothing shows what random draws find
        estimated = "" if summary.all_checked else " (estimated from the warm-up)"
        rows += [
            (f"same number at random{estimated}", summary.verified, summary.random_found),
            ("best possible selection", summary.verified, summary.best_found),
        ]
        compared = (
            "The gate's selection, compared with a random selection of the same size and with the "
            "best possible one. "
        )
    return table(
        ("", "outputs", "wrong", "share wrong"),
        [
            (name, str(n), fmt.count(wrong), "" if wrong is None else fmt.share(wrong, n))
            for name, n, wrong in rows
        ],
        caption=f"{compared}The share wrong among the verified outputs is the hit rate."
        + (UNKNOWN if any(wrong is None for _, _, wrong in rows) else ""),
    )


def account(ledger: Ledger, *more: tuple[str, str]) -> Markup:
    """The amounts spent and reserved, and further ones by name."""
    unit = ledger.budget.unit
    warmup = bool(ledger.warmup_spent or ledger.warmup_held)
    pairs = [
        ("spent after the warm-up" if warmup else "spent", amount(ledger.spent, unit)),
        ("allowed so far", amount(ledger.cap, unit)),
    ]
    if warmup:
        pairs.append(("spent on the warm-up", amount(ledger.warmup_spent, unit)))
    if ledger.held or ledger.warmup_held:
        pairs.append(("reserved, not yet settled", amount(ledger.held + ledger.warmup_held, unit)))
    if ledger.overrun:
        pairs.append(("cost above the reservations", amount(ledger.overrun, unit)))
    fullest = sorted(ledger.groups.status().items(), key=lambda group: -_share(group[1]))
    for name, group in fullest[:MOST_GROUPS]:
        pairs.append((f"spent of {name}", f"{cost_text(group.spent)} of {amount(group.cap, unit)}"))
    if len(fullest) > MOST_GROUPS:
        pairs.append(("further groups, less full", f"{len(fullest) - MOST_GROUPS:,}"))
    return definitions([*pairs, *more])


def _share(group: GroupAccount) -> float:
    return group.spent / group.cap if group.cap else 1.0


def _timeline(run: RunTable) -> Markup:
    budget = run.ledger.budget
    mine = run.labelled & ~run.external
    wrong = mine & run.wrong
    warmup = int(run.of_reason(Reason.WARMUP).sum())
    rate = budget.fraction if budget.unit == "verifications" else None
    drawn = figures.timeline_figure(mine, wrong, warmup=warmup, rate=rate)
    return figure(
        figures.inline_svg(drawn, prefix="timeline"),
        label="Cumulative number of outputs verified and found wrong",
        caption="Cumulative counts, in the order of arrival: outputs that the gate verified, and "
        "those of them that were wrong. Where the two lines are parallel, nearly every "
        "verification found an error.",
        values=_values(mine, wrong),
    )


def _values(verified: BoolArray, wrong: BoolArray) -> Markup:
    n = verified.size
    ends = sorted({round(n * share / 10) for share in range(1, 11)})
    return table(
        ("outputs seen", "verified", "verified and wrong"),
        [(f"{end:,}", f"{verified[:end].sum():,}", f"{wrong[:end].sum():,}") for end in ends],
        caption="Cumulative counts.",
    )
