"""The message on a log that was written with other settings, with the user's own options."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path

from gatekeeper.errors import LogMismatchError, SettingDifference
from gatekeeper.features import BY_NAME
from gatekeeper.log import PostgresRun
from gatekeeper.policies import Survey, built_in, describe_policy

__all__ = ["OUTPUTS", "settings_as_options"]

OUTPUTS = ""  # in place of an option: the settings that follow from the outputs alone
OPTIONS = {
    "fraction": "budget",
    "total": "total",
    "unit": "unit",
    "groups": "budget-groups",
    "max_cost": "sandbox",
    "explore": "explore",
    "seed": "seed",
    "goal": "goal",
    "type": "policy",
    "warmup": "warmup",
    "on_drift": "on-drift",
    "features": "features",
    "samples": "features",
    "horizon": OUTPUTS,
}


@contextmanager
def settings_as_options(
    log: Path | PostgresRun | None,
    *,
    outputs: str,
    own: Mapping[str, str],
    prefix: str = "--",
) -> Iterator[None]:
    """Raise a LogMismatchError of the block in the words of a command line.

    Parameters
    ----------
    log
        Where it is.
    outputs : str
        What the outputs are and which options select them, such as "tasks (another file or
        --limit)".
    own : mapping of str to str
        The options for the program's own settings, whole; `OUTPUTS` for those that follow from the
        outputs.
    prefix : str
        What the gate's options begin with.

    Raises
    ------
    LogMismatchError
        With all differences, each with its option, the log's value and the value given now; with
        the error's own text where a difference has no option.
    """
    try:
        yield
    except LogMismatchError as e:
        options = {name: option and prefix + option for name, option in OPTIONS.items()} | {**own}
        at = f"{prefix}log {log}"
        # What follows from another goal is left out.
        found = [d for d in e.differences if d.name == "goal"] or e.differences
        if not found or any(d.name not in options for d in found):
            raise LogMismatchError(f"{at}: {e}", e.differences) from e
        listed = ", ".join(_differences(found, options, outputs))
        raise LogMismatchError(
            f"{at} was written with {listed}: give the same to continue it, or another log",
            e.differences,
        ) from e


def _differences(
    found: Sequence[SettingDifference], options: Mapping[str, str], outputs: str
) -> list[str]:
    texts: dict[str, None] = {}  # in order, each once
    for d in found:
        if options[d.name] == OUTPUTS:
            texts[f"other {outputs}"] = None
        else:
            texts[f"{options[d.name]} {_value(d.stored, d)} (now {_value(d.given, d)})"] = None
    return list(texts)


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
