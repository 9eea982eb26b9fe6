"""HTML tables of names and values, which notebooks display for results."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

__all__ = ["as_html"]


def as_html(
    title: str,
    rows: Iterable[Sequence[object]],
    *,
    heads: Sequence[str] = (),
    notes: Iterable[str] = (),
) -> str:
    """A table for a notebook, in the notebook's own colours. All text is escaped.

    Parameters
    ----------
    title
        Above the table.
    rows
        Cells of each row; floats get four digits, None a dash.
    heads
        Heads of the columns; empty: none.
    notes
        Sentences below.
    """
    from html import escape  # here: each import of the package would load its table of entities

    head = "".join(f"<th>{escape(name)}</th>" for name in heads)
    body = "".join(
        "<tr>" + "".join(f"<td>{escape(_shown(cell))}</td>" for cell in row) + "</tr>"
        for row in rows
    )
    below = "".join(f"<p>{escape(note)}</p>" for note in notes)
    top = f"<thead><tr>{head}</tr></thead>" if heads else ""
    return f"<p><b>{escape(title)}</b></p><table>{top}<tbody>{body}</tbody></table>{below}"


def _shown(value: object) -> str:
    if value is None or value != value:
        return "–"
    if isinstance(value, bool):
        return "yes" if value else "no"
    text = f"{value:.4g}" if isinstance(value, float) else str(value)
    return text if len(text) <= 200 else f"{text[:200]} …"
