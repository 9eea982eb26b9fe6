"""Line charts as SVG, in the colours and with the type of the page. No styles, no scripts."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from html import escape
from math import ceil, floor, log10

from gatekeeper.report.figures.style import COLOURS

__all__ = ["Band", "Line", "bar", "chart"]

WIDTH, HEIGHT = 460, 250
LEFT, RIGHT, TOP, BOTTOM = 54, 24, 34, 48


@dataclass(frozen=True, slots=True)
class Line:
    """A curve by its points."""

    name: str
    x: Sequence[float]
    y: Sequence[float]
    colour: str = COLOURS[0]
    dashed: bool = False


@dataclass(frozen=True, slots=True)
class Band:
    """An interval over a stretch of the x axis, with its value."""

    left: float
    right: float
    low: float
    value: float
    high: float
    tip: str  # what the pointer shows


def chart(
    *,
    lines: Sequence[Line] = (),
    bands: Sequence[Band] = (),
    x_label: str,
    y_label: str,
    percent: bool = False,
) -> str:
    """An <svg> element, axes from 0.

    Parameters
    ----------
    lines, bands
        What to draw; one of them at least has something.
    x_label, y_label
        Labels of the axes.
    percent
        The y axis has shares.
    """
    most_x = max([*(line.x[-1] for line in lines), *(band.right for band in bands)]) or 1.0
    tops = [max(line.y) for line in lines] + [band.high for band in bands]
    least = 0.01 if percent else 1.0  # the top where nothing is wrong
    y_ticks = list(_ticks(max(*tops, least), 1.0 if percent else 0.0))
    most_y = y_ticks[-1]

    def at_x(x: float) -> float:
        return round(LEFT + (WIDTH - LEFT - RIGHT) * x / most_x, 1)

    def at_y(y: float) -> float:
        return round(HEIGHT - BOTTOM - (HEIGHT - TOP - BOTTOM) * min(y / most_y, 1.0), 1)

    shown: Callable[[float], str] = (lambda y: f"{100 * y:g}%") if percent else _short
    parts = [*_axes(at_x, at_y, [t for t in _ticks(most_x) if t <= most_x], y_ticks, shown)]
    parts += [_text(at_x(most_x), HEIGHT - 8, x_label, "end"), _text(4, 14, y_label, "start")]
    for band in bands:
        x, width = at_x(band.left), max(at_x(band.right) - at_x(band.left), 1.0)
        low, value, high = at_y(band.low), at_y(band.value), at_y(band.high)
        parts.append(
            f'<g fill="{COLOURS[0]}"><title>{escape(band.tip)}</title>'
            f'<rect x="{x}" y="{high}" width="{width}" height="{max(low - high, 1.0):.1f}" '
            f'opacity="0.25"/>'
            f'<rect x="{x}" y="{value - 1.1:.1f}" width="{width}" height="2.2"/></g>'
        )
    for line in lines:
        points = " ".join(f"{at_x(x)},{at_y(y)}" for x, y in zip(line.x, line.y, strict=True))
        parts.append(
            f'<polyline points="{points}" fill="none" stroke="{line.colour}" stroke-width="2.2" '
            f'stroke-linejoin="round"{_dash(line)}/>'
        )
    parts += _legend(lines)
    return f'<svg viewBox="0 0 {WIDTH} {HEIGHT}" font-size="14">{"".join(parts)}</svg>'


def bar(shares: Sequence[tuple[float, str]]) -> str:
    """Shares of a whole, side by side, as an <svg> element.

    Parameters
    ----------
    shares
        Each in [0, 1], with its colour.
    """
    parts, x = [], 0.0
    for share, colour in shares:
        width = min(share, 1.0 - x)
        parts.append(
            f'<rect x="{1000 * x:.1f}" width="{1000 * width:.1f}" height="14" fill="{colour}"/>'
        )
        x += width
    return (
        '<svg viewBox="0 0 1000 14" preserveAspectRatio="none" height="14">'
        f'<rect width="1000" height="14" fill="#8882"/>{"".join(parts)}</svg>'
    )


def _axes(
    at_x: Callable[[float], float],
    at_y: Callable[[float], float],
    x_ticks: Sequence[float],
    y_ticks: Sequence[float],
    shown: Callable[[float], str],
) -> Iterator[str]:
    right = WIDTH - RIGHT
    for y in y_ticks:
        yield (
            f'<path d="M{LEFT} {at_y(y)}H{right}" stroke="currentColor" '
            f'opacity="{0.5 if y == 0 else 0.15}"/>'
        )
        yield _text(LEFT - 6, at_y(y) + 4, shown(y), "end")
    for x in x_ticks:
        yield _text(at_x(x), HEIGHT - BOTTOM + 18, _short(x), "middle")


def _legend(lines: Sequence[Line]) -> Iterator[str]:
    x = WIDTH - RIGHT
    for line in reversed(lines):
        x -= 44 + int(7 * len(line.name))
        yield (
            f'<path d="M{x} 10h22" stroke="{line.colour}" stroke-width="2.2"{_dash(line)}/>'
            + _text(x + 27, 14, line.name, "start")
        )


def _dash(line: Line) -> str:
    return ' stroke-dasharray="6 4"' if line.dashed else ""


def _text(x: float, y: float, text: str, anchor: str) -> str:
    return (
        f'<text x="{x:g}" y="{y:g}" text-anchor="{anchor}" fill="currentColor">'
        f"{escape(text)}</text>"
    )


def _ticks(most: float, ceiling: float = 0.0) -> Iterator[float]:
    """Round numbers from 0 to the first that is not below `most`; none above the ceiling."""
    raw = most / 4.0
    unit = 10.0 ** floor(log10(raw))
    step = next(unit * k for k in (1.0, 2.0, 2.5, 5.0, 10.0) if unit * k >= raw * 0.999)
    last = ceil(most / step - 1e-9)
    for i in range(last + 1):
        tick = round(i * step, 12)
        if ceiling and tick > ceiling:
            yield ceiling
            return
        yield tick


def _short(value: float) -> str:
    for unit, name in ((1e9, "G"), (1e6, "M"), (1e4, "k")):
        if value >= unit:
            return f"{value / (1e3 if name == 'k' else unit):g}{name}"
    return f"{value:g}"
