"""The sections of the page: one file and one function each, from the data to markup."""

from collections.abc import Callable

from gatekeeper.report.data import ReportData
from gatekeeper.report.html import Section
from gatekeeper.report.sections.about import about
from gatekeeper.report.sections.budget import budget
from gatekeeper.report.sections.controls import controls
from gatekeeper.report.sections.decisions import decisions
from gatekeeper.report.sections.error_rate import error_rate
from gatekeeper.report.sections.failures import failures
from gatekeeper.report.sections.glossary import glossary
from gatekeeper.report.sections.health import health
from gatekeeper.report.sections.policies import policies
from gatekeeper.report.sections.signal import signal
from gatekeeper.report.sections.strata import strata

__all__ = ["SECTIONS"]

SECTIONS: tuple[Callable[[ReportData], Section | None], ...] = (
    about,
    budget,
    decisions,
    health,
    error_rate,
    signal,
    strata,
    policies,
    controls,
    failures,
    glossary,
)
"""In the order of the page. A section returns None if it does not apply to the file."""
