"""Numbers and their nouns in sentences."""

from __future__ import annotations

__all__ = ["all_of", "counted", "minus", "number_of", "plural", "signed"]


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


def signed(value: float, digits: int = 0, unit: str = "f") -> str:
    """A difference with its sign: +9, −6. `unit` may be %; a rounded zero is +0."""
    return minus(f"{value:+z.{digits}{unit}}")


def minus(number: str) -> str:
    """A number's text with a minus sign in place of the hyphen, which a line may break after."""
    return number.replace("-", "−")
