"""The generator of a run, by its name."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from inspect import signature
from typing import Any

from gatekeeper.errors import BadInputError
from gatekeeper.features import samples_of, with_agreement, with_second_model
from gatekeeper.gate.runner import Generate, Sampler
from gatekeeper.io.providers import generator_names, generator_of
from gatekeeper.io.tasks import Task
from gatekeeper.programs.run_options import RunOptions
from gatekeeper.programs.values import key_of, shown_variable

__all__ = ["check_generator", "make_sampler", "with_comparisons"]

SECOND = "openai"  # the generator of the second model

# Options that only endpoints take, and the parameters of their generators.
OF_ENDPOINTS = {"base_url": "base_url", "api_key_env": "api_key", "concurrency": "concurrency"}


def check_generator(options: RunOptions) -> None:
    """Raises BadInputError if the options do not fit the generator."""
    takes = signature(generator_of(options.generator)).parameters
    usual = RunOptions()
    for name, parameter in OF_ENDPOINTS.items():
        value = getattr(options, name)
        of_second = name == "concurrency" and options.second_model is not None
        if value != getattr(usual, name) and parameter not in takes and not of_second:
            shown = shown_variable(value) if name == "api_key_env" else value
            raise BadInputError(
                f"--{name.replace('_', '-')} {shown}: generator {options.generator!r} has no "
                "endpoint; choose one that has, such as openai"
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


def with_comparisons(sampler: Sampler, tasks: Sequence[Task], options: RunOptions) -> Generate:
    """The generator of a run, which compares its outputs with other answers if that is asked for.

    Raises
    ------
    BadInputError
        Without the key that OpenAI's endpoint needs for the second model.
    """
    kinds = {task["id"]: task["kind"] for task in tasks}
    generate: Generate = sampler
    if samples := samples_of(options.features):
        generate = with_agreement(sampler, samples, kinds=kinds, seed=options.seed)
    if options.second_model is not None:
        second = generator_of(SECOND)(
            options.second_model,
            base_url=options.second_base_url or options.base_url,
            api_key=_second_api_key(options),
            concurrency=options.concurrency,
            max_tokens=options.max_tokens,
        )
        generate = with_second_model(generate, second, kinds=kinds)
    return generate


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
    return _key(options.api_key_env, options.base_url, "--base-url")


def _second_api_key(options: RunOptions) -> str:
    """The key for the second model: the first one's is only sent to the first one's endpoint."""
    if options.second_base_url and not options.second_api_key_env:
        return "none"
    variable = options.second_api_key_env or options.api_key_env
    return _key(variable, options.second_base_url or options.base_url, "--second-base-url")


def _key(variable: str, endpoint: str | None, option: str) -> str:
    key = key_of(variable)
    if not key and not endpoint:
        shown = shown_variable(variable)
        raise BadInputError(
            f"no key in {shown}: set it, or give the {option} of a server that needs none"
        )
    return key or "none"
