"""The result of a verifier, and the result of a gate for an output."""

from __future__ import annotations

import json
from collections.abc import Mapping
from math import inf, isfinite
from typing import Any

from msgspec import Struct
from msgspec.structs import force_setattr

from gatekeeper.errors import BadInputError
from gatekeeper.notebook import as_html
from gatekeeper.types.as_dataclass import as_dataclass
from gatekeeper.types.candidate import Decision, Signals
from gatekeeper.types.states import Label, UndecidedState, Verdict
from gatekeeper.types.values import as_number
from gatekeeper.wording import nearest

__all__ = ["GateResult", "Outcome", "Undecided"]

_to_json = json.JSONEncoder(allow_nan=False).encode


@as_dataclass
class Outcome(Struct, frozen=True):
    """The result of a verification.

    Attributes
    ----------
    verdict
        Right, wrong, or could not tell.
    cost
        True cost in the budget's unit; None: the gate determines it.
    seconds
        Wall-clock seconds that the verification took.
    detail
        The reason, in words.
    meta
        Further details; JSON values only.
    value
        Value of the output by a metric, a finite number such as an F1 score of 0.4; None: 1 for a
        right output, 0 for a wrong one.
    """

    verdict: Verdict
    cost: float | None = None
    seconds: float = 0.0
    detail: str = ""
    meta: Mapping[str, Any] = {}
    value: float | None = None

    def __post_init__(self) -> None:
        """Raises BadInputError for values that could not be charged or logged.

        An invalid cost (NaN, negative) is accepted, because the money is already spent: the gate
        keeps the verdict and charges the whole reservation.
        """
        if not isinstance(self.verdict, Verdict):
            known = [f"Verdict.{verdict.name}" for verdict in Verdict]
            meant = self.verdict.upper() if isinstance(self.verdict, str) else self.verdict
            near = nearest(f"Verdict.{meant}", known)
            raise BadInputError(
                f"verdict={self.verdict!r:.80}: give one of {', '.join(known)}"
                f"{near and f' ({near})'}"
            )
        if not isinstance(self.detail, str):
            raise BadInputError(f"detail={self.detail!r:.80}: a string is needed")
        seconds = as_number("seconds", self.seconds)
        if not 0.0 <= seconds < inf:
            raise BadInputError(f"seconds={self.seconds!r}: must be finite and at least 0")
        if seconds is not self.seconds:  # few are no float, and setting takes long
            force_setattr(self, "seconds", seconds)
        if self.cost is not None and type(self.cost) is not float:
            force_setattr(self, "cost", as_number("cost", self.cost))
        if self.value is not None:
            value = as_number("value", self.value)
            if not isfinite(value):
                raise BadInputError(
                    f"value={self.value!r}: a finite number is needed; a verifier that could not "
                    "tell returns INFRA_ERROR"
                )
            force_setattr(self, "value", value)
        try:
            # A copy, as a log keeps it: the caller's may change before the gate stores it.
            meta = dict(self.meta)
            force_setattr(self, "meta", json.loads(_to_json(meta)) if meta else meta)
        except (TypeError, ValueError, RecursionError) as e:
            raise BadInputError(
                f"meta={self.meta!r:.80}: only JSON values can be kept: {e}"
            ) from None

    @property
    def error(self) -> Label | None:
        """Label y: 1 wrong, 0 right, None where the verifier could not tell."""
        return self.verdict.error

    @property
    def grade(self) -> float | None:
        """The output's part of a mean score: `value`, else 1 right, 0 wrong, None unknown."""
        error = self.error
        if error is None or self.value is None:
            return None if error is None else 1.0 - error
        return self.value


@as_dataclass
class GateResult(Struct, frozen=True):
    """The result of a gate for an output. `outcome` is None when nothing was verified."""

    id: str
    signals: Signals
    decision: Decision
    outcome: Outcome | None = None

    @property
    def verified(self) -> bool:
        """Whether there is a verdict, right or wrong."""
        return self.outcome is not None and self.outcome.error is not None

    def _repr_html_(self) -> str:
        decision, outcome, h = self.decision, self.outcome, self.signals
        rows = [
            ("verify", f"{'yes' if decision.verify else 'no'}: {decision.reason}"),
            ("verdict", "not verified" if outcome is None else str(outcome.verdict)),
            ("detail", outcome and outcome.detail),
            ("h1, h2, h3", f"{h.h1:.4g}, {h.h2:.4g}, {h.h3:.4g}"),
            ("score", decision.score),
            ("threshold of score ÷ ĉ", decision.threshold),
            ("propensity", decision.propensity),
            ("cost", outcome and outcome.cost),
        ]
        return as_html(f"output {self.id}", rows)


@as_dataclass
class Undecided(Struct, frozen=True):
    """In place of a GateResult, for an output without a decision, which is not counted.

    `error` describes the problem in words; "" if there was none.
    """

    id: str
    state: UndecidedState
    error: str = ""

    @property
    def decision(self) -> None:
        return None

    @property
    def outcome(self) -> None:
        return None

    @property
    def verified(self) -> bool:
        return False
