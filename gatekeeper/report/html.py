"""The HTML of one page: every string is escaped unless it is `Markup`.

The page is self-contained: it contains its style sheet and no script, and its content security
policy forbids the browser to load anything.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from html import escape
from importlib.resources import files

__all__ = ["Markup", "definitions", "element", "figure", "page", "section", "table"]


class Markup(str):
    """Text that is HTML already."""

    __slots__ = ()


def element(tag: str, *children: str, **attributes: str) -> Markup:
    """<tag …>children</tag>; attribute names as Python writes them: class_, aria_label."""
    names = (name.rstrip("_").replace("_", "-") for name in attributes)
    given = "".join(f' {n}="{escape(v)}"' for n, v in zip(names, attributes.values(), strict=True))
    inside = "".join(c if isinstance(c, Markup) else escape(_printable(c)) for c in children)
    return Markup(f"<{tag}{given}>{inside}</{tag}>")


def section(title: str, *children: Markup) -> Markup:
    return element("section", element("h2", title), *children)


def table(
    heads: Sequence[str], rows: Iterable[Sequence[str]], *, caption: str, words: int = 1
) -> Markup:
    """A table with a caption below; the first `words` columns hold text, the others numbers."""
    rows = [list(row) for row in rows]
    kinds = ["number"] * len(heads)
    for i in range(words):  # long texts need a minimum width
        kinds[i] = "phrase" if any(len(row[i]) > 24 for row in rows) else "word"
    head = element(
        "tr",
        *(element("th", h, scope="col", class_=k) for h, k in zip(heads, kinds, strict=True)),
    )
    body = [
        element("tr", *(element("td", c, class_=k) for c, k in zip(row, kinds, strict=True)))
        for row in rows
    ]
    return element(
        "div",
        element("table", element("thead", head), element("tbody", *body)),
        element("p", caption, class_="caption"),
        class_="table",
    )


def definitions(pairs: Iterable[tuple[str, str]], *, class_: str = "facts") -> Markup:
    items = (element("div", element("dt", name), element("dd", value)) for name, value in pairs)
    return element("dl", *items, class_=class_)


def figure(svg: str, *, label: str, caption: str) -> Markup:
    """`svg` is trusted: the result of `gatekeeper.report.figures.inline_svg`."""
    drawing = element("div", Markup(svg), class_="drawing", role="img", aria_label=label)
    return element("figure", drawing, element("figcaption", caption))


def page(title: str, *children: Markup) -> str:
    head = element(
        "head",
        Markup('<meta charset="utf-8">'),
        Markup('<meta name="viewport" content="width=device-width, initial-scale=1">'),
        Markup(
            '<meta http-equiv="Content-Security-Policy" '
            "content=\"default-src 'none'; style-src 'unsafe-inline'; img-src data:\">"
        ),
        element("title", title),
        element("style", Markup(f"\n{_stylesheet()}")),
    )
    return f"<!DOCTYPE html>\n{element('html', head, element('body', *children), lang='en')}\n"


def _stylesheet() -> str:
    return files("gatekeeper.report").joinpath("report.css").read_text(encoding="utf-8")


def _printable(text: str) -> str:
    """With a replacement for what no page can contain: control characters, lone surrogates."""
    return "".join(
        c if c.isprintable() or c in "\n\t" else "\N{REPLACEMENT CHARACTER}" for c in text
    )
