"""lm-evaluation-harness: its API models, with the log-probabilities that they drop.

Importing this registers the models `gated-chat`, `gated-completions` and the filter `gatekeeper`.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable, Mapping
from typing import Any

from aiohttp import ClientResponseError
from lm_eval.api.filter import Filter
from lm_eval.api.registry import register_filter, register_model
from lm_eval.models.openai_completions import LocalChatCompletion, LocalCompletionsAPI
from requests import HTTPError, RequestException, get

from gatekeeper.adapters.openai import ALTERNATIVES, REFUSALS, generations_of
from gatekeeper.arguments import check_base_url
from gatekeeper.errors import BadInputError
from gatekeeper.types import Generation

__all__ = ["GatedChat", "GatedCompletions", "GatekeeperFilter", "Response"]

PATIENCE = 30  # seconds for the first answer of an endpoint

_logger = logging.getLogger(__name__)


class Response(str):
    """The text of a response, with the output that it is from.

    A plain string for the harness, also in its cache of responses.
    """

    generation: Generation


class _Gated:
    """Requests log-probabilities and keeps them; a mixin for a class of the harness.

    After a refusal, this and all later requests go without them.
    """

    logprob_parameters: Mapping[str, int]
    base_url: str
    _refused = False

    def generate_until(self, requests: Any, disable_tqdm: bool = False) -> list[str]:
        """Raises BadInputError if the endpoint does not answer, before each request fails."""
        check_base_url("base_url", self.base_url)
        try:
            get(self.base_url, timeout=PATIENCE, verify=False)
        except (RequestException, ValueError) as error:
            reason = getattr(error.__context__, "reason", error)
            raise BadInputError(f"base_url={self.base_url!r} does not answer: {reason}") from error
        answers: list[str] = super().generate_until(requests, disable_tqdm)  # type: ignore[misc]
        return answers

    def model_call(
        self, messages: Any, *, generate: bool = True, gen_kwargs: Any = None, **more: Any
    ) -> Any:
        call = super().model_call  # type: ignore[misc]
        if not generate or self._refused:
            answer = call(messages, generate=generate, gen_kwargs=gen_kwargs, **more)
            return _whole(answer) if generate else answer
        try:
            return _whole(
                call(messages, generate=True, gen_kwargs=self._with_logprobs(gen_kwargs), **more)
            )
        except HTTPError as error:
            if error.response.status_code not in REFUSALS:
                raise
            answer = _whole(call(messages, generate=True, gen_kwargs=gen_kwargs, **more))
        self._refuse()
        return answer

    async def amodel_call(
        self, *, generate: bool = True, gen_kwargs: Any = None, **more: Any
    ) -> Any:
        call = super().amodel_call  # type: ignore[misc]
        if not generate or self._refused:
            return await call(generate=generate, gen_kwargs=gen_kwargs, **more)
        try:
            return await call(generate=True, gen_kwargs=self._with_logprobs(gen_kwargs), **more)
        except ClientResponseError as error:
            if error.status not in REFUSALS:
                raise
            answer = await call(generate=True, gen_kwargs=gen_kwargs, **more)
        self._refuse()
        return answer

    def parse_generations(self, outputs: Any, **more: Any) -> list[str | None]:
        _whole(outputs)
        texts: list[str | None] = super().parse_generations(outputs=outputs, **more)  # type: ignore[misc]
        found = list(_generations(outputs if isinstance(outputs, list) else [outputs]))
        if len(found) != len(texts):  # the harness could not read the response either
            return texts
        pairs = zip(texts, found, strict=True)
        return [t if t is None or g is None else _response(t, g) for t, g in pairs]

    def _with_logprobs(self, gen_kwargs: Any) -> dict[str, Any]:
        """The user's parameters, raised to what the signals need."""
        parameters = dict(gen_kwargs or {})
        for name, least in self.logprob_parameters.items():
            parameters[name] = max(parameters.get(name) or 0, least)
        return parameters

    def _refuse(self) -> None:
        if not self._refused:
            _logger.warning(
                "the server gives no log-probabilities: the documents to verify are drawn at random"
            )
        self._refused = True


@register_model("gated-chat")
class GatedChat(_Gated, LocalChatCompletion):  # type: ignore[misc]
    """`local-chat-completions` with log-probabilities: the same `--model_args`."""

    logprob_parameters: Mapping[str, int] = {"logprobs": True, "top_logprobs": ALTERNATIVES}


@register_model("gated-completions")
class GatedCompletions(_Gated, LocalCompletionsAPI):  # type: ignore[misc]
    """`local-completions` with log-probabilities: the same `--model_args`."""

    logprob_parameters: Mapping[str, int] = {"logprobs": ALTERNATIVES}


@register_filter("gatekeeper")
class GatekeeperFilter(Filter):  # type: ignore[misc]
    """Names in a task's YAML the pipeline of filters and the metric that decide what is right.

    Its arguments are those of `Grading`. It changes nothing in the responses.
    """

    def __init__(self, **grading: Any) -> None:
        super().__init__()

    def apply(self, resps: Any, docs: Any) -> Any:
        return resps


def _whole(outputs: Any) -> Any:
    """The server's answer. Raises BadInputError for one that it broke off, so that the harness asks
    again: its text is not the whole answer of the model, and must not come into the cache.
    """
    for output in outputs if isinstance(outputs, list) else [outputs]:
        choices = output.get("choices") if isinstance(output, dict) else None
        for choice in choices or ():
            reason = choice.get("finish_reason") if isinstance(choice, dict) else None
            if isinstance(reason, str) and Generation("", "", finish_reason=reason).broke_off:
                raise BadInputError(
                    f"the server broke an answer off (finish_reason={reason!r}) as often as "
                    "max_retries allows: see its log, then run the same command again"
                )
    return outputs


def _response(text: str, generation: Generation) -> Response:
    response = Response(text)
    response.generation = generation
    return response


def _generations(outputs: Iterable[Any]) -> Iterable[Generation | None]:
    """One per choice, by index; None where the log-probabilities cannot be read."""
    for output in outputs:
        try:
            choices = sorted(output["choices"], key=lambda choice: choice["index"])
            yield from generations_of(output | {"choices": choices})
        except (BadInputError, KeyError, TypeError) as error:
            _logger.warning("log-probabilities that cannot be read: %s", error)
            unread = output.get("choices") if isinstance(output, dict) else None
            yield from [None] * len(unread or [None])
