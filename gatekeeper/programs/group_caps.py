"""Caps of groups as an option: `tenant=a:50,tenant=b:100,day=200`."""

from __future__ import annotations

from gatekeeper.errors import BadInputError

__all__ = ["caps_given"]


def caps_given(text: str) -> dict[str, float | dict[str, float]]:
    """What `Budget.groups` takes.

    Parameters
    ----------
    text
        Parts between commas: NAME=N caps each group of that name, NAME=GROUP:N one of them.

    Raises
    ------
    BadInputError
        For a part that is neither, and for a name or a group with two caps.
    """
    found: dict[str, float | dict[str, float]] = {}
    for part in filter(None, map(str.strip, text.split(","))):
        name, _, rest = map(str.strip, part.partition("="))
        group, is_one, number = map(str.strip, rest.rpartition(":"))
        try:
            cap = float(number)
        except ValueError:
            cap = -1.0
        if not name or cap < 0 or bool(is_one) != bool(group):
            raise BadInputError(
                f"--budget-groups {part}: give NAME=N, a cap of each group of that name, or "
                "NAME=GROUP:N, a cap of one, such as tenant=a:50,tenant=b:100,day=200"
            )
        caps = found.setdefault(name, {} if is_one else cap)
        if isinstance(caps, dict) != bool(is_one) or (isinstance(caps, dict) and group in caps):
            raise BadInputError(f"--budget-groups {part}: {name} has another cap before: give one")
        if isinstance(caps, dict):
            caps[group] = cap
    return found
