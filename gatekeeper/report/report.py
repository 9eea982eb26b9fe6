"""One self-contained HTML page about a record file or a gate's log, for a reader new to all this.

It loads nothing from anywhere and has no script. Everything that comes from the file is escaped.
The same file gives the same page. Needs the extra `plots`.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from math import isnan, nan
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gatekeeper.analysis.diagnosis import Condition, Diagnosis, diagnose
from gatekeeper.analysis.estimates import Estimates, estimate, interval, rates
from gatekeeper.analysis.experiment import Comparison, Estimate, Protocol, compare
from gatekeeper.analysis.summary import Summary, summarise
from gatekeeper.analysis.vectorised import fixed_score, strata_of
from gatekeeper.arguments import check_beta
from gatekeeper.errors import BadInputError
from gatekeeper.io.records import RecordTable, is_log, load_records
from gatekeeper.log.run import Run, read_run
from gatekeeper.policies import T0
from gatekeeper.report import figures
from gatekeeper.report.html import Markup, definitions, element, figure, page, section, table
from gatekeeper.stats.risk_coverage import aurc
from gatekeeper.types import Calibration, FloatArray, GateResult, Reason, Verdict

__all__ = ["report"]

BETA = 0.2  # the budget at which a record file is looked at, unless told
STRATA = 4
LUCK = 1.645  # standard deviations above random that chance exceeds one time in twenty
BUDGETS = (0.05, 0.1, 0.2, 0.3, 0.5)
MANY = 20_000  # records: what learns step by step would keep the reader waiting
SEEDS, SEEDS_OF_MANY = 10, 3

REASONS = {
    Reason.WARMUP: "warm-up: the first ones, all verified to learn what the signals look like",
    Reason.POLICY: "the policy's choice, by score and threshold",
    Reason.EXPLORE: "drawn at random, to keep learning",
    Reason.CALIBRATION: "drawn at random, to measure what the policy needs to know",
    Reason.BUDGET_EXHAUSTED: "wanted, and the budget had no room",
    Reason.MISSING_SIGNAL: "came without log-probabilities: drawn at random",
    Reason.FORCED: "asked for by the caller",
}
VERDICTS = {
    Verdict.PASSED: "right",
    Verdict.FAILED: "wrong: a check failed",
    Verdict.TIMEOUT: "wrong: it ran too long",
    Verdict.RESOURCE_EXCEEDED: "wrong: it took too much memory, output or the like",
    Verdict.NO_ANSWER: "wrong: nothing in it could be checked",
    Verdict.INFRA_ERROR: "could not tell: the verifier itself failed; not counted as wrong",
}
CALIBRATIONS = {
    Calibration.COLD: "cold: too few labels to say",
    Calibration.VALID: "valid: labels were as predicted",
    Calibration.DRIFTED: "drifted: what had been learned no longer held",
}
DRIFTED = {
    "relearn": " The policy then learned anew, from outputs drawn at random within the budget.",
    "report": " The policy went on with what it had learned, as it was told to.",
}
POLICIES = {
    "random": "Random: drawn by lot",
    "threshold": "Threshold: one for all",
    "cst": "CST: one per cost stratum",
    "hga": "HGA: Threshold or CST, as the first half advises",
    "split-conformal": "Split conformal: one per stratum, fixed after the first half",
    "oracle": "Best possible: knows all labels",
}
LEARNERS = {
    "cst-memory": "CST with memory: similar outputs that were wrong count too",
    "mp-adapt": "MP-Adapt: learns from every label what to look at",
    "mp-strat": "MP-Strat: the same in each cost stratum",
}
RULES = {
    "none": "Threshold: one for all",
    "cost": "CST: one per cost stratum",
    "random": "one per random group; a control, should bring nothing",
    "signal": "one per level of the score; a control, should bring nothing",
    "oracle": "the best possible choice, which knows all labels",
}
WORDS = (
    ("hit rate", "of the outputs verified, the share that was wrong. More is better: the checks "
     "went where the errors are."),
    ("recall", "of all wrong outputs, the share that was found."),
    ("signal, score", "what the model's own token probabilities say about its doubt, scaled to "
     "0 … 1; larger is more doubtful."),
    ("ρ (rho)", "how strongly score and error go together: 0 not at all, 1 perfectly. Below 0.10 "
     "is next to random."),
    ("stratum", "a quarter of the outputs by expected cost of verification: Q1 the cheapest, Q4 "
     "the dearest."),
    ("Threshold, CST", "two ways to choose: Threshold compares all outputs with each other; CST "
     "compares each only with those of its own stratum."),
)  # fmt: skip


def report(
    path: str | Path,
    *,
    beta: float | None = None,
    skip_bad: bool = False,
    on_bad: Callable[[BadInputError], None] = lambda error: None,
) -> str:
    """The page about this file.

    path   records (JSONL, gzip by suffix) or a gate's log (SQLite)
    beta   budget for thresholds and comparisons, in (0, 1). Default: the log's own, 0.2 for records

    `skip_bad` and `on_bad` as in `load_records`. Raises BadInputError and LogError for a file that
    is neither or holds nothing.
    """
    records = load_records(path, skip_bad=skip_bad, on_bad=on_bad)
    run = read_run(path) if is_log(path) else None
    beta = check_beta(beta if beta is not None else _beta_of(run))
    warmup = _warmup_of(run)
    seen = _Seen(
        Path(path).name,
        records,
        run,
        beta,
        diagnose(records, beta=beta, strata=STRATA, warmup=warmup),
        fixed_score(records.h, records.cost_estimate, records.error, warmup=warmup),
        strata_of(records.cost_estimate, STRATA, warmup=warmup),
        estimate(records) if records.propensity is not None else None,
    )
    return page(
        f"gatekeeper: {seen.name}",
        element("h1", "gatekeeper report"),
        element("p", seen.name, class_="subtitle"),
        _in_short(seen),
        _what(seen),
        *(_run_sections(run) if run else ()),
        *(_error_rate(seen.rate) if seen.rate else ()),
        _signal(seen),
        _strata(seen),
        _policies(seen),
        *_controls(seen.diagnosis),
        section("Words", definitions(WORDS, class_="words")),
    )


@dataclass(frozen=True, slots=True, eq=False)
class _Seen:
    """What every section looks at."""

    name: str  # of the file
    records: RecordTable
    run: Run | None  # where the file is a log
    beta: float
    diagnosis: Diagnosis
    scores: FloatArray  # s in [0, 1]; NaN without a signal
    stratum: NDArray[np.intp]  # 0 … STRATA - 1, by expected cost
    rate: Estimates | None  # of errors among all, where propensities are known

    @property
    def labelled(self) -> NDArray[np.bool_]:
        return np.isfinite(self.records.error)

    def caution(self) -> Iterable[Markup]:
        """Which outputs have a label may have depended on their scores: say so."""
        if self.run is not None and not self.labelled.all():
            yield element(
                "p",
                "Mind: only outputs that were picked for verification have a label here, mostly "
                "the doubtful ones. What follows is about those, and shows less than the score "
                "is worth. To have the rest checked too, outside the budget: ",
                element("code", "gatekeeper run … --check-all"),
                class_="caution",
            )


def _in_short(seen: _Seen) -> Markup:
    sentences = []
    y = seen.records.error[seen.labelled]
    if seen.run is None:
        of_these = f"; {y.mean():.1%} of these are wrong" if y.size else ""
        sentences.append(f"{len(seen.records):,} records, {y.size:,} with a known label{of_these}.")
    else:
        sentences.extend(_run_in_short(summarise(seen.run.results.values()), seen.rate))
    sentences.append(seen.diagnosis.conclusion)
    return element("div", *(element("p", s) for s in sentences), class_="short")


def _run_in_short(summary: Summary, rate: Estimates | None) -> list[str]:
    verified, found = summary.verified, summary.errors_found
    sentences = [
        f"{summary.outputs} outputs were seen. The first {summary.warmup_verified} were verified "
        f"as a warm-up. Of the {summary.evaluated} after them the gate verified {verified}"
        + (f", and {found} were wrong ({_share(found, verified)})." if verified else ".")
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


def _what(seen: _Seen) -> Markup:
    records = seen.records
    y = records.error[seen.labelled]
    missing = np.isnan(records.h)
    pairs = [
        ("file", seen.name),
        ("kind", "record file" if seen.run is None else "log of a gate"),
        ("outputs", f"{len(records):,}"),
        ("with a known label", f"{y.size:,} ({_share(y.size, len(records))})"),
        ("wrong, of those", f"{y.sum():,.0f} ({_share(y.sum(), y.size)})"),
        ("expected cost ĉ", _spread(records.cost_estimate)),
        ("true cost c, where known", _spread(records.cost[np.isfinite(records.cost)])),
        ("without any signal", f"{missing.all(axis=1).sum():,}"),
    ]
    if seen.run:
        budget = seen.run.ledger.budget
        caps = (
            None if budget.fraction is None else f"{budget.fraction:.0%} of checking everything",
            None if budget.total is None else f"{budget.total:g} {budget.unit} in all",
        )
        pairs.append(("policy", _policy_of(seen.run)))
        pairs.append(("budget", " and ".join(filter(None, caps))))
    note = "Costs: smallest – middle – largest, in the file's unit."
    if missing.any(axis=0).any():
        absent = ", ".join(
            f"h{j + 1} on {n:,}" for j, n in enumerate(missing.sum(axis=0).tolist()) if n
        )
        note += f" Signals missing: {absent} outputs."
    return section(
        "What this is about",
        definitions(pairs),
        element("p", note, class_="caption"),
        *([_settings(seen.run)] if seen.run else []),
    )


def _policy_of(run: Run) -> str:
    return str(run.settings["policy"].get("type", "?")).rpartition(".")[2]


def _settings(run: Run) -> Markup:
    """All that the log keeps of them, for whoever wants to repeat the run."""
    rows = [
        (group, name, "not set" if value is None else str(value))
        for group, values in run.settings.items()
        for name, value in values.items()
    ]
    caption = "The log refuses a gate with other settings. “more” is what the program added."
    shown = table(("of", "setting", "value"), rows, caption=caption, words=3)
    return element("details", element("summary", "All settings in the log"), shown)


# -- what a gate did ----------------------------------------------------------------------------


def _run_sections(run: Run) -> Iterable[Markup]:
    results = list(run.results.values())
    summary = summarise(results)
    yield section(
        "What the budget bought",
        _bought(summary),
        _account(run),
        _timeline(run, results),
    )
    yield section("Why outputs were verified, or not", _reasons(results), _verdicts(run, results))
    if run.fingerprint is not None:
        yield _drift(run, run.fingerprint)


def _drift(run: Run, fingerprint: Mapping[str, Any]) -> Markup:
    """Whether what the policy had learned held, and what labels depend on."""
    rows = [("the first", CALIBRATIONS[Calibration.COLD], "")]
    rows += [(f"number {s.after + 1:,}", CALIBRATIONS[s.calibration], s.why) for s in run.standings]
    caption = (
        "What was learned fits a model, a prompt and a verifier. It has drifted when one of them "
        "changes, or when labels differ from what earlier ones predict by more than chance."
    )
    if any(s.why for s in run.standings):
        caption += DRIFTED[fingerprint["on_drift"]]
    pairs = [
        ("models", ", ".join(fingerprint["models"]) or "not said"),
        ("prompt template, its hash", fingerprint["prompt_template"] or "not said"),
        ("verifier", _verifier(fingerprint["verifier"])),
        ("definition of the signals", str(fingerprint["signals"])),
    ]
    return section(
        "Does what was learned still hold?",
        table(("from output", "status", "why"), rows, caption=caption, words=3),
        element("p", "What labels depend on, as of the end:"),
        definitions(pairs),
    )


def _verifier(about: Mapping[str, Any] | None) -> str:
    if about is None:
        return "not said"
    parts = about.get("verifiers", {})  # of one that is made of several, by the kind of task
    named = [f"{kind}: {_verifier(part)}" for kind, part in parts.items()]
    return ", ".join(named) or str(about["type"]).rpartition(".")[2]


def _bought(summary: Summary) -> Markup:
    estimated = "" if summary.all_checked else " (estimated from the warm-up)"
    rows = [
        ("seen", summary.outputs, None),
        ("warm-up, all verified", summary.warmup_verified, summary.warmup_errors),
        ("decided on after the warm-up", summary.evaluated, summary.errors),
        ("verified by the gate", summary.verified, summary.errors_found),
        (f"the same number at random{estimated}", summary.verified, summary.random_found),
        ("the best possible choice", summary.verified, summary.best_found),
    ]
    return table(
        ("", "outputs", "wrong", "share wrong"),
        [
            (name, str(n), _number(wrong), "" if wrong is None else _share(wrong, n))
            for name, n, wrong in rows
        ],
        caption="The gate's choice beside what chance would have found for the same money, and "
        "what nobody could beat. The share wrong among the verified is the hit rate. An empty "
        "cell: not known, because not every output was checked.",
    )


def _account(run: Run) -> Markup:
    ledger, unit = run.ledger, run.ledger.budget.unit
    pairs = [
        ("spent after the warm-up", f"{ledger.spent:g} {unit}"),
        ("allowed so far", f"{ledger.cap:g} {unit}"),
        ("spent on the warm-up", f"{ledger.warmup_spent:g} {unit}"),
    ]
    if ledger.held or ledger.warmup_held:
        pairs.append(("reserved, not yet settled", f"{ledger.held + ledger.warmup_held:g} {unit}"))
    if ledger.overrun:
        pairs.append(("taken beyond the reservations", f"{ledger.overrun:g} {unit}"))
    return definitions(pairs)


def _timeline(run: Run, results: Sequence[GateResult]) -> Markup:
    budget = run.ledger.budget
    mine = [r.verified and r.id not in run.audited for r in results]
    wrong = [m and r.outcome is not None and r.outcome.error == 1
             for m, r in zip(mine, results, strict=True)]  # fmt: skip
    warmup = sum(r.decision.reason is Reason.WARMUP for r in results)
    rate = budget.fraction if budget.unit == "verifications" else None
    drawn = figures.timeline_figure(mine, wrong, warmup=warmup, rate=rate)
    return figure(
        figures.inline_svg(drawn, prefix="timeline"),
        label="Outputs verified and found wrong, added up over the run",
        caption="From left to right, outputs in the order they came; upwards, how many of them "
        "the gate had verified, and how many of those were wrong. Where the lines run close "
        "together nearly every check found an error.",
    )


def _reasons(results: Sequence[GateResult]) -> Markup:
    groups: dict[Reason, list[GateResult]] = {}
    for result in results:
        groups.setdefault(result.decision.reason, []).append(result)
    rows = []
    for reason, words in REASONS.items():
        group = groups.get(reason, [])
        if group:
            selected = [r for r in group if r.decision.verify]
            known = [r for r in selected if r.verified]
            wrong = sum(r.outcome is not None and r.outcome.error == 1 for r in known)
            rows.append((words, str(len(group)), str(len(selected)), str(len(known)), str(wrong)))
    return table(
        ("how it was decided", "outputs", "selected", "with a verdict", "wrong"),
        rows,
        caption="Each output counts once. Selected: to be verified. Selected without a verdict: "
        "the verifier could not tell, or has not answered yet.",
    )


def _verdicts(run: Run, results: Sequence[GateResult]) -> Markup:
    by_gate: Counter[Verdict] = Counter()
    outside: Counter[Verdict] = Counter()
    for result in results:
        if result.outcome is not None:
            (outside if result.id in run.audited else by_gate)[result.outcome.verdict] += 1
    waiting = sum(r.decision.verify and r.outcome is None for r in results)
    rows = [
        (words, str(by_gate[verdict]), str(outside[verdict]))
        for verdict, words in VERDICTS.items()
        if by_gate[verdict] or outside[verdict] or verdict is Verdict.INFRA_ERROR
    ]
    if waiting:
        rows.append(("no answer yet", str(waiting), ""))
    return table(
        ("what the verifier said", "within the budget", "from outside"),
        rows,
        caption="“From outside” are checks that the budget did not pay for: a person's, or those "
        "made afterwards to compare. The policy never learns from them.",
    )


def _error_rate(found: Estimates) -> Iterable[Markup]:
    rows = [
        (name, f"{rate.n:,}", f"{rate.value:.1%}", interval(rate))
        for name, rate in rates(found)
        if rate is not None
    ]
    notes = [element("p", note) for note in (found.why, *found.notes)]
    if rows:
        caption = (
            "The naive rate is that of the verified outputs. The other two are about all: each "
            "verdict weighs one over the chance that its output had to be verified; the last one "
            "uses the signals as well, and is the narrower the more they tell. Of 100 such "
            "intervals about 95 hold the true rate."
        )
        heads = ("error rate", "verdicts", "estimate", "95 % interval")
        notes.insert(0, table(heads, rows, caption=caption))
    yield section("How many of all outputs are wrong?", *notes)


# -- what the signal is worth ------------------------------------------------------------------


def _signal(seen: _Seen) -> Markup:
    s, records = seen.scores, seen.records
    # The score was fitted to the warm-up, so it looks better there than it is.
    after = np.arange(s.size) >= seen.diagnosis.warmup
    use = seen.labelled & after & np.isfinite(s)
    y = records.error[use]
    title = "Does the signal know which outputs are wrong?"
    if not 0 < y.sum() < y.size:
        return section(
            title,
            element(
                "p",
                f"Not to be said: of the {y.size} outputs with a label and a signal after the "
                f"warm-up, {y.sum():.0f} are wrong; some of both kinds are needed.",
            ),
        )
    orderings = {"score ÷ cost": (s / records.cost_estimate)[use], "score": s[use]}
    best = min(aurc(values, y) for values in orderings.values())
    drawn = figures.risk_coverage_figure(orderings, y)
    return section(
        title,
        *seen.caution(),
        element(
            "p",
            "Accept the least doubtful outputs first, and see how many of the accepted are wrong. "
            f"An ordering that knows nothing keeps the base rate, {y.mean():.1%}; one that knew "
            f"everything would average {aurc(y, y):.1%}; the better of the two here "
            f"averages {best:.1%}"
            + ("." if best < y.mean() else ", which is no better than knowing nothing."),
        ),
        figure(
            figures.inline_svg(drawn, prefix="risk"),
            label="Error rate among accepted outputs against the share accepted",
            caption=f"{y.size:,} labelled outputs after the warm-up. A lower curve is better. "
            "AURC, the area under the curve, is the error rate averaged over all shares accepted.",
        ),
    )


def _strata(seen: _Seen) -> Markup:
    found = seen.diagnosis
    names = [*(f"Q{j}" for j in range(1, STRATA + 1)), "all"]
    rows = [
        (
            name,
            f"{f.n:,}",
            f"{f.labelled:,}",
            "–" if isnan(f.mean_cost) else _cost(f.mean_cost),
            _percent(f.error_rate),
            _decimals(f.rho),
            _p(f.p_value),
        )
        for name, f in zip(names, [*found.strata, found.overall], strict=True)
    ]
    rho = [f.rho for f in found.strata]
    p_value = [f.p_value for f in found.strata]
    correlations = figures.correlation_figure(
        [figures.Correlations("score and error", rho, p_value)]
    )
    return section(
        "Can outputs of different cost be compared?",
        element("p", found.conclusion),
        *(element("p", f"{note[:1].upper()}{note[1:]}.", class_="caution") for note in found.notes),
        table(
            ("stratum", "outputs", "labelled", "mean cost ĉ", "wrong", "ρ", "p"),
            rows,
            caption="Strata: outputs by expected cost, cheapest first, with quarters of the "
            "warm-up as borders; the warm-up itself is left out. ρ: how strongly score and error "
            "go together among the labelled; p: how often chance alone gives as much.",
        ),
        figure(
            figures.inline_svg(correlations, prefix="rho"),
            label="Correlation of score and error in each stratum",
            caption="Filled: told from 0 with p < 0.05. In the grey band the score is next to "
            "random. Where the points differ much, one ranking for all strata misleads. A stratum "
            "with fewer than two right or two wrong outputs has no point.",
        ),
        _differences(found),
        _densities(seen),
    )


def _differences(found: Diagnosis) -> Markup:
    """What the conclusion rests on."""
    rows = [
        (
            "variance of ρ over strata, H",
            _decimals(found.dispersion, 4),
            _p(found.dispersion_p),
        ),
        (
            "the same, less what few labels alone make",
            _decimals(found.dispersion_corrected, 4),
            "",
        ),
        (
            "largest error rate minus smallest",
            _percent(found.base_rate_spread),
            _p(found.base_rate_p),
        ),
    ]
    return table(
        ("do strata differ?", "measured", "p"),
        rows,
        caption="p: how often strata that are all alike would differ as much by chance.",
    )


def _densities(seen: _Seen) -> Markup:
    z = seen.scores / seen.records.cost_estimate
    usable = np.isfinite(z) & (np.arange(z.size) >= seen.diagnosis.warmup)
    inside = [z[usable & (seen.stratum == j)] for j in range(STRATA)]
    level = 1.0 - seen.beta
    drawn = figures.threshold_figure(
        inside,
        global_threshold=float(np.quantile(z[usable], level)) if usable.any() else nan,
        thresholds=[float(np.quantile(own, level)) if own.size else nan for own in inside],
    )
    return figure(
        figures.inline_svg(drawn, prefix="densities"),
        label="Distribution of score divided by cost in each stratum, with both thresholds",
        caption="How score ÷ cost spreads in each stratum. What lies right of a line is verified "
        f"at a budget of {_budget(seen.beta)}. Percentages: the share right of the one threshold "
        "for all (policy Threshold), and right of the stratum's own (policy CST).",
    )


def _policies(seen: _Seen) -> Markup:
    found, records = seen.diagnosis, seen.records
    title = "What would each policy have found?"
    if found.absent is not None:
        return section(title, element("p", f"Not to be said: {found.absent}."))
    known = records.take(np.isfinite(records.error) & np.isfinite(records.cost))
    many = len(known) > MANY
    protocol = Protocol(seeds=SEEDS_OF_MANY if many else SEEDS, evaluate="second-half")
    names = list(POLICIES)
    names[-1:-1] = [] if many else LEARNERS  # the oracle is last
    betas = sorted({*BUDGETS, seen.beta})
    over = compare(known, list(POLICIES), betas, protocol, warmup=found.warmup)
    at_beta = over if many else compare(known, names, [seen.beta], protocol, warmup=found.warmup)
    left_out = (
        f" With more than {MANY:,} records, policies that learn step by step are left out here."
    )
    return section(
        title,
        table(
            ("policy", "hit rate", "recall", "budget used", "above Threshold", "above random"),
            [_row(at_beta, name, seen.beta) for name in names],
            caption=f"Each replayed at a budget of {_budget(seen.beta)} in {protocol.seeds} random "
            "orders by the paper's protocol: a tenth of the labels that policies are shown is "
            "flipped, and signals have noise added. What counts is the second half of each order; "
            "the first is for policies that calibrate. Hit rate alone rewards not spending: read "
            "it beside recall. Differences of hit rates are in percentage points. ± is the 95 % "
            "interval over orders; a difference whose interval has 0 in it may be luck. A dash: in "
            "some order nothing was verified." + (left_out if many else ""),
        ),
        figure(
            figures.inline_svg(figures.gain_figure([_gains(over)]), prefix="gain"),
            label="Hit rate of CST and HGA above that of Threshold at several budgets",
            caption="What CST and HGA hit above Threshold, by budget, with the same intervals. On "
            "the line at 0 both are as good as Threshold.",
        ),
        table(
            ("hit rate at a budget of", *(_budget(beta) for beta in betas)),
            [
                (
                    words.partition(":")[0],
                    *(_percents(over.estimate(name, beta, "hit_rate")) for beta in betas),
                )
                for name, words in POLICIES.items()
            ],
            caption="Same orders, same noise. A smaller budget is spent on the most doubtful "
            "outputs first, so hit rates fall as it grows where the score is worth something.",
        ),
        *([_gate(found.gate)] if found.gate else []),
    )


def _row(comparison: Comparison, name: str, beta: float) -> tuple[str, ...]:
    shown = [comparison.estimate(name, beta, metric) for metric in ("hit_rate", "recall")]
    above = []
    for base in ("threshold", "random"):
        gain = comparison.difference(name, base, beta, "hit_rate")
        same = "" if name == base else "0.0"
        above.append(_difference(gain.mean, gain.margin) or same)
    return (
        (POLICIES | LEARNERS)[name],
        *map(_percents, shown),
        _percent(comparison.estimate(name, beta, "utilisation").mean),
        *above,
    )


def _budget(beta: float) -> str:
    return f"{100 * beta:.3g}%"


def _gains(comparison: Comparison) -> figures.GainPanel:
    gains = []
    for name in ("cst", "hga"):
        rows = []
        for beta in comparison.betas:
            gain = comparison.difference(name, "threshold", beta, "hit_rate")
            rows.append([100 * value for value in (gain.mean, *gain.interval)])
        gains.append(figures.Gain(name.upper(), *zip(*rows, strict=True)))
    return figures.GainPanel("", comparison.betas, gains)


def _controls(found: Diagnosis) -> Iterable[Markup]:
    if found.partitions is None:
        return
    rows = [
        (
            RULES[choice.name],
            _percent(choice.hit_rate),
            _percent(choice.recall),
            _percent(choice.utilisation),
            _difference(choice.above_threshold, choice.above_threshold_margin),
            _difference(choice.above_random, choice.above_random_margin),
        )
        for choice in sorted(found.partitions, key=lambda choice: list(RULES).index(choice.name))
    ]
    yield section(
        "Is it cost that makes the difference?",
        table(
            ("thresholds", "hit rate", "recall", "budget used", "above Threshold", "above random"),
            rows,
            caption="If thresholds by cost help because costs differ, those by groups that mean "
            f"nothing should not. Replayed at a budget of {_budget(found.beta)} on all records "
            f"after the warm-up, in {found.orders} random orders, on labels and signals as they "
            "are; the figures above, with noise and on the second half, differ for that. These "
            "intervals count also which outputs happened to be wrong.",
        ),
    )


def _gate(conditions: Sequence[Condition]) -> Markup:
    opens = all(condition.holds for condition in conditions)
    return table(
        ("HGA uses CST if", "measured", "at least", ""),
        [
            (c.name, _decimals(c.value, 4), _decimals(c.least, 4), "yes" if c.holds else "no")
            for c in conditions
        ],
        caption="The policy HGA looks at the first half of the records and then uses CST if all "
        f"three hold, else Threshold. Here it would use {'CST' if opens else 'Threshold'}. "
        "Var_k(ρ_k) is the variance of ρ over strata; p_k are their error rates.",
    )


# -- figures in words ---------------------------------------------------------------------------


def _share(part: float, whole: float) -> str:
    return f"{part / whole:.1%}" if whole else "–"


def _percent(value: float) -> str:
    return "–" if isnan(value) else f"{value:.1%}"


def _percents(value: Estimate) -> str:
    shown = _percent(value.mean)
    return f"{shown} ± {100 * value.margin:.1f}" if value.margin >= 0.0005 else shown


def _decimals(value: float, digits: int = 3) -> str:
    return "–" if isnan(value) else f"{value:.{digits}f}".replace("-", "−")


def _difference(value: float, margin: float) -> str:
    """Percentage points with their interval; empty for what is compared with itself."""
    if isnan(value) or value == margin == 0.0:
        return "–" if isnan(value) else ""
    return f"{100 * value:+.1f} ± {100 * margin:.1f}".replace("-", "−")


def _p(value: float) -> str:
    return "–" if isnan(value) else "< 0.001" if value < 0.001 else f"{value:.3f}"


def _number(value: float | None) -> str:
    if value is None:
        return ""
    return f"{value:.1f}" if isinstance(value, float) else str(value)


def _spread(values: FloatArray) -> str:
    if not values.size:
        return "–"
    return " – ".join(map(_cost, np.quantile(values, (0.0, 0.5, 1.0)).tolist()))


def _cost(value: float) -> str:
    return f"{value:,.0f}" if 100.0 <= value < 1e9 else f"{value:.3g}"


def _beta_of(run: Run | None) -> float:
    """The rate of the log's budget or policy; BETA where there is none."""
    if run is not None:
        fraction = run.ledger.budget.fraction
        if fraction == 1.0:  # what the policy would do with less is the question
            return BETA
        for value in (fraction, run.settings["policy"].get("beta")):
            if isinstance(value, float) and 0.0 < value < 1.0:
                return value
    return BETA


def _warmup_of(run: Run | None) -> int:
    """T0 of the log's policy; the usual one where it has none."""
    given = None if run is None else run.settings["policy"].get("warmup")
    return given if isinstance(given, int) and given > 0 else T0
