"""LangChain: a model whose outputs pass through a gate, as a Runnable.

    chain = prompt | Gated(ChatOpenAI(...), gate) | StrOutputParser()
    chain.invoke(question, {"configurable": {"gatekeeper": {"task": ..., "id": ...}}})

It requests log-probabilities and lets the gate decide when the model has answered: `invoke`,
`batch`, `stream`, and their asynchronous forms. The result is in the message,
`response_metadata["gatekeeper"]`. Only langchain-core is needed.
"""

from __future__ import annotations

import logging
from collections.abc import AsyncIterator, Iterator, Mapping
from contextlib import asynccontextmanager, contextmanager
from typing import Any

from gatekeeper.adapters.harness.release import unusable

try:
    from langchain_core.callbacks import BaseCallbackHandler
    from langchain_core.language_models import BaseChatModel, BaseLLM
    from langchain_core.messages import AIMessage
    from langchain_core.runnables import (
        Runnable,
        RunnableConfig,
        RunnableParallel,
        RunnableSequence,
        RunnableWithFallbacks,
    )
    from langchain_core.runnables.base import RunnableBindingBase
    from langchain_core.runnables.config import ensure_config, merge_configs
except (ImportError, AttributeError) as e:
    raise unusable("langchain-core", "1.7.2", extra="langchain", error=e) from e

from gatekeeper.adapters import langchain_messages
from gatekeeper.adapters.openai.attachment import attach
from gatekeeper.adapters.openai.call_settings import CallSettings, settings_of
from gatekeeper.adapters.openai.logprobs import ALTERNATIVES, for_chat, is_refusal
from gatekeeper.adapters.openai.observer import ResponseObserver
from gatekeeper.arguments import check_flag
from gatekeeper.errors import BadInputError
from gatekeeper.gate import VerificationGate
from gatekeeper.types import GateResult, Generation, Undecided, UndecidedState

__all__ = ["Gated"]

_LOG = logging.getLogger("gatekeeper")


class Gated(Runnable[Any, Any]):  # type: ignore[misc]  # untyped where it is not installed
    """A model whose outputs pass through a gate.

    The settings of a call come from `gate.task(...)`, or from the configuration:
    `{"configurable": {"gatekeeper": {"task": ..., "id": ..., "verify": ..., "scope": ...}}}`.

    Parameters
    ----------
    model : Runnable
        A chat model or a text-completion model, also one with bound tools, retries or fallbacks.
        Log-probabilities are requested of models that have the fields `logprobs` and
        `top_logprobs`, and not where `logprobs` is False; of others the caller requests them.
    gate : VerificationGate
    strict : bool
        Raise errors of the gate out of the caller's own call; otherwise they are logged, and the
        result names them.

    Raises
    ------
    BadInputError
        If `model` is no Runnable, `gate` no VerificationGate, or `strict` neither True nor False.
    """

    def __init__(
        self, model: Runnable[Any, Any], gate: VerificationGate, *, strict: bool = False
    ) -> None:
        if not isinstance(model, Runnable):
            raise BadInputError(f"model={model!r:.80}: give a model of LangChain")
        if not isinstance(gate, VerificationGate):
            raise BadInputError(f"gate={gate!r:.80}: give a VerificationGate")
        self.model, self.gate, self.strict = model, gate, check_flag("strict", strict)
        self._requesting = _with_logprobs(model)

    def invoke(self, input: Any, config: RunnableConfig | None = None, **kwargs: Any) -> Any:
        """The model's answer, after the gate's decision and a verification.

        Raises
        ------
        Exception
            What the model raises; with `strict`, of the gate too.
        """
        call = _Call(self, config)
        with call.decided():
            output = self._requesting.invoke(input, call.config, **kwargs)
        return call.annotated(output)

    async def ainvoke(self, input: Any, config: RunnableConfig | None = None, **kwargs: Any) -> Any:
        """`invoke` for asyncio."""
        call = _Call(self, config)
        async with call.adecided():
            output = await self._requesting.ainvoke(input, call.config, **kwargs)
        return call.annotated(output)

    def stream(
        self, input: Any, config: RunnableConfig | None = None, **kwargs: Any
    ) -> Iterator[Any]:
        """The model's chunks. The last one is held until the gate has decided, and has the result.

        Since only the next chunk shows that one is not the last, each is yielded when the next has
        come. A stream that breaks off or is not read to its end is not decided on.
        """
        call = _Call(self, config)
        with call.decided():
            yield from call.held(self._requesting.stream(input, call.config, **kwargs))
        if call.begun:
            yield call.annotated(call.last)

    async def astream(
        self, input: Any, config: RunnableConfig | None = None, **kwargs: Any
    ) -> AsyncIterator[Any]:
        """`stream` for asyncio."""
        call = _Call(self, config)
        async with call.adecided():
            async for chunk in call.aheld(self._requesting.astream(input, call.config, **kwargs)):
                yield chunk
        if call.begun:
            yield call.annotated(call.last)


