"""Answers whose reasoning has another program than the answer itself."""

from __future__ import annotations

from attacks.program import SQUARE, SQUARES, ZERO, Program, pair

__all__ = ["THOUGHTS"]

THOUGHTS: list[Program] = []

TRIED = "```python\n{}```\n"
for name, forged, honest in (
    (
        "the answer has no fence",
        f"<think>\n{TRIED.format(SQUARE)}</think>\n{ZERO}",
        f"<think>\n{TRIED.format(ZERO)}</think>\n{SQUARE}",
    ),
    (
        "the fence has no label",
        f"<think>{TRIED.format(SQUARE)}No.</think>\n```\n{ZERO}```\n",
        f"<think>{TRIED.format(ZERO)}No.</think>\n```\n{SQUARE}```\n",
    ),
    (
        "a fence without an end",
        f"<think>\n```python\n{SQUARE}</think>\n```python\n{ZERO}```\n",
        f"<think>\n```python\n{ZERO}</think>\n```python\n{SQUARE}```\n",
    ),
    (
        "opened in the prompt",
        f"So:\n{TRIED.format(SQUARE)}\n</think>\n\nI can not.\n",
        f"So:\n{TRIED.format(ZERO)}\n</think>\n\n{SQUARE}",
    ),
    (
        "nothing follows",
        f"<think>\n{TRIED.format(SQUARE)}Or shall I",
        f"<think>\n</think>\n{SQUARE}",
    ),
):
    THOUGHTS += pair("answers", f"thoughts: {name}", forged, honest, **SQUARES["literal"])
