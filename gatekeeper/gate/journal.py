"""A gate's log and the snapshots in it: when one is written, and which gates may read it."""

from __future__ import annotations

import json
import platform
import time
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import suppress
from functools import cache
from hashlib import sha256
from math import inf
from pathlib import Path
from typing import Any

from gatekeeper.errors import LogError
from gatekeeper.gate.admission import Admission
from gatekeeper.gate.lock import Inside
from gatekeeper.gate.state import GateState
from gatekeeper.gate.transaction import Transaction
from gatekeeper.log import Decided, Event, JointLog, Log, SnapshotLog
from gatekeeper.types import SharedStatus

__all__ = ["Journal", "code_fingerprint"]

FEW = 5000  # events: applying fewer again is fast enough
SHARE = 1 / 32  # of all events: that many new ones are worth a snapshot at opening and closing
OURS = "gatekeeper."  # modules whose source is in the fingerprint
_LOADED = time.time()


class Journal:
    """The log of a gate, with snapshots of the gate's state.

    A snapshot is written when the log has doubled since the last one, and, when a gate opens or
    closes the log, if 1/32 of it is new: so all snapshots of a stream together take time in
    proportion to its length. A snapshot that cannot be written is left out, because the events
    suffice.

    It is read only by a gate that computes the same: with the same code, settings and initial
    state. A gate with a policy of another package writes none, because a change of that policy's
    code could not be detected.

    Parameters
    ----------
    log
        The gate's. One that is no `SnapshotLog` has no snapshots.
    state, admission
        The gate's, fresh.
    transaction
        In which the gate makes its changes.
    settings
        JSON values by group and name, which must not have changed.
    """

    def __init__(
        self,
        log: Log,
        state: GateState,
        admission: Admission,
        transaction: Transaction,
        *,
        settings: Mapping[str, Mapping[str, Any]],
    ) -> None:
        self._log, self._state, self._admission = log, state, admission
        self._transaction = transaction
        self._joint = log if isinstance(log, JointLog) else None  # once: a protocol answers slowly
        self.syncing = Inside()
        self._snapshots: SnapshotLog | None = None
        self._before = self._new = 0  # events that the last snapshot has, and those since
        self._due: float = inf
        if isinstance(log, SnapshotLog) and settings["policy"]["type"].startswith(OURS):
            self._snapshots, self._due = log, FEW
            self._initial = json.dumps([settings, state.snapshot(), admission.state()])

    def replay(self) -> Iterator[Event]:
        """Restore the state from the snapshot, if there is one; then all events that it lacks."""
        events = self._log.events()
        if (log := self._snapshots) and (key := self._key()) and (found := log.snapshot(key)):
            self._state.restore(found.state["gate"], log.decided_ids(found.seq))
            self._admission.restore(found.state["admission"])
            self._before, events = found.seq, log.events_after(found.seq)
        for event in events:
            yield event
            self._new += 1

    def append(self, events: Sequence[Event]) -> None:
        """Store all of the events, or none; within a transaction, after the state has applied them.

        Raises
        ------
        LogError
            Where they cannot be stored.
        """
        self._log.append(events)
        self._new += len(events)
        if self._new >= self._due and self._transaction.complete(depth=1):
            self._keep()

    def mine(self, ids: Collection[str]) -> set[str]:
        """Those of these open outputs that this gate may verify: all, where it writes alone."""
        if self._joint is None:
            return set(ids)
        self._transaction.check_process()
        return self._joint.mine(ids)

    def check_mine(self, id_: str) -> None:
        """Raises where another process decided on this open output, and is still there."""
        if not self.mine([id_]):
            raise self._transaction.refusal(
                f"id={id_!r} was decided on by another process: verify it there, or report its "
                "verdict there; any process can do so once that one has ended"
            )

    def shared(self) -> SharedStatus | None:
        """State of the processes that write the log; None if this gate writes it alone."""
        return None if self._joint is None else self._joint.status()

    def sync(self) -> None:
        """Wait until what was appended is stored, where `append` does not. Not under the gate's
        lock; raises as `append`."""
        if self._joint is not None:
            self._transaction.check_process()
            self.syncing.call(self._joint.sync)

    def events(self, id_: str) -> Iterator[Event]:
        """Those of one output, its decision first. If they cannot be read, the gate can go on."""
        try:
            self._transaction.check_process()
            events = self._log.events(id_)
            first = next(events, None)
            if not isinstance(first, Decided):  # the snapshot knew of it
                raise LogError(f"the log has no decision on id={id_!r} any more: it was edited")
            yield first
            yield from events
        except LogError as error:
            self._transaction.harmless(error)
            raise

    def close(self) -> None:
        try:
            self.keep()
        finally:
            self._log.close()

    def keep(self) -> None:
        """Write a snapshot, between two changes, if enough is new."""
        worth = self._new >= max(FEW, SHARE * (self._before + self._new))
        if worth and self._transaction.complete(depth=0):
            self._keep()

    def _keep(self) -> None:
        if self._snapshots is not None and (key := self._key()):
            state = {"gate": self._state.snapshot(), "admission": self._admission.state()}
            with suppress(LogError):
                self._snapshots.keep_snapshot(key, state)
        self._before, self._new = self._before + self._new, 0
        self._due = max(FEW, self._before)

    def _key(self) -> str | None:
        """Equal for gates that compute the same; None if that cannot be known."""
        code = code_fingerprint()
        return code and sha256(f"{code} {self._initial}".encode()).hexdigest()


@cache
def code_fingerprint() -> str | None:
    """Hash of everything that decisions depend on: this package's source, Python, numpy, SciPy.

    None where there is no source, or where it was changed after this process had loaded it.
    """
    folder = Path(__file__).parents[1]
    files = sorted(folder.rglob("*.py"))
    if not files or max(file.stat().st_ctime for file in files) >= _LOADED:
        return None
    from importlib import metadata  # slow to import

    code = sha256(f"{platform.python_version()} {platform.machine()}".encode())
    for package in ("numpy", "scipy"):
        with suppress(metadata.PackageNotFoundError):
            code.update(f" {package} {metadata.version(package)}".encode())
    for file in files:
        text = file.read_bytes()
        code.update(f" {file.relative_to(folder)} {len(text)} ".encode())
        code.update(text)
    return code.hexdigest()
