"""Generation on a Ray cluster: a model on each of several actors."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from queue import SimpleQueue
from typing import Any

from gatekeeper.errors import BadInputError, GeneratorUnavailableError
from gatekeeper.ray.cluster import POLL, connected, reason_of
from gatekeeper.types import Generation
from gatekeeper.types.values import as_count

__all__ = ["RayGenerator"]

Generate = Callable[..., Sequence[Generation]]
CLOSED = "the generator was closed"


class RayGenerator:
    """A generator that passes each call to a free actor, which has a model of its own.

    Calls from several threads run at the same time, one on each actor; further ones wait. When an
    actor or its node dies, another actor starts and answers the call; after `attempts` actors that
    died the call raises. Equal calls have equal answers, whichever actor answers, as far as the
    model's own do.

    Parameters
    ----------
    make
        Makes the generator of an actor, in the actor: a function without parameters, such as
        `functools.partial(vllm_generator, "my-model")`. Ray sends it by cloudpickle.
    actors
        How many, at least 1.
    gpus, cpus
        GPUs and processors that Ray reserves for an actor, at least 0.
    attempts
        How often a call is tried if its actor dies, at least 1.
    address
        As of `RayVerifier`.

    Attributes
    ----------
    actors
        How many calls run at the same time.
    prompt_template
        That of the actors' generators; None: they have none.

    Raises
    ------
    MissingDependencyError
        Without the extra `ray`.
    BadInputError
        For a number out of range, and for more than the whole cluster has.
    GeneratorUnavailableError
        Where the generator cannot be made in the first actor: the message has the reason.
    """

    def __init__(
        self,
        make: Callable[[], Generate],
        *,
        actors: int = 1,
        gpus: float = 1.0,
        cpus: float = 1.0,
        attempts: int = 3,
        address: str | None = None,
    ) -> None:
        for setting, value in (("actors", actors), ("attempts", attempts)):
            if as_count(setting, value) < 1:
                raise BadInputError(f"{setting}={value!r}: at least 1 is needed")
        self.actors, self._attempts = actors, attempts
        self._ray = connected(address)
        has = self._ray.cluster_resources()
        for kind, each in (("GPU", gpus), ("CPU", cpus)):
            if actors * each > has.get(kind, 0.0):
                raise BadInputError(
                    f"actors={actors} with {each:g} {kind}s each: the cluster has "
                    f"{has.get(kind, 0.0):g}; give fewer"
                )
        self._start = partial(
            self._ray.remote(_Model)
            .options(num_gpus=gpus, num_cpus=cpus, max_restarts=0, scheduling_strategy="SPREAD")
            .remote,
            make,
        )
        self._closed = False
        self._free: SimpleQueue[Any] = SimpleQueue()  # None in place of an actor that died
        started = [self._start() for _ in range(actors)]
        for actor in started:
            self._free.put(actor)
        try:
            self.prompt_template: str | None = self._result(started[0].prompt_template.remote())
        except Exception as e:
            self.close()
            raise GeneratorUnavailableError(reason_of(e)) from e

    def __call__(
        self, prompts: Sequence[str], ids: Sequence[str], **sampling: Any
    ) -> Sequence[Generation]:
        """One output for each prompt, in order. Thread-safe.

        Parameters
        ----------
        prompts, ids
            Of equal length.
        **sampling
            What the actors' generator takes: a temperature and a seed.

        Raises
        ------
        GeneratorUnavailableError
            Where the generator raises, and where so many actors died.
        """
        actor, why = self._free.get(), ""
        try:
            for _ in range(self._attempts):
                if self._closed:
                    raise GeneratorUnavailableError(CLOSED)
                if actor is None:
                    actor = self._start()
                try:
                    call = actor.generate.remote(list(prompts), list(ids), sampling)
                    answers: Sequence[Generation] = self._result(call)
                    return answers
                except self._ray.exceptions.RayTaskError as e:  # the actor lives on
                    raise GeneratorUnavailableError(reason_of(e)) from e
                except self._ray.exceptions.RayError as e:
                    actor, why = None, reason_of(e)
        finally:
            self._free.put(actor)
        raise GeneratorUnavailableError(f"{self._attempts} actors died, the last one by: {why}")

    def close(self) -> None:
        """End the actors. Calls that have not ended raise GeneratorUnavailableError."""
        self._closed = True
        for actor in [self._free.get() for _ in range(self.actors)]:
            if actor is not None:
                self._ray.kill(actor)
            self._free.put(None)  # for the calls that still wait for one

    def __enter__(self) -> RayGenerator:
        return self

    def __exit__(self, *exc: object) -> None:
        self.close()

    def _result(self, call: Any) -> Any:
        while not self._ray.wait([call], timeout=POLL)[0]:
            if self._closed:
                raise GeneratorUnavailableError(CLOSED)
        return self._ray.get(call)


class _Model:
    """The object in an actor: one generator, used by one call at a time."""

    def __init__(self, make: Callable[[], Generate]) -> None:
        self._generate = make()

    def prompt_template(self) -> str | None:
        return getattr(self._generate, "prompt_template", None)

    def generate(
        self, prompts: Sequence[str], ids: Sequence[str], sampling: dict[str, Any]
    ) -> Sequence[Generation]:
        return self._generate(prompts, ids, **sampling)
