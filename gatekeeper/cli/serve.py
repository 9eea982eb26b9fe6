"""`gatekeeper serve`: the gate as a gateway in front of an API of OpenAI's kind."""

from __future__ import annotations

import argparse
import asyncio
import sys
from collections.abc import Sequence
from importlib.util import find_spec
from ipaddress import ip_address
from pathlib import Path

from gatekeeper.budget import Budget
from gatekeeper.errors import BadInputError, LogMismatchError, MissingDependencyError
from gatekeeper.features import features_of
from gatekeeper.gate import VerificationGate
from gatekeeper.gateway.settings import GatewaySettings
from gatekeeper.gateway.tasks import Tasks
from gatekeeper.io.tasks import Task, read_tasks
from gatekeeper.log import MemoryLog, PostgresRun
from gatekeeper.programs.command_options import add_serve
from gatekeeper.programs.log_mismatch import mismatch_text
from gatekeeper.programs.run_options import RunOptions, run_options_of
from gatekeeper.programs.task_verifier import verifier_of
from gatekeeper.programs.values import key_of
from gatekeeper.telemetry.error_rate import LoggedErrorRate
from gatekeeper.verifiers import ByKind

__all__ = ["add", "main"]


def add(parser: argparse.ArgumentParser) -> None:
    parser.description = (
        "A gateway in front of an API of OpenAI's kind: give its URL to your client in place of "
        "the API's. Answers are decided on and verified within the budget."
    )
    add_serve(parser)
    parser.set_defaults(run=main)


def main(args: argparse.Namespace) -> int:
    """Serves until SIGTERM; returns 0.

    Raises
    ------
    GatekeeperError
        For impossible options, a log of another gate, an address that cannot be had.
    """
    for package in ("aiohttp", "msgspec", "prometheus_client"):
        if find_spec(package) is None:
            raise MissingDependencyError(package, extra="serve", needed_for="gatekeeper serve")
    if args.upstream is None:
        raise BadInputError("--upstream is missing: give the API's base URL")
    options = run_options_of(args)
    settings = GatewaySettings(
        upstream=args.upstream,
        wait=args.wait,
        on_failed=args.on_failed,
        upstream_key=_key("--upstream-key-env", args.upstream_key_env),
        own_key=_key("--own-key-env", args.own_key_env),
        grace=args.grace,
    )
    if settings.own_key is None and not _is_loopback(args.host):
        print(
            f"gatekeeper: --host {args.host} lets other machines put tasks and read results; "
            "--own-key-env asks them for a key",
            file=sys.stderr,
        )
    tasks = [] if args.tasks is None else read_tasks(args.tasks)
    verifier = _verifier(tasks, options)
    log = MemoryLog() if options.log is None else options.log
    try:
        gate = _gate(options, verifier, log)
    except LogMismatchError as e:
        raise BadInputError(mismatch_text(options.log, e)) from e
    with gate:
        known = Tasks(tasks, kinds=verifier.verifiers)
        asyncio.run(_serve(gate, log, known, settings, options, args))
        status = gate.status()
        print(
            f"gatekeeper: ended after {status.seen} outputs, "
            f"{status.verified + status.warmup_verified} verified, "
            f"{status.errors_found + status.warmup_errors} wrong",
            file=sys.stderr,
        )
    return 0


async def _serve(
    gate: VerificationGate,
    log: Path | PostgresRun | MemoryLog,
    tasks: Tasks,
    settings: GatewaySettings,
    options: RunOptions,
    args: argparse.Namespace,
) -> None:
    from gatekeeper.gateway.application import Gateway  # these need the extra
    from gatekeeper.gateway.metrics import Metrics
    from gatekeeper.gateway.server import serve
    from gatekeeper.page.access import Access
    from gatekeeper.page.application import PATH, LivePage
    from gatekeeper.page.watcher import Watcher

    access = Access(hosts=[args.host], private=settings.own_key is not None)
    page = LivePage(Watcher(log), access, report=gate.report_outcome)

    def ready(url: str) -> None:
        known = gate.status().seen
        found = f"; {known} outputs are in {options.log}" if known else ""
        print(
            f"gatekeeper: {url}/v1 is in front of {settings.upstream}; policy {options.policy}, "
            f"{len(tasks)} tasks{found}\n"
            f"gatekeeper: the live page, with the right to give verdicts: {url}{PATH}"
            f"?token={page.token}",
            file=sys.stderr,
            flush=True,
        )

    error_rate = None if options.log is None else LoggedErrorRate(options.log)
    metrics = Metrics(gate, error_rate=error_rate)
    gateway = Gateway(gate, tasks, settings, metrics, page)
    await serve(gateway, host=args.host, port=args.port, on_ready=ready)


def _gate(
    options: RunOptions, verifier: ByKind, log: Path | PostgresRun | MemoryLog
) -> VerificationGate:
    return VerificationGate(
        options.policy,
        goal=options.goal,
        budget=Budget(fraction=options.share, total=options.total, unit=options.unit),
        verifier=verifier,
        log=log,
        on_unavailable="pass",
        workers=options.workers,
        seed=options.seed,
        warmup=options.warmup,
        explore=options.explore,
        on_drift=options.on_drift,
        features=features_of(options.features),
    )


def _verifier(tasks: Sequence[Task], options: RunOptions) -> ByKind:
    """For the kinds of the task file, and for those that callers may put."""
    kinds = {str(task["kind"]) for task in tasks}
    if options.sandbox is not None:
        kinds.add("code")
    try:
        return verifier_of(kinds | {"math"}, sandbox=options.sandbox, maths=options.maths_checker)
    except MissingDependencyError:
        if "math" in kinds:
            raise
        return verifier_of(kinds, sandbox=options.sandbox)


def _key(option: str, name: str | None) -> str | None:
    if name is None:
        return None
    key = key_of(name)
    if key is None:
        raise BadInputError(f"{option} {name}: this environment variable is empty or not set")
    return key


def _is_loopback(host: str) -> bool:
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"
