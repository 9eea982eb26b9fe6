"""The time that `gatekeeper serve` adds to a call, beside a bare pass-through of the same library.

    python benchmarks/gateway.py            a few minutes
    python benchmarks/gateway.py --quick    half a minute: fewer calls
    python benchmarks/gateway.py --litellm VENV/bin/litellm    LiteLLM's proxy in the same run
    python benchmarks/gateway.py --steady    each call after one through the same proxy

An upstream in a process of its own answers with 54 kB: 128 tokens with 5 alternatives each; its
streams have 16 tokens, one per frame and millisecond. One client on one connection calls it
directly, through 20 lines of aiohttp, and through the gateway (a gate that decides on every output
and verifies none, its log in a file), in turns and in random order, so that other load on the
machine, and the call before, affect all alike. `added` is the median over rounds of the time
through a proxy minus the direct time. `processor` is the processor time that the proxy's process
took per call, which depends little on other load; its inverse is calls per second and core. In
turns a proxy's code and data have left the processor's caches between two of its calls; under
steady load (`--steady`) they have not, and both proxies take less.

The gateway is measured on a path that is not gated, with log-probabilities that the caller asked
for, and with log-probabilities that the gateway asks for and takes out again. For streams, `added`
is about the first frame. At the end: how much the gateway's memory grew over all gated calls.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import multiprocessing
import os
import random
import secrets
import socket
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from statistics import median
from typing import Any, NamedTuple

from _machine import machine
from _upstream import ALTERNATIVES, TOKENS, run_upstream, whole
from aiohttp import ClientSession, TCPConnector, web
from rich.console import Console
from rich.table import Table

from gatekeeper import Budget, Random, VerificationGate
from gatekeeper.gateway.application import Gateway
from gatekeeper.gateway.route import Route
from gatekeeper.gateway.server import serve
from gatekeeper.gateway.settings import GatewaySettings
from gatekeeper.gateway.tasks import Tasks
from gatekeeper.gateway.termination import Termination
from gatekeeper.listening import listening_sockets
from gatekeeper.testing import ScriptedVerifier

CHAT, OTHER = "/v1/chat/completions", "/v1/other"
KEY = f"sk-{secrets.token_hex(24)}"  # of LiteLLM's proxy, which refuses to start without one
TARGETS = {"not gated": 1.2, "gated": 2.5, "stream": 1.2}

# -- the proxies -----------------------------------------------------------------------------------


def run_bare(listener: socket.socket, upstream: str) -> None:
    """Run a pass-through that does nothing else."""

    async def pass_on(request: web.Request) -> web.StreamResponse:
        body = await request.read()
        async with request.app[session].post(f"{upstream}{request.path}", data=body) as answer:
            if answer.content_type != "text/event-stream":
                data = await answer.read()
                return web.Response(body=data, content_type=answer.content_type)
            response = web.StreamResponse(headers={"content-type": "text/event-stream"})
            await response.prepare(request)
            async for piece in answer.content.iter_any():
                await response.write(piece)
            return response

    async def connected(app: web.Application) -> Any:
        async with ClientSession(connector=TCPConnector(limit=0)) as app[session]:
            yield

    session = web.AppKey("session", ClientSession)
    app = web.Application()
    app.router.add_route("*", "/{path:.*}", pass_on)
    app.cleanup_ctx.append(connected)
    web.run_app(app, sock=listener, print=None, access_log=None)


def run_gateway(port: int, upstream: str, log: Path) -> None:
    with (
        Termination() as termination,
        VerificationGate(
            Random(1e-9, warmup=0), budget=Budget(total=1), verifier=ScriptedVerifier(), log=log
        ) as gate,
    ):

        async def main() -> None:
            settings = GatewaySettings(upstream=f"{upstream}/v1")
            gateway = Gateway(Route(gate=gate, settings=settings), Tasks(kinds=()))
            await serve(gateway, listening_sockets("127.0.0.1", port), termination=termination)

        asyncio.run(main())


@contextmanager
def litellm(command: str, upstream: str, folder: Path) -> Iterator[tuple[str, int]]:
    port = free_port()
    config = folder / "litellm.json"  # JSON is YAML, too
    parameters = {"model": "openai/m", "api_base": f"{upstream}/v1", "api_key": "none"}
    models = [{"model_name": "m", "litellm_params": parameters}]
    config.write_text(json.dumps({"model_list": models, "general_settings": {"master_key": KEY}}))
    environment = os.environ | {"LITELLM_LOCAL_MODEL_COST_MAP": "True", "LITELLM_LOG": "ERROR"}
    process = subprocess.Popen(
        [command, "--config", str(config), "--port", str(port), "--host", "127.0.0.1"],
        env=environment,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    try:
        while not is_listening(port):
            if process.poll() is not None:
                raise SystemExit(f"{command} ended at once: is litellm[proxy] in its environment?")
            time.sleep(0.1)
        yield f"http://127.0.0.1:{port}", process.pid
    finally:
        process.terminate()
        process.wait()


def free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as found:
        port: int = found.getsockname()[1]
        return port


def is_listening(port: int) -> bool:
    with socket.socket() as tried:
        return tried.connect_ex(("127.0.0.1", port)) == 0


# -- the client ------------------------------------------------------------------------------------


class Connection:
    """One connection, kept open. Times in seconds."""

    def __init__(self, url: str) -> None:
        host, _, port = url.removeprefix("http://").partition(":")
        self._address = host, int(port)
        self._file: Any = None

    def open(self) -> None:
        deadline = time.monotonic() + 60
        while self._file is None:
            try:
                self._socket = socket.create_connection(self._address)
                self._file = self._socket.makefile("rb")
            except OSError:
                if time.monotonic() > deadline:
                    raise
                time.sleep(0.1)
        self._socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)

    def call(self, path: str, body: bytes) -> float:
        """Seconds to the first frame of a stream, or to the end of another answer."""
        top = f"POST {path} HTTP/1.1\r\nhost: x\r\nauthorization: Bearer {KEY}\r\n"
        top += f"content-type: application/json\r\ncontent-length: {len(body)}\r\n\r\n"
        start = time.perf_counter()
        self._socket.sendall(top.encode() + body)
        headers = {}
        status = self._file.readline()
        assert b" 200 " in status, (path, status)
        while line := self._file.readline().strip():
            name, _, value = line.lower().partition(b":")
            headers[name] = value.strip()
        if b"content-length" in headers:
            self._file.read(int(headers[b"content-length"]))
            return time.perf_counter() - start
        first = 0.0
        while size := int(self._file.readline(), 16):
            self._file.read(size + 2)
            first = first or time.perf_counter() - start
        self._file.readline()
        return first


class Way(NamedTuple):
    name: str
    kind: str  # "bare", "not gated", "gated", "LiteLLM"
    connection: Connection
    pid: int
    path: str
    body: dict[str, Any]


def measure(
    ways: list[Way], direct: Connection, rounds: int, *, steady: bool
) -> dict[str, tuple[float, float]]:
    """For each name: added milliseconds, and milliseconds of processor time per call."""
    added: dict[str, list[float]] = {way.name: [] for way in ways}
    used = dict.fromkeys(added, 0.0)
    order = random.Random(0)
    for i in range(-5, rounds):  # the first are a warm-up
        for way in order.sample(ways, len(ways)):
            body = json.dumps(way.body).encode()
            if steady:
                way.connection.call(way.path, body)
            base = direct.call(way.path, body)
            before = processor(way.pid)
            took = way.connection.call(way.path, body)
            if i >= 0:
                added[way.name].append(1e3 * (took - base))
                used[way.name] += processor(way.pid) - before
    return {name: (median(times), 1e3 * used[name] / rounds) for name, times in added.items()}


def processor(pid: int) -> float:
    """Seconds that all threads of a process have run."""
    tasks = Path(f"/proc/{pid}/task").glob("*/schedstat")
    return sum(int(path.read_text().split()[0]) for path in tasks) / 1e9


def resident(pid: int) -> float:
    """Resident memory of a process, MB."""
    pages = int(Path(f"/proc/{pid}/statm").read_text().split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE") / 1e6


# -- the run ---------------------------------------------------------------------------------------

ASK: dict[str, Any] = {"model": "m", "messages": [{"role": "user", "content": "3/4 + 5/6?"}]}
OWN: dict[str, Any] = ASK | {"logprobs": True, "top_logprobs": ALTERNATIVES}


def table_of(title: str, found: dict[str, tuple[float, float]], kinds: dict[str, str]) -> Table:
    table = Table(title=title)
    for heading in ("through", "added", "of bare", "processor", "of bare", "target"):
        table.add_column(heading, justify="left" if heading == "through" else "right")
    added, used = found[next(name for name, kind in kinds.items() if kind == "bare")]
    for name, (ms, processor_ms) in found.items():
        target = TARGETS.get(kinds[name])
        table.add_row(
            name,
            f"{ms:.2f} ms",
            f"{ms / added:.2f}",
            f"{processor_ms:.2f} ms",
            f"{processor_ms / used:.2f}",
            "" if target is None else f"{target:.1f}",
        )
    return table


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--litellm", metavar="COMMAND", help="in an environment of litellm[proxy]")
    parser.add_argument("--steady", action="store_true", help="each after one of the same proxy")
    parser.add_argument("--calls", type=int, help="for the growth of memory")
    args = parser.parse_args()
    rounds = 100 if args.quick else 1000
    console = Console()
    console.print(machine())
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))

        def start(target: Callable[..., None], *arguments: Any) -> int:
            process = multiprocessing.get_context("fork").Process(
                target=target, args=arguments, daemon=True
            )
            process.start()
            stack.callback(process.join)
            stack.callback(process.terminate)
            return process.pid or 0

        def listener() -> tuple[socket.socket, str]:
            made = stack.enter_context(socket.create_server(("127.0.0.1", 0), backlog=64))
            return made, f"http://127.0.0.1:{made.getsockname()[1]}"

        def connection(url: str) -> Connection:
            made = Connection(url)
            made.open()
            return made

        upstream, upstream_url = listener()
        bare, bare_url = listener()
        start(run_upstream, upstream)
        bare_pid = start(run_bare, bare, upstream_url)
        port = free_port()
        gateway_pid = start(run_gateway, port, upstream_url, folder / "gate.db")
        gateway_url = f"http://127.0.0.1:{port}"

        def ways(stream: dict[str, Any]) -> list[Way]:
            proxy = connection(litellm_url) if args.litellm else None
            gateway = connection(gateway_url)
            found = [
                Way("aiohttp alone", "bare", connection(bare_url), bare_pid, CHAT, OWN | stream),
                Way(
                    "gateway, a path not gated",
                    "not gated",
                    gateway,
                    gateway_pid,
                    OTHER,
                    OWN | stream,
                ),
                Way("gateway, the caller's", "gated", gateway, gateway_pid, CHAT, OWN | stream),
                Way("gateway, its own", "gated", gateway, gateway_pid, CHAT, ASK | stream),
            ]
            if proxy is not None:
                found.append(Way("LiteLLM", "LiteLLM", proxy, litellm_pid, CHAT, OWN | stream))
            return found

        if args.litellm:
            litellm_url, litellm_pid = stack.enter_context(
                litellm(args.litellm, upstream_url, folder)
            )
        else:
            console.print("Without LiteLLM's proxy: --litellm COMMAND names one.")
        plain = ways({})
        direct = connection(upstream_url)
        found = measure(plain, direct, rounds, steady=args.steady)
        kinds = {way.name: way.kind for way in plain}
        title = f"{TOKENS} tokens, {len(whole()) / 1e3:.0f} kB, {rounds} rounds"
        console.print(table_of(title, found, kinds))
        streams = measure(ways({"stream": True}), direct, max(rounds // 2, 100), steady=args.steady)
        kinds = {name: kind if kind == "bare" else "stream" for name, kind in kinds.items()}
        kinds["LiteLLM"] = "LiteLLM"
        console.print(table_of("Streams: to the first frame", streams, kinds))
        calls = args.calls or (2_000 if args.quick else 20_000)
        body = json.dumps(ASK).encode()
        for i in range(1_000 + calls):
            if i == 1_000:
                before = resident(gateway_pid)
            plain[-1 if not args.litellm else -2].connection.call(CHAT, body)
        grown = resident(gateway_pid) - before
        console.print(f"The gateway's memory grew by {grown:.1f} MB over {calls:,} gated calls.")


if __name__ == "__main__":
    main()
