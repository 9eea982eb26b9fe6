"""How many outputs a run will verify, and what that would cost (`--dry-run`)."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from math import floor
from pathlib import Path
from typing import Any, Protocol

from gatekeeper.budget import Budget
from gatekeeper.gate import VerificationGate
from gatekeeper.gate.resume import check_same
from gatekeeper.log import Log, MemoryLog, PostgresRun
from gatekeeper.log.opening import log_exists
from gatekeeper.log.run import Run, read_run
from gatekeeper.wording import counted, plural

__all__ = ["Planned", "RunPlan", "print_plan", "run_to_continue"]


class Planned(Protocol):
    """The options of a run that its plan depends on: `RunOptions`, `GateOptions`."""

    @property
    def goal(self) -> str: ...

    @property
    def warmup(self) -> int: ...

    @property
    def log(self) -> Path | PostgresRun | None: ...

    def budget_text(self) -> str:
        """The budget, as a user gave it."""


@dataclass(frozen=True, slots=True)
class RunPlan:
    """How many tasks are verified, the warm-up included.

    Parameters
    ----------
    tasks : int
    known : int
        Outputs that are in the log already.
    budget : Budget
        Budget of a run of so many tasks.
    options : RunOptions or GateOptions
    noun : str
        What a task is: "task", "sample".
    """

    tasks: int
    known: int
    budget: Budget
    options: Planned
    noun: str = "task"

    @property
    def warmup(self) -> int:
        """How many come first and are all verified."""
        if self.options.goal == "score":
            return 0
        total = self.budget.total
        capped = total is not None and self.budget.unit == "verifications"
        return min(self.tasks, self.options.warmup, *([floor(total)] if capped and total else []))

    @property
    def later(self) -> int | None:
        """Most that are verified after the warm-up; None with a budget in seconds."""
        budget, rest = self.budget, self.tasks - self.warmup
        if budget.unit != "verifications" and not (budget.fraction == 1.0 and not budget.total):
            return None
        most = float(rest) if budget.fraction is None else budget.fraction * rest
        if budget.fraction is not None and budget.horizon is None:
            most = min(most + 1, rest)  # the first is not to wait until a whole one has accrued
        if budget.total is not None:
            most = min(most, budget.total - self.warmup)
        return max(floor(most + 1e-9), 0)

    @property
    def most(self) -> int:
        """Most that are verified in all."""
        return self.warmup + (self.tasks - self.warmup if self.later is None else self.later)

    def __str__(self) -> str:
        tasks, warmup, later = self.tasks, self.warmup, self.later
        rest = tasks - warmup
        given = self.options.budget_text()
        if later is not None and warmup + later == tasks:
            why = f"--warmup {self.options.warmup}" if not rest else given
            text = f"{counted(tasks, self.noun)}, all of them verified ({why})"
        elif self.options.goal == "score":
            most = "as many as the seconds allow" if later is None else f"{later}"
            are = plural(later or 0, "is", "are")
            text = f"{counted(tasks, self.noun)}: {most} of them {are} drawn at random ({given})"
        else:
            are = plural(warmup, "is", "are")
            first = (
                f"{counted(tasks, self.noun)}: the first {warmup} {are} verified to warm up, then"
            )
            if later is None:
                text = f"{first} as many of the other {rest} as the seconds allow ({given})"
            else:
                text = f"{first} at most {later} of the other {rest} ({given}): {self.most} in all"
        known = f"{self.known} {plural(self.known, 'is', 'are')} in {self.options.log}"
        return f"{text}; {known}" if self.known else text


def run_to_continue(
    log: Path | PostgresRun | None, gate_with: Callable[[Log], VerificationGate]
) -> Run | None:
    """What the log has, which is only read; None if there is no log yet.

    Parameters
    ----------
    log : path, PostgresRun or None
    gate_with : callable
        Makes the gate that would continue it, with a log in memory.

    Raises
    ------
    LogMismatchError
        If the log was written with other settings.
    """
    run = None if log is None or not log_exists(log) else read_run(log)
    asked = MemoryLog()
    with gate_with(asked):
        pass
    if run is not None and run.outputs:
        check_same(run.settings, asked.settings())
    return run


def print_plan(
    plan: RunPlan,
    run: Run | None,
    *,
    kinds: Mapping[str, int] | None = None,
    others: int = 0,
    max_seconds: float | None = None,
    as_json: bool = False,
) -> None:
    """Print what `--dry-run` does.

    Parameters
    ----------
    plan : RunPlan
    run : Run or None
        What the log has.
    kinds : mapping or None
        How many tasks there are of each kind, for a run that generates the answers.
    others : int
        How many other answers each prompt gets, with which its output is compared.
    max_seconds : float or None
        The most that one verification takes, where the verifiers declare it.
    as_json : bool
        For programs.
    """
    outcomes = [] if run is None else [r.outcome for r in run.results.values() if r.outcome]
    mean = sum(o.seconds for o in outcomes) / len(outcomes) if outcomes else None
    to_verify = max(plan.most - len(outcomes), 0)
    to_generate = plan.tasks - plan.known
    found: dict[str, Any] = {
        f"{plan.noun}s": plan.tasks,
        **({} if kinds is None else {"kinds": kinds}),
        "answered": plan.known,
        **({} if kinds is None else {"to_generate": to_generate}),
        **({} if kinds is None else {"to_generate_for_comparison": others * to_generate}),
        "warmup": plan.warmup,
        "after_warmup_at_most": plan.later,
        "verified": len(outcomes),
        "to_verify_at_most": to_verify,
        "seconds_each": mean,
        "seconds_each_at_most": max_seconds,
    }
    if as_json:
        print(json.dumps(found, indent=2))
        return
    print(f"{plan}.")
    if kinds is not None:
        of_kinds = ", ".join(f"{count} {kind}" for kind, count in kinds.items())
        answers = counted(to_generate, "answer")
        if others:
            answers += f", and {others * to_generate:,} others to compare them with"
        print(f"Tasks: {of_kinds}. To generate: {answers}.")
    text = f"To verify: at most {to_verify}"
    if outcomes:
        text += f", beside the {len(outcomes)} that the log has"
    print(f"{text}.{_cost(to_verify, mean, max_seconds)}")
    print("Nothing was generated, verified or written (--dry-run).")


def _cost(count: int, mean: float | None, max_seconds: float | None) -> str:
    if not count:
        return ""
    if mean is not None:
        return f" About {count * mean:.3g} s of verification, at {mean:.2g} s each in the log."
    if max_seconds is not None:
        return (
            f" At most {count * max_seconds:,.0f} s of verification, at {max_seconds:g} s each; "
            "usually far less."
        )
    return ""
