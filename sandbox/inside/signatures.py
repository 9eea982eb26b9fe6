"""Rebuilds what `inspect` and `dataclasses` read of an object, from the facts of `facts.py`."""

from __future__ import annotations

import ast
import dataclasses
import functools
import importlib
import types
from collections.abc import Callable, Iterable
from typing import Any

from gatekeeper.sandbox.inside.nodes import walk

__all__ = [
    "annotated",
    "code",
    "dataclass_attributes",
    "names_types",
    "readable",
    "shaped",
    "signature",
]


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
        co_filename="candidate.py",  # which asyncio shows
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


def readable(annotations: Any) -> Any:
    """The annotations of a candidate's object, if each text among them only names types.

    `inspect.get_annotations` and `functools.singledispatch` run them. Raises AttributeError.
    """
    if type(annotations) is not dict:
        raise AttributeError("__annotations__")
    texts = [text for text in annotations.values() if isinstance(text, str)]
    if not all(map(names_types, texts)):
        raise AttributeError("__annotations__")
    return annotations


def names_types(text: str) -> bool:
    """Whether a text only names types, itself and the texts within it: `list["Node"]`.

    Also one that nobody can run, as in `Literal["not a type"]`.
    """
    texts = [text]
    while texts:
        one = texts.pop().strip()
        for source in (one, f"({one},)[0]"):  # which `typing` makes of one that begins with a star
            try:
                nodes = walk(ast.parse(source, mode="eval"))
            except (SyntaxError, ValueError):
                continue
            except (RecursionError, MemoryError):  # `eval` reads deeper texts than `ast.parse`
                return False
            if not all(isinstance(node, _TYPES) for node in nodes):
                return False
            found = (node.value for node in nodes if isinstance(node, ast.Constant))
            texts += [text for text in found if isinstance(text, str)]
    return True


_TYPES = (
    *(ast.Expression, ast.Name, ast.Attribute, ast.Subscript, ast.Constant, ast.Tuple, ast.List),
    *(ast.BinOp, ast.UnaryOp, ast.operator, ast.unaryop, ast.Load),
)


def annotated(found: Any) -> dict[str, Any]:
    """The annotations of a signature, as a function has them."""
    given = {p.name: p.annotation for p in found.parameters.values()}
    given["return"] = found.return_annotation
    return {name: kind for name, kind in given.items() if kind is not found.empty}


def dataclass_attributes(fields: Iterable[Any]) -> dict[str, Any]:
    """Those of a class with these fields; their values come from the object itself."""
    names = [name for name in fields if type(name) is str and name.isidentifier()]
    like = dataclasses.make_dataclass("like", names)
    return {n: getattr(like, n) for n in ("__dataclass_fields__", "__dataclass_params__")}


def shaped(found: Any, call: Callable[..., Any], *, awaited: bool) -> Any:
    """A function that takes the parameters of a signature, and calls another one with them."""
    several = any(p.kind is p.VAR_POSITIONAL for p in found.parameters.values())
    passed = []
    for p in found.parameters.values():
        # By name, because a default before it may be left out; but not before `*arguments`.
        named = p.kind is p.POSITIONAL_OR_KEYWORD and p.default is not p.empty and not several
        stars = {p.VAR_POSITIONAL: "*", p.VAR_KEYWORD: "**"}.get(p.kind, "")
        passed.append(f"{p.name}=" * (named or p.kind is p.KEYWORD_ONLY) + stars + p.name)
    plain = [p.replace(annotation=p.empty) for p in found.parameters.values()]
    names = {"__gatekeeper_call__": call}
    exec(_code(str(found.__class__(plain)), ", ".join(passed), awaited), names)
    return names["made"]


@functools.lru_cache(maxsize=100)
def _code(parameters: str, passed: str, awaited: bool) -> types.CodeType:
    first, wait = ("async ", "await ") if awaited else ("", "")
    source = f"{first}def made{parameters}: return {wait}__gatekeeper_call__({passed})"
    return compile(source, "tests", "exec", dont_inherit=True)
