"""How many outputs a run will verify, and what that would cost (`--dry-run`)."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from math import floor
from typing import Any

from gatekeeper.budget import Budget
from gatekeeper.io.tasks import Task
from gatekeeper.log.run import Run
from gatekeeper.programs.run_options import RunOptions
from gatekeeper.wording import counted, plural

__all__ = ["RunPlan", "print_plan"]


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
    options : RunOptions
    """

    tasks: int
    known: int
    budget: Budget
    options: RunOptions

    @property
    def warmup(self) -> int:
        """How many come first and are all verified."""
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
            text = f"{counted(tasks, 'task')}, all of them verified ({why})"
        elif self.options.goal == "score":
            most = "as many as the seconds allow" if later is None else f"{later}"
            are = plural(later or 0, "is", "are")
            text = f"{counted(tasks, 'task')}: {most} of them {are} drawn at random ({given})"
        else:
            are = plural(warmup, "is", "are")
            first = f"{counted(tasks, 'task')}: the first {warmup} {are} verified to warm up, then"
            if later is None:
                text = f"{first} as many of the other {rest} as the seconds allow ({given})"
            else:
                text = f"{first} at most {later} of the other {rest} ({given}): {self.most} in all"
        known = f"{self.known} {plural(self.known, 'is', 'are')} in {self.options.log}"
        return f"{text}; {known}" if self.known else text


def print_plan(
    plan: RunPlan, tasks: Sequence[Task], run: Run | None, max_seconds: float | None
) -> None:
    """Print what `--dry-run` does.

    Parameters
    ----------
    plan : RunPlan
    tasks : sequence of Task
    run : Run or None
        What the log has.
    max_seconds : float or None
        The most that one verification takes, where the verifiers declare it.
    """
    outcomes = [] if run is None else [r.outcome for r in run.results.values() if r.outcome]
    mean = sum(o.seconds for o in outcomes) / len(outcomes) if outcomes else None
    to_verify = max(plan.most - len(outcomes), 0)
    found: dict[str, Any] = {
        "tasks": plan.tasks,
        "kinds": dict(Counter(str(task["kind"]) for task in tasks)),
        "answered": plan.known,
        "to_generate": plan.tasks - plan.known,
        "warmup": plan.warmup,
        "after_warmup_at_most": plan.later,
        "verified": len(outcomes),
        "to_verify_at_most": to_verify,
        "seconds_each": mean,
        "seconds_each_at_most": max_seconds,
    }
    if plan.options.json:
        print(json.dumps(found, indent=2))
        return
    kinds = ", ".join(f"{count} {kind}" for kind, count in found["kinds"].items())
    print(f"{plan}.")
    print(f"Tasks: {kinds}. To generate: {counted(found['to_generate'], 'answer')}.")
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
