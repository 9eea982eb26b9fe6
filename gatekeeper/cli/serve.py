"""`gatekeeper serve`: the gate as a gateway in front of an OpenAI-compatible API."""

from __future__ import annotations

import argparse
import asyncio
import re
import secrets
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace
from functools import partial
from importlib.util import find_spec
from ipaddress import ip_address
from pathlib import Path
from typing import TYPE_CHECKING

from gatekeeper.budget import Budget
from gatekeeper.errors import BadInputError, LogMismatchError, MissingDependencyError
from gatekeeper.features import features_of, samples_of
from gatekeeper.gate import VerificationGate
from gatekeeper.gateway.settings import GatewaySettings
from gatekeeper.gateway.tasks import Tasks, TaskStore
from gatekeeper.gateway.termination import Termination
from gatekeeper.gateway.workers import Supervisor, Worker
from gatekeeper.io.tasks import Task, read_tasks
from gatekeeper.listening import listening_sockets
from gatekeeper.log import MemoryLog, PostgresRun
from gatekeeper.log_mismatch import settings_as_options
from gatekeeper.programs.command_options import add_serve
from gatekeeper.programs.exit_code import exit_code_of
from gatekeeper.programs.group_caps import caps_given
from gatekeeper.programs.run_options import RunOptions, run_options_of
from gatekeeper.programs.task_verifier import verifier_of, verifiers_by_kind
from gatekeeper.programs.telemetry import sinks_of
from gatekeeper.programs.values import key_of, shown_variable
from gatekeeper.protocols import Sink
from gatekeeper.telemetry.error_rate import LoggedErrorRate
from gatekeeper.types import GateStatus, SharedStatus
from gatekeeper.verifiers import ByKind
from gatekeeper.wording import counted

if TYPE_CHECKING:
    from gatekeeper.gateway.route import Route

__all__ = ["add", "main"]

KEY_OPTION = "--upstream-key-env"


def add(parser: argparse.ArgumentParser) -> None:
    parser.description = (
        "A gateway in front of an OpenAI-compatible API: give its URL to your client in place of "
        "the API's. It decides on every answer and verifies the selected ones within the budget."
    )
    add_serve(parser)
    parser.set_defaults(run=main)


def main(args: argparse.Namespace) -> int:
    """Serves until SIGTERM; returns 0.

    Raises
    ------
    GatekeeperError
        For impossible options, a log of another gate, an address that cannot be used.
    """
    for package in ("aiohttp", "prometheus_client"):
        if find_spec(package) is None:
            raise MissingDependencyError(package, extra="serve", needed_for="gatekeeper serve")
    if args.upstream is None:
        raise BadInputError("--upstream is missing: give the API's base URL")
    plan = _plans(args)[0]
    if args.workers > 1 and not plan.options.shared:
        raise BadInputError(
            f"--workers {args.workers}: several processes need a log that they can share: give "
            "--log postgresql://USER@HOST/DATABASE --run NAME --shared"
        )
    work = partial(_work, args, secrets.token_urlsafe(32))
    with ExitStack() as stack:
        sockets = listening_sockets(args.host, args.port)
        for opened in sockets:
            stack.enter_context(opened)
        if plan.settings.own_key is None and not _is_loopback(args.host):
            _print(
                f"gatekeeper: --host {args.host} lets other machines put tasks and read results; "
                "--own-key-env asks them for a key"
            )
        if args.workers == 1:
            return work(Worker(1, sockets, None))
        supervisor = Supervisor(partial(_in_process, work), args.workers, sockets, _print)
        code = supervisor.run()
    if supervisor.last:  # each one's counts include recent events of the others
        _print(_ended(*map(max, zip(*supervisor.last, strict=True))))
    return code


def _in_process(work: Callable[[Worker], int], worker: Worker) -> int:
    return exit_code_of(lambda: work(worker))


def _work(args: argparse.Namespace, token: str, worker: Worker) -> int:
    """The work of one process."""
    plans = _plans(args)
    options = plans[0].options
    tasks = [] if args.tasks is None else read_tasks(args.tasks)
    verifier = _verifier(tasks, options)
    with ExitStack() as stack:
        sinks = stack.enter_context(sinks_of(options.telemetry))
        termination = stack.enter_context(Termination(worker.supervisor))
        gates = []
        for plan in plans:
            with _about(plan.name, plan.elsewhere):
                gate = _gate(plan.options, verifier, plan.log, sinks)
            gates.append(stack.enter_context(gate))
        store = stack.enter_context(_store(plans[0]))
        known = Tasks(tasks, kinds=verifier.verifiers, store=store)
        if termination.came:
            return 0
        from gatekeeper.gateway.application import Gateway  # these need the extra
        from gatekeeper.gateway.server import serve

        routes = _routes(plans, gates, args.host, token)
        number = worker.number if args.workers > 1 else None
        gateway = Gateway(routes[0], known, routes[1:], worker=number)

        def ready(url: str) -> None:
            text = _ready_text(plans, routes, url, tasks=len(known), processes=args.workers)
            _report(worker, text)

        asyncio.run(serve(gateway, worker.sockets, termination=termination, on_ready=ready))
        _report(worker, _figures([gate.status() for gate in gates]))
    return 0


