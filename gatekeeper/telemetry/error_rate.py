"""The error rate of all outputs of a log that is being written, estimated beside the gate."""

from __future__ import annotations

import logging
from pathlib import Path
from threading import Lock, Thread
from time import monotonic

from gatekeeper.analysis.estimates import estimate
from gatekeeper.arguments import check_seconds
from gatekeeper.errors import GatekeeperError
from gatekeeper.io.records import records_of_log
from gatekeeper.log import PostgresRun
from gatekeeper.log.place import place_of
from gatekeeper.stats.interval import Interval

__all__ = ["LoggedErrorRate"]

_LOG = logging.getLogger("gatekeeper")
SHARE = 0.02  # of a processor, at most, for reading the log again and again


class LoggedErrorRate:
    """Called, it returns the last estimate, and begins a new one in a thread if that is old.

    A call never waits for an estimate. The first one returns None.

    Parameters
    ----------
    log : str, Path or PostgresRun
        The gate's.
    every : float
        Seconds between estimates, at least; more where reading the log takes long.

    Raises
    ------
    BadInputError
        For another value.
    """

    def __init__(self, log: str | Path | PostgresRun, *, every: float = 60.0) -> None:
        self._log, self._every = place_of(log), check_seconds("every", every)
        self._rate: Interval | None = None
        self._due = 0.0
        self._thread = Thread()
        self._starting = Lock()  # a server may answer several scrapes at once

    def __call__(self) -> Interval | None:
        if self._starting.acquire(blocking=False):
            try:
                if monotonic() >= self._due and not self._thread.is_alive():  # or after a fork
                    self._thread = Thread(
                        target=self._estimate, name="gatekeeper error rate", daemon=True
                    )
                    self._thread.start()
            finally:
                self._starting.release()
        return self._rate

    def _estimate(self) -> None:
        begun = monotonic()
        try:
            found = estimate(records_of_log(self._log))
            self._rate = found.assisted or found.weighted
        except (GatekeeperError, OSError) as error:
            _LOG.info("gatekeeper: %s: no error rate: %s", self._log, error)  # no output yet
        finally:
            took = monotonic() - begun
            self._due = monotonic() + max(self._every, took / SHARE)
