from __future__ import annotations

from collections.abc import Iterator

import pytest

pytest.importorskip("math_verify", reason="the extra 'math' is not installed")

from gatekeeper.maths import MathChecker


@pytest.fixture(scope="session")
def checker() -> Iterator[MathChecker]:
    with MathChecker(workers=1) as shared:
        yield shared
