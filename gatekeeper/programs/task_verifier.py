"""The verifier of tasks: one for each kind, by name."""

from __future__ import annotations

from collections.abc import Collection

from gatekeeper.errors import BadInputError
from gatekeeper.protocols import Verifier
from gatekeeper.verifiers import ByKind, make_verifier

__all__ = ["verifier_of"]


def verifier_of(kinds: Collection[str], *, sandbox: str | None, maths: str = "math") -> ByKind:
    """The verifier for tasks of these kinds.

    Parameters
    ----------
    kinds : collection of str
        "code", "math".
    sandbox, maths : str
        The names of the verifiers for the two.

    Raises
    ------
    BadInputError
        For kind "code" without a sandbox, and for unknown names.
    """
    verifiers: dict[str, Verifier] = {}
    if "code" in kinds:
        if sandbox is None:
            raise BadInputError(
                "there are tasks of kind 'code': choose what runs the model's code, for example "
                "--sandbox docker or --sandbox local (docs/sandbox.md compares them)"
            )
        verifiers["code"] = make_verifier(sandbox)
    if "math" in kinds:
        verifiers["math"] = make_verifier(maths)
    return ByKind(verifiers)
