"""The page's figures on a terminal."""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path

from rich.console import Console, Group, RenderableType
from rich.live import Live
from rich.table import Table
from rich.text import Text

from gatekeeper.analysis.estimates import interval
from gatekeeper.log import PostgresRun
from gatekeeper.page.course import rate_over_stream
from gatekeeper.page.follower import Follower
from gatekeeper.page.sections import clock, reason_of, verdict_of
from gatekeeper.page.state import Figures, ShownOutput, WatchState, one_line
from gatekeeper.printable import printable
from gatekeeper.report.labels import POLICY_HEALTH, REASONS
from gatekeeper.wording import amount, cost_text, counted

__all__ = ["follow_on_terminal", "screen"]

TICK = 0.25
REST = 1.0  # at least so many times as long as a screen took, until the next
LEVELS = "▁▂▃▄▅▆▇█"
FIXED = 22  # lines of a screen without the last decisions


def follow_on_terminal(log: Path | PostgresRun, console: Console) -> None:
    """Show the figures until Ctrl-C; once, if the console is no terminal.

    Raises
    ------
    LogError
        For a file that is no log, has no run in it yet, or cannot be read any more.
    """
    follower = Follower(log)
    try:
        if not console.is_terminal:
            while follower.advance(60.0):
                pass
            console.print(screen(follower, time.time(), rows=10))
            return
        with Live(console=console, screen=True, auto_refresh=False) as live:
            _follow(follower, live, console)
    finally:
        follower.close()


def _follow(follower: Follower, live: Live, console: Console) -> None:
    due = 0.0
    while True:
        changed = follower.advance(0.2)
        begun = time.monotonic()
        if begun >= due:
            rows = max(console.height - FIXED, 1)
            live.update(screen(follower, time.time(), rows=rows), refresh=True)
            due = time.monotonic() + REST * (time.monotonic() - begun)
        if not (changed and follower.behind):
            time.sleep(TICK)


def screen(follower: Follower, now: float, *, rows: int) -> RenderableType:
    """All figures of one moment.

    Parameters
    ----------
    follower
        Follows the log.
    now
        Seconds since the epoch, for ages.
    rows
        How many of the last decisions.
    """
    state = follower.state
    figures = state.figures()
    read = f"{counted(state.ledger.seen, 'output')}, {counted(state.seq, 'event')}"
    title = f"{follower.name}: {read}"
    if follower.behind:
        title += f"; {counted(follower.behind, 'event')} still to be read"
    table = Table(box=None, show_header=False, pad_edge=False)
    table.add_column(style="bold", no_wrap=True)
    table.add_column(overflow="ellipsis")
    for name, value in _figures(state, figures, now):
        table.add_row(name, _text(value))
    return Group(
        Text(printable(title), style="bold"), Text(), table, Text(), _reasons(figures), Text(),
        _last(list(state.last)[-rows:]),
    )  # fmt: skip


def _figures(state: WatchState, figures: Figures, now: float) -> Iterator[tuple[str, str]]:
    ledger, summary, rate = state.ledger, figures.summary, figures.rate
    unit = ledger.budget.unit
    pace = "" if state.pace is None else f"; pace {state.pace:.1%}"
    yield (
        "budget",
        f"{cost_text(ledger.spent)} spent and {cost_text(ledger.held)} reserved of "
        f"{amount(ledger.cap, unit)}{pace}",
    )
    found = f"{summary.errors_found:,} in {counted(summary.verified, 'check')}"
    if summary.random_found is not None:
        about = "" if summary.all_checked else ", estimated"
        found += f"; the same number at random: {summary.random_found:.1f}{about}"
    yield "wrong found", found
    if rate.weighted is None:
        yield "wrong, of all", rate.why
    else:
        how = interval(rate.weighted)
        between = how if how == "known" else f"95 % interval: {how}"
        yield "wrong, of all", f"{rate.weighted.value:.1%}, {between}"
        yield "over the stream", _course(figures)
    drift = f"; last drift: {state.drift}" if state.drift else ""
    yield "policy health", POLICY_HEALTH[state.health] + drift
    for name, since in (
        ("open verifications", state.under_way()),
        ("wait for a person", [at for _, at, _ in state.waiting()]),
    ):
        oldest = f", the oldest since {clock(min(since), now)}" if since else ""
        yield name, f"{len(since):,}{oldest}"
    for note in state.notes():
        yield "note", note


def _course(figures: Figures) -> str:
    """The rate of each part of the stream, as a row of bars."""
    parts = [part.rate for part in rate_over_stream(figures)]
    most = max((rate.value for rate in parts if rate is not None), default=0.0) or 1.0
    bars = (
        "·" if rate is None else LEVELS[round(rate.value / most * (len(LEVELS) - 1))]
        for rate in parts
    )
    return f"{''.join(bars)}  (highest: {most:.1%})"


def _reasons(figures: Figures) -> Table:
    table = Table(box=None, pad_edge=False)
    table.add_column("reason")
    for name in ("outputs", "selected", "verdicts", "wrong"):
        table.add_column(name, justify="right")
    for reason in REASONS:
        if reason in figures.reasons:
            counts = figures.reasons[reason]
            table.add_row(reason_of(reason), *(f"{count:,}" for count in counts))
    return table


def _last(shown: list[ShownOutput]) -> Table:
    table = Table(box=None, pad_edge=False, expand=True)
    for name in ("last decisions", "reason", "verdict"):
        table.add_column(name, no_wrap=True)
    table.add_column("text", no_wrap=True, overflow="ellipsis", ratio=1)  # what is left
    for each in reversed(shown):
        verdict = verdict_of(each).partition(":")[0]
        cells = (one_line(each.id, 24), reason_of(each.decision.reason), verdict, each.start)
        table.add_row(*map(_text, cells))
    return table


def _text(value: str) -> Text:
    """A text from a log, without markup and without characters that a terminal executes."""
    return Text(printable(value), overflow="ellipsis")
