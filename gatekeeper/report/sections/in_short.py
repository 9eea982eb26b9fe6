"""The box at the top: what a reader in a hurry should know."""

from __future__ import annotations

from gatekeeper.analysis.estimates import Estimates, interval
from gatekeeper.analysis.summary import Summary
from gatekeeper.report import formatting as fmt
from gatekeeper.report.data import ReportData
from gatekeeper.report.html import Markup, element

__all__ = ["in_short"]

LUCK = 1.645  # standard deviations above random that chance exceeds one time in twenty


def in_short(data: ReportData) -> Markup:
    sentences = []
    y = data.records.error[data.labelled]
    if data.run is None:
        of_these = f"; {y.mean():.1%} of these are wrong" if y.size else ""
        sentences.append(f"{len(data.records):,} records, {y.size:,} with a known label{of_these}.")
    else:
        sentences.extend(_run_in_short(data.run.summary, data.rate))
    sentences.append(data.diagnosis.conclusion)
    return element("div", *(element("p", s) for s in sentences), class_="short")


def _run_in_short(summary: Summary, rate: Estimates | None) -> list[str]:
    verified, found = summary.verified, summary.errors_found
    sentences = [
        f"{summary.outputs} outputs were seen. The first {summary.warmup_verified} were verified "
        f"as a warm-up. Of the {summary.evaluated} after them the gate verified {verified}"
        + (f", and {found} were wrong ({fmt.share(found, verified)})." if verified else ".")
    ]
    if verified and summary.random_found is not None:
        how = "" if summary.all_checked else ", to judge by the warm-up"
        sentences.append(
            f"The same number drawn at random finds about {summary.random_found:.0f} wrong{how}."
        )
    if summary.above_random < LUCK:
        sentences.append("That difference is no better than luck would explain.")
    best = None if rate is None else rate.assisted
    if not summary.all_checked and best is not None:
        sentences.append(
            f"Not every output was checked. By estimate {best.value:.1%} of all are wrong "
            f"({interval(best)})."
        )
    elif not summary.all_checked:
        sentences.append(
            "Not every output was checked, so how many errors remain is not known; the share of "
            "errors among verified outputs is not the model's error rate, because doubtful ones "
            "were picked."
        )
    if summary.could_not_tell:
        sentences.append(
            f"For {summary.could_not_tell} selected outputs there is no verdict: the verifier "
            "could not tell, or the run ended first. They count neither as wrong nor as right."
        )
    return sentences
