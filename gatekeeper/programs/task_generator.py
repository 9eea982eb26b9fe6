"""The generator of a run, by its name."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from inspect import signature
from typing import Any

from gatekeeper.errors import BadInputError
from gatekeeper.features import samples_of, with_agreement
from gatekeeper.gate.runner import Generate, Sampler
from gatekeeper.io.providers import generator_names, generator_of
from gatekeeper.io.tasks import Task
from gatekeeper.programs.run_options import RunOptions
from gatekeeper.programs.values import key_of, shown_variable

__all__ = ["check_generator", "make_sampler", "with_samples"]


def check_generator(options: RunOptions) -> None:
    """Raises BadInputError if the options do not fit the generator."""
    takes = signature(generator_of(options.generator)).parameters
    if options.base_url and "base_url" not in takes:
        raise BadInputError(
            f"--base-url {options.base_url}: generator {options.generator!r} has no endpoint; "
            "choose one that has, such as openai"
        )
    if options.generators and "base_url" in takes:
        raise BadInputError(
            f"--generators {options.generators}: the endpoint of --generator {options.generator} "
            "generates, and this process asks it; --concurrency sets how many requests at once"
        )
    if bool(options.model) != ("model" in takes):
        others = [n for n in generator_names() if "model" in signature(generator_of(n)).parameters]
        raise BadInputError(
            f"--model {options.model}: it is for --generator {' or '.join(others)}"
            if options.model
            else f"--generator {options.generator} needs --model, the model's name or folder"
        )


def with_samples(sampler: Sampler, tasks: Sequence[Task], options: RunOptions) -> Generate:
    """The generator of a run: with the agreement of further samples where that is asked for."""
    samples = samples_of(options.features)
    if not samples:
        return sampler
    kinds = {task["id"]: task["kind"] for task in tasks}
    return with_agreement(sampler, samples, kinds=kinds, seed=options.seed)


def make_sampler(options: RunOptions) -> Callable[[], Sampler]:
    """What makes the generator, with those of the options that it takes.

    Raises
    ------
    BadInputError
        Without the key that OpenAI's endpoint needs.
    """
    make = generator_of(options.generator)
    takes = signature(make).parameters
    available: dict[str, Any] = {
        "model": options.model,
        "base_url": options.base_url,
        "concurrency": options.concurrency,
        "temperature": options.temperature,
        "seed": options.seed,
        "max_tokens": options.max_tokens,
    }
    if "api_key" in takes:
        available["api_key"] = _api_key(options)
    return partial(make, **{name: value for name, value in available.items() if name in takes})


def _api_key(options: RunOptions) -> str:
    key = key_of(options.api_key_env)
    if not key and not options.base_url:
        shown = shown_variable(options.api_key_env)
        raise BadInputError(
            f"no key in {shown}: set it, or give the --base-url of a server that needs none"
        )
    return key or "none"
