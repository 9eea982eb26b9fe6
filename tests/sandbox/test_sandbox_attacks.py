"""The attack suite in real sandboxes: no false pass, no false fail, no hang, nothing left behind.

Each lane is a sandbox of one worker, so that an honest program after an attack gets the very worker
that was attacked.
"""

from __future__ import annotations

import os
import re
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager
from dataclasses import dataclass
from functools import partial

import pytest
from attacks import PROGRAMS, Program
from attacks.program import SQUARES
from busy_machine import settled
from sandboxes import PATIENCE

from gatekeeper.errors import SandboxUnavailableError
from gatekeeper.sandbox import DockerSandbox, LocalSandbox
from gatekeeper.types import Generation, Outcome, Verdict

LIMIT = 1.0  # seconds for a candidate: some spin until its end
LANES = 2
CONTROL = "def f(x):\n    return x * x\n"
PROCESSES = 64
BACKENDS: Mapping[str, Callable[..., DockerSandbox | LocalSandbox]] = {
    "docker": partial(DockerSandbox, timeout=LIMIT, workers=1),
    "namespaces": partial(LocalSandbox, isolation="namespaces", timeout=LIMIT, workers=1),
    "landlock": partial(LocalSandbox, isolation="landlock", timeout=LIMIT, workers=1),
}
# Back ends judge tests in the same way; only their isolation differs. So CI runs the whole corpus
# on one back end, and on the others only programs that depend on isolation: such attacks, each in
# one shape, and honest programs that use the machine.
WHOLE = os.environ.get("GATEKEEPER_CORPUS_ON", "docker namespaces").split()
FENCE = ("resources", "isolation", "hosts")
# An honest program runs after each attack on these; of others, which only compute, after every
# fifth: CI has two cores.
CONTROLLED = 5
ONCE = {p.code + p.after: p.name for p in reversed(PROGRAMS) if p.family in FENCE}.values()
JUDGED = {p.twin for p in PROGRAMS if p.family not in (*FENCE, "honest")}
MACHINE = re.compile(
    r"\b(asyncio|concurrent|ctypes|io|logging|multiprocessing|numpy|open|os|pathlib|random|resource|"
    r"select|signal|socket|subprocess|sys|tempfile|threading|time|tmp_path)\b"
)


def tries_fence(program: Program) -> bool:
    if not program.honest:
        return program.name in ONCE
    asks = MACHINE.search(f"{program.code} {program.task}")
    return program.name not in JUDGED and asks is not None


CASES = [
    pytest.param(backend, program, id=f"{backend}-{program}")
    for backend in BACKENDS
    for program in PROGRAMS
    if backend in WHOLE or tries_fence(program)
]


@dataclass(frozen=True, slots=True)
class Result:
    """The result of a program; `seconds` are measured around `verify`."""

    outcome: Outcome
    seconds: float
    control: Outcome | None  # of an honest program right after an attack


@pytest.fixture(scope="session")
def results(
    request: pytest.FixtureRequest,
    backend: str,
    generation: Callable[[str], Generation],
    crowded: Callable[[str], AbstractContextManager[int]],
) -> dict[str, Result]:
    """All the programs that are asked for, run in lanes side by side."""
    with crowded(backend) as others:
        return _results(request, backend, generation, others)


def _results(
    request: pytest.FixtureRequest,
    backend: str,
    generation: Callable[[str], Generation],
    others: int,
) -> dict[str, Result]:
    count = 1 if others else LANES  # a fork bomb in one would leave nothing to the other
    calls = [item.callspec.params for item in request.session.items if hasattr(item, "callspec")]
    ours = [call for call in calls if call.get("backend") == backend]
    asked = {call["program"].name for call in ours if "program" in call}
    asking = [program for program in PROGRAMS if program.name in asked]
    once: dict[tuple[str, ...], Program] = {}
    for program in asking:
        once.setdefault(program.run, program)
    chosen = [*once.values()]
    try:
        lanes = [BACKENDS[backend](processes=PROCESSES + others) for _ in range(count)]
    except SandboxUnavailableError as error:
        pytest.skip(f"{backend}: {error}")

    def run(lane: DockerSandbox | LocalSandbox, programs: Sequence[Program]) -> Iterator[Result]:
        with lane:
            for number, program in enumerate(programs):
                if program.after:
                    lane.verify(generation(program.after), SQUARES["literal"])
                started = time.monotonic()
                try:
                    code = generation(program.code)
                    outcome = settled(partial(lane.verify, code, program.task))
                except Exception as error:  # nothing that a candidate does may raise
                    outcome = Outcome(Verdict.INFRA_ERROR, detail=f"raised {error!r}")
                seconds = time.monotonic() - started
                control = None
                if not program.honest and (program.family in FENCE or number % CONTROLLED == 0):
                    control = lane.verify(generation(CONTROL), SQUARES["literal"])
                yield Result(outcome, seconds, control)

    parts = [chosen[n::count] for n in range(count)]
    started = time.monotonic()
    with ThreadPoolExecutor(count) as threads:
        done = threads.map(lambda lane, part: list(run(lane, part)), lanes, parts)
        ran = {
            program.run: result
            for part, results in zip(parts, done, strict=True)
            for program, result in zip(part, results, strict=True)
        }
    found = {program.name: ran[program.run] for program in asking}
    capture = request.config.pluginmanager.getplugin("capturemanager")
    with capture.global_and_fixture_disabled():
        print(f"\n{_summary(backend, chosen, found)}; {time.monotonic() - started:.0f} s")
    return found


def _summary(backend: str, chosen: Sequence[Program], found: Mapping[str, Result]) -> str:
    hostile = [p for p in chosen if not p.honest]
    verdicts = Counter(str(found[p.name].outcome.verdict) for p in hostile)
    right = sum(found[p.name].outcome.verdict == "passed" for p in chosen if p.honest)
    slowest = max(chosen, key=lambda p: found[p.name].seconds)
    return (
        f"{backend}: {len(hostile)} attacks ({len({p.code for p in hostile})} programs): "
        f"{dict(verdicts)}; {right} of {len(chosen) - len(hostile)} honest ones passed; slowest "
        f"{found[slowest.name].seconds:.1f} s ({slowest})"
    )


@pytest.mark.parametrize(("backend", "program"), CASES, scope="session")
def test_program(backend: str, program: Program, results: dict[str, Result]) -> None:
    if reason := program.unless.get(backend):
        pytest.skip(f"not promised: {reason}")
    found = results[program.name]
    # These back ends have no packages: tests that need one cannot be judged.
    right = {*program.verdicts, *(["infra_error"] if program.needs else [])}
    assert str(found.outcome.verdict) in right, found.outcome
    if found.outcome.verdict == "infra_error" and (twin := results.get(program.twin)):
        # Then the tests cannot be judged, whatever the candidate does.
        assert twin.outcome.verdict == "infra_error", (found.outcome, twin.outcome)
    if program.evaluation:
        assert found.outcome.meta["evaluation"] == program.evaluation
    assert found.seconds < PATIENCE, found.outcome
    assert found.control is None or found.control.verdict == "passed", found.control
