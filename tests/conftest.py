"""The order of the tests, what every run prints, and the PostgreSQL server of a process."""

from __future__ import annotations

import gc
import os
import signal
from collections import Counter

import pytest
from postgres_fixture import postgres

__all__ = ["postgres"]


def pytest_configure() -> None:
    """Tests may send SIGINT: what runs in the background of a shell inherits that it is ignored.

    Each worker has a processor, so threads of BLAS would only wait for one another.
    """
    signal.signal(signal.SIGINT, signal.default_int_handler)
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
    gc.disable()  # while thousands of tests are collected, which are not garbage


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """The sandbox's tests come first: a worker that began the longest file last would end alone."""
    items.sort(key=lambda item: not item.nodeid.startswith("tests/sandbox/"))


def pytest_collection_finish() -> None:
    """From here on, garbage is collected."""
    gc.enable()


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Each reason to skip, once: without a Docker engine some thousand tests have the same."""
    reasons = Counter(
        report.longrepr[2].removeprefix("Skipped: ")
        for report in terminalreporter.stats.get("skipped", [])
    )
    if reasons:
        terminalreporter.section("skipped")
    for reason, count in reasons.most_common():
        terminalreporter.line(f"{count:>6}  {reason}")
