"""The options of `gatekeeper run` and `gatekeeper serve`, which one file of options may serve."""

from __future__ import annotations

import argparse
from pathlib import Path

from gatekeeper.gateway.settings import ON_FAILED, WAITS
from gatekeeper.io.datasets import FORMATS
from gatekeeper.io.providers import generator_names
from gatekeeper.option_values import number, whole
from gatekeeper.programs.config_file import add_config_option
from gatekeeper.programs.run_arguments import add_gate_options, add_run_options
from gatekeeper.programs.telemetry import TELEMETRY
from gatekeeper.programs.values import base_url, input_file

__all__ = ["add_run", "add_serve"]

OF_ROUTE = (
    "upstream",
    "upstream-key-env",
    "wait",
    "on-failed",
    "goal",
    "policy",
    "budget",
    "total",
    "unit",
    "warmup",
    "explore",
    "on-drift",
    "budget-groups",
    "features",
)
"""Options of `serve` that a route may have, too."""


def add_run(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of `gatekeeper run`."""
    add = parser.add_argument
    add("tasks", type=input_file, help="JSONL: id, prompt, kind, tests | gold; - is standard input")
    add_config_option(parser, others=[_serve], of_route=OF_ROUTE)
    _run(parser)


def add_serve(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of `gatekeeper serve`."""
    add_config_option(parser, others=[_run], of_route=OF_ROUTE)
    parser.set_defaults(routes=[])
    _serve(parser)


def _run(parser: argparse.ArgumentParser) -> None:
    add = parser.add_argument
    add("--limit", type=whole(), metavar="N", help="only the first N tasks")
    add(
        "--format",
        choices=FORMATS,
        default="tasks",
        help="what a line is: a task (default), or a row of MBPP or MATH-500",
    )
    add(
        "--generator",
        choices=generator_names(),
        default="bundled",
        help="what answers the prompts: the bundled model (default), an endpoint of OpenAI's API, "
        "or vLLM in this process",
    )
    add("--model", metavar="NAME", help="openai, vllm: the model's name or folder")
    add("--skip-bad", action="store_true", help="skip and count bad lines")
    _telemetry(parser)
    add_run_options(parser)


def _serve(parser: argparse.ArgumentParser) -> None:
    add = parser.add_argument
    add(
        "--upstream", type=base_url, metavar="URL", help="the API's base URL, usually ending in /v1"
    )
    add("--host", default="127.0.0.1", help="address to listen on; 0.0.0.0 is every one")
    add("--port", type=whole(0, 65535), default=8080, metavar="N", help="0 picks a free one")
    add(
        "--workers",
        type=whole(),
        default=1,
        metavar="N",
        help="processes that serve the port; more than one need a log with --shared",
    )
    add("--tasks", type=Path, metavar="FILE", help="task file, as for `gatekeeper run`")
    add(
        "--wait",
        choices=WAITS,
        default="background",
        help="hold an answer until its verdict is known, or (default) verify in the background",
    )
    add(
        "--on-failed",
        choices=ON_FAILED,
        default="return",
        help="what to do with an answer that is found wrong: block waits for the verdict and "
        "answers with HTTP 422 instead (default: return)",
    )
    add(
        "--upstream-key-env",
        metavar="NAME",
        help="environment variable with the API's key (default: callers' keys are passed on)",
    )
    add(
        "--own-key-env",
        metavar="NAME",
        help="environment variable with a key that callers must send as x-gatekeeper-key",
    )
    add(
        "--grace",
        type=number("[0, 1e6)"),
        default=10.0,
        metavar="SECONDS",
        help="after SIGTERM, for verifications that have not begun",
    )
    _telemetry(parser)
    # How many outputs come is not known, so a total alone has no rate.
    add_gate_options(parser, beside_total=True)


def _telemetry(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--telemetry",
        choices=TELEMETRY,
        help="send each verdict as an event of OpenTelemetry or, from a gateway, as a score of the "
        "caller's trace (header traceparent); the environment variables of the tool's own "
        "client, such as OTEL_EXPORTER_OTLP_ENDPOINT, set the address",
    )
