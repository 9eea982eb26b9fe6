"""Follows a log: folds what has been appended since the last time."""

from __future__ import annotations

import os
from collections.abc import Iterable
from pathlib import Path
from time import perf_counter, sleep

from gatekeeper.errors import LogError
from gatekeeper.log import Decided, FollowedLog, Log, PostgresRun, open_log
from gatekeeper.log.decoding import Naming
from gatekeeper.log.place import place_of
from gatekeeper.log.run import fresh_ledger
from gatekeeper.page.state import WatchState, one_line

__all__ = ["Follower"]

PIECE = 64  # events after which other threads get their turn


class Follower:
    """The state of a log that a gate writes. Not thread-safe.

    Parameters
    ----------
    log : str, Path, PostgresRun or FollowedLog
        A place, which is opened read-only, or a log in memory, which stays the caller's.

    Attributes
    ----------
    name : str
        Name of the log.
    state : WatchState
        After the events read so far.

    Raises
    ------
    LogError
        For a file that is no log or has no run in it yet.
    """

    def __init__(self, log: str | Path | PostgresRun | FollowedLog) -> None:
        self._place: Path | PostgresRun | None = None
        self._opened: Log | None = None
        self.name = "a log in memory"
        if isinstance(log, str | Path | PostgresRun):
            self._place = place = place_of(log)
            self.name = place.name if isinstance(place, Path) else str(place)
            log = self._opened = open_log(place, read_only=True)
        try:
            self._begin(log)
        except LogError:
            self.close()
            raise

    def _begin(self, log: FollowedLog) -> None:
        """All that is kept is of this log, from here on."""
        self.state = WatchState(fresh_ledger(log.settings(), self._place or self.name))
        self._log = log
        self._file = self._look()
        self._starts: dict[int, str] = {}
        self.events = log.last()

    def advance(self, seconds: float) -> bool:
        """Fold further events for at most about so long; whether the state is another one.

        A file that another one has replaced, or was copied over, is read from its beginning.

        Raises
        ------
        LogError
            For a log that cannot be read any more.
        """
        replaced = self._is_changed() and self._open_again()
        state, before = self.state, self.state.seq
        end = perf_counter() + seconds
        with Naming(repr(self.name)):
            for stamped in self._log.stamped_after(before):
                state.take(stamped)
                if state.seq % PIECE == 0:
                    sleep(0)  # an event loop in another thread must not wait for long
                    if perf_counter() > end:
                        break
        if state.seq == before:
            return replaced
        self.events = max(self._log.last(), state.seq)
        return True

    @property
    def behind(self) -> int:
        """How many events had not been read when `advance` returned."""
        return self.events - self.state.seq

    def decided(self, seq: int) -> Decided | None:
        """The decision of this number, with the output's text; None for another event."""
        for stamped in self._log.stamped_after(seq - 1):
            if stamped.seq == seq and isinstance(stamped.event, Decided):
                return stamped.event
            return None
        return None

    def starts(self, seqs: Iterable[int]) -> list[str]:
        """How the texts of these decisions start, on one line; kept until others are asked for."""
        kept = self._starts
        self._starts = {seq: kept[seq] if seq in kept else self._start(seq) for seq in seqs}
        return list(self._starts.values())

    def _start(self, seq: int) -> str:
        decided = self.decided(seq)
        return "" if decided is None else one_line(decided.generation.text)

    def close(self) -> None:
        """Close what was opened."""
        if self._opened is not None:
            self._opened.close()

    def _look(self) -> tuple[int, ...] | None:
        """Another one if the file is another one, or was written by any program."""
        if not isinstance(self._place, Path):
            return None
        try:
            found = os.stat(self._place)
        except OSError:
            return None
        return found.st_dev, found.st_ino, found.st_size, found.st_mtime_ns

    def _is_changed(self) -> bool:
        """Whether the file may be another log; False while there is none: it may still come."""
        now = self._look()
        return now is not None and now != self._file

    def _open_again(self) -> bool:
        """Open the file again, of which SQLite keeps parts in memory; whether it is another log."""
        self.close()
        self._file = None  # until it is open: also the first one may come back
        assert self._place is not None
        state, now = self.state, self._look()
        log = self._opened = open_log(self._place, read_only=True)
        last = next(log.stamped_after(state.seq - 1), None) if state.seq else None
        is_same = last is not None and (last.seq, last.at) == (state.seq, state.at)
        if is_same:
            self._log = log
        else:
            self._begin(log)
        self._file = now
        return not is_same
