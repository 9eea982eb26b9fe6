"""Which policy to use, and what each would have found on the same records."""

from __future__ import annotations

from collections.abc import Sequence

from gatekeeper.analysis.advice import Advice
from gatekeeper.analysis.diagnosis import Condition
from gatekeeper.analysis.experiment import Comparison
from gatekeeper.policies import CST, HGA, Calibrated, PolicyDescriptor, Random, Threshold
from gatekeeper.report import figures
from gatekeeper.report import formatting as fmt
from gatekeeper.report.data import MANY, PolicyReplays, ReportData
from gatekeeper.report.html import Markup, Section, element, figure, section, table
from gatekeeper.wording import chance, counted, signed

__all__ = ["policies"]


def policies(data: ReportData) -> Section:
    found, replays = data.diagnosis, data.replays
    title = "What would each policy have found?"
    advised = [element("p", element("strong", f"{data.advice}")), *_next_run(data.advice)]
    if data.for_score:
        advised.insert(0, element("p", "This run was for the score. To find wrong outputs:"))
    if replays is None:
        return section(
            title,
            *advised,
            element("p", f"Replays with every label. Cannot be computed: {found.absent}."),
        )
    return section(
        title,
        *advised,
        _at_beta(replays, data.beta),
        figure(
            figures.inline_svg(figures.gain_figure([_gains(replays)]), prefix="gain"),
            label="Hit rate of other policies minus that of Threshold, by budget",
            caption="Hit rate of other policies minus that of Threshold, with 95 % "
            "intervals. At 0 they are as good as Threshold. Calibrated seeks the most errors for "
            "the cost, not the highest hit rate: compare recall above.",
            values=_gain_values(_gains(replays)),
        ),
        _over_budgets(replays.over, replays.over_budgets),
        *([_gate(found.gate)] if found.gate else []),
    )


def _next_run(advice: Advice) -> list[Markup]:
    """The table behind the advice, where policies can be compared."""
    if advice.recall is None:
        return []
    rows = [(advice.policy, fmt.rate_interval(advice.recall), "", "", "")]
    rows += [
        (
            r.policy,
            fmt.rate_interval(r.recall),
            fmt.points_interval(r.less),
            chance(r.ahead),
            chance(r.behind),
        )
        for r in advice.rivals
    ]
    name = advice.policy
    return [
        table(
            ("policy", "recall", f"points below {name}", f"{name} finds more", "finds less"),
            rows,
            caption=f"In the next run of such outputs, at a budget of {fmt.budget(advice.budget)}: "
            "the share of all errors found, with its 95 % interval and the estimate; and the odds "
            f"that {name} finds over one point more, or less. Choices are those on this file, in "
            "its order; labels that it lacks are drawn.",
        )
    ]


def _at_beta(replays: PolicyReplays, beta: float) -> Markup:
    left_out = (
        f" With more than {MANY:,} records, policies that learn from every label are left out."
    )
    return table(
        ("policy", "hit rate", "recall", "budget used", "above Threshold", "above random"),
        [_row(replays.at_beta, policy, beta) for policy in replays.policies],
        caption=f"Replays at a budget of {fmt.budget(beta)}, in "
        f"{counted(replays.seeds, 'random order')}, by the paper's protocol: 10 % of the labels "
        "shown to policies are flipped, and signals have noise added. The second half of each "
        "order is evaluated; the first is for calibration. A policy that spends little can have a "
        "high hit rate: compare recall too. Differences of hit rates are in percentage points. ± "
        "is the 95 % interval over orders; a difference whose interval contains 0 may be due to "
        "chance. A dash: in some order nothing was "
        "verified." + (left_out if replays.without_learners else ""),
    )


def _over_budgets(policies: Sequence[PolicyDescriptor], over: Comparison) -> Markup:
    return table(
        ("hit rate at a budget of", *(fmt.budget(beta) for beta in over.betas)),
        [
            (
                policy.label,
                *(
                    fmt.percent_and_margin(over.estimate(policy.name, beta, "hit_rate"))
                    for beta in over.betas
                ),
            )
            for policy in policies
        ],
        caption="Hit rates by budget. Same orders and noise. A small budget covers only the most "
        "uncertain outputs, so hit rates fall as the budget grows if the score is informative.",
    )


def _row(comparison: Comparison, policy: PolicyDescriptor, beta: float) -> tuple[str, ...]:
    name = policy.name
    shown = [comparison.estimate(name, beta, metric) for metric in ("hit_rate", "recall")]
    above = []
    for base in (Threshold.name, Random.name):
        gain = comparison.difference(name, base, beta, "hit_rate")
        same = "" if name == base else "0.0"
        above.append(fmt.difference(gain) or same)
    return (
        f"{policy.label}: {policy.description}",
        *map(fmt.percent_and_margin, shown),
        fmt.percent(comparison.estimate(name, beta, "utilisation").value),
        *above,
    )


def _gains(replays: PolicyReplays) -> figures.GainPanel:
    gains, comparison = [], replays.over_budgets
    for policy in (CST, HGA, Calibrated):
        if policy.name not in {shown.name for shown in replays.over}:
            continue
        rows = []
        for beta in comparison.betas:
            gain = comparison.difference(policy.name, Threshold.name, beta, "hit_rate")
            rows.append([100 * value for value in (gain.value, gain.low, gain.high)])
        gains.append(figures.Gain(policy.label, *zip(*rows, strict=True)))
    return figures.GainPanel("", comparison.betas, gains)


def _gain_values(panel: figures.GainPanel) -> Markup:
    return table(
        ("policy", *(fmt.budget(beta) for beta in panel.beta)),
        [
            (
                gain.policy,
                *(
                    "–" if at != at else f"{signed(at, 1)} ({signed(low, 1)} … {signed(high, 1)})"
                    for at, low, high in zip(gain.mean, gain.low, gain.high, strict=True)
                ),
            )
            for gain in panel.gains
        ],
        caption="Percentage points above Threshold by budget, with 95 % intervals.",
    )


def _gate(conditions: Sequence[Condition]) -> Markup:
    opens = all(condition.holds for condition in conditions)
    return table(
        ("HGA uses CST if", "measured", "at least", "holds"),
        [
            (c.name, fmt.decimals(c.value, 4), fmt.decimals(c.least, 4), "yes" if c.holds else "no")
            for c in conditions
        ],
        caption="HGA measures these values on the first half of the records. It then uses CST if "
        "all three conditions hold, otherwise Threshold. Here it would use "
        f"{'CST' if opens else 'Threshold'}. "
        "Var_k(ρ_k) is the variance of ρ over strata; p_k is the error rate of stratum k.",
    )
