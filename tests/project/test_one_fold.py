"""One fold over the events of a log serves resume, look-ups, reports, records and the live page."""

from __future__ import annotations

import ast
from pathlib import Path

from gatekeeper.gate.state import GateState
from gatekeeper.log import events
from gatekeeper.log.fold import LogState
from gatekeeper.log.run_table import _TableState
from gatekeeper.page.state import WatchState

ROOT = Path(__file__).parents[2]
KINDS = {name for name in events.__all__ if isinstance(getattr(events, name), type)}
# The files that branch on the kind of an event, and what each adds to the fold.
BRANCHES = {
    "gatekeeper/log/fold.py": "the fold itself",
    "gatekeeper/gate/state.py": "the policy, which a gate has beside the account",
    "gatekeeper/gate/following.py": "which events of other processes apply here, under which id",
    "gatekeeper/page/state.py": "the rows and times that the live page shows",
    "gatekeeper/log/run_table.py": "the columns that outputs become",
}


def kinds_matched(file: Path) -> set[str]:
    """The kinds of events that a file's `match` statements tell apart."""
    return {
        ast.unparse(pattern.cls)
        for pattern in ast.walk(ast.parse(file.read_text()))
        if isinstance(pattern, ast.MatchClass)
    } & KINDS


def test_few_places_branch_on_the_kind_of_an_event() -> None:
    assert len(KINDS) >= 9
    found = {
        str(file.relative_to(ROOT)): kinds
        for folder in ("gatekeeper", "adapters", "benchmarks", "examples")
        for file in sorted((ROOT / folder).rglob("*.py"))
        if not any(parent.is_symlink() for parent in file.parents)
        and (kinds := kinds_matched(file))
    }
    assert set(found) == set(BRANCHES)
    assert len(found["gatekeeper/log/fold.py"]) == 9  # every kind has a transition


def test_states_of_a_log_are_that_fold() -> None:
    assert issubclass(GateState, LogState)
    assert issubclass(_TableState, LogState)
    assert issubclass(WatchState, LogState)
