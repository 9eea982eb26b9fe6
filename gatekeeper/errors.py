"""Every error gatekeeper raises on purpose, in one tree.

    GatekeeperError
    ├── BadInputError (also ValueError)   what the caller gave cannot be used; the message shows it
    ├── MissingDependencyError (also ImportError)   an extra is not installed; the message names it
    ├── SandboxUnavailableError           this machine cannot run a sandbox as it was asked for
    ├── GeneratorUnavailableError         the model that should answer the prompts does not
    ├── LogError                          the log cannot be read, written or resumed
    │   ├── LogLockedError                another process or gate has it open
    │   ├── LogSchemaError                written by a newer gatekeeper
    │   └── LogMismatchError              written by a gate with other settings
    └── VerifierUnavailableError      the verifier could not tell (never: "the answer is wrong")

A wrong answer is not an error: it is an `Outcome` whose `error` is 1.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from gatekeeper.types import GateResult

__all__ = [
    "BadInputError",
    "GatekeeperError",
    "GeneratorUnavailableError",
    "LogError",
    "LogLockedError",
    "LogMismatchError",
    "LogSchemaError",
    "MissingDependencyError",
    "SandboxUnavailableError",
    "SettingDifference",
    "VerifierUnavailableError",
    "install_command",
]


class GatekeeperError(Exception):
    """Base of every error raised on purpose."""


class BadInputError(GatekeeperError, ValueError):
    """An argument or an input cannot be used. The message has the value and the remedy."""


class MissingDependencyError(GatekeeperError, ImportError):
    """An optional package is not installed.

    Parameters
    ----------
    package
        Name of the package.
    extra
        The extra of this package that installs it.
    needed_for
        What needs it, in words.
    """

    def __init__(self, package: str, *, extra: str, needed_for: str) -> None:
        super().__init__(
            f"{needed_for} needs the package {package!r} (extra {extra}): {install_command(extra)}"
        )


def install_command(extra: str) -> str:
    """The command that installs the packages of an extra.

    It names those packages, so that it works however gatekeeper itself was installed: from a clone,
    a wheel or an index.
    """
    from importlib.metadata import PackageNotFoundError, requires  # slow to import

    try:
        needed = requires("llm-gatekeeper") or []
    except PackageNotFoundError:  # a checkout on the path
        return f"pip install '.[{extra}]', in a clone of the repository"
    marked = [line.partition(";") for line in needed]
    names = [f"'{name.strip()}'" for name, _, when in marked if f'"{extra}"' in when]
    return f"pip install {' '.join(names)}"


class SandboxUnavailableError(GatekeeperError):
    """No sandbox can be started here: no engine, no image, no isolation. No code was run."""


class GeneratorUnavailableError(GatekeeperError):
    """The model does not answer prompts: no connection, a refusal, not found."""


class LogError(GatekeeperError):
    """The log cannot be read, written or resumed. What it already holds is intact."""


class LogLockedError(LogError):
    """Another process, or another gate of this process, has the log open."""


class LogSchemaError(LogError):
    """The log was written by a newer gatekeeper."""


@dataclass(frozen=True, slots=True)
class SettingDifference:
    """A setting that has one value in a log and another in a gate."""

    group: str  # of the log's settings
    name: str
    stored: Any  # in the log
    given: Any  # to the gate

    def __str__(self) -> str:
        return f"{self.name}={self.stored!r} ({self.group}), this gate has {self.given!r}"


class LogMismatchError(LogError):
    """The log was written by a gate with another policy, budget or seed.

    Parameters
    ----------
    message
        In words, with all differences.
    differences
        The settings that differ; empty if decisions differ.
    """

    def __init__(self, message: str, differences: Sequence[SettingDifference] = ()) -> None:
        super().__init__(message)
        self.differences = tuple(differences)


class VerifierUnavailableError(GatekeeperError):
    """The verifier could not tell: nothing was charged, no label was learned.

    Parameters
    ----------
    message
        The reason, in words.
    result
        The complete `GateResult`, so that a caller who catches this error has it.
    """

    def __init__(self, message: str, result: GateResult) -> None:
        super().__init__(message)
        self.result = result
