"""The closing table's numbers, against counting and against the distribution of random draws."""

import random
from math import isnan, sqrt
from statistics import fmean, pstdev

import numpy as np
import pytest

from gatekeeper import Decision, GateResult, Outcome, Reason, Signals, Verdict
from gatekeeper.analysis.summary import summarise, summary_of

SIGNALS = Signals(0.1, -0.2, 0.9)


def result(i: int, *, verify: bool, wrong: bool | None, reason: Reason) -> GateResult:
    verdict = {True: Verdict.FAILED, False: Verdict.PASSED, None: Verdict.INFRA_ERROR}[wrong]
    return GateResult(f"r{i}", SIGNALS, Decision(verify, reason), Outcome(verdict))


def run(
    labels: list[bool], chosen: set[int], *, external: bool, warmup: int = 10
) -> list[GateResult]:
    """A warm-up with every second output wrong, then the labels.

    external   whether outputs that were not chosen have a verdict, too
    """
    first = [result(i, verify=True, wrong=i % 2 == 0, reason=Reason.WARMUP) for i in range(warmup)]
    rest = [
        result(warmup + i, verify=i in chosen, wrong=wrong, reason=Reason.POLICY)
        if i in chosen or external
        else GateResult(f"r{warmup + i}", SIGNALS, Decision(False, Reason.POLICY))
        for i, wrong in enumerate(labels)
    ]
    return first + rest


def test_counts_with_every_label_known() -> None:
    labels = [True] * 6 + [False] * 14
    summary = summarise(run(labels, {0, 1, 2, 10}, external=True))
    assert (summary.outputs, summary.warmup_verified, summary.warmup_errors) == (30, 10, 5)
    assert (summary.evaluated, summary.verified, summary.errors_found) == (20, 4, 3)
    assert (summary.errors, summary.best_found, summary.hit_rate) == (6, 4, 0.75)
    assert summary.random_found == 4 * 6 / 20
    assert summary.all_errors == 11


def test_unknown_labels_are_estimated_from_the_warmup_or_left_unknown() -> None:
    labels = [True] * 6 + [False] * 14
    summary = summarise(run(labels, {0, 1, 2, 10}, external=False))
    assert (summary.all_checked, summary.errors, summary.best_found) == (False, None, None)
    assert summary.random_found == 4 * 0.5
    p = 8 / 14  # wrong among the 10 of the warm-up and the 4 verified
    assert summary.above_random == pytest.approx(1 / sqrt(4 * p * (1 - p) * (1 + 4 / 10)))
    assert isnan(summarise(run(labels, set(), external=False)).above_random)
    assert summarise(run(labels, {0}, external=False, warmup=0)).random_found is None
    assert summarise([]).random_found is None
    assert summary.all_errors is None
    assert summarise(run([], set(), external=False)).all_errors == 5  # all of them warm-up


def test_an_output_without_verdict_is_neither_correct_nor_wrong() -> None:
    results = run([True, False], {0, 1}, external=True)
    lost = result(99, verify=True, wrong=None, reason=Reason.POLICY)
    summary = summarise([*results, lost])
    assert (summary.verified, summary.errors_found, summary.could_not_tell) == (2, 1, 1)
    assert not summary.all_checked
    lost = result(99, verify=True, wrong=None, reason=Reason.WARMUP)
    assert summarise([*results, lost]).all_errors is None


@pytest.mark.parametrize("seed", range(3))
def test_above_random_is_measured_in_deviations_of_random_draws(seed: int) -> None:
    """Over many uniform draws it has mean 0 and standard deviation 1."""
    rng = random.Random(seed)
    labels = [rng.random() < 0.3 for _ in range(60)]
    scores = [
        summarise(run(labels, set(rng.sample(range(60), 12)), external=True)).above_random
        for _ in range(2000)
    ]
    assert abs(fmean(scores)) < 0.08
    assert abs(pstdev(scores) - 1.0) < 0.06


def test_without_every_label_the_warmup_counts_as_uncertain_too() -> None:
    """Over many streams in which warm-up and choice are draws of one rate: mean 0, deviation 1."""
    rng = np.random.default_rng(0)
    number = np.arange(200)
    selected = number < 90  # the first 50 are the warm-up
    scores = [
        summary_of(
            warmup=number < 50,
            selected=selected,
            labelled=selected,
            wrong=rng.random(200) < 0.3,
            budget_exhausted=0,
            missing_signal=0,
        ).above_random
        for _ in range(2000)
    ]
    assert abs(fmean(scores)) < 0.08
    assert abs(pstdev(scores) - 1.0) < 0.06
