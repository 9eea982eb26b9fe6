"""Values of others in messages."""

from __future__ import annotations

__all__ = ["show"]


def show(value: object, limit: int = 200) -> str:
    """`repr` that cannot fail, of at most `limit` characters."""
    try:
        text = repr(value)
    except (ValueError, RecursionError, MemoryError):  # an int of more than 4,300 digits
        text = f"<{type(value).__name__} too long to show>"
    return text if len(text) <= limit else text[: limit - 1] + "…"
