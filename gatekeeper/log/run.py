"""The log of a finished or a running gate: its settings, results and account."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any

from gatekeeper.budget import Budget, Ledger
from gatekeeper.errors import BadInputError, LogError, MissingDependencyError
from gatekeeper.log.decoding import Naming
from gatekeeper.log.events import Decided, FingerprintChanged, HealthChanged
from gatekeeper.log.fold import LogState, Output
from gatekeeper.log.opening import open_log
from gatekeeper.log.place import PostgresRun
from gatekeeper.log.rows import COLUMNS, encodable, row_of
from gatekeeper.notebook import as_html
from gatekeeper.types import GateResult, Generation, PolicyHealth
from gatekeeper.wording import counted

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["HealthChange", "Run", "fresh_ledger", "read_run"]

SHOWN = ("id", "verdict", "detail", "reason", "score", "cost", "text")  # in a notebook
FIRST = 10


@dataclass(frozen=True, slots=True)
class HealthChange:
    """Whether what the policy learned holds, from a point of the stream on."""

    after: int  # outputs decided on before
    health: PolicyHealth
    why: str  # the reason of the drift, in words; "" without drift


@dataclass(frozen=True, repr=False)
class Run:
    """A run, as read from its log.

    Attributes
    ----------
    settings
        Settings of the gate that wrote the log, as stored.
    ledger
        The gate's account: the same ledger after the same events.
    outputs, results
        Each output and its result, by id, in the order of the decisions.
    generations
        The outputs themselves, without token arrays, by id; empty if they were left out.
    external
        Ids with a verdict from outside, which cost nothing.
    fingerprint
        The last one; early logs have none.
    health_changes
        In order; the policy is cold until the first.
    warmups
        1, and one more for each time that the warm-up began again without a verdict.
    """

    settings: Mapping[str, Any]
    ledger: Ledger
    outputs: Mapping[str, Output]
    generations: Mapping[str, Generation]
    fingerprint: FingerprintChanged | None
    health_changes: tuple[HealthChange, ...]
    warmups: int

    @cached_property
    def results(self) -> dict[str, GateResult]:
        return {id_: output.result() for id_, output in self.outputs.items()}

    @cached_property
    def external(self) -> frozenset[str]:
        return frozenset(id_ for id_, output in self.outputs.items() if output.external)

    def rows(self) -> Iterator[dict[str, Any]]:
        """Each output as a flat row: text, verdict, detail, reason, signals, cost.

        Yields
        ------
        dict
            With the names of `gatekeeper.log.rows.COLUMNS`, in that order; None: not known.

        Raises
        ------
        BadInputError
            If the texts were left out when the log was read.
        """
        if len(self.generations) < len(self.outputs):
            raise BadInputError("this log was read without its texts: read_run(path) reads them")
        for id_, output in self.outputs.items():
            yield row_of(output, self.generations[id_])

    def __repr__(self) -> str:
        return f"<Run of {counted(len(self.outputs), 'output')}>"

    def _repr_html_(self) -> str:
        shown = [[row[name] for name in SHOWN] for row in islice(self.rows(), FIRST)]
        title = f"{counted(len(self.outputs), 'output')}, of which the first {len(shown)}"
        return as_html(title, shown, heads=SHOWN)

    def to_pandas(self) -> pd.DataFrame:
        """The rows as a table of pandas, with nullable columns.

        Raises
        ------
        MissingDependencyError
            Without pandas (extra `tables`).
        """
        try:
            import pandas as pd
        except ImportError:
            raise MissingDependencyError("pandas", extra="tables", needed_for="a table") from None
        kinds = {str: "string", int: "Int64", bool: "boolean", float: "float64"}
        return pd.DataFrame(map(encodable, self.rows()), columns=list(COLUMNS)).astype(
            {name: kinds[kind] for name, kind in COLUMNS.items()}
        )


def fresh_ledger(settings: Mapping[str, Any], name: object) -> Ledger:
    """The account of a log's gate before its first event.

    Parameters
    ----------
    settings
        Of the log.
    name
        Name of the log, for messages.

    Raises
    ------
    LogError
        If there are none yet, or they are not those of a gate.
    """
    if not settings:
        raise LogError(
            f"log {str(name)!r} has no run in it yet: give the log of a gate that has begun"
        )
    try:
        budget, _ = Budget(**settings["budget"]), dict(settings["policy"])
    except (KeyError, TypeError, ValueError) as e:
        raise LogError(f"log {str(name)!r} has no settings of a gate: {e!r}") from e
    return Ledger(budget, budget.max_cost or 1.0)


def read_run(path: str | Path | PostgresRun, *, texts: bool = True) -> Run:
    """Apply a log's events, read-only, also while a gate writes it.

    Parameters
    ----------
    path
        A gate's log: a file, or a run in PostgreSQL.
    texts
        False leaves out the outputs themselves, which need most of the memory.

    Raises
    ------
    LogError
        For a file that is not a log, or has no settings of a gate, and for events that a gate
        cannot have written.
    """
    changes = []
    generations: dict[str, Generation] = {}
    with open_log(path, read_only=True) as log:
        settings = log.settings()
        state = LogState(fresh_ledger(settings, path))
        with Naming(repr(str(path))):
            for event in log.events():
                state.apply(event)
                if isinstance(event, HealthChanged):
                    changes.append(HealthChange(state.ledger.seen, event.health, event.why))
                elif texts and isinstance(event, Decided):
                    generations[event.id] = event.generation
    return Run(
        settings,
        state.ledger,
        state.outputs,
        generations,
        fingerprint=state.fingerprint,
        health_changes=tuple(changes),
        warmups=state.warmups,
    )
