"""Changes of a gate, one after the other, and none after an incomplete one."""

from __future__ import annotations

import os
from types import TracebackType

from gatekeeper.errors import BadInputError, GatekeeperError, LogError, LogLockedError

__all__ = ["CLOSED", "Transaction"]

CLOSED = "this gate is closed: make a new one; with the same log, if it had one, it continues"

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
        self._harmless: BaseException | None = None
        self._depth = 0

    def has_forked(self) -> bool:
        """Whether this process is a fork of the one that made the gate."""
        return self._process is not _process

    def check_process(self) -> None:
        """Raises LogLockedError after a fork: what is open belongs to the parent."""
        if self._process is not _process:
            raise LogLockedError(
                "this gate belongs to the process that made it: after a fork, make another "
                "with a log of its own"
            )

    def complete(self, depth: int) -> bool:
        """Whether memory and log agree, at this depth of entering.

        They do not after an incomplete change, and while a signal handler makes a change inside
        another one.
        """
        return self._broken is None and self._depth == depth and self._process is _process

    def refusal(self, why: str) -> BadInputError:
        """The error for a call that is refused before anything has changed."""
        error = BadInputError(why)
        self.harmless(error)
        return error

    def harmless(self, error: GatekeeperError) -> None:
        """Note an error before which nothing has changed: the gate can go on after it."""
        self._harmless = error

    def __enter__(self) -> None:
        if self.closed:
            raise GatekeeperError(CLOSED)
        if self._process is not _process:
            self.check_process()
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
        if error is not None:
            if error is not self._harmless:
                self._broken = error
            elif not self._depth:
                self._harmless = None  # its traceback keeps what the frames refer to
