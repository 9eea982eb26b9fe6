"""What verification may cost."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from math import isfinite
from typing import Literal, get_args

from gatekeeper.arguments import check_choice
from gatekeeper.budget.groups import checked_caps
from gatekeeper.errors import BadInputError
from gatekeeper.types.values import as_number

__all__ = ["MOST", "TICKS", "Budget", "Unit"]

Unit = Literal["verifications", "seconds", "usd"]

MOST = 1e18  # units: a limit above any real cost
TICKS = 10**9  # the ledger counts whole billionths of the unit: integer sums are exact


@dataclass(frozen=True, slots=True, kw_only=True)
class Budget:
    """What verification may cost. Give `fraction`, `total`, or both (then both hold).

    Parameters
    ----------
    fraction
        Share of what verifying every candidate would cost, in (0, 1]. It refers to the candidates
        seen so far after the warm-up (true cost where known, an estimate otherwise), or, with
        `horizon`, to the whole stream. The warm-up is charged to an account of its own. At 1
        everything is verified, and only a `total` caps.
    total
        Cap in `unit`, the warm-up included.
    unit
        "verifications" (each costs 1), "seconds" (of the verifier) or "usd" (as the verifier
        reports in `Outcome.cost`).
    horizon
        Number of candidates to come, the warm-up included.
    max_cost
        The most that one verification can cost, in `unit`; this much is reserved before it starts,
        so a figure far above the usual cost refuses candidates. 1 for verifications; in seconds
        the verifier's `max_seconds` is the default; in usd it must be given.
    startup
        Allowance on top of the fraction, in `unit`, so that the first candidates are not refused
        while almost nothing has accrued. Default: one reservation; 0 for verifications with a
        `horizon`, where none is needed. In seconds or usd give one for each verification that
        runs at once: nothing accrues before the first has ended.
    groups
        Caps of groups, in `unit`, the warm-up included, which hold beside the others. By name:
        {"tenant": {"a": 50, "b": 100}} caps these two tenants, {"day": 200} each day alike. The
        group of an output is the task's field of that name; of "model", its model.

    Raises
    ------
    BadInputError
        For values out of range, such as more than 10^18 units, and for a budget that caps nothing.
    """

    fraction: float | None = None
    total: float | None = None
    unit: Unit = "verifications"
    horizon: int | None = None
    max_cost: float | None = None
    startup: float | None = None
    groups: Mapping[str, float | Mapping[str, float]] = field(default_factory=dict, hash=False)

    def __post_init__(self) -> None:
        if self.fraction is None and self.total is None:
            raise BadInputError("Budget() caps nothing: give fraction=0.2, total=300, or both")
        for name in ("fraction", "total", "max_cost", "startup"):
            given = getattr(self, name)
            if given is None:
                continue
            value = as_number(name, given)  # numpy's numbers are no JSON
            if abs(value) > MOST:
                raise BadInputError(f"{name}={given!r:.80}: must be a number from 0 to {MOST:g}")
            object.__setattr__(self, name, value)
        if self.fraction is not None and not 0.0 < self.fraction <= 1.0:
            raise BadInputError(
                f"fraction={self.fraction!r}: must lie between 0 and 1, for example 0.2, or be 1 "
                "to verify everything"
            )
        check_choice("unit", self.unit, get_args(Unit))
        for name in ("total", "max_cost"):
            value = getattr(self, name)
            if value is not None and not (isfinite(value) and value * TICKS >= 1):
                raise BadInputError(
                    f"{name}={value!r}: must be a number of {self.unit}, at least {1 / TICKS}"
                )
        if self.startup is not None and not (isfinite(self.startup) and self.startup >= 0):
            raise BadInputError(f"startup={self.startup!r}: must be at least 0 {self.unit}")
        if self.horizon is not None and not (
            type(self.horizon) is int and 0 < self.horizon <= MOST
        ):
            raise BadInputError(
                f"horizon={self.horizon!r:.80}: must be a whole number of candidates"
            )
        if self.unit == "verifications" and self.max_cost not in (None, 1, 1.0):
            raise BadInputError(f"max_cost={self.max_cost!r}: a verification costs 1 verification")
        object.__setattr__(self, "groups", checked_caps(self.groups, MOST))
