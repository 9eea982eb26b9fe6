"""The settings of one call for the gate."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import fields, replace
from types import MappingProxyType
from typing import Any, Literal, get_args

from msgspec import Struct

from gatekeeper.adapters.positions import Scope, check_scope
from gatekeeper.arguments import check_choice
from gatekeeper.errors import BadInputError
from gatekeeper.gate import VerificationGate
from gatekeeper.limits import MAX_ID, is_id
from gatekeeper.types.as_dataclass import as_dataclass

__all__ = ["CallSettings", "Verify", "outputs_requested", "settings_of", "with_settings"]

Verify = Literal["auto", "always", "never"]
_VERIFY = get_args(Verify)


@as_dataclass
class CallSettings(Struct, frozen=True):
    """The settings of one call.

    Parameters
    ----------
    task : object
        What the verifier needs besides the output.
    id : str or None
        Id of the output, in place of the provider's; several outputs are `id/0`, `id/1`, ...
    verify : {"auto", "always", "never"}
        "auto": as the policy decides; "always": within the budget; "never": not gated at all.
    scope : {"content", "reasoning", "all"}
        The tokens from which signals are computed.

    Raises
    ------
    BadInputError
        For another value.
    """

    task: object = None
    id: str | None = None
    verify: Verify = "auto"
    scope: Scope = "content"

    def __post_init__(self) -> None:
        check_choice("verify", self.verify, _VERIFY)
        check_scope(self.scope)
        if not (self.id is None or is_id(self.id)):
            raise BadInputError(
                f"id={self.id!r:.80}: give a string of 1 to {MAX_ID} bytes in UTF-8, or None"
            )


_DEFAULT = CallSettings()
_current: ContextVar[Mapping[VerificationGate, CallSettings]] = ContextVar(
    "gatekeeper", default=MappingProxyType({})
)


@contextmanager
def with_settings(gate: VerificationGate, settings: CallSettings) -> Iterator[None]:
    """Calls that this thread or asyncio task makes inside have these settings."""
    token = _current.set({**_current.get(), gate: settings})
    try:
        yield
    finally:
        _current.reset(token)


def settings_of(gate: VerificationGate, given: Any) -> CallSettings:
    """The settings of `with_settings`, overridden by those that a call was given.

    Raises
    ------
    BadInputError
        If `given` is not a dict of the fields of `CallSettings`.
    """
    current = _current.get().get(gate) or _DEFAULT
    try:
        return replace(current, **given) if given != {} else current
    except TypeError:
        names = ", ".join(f.name for f in fields(CallSettings))
        raise BadInputError(f"gatekeeper={given!r:.80}: a dict of {names} is needed") from None


def outputs_requested(body: Mapping[str, Any]) -> int:
    """How many outputs a request asks for: its `n`, or 1 where that is no whole number."""
    n = body.get("n")
    return n if type(n) is int else 1
