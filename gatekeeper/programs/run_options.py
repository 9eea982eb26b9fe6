"""The options of a run over tasks: `gatekeeper run` and the examples on data sets have them."""

from __future__ import annotations

import argparse
from dataclasses import dataclass, fields
from pathlib import Path
from typing import get_args

from gatekeeper.budget import Unit
from gatekeeper.gate.state import OnDrift
from gatekeeper.policies import policy_names

__all__ = ["RunOptions", "add_run_options", "run_options_of"]


@dataclass(frozen=True, slots=True, kw_only=True)
class RunOptions:
    """The options of a run over tasks.

    Parameters
    ----------
    generator : str
        A provider of `gatekeeper.io.providers` with a generator.
    model : str or None
        The model's name or folder, for generators that take one.
    base_url : str or None
        The endpoint, for generators that take one; None: the provider's own.
    api_key_env : str
        The environment variable with the endpoint's key.
    concurrency : int
        Requests at the same time, for generators that take it.
    max_tokens : int or None
        Of an answer; None: the generator's own limit.
    temperature : float
        At least 0; 0 is greedy.
    policy : str
    budget : float
        Share of the full cost, in (0, 1].
    explore : float
        Share of the budget for outputs drawn at random, in [0, 1).
    on_drift : {"relearn", "report"}
    unit : {"verifications", "seconds"}
        Of the budget.
    sandbox : str or None
        Name of the verifier for tasks of kind "code".
    workers : int
        Verifications at the same time.
    log : Path or None
        SQLite file to write or to resume.
    seed : int
    check_all : bool
        Afterwards verify the other outputs too, outside the budget.
    json : bool
        Print the report as JSON.
    """

    generator: str = "bundled"
    model: str | None = None
    base_url: str | None = None
    api_key_env: str = "OPENAI_API_KEY"
    concurrency: int = 8
    max_tokens: int | None = None
    temperature: float = 0.0
    policy: str = "cst"
    budget: float = 0.2
    explore: float = 0.1
    on_drift: OnDrift = "relearn"
    unit: Unit = "verifications"
    sandbox: str | None = None
    workers: int = 2
    log: Path | None = None
    seed: int = 0
    check_all: bool = False
    json: bool = False


def add_run_options(parser: argparse.ArgumentParser) -> None:
    """Add all options but the generator and the model, which a program adds in its own way."""
    usual = RunOptions()
    add = parser.add_argument
    add("--base-url", metavar="URL", help="openai: the endpoint, ending in /v1")
    add(
        "--api-key-env",
        default=usual.api_key_env,
        metavar="NAME",
        help="openai: environment variable with the key (default: %(default)s)",
    )
    add(
        "--concurrency",
        type=int,
        default=usual.concurrency,
        help="openai: requests at the same time (default: %(default)s)",
    )
    add("--max-tokens", type=int, metavar="N", help="of an answer (default: the model's limit)")
    add(
        "--temperature",
        type=float,
        default=usual.temperature,
        help="0 is greedy (default: %(default)s)",
    )
    add(
        "--policy",
        default=usual.policy,
        help=f"one of {', '.join(policy_names())} (default: %(default)s)",
    )
    add(
        "--budget",
        type=float,
        default=usual.budget,
        metavar="SHARE",
        help="share of the full cost; 1 verifies everything (default: %(default)s)",
    )
    add(
        "--explore",
        type=float,
        default=usual.explore,
        metavar="SHARE",
        help="share of the budget for outputs drawn at random; with 0 there is no estimate of the "
        "error rate of all outputs (default: %(default)s)",
    )
    add(
        "--on-drift",
        choices=get_args(OnDrift),
        default=usual.on_drift,
        help="what to do when the thresholds no longer fit the outputs: learn them again "
        "(default), or only report it",
    )
    add("--unit", choices=get_args(Unit)[:2], default=usual.unit, help="of the budget")
    add("--sandbox", metavar="NAME", help="what runs code: docker, local, or a plug-in's verifier")
    add(
        "--workers",
        type=int,
        default=usual.workers,
        help="verifications at the same time (default: %(default)s)",
    )
    add("--log", type=Path, help="SQLite file to write or to resume")
    add("--seed", type=int, default=usual.seed, help="of all random draws (default: %(default)s)")
    add(
        "--check-all",
        action="store_true",
        help="afterwards verify the other outputs too, outside the budget, for comparison",
    )
    add("--json", action="store_true", help="print the report as JSON")


def run_options_of(args: argparse.Namespace) -> RunOptions:
    """The options that a parser has found; those that it does not have get their defaults."""
    given = vars(args)
    return RunOptions(**{f.name: given[f.name] for f in fields(RunOptions) if f.name in given})
