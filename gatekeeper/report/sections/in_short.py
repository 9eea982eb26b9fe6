"""The top of the page: the result as three numbers, then in a few sentences."""

from __future__ import annotations

from gatekeeper.analysis.estimates import Estimates, interval
from gatekeeper.analysis.score import ScoreEstimate, score_rows
from gatekeeper.analysis.summary import Summary
from gatekeeper.policies import Calibrated, Random
from gatekeeper.report import formatting as fmt
from gatekeeper.report.data import PolicyReplays, ReportData
from gatekeeper.report.html import Markup, element
from gatekeeper.stats.interval import Interval
from gatekeeper.wording import counted, plural

__all__ = ["in_short", "run_headline"]

SIGNIFICANT = 1.645  # standard deviations above random: p = 0.05, one-sided


def in_short(data: ReportData) -> Markup:
    y = data.records.error[data.labelled]
    if data.run is None:
        of_these = f"; {y.mean():.1%} of these are wrong" if y.size else ""
        records = counted(len(data.records), "record")
        sentences = [f"{records}, {y.size:,} with a known label{of_these}."]
        headline, last = _of_replays(data.replays, data.beta)
    elif data.for_score and data.score is not None:
        sentences = [_drawn(data.run.summary), data.score.why]
        headline, last = _of_score(data.score), []
    else:
        sentences = _run_in_short(data.run.summary, data.rate)
        headline, last = run_headline(data.run.summary)
    if not data.for_score:
        sentences.append(f"{data.advice}")
    notes = () if data.run is None else data.run.notes
    return element(
        "div",
        *headline,
        *(element("p", note, class_="caution") for note in notes),
        *(element("p", s) for s in sentences),
        *(element("p", element("strong", s)) for s in last),
        class_="short",
    )


def run_headline(summary: Summary) -> tuple[list[Markup], list[str]]:
    """The numbers, and what they mean in one plain sentence; nothing where there are none."""
    checks, found, random = summary.verified, summary.errors_found, summary.random_found
    if not checks or random is None:
        return [], []
    name = "at random" if summary.all_checked else "at random, estimated"
    numbers = [(f"{found:,}", "wrong outputs found"), (_expected(random), name)]
    if not random:
        return [_headline(numbers, f"{counted(checks, 'check')} after the warm-up.")], []
    times = found / random
    numbers.append((f"{times:.1f} ×", "as many for the same cost"))
    below = f"{counted(checks, 'check')} after the warm-up."
    if times > 1.0:
        needed = min(times * checks, summary.evaluated)  # an estimate may ask for more
        below += f" The same at random would take {counted(needed, 'check')}."
    if summary.above_random < SIGNIFICANT or times <= 1.0:
        last = "In plain words: the gate found no more errors than chance explains."
    else:
        about = "" if summary.all_checked else "about "
        last = (
            "In plain words: of the outputs that the gate chose to check, "
            f"{fmt.share(found, checks)} were wrong; of outputs chosen at random it would be "
            f"{about}{fmt.share(random, checks)}."
        )
    return [_headline(numbers, below)], [last]


def _expected(count: float) -> str:
    """An expected number of outputs; a small one with a decimal, beside a whole number."""
    return f"{count:.1f}" if count < 10.0 else f"{count:,.0f}"


def _of_score(score: ScoreEstimate) -> list[Markup]:
    """The score of the run's own outputs, or what is possible where there is no estimate."""
    _, value, ends = score_rows(score)[0]
    if score.unchecked is None:
        numbers = [(ends, "possible scores of all outputs")]
    else:
        numbers = [(value, "mean score of all outputs"), (ends, "95 % interval")]
    return [_headline(numbers, f"From {score.checks:,} of {counted(score.outputs, 'output')}.")]


def _drawn(summary: Summary) -> str:
    n, wrong = summary.verified, summary.errors_found
    return (
        f"{_seen(summary)} {n:,} {plural(n, 'was', 'were')} drawn, each with a known probability, "
        f"and verified; {wrong:,} of these {plural(wrong, 'was', 'were')} wrong."
    )


def _of_replays(replays: PolicyReplays | None, beta: float) -> tuple[list[Markup], list[str]]:
    """The headline from replays, always of one policy: the best in hindsight is partly chance."""
    if replays is None or replays.without_learners:
        return [], []
    recall, random = (
        replays.at_beta.estimate(name, beta, "recall").value
        for name in (Calibrated.name, Random.name)
    )
    if not random > 0.0 or not recall > 0.0:
        return [], []
    numbers = [
        (f"{recall:.0%}", "of all wrong outputs found by Calibrated"),
        (f"{random:.0%}", "at random"),
        (f"{recall / random:.1f} ×", "as many for the same cost"),
    ]
    below = (
        f"In replays at a budget of {fmt.budget(beta)}. The same at random would take a budget of "
        f"{fmt.budget(min(recall / random * beta, 1.0))}."
    )
    last = (
        f"In plain words: with {fmt.budget(beta)} of the cost of checking everything, "
        f"{recall:.0%} of the errors are found instead of {random:.0%}."
    )
    return [_headline(numbers, below)], [last]


def _headline(numbers: list[tuple[str, str]], below: str) -> Markup:
    items = (element("div", element("dt", name), element("dd", value)) for value, name in numbers)
    return element(
        "div",
        element("dl", *items, class_="numbers"),
        element("p", below, class_="caption"),
        class_="headline",
    )


def _seen(summary: Summary) -> str:
    n = summary.outputs
    return f"{counted(n, 'output')} {plural(n, 'was', 'were')} seen."


def _run_in_short(summary: Summary, rate: Estimates | None) -> list[str]:
    verified, found = summary.verified, summary.errors_found
    seen = _seen(summary)
    warmup, first = summary.warmup, summary.warmup_verified
    if warmup:
        of = f" of {warmup:,}" if first < warmup else ""
        seen += f" {first:,}{of} {plural(first, 'was', 'were')} verified as a warm-up."
    if summary.evaluated:
        which = f"Of the other {summary.evaluated:,}" if warmup else "Of these"
        seen += f" {which}, the gate verified {verified:,}"
        were = plural(found, "was", "were")
        seen += f", and {found:,} {were} wrong ({fmt.share(found, verified)})." if verified else "."
    sentences = [seen]
    if verified and summary.random_found is not None:
        how = "" if summary.all_checked else " (estimated from the warm-up)"
        sentences.append(
            "The same number of outputs drawn at random would have contained about "
            f"{_expected(summary.random_found)} wrong ones{how}."
        )
    if summary.above_random < SIGNIFICANT:
        sentences.append("This difference is not statistically significant.")
    if not summary.all_checked and rate is not None and rate.assisted is not None:
        sentences.append(_of_all(rate, rate.assisted))
    elif not summary.all_checked:
        sentences.append(
            "Not every output was verified, so the number of remaining errors is unknown. The "
            "error rate among verified outputs is not the model's error rate, because uncertain "
            "outputs were selected."
        )
    return sentences


def _of_all(rate: Estimates, best: Interval) -> str:
    """How many of all outputs are wrong, or of those that had a chance to be verified."""
    known = best.low == best.high
    if rate.covered < rate.outputs:
        them = f"the {rate.covered:,} that had a chance to be verified"
    elif known:
        return f"Every output has a verdict: {best.value:.1%} of all are wrong."
    else:
        them = "all"
    found = f"{best.value:.1%} of {them} are wrong"
    if known:
        return f"Not every output was verified. {found}."
    return f"Not every output was verified. An estimated {found} (95 % interval: {interval(best)})."
