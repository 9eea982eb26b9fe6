"""LiteLLM: a callback that puts a gate behind `litellm.acompletion`, and behind LiteLLM's proxy.

    litellm.callbacks = [GatekeeperLogger(gate)]
    response = await litellm.acompletion(model=..., messages=..., metadata={"gatekeeper": {...}})
    gate.result_of(response)  # also in response._hidden_params["gatekeeper"]

It requests log-probabilities before the call and lets the gate decide after it. LiteLLM calls the
hooks that allow this for `acompletion` only, a router's and the proxy's too, and not for streams:
for `completion()`, `batch_completion()` and streams the caller passes the response to the gate,
with a warning.

In the proxy the settings of a call come from the server, not from the client's `metadata`: a client
could otherwise spend the budget (`verify`), or choose the right answer (`task`). Clients see the
result in headers of the response, `x-gatekeeper-...`.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping
from contextlib import suppress
from contextvars import ContextVar
from inspect import iscoroutinefunction
from typing import Any

from gatekeeper.adapters.harness.release import unusable

try:
    import litellm
    from litellm.integrations.custom_logger import CustomLogger
    from litellm.types.utils import CallTypes
    from openai import APIStatusError

    _ = CustomLogger.async_post_call_success_deployment_hook  # what the gate is put into
except (ImportError, AttributeError) as e:
    raise unusable("litellm", "1.106.2", extra="litellm", error=e) from e


from gatekeeper.adapters.openai.attachment import Result, attach, results_of
from gatekeeper.adapters.openai.call_settings import CallSettings, settings_of
from gatekeeper.adapters.openai.logprobs import for_chat, refuses_logprobs
from gatekeeper.adapters.openai.observer import ResponseObserver
from gatekeeper.arguments import check_flag
from gatekeeper.errors import BadInputError
from gatekeeper.gate import VerificationGate
from gatekeeper.types import Undecided, UndecidedState
from gatekeeper.wording import described

__all__ = ["GatekeeperLogger"]

_LOG = logging.getLogger("gatekeeper")

# In the proxy: the responses of the models in the request at work, the last one at the end.
_responses: ContextVar[list[Any] | None] = ContextVar("gatekeeper_responses", default=None)

# The proxy asks only classes that define these themselves, and so not a class that inherits them.
_OF_THE_PROXY = ("async_pre_call_hook", "async_post_call_response_headers_hook")


class GatekeeperLogger(CustomLogger):  # type: ignore[misc]  # untyped where it is not installed
    """Lets `gate` decide on what `acompletion` returns.

    The settings of a call come from `gate.task(...)` or from
    `metadata={"gatekeeper": {"task": ..., "id": ..., "verify": ..., "scope": ...}}`.
    No error of the gate reaches the caller, since LiteLLM would swallow it: `result_of` names it.

    Parameters
    ----------
    gate : VerificationGate
    settings : callable or None
        In the proxy: the settings of a call, by the request (LiteLLM's arguments of the call, with
        `messages`, `model`, `metadata`). None: no task, so that the verifier gets None.
    trust_clients : bool
        In the proxy: take the settings from the client's `metadata`, as outside of it.

    Raises
    ------
    BadInputError
        If `gate` is not a VerificationGate, `settings` no function, or `trust_clients` neither True
        nor False.
    """

    def __init__(
        self,
        gate: VerificationGate,
        *,
        settings: Callable[[Mapping[str, Any]], Mapping[str, Any]] | None = None,
        trust_clients: bool = False,
    ) -> None:
        super().__init__()
        if not isinstance(gate, VerificationGate):
            raise BadInputError(f"gate={gate!r:.80}: give a VerificationGate")
        if not (settings is None or callable(settings)) or iscoroutinefunction(settings):
            raise BadInputError(
                f"settings={settings!r:.80}: give a function of the request, which is not async"
            )
        if check_flag("trust_clients", trust_clients) and settings is not None:
            raise BadInputError("settings= and trust_clients=True: give one of them")
        self._gate = gate
        self._of_request, self._trust_clients = settings, trust_clients
        # Models that gave no log-probabilities; None for those passed by position, which LiteLLM
        # hands to no hook.
        self._refusing: set[str | None] = set()
        self._warned: set[str] = set()

    def __init_subclass__(cls, **more: Any) -> None:
        super().__init_subclass__(**more)
        for name in _OF_THE_PROXY:
            setattr(cls, name, getattr(cls, name))

    async def async_pre_call_hook(
        self, user_api_key_dict: Any, cache: Any, data: dict[str, Any], call_type: str
    ) -> None:
        """Begin a request of the proxy, in the context in which it asks for the headers.

        Models are called in contexts copied from this one.
        """
        _responses.set([])

    async def async_pre_call_deployment_hook(
        self, kwargs: dict[str, Any], call_type: CallTypes | None
    ) -> dict[str, Any] | None:
        """Request log-probabilities, unless the caller has `logprobs=False`."""
        if not _is_one_attempt(kwargs, call_type):
            return None
        if kwargs.get("stream"):
            self._warn_once(
                "a stream is not gated automatically: iterate over gate.observe_stream(stream)"
            )
        model = kwargs.get("model")
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
        if not _is_one_attempt(request_data, call_type):
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
        attach(response, self._gate, observer.attachment)
        response._hidden_params["gatekeeper"] = list(observer.attachment.results)
        if (responses := _responses.get()) is not None:
            responses.append(response)

    async def async_post_call_failure_deployment_hook(
        self,
        request_data: Mapping[str, Any],
        exception: Exception,
        call_type: CallTypes | None,
        fallback_depth: int | None = None,
    ) -> None:
        """If the provider refuses the log-probabilities, later calls do not request them.

        This call fails, with its retries too: LiteLLM lets no callback repeat a call without them.
        """
        refused = isinstance(exception, APIStatusError) and refuses_logprobs(exception)
        if call_type is CallTypes.acompletion and refused:
            self._refuses(request_data.get("model"))

    async def async_post_call_response_headers_hook(
        self, data: Mapping[str, Any], user_api_key_dict: Any, response: Any, **more: Any
    ) -> dict[str, str] | None:
        """The results in headers of the proxy's response; several in the order of the choices.

        For `"model": "a,b"` the response is a list. One in the format of another route was made
        from the last response of a model.
        """
        if response is None and not data.get("stream"):  # the request failed
            return None
        several = response if isinstance(response, list) else [response]
        results = self._results(several) or self._results((_responses.get() or [])[-1:])
        if results:
            return _headers(results)
        stream = ": a stream" if data.get("stream") else ""
        return {"x-gatekeeper-state": f"not gated{stream}"}

    def log_pre_api_call(self, model: Any, messages: Any, kwargs: Any) -> None:
        """The only hook before a call that LiteLLM has for `completion()` too."""
        if kwargs.get("call_type") == CallTypes.completion.value:
            self._warn_once(
                "litellm.completion() and batch_completion() are not gated, since they have no "
                "hooks: use acompletion(), or logprobs=True, top_logprobs=5 and "
                "gate.maybe_verify(response, task)"
            )

    def _results(self, responses: list[Any]) -> list[Result]:
        """This gate's results of those that it has decided on."""
        found: list[Result] = []
        for response in responses:
            with suppress(BadInputError):
                found += results_of(self._gate, response)
        return found

    def _settings(self, kwargs: Mapping[str, Any]) -> tuple[CallSettings, BadInputError | None]:
        try:
            return settings_of(self._gate, self._given(kwargs)), None
        except BadInputError as error:
            return CallSettings(), error

    def _given(self, kwargs: Mapping[str, Any]) -> Any:
        """The settings of a call: the proxy's own, or the caller's. Raises BadInputError."""
        if "proxy_server_request" not in kwargs or self._trust_clients:
            metadata = kwargs.get("metadata")
            return metadata.get("gatekeeper", {}) if isinstance(metadata, Mapping) else {}
        if self._of_request is None:
            return {}
        try:
            return self._of_request(kwargs)
        except Exception as error:  # of a function of the user's
            raise BadInputError(
                f"settings= raised {described(error)}: return a dict of task, id, "
                "verify, scope for every request"
            ) from error

    def _refuses(self, model: str | None) -> None:
        self._refusing.add(model)
        which, more = f"model {model!r}", ""
        if model is None:
            which = "a model that was passed by position"
            more = "; so are those of every such model: pass model=... by name"
        self._warn_once(
            f"{which} gives no log-probabilities: they are not requested any more, and its "
            f"outputs to verify are drawn at random{more}"
        )

    def _warn_once(self, line: str) -> None:
        if line not in self._warned:
            self._warned.add(line)
            _LOG.warning("%s", line)


