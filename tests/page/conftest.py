"""A browser, where there is one: Debian's Chromium, driven by Playwright."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from typing import Any, NoReturn

import pytest

__all__ = ["browser"]


@pytest.fixture(scope="module")  # while it is open, no other test may run an event loop
def browser() -> Iterator[Any]:
    try:
        from playwright.sync_api import sync_playwright
    except ImportError:
        _missing("the package playwright is not installed")
    chromium = shutil.which("chromium")
    if chromium is None:
        _missing("there is no chromium (.ci/browser installs it)")
    with sync_playwright() as playwright:
        made = playwright.chromium.launch(executable_path=chromium, args=["--no-sandbox"])
        yield made
        made.close()


def _missing(why: str) -> NoReturn:
    """`.ci/run` demands a browser where it could install one."""
    if os.environ.get("GATEKEEPER_TEST_BROWSER") == "required":
        pytest.exit(f"the live page has to be tested here: {why}", returncode=1)
    pytest.skip(f"no browser: {why}")
