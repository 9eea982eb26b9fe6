"""`gatekeeper sandbox build`: the image in which `DockerSandbox` runs candidates."""

from __future__ import annotations

import argparse
import json
import sys
from contextlib import closing
from dataclasses import asdict
from time import perf_counter

from gatekeeper.cli.packages_option import add_with
from gatekeeper.sandbox import image
from gatekeeper.sandbox.engine import connect

__all__ = ["add", "main"]


def add(parser: argparse.ArgumentParser) -> None:
    actions = parser.add_subparsers(required=True, metavar="action")
    build = actions.add_parser(
        "build",
        help="build the image that candidates run in",
        description="Builds the image that candidates run in. Without --base it is made from this "
        "machine's own Python and needs no registry.",
    )
    build.add_argument(
        "--base", metavar="IMAGE", help="image to start from, for example python:3.12-slim"
    )
    add_with(
        build,
        "packages that candidates may import beside the standard library, as pip takes them; only "
        "wheels; may be repeated (default: none)",
    )
    build.add_argument("--tag", help=f"name of the image (default: {image.DEFAULT})")
    build.add_argument("--json", action="store_true", help="print what was built as JSON")
    build.set_defaults(run=main)


def main(args: argparse.Namespace) -> int:
    """Returns 0. Raises SandboxUnavailableError or BadInputError."""
    started = perf_counter()
    with closing(connect()) as client:
        built = image.build(
            client,
            base=args.base,
            requirements=args.packages,
            tag=args.tag,
            progress=lambda step: print(f"{step} …", file=sys.stderr),
        )
    seconds = perf_counter() - started
    if args.json:
        print(json.dumps({**asdict(built), "seconds": round(seconds, 3)}))
    else:
        print(f"built {built.name} ({built.python}) in {seconds:.1f} s: {built.id}")
    return 0
