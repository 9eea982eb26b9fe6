"""The terms of the page."""

from __future__ import annotations

from gatekeeper.report.data import ReportData
from gatekeeper.report.html import Section, definitions, section

__all__ = ["glossary"]

TERMS = (
    (
        "hit rate",
        "share of the verified outputs that are wrong. Higher is better.",
    ),
    ("recall", "share of all wrong outputs that verification found."),
    ("budget β", "share of the cost of verifying every output that may be spent."),
    (
        "signal, score",
        "uncertainty computed from the token probabilities of the model. The score is scaled to "
        "0 … 1; higher is more uncertain.",
    ),
    (
        "ρ (rho)",
        "correlation of score and error: 0 is none, 1 is perfect. Below 0.10 the score is close to "
        "random.",
    ),
    (
        "stratum",
        "a quarter of the outputs by expected cost of verification: Q1 is the cheapest, Q4 the "
        "most expensive.",
    ),
    (
        "Threshold, CST",
        "two policies: Threshold compares every output with one common threshold, CST with the "
        "threshold of its stratum.",
    ),
)


def glossary(data: ReportData) -> Section:
    return section("Glossary", definitions(TERMS, class_="words"))
