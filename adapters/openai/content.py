"""The content of a message or of a delta: a text, or parts."""

from __future__ import annotations

from typing import Any

from gatekeeper.adapters.fields import field, text_of
from gatekeeper.errors import BadInputError

__all__ = ["answer_and_reasoning"]


def answer_and_reasoning(content: Any) -> tuple[str, str]:
    """The text of the answer, and that of the reasoning where it is in the content too.

    Parameters
    ----------
    content : str, list or None
        The parts of a list have the type text, thinking or reasoning, as Mistral's have.

    Raises
    ------
    BadInputError
        For a value or a part of another type: the text would not be complete without it.
    """
    if content is None or isinstance(content, str):
        return content or "", ""
    if not isinstance(content, list):
        raise BadInputError(f"content={content!r:.80}: a text or a list of parts is needed")
    answer = reasoning = ""
    for part in content:
        kind = field(part, "type")
        if kind == "text":
            answer += text_of(part, "text") or ""
        elif kind in ("thinking", "reasoning"):
            reasoning += "".join(answer_and_reasoning(field(part, kind)))
        else:
            raise BadInputError(
                f"content has the part {part!r:.80}: only parts of type text, thinking and "
                "reasoning are read; pass the text: gate.maybe_verify(Generation(id, text), task)"
            )
    return answer, reasoning
