"""The URL that a client of the `openai` package sends its requests to."""

from __future__ import annotations

import os

from gatekeeper.arguments import check_base_url

__all__ = ["check_client_url"]


def check_client_url(base_url: str | None) -> None:
    """Check the URL that a client is given; for None, that of the environment, if it has one.

    Raises
    ------
    BadInputError
        As `check_base_url`.
    """
    if base_url is not None:
        check_base_url("base_url", base_url)
    elif of_environment := os.environ.get("OPENAI_BASE_URL"):
        check_base_url("OPENAI_BASE_URL", of_environment)
