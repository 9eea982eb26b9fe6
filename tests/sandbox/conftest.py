"""Fixtures of the sandbox's tests: one back end at a time, and programs to run on it."""

from __future__ import annotations

import contextlib
import os
import tempfile
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from busy_machine import settled
from filelock import FileLock
from sandboxes import STRONG, open_sandbox, tasks

from gatekeeper.errors import GatekeeperError, SandboxUnavailableError
from gatekeeper.sandbox import image
from gatekeeper.sandbox.base import Sandbox
from gatekeeper.sandbox.engine import connect
from gatekeeper.types import Generation, Outcome

TESTS = ("assert f(2) == 4", "assert f(3) == 9")
HONEST = "def f(x):\n    return x * x\n"

Open = Callable[..., contextlib.AbstractContextManager[Sandbox]]


@pytest.fixture(scope="session", params=STRONG)
def backend(request: pytest.FixtureRequest) -> str:
    name: str = request.param
    if name == "docker":
        request.getfixturevalue("engine")
    return name


@pytest.fixture(scope="session")
def engine(image_problem: str | None) -> None:
    """A Docker engine with the default image."""
    if image_problem is not None:
        pytest.skip(f"docker: {image_problem}")


@pytest.fixture(scope="session", autouse=True)
def image_problem() -> str | None:
    """Build the default image if it is missing; the reason if that fails, else None.

    `.ci/run` demands an engine, or its absence.
    """
    demanded = os.environ.get("GATEKEEPER_TEST_DOCKER")
    try:
        client = connect()
        with contextlib.closing(client):
            try:
                image.find(client, None, ())
            except SandboxUnavailableError:
                image.build(client)
    except GatekeeperError as error:
        if demanded == "required":
            pytest.exit(f"Docker has to be tested here: {error}", returncode=1)
        return str(error)
    if demanded == "absent":
        pytest.exit("no Docker engine was to answer here", returncode=1)
    return None


@pytest.fixture
def alone() -> Iterator[None]:
    """One such test at a time for an ordinary user, whose candidates are that user, too.

    Without namespaces the kernel counts all of a user's processes together: a fork bomb leaves
    none for the programs of another test.
    """
    with user_lock() if os.getuid() else contextlib.nullcontext():
        yield


def user_lock() -> FileLock:
    return FileLock(f"{tempfile.gettempdir()}/gatekeeper-tests-{os.getuid()}.lock")


@pytest.fixture(scope="session")
def crowded() -> Callable[[str], contextlib.AbstractContextManager[int]]:
    """Around programs of a back end at which the kernel counts all of a user's processes together.

    Yields how many of them there are besides the candidate's; 0 if they are not counted.
    """

    @contextlib.contextmanager
    def alone(backend: str) -> Iterator[int]:
        if os.getuid() == 0 or backend in STRONG:
            yield 0
            return
        with user_lock():
            yield tasks()

    return alone


@pytest.fixture(scope="session")
def opened(backend: str) -> Open:
    """Opens a further sandbox of this back end, with limits of its own."""
    return lambda **limits: open_sandbox(backend, **limits)


@pytest.fixture(scope="session")
def sandbox(opened: Open) -> Iterator[Sandbox]:
    with opened(timeout=10, memory_mb=256, processes=32, workers=2) as sandbox:
        yield sandbox


@pytest.fixture(scope="session")
def hasty(opened: Open) -> Iterator[Sandbox]:
    """A sandbox for programs that must run out of time."""
    with opened(timeout=1.0, processes=32, workers=1) as sandbox:
        yield sandbox


@pytest.fixture(scope="session")
def generation() -> Callable[..., Generation]:
    def make(text: str, identity: str = "candidate-1") -> Generation:
        return Generation(identity, text, *np.empty((3, 0)))

    return make


@pytest.fixture(scope="session")
def check(sandbox: Sandbox, generation: Callable[..., Generation]) -> Callable[..., Outcome]:
    """The outcome of a program under tests that ask for squares, or under others."""

    def run(
        code: str, tests: Sequence[str] = TESTS, *, by: Sandbox = sandbox, **task: Any
    ) -> Outcome:
        return settled(lambda: by.verify(generation(code), {"tests": list(tests), **task}))

    return run


@pytest.fixture(scope="session")
def honest(check: Callable[..., Outcome]) -> Callable[..., None]:
    """Fail if an honest program does not pass, because an earlier one left something behind."""

    def run(**by: Sandbox) -> None:
        outcome = check(HONEST, **by)
        assert outcome.verdict == "passed", outcome

    return run


@pytest.fixture(scope="session")
def running() -> Callable[[str], bool]:
    """Whether a process of this machine has `marker` in its command line."""

    def look(marker: str) -> bool:
        for path in Path("/proc").glob("[0-9]*/cmdline"):
            try:
                if marker.encode() in path.read_bytes().split(b"\0"):
                    return True
            except OSError:  # it ended meanwhile
                pass
        return False

    return look


@pytest.fixture(scope="session")
def verify(sandbox: Sandbox, generation: Any) -> Callable[..., Outcome]:
    """The outcome of a candidate's code and a test program."""

    def run(code: str, test: str, **task: Any) -> Outcome:
        return settled(lambda: sandbox.verify(generation(code), {"test": test, **task}))

    return run
