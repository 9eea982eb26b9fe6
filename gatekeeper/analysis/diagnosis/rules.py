"""Whether the figures support a threshold of each stratum. `text` has the sentences."""

from __future__ import annotations

from math import ceil, isnan

from gatekeeper.analysis.diagnosis import text
from gatekeeper.analysis.diagnosis.data import Diagnosis, PartitionResult, Thresholds

__all__ = ["conclude"]

LEVEL = 0.025  # of each of the two tests that strata differ: 0.05 together (Bonferroni)
POWER = 0.8
DISPERSION = 0.01  # Var_k(ρ_k), ρ_k 0.1 apart (standard deviation): what the tests must not miss
MARGIN = 0.02  # hit rates closer than this are as good as each other
HIDDEN = 0.1  # a gain in hit rate over a random draw that must not stay unmentioned


def conclude(d: Diagnosis) -> tuple[Thresholds, str]:
    """Whether the strata need thresholds of their own, and the reason.

    Both tests and a replay are asked for it: the tests whether strata differ, the replay whether
    CST hits more than Threshold. Without a replay only the absence of differences decides it.
    """
    labels, needed = d.overall.weight, _labels_needed(len(d.strata))
    if isnan(d.overall.rho):
        return Thresholds.UNKNOWN, text.too_few_labels(d.overall.labelled, needed - labels)
    if d.chosen:
        return Thresholds.UNKNOWN, text.CHOSEN
    if sum(f.n > 0 for f in d.strata) == 1:
        return Thresholds.ONE, text.ONE_STRATUM
    evidence = _evidence(d)
    differ = f"Strata differ: {', and '.join(evidence)}. " if evidence else ""
    if d.partitions is None:
        return (
            (Thresholds.UNKNOWN, differ + text.NO_REPLAY) if evidence else _no_evidence(d, needed)
        )
    threshold, _, _, cst, _ = d.partitions
    gain = cst.above_threshold
    if isnan(gain.value):
        return Thresholds.UNKNOWN, differ + text.BUDGET_TOO_SMALL
    signal = _signal(threshold, cst)
    if gain.low > 0.0:
        return (
            Thresholds.OWN,
            f"{differ or text.NOT_COMPARABLE}{text.better(threshold, cst)}{signal}",
        )
    if gain.high < 0.0:
        differ = differ or "No evidence that strata differ. "
        return Thresholds.ONE, f"{differ}{text.worse(threshold, cst)}{signal}"
    if not evidence:
        found, reason = _no_evidence(d, needed)
        return found, reason + signal
    if abs(gain.value) + gain.margin <= MARGIN:
        return Thresholds.ONE, f"{differ}{text.equal(gain)}{signal}"
    more = labels * ((gain.margin / max(abs(gain.value), MARGIN)) ** 2 - 1)
    return Thresholds.UNKNOWN, f"{differ}{text.undecided(gain, more)}{signal}"


def _evidence(d: Diagnosis) -> list[str]:
    """What the two tests found, in words."""
    found = []
    if d.dispersion_p < LEVEL:
        rho = [f.rho for f in d.strata if not isnan(f.rho)]
        found.append(text.unequal_correlations(rho, d.dispersion_p))
    if d.base_rate_p < LEVEL:
        rates = [f.error_rate for f in d.strata if f.labelled]
        found.append(text.unequal_error_rates(rates, d.base_rate_p))
    return found


def _no_evidence(d: Diagnosis, needed: int) -> tuple[Thresholds, str]:
    labels = d.overall.weight
    if labels >= needed:
        return Thresholds.ONE, text.NO_EVIDENCE
    return Thresholds.UNKNOWN, text.no_evidence_yet(d.overall.labelled, labels, needed - labels)


def _signal(threshold: PartitionResult, cst: PartitionResult) -> str:
    """A remark where neither beats random: no threshold on this score helps at this budget."""
    both = (threshold.above_random, cst.above_random)
    if any(gain.low > 0.0 for gain in both):
        return ""
    return text.SIGNAL_OPEN if any(gain.high > HIDDEN for gain in both) else text.SIGNAL_USELESS


def _labels_needed(strata: int) -> int:
    """Labels with which the test of equal ρ_k finds `DISPERSION` with probability `POWER`."""
    from scipy.special import chdtri, chndtrinc

    free = strata - 1
    critical = chdtri(free, LEVEL)
    # Σ (ρ_k - ρ̄)² / v_k with v_k = K / n: the noncentrality is n Var_k(ρ_k)
    noncentrality: float = chndtrinc(critical, free, 1 - POWER)
    return ceil(noncentrality / DISPERSION)
