"""Whether the signal is comparable across cost strata.

The score s is fitted to the first T0 records, as the policies do; all figures are over the records
after them that have a signal. `strata` has the figures and the tests, `replays` the replays
of CST and of control partitions, `odds` those of CST against Threshold, `rules` the conclusion,
`data` their types. Which policy to use, of all, is decided in `gatekeeper.analysis.advice`.
"""

from gatekeeper.analysis.diagnosis.data import (
    Condition,
    Diagnosis,
    Odds,
    Partition,
    PartitionResult,
    StratumFigures,
    Thresholds,
)
from gatekeeper.analysis.diagnosis.diagnose import diagnose, orders_for
from gatekeeper.analysis.diagnosis.replays import SWEEP

__all__ = [
    "SWEEP",
    "Condition",
    "Diagnosis",
    "Odds",
    "Partition",
    "PartitionResult",
    "StratumFigures",
    "Thresholds",
    "diagnose",
    "orders_for",
]
