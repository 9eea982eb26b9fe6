"""The message on a log that was written with other settings, with command-line options."""

from __future__ import annotations

from pathlib import Path

from gatekeeper.errors import LogMismatchError, SettingDifference
from gatekeeper.features import BY_NAME
from gatekeeper.log.place import PostgresRun
from gatekeeper.policies import Survey, built_in, describe_policy

__all__ = ["mismatch_text"]

TASKS = "the tasks"
OPTIONS = {
    "fraction": "--budget",
    "total": "--total",
    "unit": "--unit",
    "groups": "--budget-groups",
    "max_cost": "--sandbox",
    "explore": "--explore",
    "seed": "--seed",
    "goal": "--goal",
    "type": "--policy",
    "warmup": "--warmup",
    "generator": "--generator",
    "model": "--model",
    "max_tokens": "--max-tokens",
    "temperature": "--temperature",
    "on_drift": "--on-drift",
    "features": "--features",
    "samples": "--features",
    "second_model": "--second-model",
    "horizon": TASKS,
    "tasks": TASKS,
}


def mismatch_text(log: Path | PostgresRun | None, error: LogMismatchError) -> str:
    """All differences, each with its option, the log's value and the value given now.

    Parameters
    ----------
    log
        Where it is.
    error
        What opening it raised.

    Returns
    -------
    str
        One message; the error's own where a difference has no option.
    """
    found: dict[str, None] = {}  # in order, each once
    # What follows from another goal is left out.
    goal = [d for d in error.differences if d.name == "goal"]
    for d in goal or error.differences:
        option = OPTIONS.get(d.name)
        if option is None:
            return f"--log {log}: {error}"
        if option == TASKS:
            found["other tasks (another file, --format or --limit)"] = None
        else:
            found[f"{option} {_value(d.stored, d)} (now {_value(d.given, d)})"] = None
    if not found:
        return f"--log {log}: {error}"
    return (
        f"--log {log} was written with {', '.join(found)}: give the same to continue it, "
        "or another log"
    )


def _value(value: object, difference: SettingDifference) -> str:
    if value is None:
        return "errors" if difference.name == "goal" else "none"
    if difference.name == "type":
        known = (*built_in(), describe_policy(Survey.name))
        names = {f"{p.make.__module__}.{p.make.__qualname__}": p.name for p in known}
        return names.get(str(value), str(value))
    if difference.name == "samples":
        return f"agreement:{value}"
    if difference.name == "features" and isinstance(value, list):
        return ",".join(name for name, found in BY_NAME.items() if found[0].__name__ in value)
    return f"{value:g}" if isinstance(value, float) else str(value)
