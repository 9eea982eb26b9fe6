"""The rule for a candidate without any signal: `on_missing`."""

from __future__ import annotations

from typing import Any, Literal, get_args

import numpy as np

from gatekeeper.arguments import check_choice, check_count
from gatekeeper.types import Decision, Reason

__all__ = ["MissingSignalRule", "OnMissing"]

OnMissing = Literal["uniform", "verify", "skip"]


class MissingSignalRule:
    """Verifies a candidate without signals with a fixed probability: β, 1 or 0.

    It takes one draw of `numpy.random.default_rng(seed)` per such candidate.

    Parameters
    ----------
    on_missing
        "uniform": probability β; "verify": 1; "skip": 0.
    beta
        β in (0, 1).
    seed
        Seed of the draws, at least 0.
    """

    def __init__(self, on_missing: OnMissing, beta: float, seed: int) -> None:
        check_choice("on_missing", on_missing, get_args(OnMissing))
        self.rate = {"uniform": beta, "verify": 1.0, "skip": 0.0}[on_missing]
        self._rng = np.random.default_rng(check_count("seed", seed, least=0))

    def decide(self, version: int) -> Decision:
        return Decision(
            bool(self._rng.random() < self.rate),
            Reason.MISSING_SIGNAL,
            propensity=self.rate,
            version=version,
        )

    def state(self) -> dict[str, Any]:
        return dict(self._rng.bit_generator.state)

    def restore(self, state: dict[str, Any]) -> None:
        self._rng.bit_generator.state = state
