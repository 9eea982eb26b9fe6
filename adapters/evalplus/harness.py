"""The modules of EvalPlus, loaded when they are needed."""

from __future__ import annotations

import importlib
from typing import Any

from gatekeeper.adapters.harness.release import unusable

__all__ = ["evalplus_module"]


def evalplus_module(module: str) -> Any:
    """The module `evalplus.<module>`. Raises MissingDependencyError without EvalPlus, and
    BadInputError for a release that lacks it."""
    try:
        return importlib.import_module(f"evalplus.{module}")
    except ImportError as e:
        raise unusable("evalplus", "0.3.1", extra="evalplus", error=e) from e