def _is_one_attempt(kwargs: Mapping[str, Any], call_type: CallTypes | None) -> bool:
    """Whether these are the arguments of one request to one model.

    For `acompletion(fallbacks=...)` LiteLLM calls `acompletion` again for each model, and the hooks
    for both: parameters added to the outer call would reach models that do not support them.
    """
    return call_type is CallTypes.acompletion and not kwargs.get("fallbacks")


def _supported(model: str | None, provider: str | None) -> bool:
    """False where LiteLLM itself would refuse the parameter."""
    if model is None:
        return True
    try:
        names = litellm.get_supported_openai_params(model, custom_llm_provider=provider)
    except Exception:  # a model that it does not know
        return True
    return names is None or "logprobs" in names


def _headers(results: list[Result]) -> dict[str, str]:
    found: dict[str, list[str]] = {}
    for result in results:
        line = {"id": result.id}
        if isinstance(result, Undecided):
            line["state"] = str(result.state)
        else:
            line["verify"] = "yes" if result.decision.verify else "no"
            line["reason"] = str(result.decision.reason)
            if result.outcome is not None:
                line["verdict"] = str(result.outcome.verdict)
        for name, value in line.items():
            found.setdefault(name, []).append(_ascii(value))
    return {f"x-gatekeeper-{name}": ", ".join(values) for name, values in found.items()}


def _ascii(value: str) -> str:
    """A value for an HTTP header: characters beyond printable ASCII become "?"."""
    return "".join(char if " " <= char <= "~" else "?" for char in value)
