"""Verdicts on the project's own pairs, and on MATH-500 if its file exists."""

from __future__ import annotations

import json
import random
import re
from collections import Counter
from pathlib import Path

import pytest
from pairs import NONE, PAIRS, UNKNOWN

from gatekeeper.errors import BadInputError
from gatekeeper.maths import MathChecker
from gatekeeper.protocols import AsyncVerifier, Verifier
from gatekeeper.testing import check_verifier, make_generation
from gatekeeper.types import Verdict

MATH_500 = Path(__file__).parents[2] / ".." / "shared" / "data" / "math_500.jsonl"
AS_WRITTEN = {"boxes", "cues", "broken"}  # kinds whose answers are whole responses
EXPECTED = {
    True: Verdict.PASSED,
    False: Verdict.FAILED,
    NONE: Verdict.NO_ANSWER,
    UNKNOWN: Verdict.INFRA_ERROR,
}


def response_of(kind: str, answer: str) -> str:
    return answer if kind in AS_WRITTEN else rf"So the answer is $\boxed{{{answer}}}$."


def test_own_pairs(checker: MathChecker) -> None:
    assert len(PAIRS) >= 200
    outcomes = checker.check_many((gold, response_of(kind, a)) for kind, gold, a, _ in PAIRS)
    wrong = [
        (*pair, outcome.verdict.value, outcome.meta, outcome.detail)
        for pair, outcome in zip(PAIRS, outcomes, strict=True)
        if outcome.verdict is not EXPECTED[pair[3]]
    ]
    assert wrong == []


def test_every_reference_is_itself(checker: MathChecker) -> None:
    golds = sorted({gold for _, gold, _, _ in PAIRS})
    for outcome in checker.check_many((g, rf"\boxed{{{g}}}") for g in golds):
        assert outcome.verdict is Verdict.PASSED


SPACES = [
    r"\,", r"\;", r"\:", r"\!", r"\>", r"\ ", "~", r"\quad ", r"\qquad ", r"\thinspace ",
    r"\medspace ", r"\thickspace ", r"\negthinspace ", r"\enspace ", r"\enskip ", r"\space ",
    r"\hfill ", r"\strut ", r"\hspace{1em}", r"\hspace*{0.2cm}", r"\mspace{3mu}",
    r"\phantom{\frac{1}{2}}", r"\kern-3pt ", r"\mskip 3mu ", r"\\ ", r"\newline ", r"\\,",
    r"\text{ }", "\u2009", "\u200b",
]  # fmt: skip
ENDINGS = [
    *SPACES,
    r"\,.",
    r".\,",
    r"\;,",
    r",\;",
    r"\ \ ",
    r"\quad\text{.}",
    r"\text{,}",
    ".",
    ",",
]


def test_space_at_the_ends_of_an_answer_changes_no_verdict(checker: MathChecker) -> None:
    """Right answers stay right and wrong ones wrong, whatever space a model typesets around."""
    plain = [
        (gold, answer, is_same) for kind, gold, answer, is_same in PAIRS if kind not in AS_WRITTEN
    ]
    assert len(plain) > 150
    spaced: list[tuple[str, str, bool | str]] = []
    for i, (gold, answer, is_same) in enumerate(plain):
        for shift in range(3):
            space = SPACES[(i + shift * 7) % len(SPACES)]
            ending = ENDINGS[(i + shift * 11) % len(ENDINGS)]
            spaced.append((gold, space + answer + ending, is_same))
        spaced.append((gold + space + ".", answer, is_same))  # nor does it in a reference
    for ending in ENDINGS:
        for answer in ("42", r"\frac{1}{2}", "(1,2)", r"12\text{ cm}", "5!", "10,080", r"5\pi"):
            spaced.append((answer, answer + ending, True))
            spaced.append(("41", answer + ending, False))
    outcomes = checker.check_many((g, rf"So $\boxed{{{answer}}}$.") for g, answer, _ in spaced)
    wrong = [
        (*pair, outcome.verdict.value, outcome.detail)
        for pair, outcome in zip(spaced, outcomes, strict=True)
        if outcome.verdict is not EXPECTED[pair[2]]
    ]
    for w in wrong:
        print(w)
    assert wrong == []


