"""The machine that a benchmark runs on, for its first line, and the folder for its files."""

from __future__ import annotations

import os
import platform
import sqlite3
from pathlib import Path
from time import process_time

import numpy as np

__all__ = ["CACHE", "machine"]

CACHE = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "gatekeeper"


def machine() -> str:
    """One line: the processor and its speed, the load, the versions that matter."""
    model = platform.processor() or platform.machine()
    if (info := Path("/proc/cpuinfo")).is_file():
        names = [line.partition(":")[2] for line in info.read_text().splitlines()]
        model = next((n.strip() for n in names if "@" in n or "CPU" in n or "EPYC" in n), model)
    load = ", ".join(f"{v:.1f}" for v in os.getloadavg())
    return (
        f"{model}, {os.cpu_count()} CPUs, a million additions in {_additions() * 1000:.0f} ms, "
        f"load {load}; Python {platform.python_version()}, numpy {np.__version__}, "
        f"SQLite {sqlite3.sqlite_version}, {platform.system()}"
    )


def _additions() -> float:
    """Seconds of the processor: machines of one model differ by a factor of three."""

    def once() -> float:
        start, total = process_time(), 0
        for i in range(1_000_000):
            total += i
        return process_time() - start

    return min(once() for _ in range(3))
