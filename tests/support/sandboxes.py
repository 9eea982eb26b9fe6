"""The kinds of sandbox that the tests try."""

from __future__ import annotations

import contextlib
import os
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from gatekeeper.errors import SandboxUnavailableError
from gatekeeper.sandbox import DockerSandbox, LocalSandbox, local
from gatekeeper.sandbox.base import Sandbox

__all__ = ["PATIENCE", "STRONG", "WEAKER", "open_sandbox", "tasks"]

STRONG = ("docker", "namespaces")
WEAKER = ("unshare", "landlock", "none")  # tried with fewer tests

PATIENCE = 120.0  # seconds for a verdict: only against hanging, on a loaded machine


def tasks() -> int:
    """How many this user has, and 64 more: the kernel counts them with a candidate's."""
    total = 64
    for process in Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError):  # it ended meanwhile
            if process.stat().st_uid == os.getuid():
                total += len(os.listdir(process / "task"))
    return total


@contextlib.contextmanager
def open_sandbox(name: str, **limits: Any) -> Iterator[Sandbox]:
    """A sandbox of one of the kinds above; skips the test if this machine cannot have it."""
    with pytest.MonkeyPatch.context() as patch:
        if name == "unshare":
            patch.setattr(shutil, "which", lambda _: None)  # no bubblewrap
        if os.getuid() and name in ("landlock", "none"):
            limits["processes"] = limits.get("processes", 64) + tasks()
        if name == "none":
            patch.setattr(local, "_wrappers", lambda level: [])  # no better level
        try:
            sandbox: Sandbox
            if name == "docker":
                sandbox = DockerSandbox(**limits)
            elif name == "none":
                sandbox = LocalSandbox(allow_unsafe=True, **limits)
            else:
                level: Any = "namespaces" if name == "unshare" else name
                sandbox = LocalSandbox(isolation=level, **limits)
        except SandboxUnavailableError as error:
            if name == "docker":  # `engine` has seen that there is one
                raise
            pytest.skip(f"{name}: {error}")
    with sandbox:
        yield sandbox
