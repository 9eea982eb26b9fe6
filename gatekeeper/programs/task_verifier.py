"""The verifier of tasks: one for each kind, by name."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from contextlib import contextmanager
from functools import partial

from gatekeeper.errors import BadInputError
from gatekeeper.protocols import Verifier
from gatekeeper.ray import RayVerifier
from gatekeeper.verifiers import ByKind, make_verifier

__all__ = ["pool_of", "verifier_of"]


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
        verifiers["code"] = make_verifier(_chosen(sandbox))
    if "math" in kinds:
        verifiers["math"] = make_verifier(maths)
    return ByKind(verifiers)


@contextmanager
def pool_of(
    kinds: Collection[str], *, sandbox: str | None, maths: str, address: str | None
) -> Iterator[RayVerifier]:
    """A pool on a Ray cluster of what `verifier_of` makes; afterwards Ray is left.

    Raises
    ------
    BadInputError
        For kind "code" without a sandbox.
    GatekeeperError
        As of `RayVerifier`.
    """
    if "code" in kinds:
        _chosen(sandbox)
    make = partial(verifier_of, sorted(kinds), sandbox=sandbox, maths=maths)
    with RayVerifier(make, address=address) as pool:
        yield pool
    import ray

    ray.shutdown()  # it prints what happens on the cluster for as long as this process is there


def _chosen(sandbox: str | None) -> str:
    if sandbox is None:
        raise BadInputError(
            "there are tasks of kind 'code': choose what runs the model's code, for example "
            "--sandbox docker or --sandbox local (docs/sandbox.md compares them)"
        )
    return sandbox