def _with_logprobs(model: Runnable[Any, Any]) -> Runnable[Any, Any]:
    """The same Runnable, in which each model requests log-probabilities of itself.

    What is requested of several from outside would fail a fallback that does not know it, and a
    refusal would count as a failure of the model.
    """
    if isinstance(model, BaseChatModel | BaseLLM):
        return _WithLogprobs(model)
    if isinstance(model, RunnableBindingBase):
        return model.model_copy(update={"bound": _with_logprobs(model.bound)})
    if isinstance(model, RunnableWithFallbacks):
        fallbacks = [_with_logprobs(fallback) for fallback in model.fallbacks]
        return model.model_copy(
            update={"runnable": _with_logprobs(model.runnable), "fallbacks": fallbacks}
        )
    if isinstance(model, RunnableSequence):  # such as `with_structured_output` returns
        first, *middle, last = map(_with_logprobs, model.steps)
        return model.model_copy(update={"first": first, "middle": middle, "last": last})
    if isinstance(model, RunnableParallel):
        steps = {name: _with_logprobs(step) for name, step in model.steps__.items()}
        return model.model_copy(update={"steps__": steps})
    if hasattr(model, "bind_tools"):  # a model that is made for each call, by its configuration
        return _WithLogprobs(model)
    return model


class _WithLogprobs(Runnable[Any, Any]):  # type: ignore[misc]
    """A model that requests log-probabilities, until its provider refuses them.

    A model that is made for each call, as `init_chat_model` can return one, shows no fields by
    which to request them. It may take every key of `configurable` as a field, so it gets all but
    the gate's.
    """

    def __init__(self, model: Runnable[Any, Any]) -> None:
        self._model = model
        self._refused = False

    def invoke(self, input: Any, config: RunnableConfig | None = None, **kwargs: Any) -> Any:
        own, added = _own(config), self._added(kwargs)
        try:
            return self._model.invoke(input, own, **{**kwargs, **added})
        except Exception as error:
            self._stop_requesting(added, error)
            return self._model.invoke(input, own, **kwargs)

    async def ainvoke(self, input: Any, config: RunnableConfig | None = None, **kwargs: Any) -> Any:
        own, added = _own(config), self._added(kwargs)
        try:
            return await self._model.ainvoke(input, own, **{**kwargs, **added})
        except Exception as error:
            self._stop_requesting(added, error)
            return await self._model.ainvoke(input, own, **kwargs)

    def stream(
        self, input: Any, config: RunnableConfig | None = None, **kwargs: Any
    ) -> Iterator[Any]:
        own, added, begun = _own(config), self._added(kwargs), False
        try:
            for chunk in self._model.stream(input, own, **{**kwargs, **added}):
                begun = True
                yield chunk
        except Exception as error:
            if begun:
                raise
            self._stop_requesting(added, error)
            yield from self._model.stream(input, own, **kwargs)

    async def astream(
        self, input: Any, config: RunnableConfig | None = None, **kwargs: Any
    ) -> AsyncIterator[Any]:
        own, added, begun = _own(config), self._added(kwargs), False
        try:
            async for chunk in self._model.astream(input, own, **{**kwargs, **added}):
                begun = True
                yield chunk
        except Exception as error:
            if begun:
                raise
            self._stop_requesting(added, error)
            async for chunk in self._model.astream(input, own, **kwargs):
                yield chunk

    def _added(self, kwargs: Mapping[str, Any]) -> dict[str, Any]:
        """Arguments that request log-probabilities; none where the model has no such fields."""
        fields = getattr(type(self._model), "model_fields", {})
        names = {"logprobs", "top_logprobs"} & fields.keys()
        given = {name: getattr(self._model, name) for name in names} | {**kwargs}
        if self._refused or "logprobs" not in names or given["logprobs"] is False:
            return {}
        if isinstance(self._model, BaseLLM):
            return {"logprobs": max(given["logprobs"] or 0, ALTERNATIVES)}
        return for_chat(given) if "top_logprobs" in names else {}

    def _stop_requesting(self, added: Mapping[str, Any], error: Exception) -> None:
        """If the provider refuses what a call added, do not request it again. Else raise."""
        if not (added and is_refusal(getattr(error, "status_code", 0), str(error))):
            raise error
        if self._refused:  # another call at the same time was refused
            return
        self._refused = True
        _LOG.warning(
            "%s gives no log-probabilities: they are not requested any more, and its outputs to "
            "verify are drawn at random",
            type(self._model).__name__,
        )


