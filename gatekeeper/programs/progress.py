"""The progress bar of every program: on a terminal's standard error, and nowhere else."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

__all__ = ["progress"]


@contextmanager
def progress(title: str, total: int) -> Iterator[Callable[[int, str], None]]:
    """Show a progress bar.

    Yields
    ------
    callable
        `advance(done, note)`: how many more are done, and a note beside the bar.
    """
    console = Console(stderr=True)
    with Progress(
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TextColumn("{task.fields[note]}"),
        TimeElapsedColumn(),
        console=console,
        disable=not console.is_terminal,
    ) as bar:
        row = bar.add_task(title, total=total, note="")
        yield lambda done, note: bar.update(row, advance=done, note=note)
