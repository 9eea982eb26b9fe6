"""A gateway in a thread of its own, with a gate in memory."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from aiohttp import web

from gatekeeper import Budget, VerificationGate
from gatekeeper.gateway.application import Gateway
from gatekeeper.gateway.route import Route
from gatekeeper.gateway.server import runner_of
from gatekeeper.gateway.settings import GatewaySettings
from gatekeeper.gateway.tasks import Tasks
from gatekeeper.page.access import Access
from gatekeeper.page.application import LivePage
from gatekeeper.page.watcher import Watcher
from gatekeeper.types import Generation, Outcome, Verdict
from gatekeeper.verifiers import ByKind


class GoldChecker:
    """A verifier that passes a text that contains the gold answer."""

    def verify(self, generation: Generation, task: Mapping[str, Any]) -> Outcome:
        right = task["gold"] in generation.text
        return Outcome(Verdict.PASSED if right else Verdict.FAILED)


@dataclass
class Running:
    url: str  # of the gateway, without /v1
    gate: VerificationGate
    tasks: Tasks
    token: str  # of the page


@contextmanager
def running_gateway(
    upstream: str,
    *,
    budget: Budget | None = None,
    verifier: Any = None,
    kinds: Sequence[str] = ("math",),
    page: Access | None = None,
    port: int = 0,
    gate: Mapping[str, Any] | None = None,
    error_rate: Any = None,
    **settings: Any,
) -> Iterator[Running]:
    """By default everything is verified, which needs no policy. With `page`, the gate has a log."""
    judge = ByKind(dict.fromkeys(kinds, verifier or GoldChecker()))
    options: dict[str, Any] = {"on_unavailable": "pass", **(gate or {})}
    ready, loops = threading.Event(), []
    running = Running("", None, Tasks(kinds=kinds), "")  # type: ignore[arg-type]

    async def serve() -> None:
        stop = asyncio.Event()
        loops.append((asyncio.get_running_loop(), stop))
        live = None
        if page is not None:
            running.token = page.token
            live = LivePage(Watcher(options["log"]), page, report=running.gate.report_outcome)
        route = Route(
            gate=running.gate,
            settings=GatewaySettings(upstream=upstream, **settings),
            page=live,
            error_rate=error_rate,
        )
        made = Gateway(route, running.tasks)
        runner = runner_of(made)
        await runner.setup()
        await web.TCPSite(runner, "127.0.0.1", port, backlog=2000).start()
        running.url = f"http://127.0.0.1:{runner.addresses[0][1]}"
        ready.set()
        await stop.wait()
        await made.drain()
        await runner.cleanup()

    with VerificationGate(
        "cst", budget=budget or Budget(fraction=1.0), verifier=judge, **options
    ) as running.gate:
        thread = threading.Thread(target=lambda: asyncio.run(serve()), daemon=True)
        thread.start()
        assert ready.wait(60)
        try:
            yield running
        finally:
            loop, stop = loops[0]
            loop.call_soon_threadsafe(stop.set)
            thread.join(60)
            assert not thread.is_alive()
