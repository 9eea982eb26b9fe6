"""Functions for the tasks beside this file."""

from typing import Any


def only_math(documents: Any) -> Any:
    return documents.filter(lambda document: document["kind"] == "math")
