"""Generation on a Ray cluster: a model on each of several actors."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from queue import SimpleQueue
from time import monotonic, sleep
from typing import Any, NamedTuple

from gatekeeper.arguments import check_count
from gatekeeper.errors import BadInputError, GeneratorUnavailableError
from gatekeeper.ray.cluster import (
    POLL,
    actor_starter,
    check_reserved,
    connected,
    not_picklable,
    reason_of,
)
from gatekeeper.types import Generation

__all__ = ["RayGenerator"]

Generate = Callable[..., Sequence[Generation]]
CLOSED = "the generator was closed"
NODE_FORGOTTEN = 60.0  # seconds: until Ray knows that a node is gone, it starts actors there


class RayGenerator:
    """A generator that passes each call to a free actor, which has a model of its own.

    Calls from several threads run at the same time, one on each actor; further ones wait. When an
    actor or its node dies, another actor starts and answers the call; after `attempts` actors that
    died with it the call raises. If an actor dies while it loads its model, others start for a
    minute. Equal calls have equal answers, whichever actor answers, as far as the
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
        For a number out of range, for more than the whole cluster has, and for a `make` that
        cannot be pickled.
    GeneratorUnavailableError
        Where the generator cannot be made in the first actor, or actors die for a minute while they
        make it: the message has the reason.
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
        if not callable(make):
            raise BadInputError(
                f"make={make!r:.80}: give a function that makes the generator, such as "
                "functools.partial(vllm_generator, 'my-model')"
            )
        self.actors = check_count("actors", actors)
        self._attempts = check_count("attempts", attempts)
        check_reserved("gpus", gpus, zero=True)
        check_reserved("cpus", cpus, zero=True)
        self._ray = connected(address)
        has = self._ray.cluster_resources()
        for kind, each in (("GPU", gpus), ("CPU", cpus)):
            if actors * each > has.get(kind, 0.0):
                raise BadInputError(
                    f"actors={actors} with {each:g} {kind}s each: the cluster has "
                    f"{has.get(kind, 0.0):g}; give fewer"
                )
        self._make_actor = actor_starter(self._ray, _Model, make, gpus=gpus, cpus=cpus)
        self._closed = False
        self._free: SimpleQueue[_Started | None] = SimpleQueue()  # None where an actor died
        first, *others = [self._start() for _ in range(actors)]
        for other in others:
            self._free.put(other)
        try:
            first = self._loaded(first)
            self.prompt_template: str | None = self._ray.get(first.loading)
        except BaseException:
            self._free.put(first)
            self.close()
            raise
        self._free.put(first)

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
        BadInputError
            For sampling that cannot be pickled.
        GeneratorUnavailableError
            Where the generator raises, and where so many actors died.
        """
        if unsent := not_picklable(self._ray, "sampling", sampling):
            raise BadInputError(unsent)
        started, why = self._free.get(), ""
        try:
            for _ in range(self._attempts):
                taken, started = started, None  # one that cannot load its model has ended
                started = self._loaded(taken)
                try:
                    call = started.actor.generate.remote(list(prompts), list(ids), sampling)
                    answers: Sequence[Generation] = self._result(call)
                    return answers
                except self._ray.exceptions.RayTaskError as e:  # the actor lives on
                    raise GeneratorUnavailableError(reason_of(e)) from e
                except self._ray.exceptions.RayError as e:
                    started, why = None, reason_of(e)
        finally:
            self._free.put(started)
        raise GeneratorUnavailableError(f"{self._attempts} actors died, the last one by: {why}")

    def close(self) -> None:
        """End the actors. Calls that have not ended raise GeneratorUnavailableError."""
        self._closed = True
        for each in [self._free.get() for _ in range(self.actors)]:
            if each is not None:
                self._ray.kill(each.actor)
            self._free.put(None)  # for the calls that still wait for one

    def __enter__(self) -> RayGenerator:
        return self

    def __exit__(self, *exc: object) -> None:
        self.close()

    def _start(self) -> _Started:
        actor = self._make_actor()
        return _Started(actor, actor.load.remote())

    def _loaded(self, started: _Started | None) -> _Started:
        """An actor that has its model: this one, or another if it dies before."""
        deadline = None
        while True:
            if self._closed:
                raise GeneratorUnavailableError(CLOSED)
            started = started or self._start()
            try:
                self._result(started.loading)
                return started
            except self._ray.exceptions.RayTaskError as e:
                self._ray.kill(started.actor)
                raise GeneratorUnavailableError(reason_of(e)) from e
            except self._ray.exceptions.RayError as e:
                deadline = deadline or monotonic() + NODE_FORGOTTEN
                if monotonic() > deadline:
                    why = f"actors died while they loaded the model, the last by: {reason_of(e)}"
                    raise GeneratorUnavailableError(why) from e
            except BaseException:
                self._ray.kill(started.actor)
                raise
            started = None
            sleep(POLL)

    def _result(self, call: Any) -> Any:
        """The result of an actor's call. Raises what Ray does."""
        while not self._ray.wait([call], timeout=POLL)[0]:
            if self._closed:
                raise GeneratorUnavailableError(CLOSED)
        return self._ray.get(call)


class _Started(NamedTuple):
    actor: Any
    loading: Any  # Ray's reference to the result of `_Model.load`


class _Model:
    """The object in an actor: one generator, used by one call at a time."""

    def __init__(self, make: Callable[[], Generate]) -> None:
        self._make = make

    def load(self) -> str | None:
        """Make the generator; returns its prompt template.

        Not in the constructor, whose exceptions Ray reports as it does an actor's death.
        """
        self._generate = self._make()
        return getattr(self._generate, "prompt_template", None)

    def generate(
        self, prompts: Sequence[str], ids: Sequence[str], sampling: dict[str, Any]
    ) -> Sequence[Generation]:
        return self._generate(prompts, ids, **sampling)
