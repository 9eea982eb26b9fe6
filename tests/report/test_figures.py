"""Every figure drawn, from ordinary and from awkward input."""

import subprocess
import sys
import xml.etree.ElementTree as ET
from collections.abc import Callable
from math import nan
from pathlib import Path
from textwrap import dedent

import numpy as np
import pytest

from gatekeeper.errors import BadInputError, MissingDependencyError
from gatekeeper.report.figures import (
    Correlations,
    Gain,
    GainPanel,
    Point,
    correlation_figure,
    gain_figure,
    inline_svg,
    png_uri,
    risk_coverage_figure,
    save,
    sweep_figure,
    threshold_figure,
    timeline_figure,
)

HOSTILE = "<script>$x_{$ & \"'"


RNG = np.random.default_rng(1)
SCORES = [RNG.gamma(3, 1 / k, 50) for k in range(1, 5)]
FIGURES: dict[str, Callable[[], object]] = {
    "correlations": lambda: correlation_figure(
        [
            Correlations("one", (0.05, 0.2, nan, -0.4), (0.6, 0.01, nan, 0.001)),
            Correlations(HOSTILE, (0.3,), (0.2,)),
        ]
    ),
    "no correlations": lambda: correlation_figure([]),
    "gain": lambda: gain_figure(
        [
            GainPanel(HOSTILE, (0.1, 0.2), [Gain(HOSTILE, (1, nan), (0, nan), (2, nan))]),
            *(GainPanel(str(i), (0.1,), [Gain("CST", (-1,), (-2,), (0,))]) for i in range(3)),
        ]
    ),
    "sweep": lambda: sweep_figure(
        (0.0, 0.3, 0.6),
        (0.5, 0.6, 0.8),
        threshold=0.6,
        points=[Point(HOSTILE, 0.178, 0.62), Point("MP-Adapt", 0.178, 0.59)],
        low=(0.4, 0.5, 0.7),
        high=(0.6, 0.7, 0.9),
    ),
    "thresholds": lambda: threshold_figure(
        SCORES, global_threshold=1.0, thresholds=(1, 2, 3, nan), names=["a", "b", "c", HOSTILE]
    ),
    "constant and empty strata": lambda: threshold_figure(
        [np.full(9, 0.1), [], [2.0], [1.0, 1.0 + 1e-16]],
        global_threshold=0.1,
        thresholds=(0.1, nan, 2.0, 1.0),
    ),
    "a stratum beyond the range": lambda: threshold_figure(
        [SCORES[0], [1e6, 2e6]], global_threshold=0.5, thresholds=[0.5, 1e6]
    ),
    "nothing to show": lambda: threshold_figure([[]], global_threshold=nan, thresholds=[nan]),
    "large scores": lambda: threshold_figure(
        [1e9 + RNG.random(6000)], global_threshold=1e9, thresholds=[1e9]
    ),
    "timeline": lambda: timeline_figure([1, 1, 0, 1, 0], [1, 0, 0, 1, 0], warmup=2, rate=0.3),
    "nothing seen": lambda: timeline_figure([], [], warmup=0, rate=None),
    "risk": lambda: risk_coverage_figure({HOSTILE: [1, 2, 3], "flat": [0, 0, 0]}, [0, 1, 1]),
    "all right": lambda: risk_coverage_figure({"score": [1, 2, 3]}, [0, 0, 0]),
}


@pytest.mark.parametrize("name", FIGURES)
def test_figures_are_drawn_and_embedded(name: str) -> None:
    """One XML element of text and shapes, whose ids are its own, the same every time."""
    svg = inline_svg(FIGURES[name](), prefix="a")  # type: ignore[arg-type]
    root = ET.fromstring(svg)
    assert root.tag.endswith("svg")
    assert root.find(".//{http://www.w3.org/2000/svg}path") is not None
    ids = {e.attrib["id"] for e in root.iter() if "id" in e.attrib}
    assert ids
    assert all(i.startswith("a-") for i in ids)
    uses = {v for e in root.iter() for k, v in e.attrib.items() if k.endswith("href")}
    assert {u.removeprefix("#") for u in uses} <= ids
    assert "currentColor" in svg
    assert "<script" not in svg
    if name != "large scores":  # drawn from a generator that goes on
        assert inline_svg(FIGURES[name](), prefix="a") == svg  # type: ignore[arg-type]


def test_names_stay_text() -> None:
    svg = inline_svg(FIGURES["risk"](), prefix="x")  # type: ignore[arg-type]
    texts = [e.text or "" for e in ET.fromstring(svg).iter("{http://www.w3.org/2000/svg}text")]
    assert any(text.startswith(HOSTILE) for text in texts)


def test_files_are_written_and_what_cannot_be_is_said(tmp_path: Path) -> None:
    figure = correlation_figure([Correlations("one", (0.1, 0.2), (0.5, 0.01))])
    for suffix, start in (("svg", b"<?xml"), ("png", b"\x89PNG"), ("pdf", b"%PDF")):
        save(figure, tmp_path / f"f.{suffix}")
        assert (tmp_path / f"f.{suffix}").read_bytes().startswith(start)
    first = (tmp_path / "f.svg").read_bytes()
    save(figure, tmp_path / "f.svg")
    assert (tmp_path / "f.svg").read_bytes() == first
    assert png_uri(figure).startswith("data:image/png;base64,iVBOR")
    for path in (tmp_path / "none" / "f.svg", tmp_path / "f.nonsense"):
        with pytest.raises(BadInputError, match="cannot be written"):
            save(figure, path)
    with pytest.raises(BadInputError, match="give one per stratum, 4 in all"):
        threshold_figure(SCORES, global_threshold=0.5, thresholds=[1.0])
    with pytest.raises(BadInputError, match="nothing to draw"):
        gain_figure([])


def test_filled_markers_are_significant_ones() -> None:
    figure = correlation_figure([Correlations("s", (0.1, 0.2, 0.3), (0.5, 0.049, 0.05))])
    drawn = [line for line in figure.axes[0].lines if line.get_gid() is None]
    filled, opened = drawn[2:4]
    assert list(filled.get_ydata()) == [0.2]
    assert list(opened.get_ydata()) == [0.1, 0.3]
    assert opened.get_markerfacecolor() == "none"


def test_without_matplotlib_the_extra_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    with pytest.raises(MissingDependencyError, match=r"\(extra plots\): pip install 'matplotlib"):
        correlation_figure([])


def test_figures_leave_no_trace_in_matplotlib() -> None:
    """pyplot is never imported, settings are the caller's, and the module alone loads nothing."""
    program = """
        import sys
        import gatekeeper.report.figures as f
        assert "matplotlib" not in sys.modules and "scipy" not in sys.modules
        import matplotlib
        names = [n for n in matplotlib.rcParams if not n.startswith("backend")]
        before = [matplotlib.rcParams[n] for n in names]
        f.inline_svg(f.threshold_figure([[1, 2, 3]], global_threshold=2, thresholds=[2]), prefix="")
        assert [matplotlib.rcParams[n] for n in names] == before
        assert "matplotlib.pyplot" not in sys.modules
    """
    subprocess.run([sys.executable, "-c", dedent(program)], check=True)
