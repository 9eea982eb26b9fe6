"""The file of a log in SQLite: making, opening and identifying it, without losing its locks.

POSIX drops all locks of a process on a file when the process closes any descriptor of it. Another
process that then closes the log takes itself for the last one and removes the write-ahead log,
to which a gate of the first may still write. So a process with an open log opens the file by SQLite
alone.
"""

from __future__ import annotations

import errno
import os
import sqlite3
from contextlib import ExitStack
from pathlib import Path
from typing import Protocol
from weakref import WeakSet

from gatekeeper.errors import LogError
from gatekeeper.limits import MAX_LINE, cause_of

__all__ = [
    "OPEN",
    "connect",
    "connect_to_read",
    "identity",
    "is_open_here",
    "look",
    "make_file",
    "why_not",
]


class _Opened(Protocol):
    file: tuple[int, int] | None  # its identity


OPEN: WeakSet[_Opened] = WeakSet()
"""The logs that this process has open."""


def is_open_here(path: str | Path) -> bool:
    """Whether this process has a log open in this file, and so must not open it otherwise."""
    now = identity(path)
    return any(log.file == now for log in list(OPEN))


def make_file(path: Path) -> None:
    """Create an empty file that only its owner may read, independent of the umask; an existing file
    is kept.

    SQLite's companion files have the mode of the file.
    """
    try:
        descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    except FileExistsError:
        return
    except FileNotFoundError as e:  # its folder is there: of a kind that takes no files, as /proc
        raise OSError(f"no file can be made in {path.parent}") from e
    try:
        os.fchmod(descriptor, 0o600)
    finally:
        os.close(descriptor)


def identity(path: str | Path) -> tuple[int, int] | None:
    """Equal for two paths of one file; None where there is none."""
    return look(path)[0]


def look(path: str | Path) -> tuple[tuple[int, int] | None, int]:
    """The identity and the size in bytes of a file; None and 0 where there is none."""
    try:
        found = os.stat(path)
    except OSError:
        return None, 0
    return (found.st_dev, found.st_ino), found.st_size


def why_not(error: Exception, path: Path) -> str:
    """The operating system's reason, where SQLite reports only that something failed.

    The file itself is not opened: its log may be.
    """
    try:
        if isinstance(error, OSError):
            raise error
        for needed in (path, path.parent):
            if not os.access(needed, os.W_OK):
                number = errno.EROFS if os.statvfs(needed).f_flag & os.ST_RDONLY else errno.EACCES
                raise OSError(number, os.strerror(number), str(needed))
        with ExitStack() as opened:
            for _ in range(4):  # the file, its two companions, the folder
                descriptor = os.open(os.devnull, os.O_RDWR)
                opened.callback(os.close, descriptor)
    except OSError as e:
        return cause_of(e) or str(e)
    return str(error)


def connect(path: Path, how: str) -> sqlite3.Connection:
    db = sqlite3.connect(
        f"{path.as_uri()}?{how}", uri=True, isolation_level=None, check_same_thread=False
    )
    # Of a row: the longest event, and what stands beside it.
    db.setlimit(sqlite3.SQLITE_LIMIT_LENGTH, MAX_LINE + (1 << 20))
    return db


def connect_to_read(path: Path) -> sqlite3.Connection:
    """A connection that refuses to write.

    To read a WAL database SQLite writes an index beside it, which only a writable connection
    (mode=rw) removes again. If it cannot write an index, the file is read without the WAL: it is
    complete, unless the WAL holds more.
    """
    db = connect(path, "mode=rw")
    try:
        db.execute("PRAGMA query_only = ON")
        db.execute("SELECT count(*) FROM sqlite_master").fetchone()
    except sqlite3.DatabaseError as e:
        if not e.sqlite_errorname.startswith(("SQLITE_READONLY", "SQLITE_CANTOPEN")):
            return db  # other errors are raised at the first use
        db.close()
    else:
        return db
    wal = path.with_name(f"{path.name}-wal")
    if wal.exists() and wal.stat().st_size:
        raise LogError(
            f"log {str(path)!r} cannot be read in a folder that you cannot write to: its last "
            f"events stand in {wal.name}. Copy both files to a folder of yours and read the copy"
        )
    return connect(path, "mode=ro&immutable=1")
