"""Checks and conversions of numbers, arrays and features."""

from __future__ import annotations

from collections.abc import Mapping
from math import inf, isfinite, nan
from numbers import Real
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gatekeeper.errors import BadInputError

__all__ = [
    "COST",
    "LEAST_COST",
    "LOGIT",
    "MASKED",
    "MOST_COST",
    "MOST_TOKENS",
    "NO_POSITIONS",
    "BoolArray",
    "FloatArray",
    "IntArray",
    "as_features",
    "as_floats",
    "as_log_probabilities",
    "as_number",
    "check_text",
]

FloatArray = NDArray[np.float64]
BoolArray = NDArray[np.bool_]
IntArray = NDArray[np.intp]
NO_POSITIONS: FloatArray = np.empty(0)
MASKED = -9999.0  # what HTTP servers send for a log-probability of -inf
MOST_TOKENS = 1 << 53  # floats are exact up to here, and logs store whole numbers of 64 bits
# Of ĉ and c: between these, sums, squares and ratios of them stay finite.
LEAST_COST, MOST_COST = 1e-100, 1e100
COST = f"a number above 0, from {LEAST_COST:g} to {MOST_COST:g}"
LOGIT = 1e-3  # a log-probability cannot exceed 0; this much is rounding


def as_number(name: str, value: object) -> float:
    """A real number as a float, infinite where floats end. Raises BadInputError for anything else,
    a bool too.
    """
    if type(value) is float:  # nearly all, and the other checks take long
        return value
    if isinstance(value, bool) or not isinstance(value, Real):
        raise BadInputError(f"{name}={value!r:.80}: a number is needed")
    try:
        return float(value)
    except OverflowError:
        return -inf if value < 0.0 else inf


def check_text(name: str, value: object) -> None:
    """Raises BadInputError for anything but a string."""
    if not isinstance(value, str):
        raise BadInputError(f"{name}={value!r:.80}: a string is needed")


def as_floats(name: str, value: Any) -> FloatArray:
    """A float64 array; None is NaN. Raises BadInputError for anything else."""
    try:
        return np.asarray(value, dtype=np.float64)
    except (TypeError, ValueError, OverflowError) as e:
        raise BadInputError(f"{name}={value!r:.80}: an array of numbers is needed: {e}") from None


def as_log_probabilities(name: str, value: Any) -> FloatArray:
    """An array (L,) of natural-log probabilities; None is NaN.

    Raises
    ------
    BadInputError
        For another shape, and for a value above 0, which may be a probability or a logit.
    """
    values = as_floats(name, value)
    if values.ndim != 1:
        raise BadInputError(f"{name} has shape {values.shape}: one number per token is needed")
    above = np.flatnonzero(values > LOGIT)
    if above.size:
        raise BadInputError(
            f"{name}[{above[0]}]={values[above[0]]:.6g}: a natural-log probability is at most 0; "
            "give ln p, not a probability or a logit"
        )
    return values


def as_features(features: Any) -> dict[str, float]:
    """Features as finite floats, in the order of their names.

    None and NaN stand for an absent value and are left out. True and False are 1 and 0.

    Raises
    ------
    BadInputError
        For a value that is no finite number, and for a name that is no non-empty string.
    """
    if not isinstance(features, Mapping):
        raise BadInputError(f"features={features!r:.80}: give a dict from names to numbers")
    found = {}
    for name, value in features.items():
        if not (isinstance(name, str) and name):
            raise BadInputError(f"features has the name {name!r:.80}: a non-empty string is needed")
        is_number = isinstance(value, Real | np.bool_)
        if value is None or (is_number and value != value):
            continue
        try:
            number = float(value) if is_number else nan
        except OverflowError:
            number = nan
        if not isfinite(number):
            raise BadInputError(
                f"features[{name!r:.80}]={value!r:.80}: a finite number is needed, or None where "
                "there is no value"
            )
        found[name] = number
    return dict(sorted(found.items()))
