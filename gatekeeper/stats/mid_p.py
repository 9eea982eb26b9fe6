"""The mid-p interval of a proportion (Lancaster 1961), for effective numbers as well."""

from __future__ import annotations

from gatekeeper.stats.interval import TAIL, Interval

__all__ = ["midp_interval"]


def midp_interval(rate: float, n: float) -> Interval:
    """Interval in [0, 1] of a rate: a share `rate` of `n` > 0 independent labels is wrong.

    It holds the rates q at which P(X > x) + P(X = x)/2 and P(X < x) + P(X = x)/2 are at least
    `TAIL`, for X ~ Binomial(n, q) and x = n `rate`; neither x nor n need be whole (Korn & Graubard
    1998). Averaged over q it covers in 95.6 % of all samples of 40, in 97 % of those of 10. A
    normal interval covers in too few samples, an exact one in even more.
    """
    from scipy.optimize import brentq
    from scipy.special import betainc

    x = rate * n
    rest = n - x

    def from_above(q: float) -> float:
        """P(X > x) + P(X = x)/2: half of P(X >= x) plus half of P(X > x)."""
        at_least = betainc(x, rest + 1.0, q) if x > 0.0 else 1.0
        more = betainc(x + 1.0, rest, q) if rest > 0.0 else 0.0
        return float(at_least + more) / 2.0

    low = brentq(lambda q: from_above(q) - TAIL, 0.0, 1.0) if x > 0.0 else 0.0
    high = brentq(lambda q: from_above(q) - 1.0 + TAIL, 0.0, 1.0) if rest > 0.0 else 1.0
    return Interval(rate, float(low), float(high))
