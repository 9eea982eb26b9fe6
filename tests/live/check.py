"""`make test-vllm`: are the signals of a generation the same over every route of vLLM?

Serves the bundled model on loopback, drives it through `gate.wrap` with the real client, runs the
same requests offline, and prints a line for each route, then for 50 concurrent calls. The requests
ask for no log-probabilities: the gate does, and offline `prepared`. The programs and commands of
docs/vllm.md run as well, and answers of `gatekeeper serve` are compared with those of vLLM. Ends
with status 1 if anything differs.
"""

from __future__ import annotations

import asyncio
import os
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
from behind_gateway import CASES, KEY, differences
from offline import async_chunks, llm_outputs, sampling_params
from openai import AsyncOpenAI, OpenAI
from pages import Page
from scenarios import ENVIRONMENT, SCENARIOS, Scenario
from server import serving
from vllm.sampling_params import RequestOutputKind

from gatekeeper import Budget, VerificationGate
from gatekeeper.adapters.openai import generation_of
from gatekeeper.adapters.vllm import StreamReader, prepared
from gatekeeper.io.responses import as_generations
from gatekeeper.signals import signals_of
from gatekeeper.types import Generation, Outcome, Signals, Verdict

TOLERANCE = 1e-6
CONCURRENT = 50
REFERENCE = "LLM, dicts"
# vLLM's Responses stream drops the tokens without text; the coverage has to say so.
LOSSY = ("Responses stream", "Responses async stream")

Generations = dict[str, list[Generation]]  # by route


class Keeping:
    """A verifier that accepts everything and keeps what it was given: output and task, by id."""

    def __init__(self) -> None:
        self.given: dict[str, tuple[Generation, object]] = {}

    def verify(self, generation: Generation, task: object) -> Outcome:
        self.given[generation.id] = generation, task
        return Outcome(Verdict.PASSED)


@contextmanager
def verifying_all() -> Iterator[tuple[VerificationGate, Keeping]]:
    verifier = Keeping()
    budget = Budget(fraction=0.9, total=1e6, startup=1e5)
    gate = VerificationGate("random", budget=budget, verifier=verifier)
    with gate, gate.task(verify="always"):
        yield gate, verifier


# -- offline ----------------------------------------------------------------------------------


def offline() -> dict[str, Generations]:
    """By scenario and route."""
    blocking = [
        (s, route, (s.raw_prompt, prepared(sampling_params(s, flat_logprobs=flat))))
        for s in SCENARIOS.values()
        for route, flat in ((REFERENCE, False), ("LLM, FlatLogprobs", True))
    ]
    streaming = [
        (s, kind, (s.raw_prompt, prepared(sampling_params(s, output_kind=kind))))
        for s in SCENARIOS.values()
        for kind in (RequestOutputKind.CUMULATIVE, RequestOutputKind.DELTA)
    ]
    found: dict[str, Generations] = {name: {} for name in SCENARIOS}
    outputs = llm_outputs([job for _, _, job in blocking])
    for (s, route, _), output in zip(blocking, outputs, strict=True):
        found[s.name][route] = as_generations(output)
    streams = async_chunks([job for _, _, job in streaming])
    for (s, kind, _), chunks in zip(streaming, streams, strict=True):
        reader = StreamReader(delta=kind is RequestOutputKind.DELTA)
        for chunk in chunks:
            reader.add(chunk)
        found[s.name][f"AsyncLLM, {kind.name.lower()}"] = reader.generations()
    return found


# -- over HTTP, through the gate --------------------------------------------------------------


def routes(client: Any, s: Scenario) -> Iterator[tuple[str, Callable[..., Any], dict[str, Any]]]:
    """Name, function and arguments of each call; a client of either kind."""
    usage = {"stream": True, "stream_options": {"include_usage": True}}
    yield "chat", client.chat.completions.create, s.chat()
    yield "chat stream", client.chat.completions.create, s.chat(**usage)
    yield "completions", client.completions.create, s.completions()
    yield "completions stream", client.completions.create, s.completions(**usage)
    if s.n == 1:
        yield "Responses", client.responses.create, s.responses()
        yield "Responses stream", client.responses.create, s.responses(stream=True)


def decided(gate: VerificationGate, verifier: Keeping, response: Any) -> list[Generation]:
    """The generation that the gate read from a response and passed to its verifier."""
    results = gate.results_of(response)
    generations = [verifier.given[result.id][0] for result in results]
    assert [r.signals for r in results] == [signals_of(g) for g in generations]
    return generations


def online(base_url: str, s: Scenario) -> Generations:
    found: Generations = {}
    with OpenAI(base_url=base_url, api_key="none") as client, verifying_all() as (gate, verifier):
        wrapped = gate.wrap(client, return_tokens_as_token_ids=True)
        for route, create, arguments in routes(wrapped, s):
            response = create(**arguments)
            if arguments.get("stream"):
                for _ in response:
                    pass
            found[route] = decided(gate, verifier, response)
    return found


