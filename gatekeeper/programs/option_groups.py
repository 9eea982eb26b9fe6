"""Groups of options that serve another option, such as those of an endpoint that serve --model."""

from __future__ import annotations

import argparse
from collections.abc import Mapping

from gatekeeper.errors import BadInputError

__all__ = ["complete_group"]


def complete_group(
    args: argparse.Namespace, defaults: Mapping[str, object], *, needs: str, met: bool
) -> None:
    """Give the options of a group that were left out their defaults.

    Parameters
    ----------
    args : argparse.Namespace
        In which an option that was left out is None.
    defaults : mapping
        The options of the group by destination, with their defaults.
    needs : str
        What they need, in words.
    met : bool
        Whether it is there.

    Raises
    ------
    BadInputError
        For an option that was given without what it needs: it would have no effect.
    """
    for name, default in defaults.items():
        value = getattr(args, name)
        if value is None:
            setattr(args, name, default)
        elif not met:
            raise BadInputError(f"--{name.replace('_', '-')} {value} needs {needs}")
