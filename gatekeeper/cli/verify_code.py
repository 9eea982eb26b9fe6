"""`gatekeeper verify code items.jsonl --sandbox docker --out verdicts.jsonl`: run them all."""

from __future__ import annotations

import argparse
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

import numpy as np

from gatekeeper.cli.packages_option import add_with
from gatekeeper.cli.verdict_file import Id, Judge, add_common, identity, judge_file
from gatekeeper.errors import BadInputError
from gatekeeper.io.jsonl import field
from gatekeeper.option_values import number, whole
from gatekeeper.sandbox import DockerSandbox, LocalSandbox
from gatekeeper.sandbox.suite import read_suite
from gatekeeper.types import Generation

__all__ = ["add", "main"]

Item = tuple[Generation, Mapping[str, Any]]
FIELDS = ("evaluation", "isolation", "image", "stdout", "stderr")


def add(subparsers: argparse._SubParsersAction[Any]) -> None:
    parser = subparsers.add_parser(
        "code",
        help="run programs against their unit tests, in a sandbox",
        description="Writes one verdict per item, in input order. docs/sandbox.md describes the "
        "guarantees of the sandbox and all forms of tests.",
    )
    add_common(parser, "id, code, tests (asserts), test_setup_code")
    parser.add_argument(
        "--sandbox",
        choices=("docker", "local"),
        required=True,
        help="where untrusted code runs; there is no default",
    )
    parser.add_argument(
        "--workers",
        type=whole(),
        metavar="N",
        help="candidates at the same time (default: by processors)",
    )
    parser.add_argument(
        "--timeout",
        type=number("(0, 1e6]"),
        default=5.0,
        metavar="SECONDS",
        help="for each candidate",
    )
    parser.add_argument(
        "--memory-mb",
        type=whole(1, 1 << 30),
        default=512,
        metavar="M",
        help="MiB for each candidate",
    )
    parser.add_argument("--image", help="docker: the image to run (default: see `sandbox build`)")
    add_with(parser, "docker: packages that candidates may import, as pip takes them")
    parser.set_defaults(run=main)


def main(args: argparse.Namespace) -> int:
    """Returns 0, whatever the verdicts are. Raises BadInputError before anything is written."""

    @contextmanager
    def sandbox() -> Iterator[Judge[Item]]:
        with _sandbox(args) as opened:
            yield opened.verify_many

    return judge_file(args, _item, sandbox, title="run programs", fields=FIELDS)


def _sandbox(args: argparse.Namespace) -> DockerSandbox | LocalSandbox:
    if args.sandbox == "docker":
        return DockerSandbox(
            image=args.image,
            requirements=args.packages,
            timeout=args.timeout,
            memory_mb=args.memory_mb,
            workers=args.workers,
        )
    for option, value in (("--image", args.image), ("--with", args.packages)):
        if value:
            shown = value if isinstance(value, str) else ",".join(value)
            raise BadInputError(f"{option} {shown}: it is for --sandbox docker; give that")
    return LocalSandbox(timeout=args.timeout, memory_mb=args.memory_mb, workers=args.workers)


def _item(data: Mapping[str, Any]) -> tuple[Id, Item]:
    id_ = identity(data)
    read_suite(str(id_), data)
    return id_, (Generation(str(id_), field(data, "code", str), *np.empty((3, 0))), data)
