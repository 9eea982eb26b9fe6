"""The paper's figures, from plain arrays: each function returns a `matplotlib.figure.Figure`.

Needs the extra `plots`. matplotlib is imported when the first figure is made; pyplot is never
imported. The colours are those of Okabe and Ito, safe for colour-blind readers (the blue is a bit
lighter, for dark pages), and no meaning depends on colour alone. `save` writes a file; `inline_svg`
returns markup for a page, in the page's text colour; equal figures give equal markup.
"""

from gatekeeper.report.figures.correlation import Correlations, correlation_figure
from gatekeeper.report.figures.export import inline_svg, png_uri, save
from gatekeeper.report.figures.gain import Gain, GainPanel, gain_figure
from gatekeeper.report.figures.risk_coverage import risk_coverage_figure
from gatekeeper.report.figures.style import check_installed
from gatekeeper.report.figures.sweep import Point, sweep_figure
from gatekeeper.report.figures.thresholds import threshold_figure
from gatekeeper.report.figures.timeline import timeline_figure

__all__ = [
    "Correlations",
    "Gain",
    "GainPanel",
    "Point",
    "check_installed",
    "correlation_figure",
    "gain_figure",
    "inline_svg",
    "png_uri",
    "risk_coverage_figure",
    "save",
    "sweep_figure",
    "threshold_figure",
    "timeline_figure",
]
