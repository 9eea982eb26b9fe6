"""Clients whose outputs pass through a gate automatically."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager
from typing import TYPE_CHECKING, Any, ParamSpec, TypeVar

from gatekeeper.arguments import check_flag
from gatekeeper.errors import BadInputError
from gatekeeper.gate.watch import Watched, watched
from gatekeeper.io.providers import wrapper_of
from gatekeeper.limits import MAX_ID, is_id
from gatekeeper.types import GateResult, Undecided
from gatekeeper.wording import counted

if TYPE_CHECKING:
    from gatekeeper.adapters.openai.call_settings import Verify
    from gatekeeper.adapters.positions import Scope

__all__ = ["ClientMethods"]

ClientT = TypeVar("ClientT")
P = ParamSpec("P")
R = TypeVar("R")


class ClientMethods:
    """The methods of `VerificationGate` for clients of providers."""

    def wrap(
        self, client: ClientT, *, strict: bool = False, return_tokens_as_token_ids: bool = False
    ) -> ClientT:
        """A copy of the client whose outputs pass through this gate; the client is not changed.

        Single calls override the settings of `task` by
        `extra_body={"gatekeeper": {"task": ..., "id": ..., "verify": ..., "scope": ...}}`.

        Parameters
        ----------
        client
            An OpenAI, AsyncOpenAI, AzureOpenAI or AsyncAzureOpenAI.
        strict
            Raise errors of the gate, or about an output, in the caller's own call; otherwise
            `result_of` has them.
        return_tokens_as_token_ids
            Request this in legacy completions, for correct margins from vLLM, whose dicts of
            strings lose tokens; other servers do not support it.

        Raises
        ------
        BadInputError
            For another client, for one that another tool has patched, and for settings that are
            neither True nor False.
        """
        wrapped: ClientT = wrapper_of(client)(
            self,
            client,
            strict=check_flag("strict", strict),
            return_tokens_as_token_ids=check_flag(
                "return_tokens_as_token_ids", return_tokens_as_token_ids
            ),
        )
        return wrapped

    def watch(
        self,
        *,
        task: object | Callable[..., object] = None,
        id: str | Callable[..., str] | None = None,
        strict: bool = False,
    ) -> Callable[[Callable[P, R]], Watched[P, R]]:
        """A decorator for a function that generates: its result passes through this gate, and is
        returned unchanged.

            @gate.watch(task=lambda question: question)
            def answer(question): ...

        `answer.with_result(question)` returns the result as well; `gate.find` has it, too.

        Parameters
        ----------
        task
            What the verifier needs besides the output; a function is called with the arguments of
            the call, `self` of a method included.
        id
            Id of the output, or a function of the arguments that names it. Default: the response's
            own id, or a new one where it has none.
        strict
            Raise errors of the gate, or about an output, out of the caller's own call; otherwise
            they are logged, and the result has them.

        Returns
        -------
        decorator
            For a function or a coroutine function that returns one output in any shape that
            `maybe_verify` takes, or its text alone, which has no log-probabilities.

        Raises
        ------
        BadInputError
            For anything but a function, and for generators: use `observe_stream` for these. For an
            `id` that no output can have, and a `strict` that is neither True nor False.
        """
        check_flag("strict", strict)
        if not (id is None or callable(id) or is_id(id)):
            raise BadInputError(
                f"id={id!r:.80}: give a string of 1 to {MAX_ID} bytes in UTF-8, a function of the "
                "call's arguments, or None"
            )
        return watched(self, task=task, id=id, strict=strict)

    def task(
        self,
        task: object = None,
        *,
        id: str | None = None,
        verify: Verify = "auto",
        scope: Scope = "content",
    ) -> AbstractContextManager[None]:
        """Settings for the calls that this thread or asyncio task makes of wrapped clients inside.

        Parameters
        ----------
        task
            What the verifier needs besides the output.
        id
            Id of the output, instead of the provider's; of several, `id/0`, `id/1`, ...
        verify
            "auto": as the policy decides; "always": within the budget; "never": not passed to the
            gate.
        scope
            The tokens from which signals are computed: "content", "reasoning" or "all".
        """
        from gatekeeper.adapters.openai.call_settings import CallSettings, with_settings

        gate: Any = self  # a VerificationGate
        return with_settings(gate, CallSettings(task, id, verify, scope))

    def results_of(self, response: object) -> list[GateResult | Undecided]:
        """The results of the outputs of a response, a stream or an error of a wrapped client.

        Raises
        ------
        BadInputError
            For an object that did not come through this gate.
        """
        from gatekeeper.adapters.openai.attachment import results_of

        return results_of(self, response)

    def result_of(self, response: object) -> GateResult | Undecided:
        """`results_of` where there is one output."""
        results = self.results_of(response)
        if len(results) != 1:
            raise BadInputError(
                f"the response has {counted(len(results), 'output')}: ask results_of"
            )
        return results[0]

    def observe_stream(
        self,
        stream: Any,
        task: object = None,
        *,
        id: str | None = None,
        verify: Verify = "auto",
        scope: Scope = "content",
        strict: bool = False,
    ) -> Any:
        """Pass on the chunks of a stream, unchanged, without a wrapped client; iterate over the
        result.

        The gate decides when the outputs are complete; `result_of` the returned stream has the
        result. There is no decision on a stream that is not read so far.

        Parameters
        ----------
        stream
            Chunks of OpenAI's APIs, Anthropic, Gemini, Ollama or llama-server, objects or dicts,
            from an iterable or an async one.
        task, id, verify, scope
            As in `task`.
        strict
            As in `wrap`.

        Raises
        ------
        BadInputError
            For what is no stream, such as a whole response, and for impossible settings.
        """
        check_flag("strict", strict)
        from gatekeeper.adapters.openai.call_settings import CallSettings
        from gatekeeper.adapters.openai.observer import observe_stream

        settings = CallSettings(task, id, verify, scope)
        gate: Any = self  # a VerificationGate
        return observe_stream(gate, stream, settings, strict=strict)
