"""The sections of the page, in their order. Numbers and tables are those of the report."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from datetime import datetime
from math import inf

from gatekeeper.page.charts import Band, Line, bar, chart
from gatekeeper.page.course import found_over_stream, rate_over_stream
from gatekeeper.page.processes import processes
from gatekeeper.page.state import Figures, ShownOutput, WatchState, one_line
from gatekeeper.report import formatting as fmt
from gatekeeper.report.figures.style import COLOURS
from gatekeeper.report.html import Markup, Section, element, figure, section, table
from gatekeeper.report.labels import POLICY_HEALTH, REASONS, VERDICTS
from gatekeeper.report.sections.budget import account, bought
from gatekeeper.report.sections.decisions import reasons_table, verdicts_table
from gatekeeper.report.sections.error_rate import rates_table
from gatekeeper.report.sections.health import changes_table
from gatekeeper.report.sections.in_short import run_headline
from gatekeeper.types import Outcome, Reason, SharedStatus, Verdict
from gatekeeper.wording import number_of, plural

__all__ = ["TITLES", "clock", "people", "reason_of", "sections_of", "verdict_of"]

AGES = ((10.0, "up to 10 s"), (60.0, "up to 1 min"), (600.0, "up to 10 min"), (inf, "longer"))
TITLES = {
    "budget": "Budget",
    "found": "Wrong outputs found",
    "rate": "How many of all outputs are wrong?",
    "health": "Policy health",
    "reasons": "Why outputs were verified or not",
    "last": "The last decisions",
    "open": "Open verifications",
    "processes": "Processes on this run",
    "people": "Waiting for a person",
}


def sections_of(
    state: WatchState, figures: Figures, now: float, shared: SharedStatus | None
) -> dict[str, Section]:
    """All sections by name, but for the queue for people.

    Parameters
    ----------
    state, figures
        State and figures of the same moment.
    now
        Seconds since the epoch, for ages.
    shared
        State of the gate's processes, if its run is shared; None: no section on that.
    """
    made: dict[str, Callable[[], Iterable[Markup]]] = {
        "budget": lambda: _budget(state),
        "found": lambda: _found(figures, state.notes()),
        "rate": lambda: _rate(figures),
        "health": lambda: _health(state),
        "reasons": lambda: _reasons(state, figures),
        "last": lambda: _last(state.last),
        "open": lambda: _open(state.under_way(), now),
    }
    if shared is not None:
        made["processes"] = lambda: processes(shared, state.ledger.budget.unit)
    return {name: section(TITLES[name], *make()) for name, make in made.items()}


# -- budget and errors ----------------------------------------------------------------------------


def _budget(state: WatchState) -> Iterable[Markup]:
    ledger = state.ledger
    spent, held, cap = ledger.spent, ledger.held, ledger.cap
    if 0.0 < cap < inf:
        shares = ((spent / cap, COLOURS[0]), (held / cap, COLOURS[4]))
        label = f"{spent / cap:.1%} of what is allowed is spent, {held / cap:.1%} is reserved"
        drawn = element("div", Markup(bar(shares)), class_="bar", role="img", aria_label=label)
        yield element("div", drawn, element("p", f"{label}.", class_="caption"))
    if state.pace is None:
        yield account(ledger)
        return
    yield account(ledger, ("pace", f"{state.pace:.1%}"))
    text = "Pace: spent and reserved, of what the budget allows for the outputs so far."
    yield element("p", text, class_="caption")


def _found(figures: Figures, notes: Iterable[str]) -> Iterable[Markup]:
    summary = figures.summary
    headline, sentences = run_headline(summary)
    yield from headline
    yield from (element("p", note, class_="caution") for note in notes)
    at, found, random = found_over_stream(figures)
    if at.size > 1:
        drawn = chart(
            lines=(
                Line("found", at.tolist(), found.tolist()),
                Line("at random", at.tolist(), random.tolist(), COLOURS[1], dashed=True),
            ),
            x_label="outputs seen",
            y_label="wrong outputs",
        )
        yield figure(
            drawn,
            label="Cumulative number of wrong outputs found, beside as many checks at random",
            caption="Wrong outputs that the gate found after the warm-up, beside the same number "
            "of checks at random.",
        )
    yield from (element("p", element("strong", sentence)) for sentence in sentences)
    yield bought(summary)


def _rate(figures: Figures) -> Iterable[Markup]:
    found = figures.rate
    parts = [part for part in rate_over_stream(figures) if part.rate is not None]
    if parts:
        bands = [
            Band(part.first, part.end, rate.low, rate.value, rate.high,
                 f"outputs {part.first + 1:,} to {part.end:,}: {fmt.rate_interval(rate)}")
            for part in parts
            if (rate := part.rate) is not None
        ]  # fmt: skip
        values = table(
            ("outputs", "95 % interval (estimate)"),
            [(f"{b.left + 1:,} to {b.right:,}", b.tip.rpartition(": ")[2]) for b in bands],
            caption="Each row comes from the verdicts on its outputs alone.",
        )
        yield figure(
            chart(bands=bands, x_label="outputs seen", y_label="wrong, of all", percent=True),
            label="Error rate of all outputs over the stream, with intervals",
            caption="The error rate of all outputs, verified or not, in consecutive parts of the "
            "stream: the estimate (line) and its 95 % interval (area). A part whose verdicts allow "
            "no estimate is left out.",
            values=values,
        )
    caption = (
        "The naive rate covers only the verified outputs. The other one estimates the rate of all "
        "outputs so far: each verdict is weighted by the inverse of the probability that its "
        "output was selected. The report has a third estimate, assisted by prediction, whose "
        "interval is often narrower."
    )
    shown = rates_table(found, caption=caption)
    yield from () if shown is None else (shown,)
    yield from (element("p", note) for note in (found.why, *found.notes))


def _health(state: WatchState) -> Iterable[Markup]:
    yield element("p", element("strong", POLICY_HEALTH[state.health]))
    if state.fingerprint is not None:
        yield changes_table(state.health_changes, state.fingerprint.on_drift)


def _reasons(state: WatchState, figures: Figures) -> Iterable[Markup]:
    unavailable = state.unavailable()
    by_gate = state.by_gate + type(state.by_gate)({Verdict.INFRA_ERROR: unavailable})
    yield reasons_table(figures.reasons)
    yield verdicts_table(by_gate, state.external, waiting=len(state.outputs) - unavailable)


# -- outputs --------------------------------------------------------------------------------------


def _last(shown: Iterable[ShownOutput]) -> Iterable[Markup]:
    rows = [_decision(each) for each in reversed(list(shown))]
    if not rows:
        yield element("p", "No output was decided on yet.")
        return
    yield element("p", "The latest first. Click an output to open it.", class_="caption")
    yield element("div", *rows, class_="rows", data_rows="")


def _decision(shown: ShownOutput) -> Markup:
    line = f"{reason_of(shown.decision.reason)} · {verdict_of(shown)}"
    return _row(shown.key, _cells(shown.id, line, shown.start, wrong=_is_wrong(shown)))


def _open(since: list[float], now: float) -> Iterable[Markup]:
    if not since:
        yield element("p", "No verification is under way.")
        return
    ages = [max(now - at, 0.0) for at in since]
    left, rows = len(ages), []
    for end, name in AGES:
        older = sum(age > end for age in ages)
        rows.append((name, f"{left - older:,}"))
        left = older
    yield table(
        ("decided on since", "outputs"),
        rows,
        caption=f"Selected outputs that a verifier has, or that wait for one. The oldest was "
        f"decided on at {clock(min(since), now)}.",
    )


def people(
    rows: Iterable[ShownOutput], total: int, now: float, *, writable: bool, read_only: str
) -> Section:
    """The queue for people's verdicts.

    Parameters
    ----------
    rows
        The oldest outputs of the queue.
    total
        How many are in it.
    now
        Seconds since the epoch.
    writable
        With buttons.
    read_only
        Why there are none, in a sentence.
    """
    shown = [_waiting(each, now, writable=writable) for each in rows]
    if not total:
        return section(TITLES["people"], element("p", "No output waits for a person's verdict."))
    which = f"The {len(shown)} oldest of {total:,}" if total > len(shown) else f"{total:,}"
    text = (
        f"{which} selected {number_of(total, 'output')} {plural(total, 'has', 'have')} no verdict, "
        "and no verifier will give one: it could not tell, or the gate has none. A verdict is "
        "charged to the budget, and the policy learns from it."
    )
    return section(
        TITLES["people"],
        element("p", text if writable else f"{text} {read_only}", class_="caption"),
        element("p", role="status", class_="message"),
        element("div", *shown, class_="rows", data_rows=""),
    )


def _waiting(shown: ShownOutput, now: float, *, writable: bool) -> Markup:
    why = "" if shown.outcome is None else one_line(shown.outcome.detail)
    line = f"since {clock(shown.at, now)}" + (f" · {why}" if why else "")
    row = _cells(shown.id, line, shown.start)
    if not writable:
        return _row(shown.key, row)
    buttons = (
        element("button", words, name="verdict", value=str(verdict), aria_label=f"{words}: {name}")
        for words, verdict in (("pass", Verdict.PASSED), ("fail", Verdict.FAILED))
        for name in (one_line(shown.id),)
    )
    number = Markup(f'<input type="hidden" name="output" value="{shown.key}">')
    form = element("form", number, *buttons, method="post", action="verdicts")
    return _row(shown.key, row, form)


def _row(key: int, cells: Markup, *beside: Markup) -> Markup:
    link = element("p", element("a", "Open this output", href=f"outputs/{key}"))
    details = element("details", element("summary", cells), link, class_="failure")
    return element("div", details, *beside, class_="row", data_key=str(key))


def _cells(id_: str, line: str, start: str, *, wrong: bool = False) -> Markup:
    return element(
        "span",
        element("strong", one_line(id_)),
        element("span", line, class_="line wrong" if wrong else "line"),
        element("span", start, class_="start"),
        class_="cells",
    )


def reason_of(reason: Reason) -> str:
    """A reason in a word or two."""
    return REASONS[reason].partition(":")[0]


def verdict_of(shown: ShownOutput) -> str:
    """The data of an output, in words."""
    if shown.outcome is None:
        return "verdict pending" if shown.decision.verify else "not verified"
    word, colon, why = VERDICTS[shown.outcome.verdict].partition(":")
    return f"{word}{', external' if shown.external else ''}{colon}{why}"


def _is_wrong(shown: ShownOutput) -> bool:
    outcome: Outcome | None = shown.outcome
    return outcome is not None and outcome.error == 1


def clock(at: float, now: float) -> str:
    """Hours, minutes and seconds, in local time; with the day where that is not today."""
    then = datetime.fromtimestamp(at)
    is_today = then.date() == datetime.fromtimestamp(now).date()
    return f"{then:%H:%M:%S}" if is_today else f"{then:%Y-%m-%d %H:%M:%S}"
