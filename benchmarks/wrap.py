"""The time that `gate.wrap` adds to a call of the OpenAI client, beside the client's own time.

    python benchmarks/wrap.py            a quarter of an hour on a quiet machine
    python benchmarks/wrap.py --quick    two minutes: fewer pairs, fewer calls at once

All clients ask for the same answer (5 alternatives per token) of a process on loopback. The gate
decides on every output and verifies none.

Many at once: a round is 1,000 calls in flight on one event loop, in random order: a third by the
bare client, a third by one whose gate has its log in memory, a third by one whose log is in a file.
So other load on the machine affects all three alike. Every step of every call is timed by the
processor time of the thread; the gate adds the difference between the steps of a wrapped call and
those of a bare one (where it decides on several outputs together, that is in a step of one of its
calls). `client alone` is the time of a bare call's steps and its share of the time between steps:
sockets, the event loop, and Python's garbage collector, which visits all answers repeatedly (all of
its time counts here). `share` is the added time divided by `client alone`, the median over rounds;
the last column has the least and the most of them. The target is for every row of this table.

One at a time: each pair is one call of the bare client and one of the wrapped one, in alternating
order; the figures are medians over pairs. The client's own time is less here, and the added time is
about the same.
"""

from __future__ import annotations

import argparse
import asyncio
import gc
import itertools
import json
import multiprocessing
import os
import platform
import random
import socket
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Coroutine, Generator
from pathlib import Path
from statistics import median
from types import coroutine
from typing import Any, NamedTuple

import numpy as np
import openai
from rich.console import Console
from rich.table import Table

from gatekeeper import Budget, Random, VerificationGate
from gatekeeper.testing import ScriptedVerifier

Pairs = list[tuple[int, int]]  # nanoseconds of the bare client and of the wrapped one

ALTERNATIVES = 5
TARGET = 0.05  # of the client's own time per call
AT_ONCE = 1000
ROUNDS = {32: 16, 128: 8, 512: 4}  # tokens of the answer -> rounds, each 7 to 70 seconds
LONG = 512
CALL: dict[str, Any] = {
    "model": "m",
    "messages": [{"role": "user", "content": "What is 3/4 + 5/6?"}],
    "logprobs": True,
    "top_logprobs": ALTERNATIVES,
    "max_tokens": LONG,
}


def entries(tokens: int, rng: np.random.Generator) -> list[dict[str, Any]]:
    """Entries as chat completions have them: about 562 bytes per token."""
    values = np.sort(rng.exponential(4.0, (tokens, ALTERNATIVES)), axis=1) * -1.0
    out = []
    for i, row in enumerate(values.tolist()):
        names = [f" word{i % 97}{'abcde'[j]}" for j in range(ALTERNATIVES)]
        top = [
            {"token": name, "logprob": value, "bytes": list(name.encode())}
            for name, value in zip(names, row, strict=True)
        ]
        out.append({**top[0], "top_logprobs": top})
    return out


def plain(tokens: int) -> bytes:
    content = entries(tokens, np.random.default_rng(0))
    logprobs = {"content": content, "refusal": None}
    text = "".join(entry["token"] for entry in content)
    message = {"role": "assistant", "content": text, "refusal": None}
    choice = {"index": 0, "finish_reason": "stop", "message": message, "logprobs": logprobs}
    usage = {"prompt_tokens": 20, "completion_tokens": tokens, "total_tokens": tokens + 20}
    head = {"id": "ID", "object": "chat.completion", "created": 1, "model": "m"}
    return json.dumps(head | {"choices": [choice], "usage": usage}).encode()


def streamed(tokens: int) -> bytes:
    head = {"id": "ID", "object": "chat.completion.chunk", "created": 1, "model": "m"}
    lines = []
    for entry in [*entries(tokens, np.random.default_rng(0)), None]:
        choice = {
            "index": 0,
            "delta": {"content": entry["token"]} if entry else {},
            "logprobs": {"content": [entry]} if entry else None,
            "finish_reason": None if entry else "stop",
        }
        lines.append(f"data: {json.dumps(head | {'choices': [choice]})}\n\n")
    return "".join([*lines, "data: [DONE]\n\n"]).encode()


