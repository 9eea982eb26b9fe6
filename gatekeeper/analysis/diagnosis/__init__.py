"""Whether the signal is comparable across cost strata, and which policy to use then.

The score s is fitted to the first T0 records, as the policies do; all figures are over the records
after them that have a signal. `strata` has the figures and the tests, `replays` the replays
of CST and of control partitions, `odds` the better bet, `rules` the conclusion, `data` their types.
"""

from gatekeeper.analysis.diagnosis.data import (
    Advice,
    Condition,
    Diagnosis,
    Odds,
    Partition,
    PartitionResult,
    StratumFigures,
)
from gatekeeper.analysis.diagnosis.diagnose import diagnose, orders_for
from gatekeeper.analysis.diagnosis.replays import SWEEP

__all__ = [
    "SWEEP",
    "Advice",
    "Condition",
    "Diagnosis",
    "Odds",
    "Partition",
    "PartitionResult",
    "StratumFigures",
    "diagnose",
    "orders_for",
]
