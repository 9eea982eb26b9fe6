"""The whole page, the page of one output, and what they load."""

from __future__ import annotations

from importlib.resources import files
from math import isfinite

from gatekeeper.page.sections import TITLES, verdict_of
from gatekeeper.page.state import ShownOutput, one_line
from gatekeeper.report.html import (
    Markup,
    Section,
    contents,
    definitions,
    element,
    stylesheet,
)
from gatekeeper.report.labels import REASONS
from gatekeeper.types import Generation
from gatekeeper.wording import amount, counted

__all__ = ["ASSETS", "asset", "output_page", "page", "status_line"]

LONG = 100_000  # characters of a text shown
ASSETS = {
    "page.css": "text/css",
    "page.js": "text/javascript",
    "icon.svg": "image/svg+xml",
}
"""The files that a page loads, with their media types; it loads nothing from elsewhere."""


def asset(name: str) -> str:
    """The text of one of `ASSETS`."""
    text = files("gatekeeper.page").joinpath(name).read_text(encoding="utf-8")
    return stylesheet() + text if name == "page.css" else text


def page(name: str, status: Markup, shown: dict[str, Section]) -> str:
    """The page about a log.

    Parameters
    ----------
    name
        Name of the log.
    status
        From `status_line`.
    shown
        The sections by name; they are put into their order.
    """
    ordered = [shown[key] for key in TITLES if key in shown]
    return _document(
        f"gatekeeper: {name}",
        element("h1", "gatekeeper watch"),
        element("p", name, class_="subtitle"),
        status,
        contents(ordered),
        *ordered,
        root="",
        script=True,
    )


def status_line(outputs: int, events: int, behind: int, error: str) -> Markup:
    """The status line under the title: outputs and events read so far."""
    if error:
        text = f"The log cannot be read: {error}"
    elif behind:
        share = events / (events + behind)
        text = f"Reading the log: {share:.0%}; the numbers are those of the part read so far."
    else:
        text = f"{counted(outputs, 'output')}, {counted(events, 'event')}."
    return element(
        "p",
        element("span", text),
        element("span", id="connection"),
        id="status",
        class_="caution" if error else "caption",
        role="status",
    )


def output_page(shown: ShownOutput, generation: Generation, unit: str) -> str:
    """One output, in full or its first 100,000 characters."""
    text, decision, outcome = generation.text, shown.decision, shown.outcome
    note = []
    if len(text) > LONG:
        cut = f"The first {LONG:,} of {len(text):,} characters. All of them: gatekeeper show --id"
        note, text = [element("p", cut, class_="caption")], text[:LONG]
    numbers = [("score", decision.score), ("threshold", decision.threshold)]
    facts = [
        ("verdict", verdict_of(shown)),
        ("detail", (outcome.detail[:LONG] if outcome else "") or "none"),
        ("reason", REASONS[decision.reason]),
        ("propensity", f"{decision.propensity:.3g}"),
        ("policy", ", ".join(f"{n} {v:.3g}" for n, v in numbers if isfinite(v)) or "no score"),
    ]
    if outcome is not None and outcome.cost is not None and not shown.external:
        facts.append(("charged", amount(outcome.cost, unit)))
    article = element(
        "article",
        *note,
        element("pre", text),
        definitions(facts, class_="words"),
    )
    return _document(
        "gatekeeper: one output",
        element("h1", one_line(shown.id)),
        element("p", element("a", "All outputs", href="../")),
        article,
        root="../",
    )


def _document(title: str, *children: Markup, root: str, script: bool = False) -> str:
    loaded = [
        f'<link rel="stylesheet" href="{root}page.css">',
        f'<link rel="icon" href="{root}icon.svg">',
    ]
    if script:
        loaded.append(f'<script src="{root}page.js" defer></script>')
    head = element(
        "head",
        Markup('<meta charset="utf-8">'),
        Markup('<meta name="viewport" content="width=device-width, initial-scale=1">'),
        element("title", title),
        *map(Markup, loaded),
    )
    return f"<!DOCTYPE html>\n{element('html', head, element('body', *children), lang='en')}\n"
