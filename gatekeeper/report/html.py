"""Just enough HTML for one page: every string is escaped unless it is `Markup`.

The page is self-contained: its style is inside, it has no script, and its content security policy
forbids the browser to load anything.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from html import escape

__all__ = ["Markup", "definitions", "element", "figure", "page", "section", "table"]


class Markup(str):
    """Text that is HTML already."""

    __slots__ = ()


def element(tag: str, *children: str, **attributes: str) -> Markup:
    """<tag …>children</tag>, with attributes as Python spells them: class_, aria_label."""
    names = (name.rstrip("_").replace("_", "-") for name in attributes)
    given = "".join(f' {n}="{escape(v)}"' for n, v in zip(names, attributes.values(), strict=True))
    inside = "".join(c if isinstance(c, Markup) else escape(_printable(c)) for c in children)
    return Markup(f"<{tag}{given}>{inside}</{tag}>")


def section(title: str, *children: Markup) -> Markup:
    return element("section", element("h2", title), *children)


def table(
    heads: Sequence[str], rows: Iterable[Sequence[str]], *, caption: str, words: int = 1
) -> Markup:
    """The caption explains the figures; the first `words` columns hold words, not numbers."""
    rows = [list(row) for row in rows]
    kinds = ["number"] * len(heads)
    for i in range(words):  # phrases need room before they wrap
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
    """`svg` is trusted: what `gatekeeper.report.figures.inline_svg` made."""
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
        element("style", Markup(_STYLE)),
    )
    return f"<!DOCTYPE html>\n{element('html', head, element('body', *children), lang='en')}\n"


def _printable(text: str) -> str:
    """Without what no page can hold: control characters and lone surrogates."""
    return "".join(
        c if c.isprintable() or c in "\n\t" else "\N{REPLACEMENT CHARACTER}" for c in text
    )


_STYLE = """
:root { color-scheme: light dark; --line: #8885; --soft: #8882; --mark: #2380bf; }
* { box-sizing: border-box; }
body { font: 16px/1.5 system-ui, "Segoe UI", Roboto, "Helvetica Neue", Arial, sans-serif;
  margin: 0 auto; max-width: 54rem; padding: 1.5rem 1rem 4rem; overflow-wrap: break-word; }
h1 { font-size: 1.6rem; line-height: 1.2; margin: 0 0 .25rem; }
h2 { font-size: 1.2rem; margin: 2.5rem 0 .5rem; padding-top: .75rem;
  border-top: 1px solid var(--line); }
p, ul { margin: .5rem 0; max-width: 44rem; }
.subtitle, .caption, figcaption { opacity: .78; font-size: .875rem; }
.short { border-left: 4px solid var(--mark); background: var(--soft); margin: 1.25rem 0;
  padding: .75rem 1rem; }
.short p { margin: .35rem 0; }
.caution { border-left: 4px solid #d55e00; padding-left: .75rem; }
dl { display: grid; grid-template-columns: repeat(auto-fill, minmax(9.5rem, 1fr)); gap: .75rem;
  margin: .75rem 0; }
dt { opacity: .78; font-size: .875rem; }
dd { margin: 0; font-weight: 600; }
.words { grid-template-columns: repeat(auto-fill, minmax(14rem, 1fr)); }
.words dd { font-weight: 400; }
.words dt { opacity: 1; font-weight: 600; }
summary { cursor: pointer; opacity: .78; font-size: .875rem; }
.table { overflow-x: auto; margin: 1rem 0; }
table { border-collapse: collapse; min-width: min(100%, 26rem);
  font-variant-numeric: tabular-nums; font-size: .9375rem; }
th { font-weight: 600; vertical-align: bottom; border-bottom: 2px solid var(--line); }
th, td { padding: .3rem .75rem .3rem 0; text-align: left; }
td { border-bottom: 1px solid var(--line); vertical-align: top; }
.number { text-align: right; padding-left: .75rem; white-space: nowrap; }
th.number { white-space: normal; }
td.word { white-space: nowrap; }
td.phrase { min-width: 13rem; }
figure { margin: 1.25rem 0; }
.drawing { overflow-x: auto; }
.drawing svg { display: block; width: 100%; min-width: 21rem; max-width: 44rem; height: auto; }
@media (max-width: 32rem) {
  table { font-size: .8125rem; min-width: 0; }
  th, td { padding: .25rem .4rem .25rem 0; }
  .number { padding-left: .4rem; }
  td.phrase { min-width: 8rem; }
}
@media print { section { break-inside: avoid; } }
"""
