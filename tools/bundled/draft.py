"""A task as its generator draws it, before the expected values are computed."""

from dataclasses import dataclass
from typing import Literal

Kind = Literal["code", "math"]


@dataclass(frozen=True, slots=True)
class Draft:
    """A prompt with its reference answer.

    `calls` (code) are test calls such as `f([1, 2])`, `gold` (math) is the result in LaTeX.
    """

    prompt: str
    kind: Kind
    answer: str
    calls: tuple[str, ...] = ()
    gold: str = ""
