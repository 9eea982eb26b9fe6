"""Ends of solutions in prose: in which of two numbers is the answer?

A right answer never fails, and a wrong one never passes; where both may be meant, none has a label.
"""

from __future__ import annotations

from itertools import product

import pytest

from gatekeeper.maths import MathChecker

FIRST = ("The answer is 42.", r"So we get \boxed{42}.", "#### 42\n", "The final answer is $42$.")
CORRECTED = (  # to 49
    "On closer inspection, it is 49.",
    "On closer inspection, one row was counted once too few, which makes 49.",
    "Looking at it again, the total is 49.",
    "Having rechecked the sum, I now get 49.",
    "After a second look, 49 is what remains.",
    "Taking another look, I count 49 seats.",
    "I looked at the picture again and found 49.",
    "Rereading the problem, the seven extra seats bring it to 49.",
    "Re-reading the task, the drivers' seats count as well: 49.",
    "A closer look gives 49.",
)
CONFIRMED = (
    "Looking at it again, 6 rows of 7 seats make 42.",
    "A second look confirms it: 40 + 2 = 42.",
    "A closer look at the table gives the same.",
    "Reading it again, this fits all three conditions.",
    "Note that 49 is the next square.",
    "This is 7 less than 49.",
)
RIGHT = [
    ("42", "The answer is 42 (forty-two)."),
    ("42", "The answer is 42 (forty-two) seats."),
    ("42", "The answer is forty-two (42) seats."),
    ("42", r"\boxed{42} (forty-two) seats"),
    ("42", "On closer inspection, the answer is 42."),
    ("42", "The answer is 42 seats in 6 rows."),
    ("42", "The answer is forty-two seats in 6 rows."),
    ("42", "The answer is 42 seats (6 rows of 7)."),
    ("42", "The answer is 42 out of a total of 49."),
    ("42", "The answer is 42 of the 49 seats."),
    ("5", "The answer is 5 out of 8 students."),
    ("6", "Six (6)"),
    ("3", "The answer is three packs."),
    ("3", "The answer is 3 packs of cards."),
    (r"5\text{ feet }6\text{ inches}", "The answer is five feet 6 inches."),
    (r"2\text{ hours }30\text{ minutes}", "The answer is two hours 30 minutes."),
]
WRONG = [
    ("36", "The answer is 6 (six) jars."),
    ("36", "The answer is six (6) jars."),
    ("42", "The answer is 6 (seven)."),
    ("42", "The answer is 6(seven) seats."),
    ("42", "The answer is six (7) rows."),
    ("42", r"\boxed{6} (seven)"),
    ("42", "The answer is 43 (forty-three) seats."),
    ("42", "The answer is 41 (42 with the driver)."),
    ("42", "The answer is 7 groups of 41."),
    ("36", "The answer is three packs of cards."),
]
BOTH = [
    (gold, text)
    for golds, texts in (
        (("6", "36"), ("The answer is 36 (six) jars.", "The answer is six (36) jars.")),
        (("6", "36"), (r"\boxed{36} (six) jars", r"$\boxed{36}$ (six)")),
        (("3", "36"), ("The answer is three packs of 12.", "The answer is 3 packs of 12 each.")),
        (("4", "24"), ("The answer is 4 boxes of 6 eggs.", "The answer is four rows of 6.")),
        (("5", r"\frac58"), ("The answer is 5 out of 8.", "The answer is five out of 8.")),
    )
    for gold, text in product(golds, texts)
]


def ends(first: tuple[str, ...], then: tuple[str, ...]) -> list[str]:
    return [f"{answer} {more}" for answer, more in product(first, then)]


@pytest.mark.parametrize(
    ("pairs", "verdicts"),
    [
        ([("42", text) for text in ends(FIRST, CORRECTED)], {"infra_error"}),
        ([("49", text) for text in ends(FIRST, CORRECTED)], {"infra_error"}),
        ([("42", text) for text in ends(FIRST, CONFIRMED)], {"passed"}),
        ([("49", text) for text in ends(FIRST, CONFIRMED)], {"failed"}),
        (RIGHT, {"passed", "infra_error"}),
        (WRONG, {"failed", "infra_error"}),
        (BOTH, {"infra_error"}),
    ],
)
def test_ends_in_prose(
    pairs: list[tuple[str, str]], verdicts: set[str], checker: MathChecker
) -> None:
    outcomes = checker.check_many(pairs)
    found = [(*pair, o.verdict.value) for pair, o in zip(pairs, outcomes, strict=True)]
    assert [each for each in found if each[2] not in verdicts] == []
