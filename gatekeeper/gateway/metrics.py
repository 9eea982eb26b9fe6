"""Metrics for Prometheus: of the gate of each route, and of the gateway itself.

Those of the gateway are per process, as is usual; with several processes behind one port they have
its number.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence

from prometheus_client import CONTENT_TYPE_LATEST, CollectorRegistry, generate_latest
from prometheus_client.core import CounterMetricFamily, Metric

from gatekeeper.gateway.route import Route
from gatekeeper.stats.histogram import Histogram
from gatekeeper.telemetry.prometheus import GateCollector, histogram, labelled
from gatekeeper.types import Undecided

__all__ = ["CONTENT_TYPE", "Metrics"]

CONTENT_TYPE = CONTENT_TYPE_LATEST
OVERHEAD = (0.0005, 0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.5)  # seconds
OF_PROCESS = ("gatekeeper_verifying", "gatekeeper_verification_seconds")  # of a gate's figures


class Metrics:
    """The figures of one gateway.

    Parameters
    ----------
    routes : sequence of Route
        The figures of a gate have the name of its route as the label `route`, if it has a name.
    worker : int or None
        The number of this process, which its own figures have as the label `worker`.
    """

    def __init__(self, routes: Sequence[Route], *, worker: int | None = None) -> None:
        self._own = {} if worker is None else {"worker": str(worker)}
        self._undecided: Counter[str] = Counter()
        self._requests: Counter[tuple[str, int]] = Counter()
        self._without_task = 0
        self._overhead = Histogram(OVERHEAD)
        self._registry = CollectorRegistry(auto_describe=True)
        self._registry.register(_GateCollectors(routes, self._own))
        self._registry.register(self)

    def decided(self, *, has_task: bool) -> None:
        """Count a decision."""
        self._without_task += not has_task

    def undecided(self, result: Undecided) -> None:
        """Count an output without a decision."""
        self._undecided[result.state] += 1

    def answered(self, endpoint: str, status: int, overhead: float | None = None) -> None:
        """Count an answer; `overhead` in seconds, if it was measured."""
        self._requests[endpoint, status] += 1
        if overhead is not None:
            self._overhead.add(overhead)

    def collect(self) -> Iterator[Metric]:
        """The gateway's own figures, for the registry."""
        return (_with(family, self._own) for family in self._families())

    def _families(self) -> Iterator[Metric]:
        yield labelled(
            CounterMetricFamily("gatekeeper_requests", "Answers.", labels=("endpoint", "status")),
            [((endpoint, str(status)), n) for (endpoint, status), n in self._requests.items()],
        )
        yield labelled(
            CounterMetricFamily(
                "gatekeeper_undecided", "Outputs without a decision.", labels=("state",)
            ),
            [((state,), n) for state, n in self._undecided.items()],
        )
        yield CounterMetricFamily(
            "gatekeeper_without_task",
            "Outputs decided on that came without a task, and are never verified.",
            value=self._without_task,
        )
        yield histogram(
            "gatekeeper_overhead_seconds",
            "Time that the gateway added to answers without a stream, less the wait for verdicts.",
            self._overhead.cumulative(),
            self._overhead.total,
        )

    def text(self) -> bytes:
        """All figures, in Prometheus's text format."""
        return generate_latest(self._registry)


class _GateCollectors:
    """The figures of several gates, each family once.

    `own` are labels of those that count this process.
    """

    def __init__(self, routes: Sequence[Route], own: Mapping[str, str]) -> None:
        self._own = own
        self._collectors = [
            (route.name, GateCollector(route.gate, error_rate=route.error_rate)) for route in routes
        ]

    def collect(self) -> Iterator[Metric]:
        families: dict[str, Metric] = {}
        for route, collector in self._collectors:
            for found in collector.collect():
                if found.name in OF_PROCESS:
                    _with(found, self._own)
                if route:
                    _with(found, {"route": route})
                if found.name in families:
                    families[found.name].samples += found.samples
                else:
                    families[found.name] = found
        yield from families.values()


def _with(family: Metric, labels: Mapping[str, str]) -> Metric:
    """The family, with these labels on all samples."""
    family.samples = [s._replace(labels={**s.labels, **labels}) for s in family.samples]
    return family
