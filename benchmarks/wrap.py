"""What `gate.wrap` adds to a call of the OpenAI client, beside what the client itself takes.

    python benchmarks/wrap.py            some eight minutes on a quiet machine
    python benchmarks/wrap.py --quick    one minute: fewer pairs, fewer calls at once

Both clients ask for the same answer (512 tokens, 5 alternatives each) of a process on loopback. The
gate decides on every output and verifies none.

One at a time: each pair is one call of the bare client and one of the wrapped one, in alternating
order. Times are processor time of the calling thread: the package's own work and the gate's, not
the waiting for a server. `added` is the median over pairs of the difference, `alone` the median of
the bare calls.

Many at once: a round is 1,000 calls in flight on one event loop, bare, and 1,000 wrapped, in
alternating order; the log is a file. Times are a round's over its calls, medians over rounds as
above. Processor time is again the thread's, now with what the package spends on having so many in
flight: its connection pool, which looks at all connections for each, and Python's garbage
collector, which goes through all answers again and again. That makes several times a single call's,
so neither table stands for the other. Wall time is what callers wait for; the server has its part
in it, on the same machine, and so has writing the log. Where the rounds differ by more than the
target, the machine was too busy for either to say anything.
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
import socket
import sys
import tempfile
import threading
import time
from collections.abc import Callable
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np
import openai
from rich.console import Console
from rich.table import Table

from gatekeeper import Budget, Random, VerificationGate
from gatekeeper.testing import ScriptedVerifier

Pairs = list[tuple[int, int]]  # nanoseconds of the bare client and of the wrapped one

TOKENS, ALTERNATIVES = 512, 5
TARGET = 0.05  # of the client's own time per call
AT_ONCE, ROUNDS = 1000, 3  # a round takes two minutes
CALL: dict[str, Any] = {
    "model": "m",
    "messages": [{"role": "user", "content": "What is 3/4 + 5/6?"}],
    "logprobs": True,
    "top_logprobs": ALTERNATIVES,
}


def entries(rng: np.random.Generator) -> list[dict[str, Any]]:
    """As chat completions have them: 562 bytes per token, about."""
    values = np.sort(rng.exponential(4.0, (TOKENS, ALTERNATIVES)), axis=1) * -1.0
    out = []
    for i, row in enumerate(values.tolist()):
        names = [f" word{i % 97}{'abcde'[j]}" for j in range(ALTERNATIVES)]
        top = [
            {"token": name, "logprob": value, "bytes": list(name.encode())}
            for name, value in zip(names, row, strict=True)
        ]
        out.append({**top[0], "top_logprobs": top})
    return out


def plain() -> bytes:
    logprobs = {"content": entries(np.random.default_rng(0)), "refusal": None}
    text = "".join(entry["token"] for entry in logprobs["content"])
    message = {"role": "assistant", "content": text, "refusal": None}
    choice = {"index": 0, "finish_reason": "stop", "message": message, "logprobs": logprobs}
    usage = {"prompt_tokens": 20, "completion_tokens": TOKENS, "total_tokens": TOKENS + 20}
    head = {"id": "ID", "object": "chat.completion", "created": 1, "model": "m"}
    return json.dumps(head | {"choices": [choice], "usage": usage}).encode()


def streamed() -> bytes:
    head = {"id": "ID", "object": "chat.completion.chunk", "created": 1, "model": "m"}
    lines = []
    for entry in [*entries(np.random.default_rng(0)), None]:
        choice = {
            "index": 0,
            "delta": {"content": entry["token"]} if entry else {},
            "logprobs": {"content": [entry]} if entry else None,
            "finish_reason": None if entry else "stop",
        }
        lines.append(f"data: {json.dumps(head | {'choices': [choice]})}\n\n")
    return "".join([*lines, "data: [DONE]\n\n"]).encode()


def serve(listener: socket.socket) -> None:
    """Answers every request with the same text, under an id of its own, and never ends."""
    ids = itertools.count()
    whole, chunks = plain(), streamed()

    def handle(connection: socket.socket) -> None:
        request = b""
        while data := connection.recv(65536):
            request += data
            head, end, body = request.partition(b"\r\n\r\n")
            if not end or len(body) < int(head.lower().split(b"content-length:")[1].split()[0]):
                continue
            stream = b'"stream":true' in body.replace(b" ", b"")
            answer = (chunks if stream else whole).replace(b'"ID"', b'"id-%d"' % next(ids))
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
    """Looks at everything and verifies nothing: one in a billion, to the policy's mind."""
    return VerificationGate(
        Random(1e-9, warmup=0), budget=Budget(total=1), verifier=ScriptedVerifier(), log=log
    )


