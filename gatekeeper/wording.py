"""Numbers and their nouns in sentences, and exceptions in words."""

from __future__ import annotations

from collections.abc import Iterable

__all__ = [
    "all_of",
    "amount",
    "chance",
    "choose",
    "cost_text",
    "counted",
    "described",
    "minus",
    "nearest",
    "number_of",
    "one_line",
    "p_text",
    "plural",
    "signed",
]


def plural(number: float, one: str, several: str) -> str:
    """The form of a word that agrees with a number: was, were."""
    return one if number == 1 else several


def number_of(number: float, noun: str) -> str:
    """A noun in the form that agrees with a number: task, tasks."""
    return plural(number, noun, f"{noun}es" if noun.endswith("s") else f"{noun}s")


def counted(number: float, noun: str) -> str:
    """A number of things, to the nearest whole one: 1 task, 2,000 tasks."""
    return f"{number:,.0f} {number_of(round(number), noun)}"


def all_of(number: int, noun: str) -> str:
    """All of so many things: all 600 outputs; the 1 output."""
    return f"{plural(number, 'the', 'all')} {counted(number, noun)}"


def cost_text(value: float) -> str:
    """A cost with three significant digits, or as a whole number from 100 on."""
    return f"{value:,.0f}" if 100.0 <= value < 1e9 else f"{value:.3g}"


def amount(value: float, unit: str) -> str:
    """A cost in a budget's unit: 1 verification, 3.51 seconds, 0.25 usd."""
    return f"{cost_text(value)} {unit.removesuffix('s') if value == 1 else unit}"


def signed(value: float, digits: int = 0, unit: str = "f") -> str:
    """A difference with its sign: +9, −6. `unit` may be %; a rounded zero is +0."""
    return minus(f"{value:+z.{digits}{unit}}")


def minus(number: str) -> str:
    """A number's text with a minus sign in place of the hyphen, which a line may break after."""
    return number.replace("-", "−")


def p_text(value: float) -> str:
    """A p-value with three decimals: p = 0.012, p < 0.001."""
    return "p < 0.001" if value < 0.001 else f"p = {value:.3f}"


def chance(probability: float) -> str:
    """An estimated probability: 57%, under 1%, over 99%; draws cannot show that it is 0 or 1."""
    shown = f"{probability:.0%}"
    return {"0%": "under 1%", "100%": "over 99%"}.get(shown, shown)


def nearest(word: object, known: Iterable[str]) -> str:
    """The known word that an unknown one is like, as a question; "" where none is."""
    from difflib import get_close_matches  # slow to import, and seldom needed

    close = get_close_matches(f"{word:.80}" if isinstance(word, str) else "", list(known), n=1)
    return f"did you mean {close[0]!r}?" if close else ""


def choose(word: object, known: Iterable[str]) -> str:
    """What to give in place of an unknown word: choose one of a, b (did you mean 'b'?)."""
    known = list(known)
    near = nearest(word, known)
    return f"choose one of {', '.join(known)}" + (f" ({near})" if near else "")


def described(error: BaseException, kind: type | None = None) -> str:
    """An exception's class, or `kind`, and text; some of other packages fail to make their text."""
    try:
        text = str(error)
    except Exception as e:
        text = f"its text cannot be made ({type(e).__name__})"
    return f"{(kind or type(error)).__name__}: {text}"


def one_line(error: BaseException) -> str:
    """`described`, without line breaks."""
    return " ".join(described(error).split())
