"""Extracts the program from a model's answer."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator

from gatekeeper.io.syntax import dedent

__all__ = ["binds", "extract_code"]

# A fence may be the first thing of an item of a list.
_OPENING = re.compile(r"([ \t]*(?:(?:[-*+]|\d{1,9}[.)])[ \t]+)?)(`{3,}|~{3,})[ \t]*([\w+.-]*)")
_QUOTE = re.compile(r"[ \t]*> ?")
_QUOTES = re.compile(r"[ \t>]*")
_READING = re.compile(r"\b(?:file)?input\b|\bstdin\b|\bopen\(0|\bread\(0")
_PRINTING = re.compile(r"\bprint\b|\bstdout\b|\bwrite\(1")
_PYTHON = re.compile(r"i?python[\d.]*|py3?").fullmatch
_THOUGHT = re.compile(r"\s*<think(?:ing)?>")
# Alone on its line, where the prompt has opened it: a program may have it in a text.
_THOUGHT_ENDS = re.compile(r"^[ \t]*</think(?:ing)?>[ \t]*$", re.MULTILINE)
_ENDS = re.compile(r"</think(?:ing)?>")


def extract_code(
    text: str, names: Collection[str] = (), *, as_written: bool = False, reads: bool = False
) -> str:
    """The code of an answer.

    Parameters
    ----------
    text
        The model's answer. What it thinks before is no part of it.
    names
        Names that the tests use. A fence that binds none of them may show how to call the solution.
    as_written
        Whether a fence keeps the indentation that its lines share, as the rest of a function does.
    reads
        Whether the program reads standard input. A fence that does not may show what it prints, one
        that does not print how it reads.

    Returns
    -------
    str
        The last Markdown fence that is labelled as Python; else the last without a label; else all
        of the text. Those that bind most of the names take precedence, and those that read and
        print, if the program does: others may show a part of the solution again. A fence with
        another label counts if it does that. Where none has all of the names that they have
        together, those that have some are one program.
    """
    text = _answer(text.removeprefix("\ufeff"))  # byte order mark: not valid in a string of code
    found: list[tuple[tuple[int, ...], str]] = []
    parts: dict[str, set[str]] = {}  # codes that define names -> these
    for label, body in _fences(text.replace("\r\n", "\n")):
        code = dedent(body)
        bound = _bound(code, names)
        fit = [len(bound)]
        fit += [pattern.search(code) is not None for pattern in (_READING, _PRINTING) if reads]
        known = 2 if _PYTHON(label) else int(not label)
        if known or any(fit):
            found.append(((*fit, known), body))
        if bound and known:
            parts[code] = bound
    best, body = max(reversed(found), key=lambda one: one[0], default=((0,), text))
    if not best[0] and binds(text, names):  # they are in the docstring of a program
        body = text
    if best[0] < len(set().union(*parts.values())):  # none has all
        body = "\n".join(parts)
    return body if as_written else dedent(body)


def _answer(text: str) -> str:
    """What follows a model's thoughts, in which it may have tried other programs."""
    end = (_ENDS if _THOUGHT.match(text) else _THOUGHT_ENDS).search(text)
    if end is not None:
        return text[end.end() :]
    return "" if _THOUGHT.match(text) else text


def binds(code: str, names: Collection[str]) -> bool:
    """Whether a line of the code defines one of the names, or assigns to it."""
    return bool(_bound(code, names))


def _bound(code: str, names: Collection[str]) -> set[str]:
    """Those of the names that a line of the code defines, or assigns to.

    A search in linear time, not a parse: the host's work must not depend on a candidate's text.
    """
    if not names:
        return set()
    name = f"({'|'.join(map(re.escape, sorted(names)))})"
    defined = rf"^[ \t]*(?:(?:async[ \t]+)?def|class)[ \t]+{name}\b"
    assigned = rf"^{name}[ \t]*(?::[^=\n]*)?=[^=]"
    found = re.findall(f"{defined}|{assigned}", code, re.MULTILINE)
    return {one for pair in found for one in pair if one}


def _fences(text: str) -> Iterator[tuple[str, str]]:
    """Label and body of each fence, as Markdown has them. The last one may not be closed.

    Line by line, in linear time: one regular expression for the whole text would try each line as
    the end of every fence.
    """
    lines = text.split("\n")
    last = len(lines) - 1
    number = 0
    while number < last:  # a line that opens a fence is not the last one
        depth = _QUOTES.match(lines[number])[0].count(">")  # type: ignore[index]
        opening = _OPENING.match(_quoted(lines[number], depth))
        number += 1
        if opening is None or "`" in opening.string[opening.end(2) :]:
            continue
        indent, marks, label = opening.groups()
        start = number
        while number <= last and not _closes(_quoted(lines[number], depth), indent, marks):
            number += 1
        body = "\n".join(_quoted(line, depth) for line in lines[start:number])
        yield label.lower(), body + "\n" if start < number <= last else body
        number += 1


def _quoted(line: str, depth: int) -> str:
    """What a line has in a block quote of that depth."""
    for _ in range(depth):
        mark = _QUOTE.match(line)
        line = line[mark.end() :] if mark else line
    return line


def _closes(line: str, indent: str, marks: str) -> bool:
    """Whether a line closes a fence: as many marks or more, not four columns further in.

    So a fence in the docstring of a function does not end the code.
    """
    fence = line.strip(" \t")
    if len(fence) < len(marks) or fence.strip(marks[0]):
        return False
    further = line[: line.index(fence)].expandtabs(4)
    return len(further) < len(indent.expandtabs(4)) + 4
