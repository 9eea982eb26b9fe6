"""The verifier of tasks: one for each kind, by name."""

from __future__ import annotations

from collections.abc import Collection

from gatekeeper.errors import BadInputError
from gatekeeper.protocols import Verifier
from gatekeeper.verifiers import ByKind, make_verifier

__all__ = ["chosen_sandbox", "verifier_of"]


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
        verifiers["code"] = make_verifier(chosen_sandbox(sandbox))
    if "math" in kinds:
        verifiers["math"] = make_verifier(maths)
    return ByKind(verifiers)


def chosen_sandbox(sandbox: str | None) -> str:
    """The name of a sandbox. Raises BadInputError where none was chosen."""
    if sandbox is None:
        raise BadInputError(
            "there are tasks of kind 'code': choose what runs the model's code, for example "
            "--sandbox docker or --sandbox local (docs/sandbox.md compares them)"
        )
    return sandbox
