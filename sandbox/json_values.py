"""Arguments and results of a function under test that a task gives as JSON."""

from __future__ import annotations

from typing import Any

__all__ = ["same_or_wrapped", "same_value", "source_of"]


def source_of(value: Any) -> str:
    """An expression for a value of JSON. The `repr` of infinity and NaN is only a name."""
    text = repr(value)
    if "inf" not in text and "nan" not in text:
        return text
    match value:
        case float():
            return text.replace("inf", "1e999").replace("nan", "(1e999 - 1e999)")
        case list():
            return f"[{', '.join(map(source_of, value))}]"
        case dict():
            return f"{{{', '.join(f'{key!r}: {source_of(item)}' for key, item in value.items())}}}"
        case _:
            return text


def same_value(expected: Any, value: object) -> bool:
    """Whether two values are equal as JSON."""
    return bool(_as_json(value) == expected)


def same_or_wrapped(expected: Any, value: object) -> bool:
    """The same for APPS, which wraps some of its outputs in a list."""
    wrapped = isinstance(expected, list) and len(expected) == 1
    return same_value(expected, value) or (wrapped and same_value(expected[0], value))


def _as_json(value: Any) -> Any:
    if isinstance(value, list | tuple):
        return [_as_json(item) for item in value]
    if isinstance(value, dict):
        made = {k if isinstance(k, str) else str(k): _as_json(v) for k, v in value.items()}
        return made if len(made) == len(value) else value
    return value
