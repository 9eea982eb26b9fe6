"""Three-valued logic: a verdict is True, False, or None where it is not known.

`every` of True and None is None, of False and None False.
"""

from __future__ import annotations

from collections.abc import Iterable

__all__ = ["every", "some"]


def every(verdicts: Iterable[bool | None]) -> bool | None:
    """`all` for verdicts of which some are unknown (None)."""
    unknown = False
    for verdict in verdicts:
        if verdict is False:
            return False
        unknown |= verdict is None
    return None if unknown else True


def some(verdicts: Iterable[bool | None]) -> bool | None:
    """`any` for verdicts of which some are unknown (None)."""
    unknown = False
    for verdict in verdicts:
        if verdict:
            return True
        unknown |= verdict is None
    return None if unknown else False
