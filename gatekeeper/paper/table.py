"""A table of figures beside the paper's, as text, Markdown and JSON."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from math import isnan
from typing import Any, Literal

from rich.table import Table
from rich.text import Text

from gatekeeper.stats.interval import Interval
from gatekeeper.wording import minus, signed

__all__ = ["Cell", "PaperTable"]

Kind = Literal["rate", "gain", "open", "value"]


@dataclass(frozen=True, slots=True)
class Cell:
    """One figure, the paper's beside it, and the difference.

    kind   "rate" in [0, 1]; "gain", a difference of rates in percentage points; "open", the share
           of runs whose gate opened, the paper's 1 or 0; "value", any other number
    """

    ours: float
    paper: float | None = None
    kind: Kind = "rate"
    interval: Interval | None = None  # of ours
    paper_interval: Interval | None = None

    @property
    def difference(self) -> float:
        """Ours minus the paper's, in the unit of the figure; NaN where either is missing."""
        return float("nan") if self.paper is None else self.ours - self.paper

    def __str__(self) -> str:
        """Ours, the paper's, and the difference: `.612 (.610, +.002)`."""
        ours = self._one(self.ours, self.interval)
        if self.paper is None:
            return ours
        paper = self._one(self.paper, self.paper_interval)
        if self.kind == "open":
            return f"{ours} ({'open' if self.paper else 'closed'})"
        if self.kind == "gain":
            return f"{ours} ({paper})"
        return f"{ours} ({paper}, {_short(self.difference, sign=True)})"

    def _one(self, value: float, interval: Interval | None) -> str:
        if isnan(value):
            return "–"
        if self.kind == "open":
            return f"open {value:.0%}"
        if self.kind == "gain":
            mean = signed(value, 1)
            return (
                mean
                if interval is None
                else f"{mean} [{signed(interval.low, 1)}, {signed(interval.high, 1)}]"
            )
        if self.kind == "value":
            return f"{value:.4f}"
        return _short(value)


@dataclass(frozen=True, slots=True)
class PaperTable:
    """Rows of cells; `labels` are the heads of the columns that hold the rows' names."""

    name: str
    title: str
    labels: tuple[str, ...]
    columns: tuple[str, ...]
    note: str = ""
    rows: list[tuple[tuple[str, ...], dict[str, Cell]]] = field(default_factory=list)

    def add(self, labels: tuple[str, ...], cells: dict[str, Cell]) -> None:
        """A row; a column without a cell stays empty."""
        self.rows.append((labels, cells))

    def rich(self) -> Table:
        """The table for a terminal."""
        table = Table(title=Text(self.title), title_justify="left", caption_justify="left")
        table.caption = Text(self.note) if self.note else None
        for label in self.labels:
            table.add_column(Text(label), overflow="fold")
        for column in self.columns:
            table.add_column(Text(column), justify="right")
        for row in self._texts():
            table.add_row(*map(Text, row))
        return table

    def markdown(self) -> str:
        heads = (*self.labels, *self.columns)
        lines = [
            f"## {self.title}",
            "",
            _line(heads),
            _line(("---",) * len(self.labels) + ("---:",) * len(self.columns)),
            *map(_line, self._texts()),
        ]
        return "\n".join([*lines, *(["", self.note] if self.note else []), ""])

    def json(self) -> dict[str, Any]:
        """Plain values; a figure that is not defined is null."""
        return {
            "name": self.name,
            "title": self.title,
            "note": self.note,
            "rows": [
                {
                    **dict(zip(self.labels, labels, strict=True)),
                    **{column: _plain(cell) for column, cell in row.items()},
                }
                for labels, row in self.rows
            ],
        }

    def _texts(self) -> Iterator[tuple[str, ...]]:
        for labels, row in self.rows:
            yield (*labels, *(str(row[c]) if c in row else "" for c in self.columns))


def _plain(cell: Cell) -> dict[str, Any]:
    return {
        "ours": None if isnan(cell.ours) else cell.ours,
        "paper": cell.paper,
        "difference": None if isnan(cell.difference) else cell.difference,
        "interval": _ends(cell.interval),
        "paper_interval": _ends(cell.paper_interval),
        "kind": cell.kind,
    }


def _ends(interval: Interval | None) -> list[float] | None:
    if interval is None or isnan(interval.value):
        return None
    return [interval.low, interval.high]


def _line(cells: tuple[str, ...]) -> str:
    return f"| {' | '.join(cells)} |"


def _short(value: float, *, sign: bool = False) -> str:
    """Three places without the leading zero, as the paper writes rates: .612, 1.000, +.002."""
    if isnan(value):
        return "–"
    text = signed(value, 3) if sign else minus(f"{value:.3f}")
    return text.replace("0.", ".", 1) if abs(value) < 0.9995 else text
