"""The data of candidates before verification: of one, and of many as arrays."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from types import MappingProxyType
from typing import NamedTuple

import numpy as np

from gatekeeper.stats.feature_terms import table_of
from gatekeeper.types import BoolArray, FloatArray, IntArray

__all__ = ["Raw", "RawTable"]

NUMBERS = 5  # of a candidate, beside its features


class Raw(NamedTuple):
    """The data of a candidate before verification; NaN for a missing signal."""

    h1: float
    h2: float
    h3: float
    size: float  # log ĉ
    positions: float  # log(1 + positions)
    features: Mapping[str, float] = MappingProxyType({})


class RawTable(NamedTuple):
    """Candidates as rows, and features as columns in the order of their names."""

    rows: FloatArray  # (N, NUMBERS): those of `Raw`, in its order
    names: tuple[str, ...]  # of the features
    features: FloatArray  # (N, number of names); NaN absent

    @classmethod
    def of(cls, raws: Sequence[Raw]) -> RawTable:
        """The table of these candidates, with every feature that one of them has."""
        *numbers, features = zip(*raws, strict=True) if raws else [()] * (NUMBERS + 1)
        rows = np.array(numbers, dtype=np.float64).T.copy()
        names = tuple(sorted(set[str]().union(*features)))
        return cls(rows, names, table_of(features, names))

    def take(self, which: IntArray | BoolArray | slice) -> RawTable:
        """Some of the candidates."""
        return RawTable(self.rows[which], self.names, self.features[which])

    def only(self, names: Collection[str]) -> RawTable:
        """With these of the features."""
        kept = [i for i, name in enumerate(self.names) if name in names]
        return RawTable(self.rows, tuple(self.names[i] for i in kept), self.features[:, kept])
