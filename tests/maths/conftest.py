from __future__ import annotations

from collections.abc import Iterator

import pytest

pytest.importorskip("math_verify", reason="the extra 'math' is not installed")

from gatekeeper.maths import MathChecker


@pytest.fixture(scope="session")
def checker() -> Iterator[MathChecker]:
    # On a busy machine the usual three seconds on the clock may hold none on a processor.
    with MathChecker(workers=1, hard_limit=30.0) as shared:
        yield shared
