"""The outputs that were found wrong, each to be opened."""

from __future__ import annotations

import shlex
from typing import Any

from gatekeeper.report.data import ReportData
from gatekeeper.report.html import Markup, Section, definitions, element, folded, section
from gatekeeper.wording import amount, counted

__all__ = ["failures"]

LONG = 4000  # characters of a text


def failures(data: ReportData) -> Section | None:
    if data.run is None:
        return None
    log = data.run.log
    shown, wrong = log.wrong_rows, int(log.wrong.sum())
    name = shlex.quote(data.name)
    if not shown:
        return section("Wrong outputs", element("p", "No output was found wrong."))
    which = counted(wrong, "wrong output")
    if wrong > len(shown):
        which = f"The first {len(shown)} of {counted(wrong, 'wrong output')}"
    return section(
        "Wrong outputs",
        element(
            "p",
            "Click an output to open it: its text, the verifier's detail, and why it was selected. "
            "All of them: on a terminal ",
            element("code", f"gatekeeper show {name} --wrong --limit 0"),
            ", in Python ",
            element("code", f"read_run({data.name!r}).to_pandas()"),
            class_="caption",
        ),
        folded(which, *(_failure(row, log.ledger.budget.unit) for row in shown)),
    )


def _failure(row: dict[str, Any], unit: str) -> Markup:
    text = row["text"]
    if len(text) > LONG:
        text = f"{text[:LONG]} … ({len(text):,} characters)"
    cost = "none" if row["cost"] is None else amount(row["cost"], unit)
    numbers = [f"{name} {row[name]:.3g}" for name in ("h1", "h2", "h3") if row[name] is not None]
    if row["score"] is not None:
        numbers.append(f"score {row['score']:.3g}")
    facts = [
        ("verdict", row["verdict"] + (", external" if row["external"] else "")),
        ("detail", row["detail"] or "none"),
        ("selected because", row["reason"]),
        ("signals", ", ".join(numbers) or "none"),
        ("charged", cost),
    ]
    short = " ".join((row["detail"] or row["verdict"]).split())
    return folded(
        f"{row['id']}: {short[:90]}",
        element("pre", text),
        definitions(facts, class_="words"),
        class_="failure",
    )
