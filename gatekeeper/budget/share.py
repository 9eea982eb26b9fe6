"""The fraction of a command's budget, which is given a share, a total, both or neither."""

from __future__ import annotations

from gatekeeper.errors import BadInputError

__all__ = ["DEFAULT_FRACTION", "budget_text", "fraction_of"]

DEFAULT_FRACTION = 0.2


def fraction_of(
    total: float | None,
    fraction: float | None,
    *,
    outputs: int | None,
    warmup: int,
    total_name: str,
    warmup_name: str,
) -> float | None:
    """The fraction of a budget in verifications; None: the total alone decides.

    Parameters
    ----------
    total, fraction
        As they were given; None: not.
    outputs
        Number of outputs; None: it is not known.
    warmup
        Number of the first outputs, which are all verified.
    total_name, warmup_name
        Text before the total and before the warm-up in the message: "--total ", "--warmup ".

    Raises
    ------
    BadInputError
        For a total that leaves nothing after the warm-up.
    """
    if total is None:
        return DEFAULT_FRACTION if fraction is None else fraction
    if outputs is None:
        return fraction
    if warmup and total <= warmup < outputs:
        raise BadInputError(
            f"{total_name}{total:g}: the warm-up takes {warmup_name}{warmup} of it; give more to "
            "verify some outputs after it, or a shorter warm-up"
        )
    return 1.0 if fraction is None and total >= outputs else fraction


def budget_text(total: float | None, fraction: float | None) -> str:
    """The budget as the options of a command: --budget 0.2, --total 50."""
    if total is None and fraction is None:
        fraction = DEFAULT_FRACTION
    given = {"--budget": fraction, "--total": total}
    return ", ".join(f"{name} {value:g}" for name, value in given.items() if value is not None)
