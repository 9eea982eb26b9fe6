"""The table of providers: which module reads a response, wraps a client, generates outputs.

A provider is one entry here, and one file with what the entry names. Modules are named by their
import path and loaded when they are first needed: importing gatekeeper loads no adapter.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from importlib import import_module
from typing import TYPE_CHECKING, Any, Protocol, cast

from gatekeeper.errors import BadInputError
from gatekeeper.types import Generation

if TYPE_CHECKING:
    from gatekeeper.adapters.positions import Scope

__all__ = [
    "PROVIDERS",
    "Provider",
    "Reader",
    "attribute",
    "generator_names",
    "generator_of",
    "readers",
    "response_names",
    "wrapper_of",
]


class Reader(Protocol):
    """The interface of the module `Provider.reader`."""

    def recognises(self, response: Any) -> bool:
        """Whether the response has the shape of this provider: a quick look at its fields."""
        ...

    def read(self, response: Any, *, scope: Scope, skip_forced: bool) -> list[Generation]:
        """Every output of a response of that shape. Raises BadInputError where it is malformed.

        Parameters
        ----------
        response : object, dict or list
        scope : {"content", "reasoning", "all"}
            Which tokens count where the response has reasoning beside the answer.
        skip_forced : bool
            Leave out the tokens that a grammar forced.
        """
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Provider:
    """The places of a provider's parts; an empty name is a missing part.

    Parameters
    ----------
    responses : str
        The name of its responses in messages.
    reader : str
        Module with `recognises` and `read`: see `Reader`.
    streams : bool
        Whether the reader takes the chunks of one stream in a list, and has `ends(chunk)`, which
        gives for each output in a chunk, by its index, whether the chunk is its last one: for
        streams that are observed. OpenAI's have a reader of their own.
    wrapper : str
        Module with `wrap(gate, client, *, strict, return_tokens_as_token_ids)`, for clients whose
        class, or a base of it, is from the package of the provider's name.
    generator : str
        "module:function" that makes a `gatekeeper.gate.runner.Generate`. Of the options of
        `gatekeeper run` it takes those that are among its parameters.
    """

    responses: str = ""
    reader: str = ""
    streams: bool = False
    wrapper: str = ""
    generator: str = ""


PROVIDERS: dict[str, Provider] = {
    "vllm": Provider(
        responses="an output of vLLM",
        reader="gatekeeper.adapters.vllm",
        generator="gatekeeper.adapters.generate:vllm_generator",
    ),
    "openai": Provider(
        responses="a response of OpenAI's chat completions, completions or Responses API",
        reader="gatekeeper.adapters.openai.reader",
        wrapper="gatekeeper.adapters.openai.client",
        generator="gatekeeper.adapters.generate:openai_generator",
    ),
    "anthropic": Provider(
        responses="a message of Anthropic",
        reader="gatekeeper.adapters.anthropic",
        streams=True,
    ),
    "gemini": Provider(
        responses="a response of Gemini's generateContent",
        reader="gatekeeper.adapters.gemini",
        streams=True,
    ),
    "ollama": Provider(
        responses="a response of Ollama",
        reader="gatekeeper.adapters.ollama",
        streams=True,
    ),
    "llamacpp": Provider(
        responses="a response of llama-server's /completion",
        reader="gatekeeper.adapters.llamacpp",
        streams=True,
    ),
    "pydantic-ai": Provider(
        responses="a ModelResponse of pydantic-ai",
        reader="gatekeeper.adapters.pydantic_ai",
    ),
    "langchain": Provider(
        responses="a message of a model of LangChain",
        reader="gatekeeper.adapters.langchain_messages",
    ),
    "bundled": Provider(generator="gatekeeper.adapters.generate:bundled_generator"),
    "arrays": Provider(
        responses="an object with the arrays logprob, top1 and top2",
        reader="gatekeeper.adapters.arrays",
    ),
}
"""The providers, by name. A response is read by the first one that recognises it."""


def attribute(value: Any, name: str) -> Any:
    """A key of a dict or an attribute of an object; None where there is none."""
    return value.get(name) if isinstance(value, dict) else getattr(value, name, None)


def readers() -> Iterator[Reader]:
    """The readers of all providers, in the order of the table."""
    for provider in PROVIDERS.values():
        if name := provider.reader:
            # Quicker than import_module alone, for every response: benchmarks/adapters.py.
            yield cast(Reader, sys.modules.get(name) or import_module(name))


def response_names() -> list[str]:
    """The names of the responses of each provider in messages."""
    return [provider.responses for provider in PROVIDERS.values() if provider.responses]


def wrapper_of(client: object) -> Callable[..., Any]:
    """The function that wraps this client. Raises BadInputError for a client of no provider."""
    packages = {base.__module__.partition(".")[0] for base in type(client).__mro__}
    wrappers = {name: p.wrapper for name, p in PROVIDERS.items() if p.wrapper}
    for name in wrappers.keys() & packages:
        wrap: Callable[..., Any] = import_module(wrappers[name]).wrap
        return wrap
    raise BadInputError(
        f"client={client!r:.80}: give a client of {', '.join(wrappers)}; pass outputs of "
        "others to gate.maybe_verify, or return them from a function with @gate.watch"
    )


def generator_names() -> list[str]:
    """The providers that have a generator."""
    return sorted(name for name, provider in PROVIDERS.items() if provider.generator)


def generator_of(name: str) -> Callable[..., Any]:
    """The function that makes a provider's generator. Raises KeyError for an unknown name."""
    module, _, function = PROVIDERS[name].generator.partition(":")
    found: Callable[..., Any] = getattr(import_module(module), function)
    return found
