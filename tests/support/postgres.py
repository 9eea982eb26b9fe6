"""A PostgreSQL server of the tests' own: on a socket in a temporary folder, gone afterwards.

Debian's package `postgresql` is enough; where there is none, `missing()` says so.
"""

from __future__ import annotations

import os
import pwd
import shutil
import signal
import subprocess
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from uuid import uuid4

import psycopg

from gatekeeper.log import PostgresRun

__all__ = ["PASSWORD", "Server", "missing", "start"]

PASSWORD = "p%w:d-7f3a9c"  # of the role `guarded`; its percent sign is encoded in an address
SETTINGS = ("listen_addresses=", "max_connections=60", "shared_buffers=16MB", "max_wal_senders=0")
PATIENCE = 60.0


@cache
def programs() -> Path | None:
    """The folder of the newest `initdb` and `postgres`; None if there is none."""
    found = sorted(Path("/usr/lib/postgresql").glob("*/bin/initdb"), key=lambda p: p.parts[-3])
    inside = shutil.which("initdb")
    if found:
        return found[-1].parent
    return None if inside is None else Path(inside).resolve().parent


def missing() -> str | None:
    """The reason why no server can be started here; None if one can."""
    if programs() is None:
        return "postgres: no initdb on the path or in /usr/lib/postgresql; .ci/postgres installs it"
    if os.getuid() == 0 and shutil.which("setpriv") is None:
        return "postgres: root must not run a server, and there is no setpriv to be another user"
    return None


class Server:
    """A running server.

    Attributes
    ----------
    dsn
        Of a database whose tables begin empty for each test file.
    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._process: subprocess.Popen[bytes] | None = None
        self._user = _user()
        self._data = folder / "data"
        self._run("initdb", "-D", self._data, "-U", "postgres", "-A", "trust", "-E", "UTF8", "-N")
        rules = "local all guarded scram-sha-256\nlocal all all trust\n"
        (self._data / "pg_hba.conf").write_text(rules)
        self.dsn = f"postgresql://postgres@/postgres?host={folder}"
        self.start()
        with psycopg.connect(self.dsn, autocommit=True) as db:
            db.execute(f"CREATE ROLE guarded LOGIN SUPERUSER PASSWORD '{PASSWORD}'")

    def guarded(self, password: str) -> str:
        """The address for a role that needs a password."""
        encoded = password.replace("%", "%25").replace(":", "%3A")
        return f"postgresql://guarded:{encoded}@/postgres?host={self._folder}"

    def new_run(self) -> PostgresRun:
        """A run that is not there yet."""
        return PostgresRun(self.dsn, f"run-{uuid4().hex[:8]}")

    def database(self, *, encoding: str = "UTF8") -> str:
        """The address of a new, empty database."""
        name = f"db_{uuid4().hex[:8]}"
        with psycopg.connect(self.dsn, autocommit=True) as db:
            db.execute(
                f"CREATE DATABASE {name} ENCODING '{encoding}' LC_COLLATE 'C' LC_CTYPE 'C'"
                " TEMPLATE template0"
            )
        return self.dsn.replace("/postgres?", f"/{name}?")

    def start(self) -> None:
        """Start it, and wait until it answers. It ends with this process, whatever ends that."""
        options = [part for setting in SETTINGS for part in ("-c", setting)]
        command: list[str | Path] = ["postgres", "-D", self._data, "-k", self._folder, *options]
        with (self._folder / "server.log").open("ab") as log:
            self._process = subprocess.Popen(
                _command(self._user, *command, dies=True), stdout=log, stderr=log
            )
        deadline = time.monotonic() + PATIENCE
        while True:
            try:
                psycopg.connect(self.dsn, connect_timeout=2).close()
            except psycopg.OperationalError:
                ended = self._process.poll() is not None
                if ended or time.monotonic() > deadline:
                    text = (self._folder / "server.log").read_text()[-2000:]
                    raise RuntimeError(f"the server does not answer: {text}") from None
                time.sleep(0.05)
            else:
                return

    def stop(self) -> None:
        """Stop it at once, as `pg_ctl stop -m immediate` does: it recovers when it starts again."""
        assert self._process is not None
        self._process.send_signal(signal.SIGQUIT)
        self._process.wait(PATIENCE)

    def _run(self, *command: str | Path) -> None:
        subprocess.run(
            _command(self._user, *command), check=True, capture_output=True, timeout=PATIENCE
        )


@contextmanager
def start() -> Iterator[Server]:
    """A server for as long as the context lasts. Call `missing` before."""
    folder = Path(tempfile.mkdtemp(prefix="gk-pg-", dir="/tmp"))  # a socket's path is short
    server: Server | None = None
    try:
        if (user := _user()) is not None:
            os.chown(folder, user.pw_uid, user.pw_gid)
        server = Server(folder)
        yield server
    finally:
        if server is not None and server._process is not None and server._process.poll() is None:
            server.stop()
        shutil.rmtree(folder)


def _user() -> pwd.struct_passwd | None:
    """The user that runs the server if this process is root; None: this process's own user."""
    if os.getuid():
        return None
    try:
        return pwd.getpwnam("postgres")
    except KeyError:
        return pwd.getpwnam("nobody")


def _command(user: pwd.struct_passwd | None, *command: str | Path, dies: bool = False) -> list[str]:
    folder = programs()
    assert folder is not None
    full = [str(folder / command[0]), *map(str, command[1:])]
    if user is not None:
        as_user = ["setpriv", f"--reuid={user.pw_uid}", f"--regid={user.pw_gid}", "--clear-groups"]
        return [*as_user, *(["--pdeathsig=QUIT"] if dies else []), *full]
    if dies and shutil.which("setpriv"):
        return ["setpriv", "--pdeathsig=QUIT", *full]
    return full
