"""The parts that run in the caller's process: they never raise, and they agree with arithmetic."""

from __future__ import annotations

from fractions import Fraction

from hypothesis import given, settings
from hypothesis import strategies as st
from pairs import PAIRS

from gatekeeper.maths import exact
from gatekeeper.maths.compare import AnswerComparer
from gatekeeper.maths.extract import extract
from gatekeeper.maths.normalise import normalise


def sampled(pieces: str) -> st.SearchStrategy[str]:
    return st.sampled_from([*pieces.split(" "), " ", "\n"])


LATEX = st.lists(
    sampled(
        r"0 1 2 3 7 + - * / ^ _ ( ) { } [ ] | , ; . ! % $ x y z e i A B ' = < > \ & \\ \frac \sqrt "
        r"\boxed{ \text{ \left \right \{ \} \pm \cup \circ ² ½ √ \begin{pmatrix} \end{pmatrix} and"
        " \x00 \ud800 </think> <think> answer: ####"
    ),
    max_size=40,
).map("".join)
numbers = st.fractions(max_denominator=50).filter(lambda x: abs(x) < 1000)


@st.composite
def arithmetic(draw: st.DrawFn, depth: int = 2) -> tuple[str, Fraction]:
    """A LaTeX expression with its value."""
    kind = draw(st.sampled_from(["number"] if depth == 0 else ["number", *"+-*/^"]))
    if kind == "number":
        x = draw(numbers)
        spelling = draw(st.sampled_from([r"\frac{%d}{%d}", r"(%d/%d)", r"\dfrac{%d}{%d}"]))
        if x.denominator == 1:
            spelling = "%d"
            return (f"({x})" if x < 0 else f"{x}"), x
        return f"({spelling % (x.numerator, x.denominator)})", x
    left, x = draw(arithmetic(depth=depth - 1))
    if kind == "^":
        n = draw(st.integers(0 if x == 0 else -3, 3)) or 1
        return f"({left})^{{{n}}}", x**n
    right, y = draw(arithmetic(depth=depth - 1))
    if kind == "/":
        return (rf"\frac{{{left}}}{{{right}}}", x / y) if y else (left, x)
    value = {"+": x + y, "-": x - y, "*": x * y}[kind]
    sign = r" \times " if kind == "*" else kind
    return f"({left}{sign}{right})", value


@given(arithmetic())
def test_exact_arithmetic_is_that_of_fractions(case: tuple[str, Fraction]) -> None:
    text, value = case
    canonical = normalise(text)
    assert canonical is not None
    found = exact.value(canonical)
    assert found == value or (found is None and len(canonical) > exact.MAX_TEXT)


@given(st.text() | LATEX, st.text() | LATEX)
@settings(max_examples=500)
def test_no_text_makes_the_linear_part_raise(gold: str, response: str) -> None:
    extracted = extract(response)
    assert extracted is None or extracted == extracted.strip() != ""
    x, y = normalise(gold), normalise(response)
    if x and y is not None:
        assert AnswerComparer().compare(x, y) in (True, False, None)
        assert AnswerComparer().compare(x, x) is True


def test_spelling_is_canonical() -> None:
    """The canonical spelling is its own canonical spelling."""
    for _, gold, _, _ in PAIRS:
        once = normalise(gold)
        assert once is not None
        assert normalise(once) == once


# "nor 7" and "≠ 7" deny the box.
@given(
    st.text(st.characters(exclude_categories=["L", "Cs"], exclude_characters="\\≠"), max_size=30),
    st.integers(0, 4),
)
def test_last_box_wins_at_any_nesting(prose: str, depth: int) -> None:
    inside = "{" * depth + "7" + "}" * depth
    assert extract(rf"\boxed{{1}} is wrong. {prose} \boxed{{{inside}}} {prose}") == inside


def test_rounding_needs_six_digits() -> None:
    third = r"\frac{1}{3}"
    assert exact.equal(third, "0.333333") is True
    assert exact.equal(third, "0.333334") is False
    assert exact.equal(third, "0.33333") is False
    assert exact.equal("0.3333333", "0.333333") is False  # two decimals are compared exactly