def _own(config: RunnableConfig | None) -> RunnableConfig:
    """The configuration without the gate's settings."""
    config = ensure_config(config)
    configurable = {k: v for k, v in config.get("configurable", {}).items() if k != "gatekeeper"}
    return {**config, "configurable": configurable}


class _Kept(BaseCallbackHandler):  # type: ignore[misc]
    """Keeps the last result of a model: LangChain gives log-probabilities of text models here."""

    run_inline = True  # on an event loop too: before the call returns

    def __init__(self) -> None:
        self.result: Any = None

    def on_chat_model_start(self, *of: Any, **more: Any) -> None:
        self.result = None

    def on_llm_start(self, *of: Any, **more: Any) -> None:
        self.result = None

    def on_llm_end(self, response: Any, **more: Any) -> None:
        self.result = response


class _Call:
    """One call: its settings, what the model gave, and the gate's results."""

    def __init__(self, gated: Gated, config: RunnableConfig | None) -> None:
        self.last: Any = None  # chunk of a stream
        self.begun = False
        self._kept = _Kept()
        config = ensure_config(config)
        given = (config.get("configurable") or {}).get("gatekeeper", {})
        self._error: BadInputError | None = None
        try:
            settings = settings_of(gated.gate, given)
        except BadInputError as error:
            if gated.strict:
                raise
            settings, self._error = CallSettings(), error
        self.observer = ResponseObserver(gated.gate, settings, gated.strict)
        self.config = merge_configs(config, {"callbacks": [self._kept]})

    @contextmanager
    def decided(self) -> Iterator[None]:
        """Let the gate decide at the end; after an error too, if the last model has answered: a
        parser after it failed.
        """
        try:
            yield
        except Exception:
            if self._kept.result is not None:
                self.observer.decide(self.outputs())
            raise
        self.observer.decide(self.outputs())

    @asynccontextmanager
    async def adecided(self) -> AsyncIterator[None]:
        """`decided` for asyncio."""
        try:
            yield
        except Exception:
            if self._kept.result is not None:
                await self.observer.adecide(self.outputs())
            raise
        await self.observer.adecide(self.outputs())

    def held(self, chunks: Iterator[Any]) -> Iterator[Any]:
        """All chunks but the last one; before an error, that one too."""
        try:
            for chunk in chunks:
                if self.begun:
                    yield self.last
                self.begun, self.last = True, chunk
        except Exception:
            if self.begun:
                yield self.last
            raise

    async def aheld(self, chunks: AsyncIterator[Any]) -> AsyncIterator[Any]:
        """All chunks but the last one; before an error, that one too."""
        try:
            async for chunk in chunks:
                if self.begun:
                    yield self.last
                self.begun, self.last = True, chunk
        except Exception:
            if self.begun:
                yield self.last
            raise

    def outputs(self) -> list[Generation | Undecided]:
        """The output that the caller gets; of several choices LangChain returns the first."""
        if self._error is not None:
            return [self.observer.undecided(UndecidedState.GATE_ERROR, "", self._error)]
        if self.observer.settings.verify == "never":
            return [Undecided("", UndecidedState.SKIPPED)]
        return self.observer.read(self._first, None, must_end=False)

    def _first(self) -> list[Generation]:
        if self._kept.result is None:
            raise BadInputError("no model answered in this call: Gated goes around a model")
        scope = self.observer.settings.scope
        return langchain_messages.read(self._kept.result, scope=scope, skip_forced=False)[:1]

    def annotated(self, output: Any) -> Any:
        """A copy of a message, with the result; a text or an object of another kind as it is.

        The message itself may also belong to another call, for example from LangChain's cache. With
        `include_raw` it is in a dict.
        """
        if isinstance(output, dict) and isinstance(output.get("raw"), AIMessage):
            return {**output, "raw": self.annotated(output["raw"])}
        if isinstance(output, AIMessage):
            (result,) = self.observer.attachment.results
            metadata = {**output.response_metadata, "gatekeeper": _json_of(result)}
            output = output.model_copy(update={"response_metadata": metadata})
            attach(output, self.observer.gate, self.observer.attachment)
        return output


def _json_of(result: GateResult | Undecided) -> dict[str, Any]:
    if isinstance(result, Undecided):
        return {"id": result.id, "state": str(result.state), "error": result.error}
    decision, outcome = result.decision, result.outcome
    return {
        "id": result.id,
        "verify": decision.verify,
        "reason": str(decision.reason),
        "propensity": decision.propensity,
        "verdict": None if outcome is None else str(outcome.verdict),
        "detail": "" if outcome is None else outcome.detail,
    }
