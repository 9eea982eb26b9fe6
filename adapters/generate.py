"""Generators for `run_tasks`: the bundled model, an endpoint, vLLM in this process.

    run_tasks(gate, tasks, openai_generator("my-model", base_url="http://127.0.0.1:8000/v1"))

Each is a `Generate`, (prompts, ids) -> one Generation each, with the log-probabilities that the
signals need, and a `Sampler`: a call may set another temperature and seed. A generator with a chat
template has it as the attribute `prompt_template`.
"""

from __future__ import annotations

import asyncio
import atexit
import logging
import os
from collections.abc import Mapping, Sequence
from contextlib import closing
from dataclasses import replace
from typing import Any

from gatekeeper.adapters.openai import ALTERNATIVES, refuses_logprobs
from gatekeeper.adapters.openai.base_url import check_client_url
from gatekeeper.arguments import check_count, check_finite
from gatekeeper.errors import BadInputError, GeneratorUnavailableError, MissingDependencyError
from gatekeeper.gate.own_loop import OwnLoop
from gatekeeper.gate.runner import Sampler
from gatekeeper.io.responses import as_generation
from gatekeeper.types import Generation
from gatekeeper.wording import counted

__all__ = ["bundled_generator", "openai_generator", "vllm_generator"]

BUNDLED_TOKENS = 200
_LOG = logging.getLogger("gatekeeper")


