"""What the sandbox's tests share."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from gatekeeper.sandbox import LocalSandbox
from gatekeeper.types import Generation, Outcome

TESTS = ("assert f(2) == 4", "assert f(3) == 9")
HONEST = "def f(x):\n    return x * x\n"


@pytest.fixture(scope="session")
def generation() -> Callable[..., Generation]:
    def make(text: str, identity: str = "candidate-1") -> Generation:
        return Generation(identity, text, *np.empty((3, 0)))

    return make


@pytest.fixture(scope="session")
def sandbox() -> LocalSandbox:
    return LocalSandbox(timeout=10, memory_mb=128, processes=32, workers=4)


@pytest.fixture(scope="session")
def hasty() -> LocalSandbox:
    """For programs that are meant to run out of time."""
    return LocalSandbox(timeout=1.0, processes=32, workers=4)


@pytest.fixture(scope="session")
def check(sandbox: LocalSandbox, generation: Callable[..., Generation]) -> Callable[..., Outcome]:
    """The outcome of a program under tests that ask for squares, or under others."""

    def run(
        code: str, tests: Sequence[str] = TESTS, *, by: LocalSandbox = sandbox, **task: Any
    ) -> Outcome:
        return by.verify(generation(code), {"tests": list(tests), **task})

    return run


@pytest.fixture(scope="session")
def honest(check: Callable[..., Outcome]) -> Callable[[], None]:
    """Fails where an honest program does not pass: what came before left something behind."""

    def run() -> None:
        outcome = check(HONEST)
        assert outcome.verdict == "passed", outcome

    return run


@pytest.fixture(scope="session")
def isolation(check: Callable[..., Outcome]) -> str:
    return str(check(HONEST).meta["isolation"])


@pytest.fixture
def namespaces(isolation: str) -> None:
    if "nonet" not in isolation:
        pytest.skip(f"the kernel allows no namespaces here: isolation={isolation!r}")


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