def serve(listener: socket.socket) -> None:
    """Answer each request with as many tokens as it asks for, and a new id; runs for ever."""
    ids = itertools.count()
    answers = {(n, how is streamed): how(n) for n in ROUNDS for how in (plain, streamed)}

    def handle(connection: socket.socket) -> None:
        request = b""
        while data := connection.recv(65536):
            request += data
            head, end, body = request.partition(b"\r\n\r\n")
            if not end or len(body) < int(head.lower().split(b"content-length:")[1].split()[0]):
                continue
            asked = json.loads(body)
            stream = asked.get("stream", False)
            answer = answers[asked["max_tokens"], stream].replace(b'"ID"', b'"id-%d"' % next(ids))
            kind = b"text/event-stream" if stream else b"application/json"
            connection.sendall(
                b"HTTP/1.1 200 OK\r\ncontent-type: %s\r\ncontent-length: %d\r\n\r\n%s"
                % (kind, len(answer), answer)
            )
            request = b""

    while True:
        connection, _ = listener.accept()
        threading.Thread(target=handle, args=(connection,), daemon=True).start()


def make_gate(log: Path | None) -> VerificationGate:
    """A gate that decides on every output and verifies none: its policy proposes one in 10⁹."""
    return VerificationGate(
        Random(1e-9, warmup=0), budget=Budget(total=1), verifier=ScriptedVerifier(), log=log
    )


def create(client: openai.OpenAI) -> None:
    client.chat.completions.create(**CALL)


def stream(client: openai.OpenAI) -> None:
    for _ in client.chat.completions.create(**CALL, stream=True):
        pass


async def acreate(client: openai.AsyncOpenAI, tokens: int = LONG) -> None:
    await client.chat.completions.create(**CALL | {"max_tokens": tokens})


async def astream(client: openai.AsyncOpenAI) -> None:
    async for _ in await client.chat.completions.create(**CALL, stream=True):
        pass


def timed(call: Callable[[Any], None], client: Any) -> int:
    start = time.thread_time_ns()
    call(client)
    return time.thread_time_ns() - start


def pairs(call: Callable[[Any], None], bare: Any, wrapped: Any, n: int) -> Pairs:
    """(bare, wrapped) in nanoseconds, after a warm-up; the order alternates."""
    for _ in range(3):
        call(bare)
        call(wrapped)
    gc.collect()
    out = []
    for i in range(n):
        if i % 2:
            second, first = timed(call, wrapped), timed(call, bare)
        else:
            first, second = timed(call, bare), timed(call, wrapped)
        out.append((first, second))
    return out


class Clock:
    """Processor time of this thread in nanoseconds, without garbage collection."""

    def __init__(self) -> None:
        self._collecting = self._begun = 0
        gc.callbacks.append(self._collected)

    def _collected(self, phase: str, info: dict[str, int]) -> None:
        if phase == "start":
            self._begun = time.thread_time_ns()
        else:
            self._collecting += time.thread_time_ns() - self._begun

    def now(self) -> int:
        return time.thread_time_ns() - self._collecting


@coroutine
def metered(
    call: Coroutine[Any, None, None], clock: Clock, steps: list[int]
) -> Generator[Any, None, None]:
    """Await `call` and add the time of each step, from one wait to the next, to `steps`."""
    took, error = 0, None
    while True:
        start = clock.now()
        try:
            waits_for = call.send(None) if error is None else call.throw(error)
        except StopIteration:
            steps.append(took + clock.now() - start)
            return
        took, error = took + clock.now() - start, None
        try:
            yield waits_for
        except BaseException as e:
            error = e


class Round(NamedTuple):
    """Nanoseconds per call."""

    alone: float  # of the bare client
    added: list[float]  # by each gate


async def burst(
    clients: list[openai.AsyncOpenAI], tokens: int, n: int, clock: Clock, seed: int
) -> Round:
    """n calls at once, shared equally by the clients, shuffled; the first client is bare."""
    order = [i % len(clients) for i in range(n)]
    random.Random(seed).shuffle(order)
    steps: list[list[int]] = [[] for _ in clients]
    calls = [metered(acreate(clients[who], tokens), clock, steps[who]) for who in order]
    gc.collect()
    start = time.thread_time_ns()
    await asyncio.gather(*calls)
    between = time.thread_time_ns() - start - sum(map(sum, steps))
    bare, *wrapped = (sum(each) / len(each) for each in steps)
    return Round(bare + between / n, [each - bare for each in wrapped])


