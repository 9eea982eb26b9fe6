"""Packages for an image: downloaded here as wheels, because containers have no network."""

from __future__ import annotations

import importlib.util
import re
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

from gatekeeper.errors import BadInputError, SandboxUnavailableError
from gatekeeper.sandbox.interpreter import Interpreter
from gatekeeper.sandbox.machine_python import Entry
from gatekeeper.sandbox.reprs import last_line

__all__ = ["checked", "download", "platforms"]

_REQUIREMENT = re.compile(r"[A-Za-z0-9][\w.-]*\s*(\[[^\]]*\]\s*)?([<>=!~;@(][^\r\n]*)?")


def checked(requirements: Sequence[str]) -> list[str]:
    if isinstance(requirements, str):
        raise BadInputError(f"requirements={requirements!r}: give a list, such as ['numpy>=2']")
    for requirement in requirements:
        if not isinstance(requirement, str) or not _REQUIREMENT.fullmatch(requirement.strip()):
            raise BadInputError(
                f"requirements: {requirement!r} is not a package as pip takes it: 'numpy>=2'"
            )
    return sorted({requirement.strip() for requirement in requirements})


def download(requirements: Sequence[str], python: Interpreter, folder: Path) -> dict[str, Entry]:
    """The packages as files below "packages/", installed into `folder` for the image's Python."""
    if importlib.util.find_spec("pip") is None:
        raise SandboxUnavailableError(
            f"requirements need pip, which {sys.executable} does not have: "
            f"{sys.executable} -m ensurepip"
        )
    done = subprocess.run(
        [
            *(sys.executable, "-m", "pip", "install", "--quiet", "--no-input", "--no-compile"),
            *("--disable-pip-version-check", "--only-binary=:all:", "--target=packages"),
            f"--python-version={python.version[0]}.{python.version[1]}",
            "--implementation=cp",
            *(f"--platform={platform}" for platform in platforms(python)),
            "--",
            *requirements,
        ],
        cwd=folder,  # so that pip takes no file of the working directory for a requirement
        capture_output=True,
        text=True,
    )
    if done.returncode:
        errors = [line for line in done.stderr.splitlines() if line.startswith("ERROR: ")]
        raise SandboxUnavailableError(
            f"no wheels of {', '.join(requirements)} for Python "
            f"{python.version[0]}.{python.version[1]} on {python.machine}: "
            + last_line(errors[-1][len("ERROR: ") :] if errors else done.stderr)
        )
    return {
        str(file.relative_to(folder)): file
        for file in (folder / "packages").rglob("*")
        if file.is_file() and folder / "packages" / "bin" not in file.parents
    }


def platforms(python: Interpreter) -> list[str]:
    """Platform tags of the wheels that run with the image's libc, the best first (PEP 600, 656)."""
    libc, version = python.libc
    if libc != "glibc":
        return [f"musllinux_1_{minor}_{python.machine}" for minor in (2, 1, 0)]
    newest = int(version.split(".")[1])
    old = {17: "manylinux2014", 12: "manylinux2010", 5: "manylinux1"}
    return [
        f"{name}_{python.machine}"
        for minor in range(newest, 4, -1)
        for name in (f"manylinux_2_{minor}", old.get(minor))
        if name
    ]
