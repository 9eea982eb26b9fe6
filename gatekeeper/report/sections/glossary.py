"""The words of the page."""

from __future__ import annotations

from gatekeeper.report.data import ReportData
from gatekeeper.report.html import Markup, definitions, section

__all__ = ["glossary"]

WORDS = (
    ("hit rate", "of the outputs verified, the share that was wrong. More is better: the checks "
     "went where the errors are."),
    ("recall", "of all wrong outputs, the share that was found."),
    ("signal, score", "what the model's own token probabilities say about its doubt, scaled to "
     "0 … 1; larger is more doubtful."),
    ("ρ (rho)", "how strongly score and error go together: 0 not at all, 1 perfectly. Below 0.10 "
     "is next to random."),
    ("stratum", "a quarter of the outputs by expected cost of verification: Q1 the cheapest, Q4 "
     "the dearest."),
    ("Threshold, CST", "two ways to choose: Threshold compares all outputs with each other; CST "
     "compares each only with those of its own stratum."),
)  # fmt: skip


def glossary(data: ReportData) -> Markup:
    return section("Words", definitions(WORDS, class_="words"))
