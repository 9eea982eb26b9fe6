"""A figure as a file, as markup for a page, or as a data URI."""

from __future__ import annotations

import base64
import re
from io import BytesIO
from pathlib import Path
from typing import TYPE_CHECKING

from gatekeeper.errors import BadInputError
from gatekeeper.report.figures.style import INK, TIP, styled

if TYPE_CHECKING:
    from matplotlib.figure import Figure

__all__ = ["inline_svg", "png_uri", "save"]


def save(figure: Figure, path: str | Path) -> None:
    """Write a file with a white background.

    Parameters
    ----------
    figure
        From any function of this package.
    path
        The suffix gives the format: svg, png or pdf.

    Raises
    ------
    BadInputError
        If the file cannot be written, or the format is unknown.
    """
    path = Path(path)
    try:
        with styled():
            # A date would make two files of the same figure differ.
            metadata = {"Date": None} if path.suffix == ".svg" else None
            figure.savefig(path, facecolor="white", metadata=metadata)
    except (OSError, ValueError) as e:
        raise BadInputError(f"figure {str(path)!r} cannot be written: {e}") from e


def inline_svg(figure: Figure, *, prefix: str) -> str:
    """An <svg> element for a page: transparent, in the page's text colour, nothing loaded.

    Parameters
    ----------
    figure
        From any function of this package.
    prefix
        Put before every id inside, so that the ids of two figures on one page differ.
    """
    buffer = BytesIO()
    with styled():
        figure.savefig(buffer, format="svg", transparent=True)
    svg = buffer.getvalue().decode()
    svg = svg[svg.index("<svg") :].replace(INK, "currentColor")
    svg = re.sub(rf'<g id="{TIP}([^"]*)">', r"<g><title>\1</title>", svg)
    svg = re.sub(r"<metadata>.*?</metadata>", "", svg, flags=re.DOTALL)
    return re.sub(r'(\bid="|href="#|url\(#)', rf"\g<1>{prefix}-", svg)


def png_uri(figure: Figure) -> str:
    """The figure as a PNG data URI, for programs that show no SVG (mail, some notebooks)."""
    buffer = BytesIO()
    with styled():
        figure.savefig(buffer, format="png", facecolor="white")
    return "data:image/png;base64," + base64.b64encode(buffer.getvalue()).decode()
