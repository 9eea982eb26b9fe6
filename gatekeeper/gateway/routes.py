"""The routes of a gateway that runs: their upstreams, gates and verifications."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from functools import lru_cache

from gatekeeper.gateway.gated import LONGEST, GatedCalls
from gatekeeper.gateway.metrics import Metrics
from gatekeeper.gateway.outputs import Outputs
from gatekeeper.gateway.route import Route
from gatekeeper.gateway.stored import StoredResponses
from gatekeeper.gateway.tasks import Tasks
from gatekeeper.gateway.upstream import Upstream

__all__ = ["Routes", "RunningRoute"]

MODELS = 4096  # names whose route is cached; callers may send any


class RunningRoute:
    """A route with its connections and its verifications. Made on the event loop that uses it.

    Attributes
    ----------
    settings, upstream, outputs, calls
        Parts of the route.
    """

    def __init__(
        self, route: Route, upstream: Upstream, stored: StoredResponses, metrics: Metrics
    ) -> None:
        self.settings = route.settings
        self.upstream = upstream
        self.outputs = Outputs(route.gate, metrics)
        self.calls = GatedCalls(self.upstream, self.outputs, stored, metrics)


class Routes:
    """All routes of a gateway. Made on the event loop that uses it.

    Parameters
    ----------
    routes : sequence of Route
        The first one has the calls that no other takes; of the others the first that fits counts.
    metrics : Metrics

    Attributes
    ----------
    stored
        Responses of all routes.
    """

    def __init__(self, routes: Sequence[Route], metrics: Metrics) -> None:
        self._succeeding: list[asyncio.Task[None]] = []
        upstreams = [Upstream(route.settings) for route in routes]
        self.stored = StoredResponses(upstreams[0], metrics)
        self._all = [
            RunningRoute(route, upstream, self.stored, metrics)
            for route, upstream in zip(routes, upstreams, strict=True)
        ]
        others = list(zip(routes[1:], self._all[1:], strict=True))

        def of_model(model: str) -> RunningRoute:
            fitting = (running for route, running in others if route.takes(model))
            return next(fitting, self.own)

        self._of_model = of_model if others else None
        self._cached = lru_cache(MODELS)(of_model)

    @property
    def own(self) -> RunningRoute:
        """The gateway's own route, which also has all calls that are not gated."""
        return self._all[0]

    def of(self, model: object) -> RunningRoute:
        """The route of a request's model."""
        if self._of_model is None or not isinstance(model, str):
            return self.own
        return self._cached(model) if len(model) <= LONGEST else self._of_model(model)

    async def resume(self, tasks: Tasks) -> None:
        """As `Outputs.resume`, of all gates, and from then on as `Outputs.succeed`."""
        for route in self._all:
            await route.outputs.resume(tasks)
            if route.outputs.gate.status().shared is not None:
                self._succeeding.append(asyncio.create_task(route.outputs.succeed(tasks)))

    async def drain(self, seconds: float) -> None:
        """As `Outputs.drain`, of all gates at once."""
        for task in self._succeeding:
            task.cancel()
        await asyncio.gather(*(route.outputs.drain(seconds) for route in self._all))

    async def close(self) -> None:
        """End all connections."""
        for route in self._all:
            await route.upstream.close()
