"""Verification on a Ray cluster: any verifier on a pool of actors over all nodes, in batches."""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Sequence
from concurrent.futures import Future
from dataclasses import dataclass, field
from functools import partial
from typing import Any

from gatekeeper.arguments import check_count
from gatekeeper.errors import GatekeeperError
from gatekeeper.ray.cluster import (
    POLL,
    START_LIMIT,
    actor_starter,
    check_reserved,
    connected,
    not_picklable,
    reason_of,
)
from gatekeeper.ray.worker import Make, Worker, check_make
from gatekeeper.types import Generation, Outcome, Verdict
from gatekeeper.types.values import check_text

__all__ = ["RayVerifier"]


class RayVerifier:
    """A verifier that passes outputs to actors, each with a verifier of its own.

    An output waits until an actor is free, which gets the waiting outputs in one batch. When an
    actor or its node dies, its batch is verified again, one by one and on another node where there
    is one; an output that was with `attempts` actors that died is an INFRA_ERROR. Each call of
    `verify` returns one outcome, so a gate charges it once, however often it was tried.

    Parameters
    ----------
    make
        Makes the verifier of an actor, in the actor: a name ("docker", "local", "math"), a class,
        or a function without parameters. Ray sends it by cloudpickle.
    actors
        How many, at least 1; None: as many as the cluster's processors allow.
    batch
        Most outputs in one call of an actor, at least 1.
    cpus
        Processors that Ray reserves for an actor, above 0. A verifier that waits for a service
        needs a fraction.
    attempts
        How often an output is tried if its actor dies, at least 1.
    address
        Address of the cluster, if this process is not connected to one yet; None: RAY_ADDRESS, else
        a cluster that runs on this machine, else a new one on this machine.
    name
        Identifies the verifier in a log; default: the name of `make`, with the arguments of a
        `functools.partial`.

    Attributes
    ----------
    max_seconds
        That of the actors' verifiers, seconds; None if they declare none.

    Raises
    ------
    MissingDependencyError
        Without the extra `ray`.
    BadInputError
        For a number out of range, and for a `make` that cannot be pickled.
    GatekeeperError
        The verifier cannot be made on the cluster: the message has the reason.
    """

    def __init__(
        self,
        make: Make,
        *,
        actors: int | None = None,
        batch: int = 64,
        cpus: float = 1.0,
        attempts: int = 3,
        address: str | None = None,
        name: str = "",
    ) -> None:
        check_make(make)
        check_text("name", name)
        self._batch, self._attempts = check_count("batch", batch), check_count("attempts", attempts)
        size = None if actors is None else check_count("actors", actors)
        check_reserved("cpus", cpus, zero=False)
        self.name = name or _name_of(make)
        self.max_seconds: float | None = None
        self._ray = connected(address)
        if size is None:
            size = max(1, int(self._ray.cluster_resources().get("CPU", 1) / cpus))
        self._start_actor = actor_starter(self._ray, Worker, make, cpus=cpus)
        self._changed = threading.Condition()
        self._waiting: list[_Item] = []
        self._nodes: dict[int, str] = {}  # of the actors that live, by slot
        self._alive_at = time.monotonic()  # when there was last an actor
        self._failure, self._failed = "the cluster has no room for one", 0
        self._closed = False
        self._slots = [
            threading.Thread(target=self._serve, args=(slot,), name="gatekeeper-ray", daemon=True)
            for slot in range(size)
        ]
        for thread in self._slots:
            thread.start()
        with self._changed:
            ready = self._changed.wait_for(
                lambda: bool(self._nodes) or self._failed >= size, START_LIMIT
            )
        if not (ready and self._nodes):
            self.close()
            raise GatekeeperError(f"{self.name}: no actor could be started: {self._failure}")

    def verify(self, generation: Generation, task: Any) -> Outcome:
        """Verify one output on the cluster. Thread-safe; never raises for what happens there."""
        return self._submit(generation, task).result()

    async def averify(self, generation: Generation, task: Any) -> Outcome:
        """`verify` as a coroutine, without a thread. Cancelled, it no longer waits for an actor."""
        return await asyncio.wrap_future(self._submit(generation, task))

    def verify_batch(self, pairs: Sequence[tuple[Generation, Any]]) -> list[Outcome]:
        """The outcomes of (output, task) pairs, in their order."""
        futures = [self._submit(generation, task) for generation, task in pairs]
        return [future.result() for future in futures]

    @property
    def nodes(self) -> dict[str, int]:
        """How many actors live on each node, by Ray's node id."""
        with self._changed:
            found = list(self._nodes.values())
        return {node: found.count(node) for node in dict.fromkeys(found)}

    def close(self) -> None:
        """End the actors. Verifications that have not ended are INFRA_ERROR."""
        with self._changed:
            self._closed = True
            self._changed.notify_all()
        for thread in self._slots:
            if thread is not threading.current_thread():
                thread.join()
        self._end_waiting("the pool was closed")

    def __enter__(self) -> RayVerifier:
        return self

    def __exit__(self, *exc: object) -> None:
        self.close()

    def _submit(self, generation: Generation, task: Any) -> Future[Outcome]:
        item = _Item((generation, task))
        with self._changed:
            if self._closed:
                item.end("the pool was closed")
            else:
                self._waiting.append(item)
                self._changed.notify_all()  # not only a slot that waits to start an actor
        return item.future

    def _serve(self, slot: int) -> None:
        """Keep one actor alive and give it batches, until the pool is closed."""
        while not self._closed:
            actor = self._started(slot)
            if actor is None:
                continue
            while (items := self._take(slot)) and self._ran(actor, items, slot):
                pass
            with self._changed:
                self._nodes.pop(slot, None)
                self._alive_at = time.monotonic()
            self._kill(actor)

    def _started(self, slot: int) -> Any:
        """An actor that is ready; None where it failed, and after `close`."""
        actor = None
        try:
            actor = self._start_actor()
            ready = actor.about.remote()
            while not self._closed:
                if self._ray.wait([ready], timeout=POLL)[0]:
                    node, self.max_seconds = self._ray.get(ready)
                    with self._changed:
                        self._nodes[slot] = node
                        self._changed.notify_all()
                    return actor
                self._give_up_without_actors()
        except Exception as e:
            self._give_up_without_actors()
            with self._changed:
                self._failure = reason_of(e)
                self._failed += 1
                self._changed.notify_all()
                # An immediate failure would repeat.
                self._changed.wait_for(lambda: self._closed, 2 * POLL)
        if actor is not None:
            self._kill(actor)
        return None

    def _give_up_without_actors(self) -> None:
        with self._changed:
            late = not self._nodes and time.monotonic() - self._alive_at > START_LIMIT
        if late:
            self._end_waiting(f"no actor for {START_LIMIT:g} s: {self._failure}")

    def _take(self, slot: int) -> list[_Item]:
        """The next batch of an actor; [] after `close`.

        A fair part of what waits, so that actors end together; what was in a batch that failed
        goes alone, so that one output that kills its actor takes no other with it.
        """
        with self._changed:
            while not self._closed:
                node, others = self._nodes[slot], set(self._nodes.values())
                fit = [item for item in self._waiting if item.may_run_on(node, others)]
                part = min(self._batch, -(-len(fit) // len(self._nodes)))
                items = fit[:1] if fit and fit[0].alone else [i for i in fit if not i.alone]
                items = items[:part]
                for item in items:
                    self._waiting.remove(item)
                items = [item for item in items if item.begins()]
                if items:
                    return items
                if not fit:
                    self._changed.wait()
        return []

    def _ran(self, actor: Any, items: list[_Item], slot: int) -> bool:
        """Verify a batch; whether the actor lives on."""
        call = None
        try:
            call = actor.verify_many.remote([item.pair for item in items])
            while not self._ray.wait([call], timeout=POLL)[0]:
                if self._closed:
                    raise RuntimeError("the pool was closed")
            outcomes: list[Outcome] = self._ray.get(call)
        except self._ray.exceptions.RayTaskError as e:  # one could not be read there, or sent back
            if len(items) == 1:
                items[0].end(f"the actor could not take or answer it: {reason_of(e)}")
            else:
                self._queue_again(items, alone=True)
            return True
        except Exception as e:
            if call is None and self._end_unsendable(items):
                return True
            again = []
            for item in items:
                item.died_on.append(self._nodes[slot])
                if self._closed or len(item.died_on) >= self._attempts:
                    item.end(f"{type(e).__name__} ({len(item.died_on)} attempts)")
                else:
                    again.append(item)
            with self._changed:
                # Its own node may be dead: others must not wait for it.
                self._nodes.pop(slot)
                self._queue_again(again, alone=True)
            return False
        for item, outcome in zip(items, outcomes, strict=True):
            item.future.set_result(outcome)
        return True

    def _end_unsendable(self, items: list[_Item]) -> bool:
        """End those that cannot be pickled, and queue the others again; False where all can be."""
        reasons = [item.not_picklable(self._ray) for item in items]
        if not any(reasons):
            return False
        for item, why in zip(items, reasons, strict=True):
            if why:
                item.end(why)
        self._queue_again([i for i, why in zip(items, reasons, strict=True) if not why])
        return True

    def _queue_again(self, items: list[_Item], *, alone: bool = False) -> None:
        with self._changed:
            for item in items:
                item.alone = item.alone or alone
            self._waiting[:0] = items
            self._changed.notify_all()

    def _end_waiting(self, why: str) -> None:
        with self._changed:
            items, self._waiting = self._waiting, []
        for item in items:
            if item.begins():
                item.end(why)

    def _kill(self, actor: Any) -> None:
        try:
            self._ray.kill(actor)
        except Exception:  # it is dead, or the cluster is
            return


@dataclass(eq=False, slots=True)
class _Item:
    pair: tuple[Generation, Any]
    future: Future[Outcome] = field(default_factory=Future)
    died_on: list[str] = field(default_factory=list)  # nodes, one for each actor that died
    alone: bool = False  # whether it was in a batch that failed

    def may_run_on(self, node: str, others: set[str]) -> bool:
        """Whether it was not on this node yet, or no other node is left."""
        return node not in self.died_on or others <= set(self.died_on)

    def begins(self) -> bool:
        """False where its caller no longer waits."""
        return self.future.running() or self.future.set_running_or_notify_cancel()

    def not_picklable(self, ray: Any) -> str | None:
        """What cannot be sent to an actor, and why; None where all can."""
        generation, task = self.pair
        return not_picklable(ray, "output", generation) or not_picklable(ray, "task", task)

    def end(self, why: str) -> None:
        self.future.set_result(Outcome(Verdict.INFRA_ERROR, detail=f"Ray: {why}"))


def _name_of(make: Any) -> str:
    if isinstance(make, str):
        return make
    if isinstance(make, partial):
        given = [*map(repr, make.args), *(f"{k}={v!r}" for k, v in sorted(make.keywords.items()))]
        return f"{_name_of(make.func)}({', '.join(given)})"
    named = make if hasattr(make, "__qualname__") else type(make)
    return f"{named.__module__}.{named.__qualname__}"
