"""Tests of a function whose arguments and results a task gives as JSON."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

from gatekeeper.errors import BadInputError
from gatekeeper.sandbox.literal import LiteralTest
from gatekeeper.sandbox.reprs import short_repr

__all__ = ["same_or_wrapped", "same_value", "test_of_call"]


def test_of_call(
    name: str, arguments: list[Any], expected: Any, same: Callable[[Any, object], bool]
) -> LiteralTest:
    """The test of one call; of a method of `Solution` if the candidate has that class.

    Raises
    ------
    BadInputError
        For values that no program can have in it: an integer of more than 4,300 digits, or lists
        in lists without end.
    """
    function = f"(Solution().{name} if 'Solution' in globals() else {name})"
    try:
        call = f"{function}({', '.join(map(_source, arguments))})"
        source = f"{name}({', '.join(map(repr, arguments))}) == {expected!r}"
    except (ValueError, RecursionError) as error:
        shown = short_repr((arguments, expected), 80)
        raise BadInputError(f"{shown}: it cannot be written as a test: {error}") from None
    return LiteralTest(source, call, frozenset({name, "Solution"}), partial(same, expected))


def _source(value: Any) -> str:
    """An expression for a value of JSON. The `repr` of infinity and NaN is only a name."""
    text = repr(value)
    if "inf" not in text and "nan" not in text:
        return text
    match value:
        case float():
            return text.replace("inf", "1e999").replace("nan", "(1e999 - 1e999)")
        case list():
            return f"[{', '.join(map(_source, value))}]"
        case dict():
            return f"{{{', '.join(f'{key!r}: {_source(item)}' for key, item in value.items())}}}"
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
