"""The length of a run's warm-up."""

from __future__ import annotations

from gatekeeper.log.run_table import RunTable
from gatekeeper.policies import T0

__all__ = ["warmup_of"]


def warmup_of(run: RunTable | None) -> int:
    """T0 of the log's policy, as often as it was repeated; the default for records, and for a
    policy that has none.
    """
    if run is None:
        return T0
    given = run.settings["policy"].get("warmup")
    return (given if isinstance(given, int) and given > 0 else T0) * run.warmups
