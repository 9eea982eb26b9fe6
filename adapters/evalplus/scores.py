"""pass@k of all samples, from those that were checked.

pass@1 is the mean over problems of the share of their samples that pass: the mean of all samples,
each of weight one over the samples of its problem. pass@k of a problem with n samples, c of which
pass, is 1 - C(n-c, k) / C(n, k). Checked samples are a random part of the problem's, so m of them,
f failing, estimate it without bias by 1 - C(f, k) / C(m, k), where m is at least k (Chen et al.
2021). Its interval is Student's over problems. That counts their differences, too, so that it is
wider than unchecked samples make it; it is kept within what is possible. Where a problem has fewer
checked samples than k, or samples were not drawn equally, only what is possible is given.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import replace
from math import comb, sqrt

import numpy as np

from gatekeeper.adapters.evalplus.harness import evalplus_module
from gatekeeper.adapters.evalplus.samples import Sample
from gatekeeper.adapters.harness.scores import score_of
from gatekeeper.analysis.score import ScoreEstimate
from gatekeeper.stats.interval import UPPER, Interval
from gatekeeper.types import GateResult

__all__ = ["KS", "pass_at_1", "pass_at_k"]

KS = (10, 100)  # EvalPlus's, beside 1


def pass_at_1(
    samples: Sequence[Sample], results: Sequence[GateResult], right: Sequence[bool | None]
) -> ScoreEstimate:
    """pass@1 of all samples.

    Parameters
    ----------
    samples, results : sequence
        Samples and results of all N samples.
    right : sequence of bool or None
        Whether each passes; None where it was not checked.
    """
    of_problem: dict[str, int] = defaultdict(int)
    for sample in samples:
        of_problem[sample.task_id] += 1
    score = score_of(
        results,
        [None if passes is None else float(passes) for passes in right],
        weights=[1.0 / of_problem[sample.task_id] for sample in samples],
        questions=[sample.task_id for sample in samples],
    )
    if None in right:
        return score
    by_problem: dict[str, list[bool | None]] = defaultdict(list)
    for sample, passes in zip(samples, right, strict=True):
        by_problem[sample.task_id].append(passes)
    value = _known(1, list(by_problem.values()))
    known = Interval(value, value, value, len(samples))
    return replace(score, bounds=known, unchecked=known)  # to the last digit as EvalPlus has it


def pass_at_k(
    k: int,
    samples: Sequence[Sample],
    results: Sequence[GateResult],
    right: Sequence[bool | None],
) -> Interval | None:
    """pass@k of all samples with its interval; the value is NaN where only the ends are known.

    The parameters are those of `pass_at_1`. None where a problem has fewer than k samples, as for
    EvalPlus.
    """
    by_problem: dict[str, list[bool | None]] = defaultdict(list)
    for sample, passes in zip(samples, right, strict=True):
        by_problem[sample.task_id].append(passes)
    problems = list(by_problem.values())
    if min(map(len, problems)) < k:
        return None
    low = _mean(_of_problem(k, len(of), of.count(True)) for of in problems)
    high = _mean(_of_problem(k, len(of), of.count(True) + of.count(None)) for of in problems)
    if low == high:
        low = _known(k, problems)
        return Interval(low, low, low, len(samples))
    checked = [[passes for passes in of if passes is not None] for of in problems]
    drawn = {result.decision.propensity for result in results}
    if min(map(len, checked)) < k or max(drawn) > min(drawn) + 1e-9 or len(problems) < 2:
        return Interval(float("nan"), low, high)
    from scipy.special import stdtrit

    each = np.array([_of_problem(k, len(of), of.count(True)) for of in checked])
    margin = float(stdtrit(each.size - 1, UPPER)) * float(each.std(ddof=1)) / sqrt(each.size)
    value = min(max(float(each.mean()), low), high)
    return Interval(value, max(value - margin, low), min(value + margin, high), len(samples))


def _known(k: int, problems: Sequence[Sequence[bool | None]]) -> float:
    """pass@k as EvalPlus computes it, if every sample was checked."""
    total = np.array([len(of) for of in problems])
    right = np.array([of.count(True) for of in problems])
    return float(evalplus_module("eval").estimate_pass_at_k(total, right, k).mean())


def _of_problem(k: int, n: int, c: int) -> float:
    return 1.0 - comb(n - c, k) / comb(n, k)


def _mean(values: Iterable[float]) -> float:
    return float(np.mean(list(values)))
