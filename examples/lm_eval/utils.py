"""What the tasks beside this file need."""

from typing import Any


def only_math(documents: Any) -> Any:
    return documents.filter(lambda document: document["kind"] == "math")
