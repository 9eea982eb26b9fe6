"""This machine's own Python, as the files of an image that holds nothing else.

Every file keeps its path, and every symbolic link on the way to it is kept: the interpreter and the
loader find the same files by location, for the Python of a distribution, pyenv, uv or conda. Modes
are not kept: a Python in a private home must be readable to other users there.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
import zoneinfo
from collections.abc import Iterable, Iterator
from pathlib import Path

from gatekeeper.errors import SandboxUnavailableError

__all__ = ["LINK", "Entry", "executable", "members"]

# The content of a path: a copy of a file, these bytes, a link to a path, a directory of this mode.
Entry = Path | bytes | str | int

LINK = "/usr/local/bin/python3"  # on the engine's default PATH, unlike some interpreters

# Directories of the standard library that no candidate needs, a third of its size; packages of
# this machine are not the sandbox's.
_LEFT_OUT = (
    *("__pycache__", "dist-packages", "ensurepip", "idlelib", "site-packages", "test", "tests"),
    *("tkinter", "turtledemo"),
)

# Libraries that no file lists, because they are loaded by name: by libc (end of a thread, users),
# or by wheels, which may assume them by the manylinux rules.
_BY_NAME = (
    *("libgcc_s.so.1", "libnss_files.so.2", "libstdc++.so.6", "libz.so.1", "libdl.so.2"),
    *("libpthread.so.0", "libresolv.so.2", "librt.so.1", "libutil.so.1"),
)

_ETC = {
    "passwd": b"root:x:0:0:root:/:/bin/false\nnobody:x:65534:65534:nobody:/:/bin/false\n",
    "group": b"root:x:0:\nnogroup:x:65534:\n",
    "nsswitch.conf": b"passwd: files\ngroup: files\nhosts: files\n",
}


def executable() -> str:
    """The interpreter behind this one: no virtual environment, no link."""
    return os.path.realpath(getattr(sys, "_base_executable", sys.executable))


def members(python: str, stdlib: Iterable[str]) -> dict[str, Entry]:
    """The files of an image that runs the interpreter `python` with the folders `stdlib`, by path.
    Raises SandboxUnavailableError if this machine's programs cannot run in a Linux container.
    """
    if not sys.platform.startswith("linux"):
        raise SandboxUnavailableError(
            f"the Python of this machine is for {sys.platform}, a container needs one for Linux: "
            "gatekeeper sandbox build --base python:3.12-slim"
        )
    tree = _Tree()
    files = [Path(python), *(file for folder in stdlib for file in _walk(Path(folder)))]
    zones = next((Path(folder) for folder in zoneinfo.TZPATH if Path(folder).is_dir()), None)
    for file in (*files, *(_walk(zones) if zones else ())):
        tree.add(file)
    libraries = _libraries([files[0], *(file for file in files if ".so" in file.suffixes)])
    places = sorted({library.parent for library in libraries})
    by_name = [place / name for name in _BY_NAME for place in places if (place / name).exists()]
    libraries |= set(by_name) | _libraries(by_name)
    for library in sorted(libraries):
        tree.add(library)
    # The loader always looks beside libc; elsewhere only by a cache that the image does not have.
    for libc in (file for file in libraries if file.name.startswith(("libc.so", "ld-musl"))):
        for library in sorted(libraries):
            tree.put(libc.parent / library.name, str(library))
    for name, content in _ETC.items():
        tree.put(Path("/etc", name), content)
    tree.put(Path("/tmp"), 0o1777)
    tree.put(Path(LINK), python)
    return {str(path): entry for path, entry in tree.entries.items()}


class _Tree:
    def __init__(self) -> None:
        self.entries: dict[Path, Entry] = {}  # by paths without links in them

    def add(self, path: Path) -> None:
        """Add a file of this machine, with the links that lead to it."""
        file = self._follow(path)
        self.entries[file] = file

    def put(self, path: Path, entry: Entry) -> None:
        """Add an entry of our own, at a path where this machine's files have none."""
        self.entries.setdefault(self._follow(path.parent) / path.name, entry)

    def _follow(self, path: Path) -> Path:
        here = Path("/")
        parts = list(path.parts[:0:-1])  # still to go, the next one last
        while parts:
            part = parts.pop()
            if part == "..":
                here = here.parent
                continue
            here /= part
            if here.is_symlink():
                target = os.readlink(here)
                self.entries[here] = target
                here = here.parent
                for step in reversed(Path(target).parts):
                    parts.append(step)  # an absolute one starts with "/": `here /= "/"` is "/"
        return here


def _walk(folder: Path) -> Iterator[Path]:
    for where, folders, files in os.walk(folder):
        folders[:] = sorted(
            name for name in folders if name not in _LEFT_OUT and not name.startswith("config-")
        )
        for name in sorted(files):
            path = Path(where, name)
            if path.is_file() and not name.startswith("_tkinter"):
                yield path


def _libraries(files: Iterable[Path]) -> set[Path]:
    """The loader and the shared libraries that the programs and libraries `files` name."""
    try:
        listed = subprocess.run(
            ["ldd", *map(str, files)],
            env={**os.environ, "LC_ALL": "C"},
            capture_output=True,
            text=True,
        )
    except FileNotFoundError:
        raise SandboxUnavailableError(
            "there is no `ldd` on this machine to list what its Python needs: "
            "gatekeeper sandbox build --base python:3.12-slim"
        ) from None
    return {Path(path) for path in re.findall(r"(?:^\t| => )(/.+) \(0x", listed.stdout, re.M)}
