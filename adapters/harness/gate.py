"""The gate of a harness run: its options, and a gate whose tasks are the checks themselves."""

from __future__ import annotations

import argparse
from collections.abc import Callable, Mapping
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any

from gatekeeper.arguments import check_count
from gatekeeper.budget import DEFAULT_FRACTION, Budget, budget_text, fraction_of
from gatekeeper.errors import BadInputError
from gatekeeper.gate import VerificationGate
from gatekeeper.log import Log
from gatekeeper.option_values import number, whole
from gatekeeper.policies import DEFAULT_POLICY, T0, Goal, policy_names
from gatekeeper.types import Generation, Outcome
from gatekeeper.wording import choose

__all__ = ["Check", "Checks", "GateOptions", "add_options", "open_gate", "options_of"]

Check = Callable[[], Outcome]
OF_ERRORS = ("policy", "warmup", "explore")  # without effect with the goal "score"


class Checks:
    """A verifier whose task is the check itself: a function without arguments."""

    def verify(self, generation: Generation, task: Check) -> Outcome:
        return task()


@dataclass(frozen=True, slots=True, kw_only=True)
class GateOptions:
    """The options of the gate in a harness run.

    Parameters
    ----------
    goal : {"score", "errors"}
        Estimate the score of all outputs, or find wrong ones.
    policy : str or None
        Name of a policy that finds errors; None: the usual one for the goal.
    budget : float or None
        Share of the outputs that may be verified, in (0, 1]; with the goal "errors" of those after
        the warm-up, which are all verified. None: 0.2, unless there is a total.
    total : int or None
        Most verifications, the warm-up included; alone or beside the budget.
    warmup : int
        With the goal "errors": number of the first outputs, which are all verified.
    explore : float
        With the goal "errors": share of the budget that is drawn uniformly at random, in [0, 1).
        The estimates for all outputs need it.
    seed : int
        Seed of the draws.
    log : Path or None
        SQLite file to write or to resume; None keeps everything in memory.

    Raises
    ------
    BadInputError
        For a total or a warm-up that is no count. What else cannot be used, the gate refuses.
    """

    goal: Goal = "score"
    policy: str | None = None
    budget: float | None = None
    total: int | None = None
    warmup: int = T0
    explore: float = 0.1
    seed: int = 0
    log: Path | None = None

    def __post_init__(self) -> None:
        if self.total is not None:
            check_count("total", self.total)
        check_count("warmup", self.warmup)

    def check_goal(self, given: str) -> None:
        """Check that each option serves the goal.

        Parameters
        ----------
        given : str
            How an option is given with its value, for the message: "--{} {}", "-S {}={}".

        Raises
        ------
        BadInputError
            For an option that would have no effect.
        """
        for name in OF_ERRORS if self.goal == "score" else ():
            value = getattr(self, name)
            if value != getattr(GateOptions(), name):
                raise BadInputError(
                    f"{given.format(name, value)} is for finding errors: add "
                    f"{given.format('goal', 'errors')}, or leave it out to estimate the score"
                )

    def budget_of(self, outputs: int | None) -> Budget:
        """The budget for that many outputs; None: it is not known how many there will be.

        Raises
        ------
        BadInputError
            For a total that leaves nothing after the warm-up, or that cannot be used.
        """
        share = fraction_of(
            self.total,
            self.budget,
            outputs=outputs,
            warmup=self.warmup if self.goal == "errors" else 0,
            total_name="total=",
            warmup_name="",
        )
        return Budget(fraction=share, total=self.total, horizon=outputs)

    def budget_text(self) -> str:
        """The budget, as a user gave it."""
        return budget_text(self.total, self.budget)


def add_options(parser: argparse._ActionsContainer, prefix: str = "--") -> None:
    """Add an option to the parser for each field of `GateOptions`: `prefix` and its name."""
    defaults = GateOptions()

    def add(name: str, **options: Any) -> None:
        default = getattr(defaults, name)
        parser.add_argument(prefix + name, dest=f"gate_{name}", default=default, **options)

    add(
        "budget",
        type=number("(0, 1]"),
        metavar="SHARE",
        help=f"share of the outputs to verify (default: {DEFAULT_FRACTION}, unless there is a "
        "total)",
    )
    add(
        "total",
        type=whole(1),
        metavar="N",
        help="most verifications, the warm-up included (default: no limit but the budget)",
    )
    add(
        "goal",
        choices=["score", "errors"],
        help="estimate the score of all outputs, or find wrong ones (default: %(default)s)",
    )
    add(
        "policy",
        type=_policy,
        metavar="NAME",
        help=f"with the goal errors: one of {', '.join(policy_names())} "
        f"(default: {DEFAULT_POLICY})",
    )
    add(
        "warmup",
        type=whole(1),
        metavar="N",
        help="with the goal errors: the first N outputs, which are all verified (default: "
        "%(default)s)",
    )
    add(
        "explore",
        type=number("[0, 1)"),
        metavar="SHARE",
        help="with the goal errors: share of the budget drawn at random, for the estimates "
        "(default: %(default)s)",
    )
    add("log", type=Path, metavar="FILE", help="SQLite file to write or to resume")
    add("seed", type=whole(0), metavar="N", help="seed of the random draws (default: %(default)s)")


def options_of(args: argparse.Namespace, prefix: str = "--") -> GateOptions:
    """The options that `add_options` has parsed.

    Raises BadInputError for an option that does not serve the goal.
    """
    options = GateOptions(**{f.name: getattr(args, f"gate_{f.name}") for f in fields(GateOptions)})
    options.check_goal(prefix + "{} {}")
    return options


def open_gate(
    options: GateOptions,
    *,
    horizon: int,
    settings: Mapping[str, Any],
    workers: int = 1,
    log: Log | None = None,
) -> VerificationGate:
    """A gate that runs checks.

    Parameters
    ----------
    options : GateOptions
    horizon : int
        How many outputs there will be.
    settings : mapping
        What else decides the run's results; a log of a run with other settings is refused.
    workers : int
        Checks at the same time.
    log : Log or None
        An open one in place of the options'.

    Raises
    ------
    GatekeeperError
        What `VerificationGate` raises.
    """
    return VerificationGate(
        options.policy,
        budget=options.budget_of(horizon),
        verifier=Checks(),
        log=options.log if log is None else log,
        on_unavailable="pass",
        workers=workers,
        seed=options.seed,
        settings=settings,
        warmup=options.warmup,
        explore=options.explore,
        goal=options.goal,
    )


def _policy(text: str) -> str:
    if text not in policy_names():
        raise argparse.ArgumentTypeError(f"{text!r} is unknown: {choose(text, policy_names())}")
    return text
