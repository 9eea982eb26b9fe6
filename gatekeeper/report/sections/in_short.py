"""The box at the top: the main results in a few sentences."""

from __future__ import annotations

from gatekeeper.analysis.estimates import Estimates, interval
from gatekeeper.analysis.summary import Summary
from gatekeeper.report import formatting as fmt
from gatekeeper.report.data import ReportData
from gatekeeper.report.html import Markup, element

__all__ = ["in_short"]

SIGNIFICANT = 1.645  # standard deviations above random: p = 0.05, one-sided


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
    seen = (
        f"{summary.outputs} outputs were seen. The first {summary.warmup_verified} were verified "
        "as a warm-up."
    )
    if summary.evaluated:
        seen += f" Of the next {summary.evaluated}, the gate verified {verified}"
        seen += f", and {found} were wrong ({fmt.share(found, verified)})." if verified else "."
    sentences = [seen]
    if verified and summary.random_found is not None:
        how = "" if summary.all_checked else " (estimated from the warm-up)"
        sentences.append(
            "The same number of outputs drawn at random would have contained about "
            f"{summary.random_found:.0f} wrong ones{how}."
        )
    if summary.above_random < SIGNIFICANT:
        sentences.append("This difference is not statistically significant.")
    best = None if rate is None else rate.assisted
    if not summary.all_checked and best is not None and best.low == best.high:
        sentences.append(f"Every output has a verdict: {best.value:.1%} of all are wrong.")
    elif not summary.all_checked and best is not None:
        sentences.append(
            f"Not every output was verified. An estimated {best.value:.1%} of all are wrong "
            f"(95 % interval: {interval(best)})."
        )
    elif not summary.all_checked:
        sentences.append(
            "Not every output was verified, so the number of remaining errors is unknown. The "
            "error rate among verified outputs is not the model's error rate, because uncertain "
            "outputs were selected."
        )
    if summary.could_not_tell:
        sentences.append(
            f"For {summary.could_not_tell} selected outputs there is no verdict: the verifier "
            "failed, or the run ended first. They count neither as wrong nor as correct."
        )
    return sentences