def create(client: openai.OpenAI) -> None:
    client.chat.completions.create(**CALL)


def stream(client: openai.OpenAI) -> None:
    for _ in client.chat.completions.create(**CALL, stream=True):
        pass


async def acreate(client: openai.AsyncOpenAI) -> None:
    await client.chat.completions.create(**CALL)


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
        call(bare), call(wrapped)
    gc.collect()
    out = []
    for i in range(n):
        if i % 2:
            second, first = timed(call, wrapped), timed(call, bare)
        else:
            first, second = timed(call, bare), timed(call, wrapped)
        out.append((first, second))
    return out


async def burst(client: openai.AsyncOpenAI, n: int) -> tuple[int, int]:
    """Nanoseconds per call of n calls at once: this thread's processor, the clock."""
    gc.collect()
    cpu, wall = time.thread_time_ns(), time.perf_counter_ns()
    await asyncio.gather(*(acreate(client) for _ in range(n)))
    return (time.thread_time_ns() - cpu) // n, (time.perf_counter_ns() - wall) // n


async def bursts(gate: VerificationGate, url: str, n: int) -> tuple[Pairs, Pairs]:
    """Per round (bare, wrapped) by the processor, and by the clock."""
    cpu, wall = [], []
    async with openai.AsyncOpenAI(api_key="k", base_url=url, timeout=600, max_retries=0) as bare:
        wrapped = gate.wrap(bare)
        await burst(bare, n // 10), await burst(wrapped, n // 10)  # connections, first imports
        for i in range(ROUNDS):
            if i % 2:
                second, first = await burst(wrapped, n), await burst(bare, n)
            else:
                first, second = await burst(bare, n), await burst(wrapped, n)
            cpu.append((first[0], second[0]))
            wall.append((first[1], second[1]))
    return cpu, wall


def figures(times: Pairs) -> tuple[float, float, float]:
    """Of the bare call and of what is added, in ms, and the one over the other."""
    bare = median(a for a, _ in times) / 1e6
    added = median(b - a for a, b in times) / 1e6
    return bare, added, added / bare


def one_at_a_time(n: int, url: str, console: Console) -> bool:
    table = Table(title=f"{TOKENS} tokens, {ALTERNATIVES} alternatives, {n} pairs each")
    for heading in ("call", "log", "client alone", "added by the gate", "share"):
        table.add_column(heading, justify="left" if heading in ("call", "log") else "right")
    shares = {}
    with tempfile.TemporaryDirectory() as folder:
        for name in CALLS:
            for kind in ("memory", "file"):
                path = Path(folder) / f"{name}.db" if kind == "file" else None
                with make_gate(path) as gate:
                    bare, added, share = figures(measure(name, gate, url, n))
                shares[name, kind] = share
                table.add_row(name, kind, f"{bare:.2f} ms", f"{added:.2f} ms", f"{share:.1%}")
    console.print(table)
    console.print(f"target {TARGET:.0%}; largest share {max(shares.values()):.1%}")
    return max(shares.values()) <= TARGET


def many_at_once(n: int, url: str, console: Console) -> bool:
    table = Table(title=f"{n:,} calls of async create at once, log in a file, {ROUNDS} rounds")
    for heading in ("per call", "client alone", "added by the gate", "share", "of each round"):
        table.add_column(heading, justify="left" if heading == "per call" else "right")
    shares = {}
    with tempfile.TemporaryDirectory() as folder, make_gate(Path(folder) / "log.db") as gate:
        times = asyncio.run(bursts(gate, url, n))
    for kind, found in zip(("processor", "wall"), times, strict=True):
        bare, added, shares[kind] = figures(found)
        each = ", ".join(f"{b / a - 1:.1%}" for a, b in found)
        table.add_row(kind, f"{bare:.2f} ms", f"{added:.2f} ms", f"{shares[kind]:.1%}", each)
    console.print(table)
    console.print(f"target {TARGET:.0%}; share of processor time {shares['processor']:.1%}")
    return shares["processor"] <= TARGET


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
            good = one_at_a_time(20 if quick else 100, url, console)
            good = many_at_once(AT_ONCE // 10 if quick else AT_ONCE, url, console) and good
        finally:
            server.terminate()
            server.join()
    sys.exit(not good)


if __name__ == "__main__":
    main()
