"""The PostgreSQL server of the tests."""

from __future__ import annotations

import os
from collections.abc import Iterator
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from postgres import Server


@pytest.fixture(scope="session")
def postgres() -> Iterator[Server]:
    """A server for all tests of this process; `.ci/run` demands one where it could install it."""
    try:
        from postgres import missing, start
    except ImportError as error:  # psycopg
        why: str | None = f"postgres: {error}"
    else:
        why = missing()
    demanded = os.environ.get("GATEKEEPER_TEST_POSTGRES")
    if demanded == "required" and why is not None:
        pytest.exit(f"PostgreSQL has to be tested here: {why}", returncode=1)
    if why is not None:
        pytest.skip(why)
    with start() as server:
        yield server