def _report(worker: Worker, message: str | tuple[int, int, int]) -> None:
    """Print a text or the figures of the end, or leave that to the supervisor."""
    if worker.supervisor is not None:
        worker.say(message)
    else:
        _print(message if isinstance(message, str) else _ended(*message))


def _figures(found: Sequence[GateStatus]) -> tuple[int, int, int]:
    """The outputs of all gates: seen, verified, wrong."""
    return (
        sum(status.seen for status in found),
        sum(status.verified + status.warmup_verified for status in found),
        sum(status.errors_found + status.warmup_errors for status in found),
    )


def _ended(seen: int, verified: int, wrong: int) -> str:
    return f"gatekeeper: ended after {counted(seen, 'output')}, {verified} verified, {wrong} wrong"


def _print(text: str) -> None:
    print(text, file=sys.stderr, flush=True)


def _routes(
    plans: Sequence[_Plan], gates: Sequence[VerificationGate], host: str, token: str
) -> list[Route]:
    from gatekeeper.gateway.route import Route  # these need the extra
    from gatekeeper.page.access import Access
    from gatekeeper.page.application import PATH, LivePage
    from gatekeeper.page.watcher import Watcher

    private = plans[0].settings.own_key is not None
    access = Access(hosts=[host], private=private, token=token)
    return [
        Route(
            gate=gate,
            settings=plan.settings,
            name=plan.name,
            models=plan.models,
            page=LivePage(
                Watcher(plan.log, shared=partial(_shared, gate)),
                access,
                report=gate.report_outcome,
                path=f"{PATH}routes/{plan.name}/" if plan.name else PATH,
            ),
            error_rate=None if plan.options.log is None else LoggedErrorRate(plan.options.log),
        )
        for plan, gate in zip(plans, gates, strict=True)
    ]


def _ready_text(
    plans: Sequence[_Plan], routes: Sequence[Route], url: str, *, tasks: int, processes: int
) -> str:
    """The lines to print when the gateway serves: one for each route, and one for its page."""
    of_all = f", {counted(tasks, 'task')}"
    if processes > 1:
        of_all += f", {counted(processes, 'process')}"
    lines = [
        _route_line(plan, url, "" if plan.name else of_all, outputs=route.gate.status().seen)
        for plan, route in zip(plans, routes, strict=True)
    ]
    lines += [
        f"the live page{f' of route {route.name}' if route.name else ''}, with the right to "
        f"give verdicts: {url}{route.page.path}?token={route.page.token}"
        for route in routes
        if route.page is not None
    ]
    return "\n".join(f"gatekeeper: {line}" for line in lines)


def _route_line(plan: _Plan, url: str, more: str, *, outputs: int) -> str:
    """A route with its policy, `more` facts, and the outputs that its log already has."""
    resumed = f"; {counted(outputs, 'output')} in {plan.options.log}" if outputs else ""
    return f"{plan.upstream_text(url)}; policy {plan.options.policy}{more}{resumed}"


def _shared(gate: VerificationGate) -> SharedStatus | None:
    return gate.status().shared


@dataclass(frozen=True, slots=True, kw_only=True)
class _Plan:
    """A route that is not open yet; the first is the gateway's own, without a name."""

    name: str
    models: Sequence[str]
    options: RunOptions
    settings: GatewaySettings
    log: Path | PostgresRun | MemoryLog
    elsewhere: Mapping[str, str]  # as of a `RouteTable`

    def upstream_text(self, url: str) -> str:
        """The upstream of calls, in words."""
        is_v1 = self.settings.root != self.settings.upstream.rstrip("/")
        where = f"{url}/v1" if is_v1 else url
        if self.name:
            where = f"route {self.name}, models {', '.join(self.models)}"
        return f"{where} is in front of {self.settings.upstream}"


