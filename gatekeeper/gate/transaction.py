"""Changes of a gate, one after the other, and none after an incomplete one."""

from __future__ import annotations

import os
from types import TracebackType

from gatekeeper.errors import BadInputError, GatekeeperError, LogError, LogLockedError

__all__ = ["Transaction"]

_process = object()  # another one after a fork: to compare them is cheaper than `getpid`


def _forked() -> None:
    global _process
    _process = object()


os.register_at_fork(after_in_child=_forked)


class Transaction:
    """A change of policy, ledger and log together. Entered under the gate's lock, and again inside
    for a part that may fail alone.

    If a change is interrupted (by a full disk, by Ctrl-C), memory may be ahead of the log. So the
    gate stops for good; the log is correct, and a new gate can continue it. Not a `contextmanager`,
    for speed: each output has a transaction. The lock is not taken here: an interrupt between these
    lines would keep it for ever.
    """

    def __init__(self) -> None:
        self.closed = False
        self._process = _process
        self._broken: BaseException | None = None
        self._depth = 0

    def has_forked(self) -> bool:
        """Whether this process is a fork of the one that made the gate."""
        return self._process is not _process

    def complete(self, depth: int) -> bool:
        """Whether memory and log agree, at this depth of entering.

        They do not after an incomplete change, and while a signal handler makes a change inside
        another one.
        """
        return self._broken is None and self._depth == depth and self._process is _process

    def __enter__(self) -> None:
        if self.closed:
            raise GatekeeperError("this gate is closed: make a new one")
        if self._process is not _process:
            raise LogLockedError(
                "this gate belongs to the process that made it: after a fork, make another "
                "with a log of its own"
            )
        if self._broken is not None:
            raise LogError(
                f"this gate stopped at an earlier error ({self._broken!r}): make a new one; "
                "with the same log, if it had one, it continues"
            )
        self._depth += 1

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self._depth -= 1
        if error is not None and not isinstance(error, _RefusedError | _UnreadError):
            self._broken = error


class _RefusedError(BadInputError):
    """Raised inside a transaction before it has changed anything; a BadInputError for callers."""


class _UnreadError(LogError):
    """The log could not be read, before a transaction has changed anything; a LogError for callers,
    of this call only.
    """
