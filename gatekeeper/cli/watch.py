"""`gatekeeper watch run.db`: a log as a live page, or on the terminal."""

from __future__ import annotations

import argparse
import asyncio
import sys
from importlib.util import find_spec

from gatekeeper.errors import MissingDependencyError
from gatekeeper.option_values import whole
from gatekeeper.programs.log_argument import add_run_name, log_file, place_given

__all__ = ["add", "main"]

READ_ONLY = (
    "This page is read-only. Give verdicts where the gate runs: on the page of gatekeeper serve, "
    "or with gate.report_outcome."
)


def add(parser: argparse.ArgumentParser) -> None:
    parser.description = (
        "Follow a run live. The page needs the extra serve. The log is only read: the "
        "gate that writes it is not slowed down."
    )
    parser.add_argument("log", type=log_file, help="a gate's log")
    add_run_name(parser)
    parser.add_argument("--host", default="127.0.0.1", help="address to listen on")
    parser.add_argument(
        "--port", type=whole(0, 65535), default=8081, metavar="N", help="0: a free one"
    )
    parser.add_argument(
        "--terminal",
        action="store_true",
        help="the same figures here instead of a page; once, if standard output is no terminal",
    )
    parser.set_defaults(run=main)


def main(args: argparse.Namespace) -> int:
    """Serves until Ctrl-C or SIGTERM; returns 0. Raises LogError for a file that is no log."""
    log = place_given(args.log, args)
    if args.terminal:
        from gatekeeper.page.terminal import follow_on_terminal
        from gatekeeper.programs.console import ResultConsole

        follow_on_terminal(log, ResultConsole())
        return 0
    if find_spec("aiohttp") is None:
        raise MissingDependencyError("aiohttp", extra="serve", needed_for="the live page")
    from gatekeeper.page.access import Access
    from gatekeeper.page.application import LivePage
    from gatekeeper.page.server import serve_page
    from gatekeeper.page.watcher import Watcher

    watcher = Watcher(log, read_only=READ_ONLY)
    watcher.advance()
    page = LivePage(watcher, Access(hosts=[args.host]), report=None)

    def ready(url: str) -> None:
        print(f"gatekeeper: {log} at {url}", file=sys.stderr, flush=True)

    asyncio.run(serve_page(page, host=args.host, port=args.port, on_ready=ready))
    return 0