async def bursts(
    gates: list[VerificationGate], url: str, tokens: int, n: int, clock: Clock
) -> list[Round]:
    async with openai.AsyncOpenAI(api_key="k", base_url=url, timeout=600, max_retries=0) as bare:
        clients = [bare, *(gate.wrap(bare) for gate in gates)]
        await burst(clients, tokens, n, clock, 0)  # connections, first imports
        return [await burst(clients, tokens, n, clock, 1 + i) for i in range(ROUNDS[tokens])]


def figures(times: Pairs) -> tuple[float, float, float]:
    """Time of the bare call and added time, in ms, and the added time divided by the other."""
    bare = median(a for a, _ in times) / 1e6
    added = median(b - a for a, b in times) / 1e6
    return bare, added, added / bare


def one_at_a_time(n: int, url: str, console: Console) -> None:
    table = Table(title=f"One at a time: {LONG} tokens, {n} pairs each")
    for heading in ("call", "log", "client alone", "added by the gate", "share"):
        table.add_column(heading, justify="left" if heading in ("call", "log") else "right")
    with tempfile.TemporaryDirectory() as folder:
        for name in CALLS:
            for kind in ("memory", "file"):
                path = Path(folder) / f"{name}.db" if kind == "file" else None
                with make_gate(path) as gate:
                    bare, added, share = figures(measure(name, gate, url, n))
                table.add_row(name, kind, f"{bare:.2f} ms", f"{added:.2f} ms", f"{share:.1%}")
    console.print(table)


def many_at_once(n: int, url: str, console: Console) -> bool:
    table = Table(title=f"{n:,} calls of async create at once")
    for heading in ("tokens", "log", "client alone", "added by the gate", "share", "least to most"):
        table.add_column(heading, justify="left" if heading == "log" else "right")
    clock, largest = Clock(), 0.0
    for tokens in ROUNDS:
        with (
            tempfile.TemporaryDirectory() as folder,
            make_gate(None) as in_memory,
            make_gate(Path(folder) / "log.db") as in_file,
        ):
            rounds = asyncio.run(bursts([in_memory, in_file], url, tokens, n, clock))
        alone = f"{median(each.alone for each in rounds) / 1e6:.2f} ms"
        for i, kind in enumerate(("memory", "file")):
            added = f"{median(each.added[i] for each in rounds) / 1e6:.3f} ms"
            shares = [each.added[i] / each.alone for each in rounds]
            share, apart = median(shares), f"{min(shares):.1%} to {max(shares):.1%}"
            table.add_row(f"{tokens}", kind, alone, added, f"{share:.1%}", apart)
            largest = max(largest, share)
    console.print(table)
    console.print(f"target {TARGET:.0%}; largest share {largest:.1%}")
    return largest <= TARGET


def measure(name: str, gate: VerificationGate, url: str, n: int) -> Pairs:
    call = CALLS[name]
    if not name.startswith("async"):
        with openai.OpenAI(api_key="k", base_url=url) as client:
            return pairs(call, client, gate.wrap(client), n)
    with asyncio.Runner() as runner:
        aclient = openai.AsyncOpenAI(api_key="k", base_url=url)
        times = pairs(lambda c: runner.run(call(c)), aclient, gate.wrap(aclient), n)
        runner.run(aclient.close())
    return times


CALLS: dict[str, Callable[[Any], Any]] = {
    "create": create,
    "create, stream": stream,
    "async create": acreate,
    "async create, stream": astream,
}


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--quick", action="store_true")
    quick = parser.parse_args().quick
    console = Console()
    versions = f"openai {openai.__version__}, Python {platform.python_version()}"
    console.print(f"{versions}, {os.cpu_count()} CPUs, load {os.getloadavg()[0]:.1f}")
    with socket.create_server(("127.0.0.1", 0), backlog=AT_ONCE) as listener:
        url = f"http://127.0.0.1:{listener.getsockname()[1]}/v1"
        server = multiprocessing.get_context("fork").Process(
            target=serve, args=(listener,), daemon=True
        )
        server.start()
        try:
            good = many_at_once(AT_ONCE // 10 if quick else AT_ONCE, url, console)
            one_at_a_time(20 if quick else 100, url, console)
        finally:
            server.terminate()
            server.join()
    sys.exit(not good)


if __name__ == "__main__":
    main()
