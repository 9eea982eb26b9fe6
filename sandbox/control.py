"""A control run: whether what happened to a candidate also happens without it.

A candidate may end its sandbox, or starve itself of processor time, so that no verdict is possible.
A fault from outside looks the same. So a control program runs as long as the candidate did, on a
fresh worker: if it is not disturbed, the candidate was the cause.
"""

from __future__ import annotations

import threading

from gatekeeper.sandbox.run_loop import End, Job, Terms, run_jobs
from gatekeeper.sandbox.worker import LostError, Worker

__all__ = ["DISTURBED", "undisturbed"]

DISTURBED = "a control run was disturbed, too"
BUSY_SECONDS = 0.2  # processor time that the program uses; it may wait for as long in between
_CODE = """
import time
started = time.monotonic()
while time.process_time() < {busy}:
    pass
time.sleep(max(0, {seconds} + started - time.monotonic()))
"""


def undisturbed(
    worker: Worker, seconds: float, cancelled: threading.Event, *, processor: bool
) -> bool:
    """Whether the program runs for `seconds`; with `processor`, also that it gets a processor."""
    code = _CODE.format(busy=BUSY_SECONDS, seconds=seconds)
    terms = Terms(seconds + 1.0, 1.0, 1 << 20, 1 << 16, cancelled)
    try:
        finished = run_jobs(worker, [Job(["literal", code, ""])], terms)
    except LostError:
        return False
    kept = finished.end is End.ANSWERED
    return kept and not (processor and finished.waited > BUSY_SECONDS)
