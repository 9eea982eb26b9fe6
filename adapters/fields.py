"""Read the fields of a provider's objects, or of the dicts that their JSON gives."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from gatekeeper.errors import BadInputError

__all__ = ["count_of", "field", "fields", "has", "list_of", "text_of"]


def fields(value: Any) -> Mapping[str, Any]:
    """The fields of a dict or an object; empty for anything else.

    Without getattr, which takes microseconds for a field that a pydantic object lacks.
    """
    if isinstance(value, dict):
        return value
    if value is None:
        return {}
    try:
        own = vars(value)
    except TypeError:
        slots = getattr(value, "__slots__", ())
        return {name: getattr(value, name) for name in slots if hasattr(value, name)}
    extra = getattr(value, "__pydantic_extra__", None)  # fields that its class does not define
    return {**own, **extra} if extra else own


def field(value: Any, name: str) -> Any:
    """A key of a dict, an attribute of an object; None where there is none."""
    return value.get(name) if type(value) is dict else fields(value).get(name)


def has(value: Any, name: str) -> bool:
    """Whether there is such a field, None or not."""
    return name in fields(value)


def list_of(value: Any, name: str) -> list[Any]:
    """A field that is a list, or a tuple; empty where it is null or absent."""
    found = field(value, name)
    if isinstance(found, list):
        return found
    if found is None or isinstance(found, tuple):
        return list(found or ())
    raise BadInputError(f"{name}={found!r:.80}: a list is needed")


def text_of(value: Any, name: str) -> str | None:
    """A field that is text, None where it is null or absent."""
    found = field(value, name)
    if found is None or isinstance(found, str):
        return found
    raise BadInputError(f"{name}={found!r:.80}: text is needed")


def count_of(value: Any, name: str) -> int | None:
    """A field that counts tokens, None where it is null, absent, or below 0 for "unknown"."""
    found = field(value, name)
    if found is None or (isinstance(found, int) and not isinstance(found, bool)):
        return None if found is None or found < 0 else found
    raise BadInputError(f"{name}={found!r:.80}: a whole number is needed")
