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
    "Make that 49.",
    "I meant 49.",
    "In fact there are 49.",
    "I change my answer to 49.",
    "The book says 49.",
    "Disregard that; 49.",
    "Use 49 instead.",
    "It isn't 42 but 49.",
    "Verification gives 49, not 42.",
    "Double-checking, I get 49.",
    "Check: 6*7 = 42. But the drivers need seats, so 49.",
)
CONTINUED = (  # to 49
    "There are 7 more, making 49.",
    "He has 42 in the bag. There are 7 more, making 49.",
    "There are 7 more. That's 49 in all.",
    "There are 7 more. 49 altogether.",
    "There are 7 more, 49 altogether.",
    "There are seven more, so forty-nine in all.",
    "Seven more come, bringing the total to 49.",
    "A fee of $7 comes on top, making it $49.",
    "With the drivers the sum rises to 49.",
    "The 7 drivers make it 49.",
    "This has to be increased by 7, yielding 49.",
    "There are 7 more → 49.",
    "42 + 7 = 49.",
    "7 more is 49.",
    "Grand total: 49.",
    "Note: with the drivers there are 49.",
    "Every bus also has a driver: 49.",
    "By adding the drivers we get 49.",
    "Because of the drivers, it is 49.",
    "The drivers need 7 seats, too.\n\n49 seats",
    "Explanation: 6*7 = 42, plus 7 drivers = 49.",
    "Ann has 42 of them, and Tom 49.",
    "Tom's share is 49.",
    "Double it.",
    r"We obtain $\mathbf{49}$.",
    "We obtain <b>49</b>.",
    "Every one counts; 49.",
    "So $\\approx 49$.",
)
CONFIRMED = (
    "Looking at it again, 6 rows of 7 seats make 42.",
    "A second look confirms it: 40 + 2 = 42.",
    "A closer look at the table gives the same.",
    "Reading it again, this fits all three conditions.",
    "Note that 49 is the next square.",
    "Check: 6*7 = 42.",
    "Check: 42 + 7 = 49 ✓",
    "Let's verify: 42 + 7 = 49. Correct!",
    "Verification: 6 × 7 = 42 ✓",
    "So 42 works.",
    "That is 42 as required.",
    "This is because 7 + 35 = 42.",
    "There were 49 seats. Seven broke. That leaves 42.",
    "Each row has 7 seats and there are 6 rows.",
    "6 rows of 7 seats each.",
    "It is the product of 6 and 7.",
    "It lies between 40 and 50.",
    "It isn't 49.",
    "If the drivers counted, it would be 49.",
    "The solution $x=49$ is extraneous.",
    "Here $n=6$ and $k=7$.",
    "I'm 95% sure. Confidence: 0.9",
    "Steps:\n1. Count 49 seats.\n2. Subtract 7.\n3. Get 42.",
    "It is a 2-digit number.",
    "We can see that 42 + 7 = 49, as given.",
    "Of course, 49 > 42.",
    "[asy] draw((0,0)--(49,7)); [/asy]",
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
    ("42", "The answer is 42 rather than 49."),
    ("42", "The answer is 42; that is 42 as required."),
    ("42", "The answer is 42, because 7 + 35 = 42."),
    ("42", r"Thus $\boxed{42}$ seats are equal to 49 chairs."),
    ("42", "The answer isn't 49 but 42."),
    ("42", "I thought it was 49. So 42 is the answer."),
    ("B", "The answer is B, since A and C are wrong."),
    ("B", "So (B) is correct."),
    (r"\frac12", "The answer is 0.5. So 50%."),
    (r"\frac12", "The answer is 50%, i.e. 0.5."),
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
SUPPOSED = [  # nobody gives this answer
    ("42", "If the answer is 42, then n = 7."),
    ("42", "Suppose the answer is 42. Contradiction."),
    ("42", "I doubt that the answer is 42."),
    ("42", "There is no way the answer is 42."),
    ("42", "Students often think the answer is 42."),
    ("42", "A tempting answer is 42."),
    ("42", "The answer is 49. My first answer was 42."),
    ("42", "The answer is 49. Bob's answer is 42."),
    ("42", "I doubt that 42 is the answer."),
    ("42", "The answer is 42 which makes 49 in total."),
    ("42", "#### 42 -> 49"),
    ("42", "Nobody gets 42."),
    ("42", "The answer is 42, not."),
    ("3", "The answers are:\n- 3\n- 5\n- 7"),
    ("42", "The answer is 42 (should be 49)."),
]
OTHER_CHOICE = [
    ("B", f"The answer is B. {then}")
    for then in (
        "Therefore C.",
        "I choose C.",
        "Option C is correct.",
        "Rather, C.",
        "Making it C.",
        "It's C.",
        "\n\n(C)",
    )
]
FORMULAS = [  # the answer, and what may stand after it
    (r"\frac{\pi}{4}", r"Doubling this gives $\frac{\pi}{2}$."),
    (r"\frac{\pi}{4}", r"There are two such sectors, making \frac\pi2."),
    (r"2\sqrt3", r"So the perimeter is $4\sqrt{3}$."),
    (r"2\sqrt3", "\n\n$4\\sqrt3$"),
    ("2x+1", r"Shifting up by 3: $y = 2x+4$."),
    ("2x+1", "The answer is $2x-1$."),
    ("(1,2)", "Reflected, (2, 1)."),
    ("[0,1)", "The domain is then $[0,2)$."),
    ("2,3", "The roots of the second are $2,5$."),
    ("3+2i", "Therefore $z = 4+2i$."),
]
EXPLAINED = [
    (r"\frac{\pi}{4}", r"So the area is $\frac\pi4$, about 0.785."),
    (r"\frac{\pi}{4}", r"A common mistake is $\frac{\pi}{2}$."),
    (r"\frac{\pi}{4}", r"Check: $2\cdot\frac{\pi}{4}=\frac{\pi}{2}$."),
    (r"2\sqrt3", r"It is the positive root of $x^2=12$."),
    (r"2\sqrt3", r"The other root is $-2\sqrt3$."),
    ("2x+1", "Its slope is 2. So $f(x)=1+2x$."),
    ("(1,2)", r"It is $\sqrt5$ from the origin, and lies between (0,1) and (2,3)."),
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
        ([("42", text) for text in ends(FIRST, CONTINUED)], {"infra_error"}),
        ([("49", text) for text in ends(FIRST, CONTINUED)], {"infra_error"}),
        ([("42", text) for text in ends(FIRST, CONFIRMED)], {"passed"}),
        ([("49", text) for text in ends(FIRST, CONFIRMED)], {"failed"}),
        (RIGHT, {"passed", "infra_error"}),
        (WRONG, {"failed", "infra_error"}),
        (BOTH, {"infra_error"}),
        (SUPPOSED, {"failed", "no_answer", "infra_error"}),
        (OTHER_CHOICE, {"infra_error"}),
        ([(gold, rf"\boxed{{{gold}}}. {then}") for gold, then in FORMULAS], {"infra_error"}),
        ([(gold, rf"\boxed{{{gold}}}. {then}") for gold, then in EXPLAINED], {"passed"}),
    ],
)
def test_ends_in_prose(
    pairs: list[tuple[str, str]], verdicts: set[str], checker: MathChecker
) -> None:
    outcomes = checker.check_many(pairs)
    found = [(*pair, o.verdict.value) for pair, o in zip(pairs, outcomes, strict=True)]
    assert [each for each in found if each[2] not in verdicts] == []
