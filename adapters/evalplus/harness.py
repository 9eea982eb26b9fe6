"""The modules of EvalPlus, loaded when they are needed."""

from __future__ import annotations

import importlib
from typing import Any

from gatekeeper.errors import MissingDependencyError

__all__ = ["evalplus_module"]


def evalplus_module(module: str) -> Any:
    """The module `evalplus.<module>`. Raises MissingDependencyError without EvalPlus."""
    try:
        return importlib.import_module(f"evalplus.{module}")
    except ImportError as e:
        raise MissingDependencyError(
            e.name or "evalplus", extra="evalplus", needed_for="the adapter for EvalPlus"
        ) from e
