"""How likely it is that CST finds more in the next run than Threshold.

The tests and replays of a diagnosis show whether a difference exceeds chance. With a few hundred
labels most differences do not, even real ones. A choice needs the odds: the difference of the two
recalls in draws of the next run, as `gatekeeper.analysis.plan` makes them. Labels that a gate's log
lacks are drawn too. `benchmarks/diagnosis.py` compares stated odds with observed frequencies.
"""

from __future__ import annotations

import numpy as np

from gatekeeper.analysis.diagnosis.data import Odds
from gatekeeper.analysis.odds import chances_of
from gatekeeper.analysis.off_policy import Evidence
from gatekeeper.analysis.plan import settled_share
from gatekeeper.errors import BadInputError
from gatekeeper.io.records import RecordTable
from gatekeeper.policies import T0
from gatekeeper.stats.interval import Interval

__all__ = ["odds_of"]

MOST = 1_000_000  # outputs: more only take memory, the interval is far narrower than `WORTH`


def odds_of(table: RecordTable, beta: float, strata: int, *, warmup: int = T0) -> Odds | None:
    """The odds of CST against Threshold.

    Of more than `MOST` outputs those of the warm-up count, and as many others, evenly spaced.

    Parameters
    ----------
    table
        Records, or a run's log.
    beta
        Budget, a share of the full cost in (0, 1).
    strata
        Number of strata of CST.
    warmup
        How many outputs come first, all verified.

    Returns
    -------
    Odds or None
        None where the records do not represent all outputs, or have too few labels.
    """
    if len(table) > MOST:
        later = len(table) - warmup
        some = warmup + np.arange(MOST) * later // MOST
        table = table.take(np.append(np.arange(warmup), some))
    try:
        evidence = Evidence(table, warmup=warmup)
    except BadInputError:
        return None
    if np.isnan(evidence.stream.score[warmup:]).all():
        return None
    threshold, cst = (settled_share(evidence, beta, k) for k in (1, strata))
    labels = evidence.labels((2 * (cst > 0) + (threshold > 0)).astype(np.intp))
    weights = np.column_stack([cst - threshold, np.ones(cst.size)])
    (more, errors), _ = (sums.T for sums in evidence.totals(labels, weights, resample=True))
    gain = more / errors
    found = Interval.of_draws(gain, int((evidence.drawn & evidence.counted).sum()))
    return Odds(found, *chances_of(gain))
