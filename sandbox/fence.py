"""Takes the program out of a model's answer."""

from __future__ import annotations

import re
import textwrap

__all__ = ["extract_code"]

# A fence opens a line; an answer that was cut off may not close its last one.
_FENCE = re.compile(
    r"^[ \t]*```[ \t]*(?P<label>[\w+.-]*)[^\n`]*\n(?P<body>.*?)(?:^[ \t]*```[ \t]*$|\Z)",
    re.MULTILINE | re.DOTALL,
)
_PYTHON = {"python", "python3", "py", ""}


def extract_code(text: str) -> str:
    """The last Python (else unlabelled) Markdown fence of `text`; all of it where there is none."""
    text = text.removeprefix("\ufeff")  # a byte order mark, which only files may have
    found = [(m["label"].lower(), m["body"]) for m in _FENCE.finditer(text.replace("\r\n", "\n"))]
    labelled = [body for label, body in found if label in _PYTHON and label]
    bodies = labelled or [body for label, body in found if label in _PYTHON]
    return textwrap.dedent(bodies[-1]) if bodies else text
