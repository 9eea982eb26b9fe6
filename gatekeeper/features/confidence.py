"""The confidence that the model states in its answer, and the prompt that asks for it."""

from __future__ import annotations

import re
from typing import Any

from gatekeeper.types import Generation

__all__ = ["CONFIDENCE_PROMPT", "stated_confidence"]

CONFIDENCE_PROMPT = (
    "After your answer, write one last line of the form\n"
    "Confidence: N%\n"
    "where N, from 0 to 100, is the probability that your answer is correct."
)
"""Append it to the prompt of a task."""

_SAID = re.compile(
    r"\b(?:confidence|probability|certainty)\b[^\n\d%a-z]{0,8}(?:level|score)?"
    r"[^\n\d%a-z]{0,8}(?:is|of)?[^\n\d%a-z]{0,8}"
    r"(?:(?P<number>\d{1,3}(?:\.\d+)?)\s*(?P<of>%|/\s*100\b|/\s*10\b)?"
    r"|(?P<word>almost certain|very high|high|medium|moderate|very low|low))",
    re.IGNORECASE,
)
_WORDS = {  # only their order matters: features enter by rank
    "almost certain": 0.97,
    "very high": 0.95,
    "high": 0.8,
    "medium": 0.5,
    "moderate": 0.5,
    "low": 0.2,
    "very low": 0.05,
}


def stated_confidence(generation: Generation, task: Any = None) -> float | None:
    """The last confidence stated: "Confidence: 85%", "0.85", "8/10", "high".

    A number above 1 without a unit is read as percent.

    Returns
    -------
    float or None
        In [0, 1]; None where none is stated, or the number fits no scale.
    """
    said = list(_SAID.finditer(generation.text))
    if not said:
        return None
    last = said[-1]
    if last["word"]:
        return _WORDS[last["word"].lower()]
    unit = (last["of"] or "").replace(" ", "")
    value = float(last["number"])
    whole = {"%": 100.0, "/100": 100.0, "/10": 10.0}.get(unit, 1.0 if value <= 1.0 else 100.0)
    return value / whole if value <= whole else None
