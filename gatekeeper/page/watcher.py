"""Follows a log and renders the page's sections, once for all readers."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from threading import Lock

from gatekeeper.errors import LogError
from gatekeeper.log import FollowedLog, PostgresRun
from gatekeeper.page import document
from gatekeeper.page.follower import Follower
from gatekeeper.page.sections import people, sections_of
from gatekeeper.page.state import ShownOutput, key_of
from gatekeeper.report.html import Markup, Section
from gatekeeper.types import SharedStatus

__all__ = ["READ_ONLY", "Rendered", "Watcher"]

READ_ONLY = "Verdicts can be given with the link that was printed when the page was started."
QUEUE = 20  # outputs that wait for a person, shown at once
PIECE = 0.2  # seconds of reading at a time
REST, REST_BEHIND = 1.0, 4.0  # times as long as rendering took, until the next; while it reads
FRESH = 1.0  # seconds for which what was rendered will do for a page that is opened


@dataclass(frozen=True, slots=True)
class Rendered:
    """The page of one moment."""

    name: str
    status: Markup
    sections: Mapping[str, Section]  # but for the queue
    queue: Section
    queue_with_buttons: Section

    def all(self, *, writable: bool) -> dict[str, Section]:
        """Every section by name."""
        queue = self.queue_with_buttons if writable else self.queue
        return {**self.sections, "people": queue}

    def parts(self, *, writable: bool) -> dict[str, str]:
        """What may change, by name."""
        return {"status": self.status, **self.all(writable=writable)}

    def page(self, *, writable: bool) -> str:
        """The whole page."""
        return document.page(self.name, self.status, self.all(writable=writable))


class Watcher:
    """Thread-safe; each call may take some tenths of a second.

    Parameters
    ----------
    log : str, Path, PostgresRun or FollowedLog
        What to follow; a file is opened by the first call.
    read_only : str
        Why a reader has no buttons, in a sentence.
    shared : callable
        State of the processes on the gate's run; None if the run is not shared.
    """

    def __init__(
        self,
        log: str | Path | PostgresRun | FollowedLog,
        *,
        read_only: str = READ_ONLY,
        shared: Callable[[], SharedStatus | None] = lambda: None,
    ) -> None:
        self._log, self._read_only, self._ask_shared = log, read_only, shared
        self._shared: SharedStatus | None = None
        self._lock = Lock()
        self._follower: Follower | None = None
        self._rendered: Rendered | None = None
        self._due, self._changed, self._at = 0.0, True, 0.0
        self._error = ""

    def advance(self, seconds: float = PIECE, *, at_once: bool = False) -> Rendered:
        """Read what is new and render it if that is due.

        Parameters
        ----------
        seconds : float
            For reading, about, at most.
        at_once : bool
            Render what is new even if that is not due.

        Raises
        ------
        LogError
            For a file that is no log or has no run in it yet. A log that cannot be read any more
            is a line of the page.
        """
        with self._lock:
            follower = self._opened()
            before, self._error = self._error, ""
            try:
                self._changed |= follower.advance(seconds)
            except LogError as error:
                self._error = str(error)
            self._changed |= self._error != before
            shared, self._shared = self._shared, self._ask_shared()
            self._changed |= self._shared != shared
            now = time.monotonic()
            open_ = bool(follower.state.outputs)  # their ages change
            if self._rendered is None or (
                (at_once or now >= self._due) and (self._changed or open_)
            ):
                self._rendered = self._render(follower)
                end = time.monotonic()
                rest = REST_BEHIND if follower.behind else REST
                self._due, self._changed, self._at = end + rest * (end - now), False, end
            return self._rendered

    @property
    def latest(self) -> Rendered | None:
        """The page as it was rendered last."""
        return self._rendered

    @property
    def fresh(self) -> Rendered | None:
        """What was rendered last, if it is at most a second old."""
        return self._rendered if time.monotonic() < self._at + FRESH else None

    @property
    def is_behind(self) -> bool:
        """Whether there was more to read than was read."""
        return self._follower is not None and self._follower.behind > 0

    def output(self, key: int) -> str | None:
        """The page of an output that has a row; None for another."""
        with self._lock:
            follower = self._opened()
            shown = follower.state.find(key)
            decided = None if shown is None else follower.decided(shown.seq)
            if shown is None or decided is None:
                return None
            unit = follower.state.ledger.budget.unit
            return document.output_page(shown, decided.generation, unit)

    def waits(self, key: int) -> str | None:
        """The id of an output that waits for a person; None for another."""
        with self._lock:
            waiting = self._opened().state.waiting()
            ids = (output.candidate.id for _, _, output in waiting)
            return next((id_ for id_ in ids if key_of(id_) == key), None)

    def close(self) -> None:
        """Close the file."""
        with self._lock:
            if self._follower is not None:
                self._follower.close()

    def _opened(self) -> Follower:
        if self._follower is None:
            self._follower = Follower(self._log)
        return self._follower

    def _render(self, follower: Follower) -> Rendered:
        state, figures = follower.state, follower.state.figures()
        waiting, now = state.waiting(), time.time()
        first = waiting[:QUEUE]
        starts = follower.starts(seq for seq, _, _ in first)
        rows = [
            ShownOutput(seq, at, output.candidate.id, output.decision, start, output.unavailable)
            for (seq, at, output), start in zip(first, starts, strict=True)
        ]
        queue, with_buttons = (
            people(rows, len(waiting), now, writable=writable, read_only=self._read_only)
            for writable in (False, True)
        )
        return Rendered(
            follower.name,
            document.status_line(state.ledger.seen, state.seq, follower.behind, self._error),
            sections_of(state, figures, now, self._shared),
            queue,
            with_buttons,
        )