def _plans(args: argparse.Namespace) -> list[_Plan]:
    """The gateway's own route, and those of its file.

    Raises
    ------
    BadInputError
        For options that exclude each other.
    """
    plans = [_plan("", ["*"], args, {})]
    for table, of_route in args.routes:
        has_key = any(given.startswith(f"{KEY_OPTION}=") for given in table.arguments)
        if of_route.upstream != args.upstream and not has_key:
            of_route.upstream_key_env = None  # the gateway's key is for its own upstream
        with _about(table.name, table.elsewhere):
            plans.append(_plan(table.name, table.models, of_route, table.elsewhere))
    return plans


@contextmanager
def _about(route: str, elsewhere: Mapping[str, str]) -> Iterator[None]:
    """Errors inside name the route, and where the options stand that its table does not have.

    "" is the gateway's own route, whose options are at the top.
    """
    try:
        yield
    except (BadInputError, LogMismatchError) as e:
        if not route:
            raise
        named = dict.fromkeys(re.findall("--[a-z-]+", str(e)))
        where = "".join(f"; {n} is {elsewhere[n]}" for n in named if n in elsewhere)
        raise BadInputError(f"route {route!r}: {e}{where}") from e


def _plan(
    name: str, models: Sequence[str], args: argparse.Namespace, elsewhere: Mapping[str, str]
) -> _Plan:
    options = run_options_of(args)
    if samples_of(options.features):
        raise BadInputError(
            f"--features {options.features}: callers ask the model, and agreement compares further "
            "samples that only gatekeeper run can draw: leave it out"
        )
    if name:
        options = replace(options, log=_log_of_route(options.log, name))
    settings = GatewaySettings(
        upstream=args.upstream,
        wait=args.wait,
        on_failed=args.on_failed,
        upstream_key=_key(KEY_OPTION, args.upstream_key_env),
        own_key=_key("--own-key-env", args.own_key_env),
        grace=args.grace,
        traced=options.telemetry is not None,
    )
    log = MemoryLog() if options.log is None else options.log
    return _Plan(
        name=name,
        models=models,
        options=options,
        settings=settings,
        log=log,
        elsewhere=elsewhere,
    )


def _log_of_route(log: Path | PostgresRun | None, name: str) -> Path | PostgresRun | None:
    """Beside the gateway's own: a log has one gate. `gateway.small.db`, or run `gateway.small`."""
    if isinstance(log, PostgresRun):
        return PostgresRun(log.dsn, f"{log.name}.{name}")
    return None if log is None else log.with_name(f"{log.stem}.{name}{log.suffix}")


def _gate(
    options: RunOptions,
    verifier: ByKind,
    log: Path | PostgresRun | MemoryLog,
    sinks: Sequence[Sink],
) -> VerificationGate:
    with settings_as_options(options.log, outputs="outputs", own={}):
        return VerificationGate(
            options.policy,
            goal=options.goal,
            budget=Budget(
                fraction=options.share,
                total=options.total,
                unit=options.unit,
                groups=caps_given(options.budget_groups),
            ),
            verifier=verifier,
            log=log,
            shared=options.shared,
            on_unavailable="pass",
            workers=options.threads,
            seed=options.seed,
            warmup=options.warmup,
            explore=options.explore,
            on_drift=options.on_drift,
            features=features_of(options.features),
            telemetry=tuple(sinks),
        )


@contextmanager
def _store(plan: _Plan) -> Iterator[TaskStore | None]:
    """Stores the tasks that callers send; None if there is only one process."""
    if not (plan.options.shared and isinstance(plan.log, PostgresRun)):
        yield None
        return
    from gatekeeper.log.postgres_tasks import PostgresTasks  # needs the extra

    store = PostgresTasks(plan.log)
    try:
        yield store
    finally:
        store.close()


def _verifier(tasks: Sequence[Task], options: RunOptions) -> ByKind:
    """For the kinds of the task file, and for those that callers may put."""
    kinds = {str(task["kind"]) for task in tasks}
    if options.sandbox is not None:
        kinds.add("code")
    names = verifiers_by_kind(
        kinds | {"math"}, sandbox=options.sandbox, maths=options.maths_checker
    )
    try:
        return verifier_of(names)
    except MissingDependencyError:
        if "math" in kinds:
            raise
        del names["math"]
        return verifier_of(names)


def _key(option: str, name: str | None) -> str | None:
    if name is None:
        return None
    key = key_of(name)
    if key is None:
        shown = shown_variable(name)
        raise BadInputError(f"{option} {shown}: this environment variable is empty or not set")
    return key


def _is_loopback(host: str) -> bool:
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"
