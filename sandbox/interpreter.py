"""What a Python interpreter reports of itself: this machine's, or that of an image."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Sequence
from dataclasses import dataclass

from gatekeeper.errors import SandboxUnavailableError
from gatekeeper.sandbox import machine_python
from gatekeeper.sandbox.reprs import last_line

__all__ = ["OLDEST", "PROBE", "Interpreter", "of_this_machine", "read"]

OLDEST = (3, 10)  # version that can run sandbox/inside
# The interpreter runs this program to identify itself. The imports are modules that the sandbox or
# honest candidates need, and that Debian's python3-minimal lacks.
PROBE = f"""
import sys
if sys.version_info >= {OLDEST}:
    import asyncio, ctypes, dataclasses, decimal, fractions, json, multiprocessing, platform, queue
    import resource, shutil, statistics, sysconfig, unittest
    about = dict(
        executable=sys.executable,
        version=sys.version_info[:2],
        implementation=sys.implementation.name,
        machine=platform.machine(),
        libc=platform.libc_ver(),
        stdlib=sorted({{sysconfig.get_path(name) for name in ("stdlib", "platstdlib")}}),
        packages=sysconfig.get_path("purelib"),
    )
    print(json.dumps(about))
else:
    print('{{"version": [%d, %d]}}' % sys.version_info[:2])
"""


@dataclass(frozen=True, slots=True)
class Interpreter:
    """What an interpreter reports of itself."""

    executable: str
    version: tuple[int, int]
    implementation: str
    machine: str
    libc: tuple[str, str]  # ("glibc", "2.36"); ("", "") or ("musl", …) where it is musl
    stdlib: Sequence[str]
    packages: str  # the folder on sys.path for pure packages


def of_this_machine() -> Interpreter:
    """The interpreter of this machine. Raises SandboxUnavailableError if it is not complete."""
    said = subprocess.run(
        [machine_python.executable(), "-I", "-c", PROBE], capture_output=True, text=True
    )
    if said.returncode:
        raise SandboxUnavailableError(
            f"this machine's own Python is not complete: {last_line(said.stderr)}: "
            "gatekeeper sandbox build --base python:3.12-slim"
        )
    return read(said.stdout, "this machine")


def read(said: str | bytes, whose: str) -> Interpreter:
    """The interpreter that printed `said` for `PROBE`; `whose` names it in messages.

    Raises SandboxUnavailableError if it is too old, not CPython, or printed something else.
    """
    try:
        about = json.loads(said)
        version = (about["version"][0], about["version"][1])
    except (ValueError, LookupError, TypeError):
        raise SandboxUnavailableError(
            f"{whose}: its python3 prints other things than its program says: {said!r:.80}"
        ) from None
    if version < OLDEST or about["implementation"] != "cpython":
        raise SandboxUnavailableError(
            f"{whose} has {about.get('implementation', 'Python')} {version[0]}.{version[1]}: "
            f"CPython {OLDEST[0]}.{OLDEST[1]} or newer is needed"
        )
    about |= {"version": version, "libc": tuple(about["libc"])}
    return Interpreter(**about)
