"""Resume from a log: its settings must equal this gate's, and its events rebuild the state."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from gatekeeper.drift.fingerprint import Fingerprint
from gatekeeper.drift.guard import TESTS
from gatekeeper.errors import LogMismatchError, SettingDifference
from gatekeeper.gate.admission import Admission
from gatekeeper.gate.journal import Journal
from gatekeeper.gate.state import GateState, OnDrift
from gatekeeper.log import Decided, FingerprintChanged, JointLog, Log

__all__ = ["check_same", "check_settings", "resume"]


def check_settings(log: Log, settings: Mapping[str, Mapping[str, Any]]) -> None:
    """Store the settings in a log without a decision, and compare them with those of the log.

    The log of several processes keeps those of the first.

    Parameters
    ----------
    settings
        JSON values by group and name.

    Raises
    ------
    LogMismatchError
        For settings that differ, with all of them.
    """
    if isinstance(log, JointLog) or not any(isinstance(e, Decided) for e in log.events()):
        log.configure(settings)
    check_same(log.settings(), settings)


def check_same(
    stored: Mapping[str, Mapping[str, Any]], settings: Mapping[str, Mapping[str, Any]]
) -> None:
    """Raise LogMismatchError if a log's settings and a gate's differ."""
    if found := _differences(stored, settings):
        listed = "; ".join(map(str, found))
        raise LogMismatchError(
            f"the log was written with {listed}: use the same settings to continue, or a new log",
            found,
        )


def _differences(
    stored: Mapping[str, Mapping[str, Any]], settings: Mapping[str, Mapping[str, Any]]
) -> list[SettingDifference]:
    """In which settings a log and a gate differ.

    Another budget or seed also changes the policy: such consequences are left out.

    Parameters
    ----------
    stored, settings
        Settings of the log, and of the gate: JSON values by group and name.
    """
    # Logs from before there was any exploration do not name it.
    stored = {"exploration": {"explore": 0.0, "seed": 0}} | dict(stored)
    found = [
        SettingDifference(group, name, stored.get(group, {}).get(name), mine.get(name))
        for group, mine in settings.items()
        for name in sorted(mine.keys() | stored.get(group, {}).keys())
        if stored.get(group, {}).get(name) != mine.get(name)
    ]
    own = [d for d in found if d.group != "policy" or d.name in ("type", "warmup")]
    return own or found


def resume(
    journal: Journal,
    state: GateState,
    admission: Admission,
    *,
    on_drift: OnDrift,
    fingerprint: Fingerprint,
    joint: bool = False,
) -> None:
    """Apply a log to a fresh state, then what has changed since it was written.

    Each decision after the snapshot, or all without one, is repeated, which restores the policy and
    the draws, and compared with the logged one. Drift is tested again, too, unless the log was
    written with other tests: then drift is taken from the log, and the current tests begin after
    it.

    Parameters
    ----------
    on_drift
        The gate's; the log's must be the same.
    fingerprint
        The current conditions of labels. A change is an event, which may be drift.
    joint
        Several processes write the log: their decisions are not repeated.

    Raises
    ------
    EventError
        As `GateState.apply`.
    LogMismatchError
        If this policy decides differently from the log, or `on_drift` differs.
    """
    models: dict[str, None] = {}  # seen before logs had fingerprints
    logged_on_drift, decided = str(on_drift), False
    for event in journal.replay():
        if isinstance(event, FingerprintChanged):
            logged_on_drift = event.on_drift
        decided = decided or isinstance(event, Decided)
        if decided and logged_on_drift != on_drift:
            found = SettingDifference("drift", "on_drift", logged_on_drift, on_drift)
            raise LogMismatchError(
                f"the log was written with {found}: use the same to continue, or a new log", [found]
            )
        if isinstance(event, Decided):
            if state.fingerprint is None and (model := state.model_of(event.generation)):
                models[model] = None
            if joint:
                admission.follow(event.candidate)
            elif not state.has_decided(event.id):  # else `apply` raises
                event = _decided_again(event, admission)
        state.apply(event)
    before = state.fingerprint
    if before is None:
        now = fingerprint.with_models(models)
    else:
        now = fingerprint.after(before.fingerprint)
    # Without a decision the log takes another `on_drift`; and logs may be of earlier tests.
    settled = (now, on_drift, TESTS)
    if before is None or (before.fingerprint, before.on_drift, before.tests) != settled:
        journal.append(state.advance(state.with_fingerprint(now)))
    journal.keep()


def _decided_again(logged: Decided, admission: Admission) -> Decided:
    made = admission.decide(logged.generation, logged.candidate, force=logged.forced)
    then, now = logged.decision, made.decision
    if (now.verify, now.reason) != (then.verify, then.reason):
        raise LogMismatchError(
            f"id={logged.id!r}: the log has verify={then.verify} ({then.reason}), this policy "
            f"decides {now.verify} ({now.reason}): either it has changed since, or one of the "
            "two gates was given a used instance; start a new log"
        )
    return logged if made.warmup == logged.warmup else replace(logged, warmup=made.warmup)
