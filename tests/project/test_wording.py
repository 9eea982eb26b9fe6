"""Sentences with numbers: nouns agree with them, and differences have a minus sign."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from gatekeeper.wording import all_of, amount, chance, counted, number_of, one_line, plural, signed

ROOT = Path(__file__).parents[2]
FILES = [
    file
    for folder in ("gatekeeper", "adapters")
    for file in (ROOT / folder).rglob("*.py")
    if not any(parent.is_symlink() for parent in file.parents)
]
# A number, then one of these without `counted` or `number_of`, reads "1 outputs" some day.
NOUNS = """
    checks errors events files generators instances items labels lines orders outputs
    predictions processes prompts records rows samples scores seeds steps tasks times tokens
    verdicts verifications workers
""".split()  # noqa: SIM905
BETWEEN = "bad external labelled observed random selected wrong".split()  # noqa: SIM905
NOUN = re.compile(rf" (?:(?:{'|'.join(BETWEEN)}) )?(?:{'|'.join(NOUNS)})\b")


def sentences(file: Path) -> Iterator[tuple[int, str]]:
    """(line, text) where a number that may be 1 is followed by a plural, in an f-string."""
    for node in ast.walk(ast.parse(file.read_text())):
        if not isinstance(node, ast.JoinedStr):
            continue
        for value, after in zip(node.values, node.values[1:], strict=False):
            if not (isinstance(value, ast.FormattedValue) and isinstance(after, ast.Constant)):
                continue
            found = NOUN.match(str(after.value))
            name = ast.unparse(value.value)
            if found and not name.isupper() and not isinstance(value.value, ast.IfExp):
                yield node.lineno, f"{{{name}}}{found[0]}"


@pytest.mark.parametrize("file", FILES, ids=str)
def test_nouns_agree_with_numbers(file: Path) -> None:
    found = [f"{file}:{line}: {text}" for line, text in sentences(file)]
    assert not found, "\n".join(found)


def test_a_number_and_its_noun() -> None:
    assert [counted(n, "task") for n in (0, 1, 2, 2000)] == [
        "0 tasks",
        "1 task",
        "2 tasks",
        "2,000 tasks",
    ]
    assert counted(0.6, "label") == "1 label"
    assert [all_of(n, "output") for n in (1, 2)] == ["the 1 output", "all 2 outputs"]
    assert [number_of(n, "process") for n in (1, 2)] == ["process", "processes"]
    assert [plural(n, "was", "were") for n in (0, 1, 2)] == ["were", "was", "were"]


def test_a_difference_has_a_minus_sign() -> None:
    assert [signed(v) for v in (9.2, -6.4, -0.2)] == ["+9", "−6", "+0"]
    assert signed(-0.0123, 1, "%") == "−1.2%"


def test_an_amount_agrees_with_its_unit() -> None:
    assert [amount(*of) for of in ((1, "verifications"), (108.0, "verifications"), (1, "usd"))] == [
        "1 verification",
        "108 verifications",
        "1 usd",
    ]
    shown = [amount(cost, "seconds") for cost in (0.000665898, 3.51111, 1.0, 0.0, 12345.6)]
    assert " ".join(shown) == "0.000666 seconds 3.51 seconds 1 second 0 seconds 12,346 seconds"


def test_an_estimated_probability_is_never_0_or_1() -> None:
    assert [chance(p) for p in (0.0, 0.004, 0.01, 0.57, 0.99, 0.996, 1.0)] == [
        "under 1%",
        "under 1%",
        "1%",
        "57%",
        "99%",
        "over 99%",
        "over 99%",
    ]


# A worker process of the checker imports little: a fault in its start is to reach the parent.
WRITE_ERRORS = {"gatekeeper/wording.py", "gatekeeper/maths/worker.py"}


def test_one_place_writes_an_exception_of_another_package() -> None:
    """Its class, a colon and its text: the text may be missing, or may have several lines."""

    class OddError(Exception):
        def __str__(self) -> str:
            raise ValueError("no text")

    assert one_line(ValueError("a\n  b")) == "ValueError: a b"
    assert one_line(OddError()) == "OddError: its text cannot be made (ValueError)"
    written = re.compile(r"\{type\((\w+)\)\.__name__\}: \{\1\}")
    found = {f"{file.relative_to(ROOT)}" for file in FILES if written.search(file.read_text())}
    assert found <= WRITE_ERRORS
