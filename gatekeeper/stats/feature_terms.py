"""The columns that features add to the design of a regression.

Each feature gives up to three columns: z, the normal score of its rank (0 where it is absent); 1
where it is absent, if it ever is; and z² - 1, if it has more than two values, for errors in the
middle of its range or at both ends.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import chain
from math import nan
from operator import itemgetter
from typing import Any, NamedTuple

import numpy as np

from gatekeeper.stats.rank_scale import RankScale
from gatekeeper.types import BoolArray, FloatArray

__all__ = ["SLAB", "Effect", "FeatureTerms", "table_of"]

Features = Mapping[str, float]
LINE, ABSENT, CURVE = 0, 1, 2  # kinds of columns
SLAB = np.array([0.3, 2.0, 0.05])  # by kind: variance of a coefficient that is not 0


class _Term(NamedTuple):
    name: str
    scale: RankScale
    kinds: tuple[int, ...]  # of its columns, in order


class Effect(NamedTuple):
    """The weighted sum of a feature's columns, as a function of `PART` of its value.

    It is line z + curve (z² - 1), with z the normal score of the value's rank.
    """

    name: str
    parts: list[float]  # ascending: from parts[i - 1] on, pieces[i] holds
    pieces: list[tuple[float, float, float]]  # v0, z0, rise of z = z0 + rise (v - v0)
    line: float
    curve: float
    absent: float


class FeatureTerms:
    """Columns that features give, by the scales of those seen so far."""

    def __init__(self, terms: Sequence[_Term]) -> None:
        self._terms = list(terms)
        self.kinds = np.array([kind for term in terms for kind in term.kinds], dtype=np.intp)

    @classmethod
    def of_table(cls, names: Sequence[str], table: FloatArray) -> FeatureTerms:
        """The terms of the features that varied, from values (n, number of names), NaN absent."""
        terms = []
        for name, column in zip(names, table.T, strict=True):
            if np.isnan(column).all():  # never seen
                continue
            scale = RankScale.of(column)
            varied = (LINE, CURVE) if len(scale.values) > 2 else (LINE,)
            kinds: tuple[int, ...] = varied if len(scale.values) > 1 else ()
            kinds += (ABSENT,) if np.isnan(column).any() else ()
            if kinds:
                terms.append(_Term(name, scale, kinds))
        return cls(terms)

    def __len__(self) -> int:
        """How many features have a term."""
        return len(self._terms)

    def only(self, kept: BoolArray) -> FeatureTerms:
        """Without the columns that are not kept."""
        flags, terms = iter(kept.tolist()), []
        for name, scale, kinds in self._terms:
            left = tuple(kind for kind in kinds if next(flags))
            if left:
                terms.append(_Term(name, scale, left))
        return FeatureTerms(terms)

    def __call__(self, features: Features) -> list[float]:
        """The columns of one output, (m,)."""
        row: list[float] = []
        for name, scale, kinds in self._terms:
            value = features.get(name)
            if value is None:
                row += [1.0 if kind == ABSENT else 0.0 for kind in kinds]
                continue
            z = scale(value)
            for kind in kinds:
                row.append(z if kind == LINE else 0.0 if kind == ABSENT else z * z - 1.0)
        return row

    def effects(self, coefficients: FloatArray) -> list[Effect]:
        """What each feature adds to the sum of its columns weighted by coefficients (m,).

        Several times as fast as computing the columns of one output after the other.
        """
        weights, found = iter(coefficients.tolist()), []
        for name, scale, kinds in self._terms:
            weight = {kind: next(weights) for kind in kinds}
            parts, scores = scale.parts, scale.scores
            rises = [0.0]  # 0 below all values and above
            for i in range(1, len(parts)):
                rises.append((scores[i] - scores[i - 1]) / (parts[i] - parts[i - 1]))
            rises.append(0.0)
            pieces = list(zip([parts[0], *parts], [scores[0], *scores], rises, strict=True))
            line, curve, absent = (weight.get(kind, 0.0) for kind in (LINE, CURVE, ABSENT))
            found.append(Effect(name, parts, pieces, line, curve, absent))
        return found

    def of_rows(self, names: Sequence[str], table: FloatArray) -> FloatArray:
        """The columns of many outputs, (n, m), from values (n, number of names), NaN absent."""
        at = {name: i for i, name in enumerate(names)}
        columns = []
        for name, scale, kinds in self._terms:
            values = table[:, at[name]] if name in at else np.full(len(table), nan)
            absent = np.isnan(values)
            z = np.where(absent, 0.0, scale.of_rows(values))
            by_kind = (z, absent.astype(np.float64), np.where(absent, 0.0, z * z - 1.0))
            columns += [by_kind[kind] for kind in kinds]
        return np.column_stack(columns) if columns else np.zeros((len(table), 0))

    def state(self) -> list[Any]:
        return [[t.name, t.scale.values, t.scale.scores, list(t.kinds)] for t in self._terms]

    @classmethod
    def restored(cls, state: Sequence[Any]) -> FeatureTerms:
        return cls([_Term(n, RankScale(v, s), tuple(kinds)) for n, v, s, kinds in state])


def table_of(rows: Sequence[Features], names: Sequence[str]) -> FloatArray:
    """Values of features (n, number of names); NaN absent."""
    if len(names) > 1:
        try:  # several times as fast, where no value is absent
            present = chain.from_iterable(map(itemgetter(*names), rows))
            return np.fromiter(present, np.float64).reshape(-1, len(names))
        except KeyError:
            pass
    values = (features.get(name, nan) for features in rows for name in names)
    return np.fromiter(values, np.float64).reshape(len(rows), len(names))
