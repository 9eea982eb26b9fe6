"""The machine that a benchmark runs on, for its first line, and the folder for its files."""

from __future__ import annotations

import os
import platform
import sqlite3
from pathlib import Path

import numpy as np

__all__ = ["CACHE", "machine"]

CACHE = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "gatekeeper"


def machine() -> str:
    model = platform.processor() or platform.machine()
    if (info := Path("/proc/cpuinfo")).is_file():
        names = [line.partition(":")[2] for line in info.read_text().splitlines()]
        model = next((n.strip() for n in names if "@" in n or "CPU" in n or "EPYC" in n), model)
    load = ", ".join(f"{v:.1f}" for v in os.getloadavg())
    return (
        f"{model}, {os.cpu_count()} CPUs, load {load}; Python {platform.python_version()}, "
        f"numpy {np.__version__}, SQLite {sqlite3.sqlite_version}, {platform.system()}"
    )
