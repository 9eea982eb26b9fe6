"""LiteLLM: a callback that puts a gate behind `litellm.acompletion`.

    litellm.callbacks = [GatekeeperLogger(gate)]
    response = await litellm.acompletion(model=..., messages=..., metadata={"gatekeeper": {...}})
    gate.result_of(response)  # also in response._hidden_params["gatekeeper"]

It requests log-probabilities before the call and lets the gate decide after it. LiteLLM calls the
hooks that allow this for `acompletion` only, a router's too, and not for streams: for
`completion()` and streams the caller passes the response to the gate, and a warning says so.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping
from typing import Any

import litellm
from litellm.integrations.custom_logger import CustomLogger
from litellm.types.utils import CallTypes
from openai import APIStatusError

from gatekeeper.adapters.openai.attachment import attach
from gatekeeper.adapters.openai.call_settings import CallSettings, settings_of
from gatekeeper.adapters.openai.logprobs import for_chat, refuses_logprobs
from gatekeeper.adapters.openai.observer import ResponseObserver
from gatekeeper.errors import BadInputError
from gatekeeper.gate import VerificationGate
from gatekeeper.types import Undecided, UndecidedState

__all__ = ["GatekeeperLogger"]

_LOG = logging.getLogger("gatekeeper")


class GatekeeperLogger(CustomLogger):  # type: ignore[misc]  # untyped where it is not installed
    """Lets `gate` decide on what `acompletion` returns.

    The settings of a call come from `gate.task(...)` or from
    `metadata={"gatekeeper": {"task": ..., "id": ..., "verify": ..., "scope": ...}}`.
    No error of the gate reaches the caller, since LiteLLM would swallow it: `result_of` names it.

    Parameters
    ----------
    gate : VerificationGate

    Raises
    ------
    BadInputError
        If `gate` is not a VerificationGate.
    """

    def __init__(self, gate: VerificationGate) -> None:
        super().__init__()
        if not isinstance(gate, VerificationGate):
            raise BadInputError(f"gate={gate!r:.80}: give a VerificationGate")
        self._gate = gate
        self._refusing: set[str] = set()  # models that gave no log-probabilities
        self._warned: set[str] = set()

    async def async_pre_call_deployment_hook(
        self, kwargs: dict[str, Any], call_type: CallTypes | None
    ) -> dict[str, Any] | None:
        """Request log-probabilities, unless the caller has `logprobs=False`."""
        if call_type is not CallTypes.acompletion:
            return None
        if kwargs.get("stream"):
            self._warn_once(
                "a stream is not gated automatically: iterate over gate.observe_stream(stream)"
            )
        model = str(kwargs.get("model"))
        if model in self._refusing or self._settings(kwargs)[0].verify == "never":
            return None
        added = for_chat(kwargs)
        if added and not _supported(model, kwargs.get("custom_llm_provider")):
            self._refuses(model)
            return None
        return {**kwargs, **added}

    async def async_post_call_success_deployment_hook(
        self, request_data: dict[str, Any], response: Any, call_type: CallTypes | None
    ) -> None:
        """Decide on the response, verify it if it is selected, and attach the results."""
        if call_type is not CallTypes.acompletion:
            return
        settings, error = self._settings(request_data)
        observer = ResponseObserver(self._gate, settings)
        if error is not None:
            undecided = observer.undecided(UndecidedState.GATE_ERROR, "", error)
            observer.attachment.results = (undecided,)
        elif settings.verify == "never":
            observer.attachment.results = (Undecided("", UndecidedState.SKIPPED),)
        else:
            await observer.adecide(observer.outputs_of(response))
        attach(response, observer.attachment)
        response._hidden_params["gatekeeper"] = list(observer.attachment.results)

    async def async_post_call_failure_deployment_hook(
        self,
        request_data: Mapping[str, Any],
        exception: Exception,
        call_type: CallTypes | None,
        fallback_depth: int | None = None,
    ) -> None:
        """If the provider refuses the log-probabilities, the next attempt does not request them."""
        model = str(request_data.get("model"))
        refused = isinstance(exception, APIStatusError) and refuses_logprobs(exception)
        if call_type is CallTypes.acompletion and refused:
            self._refuses(model)

    def log_pre_api_call(self, model: Any, messages: Any, kwargs: Any) -> None:
        """The only hook before a call that LiteLLM has for `completion()` too."""
        if kwargs.get("call_type") == CallTypes.completion.value:
            self._warn_once(
                "litellm.completion() is not gated, since it has no hooks: use acompletion(), or "
                "logprobs=True, top_logprobs=5 and gate.maybe_verify(response, task)"
            )

    def _settings(self, kwargs: Mapping[str, Any]) -> tuple[CallSettings, BadInputError | None]:
        metadata = kwargs.get("metadata")
        given = metadata.get("gatekeeper", {}) if isinstance(metadata, Mapping) else {}
        try:
            return settings_of(self._gate, given), None
        except BadInputError as error:
            return CallSettings(), error

    def _refuses(self, model: str) -> None:
        self._refusing.add(model)
        self._warn_once(
            f"model {model!r} gives no log-probabilities: they are not requested any more, and its "
            "outputs to verify are drawn at random"
        )

    def _warn_once(self, line: str) -> None:
        if line not in self._warned:
            self._warned.add(line)
            _LOG.warning("%s", line)


def _supported(model: str, provider: str | None) -> bool:
    """False where LiteLLM itself would refuse the parameter."""
    try:
        names = litellm.get_supported_openai_params(model, custom_llm_provider=provider)
    except Exception:  # a model that it does not know
        return True
    return names is None or "logprobs" in names
