"""The verifier of tasks: one for each kind, by name."""

from __future__ import annotations

from collections.abc import Collection, Mapping

from gatekeeper.errors import BadInputError
from gatekeeper.verifiers import ByKind, make_verifier, verifier_names
from gatekeeper.wording import choose

__all__ = ["verifier_of", "verifiers_by_kind"]

# The built-in ones, each of one kind of task; a plug-in's may be of any.
_BUILT_IN = {"code": ("docker", "local"), "math": ("math",)}
_OPTIONS = {"code": "--sandbox", "math": "--maths-checker"}


def verifier_of(names: Mapping[str, str]) -> ByKind:
    """The verifier for tasks of these kinds, by the names that `verifiers_by_kind` returned."""
    return ByKind({kind: make_verifier(name) for kind, name in names.items()})


def verifiers_by_kind(
    kinds: Collection[str], *, sandbox: str | None, maths: str = "math"
) -> dict[str, str]:
    """The name of the verifier for each kind of task.

    Parameters
    ----------
    kinds : collection of str
        "code", "math".
    sandbox, maths : str
        The names that were chosen for the two.

    Raises
    ------
    BadInputError
        For kind "code" without a sandbox, for unknown names, and for a built-in verifier of another
        kind.
    """
    if "code" in kinds and sandbox is None:
        raise BadInputError(
            "there are tasks of kind 'code': choose what runs the model's code, for example "
            "--sandbox docker or --sandbox local (docs/sandbox.md compares them)"
        )
    given = {"math": maths} | ({} if sandbox is None else {"code": sandbox})
    for kind, name in given.items():  # also one that no task needs
        others = {n for other, names in _BUILT_IN.items() if other != kind for n in names}
        fitting = [n for n in verifier_names() if n not in others]
        if name not in fitting:
            raise BadInputError(f"{_OPTIONS[kind]} {name!r}: {choose(name, fitting)}")
    return {kind: given[kind] for kind in ("code", "math") if kind in kinds}
