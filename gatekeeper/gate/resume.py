"""Going on from a log: its settings must be this gate's, and its events rebuild the state."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from gatekeeper.drift.fingerprint import Fingerprint
from gatekeeper.errors import LogMismatchError
from gatekeeper.gate.admission import Admission
from gatekeeper.gate.journal import Journal
from gatekeeper.gate.state import GateState, OnDrift
from gatekeeper.log import Decided, FingerprintChanged, Log

__all__ = ["check_settings", "resume"]


def check_settings(log: Log, settings: Mapping[str, Mapping[str, Any]]) -> None:
    """Store the settings in a new log, or compare them with those of an old one.

    Parameters
    ----------
    settings
        JSON values by group and name.

    Raises
    ------
    LogMismatchError
        For the first setting that differs, with both values.
    """
    if not log.settings():
        log.configure(settings)
    # Logs from before there was any exploration do not name it.
    stored = {"exploration": {"explore": 0.0, "seed": 0}} | log.settings()
    for group, mine in settings.items():
        theirs = stored.get(group, {})
        for name in sorted(mine.keys() | theirs.keys()):
            if mine.get(name) != theirs.get(name):
                raise LogMismatchError(
                    f"the log was written with {name}={theirs.get(name)!r} ({group}), this "
                    f"gate has {mine.get(name)!r}: use the same settings to go on, or a new log"
                )


def resume(
    journal: Journal,
    state: GateState,
    admission: Admission,
    *,
    on_drift: OnDrift,
    fingerprint: Fingerprint,
) -> None:
    """Bring a fresh state to where the log is, then to what has changed since it was written.

    Each decision after the snapshot, or all where there is none, is made again, which brings the
    policy and the draws to where they were, and compared with the logged one.

    Parameters
    ----------
    on_drift
        Of this gate; the log's must be the same.
    fingerprint
        What labels depend on now. A change is an event, which may be drift.

    Raises
    ------
    LogMismatchError
        Where this policy decides otherwise than the log has it, or `on_drift` differs.
    """
    models: dict[str, None] = {}  # seen before logs had fingerprints
    for event in journal.replay():
        if isinstance(event, Decided):
            if state.fingerprint is None and (model := state.model_of(event.generation)):
                models[model] = None
            event = _decided_again(event, admission)
        elif isinstance(event, FingerprintChanged) and event.on_drift != on_drift:
            raise LogMismatchError(
                f"the log was written with on_drift={event.on_drift!r}, this gate has "
                f"{on_drift!r}: use the same to go on, or a new log"
            )
        state.apply(event)
    if state.fingerprint is None:
        now = fingerprint.with_models(models)
    else:
        now = fingerprint.after(state.fingerprint.fingerprint)
    if state.fingerprint is None or now != state.fingerprint.fingerprint:
        journal.append(state.advance(state.with_fingerprint(now)))
    journal.keep()


def _decided_again(logged: Decided, admission: Admission) -> Decided:
    made = admission.decide(logged.generation, logged.candidate, force=logged.forced)
    then, now = logged.decision, made.decision
    if (now.verify, now.reason) != (then.verify, then.reason):
        raise LogMismatchError(
            f"id={logged.id!r}: the log has verify={then.verify} ({then.reason}), this policy "
            f"decides {now.verify} ({now.reason}): either it has been changed since, or it was "
            "not a fresh instance here or there; start a new log"
        )
    return logged if made.warmup == logged.warmup else replace(logged, warmup=made.warmup)
