"""A route: calls for some models, and the gate that decides on their outputs."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase

from gatekeeper.errors import BadInputError
from gatekeeper.gate import VerificationGate
from gatekeeper.gateway.settings import GatewaySettings
from gatekeeper.page.application import LivePage
from gatekeeper.stats.interval import Interval

__all__ = ["Route"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Route:
    """Calls for some models.

    Parameters
    ----------
    gate : VerificationGate
        With `on_unavailable="pass"`. The caller closes it.
    settings : GatewaySettings
        Settings of these calls.
    name : str
        In metrics and in the page's path; "" for the gateway's own route.
    models : sequence of str
        Names as in the body's `model`, or patterns with `*`, `?` and `[...]`.
    page : LivePage or None
        Live page of the gate's log.
    error_rate : callable or None
        As for `GateCollector`.

    Raises
    ------
    BadInputError
        For models that are no list of texts.
    """

    gate: VerificationGate
    settings: GatewaySettings
    name: str = ""
    models: Sequence[str] = ("*",)
    page: LivePage | None = None
    error_rate: Callable[[], Interval | None] | None = None

    def __post_init__(self) -> None:
        # The patterns of a text would be its letters, among which may be a `*`.
        is_list = isinstance(self.models, Sequence) and not isinstance(self.models, str)
        if not (is_list and all(isinstance(model, str) for model in self.models)):
            raise BadInputError(
                f"models={self.models!r:.80}: give a list of names or patterns, such as ['gpt-*']"
            )

    def takes(self, model: str) -> bool:
        """Whether this route takes calls for this model."""
        return any(fnmatchcase(model, pattern) for pattern in self.models)
