"""Prometheus: a gate's figures for a registry of prometheus_client.

They are read from `gate.status()` at each scrape; there is no work per output.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from math import inf
from typing import TypeVar

from gatekeeper.errors import BadInputError, MissingDependencyError
from gatekeeper.gate import VerificationGate
from gatekeeper.policies import display_name
from gatekeeper.stats.interval import Interval
from gatekeeper.types import GateStatus, PolicyHealth

try:
    from prometheus_client.core import (
        CounterMetricFamily,
        GaugeMetricFamily,
        HistogramMetricFamily,
        Metric,
    )
except ImportError:
    raise MissingDependencyError(
        "prometheus_client", extra="prometheus", needed_for="gatekeeper.telemetry.prometheus"
    ) from None

__all__ = ["GateCollector", "histogram", "labelled"]

BOUNDS = ("estimate", "low", "high")
MAIN, WARMUP = "main", "warmup"
Family = TypeVar("Family", bound=CounterMetricFamily | GaugeMetricFamily)


class GateCollector:
    """Collects the figures of one gate: `prometheus_client.REGISTRY.register(GateCollector(gate))`.

    Decisions and verdicts are counted from the beginning of the gate's log, so a restart does not
    reset them; the durations are of this process.

    Parameters
    ----------
    gate : VerificationGate
    error_rate : callable or None
        Returns the estimated error rate of all outputs, or None where there is none: see
        `gatekeeper.telemetry.error_rate.LoggedErrorRate`. None: the metric is left out.

    Raises
    ------
    BadInputError
        For another value.
    """

    def __init__(
        self, gate: VerificationGate, *, error_rate: Callable[[], Interval | None] | None = None
    ) -> None:
        if not isinstance(gate, VerificationGate):
            raise BadInputError(f"gate={gate!r:.80}: give a VerificationGate")
        if not (error_rate is None or callable(error_rate)):
            raise BadInputError(
                f"error_rate={error_rate!r:.80}: give a function, such as LoggedErrorRate('run.db')"
            )
        self._gate, self._error_rate = gate, error_rate
        self._policy = display_name(gate.policy)
        self._unit = gate.budget.unit

    def describe(self) -> Iterator[Metric]:
        """The families of the gate's status, for the registry to know their names."""
        return self._of_status(self._gate.status())

    def collect(self) -> Iterator[Metric]:
        """All figures, of one moment."""
        yield from self._of_status(self._gate.status())
        if self._error_rate is not None:
            rate = self._error_rate()
            values = () if rate is None else (rate.value, rate.low, rate.high)
            yield labelled(
                GaugeMetricFamily(
                    "gatekeeper_error_rate",
                    "Estimated error rate of all outputs, with its 95 % interval.",
                    labels=("bound",),
                ),
                [((bound,), value) for bound, value in zip(BOUNDS, values, strict=False)],
            )

    def _of_status(self, status: GateStatus) -> Iterator[Metric]:
        yield labelled(
            CounterMetricFamily(
                "gatekeeper_decisions", "Outputs decided on.", labels=("policy", "reason")
            ),
            [((self._policy, reason), n) for reason, n in status.decisions.items()],
        )
        yield labelled(
            CounterMetricFamily(
                "gatekeeper_outcomes",
                "Verifications of selected outputs that have ended.",
                labels=("verdict",),
            ),
            [((verdict,), n) for verdict, n in status.verdicts.items()],
        )
        yield from self._account(status)
        for name, help_, value in (
            ("verifying", "Outputs that are being verified.", status.verifying),
            ("unresolved", "Selected outputs without a verdict.", status.unresolved),
        ):
            yield GaugeMetricFamily(f"gatekeeper_{name}", help_, value=value)
        yield labelled(
            GaugeMetricFamily(
                "gatekeeper_health", "1 for the state that the policy is in.", labels=("state",)
            ),
            [((health,), float(health is status.health)) for health in PolicyHealth],
        )
        yield histogram(
            "gatekeeper_verification_seconds",
            "How long verifications with a verdict took, in this process.",
            status.durations,
            status.seconds,
        )

    def _account(self, status: GateStatus) -> Iterator[Metric]:
        accounts = (
            ("spent", "Charged.", ((MAIN, status.spent), (WARMUP, status.warmup_spent))),
            ("held", "Reserved.", ((MAIN, status.held), (WARMUP, status.warmup_held))),
            ("cap", "What may be spent and held now.", ((MAIN, status.cap),)),
            ("overrun", "Taken beyond reservations.", ((MAIN, status.overrun),)),
        )
        for name, help_, values in accounts:
            yield labelled(
                GaugeMetricFamily(f"gatekeeper_budget_{name}", help_, labels=("account", "unit")),
                [((account, self._unit), value) for account, value in values],
            )


def labelled(family: Family, samples: Iterable[tuple[Iterable[str], float]]) -> Family:
    """The family with these samples: values of its labels, and a number each."""
    for values, number in samples:
        family.add_metric(tuple(map(str, values)), number)
    return family


def histogram(
    name: str, help_: str, cumulative: Iterable[tuple[float, int]], total: float
) -> HistogramMetricFamily:
    """A histogram.

    Parameters
    ----------
    name, help_
        Name and description of the metric.
    cumulative
        For each bound in seconds, infinity last: how many durations were at most so long.
    total
        Sum of all durations, seconds.
    """
    buckets = [("+Inf" if bound == inf else f"{bound:g}", n) for bound, n in cumulative]
    return HistogramMetricFamily(name, help_, buckets=buckets, sum_value=total)
