"""What answers the prompts of `run_tasks`: the bundled model, an endpoint, vLLM in this process.

    run_tasks(gate, tasks, openai_generator("my-model", base_url="http://127.0.0.1:8000/v1"))

Each is a `Generate`, (prompts, ids) -> one Generation each, with the log-probabilities asked for
that the signals need. Where prompts pass through a template of its own it has that as the attribute
`prompt_template`.
"""

from __future__ import annotations

import asyncio
import logging
import os
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from gatekeeper.adapters.openai import ALTERNATIVES, refuses_logprobs
from gatekeeper.errors import BadInputError, GeneratorUnavailableError, MissingDependencyError
from gatekeeper.gate.runner import Generate
from gatekeeper.io.responses import as_generation
from gatekeeper.types import Generation

__all__ = ["bundled_generator", "openai_generator", "vllm_generator"]

BUNDLED_TOKENS = 200
_LOG = logging.getLogger("gatekeeper")


def bundled_generator(
    *, temperature: float = 0.0, seed: int = 0, max_tokens: int | None = None
) -> Generate:
    """The bundled model. Of a prompt that is longer than its context it reads the end.

    Raises MissingDependencyError without the extra "demo".
    """
    from gatekeeper.adapters.bundled import BundledModel

    model = BundledModel()
    limit = min(max_tokens or BUNDLED_TOKENS, model.context_length // 2)

    def generate(prompts: Sequence[str], ids: Sequence[str]) -> Sequence[Generation]:
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
) -> Generate:
    """A model behind OpenAI's chat API: OpenAI's own, or a server that speaks it.

    base_url      None: OpenAI's
    api_key       None: what the `openai` package finds in the environment
    concurrency   requests at once, at least 1
    seed          sent where the temperature is above 0
    max_tokens    of each answer; None: as the server pleases

    Retries are the package's; the requests of a block run in an event loop of their own. A model
    that refuses log-probabilities is asked without them, which the logger `gatekeeper` says once.
    Raises MissingDependencyError without the extra "openai", BadInputError for impossible
    settings; a call raises GeneratorUnavailableError where a prompt is not answered, and then the
    other answers of its block are lost.
    """
    if concurrency < 1:
        raise BadInputError(f"{concurrency=!r}: at least 1 request at once is needed")
    try:
        import openai
    except ImportError as error:
        raise MissingDependencyError(
            "openai", extra="openai", needed_for="generator='openai'"
        ) from error
    asked: dict[str, Any] = {"model": model, "temperature": temperature}
    if temperature:
        asked["seed"] = seed
    if max_tokens is not None:
        asked["max_tokens"] = max_tokens
    for_signals = {"logprobs": True, "top_logprobs": ALTERNATIVES}

    async def ask(client: Any, prompt: str) -> Any:
        messages = [{"role": "user", "content": prompt}]
        create = client.chat.completions.create
        try:
            return await create(messages=messages, **asked, **for_signals)
        except openai.APIStatusError as error:
            if not for_signals or not refuses_logprobs(error):
                raise
        response = await create(messages=messages, **asked)
        if for_signals:
            for_signals.clear()
            _LOG.warning("model %r gives no log-probabilities: signals missing", model)
        return response

    async def answer(client: Any, slots: asyncio.Semaphore, prompt: str, id: str) -> Generation:
        async with slots:
            try:
                response = await ask(client, prompt)
            except openai.OpenAIError as error:
                raise GeneratorUnavailableError(_complaint(client, id, error)) from error
        return as_generation(response, id=id)

    async def answer_all(prompts: Sequence[str], ids: Sequence[str]) -> Sequence[Generation]:
        slots = asyncio.Semaphore(concurrency)
        try:
            client = openai.AsyncOpenAI(base_url=base_url, api_key=api_key)
        except openai.OpenAIError as error:  # no key
            raise GeneratorUnavailableError(_one_line(error)) from error
        async with client:
            try:
                async with asyncio.TaskGroup() as group:
                    tasks = [
                        group.create_task(answer(client, slots, prompt, id))
                        for prompt, id in zip(prompts, ids, strict=True)
                    ]
            except ExceptionGroup as failed:  # the first failure has cancelled the others
                raise failed.exceptions[0] from None
        return [task.result() for task in tasks]

    return lambda prompts, ids: asyncio.run(answer_all(prompts, ids))


def vllm_generator(
    model: str, *, temperature: float = 0.0, seed: int = 0, max_tokens: int | None = None
) -> Generate:
    """A Hugging Face model run by vLLM in this process, through its chat template if it has one.

    max_tokens   of each answer; None: as many as the model's context allows

    Raises MissingDependencyError without vLLM, GeneratorUnavailableError where it cannot load the
    model; a call raises GeneratorUnavailableError where vLLM refuses a prompt.
    """
    os.environ.setdefault("VLLM_LOGGING_STREAM", "ext://sys.stderr")  # standard output is ours
    try:
        from vllm import LLM, SamplingParams
    except ImportError as error:
        raise MissingDependencyError("vllm", extra="vllm", needed_for="generator='vllm'") from error
    from gatekeeper.adapters.vllm import prepared

    try:
        llm = LLM(model, seed=seed)
    except Exception as error:  # of many kinds: no such folder, no memory, an unknown architecture
        raise GeneratorUnavailableError(
            f"vLLM cannot load model={model!r}: {_one_line(error)}"
        ) from error
    params = prepared(SamplingParams(temperature=temperature, max_tokens=max_tokens, seed=seed))
    template = getattr(llm.get_tokenizer(), "chat_template", None)

    def generate(prompts: Sequence[str], ids: Sequence[str]) -> Sequence[Generation]:
        try:
            if template:
                talks = [[{"role": "user", "content": prompt}] for prompt in prompts]
                outputs = llm.chat(talks, params, use_tqdm=False)
            else:
                outputs = llm.generate(list(prompts), params, use_tqdm=False)
        except Exception as error:  # a prompt that is longer than the context, an engine that died
            raise GeneratorUnavailableError(
                f"vLLM refuses one of {list(ids)!r:.80}: {_one_line(error)}"
            ) from error
        answers = [as_generation(output, id=id) for output, id in zip(outputs, ids, strict=True)]
        return [replace(answer, model=model) for answer in answers]

    named = template if isinstance(template, str) else None  # a tokenizer may have several
    generate.prompt_template = named  # type: ignore[attr-defined]
    return generate


def _complaint(client: Any, id: str, error: Exception) -> str:
    where, status = str(client.base_url).rstrip("/"), getattr(error, "status_code", None)
    if status is None:
        return f"{where} cannot be reached: {_one_line(error.__cause__ or error)}"
    body = getattr(error, "body", None)
    said = body.get("message") if isinstance(body, dict) else None
    return f"{where} answers id={id!r} with status {status}: {_one_line(said or error)}"


def _one_line(problem: object) -> str:
    return f"{' '.join(str(problem).split()) or type(problem).__name__:.300}"
