"""The end of the page: when and from what it was made."""

from __future__ import annotations

from datetime import datetime

from gatekeeper.report.html import Markup, definitions, element
from gatekeeper.report.origin import Origin

__all__ = ["foot"]


def foot(origin: Origin, made: datetime | None) -> Markup:
    pairs = [] if made is None else [("made on", f"{made:%Y-%m-%d %H:%M %Z}".rstrip())]
    pairs += [
        ("made by", f"gatekeeper {origin.version}"),
        ("made with", origin.made_with),
        (
            f"SHA-256 of {origin.file}",
            origin.sha256 or "none: the file was being written when it was read",
        ),
    ]
    return element("footer", definitions(pairs, class_="words"))
