"""The options of a run over tasks as arguments of a command."""

from __future__ import annotations

import argparse
from typing import get_args

from gatekeeper.budget import DEFAULT_FRACTION, Unit
from gatekeeper.features import BY_NAME
from gatekeeper.gate.state import OnDrift
from gatekeeper.option_values import number, whole
from gatekeeper.policies import Goal, policy_names
from gatekeeper.programs.log_argument import add_run_name, log_file
from gatekeeper.programs.run_options import Engine, RunOptions
from gatekeeper.programs.values import base_url

__all__ = ["add_gate_options", "add_run_options"]


def add_run_options(parser: argparse.ArgumentParser) -> None:
    """Add all options but the generator and the model, which a program adds in its own way."""
    _add_generation(parser)
    add_gate_options(parser)
    _add_engine(parser)
    add = parser.add_argument
    add(
        "--check-all",
        action="store_true",
        help="afterwards verify the other outputs too, outside the budget, for comparison",
    )
    add(
        "--dry-run",
        action="store_true",
        help="generate and verify nothing; print how many would be verified, and at what cost",
    )
    add("--json", action="store_true", help="print the report as JSON")


def _add_generation(parser: argparse.ArgumentParser) -> None:
    usual = RunOptions()
    add = parser.add_argument
    add(
        "--base-url",
        type=base_url,
        metavar="URL",
        help="openai: the endpoint, ending in /v1 (default: OpenAI's)",
    )
    add(
        "--api-key-env",
        default=usual.api_key_env,
        metavar="NAME",
        help="openai: environment variable with the key",
    )
    add(
        "--concurrency",
        type=whole(),
        default=usual.concurrency,
        metavar="N",
        help="openai: requests at the same time",
    )
    add(
        "--max-tokens",
        type=whole(),
        metavar="N",
        help="tokens of an answer (default: the model's limit)",
    )
    add(
        "--temperature",
        type=number("[0, inf)"),
        default=usual.temperature,
        metavar="T",
        help="of the model; 0 is greedy",
    )
    add(
        "--second-model",
        metavar="NAME",
        help="another model of an OpenAI endpoint, which answers each prompt too: whether it "
        "agrees is a feature of the output, for --policy calibrated",
    )
    add(
        "--second-base-url",
        type=base_url,
        metavar="URL",
        help="its endpoint (default: that of the first model)",
    )
    add(
        "--second-api-key-env",
        metavar="NAME",
        help="environment variable with the key of its endpoint (default: that of the first model "
        "for the same endpoint, none for another)",
    )


def _add_engine(parser: argparse.ArgumentParser) -> None:
    usual = RunOptions()
    add = parser.add_argument
    add(
        "--engine",
        choices=get_args(Engine),
        default=usual.engine,
        help="what verifies: threads of this process (default), or actors of a Ray cluster",
    )
    add(
        "--generators",
        type=whole(least=0),
        metavar="N",
        help="ray: actors that generate, each with the model (default: for vllm one for each GPU "
        "of the cluster; otherwise 0, this process)",
    )
    add(
        "--address",
        metavar="HOST:PORT",
        help="ray: the cluster (default: that of RAY_ADDRESS, or of this machine)",
    )


def add_gate_options(parser: argparse.ArgumentParser, *, beside_total: bool = False) -> None:
    """Add the options of the gate: policy, budget, verifiers, log.

    `beside_total`: a share of the cost is the default with a total, too.
    """
    _add_policy(parser)
    _add_budget(parser, "also with a --total" if beside_total else "unless there is a --total")
    _add_learning(parser)
    _add_verifiers(parser)
    _add_log(parser)


def _add_policy(parser: argparse.ArgumentParser) -> None:
    usual = RunOptions()
    add = parser.add_argument
    add(
        "--goal",
        choices=get_args(Goal),
        default=usual.goal,
        help="errors: find wrong outputs (default). score: draw the outputs to verify for the "
        "best estimate of the score of all",
    )
    add(
        "--policy",
        metavar="NAME",
        help=f"of the goal errors: one of {', '.join(policy_names())} (default: {usual.policy}, "
        "which finds the most on average); `gatekeeper compare` and `diagnose` show which one "
        "finds the most on your outputs",
    )


def _add_budget(parser: argparse.ArgumentParser, with_total: str) -> None:
    usual = RunOptions()
    add = parser.add_argument
    add(
        "--budget",
        type=number("(0, 1]"),
        metavar="SHARE",
        help="share of the full cost after the warm-up; 1 verifies everything (default: "
        f"{DEFAULT_FRACTION}, {with_total})",
    )
    add(
        "--total",
        type=number("(0, 1e18)"),
        metavar="N",
        help="most to spend, in --unit, the warm-up included (default: no limit but --budget)",
    )
    add(
        "--budget-groups",
        default=usual.budget_groups,
        metavar="CAPS",
        help="caps of groups beside the budget, in --unit (default: none): tenant=50 for each "
        "value of the tasks' field 'tenant', tenant=a:50,tenant=b:100 for some; 'model' is the "
        "outputs' model",
    )
    add("--unit", choices=get_args(Unit)[:2], default=usual.unit, help="of budget and total")


def _add_learning(parser: argparse.ArgumentParser) -> None:
    usual = RunOptions()
    add = parser.add_argument
    add(
        "--warmup",
        type=whole(),
        metavar="N",
        help="of the goal errors: the first N outputs, which are all verified (default: "
        f"{usual.warmup})",
    )
    add(
        "--explore",
        type=number("[0, 1)"),
        metavar="SHARE",
        help="of the goal errors: share of the budget for outputs drawn at random; with 0 there is "
        f"no estimate of the error rate of all outputs (default: {usual.explore})",
    )
    add(
        "--on-drift",
        choices=get_args(OnDrift),
        default=usual.on_drift,
        help="what to do when the thresholds no longer fit the outputs: learn them again "
        "(default), or only report it",
    )
    add(
        "--features",
        default=usual.features,
        metavar="NAMES",
        help=f"features of the outputs, for --policy calibrated: some of {','.join(BY_NAME)}, and "
        "agreement:N, with N further samples of each prompt (run only; default: none)",
    )
    add("--seed", type=whole(0), default=usual.seed, metavar="N", help="of all random draws")


def _add_verifiers(parser: argparse.ArgumentParser) -> None:
    usual = RunOptions()
    add = parser.add_argument
    add("--sandbox", metavar="NAME", help="what runs code: docker, local, or a plug-in's verifier")
    add(
        "--maths-checker",
        default=usual.maths_checker,
        metavar="NAME",
        help="what checks maths answers: math, or a plug-in's verifier",
    )
    add(
        "--threads",
        type=whole(),
        default=usual.threads,
        metavar="N",
        help="verifications at the same time",
    )


def _add_log(parser: argparse.ArgumentParser) -> None:
    add = parser.add_argument
    add(
        "--log",
        type=log_file,
        metavar="FILE",
        help="SQLite file to write or to resume, or postgresql://USER@HOST/DATABASE with --run "
        "(default: none is kept)",
    )
    add_run_name(parser)
    add(
        "--shared",
        action="store_true",
        help="this is one of several processes on the run, which have one budget; the log is one "
        "in PostgreSQL",
    )
