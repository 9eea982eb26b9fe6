"""What the plug-ins for eval harnesses share: their options, a gate over checks, the report."""

from __future__ import annotations

import argparse
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, fields
from pathlib import Path
from typing import Any

from gatekeeper.analysis.estimates import Estimates, as_json, estimate, show
from gatekeeper.analysis.summary import Summary, summarise
from gatekeeper.budget import Budget
from gatekeeper.errors import BadInputError
from gatekeeper.gate import VerificationGate
from gatekeeper.policies import policy_names
from gatekeeper.types import GateResult, Generation, Outcome

__all__ = [
    "Check",
    "Checks",
    "GateOptions",
    "Report",
    "add_options",
    "open_gate",
    "options_of",
    "report_of",
]

Check = Callable[[], Outcome]


class Checks:
    """A verifier whose task is the check itself, closed over all that it needs."""

    def verify(self, generation: Generation, task: Check) -> Outcome:
        return task()


@dataclass(frozen=True, slots=True, kw_only=True)
class GateOptions:
    """How a harness run is gated.

    budget    share of the outputs after the warm-up that may be verified, in (0, 1]
    explore   share of the budget that is drawn uniformly at random, in [0, 1): what the estimates
              for the whole set stand on
    log       SQLite file to write or to resume; None keeps everything in memory
    """

    policy: str = "cst"
    budget: float = 0.2
    explore: float = 0.1
    seed: int = 0
    log: Path | None = None


def add_options(parser: argparse._ActionsContainer, prefix: str = "--") -> None:
    """The options of `GateOptions`, each under `prefix` and its name."""
    defaults = GateOptions()

    def add(name: str, **how: Any) -> None:
        default = getattr(defaults, name)
        parser.add_argument(prefix + name, dest=f"gate_{name}", default=default, **how)

    add("budget", type=float, metavar="SHARE", help="share to verify (default: %(default)s)")
    add("policy", help=f"one of {', '.join(policy_names())} (default: %(default)s)")
    add(
        "explore",
        type=float,
        metavar="SHARE",
        help="share of the budget drawn at random, for the estimates (default: %(default)s)",
    )
    add("log", type=Path, metavar="FILE", help="SQLite file to write or to resume")
    add("seed", type=int, help="of the policy's draws (default: %(default)s)")


def options_of(args: argparse.Namespace) -> GateOptions:
    return GateOptions(**{f.name: getattr(args, f"gate_{f.name}") for f in fields(GateOptions)})


def open_gate(
    options: GateOptions, *, horizon: int, settings: Mapping[str, Any], workers: int = 1
) -> VerificationGate:
    """A gate that runs checks, on `horizon` outputs. Raises what `VerificationGate` raises."""
    return VerificationGate(
        options.policy,
        budget=Budget(fraction=options.budget, horizon=horizon),
        verifier=Checks(),
        log=options.log,
        on_unavailable="pass",
        workers=workers,
        seed=options.seed,
        settings=settings,
        explore=options.explore,
    )


@dataclass(frozen=True, slots=True)
class Report:
    """What a gated run has to say, for people (`lines`) and for programs (`as_json`)."""

    selected: Sequence[str]  # ids, in order
    summary: Summary
    estimates: Estimates

    def lines(self) -> list[str]:
        s = self.summary
        verified = s.warmup_verified + s.verified
        wrong = s.warmup_errors + s.errors_found
        lines = [
            f"verified {verified} of {s.outputs}: {s.warmup_verified} to warm up, "
            f"{s.verified} by choice; {wrong} of them wrong"
        ]
        if (found := self.estimates.assisted) is not None:
            p = found.pass_rate
            lines.append(
                f"pass rate of all {s.outputs}: {p.value:.1%}, 95 % interval {p.low:.1%} to "
                f"{p.high:.1%}"
            )
        if s.could_not_tell:
            lines.append(f"{s.could_not_tell} selected outputs have no verdict; try them again")
        if s.missing_signal:
            lines.append(
                f"{s.missing_signal} outputs came without log-probabilities: of these the ones to "
                "verify were drawn at random"
            )
        return lines + show(self.estimates)

    def as_json(self) -> dict[str, Any]:
        s, found = self.summary, self.estimates.assisted
        return {
            "outputs": s.outputs,
            "verified": s.warmup_verified + s.verified,
            "wrong": s.warmup_errors + s.errors_found,
            "warmup": s.warmup_verified,
            "could_not_tell": s.could_not_tell,
            "missing_signal": s.missing_signal,
            "selected": list(self.selected),
            "pass_rate": None if found is None else asdict(found.pass_rate),
            "error_rate": as_json(self.estimates),
        }


def report_of(results: Iterable[GateResult]) -> Report:
    """Raises BadInputError where there is nothing to report on."""
    results = list(results)
    if not results:
        raise BadInputError("no output was gated: there is nothing to report")
    selected = [r.id for r in results if r.decision.verify]
    return Report(selected, summarise(results), estimate(results))
