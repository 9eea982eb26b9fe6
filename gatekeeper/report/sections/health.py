"""Whether what the policy learned still holds, and the conditions of labels."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from gatekeeper.log.run import HealthChange
from gatekeeper.report.data import ReportData
from gatekeeper.report.html import Markup, Section, definitions, element, section, table
from gatekeeper.report.labels import DRIFTED, POLICY_HEALTH
from gatekeeper.types import PolicyHealth

__all__ = ["changes_table", "health"]


def health(data: ReportData) -> Section | None:
    """None for older logs, which have no fingerprint."""
    if data.run is None or data.run.log.fingerprint is None:
        return None
    run, changed = data.run.log, data.run.log.fingerprint
    pairs = [
        ("models", ", ".join(changed.fingerprint.models) or "not given"),
        ("prompt template (hash)", changed.fingerprint.prompt_template or "not given"),
        ("verifier", _verifier(changed.fingerprint.verifier)),
        ("signal definition", str(changed.fingerprint.signals)),
    ]
    return section(
        "Policy health",
        changes_table(run.health_changes, changed.on_drift),
        element("p", "Labels depend on the following, as of the end of the log:"),
        definitions(pairs),
    )


def changes_table(changes: Sequence[HealthChange], on_drift: str) -> Markup:
    """The policy's health, from the first output on."""
    rows = [("the first", POLICY_HEALTH[PolicyHealth.COLD], "")]
    rows += [(f"number {s.after + 1:,}", POLICY_HEALTH[s.health], s.why) for s in changes]
    caption = (
        "What a policy learns depends on the model, the prompt and the verifier. It has drifted "
        "if one of them changes, if signals or costs are not distributed as before, if labels "
        "differ significantly from predictions, or if the policy does not spend its budget."
    )
    if any(s.why for s in changes):
        caption += DRIFTED[on_drift]
    return table(("from output", "status", "cause"), rows, caption=caption, words=3)


def _verifier(about: Mapping[str, Any] | None) -> str:
    if about is None:
        return "not given"
    parts = about.get("verifiers", {})  # of a verifier for several kinds of task
    named = [f"{kind}: {_verifier(part)}" for kind, part in parts.items()]
    return ", ".join(named) or str(about["type"]).rpartition(".")[2]
