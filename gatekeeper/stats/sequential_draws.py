"""Draws of outputs one after the other, as many as their probabilities add up to."""

from __future__ import annotations

from typing import Any

import numpy as np

__all__ = ["SequentialDraws"]

EQUAL = 1e-9  # sums of floats this close to 1 are 1


class SequentialDraws:
    """One draw from each unit of accumulated probability, in the order of arrival.

    The outputs whose probabilities add up to 1 are a stratum, of which exactly one is drawn; an
    output that crosses a border belongs to both strata, and is drawn for one of them at most. So
    each output is drawn with exactly its probability, and after any number of outputs the draws
    differ from the sum of their probabilities by less than 1: they are spread over time, and a
    whole sum is a fixed number of draws. Which output of a stratum is drawn does not depend on
    other strata, so a period of the stream has no effect, as it would have on every k-th output.

    Parameters
    ----------
    seed
        Seed of the draws: what `numpy.random.default_rng` takes.

    References
    ----------
    Fuller (1970), "Sampling with random stratum boundaries". Chauvet (2012), "On a
    characterization of ordered pivotal sampling": the same design.
    """

    def __init__(self, seed: int | tuple[int, ...]) -> None:
        self._rng = np.random.default_rng(seed)
        self._filled = 0.0  # probability in the present stratum so far
        self._served = False  # whether an output of that stratum was drawn

    def __call__(self, p: float) -> bool:
        """Whether to draw the next output, of probability p in [0, 1]."""
        uniform = self._rng.random()  # one for each output, so that equal streams stay in step
        room = 1.0 - self._filled
        if p < room - EQUAL:
            drawn = not self._served and uniform * room < p
            self._served = self._served or drawn
            self._filled += p
            return bool(drawn)
        beyond = p - room if p > room + EQUAL else 0.0
        drawn_here = not self._served  # the last one of a stratum without a draw
        drawn_next = self._served and uniform * (1.0 - room) < beyond
        self._filled, self._served = beyond, bool(drawn_next)
        return bool(drawn_here or drawn_next)

    def state(self) -> dict[str, Any]:
        """A snapshot of values that `json` takes."""
        return {
            "rng": dict(self._rng.bit_generator.state),
            "stratum": [self._filled, self._served],
        }

    def restore(self, state: dict[str, Any]) -> None:
        self._rng.bit_generator.state = state["rng"]
        self._filled, self._served = state["stratum"]