@pytest.mark.parametrize("space", SPACES)
def test_a_box_of_nothing_but_space_is_no_answer(checker: MathChecker, space: str) -> None:
    assert checker.check("5", rf"So $\boxed{{{space}}}$.").verdict is Verdict.NO_ANSWER


def test_any_order_any_number_of_workers(checker: MathChecker) -> None:
    """The same verdict and rule for every pair, in any worker and after any other pair."""
    pairs = [(gold, response_of(kind, answer)) for kind, gold, answer, _ in PAIRS[::3]]

    def judge(judges: MathChecker, order: list[int]) -> dict[int, tuple[object, ...]]:
        outcomes = judges.check_many(pairs[i] for i in order)
        return {
            i: (o.verdict, o.meta["rule"], o.meta["extracted"])
            for i, o in zip(order, outcomes, strict=True)
        }

    order = list(range(len(pairs)))
    first = judge(checker, order)
    random.Random(5).shuffle(order)
    with MathChecker(workers=2, hard_limit=30.0) as others:
        assert judge(others, order) == first


def test_verifier_contract(checker: MathChecker) -> None:
    assert isinstance(checker, Verifier)
    assert isinstance(checker, AsyncVerifier)
    examples = [
        (r"\boxed{\frac{2}{4}}", "1/2", Verdict.PASSED),
        (r"\boxed{(x+1)^2}", "x^2+2x+1", Verdict.PASSED),
        (r"\boxed{(x-1)^2}", "x^2+2x+1", Verdict.FAILED),
        ("I do not know.", "7", Verdict.NO_ANSWER),
        (r"\boxed{9^{9^{9^9}}}", "7", Verdict.INFRA_ERROR),
    ]
    check_verifier(
        checker,
        [
            (make_generation(f"m{i}", text=text), {"gold": gold}, verdict)
            for i, (text, gold, verdict) in enumerate(examples)
        ],
    )


@pytest.mark.parametrize("gold", ["", "  ", "$$", r"\boxed{}", r"\square", None, 5])
def test_reference_that_cannot_be_used(checker: MathChecker, gold: object) -> None:
    with pytest.raises(BadInputError, match="gold"):
        checker.verify(make_generation("m", text=r"\boxed{}"), {"gold": gold})


def test_task_may_be_an_object(checker: MathChecker) -> None:
    class Task:
        gold = "5"

    assert checker.verify(make_generation("m", text="5"), Task()).error == 0


def test_math_500(checker: MathChecker) -> None:
    """Each reference solution reaches its own answer, none reaches another's."""
    if not MATH_500.exists():
        pytest.skip(f"no {MATH_500.resolve()}: MATH-500 is used where it lies, never shipped")
    rows = [json.loads(line) for line in MATH_500.read_text().splitlines()]
    own = checker.check_many((row["answer"], row["solution"]) for row in rows)
    verdicts = Counter(outcome.verdict for outcome in own)
    assert verdicts[Verdict.PASSED] >= 499, verdicts
    crossed = [
        (row["answer"], rows[(i + shift) % len(rows)])
        for shift in (1, 7)
        for i, row in enumerate(rows)
        if plain(row["answer"]) != plain(rows[(i + shift) % len(rows)]["answer"])
    ]
    assert len(crossed) > 900
    outcomes = checker.check_many((gold, other["solution"]) for gold, other in crossed)
    accepted = [
        (gold, other["answer"])
        for (gold, other), outcome in zip(crossed, outcomes, strict=True)
        if outcome.verdict is Verdict.PASSED
    ]
    assert accepted == []


def plain(answer: str) -> str:
    """An answer without its unit, name and spacing: a rough key, independent of the checker."""
    answer = re.sub(r"\\(?:text|mbox)\{[^}]*\}(?:\^\d)?|\^\\circ|\\\$|\\!|^\w=|\s", "", answer)
    return ",".join(sorted(answer.split(","))).replace("dfrac", "frac")
