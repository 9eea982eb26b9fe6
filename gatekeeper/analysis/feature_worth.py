"""What each feature is worth on the outputs at hand: recall that `calibrated` gains by it.

P(error) is predicted with and without the feature, by cross-fitting and from no more labels than a
run at this budget has; with each prediction the outputs of the highest P(error) ÷ ĉ are chosen that
the budget pays for. The worth is the difference of the two recalls. Its interval holds 95 % of
draws of the next run, as `gatekeeper.analysis.plan` makes them; labels that a gate's log lacks are
drawn too. `benchmarks/features.py` compares it with what replays gain.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from math import ceil

import numpy as np

from gatekeeper.analysis.off_policy import Evidence
from gatekeeper.analysis.outputs import raw_of_records
from gatekeeper.analysis.predictions import FOLDS, cross_fitted
from gatekeeper.arguments import check_beta
from gatekeeper.errors import BadInputError
from gatekeeper.io.records import RecordTable
from gatekeeper.policies import T0
from gatekeeper.stats.error_model import KNOWN
from gatekeeper.stats.interval import Interval
from gatekeeper.types import FloatArray

__all__ = ["FeatureWorth", "feature_worth"]

CHOICES = 4  # parts of the outputs, by how many of the choices have them


@dataclass(frozen=True, slots=True)
class FeatureWorth:
    """What a feature is worth, or several: differences of recall, in [-1, 1]."""

    features: tuple[str, ...]
    present: float  # share of the outputs that have one of them, in [0, 1]
    beside_signals: Interval  # against signals and ĉ alone
    beside_all: Interval | None  # against signals, ĉ and the other features; None without others


def feature_worth(table: RecordTable, beta: float, *, warmup: int = T0) -> list[FeatureWorth]:
    """The worth of each feature, then that of all together if there are several.

    Parameters
    ----------
    table
        Records, or a run's log.
    beta
        Budget, a share of the full cost in (0, 1).

    Returns
    -------
    list of FeatureWorth
        In the order of the table's columns; empty where it has no features, does not represent all
        outputs, or has too few labels.

    Raises
    ------
    BadInputError
        For a budget outside (0, 1).
    """
    check_beta(beta)
    if not table.features:
        return []
    try:
        evidence = Evidence(table, warmup=warmup)
    except BadInputError:
        return []
    names = [*table.features]
    sets = [(), *((name,) for name in names)]
    if len(names) > 1:
        sets += [tuple(names), *(tuple(n for n in names if n != name) for name in names)]
    chooser = _Chooser(evidence, beta)
    shares = np.column_stack([chooser.share(used) for used in sets])
    ease = shares.mean(axis=1)
    labels = evidence.labels(np.minimum((ease * CHOICES).astype(np.intp), CHOICES - 1))
    weights = np.column_stack([shares, np.ones(len(shares))])
    found, _ = evidence.totals(labels, weights, resample=True)
    recall = found[:, :-1] / found[:, -1:]
    n = int((evidence.drawn & evidence.counted).sum())

    def gain(of: int, by: int) -> Interval:
        return Interval.of_draws(recall[:, of] - recall[:, by], n)

    def worth(used: tuple[str, ...], alone: Interval, beside: Interval | None) -> FeatureWorth:
        columns = np.array([table.features[name] for name in used])  # type: ignore[index]
        present = float((~np.isnan(columns)).any(axis=0).mean())
        return FeatureWorth(used, present, alone, beside)

    if len(names) == 1:
        return [worth((names[0],), gain(1, 0), None)]
    every = len(names) + 1
    each = [worth((name,), gain(i, 0), gain(every, every + i)) for i, name in enumerate(names, 1)]
    return [*each, worth(tuple(names), gain(every, 0), None)]


class _Chooser:
    """Chooses outputs by P(error) ÷ ĉ, predicted with some of the features."""

    def __init__(self, evidence: Evidence, beta: float) -> None:
        table = evidence.table
        self._raw = raw_of_records(table)
        self._label = evidence.stream.error
        # As many labels as such a run has and the policy remembers; each fit is without one fold.
        labelled = np.flatnonzero(~np.isnan(self._label))
        self._warmup = evidence.warmup
        most = min(self._warmup + beta * evidence.p.size, KNOWN) * FOLDS / (FOLDS - 1)
        self._drawn = np.zeros(len(table), dtype=bool)
        self._drawn[labelled[:: max(ceil(labelled.size / most), 1)]] = True
        self._cost, self._beta = evidence.cost, beta
        same = np.ptp(evidence.cost) == 0.0  # in units of verifications
        self._estimate = np.ones(len(table)) if same else table.cost_estimate

    def share(self, used: Collection[str]) -> FloatArray:
        """1 for the outputs after the warm-up that are chosen, else 0, (n,)."""
        odds = cross_fitted(self._raw.only(used).take, self._drawn, self._label)
        value = (1.0 / (1.0 + np.exp(-odds)) / self._estimate)[self._warmup :]
        order = np.argsort(-value, kind="stable")
        chosen = np.zeros(value.size)
        chosen[order] = np.cumsum(self._cost[order]) <= self._beta * self._cost.sum()
        return chosen
