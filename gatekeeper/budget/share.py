"""The share of the outputs that a command verifies: it is given a share, a total, or neither."""

from __future__ import annotations

from gatekeeper.errors import BadInputError

__all__ = ["USUAL_SHARE", "share_beside"]

USUAL_SHARE = 0.2


def share_beside(
    total: float | None,
    share: float | None,
    *,
    outputs: int | None,
    warmup: int,
    names: tuple[str, str],
) -> float | None:
    """The fraction of a budget in verifications; None: the total alone decides.

    Parameters
    ----------
    total, share
        As they were given; None: not.
    outputs
        Number of outputs; None: it is not known.
    warmup
        Number of the first outputs, which are all verified.
    names
        What stands before the total and before the warm-up in the message: "--total ", "--warmup ".

    Raises
    ------
    BadInputError
        For a total that leaves nothing after the warm-up.
    """
    if total is None:
        return USUAL_SHARE if share is None else share
    if outputs is None:
        return share
    if warmup and total <= warmup < outputs:
        raise BadInputError(
            f"{names[0]}{total:g}: the warm-up takes {names[1]}{warmup} of it; give more to verify "
            "some outputs after it, or a shorter warm-up"
        )
    return 1.0 if share is None and total >= outputs else share
