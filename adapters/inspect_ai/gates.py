"""One gate for each evaluation, and its log."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from inspect_ai._util.error import PrerequisiteError
from inspect_ai.hooks import Hooks, RunEnd, hooks
from rich.markup import escape

from gatekeeper.adapters.harness.gate import GateOptions
from gatekeeper.adapters.harness.ordered_queue import OrderedQueue
from gatekeeper.adapters.inspect_ai.hooks import Run
from gatekeeper.errors import BadInputError, GatekeeperError
from gatekeeper.gate import VerificationGate
from gatekeeper.log_mismatch import OUTPUTS, settings_as_options

__all__ = ["CloseGates", "checked_options", "log_of", "one_line", "queue_of"]

SUFFIX = ".db"  # of a file; every other path is a folder

_open: dict[Path, tuple[Any, OrderedQueue]] = {}  # by log, with its settings


@contextmanager
def one_line() -> Iterator[None]:
    """Raise errors of the gate as the kind that Inspect prints in one line."""
    try:
        yield
    except GatekeeperError as e:
        raise PrerequisiteError(escape(f"gatekeeper: {e}")) from e


def log_of(given: str | None, run: Run | None) -> Path:
    """The gate's log for an evaluation.

    A retry of the evaluation has the same one; another evaluation has another.

    Parameters
    ----------
    given : str or None
        What the user named: a file, or a folder for a file of each evaluation; None: the folder of
        Inspect's own log.
    run : Run or None
        The running evaluation; None: `inspect score` reads a log.

    Raises
    ------
    BadInputError
        If no place for the log is known.
    """
    if given is not None and Path(given).suffix == SUFFIX:
        return Path(given).resolve()
    if run is None:
        raise BadInputError(
            "-S log is needed, a file for each eval log: for example -S log=logs/NAME.db"
            if given is None
            else f"-S log={given}: give the name of a file that ends in {SUFFIX}"
        )
    folder = run.folder if given is None else Path(given).resolve()
    if folder is None:
        raise BadInputError(f"Inspect's log is {run.log}: name a local folder with log=...")
    folder.mkdir(parents=True, exist_ok=True)
    name = re.sub(r"[^\w.-]+", "-", run.name)
    return folder / f"{name}_{run.task_id}{SUFFIX}"


def checked_options(scoring: dict[str, Any], **given: Any) -> GateOptions:
    """The options. Raises what a gate with these raises, before anything is scored."""
    names = {"fraction": "-S budget"} | {
        name: f"-S {name}" for name in ("total", "policy", "warmup", "explore")
    }
    try:
        options = GateOptions(**given)
        _gate(options, scoring, 1000).close()
    except BadInputError as e:
        name, equals, rest = str(e).partition("=")
        raise BadInputError(f"{names.get(name, name)}{equals}{rest}") from e
    options.check_goal("-S {}={}")
    return options


def queue_of(options: GateOptions, scoring: dict[str, Any], horizon: int | None) -> OrderedQueue:
    """The queue of the gate with this log: one per process, also where a program scores twice.

    Raises
    ------
    BadInputError
        If another scorer is using the log.
    """
    assert options.log is not None
    settings = (options, scoring, horizon)
    known, queue = _open.get(options.log, (None, None))
    if queue is not None and known != settings:
        if not queue.idle:
            raise BadInputError(
                f"log={str(options.log)!r}: another scorer uses it: give each scorer its own log"
            )
        queue.gate.close()
        queue = None
    if queue is None:
        queue = OrderedQueue(_gate(options, scoring, horizon))
        _open[options.log] = (settings, queue)
    return queue


@hooks(name="gates", description="closes the logs of gatekeeper's scorers")
class CloseGates(Hooks):  # type: ignore[misc]  # untyped where it is not installed
    """Closes the gates at the end of a run; the next one opens their logs again."""

    async def on_run_end(self, data: RunEnd) -> None:
        for path, (_, queue) in list(_open.items()):
            if queue.idle:
                queue.gate.close()
                del _open[path]


def _gate(options: GateOptions, scoring: dict[str, Any], horizon: int | None) -> VerificationGate:
    """A gate without a verifier: Inspect runs the scorer, and its verdicts are reported."""
    own = {name: f"-S {name}" for name in ("scorer", "passing", "key")}
    with settings_as_options(
        options.log,
        outputs="samples (another evaluation, --limit or --epochs)",
        own=own | {"arguments": "arguments of the scorer", "task": OUTPUTS},
        prefix="-S ",
    ):
        return VerificationGate(
            options.policy,
            budget=options.budget_of(horizon),
            log=options.log,
            seed=options.seed,
            warmup=options.warmup,
            explore=options.explore,
            goal=options.goal,
            settings=scoring,
        )
