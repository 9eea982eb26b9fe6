"""Texts of models and verifiers, made harmless for pages, terminals and other programs."""

from __future__ import annotations

from unicodedata import category

__all__ = ["printable"]

KEPT = "\n\t\N{ZERO WIDTH JOINER}\N{ZERO WIDTH NON-JOINER}"


def printable(text: str) -> str:
    """A text that cannot act on a page or a terminal, and that every program can encode and store.

    Control characters, lone surrogates and marks that change the direction of writing are replaced.
    All spaces stay, and the joiners that emoji and some scripts need.
    """
    if text.isprintable():  # as most are
        return text
    return "".join(
        c if c.isprintable() or c in KEPT or category(c) == "Zs" else "\N{REPLACEMENT CHARACTER}"
        for c in text.replace("\r\n", "\n")
    )