def bundled_generator(
    *, temperature: float = 0.0, seed: int = 0, max_tokens: int | None = None
) -> Sampler:
    """The bundled model, which reads only the end of a prompt that exceeds its context.

    Parameters
    ----------
    temperature : float
        At least 0; 0 is greedy.
    seed : int
        At least 0.
    max_tokens : int or None
        Most tokens of each answer; None: 200.

    Raises
    ------
    MissingDependencyError
        Without the extra "demo".
    BadInputError
        For impossible settings.
    """
    from gatekeeper.adapters.bundled import BundledModel

    _check_sampling(temperature, seed)
    model = BundledModel()
    asked = BUNDLED_TOKENS if max_tokens is None else check_count("max_tokens", max_tokens)
    limit = min(asked, model.context_length // 2)

    def generate(
        prompts: Sequence[str],
        ids: Sequence[str],
        *,
        temperature: float = temperature,
        seed: int = seed,
    ) -> Sequence[Generation]:
        return model.generate(
            prompts,
            ids=ids,
            max_new_tokens=limit,
            temperature=temperature,
            seed=seed,
            truncate=True,
        )

    return generate


def openai_generator(
    model: str,
    *,
    base_url: str | None = None,
    api_key: str | None = None,
    concurrency: int = 8,
    temperature: float = 0.0,
    seed: int = 0,
    max_tokens: int | None = None,
) -> Sampler:
    """A model behind OpenAI's chat API, of OpenAI or of another server.

    The `openai` package repeats failed requests; the requests of a block run in one event loop.
    For a model that refuses log-probabilities the requests go without them, with one warning of
    the logger `gatekeeper`.

    Parameters
    ----------
    model : str
        The model's name at the endpoint.
    base_url : str or None
        URL of the endpoint; None: OpenAI's.
    api_key : str or None
        None: the key that the `openai` package finds in the environment.
    concurrency : int
        Requests at the same time, at least 1.
    temperature : float
        0 is greedy.
    seed : int
        Sent if the temperature is above 0.
    max_tokens : int or None
        Most tokens of each answer; None: the server's limit.

    Raises
    ------
    MissingDependencyError
        Without the extra "openai".
    BadInputError
        For impossible settings.
    GeneratorUnavailableError
        From a call, if a prompt gets no answer; the other answers of its block are lost.
    """
    if not (isinstance(model, str) and model):
        raise BadInputError(f"model={model!r:.80}: give the model's name at the endpoint")
    check_client_url(base_url)
    if not isinstance(api_key, str | None):
        raise BadInputError(f"api_key is of type {type(api_key).__name__}: give a string, or None")
    check_count("concurrency", concurrency)
    _check_sampling(temperature, seed)
    if max_tokens is not None:
        check_count("max_tokens", max_tokens)
    try:
        import openai
    except ImportError as error:
        raise MissingDependencyError(
            "openai", extra="openai", needed_for="generator='openai'"
        ) from error
    return _Endpoint(
        openai,
        model,
        {"base_url": base_url, "api_key": api_key},
        concurrency=concurrency,
        temperature=temperature,
        seed=seed,
        max_tokens=max_tokens,
    )


class _Endpoint:
    """A `Sampler` whose requests go to a chat API. Parameters as of `openai_generator`."""

    def __init__(
        self,
        openai: Any,
        model: str,
        of_client: Mapping[str, str | None],
        *,
        concurrency: int,
        temperature: float,
        seed: int,
        max_tokens: int | None,
    ) -> None:
        self._openai, self._model, self._of_client = openai, model, of_client
        self._concurrency = concurrency
        self._temperature, self._seed, self._max_tokens = temperature, seed, max_tokens
        self._for_signals = {"logprobs": True, "top_logprobs": ALTERNATIVES}  # empty: refused

    def __call__(
        self,
        prompts: Sequence[str],
        ids: Sequence[str],
        *,
        temperature: float | None = None,
        seed: int | None = None,
    ) -> Sequence[Generation]:
        if len(prompts) != len(ids):
            raise BadInputError(
                f"{counted(len(prompts), 'prompt')} but {len(ids)} ids: give one id per prompt"
            )
        temperature = self._temperature if temperature is None else temperature
        parameters: dict[str, Any] = {"model": self._model, "temperature": temperature}
        if temperature:
            parameters["seed"] = self._seed if seed is None else seed
        if self._max_tokens is not None:
            parameters["max_tokens"] = self._max_tokens
        with closing(OwnLoop()) as loop:  # the caller's thread may have one, as in a notebook
            return loop.run(self._answer_all(prompts, ids, parameters))

    async def _answer_all(
        self, prompts: Sequence[str], ids: Sequence[str], parameters: dict[str, Any]
    ) -> Sequence[Generation]:
        slots = asyncio.Semaphore(self._concurrency)
        try:
            client = self._openai.AsyncOpenAI(**self._of_client)
        except self._openai.OpenAIError as error:  # no key
            raise GeneratorUnavailableError(_one_line(error)) from error
        async with client:
            try:
                async with asyncio.TaskGroup() as group:
                    tasks = [
                        group.create_task(self._answer(client, slots, prompt, id, parameters))
                        for prompt, id in zip(prompts, ids, strict=True)
                    ]
            except ExceptionGroup as failed:  # the first failure has cancelled the others
                raise failed.exceptions[0] from None
        return [task.result() for task in tasks]

    async def _answer(
        self,
        client: Any,
        slots: asyncio.Semaphore,
        prompt: str,
        id: str,
        parameters: dict[str, Any],
    ) -> Generation:
        async with slots:
            try:
                response = await self._ask(client, prompt, parameters)
            except self._openai.OpenAIError as error:
                raise GeneratorUnavailableError(_message(client, id, error)) from error
            except (ValueError, RecursionError) as error:  # openai's client leaves them as they are
                raise GeneratorUnavailableError(
                    f"{_address(client)} answers id={id!r} with a body that is no JSON: "
                    f"{_one_line(error)}"
                ) from error
        try:
            return _complete(as_generation(response, id=id))
        except BadInputError as error:  # most often the page of a server, at another URL of it
            raise GeneratorUnavailableError(
                f"{_address(client)} answers id={id!r} with no chat completion: "
                f"{_one_line(response):.80}. Is it the base URL of an API, such as "
                "http://127.0.0.1:8000/v1?"
            ) from error

    async def _ask(self, client: Any, prompt: str, parameters: dict[str, Any]) -> Any:
        messages = [{"role": "user", "content": prompt}]
        create = client.chat.completions.create
        asked = dict(self._for_signals)  # another request may find meanwhile that they are refused
        try:
            return await create(messages=messages, **parameters, **asked)
        except self._openai.APIStatusError as error:
            if not asked or not refuses_logprobs(error):
                raise
        response = await create(messages=messages, **parameters)
        if self._for_signals:
            self._for_signals.clear()
            _LOG.warning("model %r gives no log-probabilities: signals missing", self._model)
        return response


def vllm_generator(
    model: str, *, temperature: float = 0.0, seed: int = 0, max_tokens: int | None = None
) -> Sampler:
    """A Hugging Face model run by vLLM in this process, with its chat template if it has one.

    Parameters
    ----------
    model : str
        A name on the hub or a folder.
    temperature : float
        0 is greedy.
    seed : int
        At least 0.
    max_tokens : int or None
        Most tokens of each answer; None: as many as the model's context allows.

    Raises
    ------
    MissingDependencyError
        Without vLLM.
    BadInputError
        For impossible settings.
    GeneratorUnavailableError
        If vLLM cannot load the model; from a call, if it refuses a prompt.
    """
    _check_sampling(temperature, seed)
    # Standard output is for the report.
    os.environ.setdefault("VLLM_LOGGING_STREAM", "ext://sys.stderr")
    try:
        from vllm import LLM, SamplingParams
    except ImportError as error:
        raise MissingDependencyError("vllm", extra="vllm", needed_for="generator='vllm'") from error
    from gatekeeper.adapters.vllm import prepared

    try:
        llm = LLM(model, seed=seed)
    except Exception as error:  # many types: no such folder, no memory, an unknown architecture
        raise GeneratorUnavailableError(
            f"vLLM cannot load model={model!r}: {_one_line(error)}"
        ) from error
    # Its process would end with `llm` only: after `multiprocessing` has waited for it, for ever.
    atexit.register(llm.llm_engine.engine_core.shutdown)
    template = getattr(llm.get_tokenizer(), "chat_template", None)

    def generate(
        prompts: Sequence[str],
        ids: Sequence[str],
        *,
        temperature: float = temperature,
        seed: int = seed,
    ) -> Sequence[Generation]:
        params = prepared(SamplingParams(temperature=temperature, max_tokens=max_tokens, seed=seed))
        try:
            if template:
                conversations = [[{"role": "user", "content": prompt}] for prompt in prompts]
                outputs = llm.chat(conversations, params, use_tqdm=False)
            else:
                outputs = llm.generate(list(prompts), params, use_tqdm=False)
        except Exception as error:  # a prompt that exceeds the context, an engine that ended
            raise GeneratorUnavailableError(
                f"vLLM refuses one of {list(ids)!r:.80}: {_one_line(error)}"
            ) from error
        answers = [as_generation(output, id=id) for output, id in zip(outputs, ids, strict=True)]
        return [replace(_complete(answer), model=model) for answer in answers]

    named = template if isinstance(template, str) else None  # a tokenizer may have several
    generate.prompt_template = named  # type: ignore[attr-defined]
    return generate


def _check_sampling(temperature: float, seed: int) -> None:
    check_finite("temperature", temperature, least=0.0)
    check_count("seed", seed, least=0)


def _complete(answer: Generation) -> Generation:
    if answer.broke_off:
        raise GeneratorUnavailableError(
            f"the server broke off the answer to id={answer.id!r} (finish_reason="
            f"{answer.finish_reason!r})"
        )
    return answer


def _address(client: Any) -> str:
    return str(client.base_url).rstrip("/")


def _message(client: Any, id: str, error: Exception) -> str:
    where, status = _address(client), getattr(error, "status_code", None)
    if status is None:
        return f"{where} cannot be reached: {_one_line(error.__cause__ or error)}"
    body = getattr(error, "body", None)
    reason = body.get("message") if isinstance(body, dict) else None
    return f"{where} answers id={id!r} with status {status}: {_one_line(reason or error)}"


def _one_line(problem: object) -> str:
    return f"{' '.join(str(problem).split()) or type(problem).__name__:.300}"
