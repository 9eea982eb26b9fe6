"""The HTML of one page: every string is escaped unless it is `Markup`.

The page is self-contained: it contains its style sheet and no script, and its content security
policy forbids the browser to load anything.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from html import escape
from importlib.resources import files

from gatekeeper.printable import printable

__all__ = [
    "Markup",
    "Section",
    "contents",
    "definitions",
    "element",
    "figure",
    "folded",
    "page",
    "section",
    "stylesheet",
    "table",
]


class Markup(str):
    """Text that is HTML already."""

    __slots__ = ()


def element(tag: str, *children: str, **attributes: str) -> Markup:
    """<tag …>children</tag>; attribute names as Python writes them: class_, aria_label."""
    names = (name.rstrip("_").replace("_", "-") for name in attributes)
    given = "".join(
        f' {n}="{escape(printable(v))}"' for n, v in zip(names, attributes.values(), strict=True)
    )
    inside = "".join(c if isinstance(c, Markup) else escape(printable(c)) for c in children)
    return Markup(f"<{tag}{given}>{inside}</{tag}>")


class Section(Markup):
    """A section with its title and the id that links to it have."""

    heading: str
    anchor: str


def section(title: str, *children: Markup) -> Section:
    """A section with its heading, which `contents` links to."""
    id_ = re.sub(r"[^a-z0-9]+", "-", title.lower()).strip("-")
    made = Section(element("section", element("h2", title), *children, id=id_))
    made.heading, made.anchor = title, id_
    return made


def contents(sections: Iterable[Section]) -> Markup:
    """Links to the sections."""
    links = (element("li", element("a", s.heading, href=f"#{s.anchor}")) for s in sections)
    return element("nav", element("ol", *links), aria_label="Contents")


def folded(summary: str, *children: Markup, class_: str = "") -> Markup:
    """A part that opens by a click."""
    more = {"class_": class_} if class_ else {}
    return element("details", element("summary", summary), *children, **more)


def table(
    heads: Sequence[str], rows: Iterable[Sequence[str]], *, caption: str, words: int = 1
) -> Markup:
    """A table with a caption below; the first `words` columns hold text, the others numbers.

    On a narrow screen each row becomes a block, in which every cell shows its column's name.
    """
    rows = [list(row) for row in rows]
    kinds = ["number"] * len(heads)
    for i in range(words):  # long texts need a minimum width
        kinds[i] = "phrase" if any(len(row[i]) > 24 for row in rows) else "word"
    head = element(
        "tr",
        *(element("th", h, scope="col", class_=k) for h, k in zip(heads, kinds, strict=True)),
    )
    body = [
        element(
            "tr",
            *(
                element("td", cell, class_=kind, data_label=head_)
                for cell, kind, head_ in zip(row, kinds, heads, strict=True)
            ),
        )
        for row in rows
    ]
    return element(
        "div",
        element("table", element("thead", head), element("tbody", *body)),
        element("p", caption, class_="caption"),
        class_="table",
    )


def definitions(pairs: Iterable[tuple[str, str]], *, class_: str = "facts") -> Markup:
    """A list of names and values."""
    items = (element("div", element("dt", name), element("dd", value)) for name, value in pairs)
    return element("dl", *items, class_=class_)


def figure(svg: str, *, label: str, caption: str, values: Markup | None = None) -> Markup:
    """A figure with its caption.

    `svg` is trusted: the result of `gatekeeper.report.figures.inline_svg`. `values` is a table of
    the values that it shows, for readers without a pointer.
    """
    drawing = element("div", Markup(svg), class_="drawing", role="img", aria_label=label)
    twin = () if values is None else (folded("Values of this figure", values),)
    return element("figure", drawing, element("figcaption", caption), *twin)


def page(title: str, *children: Markup) -> str:
    """A whole page, with the style sheet."""
    head = element(
        "head",
        Markup('<meta charset="utf-8">'),
        Markup('<meta name="viewport" content="width=device-width, initial-scale=1">'),
        Markup(
            '<meta http-equiv="Content-Security-Policy" '
            "content=\"default-src 'none'; style-src 'unsafe-inline'; img-src data:\">"
        ),
        element("title", title),
        element("style", Markup(f"\n{stylesheet()}")),
    )
    return f"<!DOCTYPE html>\n{element('html', head, element('body', *children), lang='en')}\n"


def stylesheet() -> str:
    """The style sheet of every page."""
    return files("gatekeeper.report").joinpath("report.css").read_text(encoding="utf-8")
