"""The section on the file's contents and the settings of the run."""

from __future__ import annotations

import numpy as np

from gatekeeper.log.run_table import RunTable
from gatekeeper.report import formatting as fmt
from gatekeeper.report.data import ReportData
from gatekeeper.report.html import Markup, Section, definitions, element, section, table
from gatekeeper.wording import counted

__all__ = ["about"]


def about(data: ReportData) -> Section:
    records = data.records
    y = records.error[data.labelled]
    missing = np.isnan(records.h)
    pairs = [
        ("file", data.name),
        ("kind", "records" if data.run is None else "log of a gate"),
        ("outputs", f"{len(records):,}"),
        ("with a known label", f"{y.size:,} ({fmt.share(y.size, len(records))})"),
        ("wrong, of labelled", f"{y.sum():,.0f} ({fmt.share(y.sum(), y.size)})"),
        ("expected cost ĉ", fmt.spread(records.cost_estimate)),
        ("true cost c", fmt.spread(records.cost[np.isfinite(records.cost)])),
        ("without a signal", f"{missing.all(axis=1).sum():,}"),
    ]
    if data.run is not None:
        budget = data.run.log.ledger.budget
        caps = (
            None if budget.fraction is None else f"{fmt.budget(budget.fraction)} of the full cost",
            None if budget.total is None else f"{budget.total:g} {budget.unit} in total",
        )
        pairs.append(("policy", _policy_of(data.run.log)))
        pairs.append(("budget", " and ".join(filter(None, caps))))
    note = "Costs: minimum – median – maximum, in the unit of the file."
    if missing.any(axis=0).any():
        absent = ", ".join(
            f"h{j + 1} on {counted(n, 'output')}"
            for j, n in enumerate(missing.sum(axis=0).tolist())
            if n
        )
        note += f" Missing signals: {absent}."
    return section(
        "About the data",
        definitions(pairs),
        element("p", note, class_="caption"),
        *([_settings(data.run.log)] if data.run is not None else []),
    )


def _policy_of(run: RunTable) -> str:
    return str(run.settings["policy"].get("type", "?")).rpartition(".")[2]


def _settings(run: RunTable) -> Markup:
    """All settings, for readers who want to repeat the run."""
    rows = [
        (group, name, "not set" if value is None else str(value))
        for group, values in run.settings.items()
        for name, value in values.items()
    ]
    caption = (
        "Only a gate with the same settings can continue this log. “more”: added by the program."
    )
    shown = table(("group", "setting", "value"), rows, caption=caption, words=3)
    return element("details", element("summary", "All settings in the log"), shown)
