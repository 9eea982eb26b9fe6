"""The settings of a gateway."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal, get_args

from gatekeeper.arguments import (
    check_base_url,
    check_choice,
    check_flag,
    check_seconds,
    is_key,
)
from gatekeeper.errors import BadInputError

__all__ = ["ON_FAILED", "WAITS", "GatewaySettings", "OnFailed", "Wait"]

Wait = Literal["background", "verdict"]
OnFailed = Literal["return", "block"]
WAITS: tuple[Wait, ...] = get_args(Wait)
ON_FAILED: tuple[OnFailed, ...] = get_args(OnFailed)


@dataclass(frozen=True, slots=True, kw_only=True)
class GatewaySettings:
    """The settings of a gateway.

    Parameters
    ----------
    upstream : str
        Base URL of the API behind the gateway, as its clients take it; most end in /v1.
    wait : {"background", "verdict"}
        Whether an answer is returned after the decision, or after the verdict.
    on_failed : {"return", "block"}
        What happens to an answer that is found wrong. "block" waits for the verdict, and returns an
        error (HTTP 422) in place of the answer.
    upstream_key : str or None
        Sent to the upstream in place of the callers' Authorization.
    own_key : str or None
        Callers have to send it as `x-gatekeeper-key`; None: anyone may call.
    grace : float
        Seconds for verifications at the end, at least 0; those that have not begun by then release
        their reservations.
    traced : bool
        Whether the gate's telemetry has the caller's span, of the header `traceparent`, for the
        current one. Needs opentelemetry-api.

    Raises
    ------
    BadInputError
        For another value.
    """

    upstream: str
    wait: Wait = "background"
    on_failed: OnFailed = "return"
    upstream_key: str | None = field(default=None, repr=False)
    own_key: str | None = field(default=None, repr=False)
    grace: float = 10.0
    traced: bool = False

    def __post_init__(self) -> None:
        check_base_url("upstream", self.upstream)
        for name, choices in (("wait", WAITS), ("on_failed", ON_FAILED)):
            check_choice(name, getattr(self, name), choices)
        for name in ("upstream_key", "own_key"):
            if (key := getattr(self, name)) is not None and not (key and is_key(key)):
                raise BadInputError(
                    f"{name}=…, not shown: give visible ASCII characters without a space, or None"
                )
        check_seconds("grace", self.grace)
        check_flag("traced", self.traced)

    @property
    def root(self) -> str:
        """The upstream without its final /v1; a path at the gateway is appended to it."""
        return self.upstream.rstrip("/").removesuffix("/v1")
