"""Arrays of log-probabilities: {"logprob": […], "top1": […], "top2": […]}, with "text" and "id"."""

from __future__ import annotations

from typing import Any

from gatekeeper.adapters.positions import Scope
from gatekeeper.types import Generation

__all__ = ["read", "recognises"]

ARRAYS = ("logprob", "top1", "top2")
_NAMES = frozenset(ARRAYS)


def recognises(response: Any) -> bool:
    """Whether the response is a dict with the three arrays."""
    return isinstance(response, dict) and response.keys() >= _NAMES


def read(response: Any, *, scope: Scope, skip_forced: bool) -> list[Generation]:
    """The one output. Arrays do not show which tokens are reasoning or forced: all count.

    Parameters and errors are those of `gatekeeper.io.providers.Reader.read`.
    """
    arrays = (response[name] for name in ARRAYS)
    return [Generation(response.get("id") or "", response.get("text") or "", *arrays)]
