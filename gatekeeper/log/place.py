"""Where a log is: a file, or a named run in a PostgreSQL database.

The address of a database may have a password. No text of this package contains it: `str` and `repr`
of a `PostgresRun` leave it out, and a malformed address is not shown at all.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from pathlib import Path
from urllib.parse import parse_qsl, urlencode

from gatekeeper.arguments import as_path
from gatekeeper.errors import BadInputError

__all__ = ["PostgresRun", "is_address", "one_line", "place_of", "without_passwords"]

LONGEST = 200  # characters of a run's name
SHOWN = ("user", "host", "port", "dbname", "service")  # of what an address has after its "?"
ADDRESS = re.compile(
    r"postgres(?:ql)?://"
    r"(?:(?P<user>[^:@/?#\s]*)(?::[^@/?#\s]*)?@)?"  # and a password
    r"(?P<host>[^@/?#\s]*)"
    r"(?P<database>/[^@/?#\s]*)?"
    r"(?:\?(?P<more>[^@?#\s]*))?"
)
MEANT = re.compile(r"\s*[a-z][a-z0-9+.-]*://", re.IGNORECASE)  # of PostgreSQL or not
PASSWORDS = (
    (re.compile(r"(postgres[a-z0-9+]*:/{1,2}[^\s:@/]*):\S*@", re.IGNORECASE), r"\1@"),
    (re.compile(r"([?&](?:ssl)?password=)[^\s&'\"]*"), r"\1..."),
)


@dataclass(frozen=True, slots=True)
class PostgresRun:
    """A run in a PostgreSQL database, which keeps many.

    Parameters
    ----------
    dsn
        `postgresql://USER:PASSWORD@HOST:PORT/DATABASE`, as libpq takes it: every part may be left
        out, and a password may come from `PGPASSWORD` or `~/.pgpass` instead. Special characters
        are percent-encoded.
    name
        Name of the run: 1 to 200 printable characters.

    Raises
    ------
    BadInputError
        For an invalid address, and for an invalid name.
    """

    dsn: str = field(repr=False)
    name: str

    def __post_init__(self) -> None:
        if not ADDRESS.fullmatch(self.dsn):
            raise BadInputError(
                "log: this is no address of a PostgreSQL database (it is not shown here, as it may "
                "have a password): give postgresql://USER@HOST:PORT/DATABASE, with special "
                "characters percent-encoded, such as %40 for @"
            )
        name = self.name
        if not isinstance(name, str) or not 1 <= len(name) <= LONGEST or not name.isprintable():
            raise BadInputError(
                f"run={name!r:.80}: the name of a run has 1 to {LONGEST} printable characters, "
                "such as 'eval-7'"
            )

    @property
    def address(self) -> str:
        """The address without its password."""
        found = ADDRESS.fullmatch(self.dsn)
        assert found is not None
        user = f"{found['user']}@" if found["user"] else ""
        more = [pair for pair in parse_qsl(found["more"] or "") if pair[0] in SHOWN]
        query = f"?{urlencode(more, safe='/')}" if more else ""
        return f"postgresql://{user}{found['host']}{found['database'] or ''}{query}"

    def __str__(self) -> str:
        return f"{self.address} (run {self.name})"


def is_address(text: object) -> bool:
    """Whether a text is meant as the address of a database, and not as a file.

    Only PostgreSQL's is one for `PostgresRun`. The others are not files either: a message about a
    file shows its name, and so a password.
    """
    return isinstance(text, str) and MEANT.match(text) is not None


def place_of(log: str | Path | PostgresRun, run: str | None = None) -> Path | PostgresRun:
    """The place for a log and the name of a run.

    Raises
    ------
    BadInputError
        For an address without a run or of another database, for a run without an address, and for
        a text that cannot be the name of a file.
    """
    if isinstance(log, PostgresRun) and run is None:
        return log
    if isinstance(log, str) and is_address(log):
        if run is None:
            shown = PostgresRun(log, "none").address
            raise BadInputError(
                f"log {shown} is a database, which keeps many runs: name one, run='eval-7' "
                "(on a command line --run eval-7)"
            )
        return PostgresRun(log, run)
    if run is not None:
        raise BadInputError(
            f"run={run!r}: log {str(log)!r} is a file, which has one run; names are for the runs "
            "of a PostgreSQL log, log='postgresql://...'"
        )
    assert not isinstance(log, PostgresRun)
    return as_path("log", log)


def without_passwords(text: str) -> str:
    """The text, without the passwords of addresses in it."""
    for pattern, instead in PASSWORDS:
        text = pattern.sub(instead, text)
    return text


def one_line(error: Exception) -> str:
    """The message of a database's error, as one line without passwords."""
    return " ".join(without_passwords(str(error)).split()) or repr(error)
