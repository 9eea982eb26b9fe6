"""The paper's figures, from plain arrays: each function returns a `matplotlib.figure.Figure`.

Needs the extra `plots`; nothing here touches matplotlib before a figure is asked for, and pyplot
never. Colours are those of Okabe and Ito, told apart by the colour-blind (the blue a bit lighter,
for dark pages), and no meaning hangs on colour alone. `save` writes a file; `inline_svg` gives
markup for a page, in the page's text colour, the same characters for the same figure.
"""

from __future__ import annotations

import base64
import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from io import BytesIO
from itertools import cycle
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from gatekeeper.errors import BadInputError, MissingDependencyError
from gatekeeper.stats.density import density

if TYPE_CHECKING:
    from matplotlib.figure import Figure

__all__ = [
    "Correlations",
    "Gain",
    "GainPanel",
    "Point",
    "aurc",
    "check_installed",
    "correlation_figure",
    "gain_figure",
    "inline_svg",
    "png_uri",
    "risk_coverage",
    "risk_coverage_figure",
    "save",
    "sweep_figure",
    "threshold_figure",
    "timeline_figure",
]

SIGNIFICANT = 0.05  # two-sided p below which a marker is filled
NEAR_RANDOM = 0.10  # ρ below which a signal is next to nothing (the paper's shaded band)
INK = "#3b3f46"  # `inline_svg` turns it into the page's text colour
COLOURS = ("#2380BF", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9")
MARKERS = ("o", "s", "D", "^", "v", "P")
DASHES = ("-", (0, (5, 2)), (0, (1.5, 1.5)), (0, (6, 2, 1.5, 2)))
POINTS = 400  # of a curve: what can be seen
STYLE: dict[Any, Any] = {
    "axes.axisbelow": True,
    "axes.edgecolor": INK,
    "axes.grid": True,
    "axes.labelcolor": INK,
    "axes.labelsize": 10.5,
    "axes.spines.right": False,
    "axes.spines.top": False,
    "axes.titlelocation": "left",
    "axes.titlesize": 11,
    "axes.titleweight": "bold",
    "axes.titlecolor": INK,
    "figure.constrained_layout.use": True,
    "figure.dpi": 100,
    "font.family": "sans-serif",
    "font.size": 10.5,
    "grid.alpha": 0.18,
    "grid.color": INK,
    "legend.frameon": False,
    "legend.fontsize": 9.5,
    "lines.linewidth": 1.8,
    "lines.markersize": 6.5,
    "savefig.dpi": 160,
    "svg.fonttype": "none",  # text stays text
    "svg.hashsalt": "gatekeeper",  # ids by content, not by chance
    "text.color": INK,
    "text.parse_math": False,  # a "$" in a name is a "$"
    "xtick.color": INK,
    "ytick.color": INK,
}


@dataclass(frozen=True, slots=True)
class Correlations:
    """ρ_k of one setting, stratum by stratum; NaN where a stratum has too few labels of a kind."""

    name: str
    rho: Sequence[float]  # (K,), in [-1, 1]
    p_value: Sequence[float]  # (K,), two-sided


@dataclass(frozen=True, slots=True)
class Gain:
    """A policy's hit rate minus Threshold's, over the budgets; in percentage points."""

    policy: str
    mean: Sequence[float]  # (B,)
    low: Sequence[float]  # (B,), 95 % interval
    high: Sequence[float]  # (B,)


@dataclass(frozen=True, slots=True)
class GainPanel:
    setting: str
    beta: Sequence[float]  # (B,), in (0, 1)
    gains: Sequence[Gain]


@dataclass(frozen=True, slots=True)
class Point:
    """A marked point of the sweep."""

    label: str
    rho: float
    hit_rate: float


def correlation_figure(settings: Sequence[Correlations]) -> Figure:
    """How well the score tells wrong from right in each stratum (the paper's Figure "quartile").

    Filled markers: p < 0.05; open ones: not told from 0. The band ρ < 0.10 is next to random.
    """
    with _style():
        figure = _figure(6.4, 3.9)
        axes = figure.add_subplot()
        k = max((len(setting.rho) for setting in settings), default=0)
        axes.axhspan(-2.0, NEAR_RANDOM, color=INK, alpha=0.09, lw=0)
        axes.axhline(0.0, color=INK, lw=0.8)
        drawn = [0.0, 2.5 * NEAR_RANDOM]
        width = 0.09 * min(len(settings) - 1, 4)  # side by side, so that none hides another
        shifts = np.linspace(-width, width, len(settings)) if len(settings) > 1 else [0.0]
        for setting, shift, colour, marker in zip(
            settings, shifts, cycle(COLOURS), cycle(MARKERS), strict=False
        ):
            rho, p = np.asarray(setting.rho, float), np.asarray(setting.p_value, float)
            x = np.arange(1, rho.size + 1) + shift
            axes.plot(x, rho, "-", color=colour, lw=1.2, alpha=0.6)
            for chosen, fill in ((p < SIGNIFICANT, colour), (~(p < SIGNIFICANT), "none")):
                axes.plot(x[chosen], rho[chosen], marker, color=colour, mfc=fill, mew=1.6, ms=8)
            axes.plot([], [], marker, ls="-", color=colour, label=setting.name)
            drawn.extend(rho[np.isfinite(rho)].tolist())
        for label, fill in (("p < 0.05", INK), ("not significant", "none")):
            axes.plot([], [], "o", color=INK, mfc=fill, mew=1.6, label=label)
        axes.set_ylim(min(drawn) - 0.06, max(drawn) + 0.08)
        axes.set_xlim(0.6, k + 0.4)
        axes.set_xticks(range(1, k + 1), [f"Q{i}" for i in range(1, k + 1)])
        axes.grid(axis="x", visible=False)
        axes.text(
            0.99,
            NEAR_RANDOM,
            "near random",
            va="top",
            ha="right",
            fontsize=9,
            transform=axes.get_yaxis_transform(),
        )
        axes.set_xlabel("cost stratum, cheapest first")
        axes.set_ylabel("correlation ρ of score and error")
        _legend_above(figure, columns=3)
    return figure


def gain_figure(panels: Sequence[GainPanel]) -> Figure:
    """What a policy gains over Threshold at each budget, with 95 % intervals; a panel a setting."""
    if not panels:
        raise BadInputError("panels=[]: there is nothing to draw")
    with _style():
        columns = min(3, len(panels))
        rows = -(-len(panels) // columns)
        alone = len(panels) == 1  # as large as the other figures
        figure = _figure(*((6.4, 3.6) if alone else (0.8 + 3.1 * columns, 0.6 + 2.7 * rows)))
        grid = list(figure.subplots(rows, columns, sharey=True, squeeze=False).flat)
        for axes, panel in zip(grid, panels, strict=False):
            beta = 100.0 * np.asarray(panel.beta, float)
            axes.axhline(0.0, color=INK, lw=1.0)
            for gain, colour, marker, dash in zip(
                panel.gains, cycle(COLOURS), cycle(MARKERS), cycle(DASHES), strict=False
            ):
                axes.fill_between(beta, gain.low, gain.high, color=colour, alpha=0.18, lw=0)
                axes.plot(
                    beta, gain.mean, marker=marker, color=colour, ls=dash, ms=5, label=gain.policy
                )
            axes.set_title(panel.setting)
            axes.set_xlabel("budget β, %")
        for axes in grid[len(panels) :]:
            axes.remove()
        for axes in grid[::columns]:
            axes.set_ylabel("hit rate − Threshold's, pp")
        _legend_above(figure, columns=4)
    return figure


def sweep_figure(
    rho: Sequence[float],
    hit_rate: Sequence[float],
    *,
    threshold: float,
    points: Sequence[Point] = (),
    low: Sequence[float] | None = None,
    high: Sequence[float] | None = None,
) -> Figure:
    """Hit rate of MP-Syn against the strength ρ of a made-up signal (the paper's Figure "sweep").

    rho, hit_rate   (R,) each; low, high: their 95 % interval
    threshold       Threshold's hit rate on the real signal, a horizontal line
    """
    with _style():
        figure = _figure(6.4, 3.9)
        axes = figure.add_subplot()
        if low is not None and high is not None:
            axes.fill_between(rho, low, high, color=COLOURS[0], alpha=0.18, lw=0)
        axes.plot(rho, hit_rate, "o-", color=COLOURS[0], ms=4, label="MP-Syn, made-up signal")
        axes.axhline(threshold, color=COLOURS[1], ls=DASHES[1], label="Threshold, real signal")
        for point, colour, marker in zip(
            points, cycle(COLOURS[2:]), cycle(("D", "X", "^", "s")), strict=False
        ):
            axes.plot(
                [point.rho],
                [point.hit_rate],
                marker,
                color=colour,
                ms=10,
                mec="white",
                ls="none",
                label=point.label,
                zorder=5,
            )
        axes.set_xlabel("signal strength ρ")
        axes.set_ylabel("hit rate")
        _legend_above(figure, columns=2)
    return figure


def threshold_figure(
    scores: Sequence[ArrayLike],
    *,
    global_threshold: float,
    thresholds: Sequence[float],
    names: Sequence[str] | None = None,
    xlabel: str = "score ÷ cost",
) -> Figure:
    """Where each stratum's scores lie, and what share of them either threshold selects.

    scores       K arrays of shape (n_k,); a stratum that is empty or does not vary gets a mark
    thresholds   τ_k, (K,); NaN where there is none
    """
    if len(thresholds) != len(scores):
        raise BadInputError(f"thresholds={thresholds!r:.80}: one per stratum is needed")
    values: list[NDArray[np.float64]] = [np.asarray(s, dtype=np.float64) for s in scores]
    names = [f"Q{k}" for k in range(1, len(values) + 1)] if names is None else names
    everything = np.concatenate([*values, [global_threshold], thresholds])
    low, high = _range_of(everything[np.isfinite(everything)])
    grid = np.linspace(low, high, POINTS)
    with _style():
        figure = _figure(6.8, 0.9 + 0.95 * max(1, len(values)))
        panels: Any = figure.subplots(len(values), 1, sharex=True, squeeze=False)[:, 0]
        for axes, x, name, own in zip(panels, values, names, thresholds, strict=True):
            curve = density(x, grid)
            if np.isfinite(curve).all():
                axes.fill_between(grid, curve, color=COLOURS[5], alpha=0.35, lw=0)
                axes.plot(grid, curve, color=INK, lw=1.1)
                axes.set_ylim(0.0, 1.12 * curve.max())
            elif x.size:
                axes.axvline(float(x[0]), color=INK, lw=3, alpha=0.5)
            axes.axvline(
                global_threshold, color=COLOURS[1], ls=DASHES[1], label="one threshold for all"
            )
            axes.axvline(own, color=COLOURS[0], label="the stratum's own threshold")
            note = "no scores"
            if x.size:
                for_all, by_own = np.mean(x > global_threshold), np.mean(x > own)
                note = f"selected: {for_all:.0%}, {by_own:.0%}"
            axes.text(1.0, 0.95, note, transform=axes.transAxes, ha="right", va="top", fontsize=9.5)
            axes.set_ylabel(name, rotation=0, ha="right", va="center", fontweight="bold")
            axes.set_yticks([])
            axes.spines["left"].set_visible(False)
        panels[-1].set_xlim(low, high)
        panels[-1].set_xlabel(xlabel)
        _legend_above(figure, columns=2)
    return figure


def timeline_figure(
    verified: ArrayLike, wrong: ArrayLike, *, warmup: int, rate: float | None
) -> Figure:
    """How verifications and the errors they found added up over the stream.

    verified, wrong   (n,) booleans in stream order: verified by the gate, and found wrong
    warmup            how many come first and are all verified; they are shaded
    rate              verifications per output that the budget allows after it; None: no such line
    """
    v, w = np.asarray(verified, dtype=bool), np.asarray(wrong, dtype=bool)
    shown = np.unique(np.linspace(0, v.size, 2 * POINTS).astype(int))
    with _style():
        figure = _figure(6.4, 3.6)
        axes = figure.add_subplot()
        if warmup:
            axes.axvspan(0, warmup, color=INK, alpha=0.09, lw=0, label="warm-up")
        for values, name, colour, dash in (
            (v, "verified", COLOURS[0], DASHES[0]),
            (w, "of these, wrong", COLOURS[1], DASHES[1]),
        ):
            total = np.concatenate(([0], np.cumsum(values)))
            axes.plot(shown, total[shown], color=colour, ls=dash, label=name)
        if rate is not None:
            allowed = [v[:warmup].sum(), v[:warmup].sum() + rate * (v.size - warmup)]
            axes.plot(
                [warmup, v.size],
                allowed,
                color=INK,
                ls=DASHES[2],
                lw=1.2,
                label="budget, spent evenly",
            )
        axes.set_xlim(0, max(1, v.size))
        axes.set_ylim(bottom=0)
        axes.set_xlabel("outputs seen")
        axes.set_ylabel("outputs, added up")
        _legend_above(figure, columns=4)
    return figure


def risk_coverage(scores: ArrayLike, labels: ArrayLike) -> NDArray[np.float64]:
    """Expected error rate among the i outputs accepted first, i = 1 … n, least score first.

    scores (n,): larger = more doubtful; labels (n,) in {0, 1}. Equal scores are accepted in
    random order, and the result is the expectation over it: a constant score gives the base rate
    throughout. Element i − 1 belongs to coverage i / n.
    """
    s, y = np.asarray(scores, dtype=np.float64), np.asarray(labels, dtype=np.float64)
    if s.ndim != 1 or s.shape != y.shape or not s.size:
        raise BadInputError(f"scores {s.shape} and labels {y.shape}: two equal lengths above 0")
    if np.isnan(s).any() or not np.isin(y, (0.0, 1.0)).all():
        raise BadInputError("scores must be numbers and labels 0 or 1: leave the others out")
    _, group, size = np.unique(s, return_inverse=True, return_counts=True)
    # Within a group of equal scores the expected number of errors grows linearly.
    ends = np.concatenate(([0], np.cumsum(size)))
    errors = np.concatenate(([0.0], np.cumsum(np.bincount(group, weights=y))))
    accepted = np.arange(1, s.size + 1)
    return np.asarray(np.interp(accepted, ends, errors) / accepted, dtype=np.float64)


def aurc(scores: ArrayLike, labels: ArrayLike) -> float:
    """Area under the risk–coverage curve: the mean of `risk_coverage`, in [0, 1]; less is better.

    The base rate for an ordering that knows nothing.
    """
    return float(risk_coverage(scores, labels).mean())


def risk_coverage_figure(orderings: Mapping[str, ArrayLike], labels: ArrayLike) -> Figure:
    """Error rate among the accepted outputs against their share, for several scores.

    orderings   name → scores (n,), larger = more doubtful; drawn in this order
    labels      (n,) in {0, 1}

    "random" (the base rate) and "oracle" (all errors last) are always added.
    """
    y = np.asarray(labels, dtype=np.float64)
    with _style():
        figure = _figure(6.4, 3.9)
        axes = figure.add_subplot()
        curves = {**orderings, "random": np.zeros_like(y), "oracle": y}
        for (name, scores), colour, dash in zip(
            curves.items(), cycle(COLOURS), cycle(DASHES), strict=False
        ):
            risk = risk_coverage(scores, y)
            shown = np.unique(np.linspace(0, risk.size - 1, POINTS).astype(int))
            extra = {"color": INK, "lw": 1.2} if name in ("random", "oracle") else {"color": colour}
            axes.plot(
                (shown + 1) / risk.size * 100,
                risk[shown],
                ls=dash,
                label=f"{name}, AURC {risk.mean():.3f}",
                **extra,
            )
        axes.set_xlim(0, 100)
        axes.set_ylim(bottom=0.0)
        axes.set_xlabel("coverage: accepted, least doubtful first, %")
        axes.set_ylabel("error rate among the accepted")
        _legend_above(figure, columns=2)
    return figure


def save(figure: Figure, path: str | Path) -> None:
    """Write a file on a white ground; the suffix says the format (svg, png, pdf).

    Raises BadInputError where it cannot be written.
    """
    path = Path(path)
    try:
        with _style():
            # A date would make two files of the same figure differ.
            metadata = {"Date": None} if path.suffix == ".svg" else None
            figure.savefig(path, facecolor="white", metadata=metadata)
    except (OSError, ValueError) as e:
        raise BadInputError(f"figure {str(path)!r} cannot be written: {e}") from e


def inline_svg(figure: Figure, *, prefix: str) -> str:
    """An <svg> element for a page: transparent, in the page's text colour, nothing loaded.

    `prefix` starts every id inside, so that two figures of one page do not meet.
    """
    buffer = BytesIO()
    with _style():
        figure.savefig(buffer, format="svg", transparent=True)
    svg = buffer.getvalue().decode()
    svg = svg[svg.index("<svg") :].replace(INK, "currentColor")
    svg = re.sub(r"<metadata>.*?</metadata>", "", svg, flags=re.DOTALL)
    return re.sub(r'(\bid="|href="#|url\(#)', rf"\g<1>{prefix}-", svg)


def png_uri(figure: Figure) -> str:
    """A data URI, for what shows no SVG (mail, notebooks of some hosts)."""
    buffer = BytesIO()
    with _style():
        figure.savefig(buffer, format="png", facecolor="white")
    return "data:image/png;base64," + base64.b64encode(buffer.getvalue()).decode()


def check_installed() -> None:
    """Raises MissingDependencyError where figures cannot be made: for whoever begins long work."""
    try:
        import matplotlib  # noqa: F401
    except ImportError:
        raise MissingDependencyError("matplotlib", extra="plots", needed_for="a figure") from None


@contextmanager
def _style() -> Iterator[None]:
    """Our settings for as long as a figure is made or written; then the caller's own again."""
    check_installed()
    import matplotlib

    with matplotlib.rc_context(STYLE):
        yield


def _figure(width: float, height: float) -> Figure:
    """Size in inches. A canvas of its own (Agg): no window, no global state."""
    from matplotlib.figure import Figure

    return Figure(figsize=(width, height))


def _range_of(values: NDArray[np.float64]) -> tuple[float, float]:
    """What to show of these values: all but a thin tail, and some room around."""
    if not values.size:
        return 0.0, 1.0
    low, high = np.quantile(values, (0.002, 0.995))
    room = 0.06 * (high - low) or max(abs(high), 1.0) * 0.1
    return float(low - room), float(high + room)


def _legend_above(figure: Figure, *, columns: int) -> None:
    handles, labels = figure.axes[0].get_legend_handles_labels()
    if handles:
        figure.legend(handles, labels, loc="outside upper left", ncols=columns)
