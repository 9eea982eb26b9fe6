"""The paper's tables, replayed on streams calibrated to it: `gatekeeper paper` (docs/paper.md).

`published` has the paper's figures, `settings` and `streams` the synthetic data sets, `replays`
what the policies did on them, `tables` and `controls` both side by side, `closing` where they
differ, `drawing` the figures.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from gatekeeper.paper import controls, tables
from gatekeeper.paper.closing import closing
from gatekeeper.paper.drawing import write_figures
from gatekeeper.paper.replays import Replays
from gatekeeper.paper.table import PaperTable

__all__ = ["TABLES", "Replays", "closing", "write_figures"]

TABLES: Mapping[str, Callable[[Replays], list[PaperTable]]] = {
    "parameters": tables.parameters_table,
    "facts": tables.facts_table,
    "main": tables.main_table,
    "budgets": tables.budgets_table,
    "strata": tables.strata_table,
    "gate": tables.gate_table,
    "hga": tables.hga_table,
    "homogeneous": controls.homogeneous_table,
    "partial": controls.partial_table,
    "oracle-signal": controls.oracle_signal_table,
    "sweep": controls.sweep_table,
    "memory": controls.memory_table,
    "criteria": controls.criteria_table,
    "conformal": controls.conformal_table,
    "k-sweep": controls.strata_sweep_table,
    "routing": tables.routing_table,
}
