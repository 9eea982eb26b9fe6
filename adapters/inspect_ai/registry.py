"""What is registered with Inspect has the names `gatekeeper/...`."""

from __future__ import annotations

from typing import Any

from inspect_ai.util import registry_info

__all__ = ["named"]


def named(decorate: Any, name: str, **options: Any) -> Any:
    """Register as `gatekeeper/name`, which Inspect itself does only for wheels."""

    def register(made: Any) -> Any:
        registered = decorate(name=name, **options)(made)
        if registry_info(registered).name == name:
            registered = decorate(name=f"gatekeeper/{name}", **options)(made)
        return registered

    return register
