"""Rebuilds the attributes of a function that `inspect` reads, from the facts of `facts.py`."""

from __future__ import annotations

import importlib
import types
from typing import Any

__all__ = ["annotated", "code", "signature"]


def code(found: Any) -> Any:
    if found is None:
        raise AttributeError("__code__")
    count, positional, keyword, flags, names, name, line = found
    return types.SimpleNamespace(
        co_argcount=count,
        co_posonlyargcount=positional,
        co_kwonlyargcount=keyword,
        co_flags=flags,
        co_varnames=names,
        co_name=name,
        co_firstlineno=line,
    )


def signature(found: Any) -> Any:
    inspect = importlib.import_module("inspect")
    *rows, (_, _, _, returned) = found

    def optional(value: tuple[Any, ...]) -> Any:
        return value[0] if value else inspect.Parameter.empty

    return inspect.Signature(
        [
            inspect.Parameter(
                name,
                inspect._ParameterKind(kind),
                default=optional(default),
                annotation=optional(annotation),
            )
            for name, kind, default, annotation in rows
        ],
        return_annotation=optional(returned),
    )


def annotated(found: Any) -> dict[str, Any]:
    """The annotations of a signature, as a function has them."""
    given = {p.name: p.annotation for p in found.parameters.values()}
    given["return"] = found.return_annotation
    return {name: kind for name, kind in given.items() if kind is not found.empty}
