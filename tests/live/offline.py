"""vLLM without a server: the blocking `LLM` and the streaming `AsyncLLM`.

Each engine gets a process of its own and dies with it, which frees its memory for the next one.
"""

from __future__ import annotations

import asyncio
import copy
import faulthandler
import os
from collections.abc import Sequence
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from typing import Any

from scenarios import ENGINE, Scenario
from vllm import SamplingParams
from vllm.outputs import RequestOutput
from vllm.sampling_params import StructuredOutputsParams

import gatekeeper.bundled

__all__ = ["Job", "async_chunks", "llm_outputs", "sampling_params"]

LIMIT_SECONDS = 300.0  # 30 on two quiet cores
Job = tuple[str, SamplingParams]  # the raw prompt, and how to sample


def sampling_params(scenario: Scenario, k: int | None = None, **more: Any) -> SamplingParams:
    arguments = scenario.sampling(k, **more)
    if "structured_outputs" in arguments:
        arguments["structured_outputs"] = StructuredOutputsParams(**arguments["structured_outputs"])
    return SamplingParams(**arguments)


def llm_outputs(jobs: Sequence[Job], **engine: Any) -> list[RequestOutput]:
    """What `LLM.generate` returns for each job, one at a time."""
    return _in_own_process(_generate, jobs, engine)


def async_chunks(jobs: Sequence[Job], **engine: Any) -> list[list[RequestOutput]]:
    """What `AsyncLLM.generate` yields for each job, one at a time.

    Copied as it comes: vLLM goes on writing into the lists of a chunk it has handed out.
    """
    return _in_own_process(_stream, jobs, engine)


def _in_own_process(function: Any, jobs: Sequence[Job], engine: dict[str, Any]) -> Any:
    with ProcessPoolExecutor(1, mp_context=get_context("spawn")) as pool:
        return pool.submit(_within_limit, function, list(jobs), engine).result()


def _within_limit(function: Any, jobs: list[Job], engine: dict[str, Any]) -> Any:
    """If an engine hangs, print its stacks and end its process."""
    faulthandler.dump_traceback_later(LIMIT_SECONDS, exit=True)
    try:
        return function(jobs, engine)
    finally:
        faulthandler.cancel_dump_traceback_later()


def _generate(jobs: list[Job], engine: dict[str, Any]) -> list[RequestOutput]:
    os.environ["VLLM_ENABLE_V1_MULTIPROCESSING"] = "0"
    from vllm import LLM

    llm = LLM(str(gatekeeper.bundled.MODEL), **{**ENGINE, **engine})
    return [llm.generate([prompt], params, use_tqdm=False)[0] for prompt, params in jobs]


def _stream(jobs: list[Job], engine: dict[str, Any]) -> list[list[RequestOutput]]:
    from vllm.engine.arg_utils import AsyncEngineArgs
    from vllm.v1.engine.async_llm import AsyncLLM

    async def run() -> list[list[RequestOutput]]:
        arguments = AsyncEngineArgs(str(gatekeeper.bundled.MODEL), **{**ENGINE, **engine})
        llm = AsyncLLM.from_engine_args(arguments)
        try:
            return [
                [copy.deepcopy(chunk) async for chunk in llm.generate(prompt, params, str(i))]
                for i, (prompt, params) in enumerate(jobs)
            ]
        finally:
            llm.shutdown()

    return asyncio.run(run())
