"""Extracts the program from a model's answer."""

from __future__ import annotations

import re
import textwrap
from collections.abc import Iterator

__all__ = ["extract_code"]

_LABEL = re.compile(r"[ \t]*([\w+.-]*)")
_PYTHON = {"python", "python3", "py", ""}


def extract_code(text: str) -> str:
    """The code of an answer.

    Parameters
    ----------
    text
        The model's answer.

    Returns
    -------
    str
        The last Markdown fence that is labelled as Python; else the last without a label; else all
        of the text. Common indentation of a fence is removed.
    """
    text = text.removeprefix("\ufeff")  # byte order mark: not valid in a string of Python code
    found = list(_fences(text.replace("\r\n", "\n")))
    labelled = [body for label, body in found if label in _PYTHON and label]
    bodies = labelled or [body for label, body in found if label in _PYTHON]
    return textwrap.dedent(bodies[-1]) if bodies else text


def _fences(text: str) -> Iterator[tuple[str, str]]:
    """Label and body of each fence. A fence opens a line; the last one may not be closed.

    Line by line, in linear time: one regular expression for the whole text would try each line as
    the end of every fence.
    """
    lines = text.split("\n")
    last = len(lines) - 1
    number = 0
    while number < last:  # a line that opens a fence is not the last one
        label = _opening(lines[number])
        number += 1
        if label is None:
            continue
        start = number
        while number <= last and lines[number].strip(" \t") != "```":
            number += 1
        body = "\n".join(lines[start:number])
        yield label.lower(), body + "\n" if start < number <= last else body
        number += 1


def _opening(line: str) -> str | None:
    """The label, maybe empty, of the fence that a line opens; None if it opens none."""
    fence = line.lstrip(" \t")
    if not fence.startswith("```") or "`" in fence[3:]:
        return None
    found = _LABEL.match(fence, 3)
    return found[1] if found else None