async def aonline(base_url: str, s: Scenario) -> Generations:
    found: Generations = {}
    async with AsyncOpenAI(base_url=base_url, api_key="none") as client:
        with verifying_all() as (gate, verifier):
            wrapped = gate.wrap(client, return_tokens_as_token_ids=True)
            for route, create, arguments in routes(wrapped, s):
                response = await create(**arguments)
                if arguments.get("stream"):
                    async for _ in response:
                        pass
                family, _, stream = route.partition(" ")
                found[f"{family} async {stream}".rstrip()] = decided(gate, verifier, response)
    return found


# -- many at once -----------------------------------------------------------------------------


async def concurrently(base_url: str) -> list[str]:
    """Errors of many calls at once: a lost result, or a result of another call."""
    complaints = []

    async def ask(client: Any, i: int) -> Any:
        s = Scenario(name="", prompt=f"Compute {100 + i} + {900 - i}.", max_tokens=16 + i)
        settings = {"task": i, "id": f"call {i}"}
        return await client.chat.completions.create(**s.chat(), extra_body={"gatekeeper": settings})

    async with AsyncOpenAI(base_url=base_url, api_key="none", timeout=120.0) as client:
        with verifying_all() as (gate, verifier):
            wrapped = gate.wrap(client)
            calls = [ask(wrapped, i) for i in range(CONCURRENT)]
            for i, response in enumerate(await asyncio.gather(*calls)):
                result = gate.result_of(response)
                own = generation_of(response)
                given, task = verifier.given[result.id]
                if (result.id, task, given.text) != (f"call {i}", i, own.text):
                    complaints.append(f"call {i} got {result.id!r}, verified with task {task}")
                if result.signals != signals_of(own):
                    complaints.append(f"call {i} has the signals of another output")
            if not gate.status().seen == len(verifier.given) == CONCURRENT:
                complaints.append(f"the gate has seen {gate.status().seen} calls")
    return complaints


# -- the table --------------------------------------------------------------------------------


@dataclass(frozen=True)
class Row:
    route: str
    generation: Generation
    signals: Signals
    difference: float  # the largest of h1, h2, h3 from the reference's
    fault: str


def compare(route: str, generation: Generation, reference: Generation) -> Row:
    signals, true = signals_of(generation), signals_of(reference)
    here, there = (np.array([s.h1, s.h2, s.h3]) for s in (signals, true))
    difference = float(np.max(np.where(here == there, 0.0, np.abs(here - there))))
    lost = generation.logprob.size < reference.logprob.size
    if generation.text != reference.text:
        fault = "another text"
    elif route in LOSSY and lost:
        fault = "" if generation.token_coverage < 1.0 else "lost tokens are not noticed"
    elif generation.token_coverage < 1.0:
        fault = "not all positions have a margin"
    else:
        fault = "" if difference <= TOLERANCE else "another signal"
    return Row(route, generation, signals, difference, fault)


def rows(by_route: Generations, n: int) -> Iterator[Row]:
    references = by_route[REFERENCE]
    for route, generations in by_route.items():
        assert len(generations) == len(references) == n, f"{route}: {len(generations)} outputs"
        for i, (generation, reference) in enumerate(zip(generations, references, strict=True)):
            row = compare(route, generation, reference)
            yield row if n == 1 else replace(row, route=f"{route}, choice {i}")


def show(name: str, by_route: Generations, n: int) -> int:
    """Print a scenario's table; the number of its faults."""
    text = by_route[REFERENCE][0].text
    print(f"\n{name}: {text!r}")
    print(
        f"{'route':34}{'tokens':>7}{'coverage':>10}{'h1':>11}{'h2':>11}{'h3':>11}{'max diff':>10}"
    )
    faults = 0
    for row in rows(by_route, n):
        h, g = row.signals, row.generation
        figures = f"{g.logprob.size:7}{g.token_coverage:10.3f}{h.h1:11.6f}{h.h2:11.6f}{h.h3:11.6f}"
        print(
            f"{row.route:34}{figures}{row.difference:10.1e}  {row.fault and 'FAULT: ' + row.fault}"
        )
        faults += bool(row.fault)
    return faults


def main() -> int:
    os.environ.update(ENVIRONMENT)
    started = time.monotonic()
    found = offline()
    with serving("--api-key", KEY) as base_url, TemporaryDirectory() as folder:
        page = Page(Path(folder), base_url)
        page.served()
        with page.gateway() as gateway:
            complaints = list(differences(base_url, gateway))
        print(f"{len(CASES)} answers through the gateway, {len(complaints)} that differ")
        for name, s in SCENARIOS.items():
            found[name].update(online(base_url, s))
            found[name].update(asyncio.run(aonline(base_url, s)))
        mixed = asyncio.run(concurrently(base_url))
        print(f"{CONCURRENT} concurrent calls: {len(mixed)} complaints")
    with TemporaryDirectory() as folder:
        Page(Path(folder)).offline()
    complaints += mixed
    faults = sum(show(name, by_route, SCENARIOS[name].n) for name, by_route in found.items())
    for complaint in complaints:
        print(complaint)
    routes = sum(len(by_route) for by_route in found.values())
    seconds = time.monotonic() - started
    faults += len(complaints)
    print(f"{routes} routes of {len(found)} generations, {faults} faults, {seconds:.0f} s")
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())
