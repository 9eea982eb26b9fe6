"""Whether what a gate's policy learned still holds, and what labels depend on."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from gatekeeper.report.data import ReportData
from gatekeeper.report.html import Markup, definitions, element, section, table
from gatekeeper.report.labels import CALIBRATIONS, DRIFTED
from gatekeeper.types import Calibration

__all__ = ["health"]


def health(data: ReportData) -> Markup | None:
    """For logs that keep a fingerprint: older ones have none."""
    if data.run is None or data.run.log.fingerprint is None:
        return None
    run, fingerprint = data.run.log, data.run.log.fingerprint
    rows = [("the first", CALIBRATIONS[Calibration.COLD], "")]
    rows += [(f"number {s.after + 1:,}", CALIBRATIONS[s.calibration], s.why) for s in run.standings]
    caption = (
        "What was learned fits a model, a prompt and a verifier. It has drifted when one of them "
        "changes, or when labels differ from what earlier ones predict by more than chance."
    )
    if any(s.why for s in run.standings):
        caption += DRIFTED[fingerprint["on_drift"]]
    pairs = [
        ("models", ", ".join(fingerprint["models"]) or "not said"),
        ("prompt template, its hash", fingerprint["prompt_template"] or "not said"),
        ("verifier", _verifier(fingerprint["verifier"])),
        ("definition of the signals", str(fingerprint["signals"])),
    ]
    return section(
        "Does what was learned still hold?",
        table(("from output", "status", "why"), rows, caption=caption, words=3),
        element("p", "What labels depend on, as of the end:"),
        definitions(pairs),
    )


def _verifier(about: Mapping[str, Any] | None) -> str:
    if about is None:
        return "not said"
    parts = about.get("verifiers", {})  # of one that is made of several, by the kind of task
    named = [f"{kind}: {_verifier(part)}" for kind, part in parts.items()]
    return ", ".join(named) or str(about["type"]).rpartition(".")[2]
