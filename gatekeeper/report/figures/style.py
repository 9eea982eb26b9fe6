"""Shared by all figures: colours, matplotlib settings, an empty figure, the legend."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from gatekeeper.errors import MissingDependencyError

if TYPE_CHECKING:
    from matplotlib.figure import Figure

__all__ = [
    "COLOURS",
    "DASHES",
    "INK",
    "MARKERS",
    "POINTS",
    "TIP",
    "WIDTH",
    "check_installed",
    "legend_above",
    "new_figure",
    "styled",
    "tip",
]

INK = "#3b3f46"  # `inline_svg` turns it into the page's text colour
COLOURS = ("#2380BF", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9")
MARKERS = ("o", "s", "D", "^", "v", "P")
WIDTH = 5.0  # inches: on a phone it is shown at three quarters of that, and still read
TIP = "tip:"  # prefix of the ids of shapes to which `inline_svg` gives a text for the mouse pointer
DASHES = ("-", (0, (5, 2)), (0, (1.5, 1.5)), (0, (6, 2, 1.5, 2)))
POINTS = 400  # per curve: more cannot be seen
STYLE: dict[Any, Any] = {
    "axes.axisbelow": True,
    "axes.edgecolor": INK,
    "axes.grid": True,
    "axes.labelcolor": INK,
    "axes.labelsize": 10,
    "axes.spines.right": False,
    "axes.spines.top": False,
    "axes.titlelocation": "left",
    "axes.titlesize": 11,
    "axes.titleweight": "bold",
    "axes.titlecolor": INK,
    "figure.dpi": 100,
    "font.family": "sans-serif",
    "font.size": 10,
    "grid.alpha": 0.18,
    "grid.color": INK,
    "legend.frameon": False,
    "legend.fontsize": 9.5,
    "lines.linewidth": 1.8,
    "lines.markersize": 6.5,
    "savefig.dpi": 160,
    "svg.fonttype": "none",  # text stays text
    "svg.hashsalt": "gatekeeper",  # ids depend on the content only
    "text.color": INK,
    "text.parse_math": False,  # a "$" in a name is a "$"
    "xtick.color": INK,
    "ytick.color": INK,
}


def check_installed() -> None:
    """Check that figures can be made, before long work starts.

    Raises
    ------
    MissingDependencyError
        Without matplotlib (extra `plots`).
    """
    try:
        import matplotlib  # noqa: F401
    except ImportError:
        raise MissingDependencyError("matplotlib", extra="plots", needed_for="a figure") from None


@contextmanager
def styled() -> Iterator[None]:
    """Our settings while a figure is made or written; afterwards the caller's are restored."""
    check_installed()
    import matplotlib

    with matplotlib.rc_context(STYLE):
        yield


def tip(axes: Any, x: float, y: float, text: str) -> None:
    """A text that a page shows while the pointer is near this point."""
    if x == x and y == y:
        axes.plot([x], [y], "o", ms=15, mew=0, color=INK, alpha=0.0, gid=f"{TIP}{text}", zorder=9)


def new_figure(width: float, height: float) -> Figure:
    """An empty figure; size in inches. It has its own canvas (Agg): no window, no global state."""
    from matplotlib.figure import Figure

    return Figure(figsize=(width, height), layout="constrained")


def legend_above(figure: Figure, *, columns: int) -> None:
    """The legend, and then the final layout: it would change in the last bits with each file that
    is written in another resolution, and be computed again for each."""
    handles, labels = figure.axes[0].get_legend_handles_labels()
    if handles:
        figure.legend(handles, labels, loc="outside upper left", ncols=columns)
    layout = figure.get_layout_engine()
    assert layout is not None
    layout.execute(figure)
    figure.set_layout_engine(None)
